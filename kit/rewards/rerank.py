"""The same verdicts under other weights: a new ranking without a judge call."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..errors import KitError
from ..records import Criterion, Response, Task, Verdict
from .composer import Composer, grades

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
        [c.name for c in composer.components if c.active]
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
    components = {c.name for c in base.components}
    factors = {k: v for k, v in weights.items() if k not in components}
    changed = base.with_weights({k: v for k, v in weights.items() if k in components})
    before = grades(tasks, responses, verdicts, composer=base)
    after = grades([_reweighted(t, factors) for t in tasks], responses, verdicts, composer=changed)
    old, new = _ranks([g.score for g in before]), _ranks([g.score for g in after])
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
    criteria = []
    for c in task.criteria:
        w = c.weight
        for g in groups_of(c):
            w *= factors.get(g, 1.0)
        criteria.append(dataclasses.replace(c, weight=w))
    return dataclasses.replace(task, criteria=tuple(criteria))


def _ranks(scores: Sequence[float | None]) -> list[int | None]:
    known = sorted((s for s in scores if s is not None), reverse=True)
    first: dict[float, int] = {}
    for i, s in enumerate(known, 1):
        first.setdefault(s, i)
    return [None if s is None else first[s] for s in scores]
