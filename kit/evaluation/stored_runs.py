"""Finished runs that ship with the kit: held-out answers by run and stage. Code decides them again when they are read.

`data/learning.json`: `kit train instructions` over seeds, and a control whose rewards changed hands at random;
    `instructions_soft`, where its gates are ordinary criteria; `instructions_best`, with SFT on own answers before it.
`data/ladder_runs.json`: `kit train ladder_chain` and `ladder_confidence` over seeds.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Any

import pandas as pd

from ..errors import DataError
from ..judging import judge
from ..records import Response, Task
from ..rewards import grade
from ..stats import Estimate, difference, mean, over_seeds
from ..system import paths
from ..system.settings import require_name
from .heldout import Evaluation

# config -> its file of runs, the file of its tasks
STORED_RUNS = {
    "instructions": ("learning.json", "instructions.jsonl"),
    "instructions_soft": ("learning.json", "instructions.jsonl"),
    "instructions_best": ("learning.json", "instructions.jsonl"),
    "ladder_chain": ("ladder_runs.json", "ladder.jsonl"),
    "ladder_confidence": ("ladder_runs.json", "ladder.jsonl"),
}


@dataclass(frozen=True, repr=False)
class Stored:
    """Stored runs of one config.

    frame : one row an answer. Columns run, control, how ("greedy", the run's own evaluation, or "sampled", at the
        temperature of training), stage ("before" and "after", or "start" and the names of the stages), task, kind,
        prompt, answer, tokens (token probability), stated (confidence in the text), reward, right (1 where the answer
        passes as a whole), seed.
    """

    frame: pd.DataFrame

    @property
    def stages(self) -> list[str]:
        """The stages in their order."""
        return list(dict.fromkeys(self.frame["stage"]))

    def _by_prompt(self, column: str) -> pd.DataFrame:
        """The mean of a column: one row a run and task, one column a stage."""
        # The control, whose rewards were shuffled, is left out of averages.
        return self.frame[
            ~self.frame["control"] & (self.frame["how"] == "greedy")
        ].pivot_table(
            index=["run", "task"], columns="stage", values=column, sort=False
        )

    def gain(
        self,
        new: str | None = None,
        old: str | None = None,
        *,
        column: str = "right",
    ) -> Estimate:
        """A stage less another one (default: the last less the first), paired by prompt, runs averaged.

        Its interval is over prompts: would other prompts show it? `over_seeds` is over runs: would another run?
        """
        new, old = new or self.stages[-1], old or self.stages[0]
        # runs are averaged first: one prompt is one unit
        by_prompt = self._by_prompt(column).groupby("task").mean()
        return replace(
            difference(by_prompt[new], by_prompt[old]),
            noun=f"{column}, {new} less {old}",
        )

    def over_seeds(
        self,
        new: str | None = None,
        old: str | None = None,
        *,
        column: str = "right",
    ) -> Estimate:
        """The same difference with its interval over runs."""
        new, old = new or self.stages[-1], old or self.stages[0]
        by_run = self._by_prompt(column).groupby("run").mean()
        return replace(
            over_seeds(by_run[new] - by_run[old], bounds=(-1.0, 1.0)),
            noun=f"{column}, {new} less {old}",
        )

    def table(self, *, by: str = "stage") -> pd.DataFrame:
        """A DataFrame of greedy answers: mean, worst and best run, gain over prompts and over seeds.

        by : "stage" compares each stage with the first; "kind" the last stage, for each kind of prompt.
        """
        rows, (first, *later) = [], self.stages
        for part in later if by == "stage" else self.frame["kind"].unique():
            stage, runs = part, self
            if by == "kind":
                stage, runs = later[-1], Stored(self.frame.query("kind == @part"))
            shares = runs._by_prompt("right").groupby("run").mean()
            rows.append(
                {
                    by: part,
                    "before": shares[first].mean(),
                    "mean": shares[stage].mean(),
                    "worst": shares[stage].min(),
                    "best": shares[stage].max(),
                    "gain over prompts": str(runs.gain(stage)),
                    "gain over seeds": str(runs.over_seeds(stage)),
                }
            )
        return pd.DataFrame(rows)

    def runs(self) -> pd.DataFrame:
        """A DataFrame, one row a run, the control too: share right before and after, and the gain over prompts."""
        rows, frame = [], self.frame[self.frame["how"] == "greedy"]
        for (run, control), answers in frame.groupby(
            ["run", "control"], sort=False
        ):
            table = answers.pivot_table("right", index="task", columns="stage")
            old, new = table[self.stages[0]], table[self.stages[-1]]
            rows.append(
                {
                    "run": run,
                    "control": control,
                    "before": mean(old).value,
                    "after": mean(new).value,
                    "gain": str(difference(new, old)),
                }
            )
        return pd.DataFrame(rows)

    def __repr__(self) -> str:
        return self.runs().to_string(index=False)


def stored(name: str = "instructions", *, path: str | Path | None = None) -> Stored:
    """The stored runs of a config, of "instructions_soft" or of "instructions_best"."""
    from ..data import load

    require_name("stored run", name, STORED_RUNS, where="stored")
    runs_file, tasks_file = STORED_RUNS[name]
    file = Path(path or paths.data(runs_file))
    data = json.loads(file.read_text("utf-8"))
    if name not in data:
        raise DataError(
            f"the file has no runs of {name!r}",
            where=str(file),
            fix="write it with data/store_runs.py",
        )
    rows: list[tuple[Any, ...]] = []
    for run, stages in data[name].items():
        for stage, record in stages.items():
            for how, key in (("greedy", "answers"), ("sampled", "sampled")):
                rows += [(run, how, stage, *row) for row in record.get(key, ())]
    return Stored(_grade_answers(rows, load(paths.data(tasks_file)).tasks))


def _grade_answers(
    rows: Sequence[tuple[Any, ...]], tasks: Sequence[Task]
) -> pd.DataFrame:
    """`Stored.frame` out of (run, how, stage, task, text, token probability), graded by code."""
    responses = [
        Response(task_id=task, id=f"a{n}", text=text, confidence=p)
        for n, (*_, task, text, p) in enumerate(rows)
    ]
    look = Evaluation(
        name="",
        responses=tuple(responses),
        grades=tuple(
            grade(
                tasks,
                judge(tasks, responses, ledger=False, progress=False),
                responses=responses,
            )
        ),
    )
    frame = pd.DataFrame(rows, columns="run how stage task answer tokens".split())
    seed = pd.to_numeric(frame["run"], errors="coerce")
    return frame.assign(
        run=frame["run"].where(seed.isna(), "seed " + frame["run"]),
        seed=seed,
        control=frame["run"] == "control",
        stated=pd.Series(look.stated, dtype=float),
        reward=pd.Series(look.rewards, dtype=float),
        right=pd.Series(look.strict(tasks), dtype=float),
    ).merge(
        pd.DataFrame(
            map(attrgetter("id", "kind", "prompt"), tasks),
            columns=["task", "kind", "prompt"],
        ),
        how="left",
    )
