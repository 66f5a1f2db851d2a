"""Runs of a chain kept small: per held-out answer its text and token probability, one JSON for
several seeds.

`data/ladder_runs.json` holds those that the notebooks show; `tests/benchmarks/bench_chain.py` makes
them again. What is right is not stored: it is read from the text by the tasks' own checks, each
time.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import calibration
from ..data import load_tasks
from ..errors import DataError
from ..records import Response, Task, grouped
from ..rewards.composer import Composer
from ..stats.estimate import Estimate
from ..system import paths
from . import policy, quality
from .answers import graded
from .evaluation import Evaluation
from .reward import Reward

STORED = "ladder_runs.json"


def stored(name: str, path: str | Path | None = None) -> dict[str, dict[str, Any]]:
    """The kept runs of one chain: {seed: stages}."""
    found = json.loads(Path(path or paths.data(STORED)).read_text("utf-8"))
    if name not in found:
        raise DataError(f"no run of {name!r} is kept", where=STORED, fix=f"there are {list(found)}")
    return found[name]


def evaluations(stages: Mapping[str, Any], tasks: Sequence[Task] | None = None) -> list[Evaluation]:
    """A kept run's held-out evaluations, graded again by the tasks' own checks."""
    tasks = tuple(tasks or _ladder())
    reward = Reward(tasks=tasks, judge=None, composer=Composer.from_config("rubric"))
    said = {
        name: [
            Response(task_id=k, id=f"{name}-{i}", text=text, source=name, confidence=sure)
            for i, (k, text, sure) in enumerate(stage["answers"])
        ]
        for name, stage in stages.items()
    }
    return [graded(name, answers, reward) for name, answers in said.items()]


def qualities(name: str, *, asides: Sequence[str] = ()) -> dict[tuple[int, str], quality.Quality]:
    """What each stage of the kept runs brought, by (seed, stage); asides : stages that were only
    tried.
    """
    tasks, out = _ladder(), {}
    for seed, stages in stored(name).items():
        seconds = {k: v["seconds"] or math.nan for k, v in stages.items()}
        found = evaluations(stages, tasks)
        for q in quality.qualities(found, tasks, asides=asides, seconds=seconds):
            out[int(seed), q.stage] = q
    return out


def answers(name: str) -> list[dict[str, Any]]:
    """Rows {seed, stage, task_id, kind, stated, token, correct} of the kept runs, for
    kit.calibration.
    """
    tasks = _ladder()
    return [
        {"seed": int(seed), **r}
        for seed, stages in stored(name).items()
        for found in evaluations(stages, tasks)
        for r in policy.rows(found, tasks, quality.correct)
    ]


def swapped(trained: Sequence[Task], held: Sequence[Task]) -> set[str]:
    """Ids of the held-out sums that were trained on with their numbers swapped: they could be
    remembered.
    """
    sums = [sorted(t.prompt.strip("?").split()) for t in trained if t.kind.startswith("sum")]
    return {t.id for t in held if sorted(t.prompt.strip("?").split()) in sums}


def claims(name: str, *, before: str, margin: float = 0.05) -> dict[str, calibration.Comparison]:
    """`quality.claim` of every later stage against one, seed by seed, and of all its seeds
    together.

    Keys are "stage, seed 0" and "stage, all seeds" (clustered by task, where there are several).
    """
    rows = grouped(((r["stage"], r["seed"]), r) for r in answers(name))
    order = list(dict.fromkeys(stage for stage, _ in rows))
    out = {}
    for stage in order[order.index(before) + 1 :]:
        seeds = [s for k, s in rows if k == stage]
        groups = {f"{stage}, seed {s}": [s] for s in seeds}
        groups |= {f"{stage}, all seeds": seeds} if len(seeds) > 1 else {}
        for key, used in groups.items():
            old, new = ([r for s in used for r in rows[k, s]] for k in (before, stage))
            out[key] = quality.claim(old, new, margin=margin)
    return {k: c for k, c in out.items() if c is not None}


def pick(found: Mapping[Any, Any], *names: str) -> dict[str, Estimate]:
    """Estimates of `qualities` or `claims` by these names, labelled for a table or a figure.

    A name may point into a pair: "auroc.1" is the AUROC after.
    """
    out = {}
    for name in names:
        field, _, place = name.partition(".")
        for key, of in found.items():
            what, run = (key[1], f"seed {key[0]}") if isinstance(key, tuple) else (field, key)
            value = getattr(of, field)
            out[f"{WORDS.get(what, what)}, {run}"] = value[int(place)] if place else value
    return {k: e for k, e in out.items() if e is not None and not math.isnan(e.value)}


WORDS = {
    "constant": "the best constant",
    "lookup": "a look-up by family",
    "token": "the token probability",
    "auroc": "AUROC",
}


def errors(found: Mapping[str, calibration.Comparison]) -> list[dict[str, Any]]:
    """Rows {run, answers, ECE before, ECE after, ECE if calibrated}: what a claim about calibration
    prints.
    """
    names = ("run", "answers", "ECE before", "ECE after", "ECE if calibrated")
    return [
        dict(zip(names, (s, c.after.n, c.before.value, c.after.value, c.after.null), strict=True))
        for s, c in found.items()
    ]


def changes(found: Mapping[tuple[int, str], quality.Quality]) -> list[dict[str, Any]]:
    """Rows {seed, stage, kind: change of accuracy, with its interval, against the stage that this
    one began from}: what a stage broke.
    """
    return [
        {"seed": seed, "stage": stage, **{k: e.span(2) for k, e in q.kinds.items()}}
        for (seed, stage), q in found.items()
        if stage != "start"
    ]


def lost(found: Mapping[tuple[int, str], quality.Quality]) -> Counter[tuple[str, str]]:
    """On how many seeds a stage surely lost a kind of task: (stage, kind) -> seeds."""
    return Counter(
        (stage, kind)
        for (_, stage), q in found.items()
        for kind, e in q.kinds.items()
        if stage != "start" and e.high < 0
    )


def rows(found: Mapping[tuple[int, str], quality.Quality]) -> list[dict[str, Any]]:
    """`Quality.row()` of each stage, with its seed."""
    return [{"seed": seed, **q.row()} for (seed, _), q in found.items()]


def _ladder() -> tuple[Task, ...]:
    return tuple(load_tasks(paths.data("ladder.jsonl")).tasks)
