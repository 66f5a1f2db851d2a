"""Runs that were kept: the answers of `kit train instructions` on its held-out prompts, before and
after, seed by seed.

`data/learning.json` holds answers only; code decides their criteria again when they are read, so no
figure is typed in. `tests/benchmarks/bench_learning.py` trains the same runs again and writes the
file. One run is a control: its rewards were dealt out at random, so that whatever it gains is no
learning.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from .. import stats
from ..data import load_tasks
from ..errors import DataError
from ..records import Response, Run, Task
from ..rewards.composer import Composer
from ..rewards.edits import slots
from ..runs import plain
from ..settings.read import known_names
from ..stats.estimate import Estimate
from ..system import paths
from . import answers, evaluation, rollouts
from .evaluation import Evaluation
from .reward import Reward

FILE = "learning.json"
KEPT = "03_train_grpo, kept"  # the notebook that the kept runs are runs of
HOWS = ("greedy", "sampled")


@dataclass(frozen=True, kw_only=True)
class Kept:
    """One run: `before` is the same for all, the untrained model. rewards : of each step's answers;
    seconds : of training.
    """

    name: str
    control: bool
    before: Evaluation
    after: Evaluation
    rewards: tuple[float, ...]
    seconds: float

    def strict(self, tasks: Sequence[Task]) -> tuple[list[float | None], list[float | None]]:
        """Strict passes on these held-out prompts, before and after, in their order."""
        each = [
            dict(zip(e.clusters, e.strict(tasks), strict=True)) for e in (self.before, self.after)
        ]
        missing = [t.id for t in tasks for e in each if t.id not in e]
        if missing:
            raise DataError(
                f"{self.name} has no answer to {missing[0]!r}",
                where=FILE,
                fix="python tests/benchmarks/bench_learning.py --write",
            )
        return [each[0][t.id] for t in tasks], [each[1][t.id] for t in tasks]


def heldout() -> list[Task]:
    """The held-out prompts that the answers belong to."""
    return load_tasks(paths.data("instructions.jsonl")).halves()[1]


@cache
def runs(how: str = "greedy", path: str | Path | None = None) -> tuple[Kept, ...]:
    """The kept runs, graded; how : "greedy" (the likeliest tokens) or "sampled" (at the training
    temperature).
    """
    known_names([how], HOWS, where="stored.runs", what="way of answering")
    data = json.loads(Path(path or paths.data(FILE)).read_text("utf-8"))
    reward = Reward(tasks=heldout(), judge=None, composer=Composer.from_config("rubric"))
    before = graded("before", data["before"][how], reward)
    return tuple(
        Kept(
            name=name,
            control=r["control"],
            before=before,
            after=graded("after", r["after"][how], reward),
            rewards=tuple(r["rewards"]),
            seconds=r["seconds"],
        )
        for name, r in data["runs"].items()
    )


def graded(name: str, rows: Mapping[str, str], reward: Reward) -> Evaluation:
    """Stored answers (task id -> text) with their grades."""
    if strange := rows.keys() - reward.by_id.keys():
        raise DataError(f"there is no task {min(strange)!r}", where=FILE)
    given = [
        Response(task_id=i, id=f"{name}-{i}", text=text, source=name) for i, text in rows.items()
    ]
    return answers.graded(name, given, reward)


@dataclass(frozen=True, kw_only=True)
class OverSeeds:
    """Strict passes of several seeds: share before, share after of each, and the mean gain with two
    intervals.

    prompts : over held-out prompts, seeds averaged (would other prompts show it?); seeds : over
    seeds (would another run?).
    """

    before: float
    after: tuple[float, ...]
    prompts: Estimate
    seeds: Estimate

    def row(self, what: str) -> dict[str, Any]:
        """One row for a table."""
        return {
            "what": what,
            "before": self.before,
            "after, mean": sum(self.after) / len(self.after),
            "worst": min(self.after),
            "best": max(self.after),
            "gain over prompts": str(self.prompts),
            "gain over seeds": str(self.seeds),
        }


def over_seeds(kept: Sequence[Kept], tasks: Sequence[Task]) -> OverSeeds:
    """The gain in strict passes on `tasks`, over the prompts and over the runs; controls are left
    out.
    """
    pairs = {k.name: k.strict(tasks) for k in kept if not k.control}
    if not pairs:
        raise DataError("there is no run but controls", where=FILE)
    ids = [t.id for t in tasks]
    before = next(iter(pairs.values()))[0]  # the untrained model's answers, the same for all
    every = [v for _, seed in pairs.values() for v in seed]
    after = tuple(evaluation.mean_by_cluster(v, ids).value for _, v in pairs.values())
    start = evaluation.mean_by_cluster(before, ids).value
    return OverSeeds(
        before=start,
        after=after,
        prompts=evaluation.paired(before, every, ids, ids * len(pairs)),
        seeds=stats.mean_over_seeds([a - start for a in after], bounds=(-1.0, 1.0)),
    )


def habits(kept: Sequence[Kept], tasks: Sequence[Task]) -> list[dict[str, Any]]:
    """Rows, one a kind of prompt: how often the trained answers begin with the first word that the
    prompt quotes, hold all that it quotes, and ask. Who only copies does each alike everywhere.
    """
    by_id = {t.id: t for t in tasks}
    rows = []
    said = [r for k in kept if not k.control for r in k.after.responses]
    for kind in dict.fromkeys(str(t.kind) for t in tasks):
        first, whole, asks = [], [], []
        for r in said:
            task = by_id.get(r.task_id)
            text = r.text.strip()
            if task is None or str(task.kind) != kind:
                continue
            asks.append(text.endswith("?"))
            if quoted := slots(task):
                first.append(text.lower().startswith(quoted[0].lower()))
                whole.append(all(re.search(rf"\b{w}\b", text, re.I) for w in quoted))
        rows.append(
            {
                "prompts": kind,
                "begins with the first quoted word": rollouts.mean(first),
                "holds every quoted word": rollouts.mean(whole),
                "asks": rollouts.mean(asks),
                "answers": len(asks),
            }
        )
    return rows


def table(kept: Sequence[Kept], tasks: Sequence[Task]) -> list[dict[str, Any]]:
    """Rows: all held-out prompts, then each kind of them."""
    kinds = dict.fromkeys(str(t.kind) for t in tasks)
    rows = [over_seeds(kept, tasks).row("all")]
    return rows + [over_seeds(kept, [t for t in tasks if t.kind == k]).row(k) for k in kinds]


def each(kept: Sequence[Kept], tasks: Sequence[Task]) -> list[dict[str, Any]]:
    """One row a run, the control too: strict passes, their gain over prompts, finished sentences,
    answers' length.
    """
    out = []
    for k in kept:
        one = over_seeds([replace(k, control=False)], tasks)
        words = [float(len(r.text.split())) for r in k.after.responses]
        out.append(
            {
                "run": k.name,
                "strict passes": one.after[0],
                "gain": str(one.prompts),
                "finished": k.after.criteria()["id finished"].value,
                "words": sum(words) / len(words),
            }
        )
    return out


def said(kept: Sequence[Kept]) -> list[Response]:
    """All answers of these runs, the untrained model's first, each with an id of its own; meta :
    "whole", what the whole reward pays.
    """
    every = [("untrained", kept[0].before), *((k.name, k.after) for k in kept if not k.control)]
    return [
        replace(r, id=f"{name}, {r.task_id}", source=name, meta={"whole": g.score})
        for name, e in every
        for r, g in zip(e.responses, e.grades, strict=True)
    ]


def as_runs(kept: Sequence[Kept], tasks: Sequence[Task]) -> list[tuple[Path, Run]]:
    """The kept seeds as runs of notebook 3, for all that compares runs (`kit.runs.compare`)."""
    out = []
    for k in kept:
        if not k.control:
            one = over_seeds([k], tasks)
            after = stats.mean(k.after.strict(tasks), cluster=k.after.clusters)
            metrics = plain({"strict passes after": after, "gain in strict passes": one.prompts})
            seed = int(k.name.removeprefix("seed "))
            run = Run(id=k.name, notebook=KEPT, profile="cpu", seed=seed, metrics=metrics)
            out.append((Path(k.name), replace(run, seconds=k.seconds)))
    return out
