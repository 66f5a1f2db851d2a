"""Other weights for the same verdicts: a ranking under weights of one's own (`rerank`), and weights
for training that follow what tells the answers of a group apart; the evaluation keeps the rubric's.

A criterion that all answers of a group meet, or none, teaches nothing at that step, whatever it
weighs. In the spirit of POW3R (arXiv 2605.20164, of which the abstract was at hand): what should
matter in the end stays apart from what can teach the policy now; importance and the balance between
kinds of criteria are kept. The formula is this module's.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..errors import KitError
from ..records import Criterion, Response, Task, Verdict, grouped
from . import components
from .composer import Composer, grades

MOST = 4.0  # a weight grows at most so many times
NONE = 1e-9  # less is rounding, no spread


def spreads(said: Iterable[tuple[str, float | None]]) -> dict[str, float]:
    """Standard deviation (population) of each criterion's known values over a group's answers, in
    [0, .5]; of one value alone none is known.

    said : (criterion id, value) of every verdict.

    >>> spreads([("a", 0.0), ("a", 1.0), ("b", 1.0), ("b", None)])
    {'a': 0.5}
    """
    values = grouped((i, value) for i, value in said if value is not None)
    return {k: statistics.pstdev(x) for k, x in values.items() if len(x) > 1}


def weights(
    criteria: Sequence[Criterion], spread: Mapping[str, float], strength: float
) -> dict[str, float]:
    """New weights: (1 - strength) w + strength x a share that follows the spread.

    criteria : of one group; wanted ones and faults are kinds of their own, and each kind keeps its
    sum of |w|. A kind without any spread keeps its weights; no weight grows more than MOST times.

    >>> a, b = Criterion(id="a", text="x"), Criterion(id="b", text="y", weight=3.0)
    >>> weights([a, b], {"a": 0.5, "b": 0.0}, 1.0)
    {'a': 4.0, 'b': 0.0}
    >>> weights([a, b], {"a": 0.5, "b": 0.5}, 1.0)
    {'a': 1.0, 'b': 3.0}
    """
    out = {c.id: c.weight for c in criteria}
    for sign in (1, -1):
        kind = [c for c in criteria if c.weight * sign > 0]
        total = sum(c.weight for c in kind)
        moved = {c.id: c.weight * spread.get(c.id, 0.0) for c in kind}
        if abs(sum(moved.values())) <= NONE * abs(total):
            continue
        factor = total / sum(moved.values())
        for c in kind:
            new = (1 - strength) * c.weight + strength * factor * moved[c.id]
            out[c.id] = min(new * sign, MOST * c.weight * sign) * sign
    return out


def focused(task: Task, composer: Composer, verdicts: Sequence[Verdict], strength: float) -> Task:
    """The task with the weights that its group's verdicts ask for; static rubrics become criteria
    of its own.

    Required criteria and those in a tree keep their weights: a gate has none, and a node's share is
    decided by its parent.
    """
    rubrics = [c for c in composer.components if c.kind == "rubric"]
    criteria = {x.id: x for c in rubrics for x in components.rubric_of(c.options, task)}
    parents = {c.parent for c in criteria.values()}
    flat = [c for c in criteria.values() if not (c.required or c.parent or c.id in parents)]
    new = weights(flat, spreads((v.criterion_id, v.value) for v in verdicts), strength)
    every = {**{c.id: c for c in task.criteria}, **criteria}
    changed = (dataclasses.replace(c, weight=new.get(c.id, c.weight)) for c in every.values())
    return dataclasses.replace(task, criteria=tuple(changed))


def check(composer: Composer) -> None:
    """KitError where no weight of a criterion reaches the reward."""
    used = [c for c in composer.components if c.kind == "rubric" and c.weight]
    if all(c.options.get("how", "mean") == "mean" for c in used):
        raise KitError(
            f"in the reward {composer.name!r} no weight of a criterion counts",
            where="setting reweight",
            fix="use a rubric component with how: net, flip or signed, or say reweight: 0",
        )


GROUPS = ("positive", "negative", "code", "judged")


def groups_of(criterion: Criterion) -> tuple[str, ...]:
    """The weight groups of a criterion: its polarity, who decides it, and its tags.

    >>> groups_of(Criterion(id="c", text="t", weight=-1.0))
    ('negative', 'judged')
    """
    return (criterion.polarity, "code" if criterion.by_code else "judged", *criterion.tags)


def weight_names(tasks: Iterable[Task], *, composer: Composer) -> list[str]:
    """The names that `rerank` takes: components, then the criterion groups that occur in the
    tasks.
    """
    found = {g for t in tasks for c in t.criteria for g in groups_of(c)}
    return (
        [c.name for c in composer.components]
        + [g for g in GROUPS if g in found]
        + sorted(found - set(GROUPS))
    )


def rerank(
    tasks: Iterable[Task],
    responses: Sequence[Response],
    verdicts: Iterable[Verdict],
    weights: Mapping[str, float] | None = None,
    *,
    composer: Composer | str = "default",
) -> list[dict[str, Any]]:
    """Stored answers ranked under new weights, best first; no judge is called.

    weights : by component name (replaces its weight) or by criterion group (multiplies the weights
    of that group; see weight_names). Rows: rank (None without a score; ties share the lowest),
    change (places gained against the given reward), task_id, response_id, source, score, low, high,
    before. KitError names an unknown weight.
    """
    tasks, verdicts = list(tasks), list(verdicts)
    base = Composer.from_config(composer)
    weights = dict(weights or {})
    known = weight_names(tasks, composer=base)
    if wrong := sorted(weights.keys() - set(known)):
        raise KitError(
            f"there is no weight {wrong[0]!r}",
            where="rerank, weights",
            fix=f"use some of {', '.join(known)}",
        )
    factors = {k: v for k, v in weights.items() if k not in {c.name for c in base.components}}
    parts = (dataclasses.replace(c, weight=weights.get(c.name, c.weight)) for c in base.components)
    changed = dataclasses.replace(base, components=tuple(parts))
    before = grades(tasks, responses, verdicts, composer=base)
    after = grades([_reweighted(t, factors) for t in tasks], responses, verdicts, composer=changed)
    old = _ranks([g.score for g in before])
    new = _ranks([g.score for g in after])
    rows = [
        {
            "rank": new[i],
            "change": None if old[i] is None or new[i] is None else old[i] - new[i],
            "task_id": r.task_id,
            "response_id": r.id,
            "source": r.source,
            "score": after[i].score,
            "low": after[i].score_low,
            "high": after[i].score_high,
            "before": before[i].score,
        }
        for i, r in enumerate(responses)
    ]
    return sorted(
        rows,
        key=lambda row: (row["rank"] is None, row["rank"] or 0, row["task_id"], row["response_id"]),
    )


def _reweighted(task: Task, factors: Mapping[str, float]) -> Task:
    if not factors:
        return task

    def weight(c: Criterion) -> float:
        return math.prod((factors.get(g, 1.0) for g in groups_of(c)), start=c.weight)

    return dataclasses.replace(
        task, criteria=tuple(dataclasses.replace(c, weight=weight(c)) for c in task.criteria)
    )


def _ranks(scores: Sequence[float | None]) -> list[int | None]:
    known = sorted((s for s in scores if s is not None), reverse=True)
    first = {s: i for i, s in reversed([*enumerate(known, 1)])}
    return [None if s is None else first[s] for s in scores]
