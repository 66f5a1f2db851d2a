"""Simulated studies: drawn verdicts instead of a judge, and everything that decides is the kit's."""

from __future__ import annotations

import dataclasses
from functools import cache

import numpy as np

from kit.data.taskset import TaskSet
from kit.records import Criterion, Response, Task, Verdict
from kit.tuning import Seals, Workbench

MET, UNMET, PASSED = 1, 0, 0.7  # 7 of 10 answers are good: raw agreement flatters
ANSWERS = 2


@cache
def labels(prompts: int) -> TaskSet:
    """`prompts` tasks with two answers each; 7 of 10 meet the criterion."""
    rng = np.random.default_rng(prompts)
    c = Criterion(id="a", text="Right.")
    tasks = [Task(id=f"t{i}", prompt=f"Q {i}", criteria=(c,)) for i in range(prompts)]
    ids = [(t.id, f"r{k}") for t in tasks for k in range(ANSWERS)]
    said = np.where(rng.random(len(ids)) < PASSED, "met", "unmet")
    return TaskSet(
        tasks=tasks,
        responses=[Response(task_id=t, id=r, text=f"{t} {r}") for t, r in ids],
        verdicts=[
            Verdict(task_id=t, response_id=r, criterion_id="a", status=str(s), judge="human")
            for (t, r), s in zip(ids, said, strict=True)
        ],
    )


class FakeBench(Workbench):
    """A bench whose verdicts are drawn: right with the chance `right` of the trial's settings, more
    often for easy prompts, the same easy ones for every trial. Half of what a trial says is what
    the baseline says.
    """

    def __init__(self, prompts, seed, tmp_path, **more):
        seals = Seals(tmp_path / f"{prompts}-{seed}.sqlite")
        self.rng = np.random.default_rng([prompts, seed])
        super().__init__(
            labels(prompts), judge=lambda p, **_: None, prompt="base", seals=seals, **more
        )
        _, group = np.unique(self.cluster, return_inverse=True)
        easy = self.rng.beta(4, 4, prompts)[group] - 0.5  # sd .17
        self.chances = easy * 0.6
        self.tables = {}

    def _table(self, trial):
        if trial.name not in self.tables:
            wanted = np.clip(trial.settings.get("right", 0.75) + self.chances, 0, 1)
            lucky = self.rng.random(len(wanted)) < wanted
            base = self.tables.get("baseline")
            if base is not None:  # as often right as `wanted`, and often the same as the baseline
                first = np.clip(0.75 + self.chances, 1e-9, 1)
                more = np.clip((wanted - first) / (1 - first + 1e-9), 0, 1)
                other = self.rng.random(len(wanted)) < 0.5
                kept = base | (self.rng.random(len(wanted)) < more)
                lucky = np.where(other, lucky, kept)
            self.tables[trial.name] = lucky
        return self.tables[trial.name]

    def _more(self, trial, rows):
        right, verdicts = self._table(trial), list(trial.verdicts)
        for i in rows:
            met = right[i] == (self.human[i] == MET)
            row = self.rows[i]
            ids = {"task_id": row.task.id, "response_id": row.response.id, "criterion_id": "a"}
            verdicts[i] = Verdict(**ids, status="met" if met else "unmet")
        return dataclasses.replace(trial, verdicts=tuple(verdicts))


def study(prompts, seed, tmp_path, *, trials=4, found=0, gain=0.0, **more):
    """A bench with hand-written trials, the last one better by `gain` in raw agreement, and what a
    search found; read once.
    """
    bench = FakeBench(prompts, seed, tmp_path, **more)
    for k in range(trials):
        bench.try_(f"p{k}", f"p{k}", right=0.75 + gain * (k == trials - 1))
    for k in range(found):
        trial = bench.try_(f"found {k}", f"found {k}", right=0.75)
        bench.trials[trial.name] = dataclasses.replace(trial, found=True)
    return bench, bench.test()


def claimed(read) -> bool:
    """Whether the sentence says that a prompt is better."""
    return "beats" in read.sentence
