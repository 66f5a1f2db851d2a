"""From the verdicts on one response to one score, or to an interval where verdicts are unknown.

Every aggregation here is monotone in every verdict, so its extremes are found by setting all
unknown verdicts to their unfavourable and to their favourable value. That gives the interval
[score_low, score_high]. The reward paid is its lower end while it is narrow, and None (excluded,
never 0) when it is wide: not knowing a verdict can never pay.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..errors import DataError, KitError
from ..records import Criterion, Grade, Task, Verdict, by_criterion, calls_of, grouped, leaves
from ..settings.read import known_names

HOWS = ("mean", "flip", "net", "signed", "signed_unclipped", "positive_normalised")
MAX_WIDTH = 0.1
PASS_AT = (
    0.5  # a required criterion is passed from this value on; criterion.meta["pass_at"] overrides
)


def grade(
    task: Task,
    verdicts: Iterable[Verdict],
    *,
    how: str = "mean",
    max_width: float = MAX_WIDTH,
    use: str = "value",
    gate_to: float | None = 0.0,
    criteria: Sequence[Criterion] | None = None,
    response_id: str | None = None,
) -> Grade:
    """The score of one response from its verdicts.

    how : with value v in [0, 1] per criterion and signed weight w (0 = recorded, not scored),
        "mean" share of favourable criteria, unweighted (v, or 1 - v where w < 0); range [0, 1]; met
        / n when all w > 0.
        "flip" sum |w| (v or 1 - v) / sum |w|; range [0, 1] (the refiner's rubric score). Silence
        earns the negative share.
        "net" sum w v / sum of positive w; a perfect answer earns 1, silence 0, a fault less than
        silence (over sum |w|, range [-1, 0], where no weight is positive).
        "signed_unclipped" sum w v / sum |w|; range [-negative share, positive share]: a perfect
        answer earns less than 1 as soon as one weight is negative.
        "signed" the same, clamped below at 0: different failures tie, and a tie has no gradient.
        "positive_normalised" sum w v / max(sum of positive w, 1); can be negative (open-instruct's
        form).
    max_width : widest interval that still pays; wider gives score None.
    use : "value" (the status) or "p" (P(met) where the judge gave one).
    gate_to : when a `required` criterion fails, the score of its node is at most this; None = no
    gates.
    criteria : graded instead of task.criteria. One without a verdict counts as unknown.
    Parents in a tree are computed from their children: "mean" stays unweighted, every other `how`
    uses "flip" inside. Returns a Grade; `parts` holds the contribution of each top-level criterion
    (None where unknown), `meta` the stated range, the number of unknown and of foreign verdicts (on
    another criterion, response or task; they are left out). KitError on an unknown `how`, DataError
    on a broken tree.

    >>> from kit.records import Criterion, Task, Verdict, unknown
    >>> t = Task(id="t", prompt="p", criteria=tuple(Criterion(id=i, text=i) for i in "abcd"))
    >>> vs = [Verdict(task_id="t", response_id="r", criterion_id=i, status="met") for i in "abc"]
    >>> grade(t, vs + [unknown("t", "r", "d", "parse")], max_width=0.3).score
    0.75
    >>> g = grade(t, vs); g.score, g.score_low, g.score_high
    (None, 0.75, 1.0)
    """
    _check(how, use)
    shut = 0.0 if gate_to is None else gate_to
    if not isinstance(shut, (int, float)) or math.isnan(shut):
        raise KitError(f"gate_to is {gate_to!r}", where="parameter gate_to", fix="a number or None")
    given = tuple(verdicts)
    if response_id is None:
        response_id = given[0].response_id if given else ""
    verdicts = own(given, task.id, response_id)
    found = by_criterion(verdicts)
    plan = Plan.of(task.criteria if criteria is None else criteria, where=f"task {task.id!r}")
    leaves = {i: _interval(found.get(i), use) for i in plan.leaf_ids}
    low, high, parts = plan.evaluate(leaves, how=how, gate_to=gate_to)
    return Grade(
        task_id=task.id,
        response_id=response_id,
        score=pay(low, high, max_width=max_width) if plan.scored else None,
        score_low=low,
        score_high=high,
        verdicts=verdicts,
        usage=usage(verdicts),
        cost=math.fsum([v.cost for v in verdicts]),
        parts=parts,
        meta={
            "how": how,
            "range": plan.range(how=how, gate_to=gate_to),
            "unknown": sum([low != high for low, high in leaves.values()]),
            "scored": len(leaves),
            "foreign": len(found.keys() - plan.ids) + len(given) - len(verdicts),
        },
    )


def pay(low: float, high: float, *, max_width: float = MAX_WIDTH) -> float | None:
    """What an interval earns: its low end when it is at most `max_width` wide, else None.

    >>> pay(.5, .55), pay(.5, .9)
    (0.5, None)
    """
    if not (
        isinstance(max_width, (int, float)) and max_width >= 0
    ):  # NaN too: no interval is wider than NaN, and unknown would be paid as 0
        raise KitError(
            f"max_width is {max_width!r}",
            where="parameter max_width",
            fix="write a number >= 0, for example 0.1",
        )
    # a width of exactly max_width pays, whatever the rounding
    return None if high - low > max_width + 1e-12 else low


def own(verdicts: Iterable[Verdict], task_id: str, response_id: str) -> tuple[Verdict, ...]:
    """The verdicts on this response to this task; what was said of another one never pays."""
    return tuple(v for v in verdicts if v.task_id == task_id and v.response_id == response_id)


def usage(verdicts: Iterable[Verdict]) -> dict[str, int]:
    """Calls, tokens in and out behind these verdicts; several may come of one call, and verdicts
    from the ledger (cached) cost nothing.
    """
    paid = [v for v in verdicts if (v.tokens_in or v.tokens_out) and not v.cached]
    return {
        "calls": len({c for i, v in enumerate(paid) for c in calls_of(v) or [v.key or i]}),
        "tokens_in": sum(v.tokens_in for v in paid),
        "tokens_out": sum(v.tokens_out for v in paid),
    }


_PLANS: dict[
    int, tuple[tuple[Criterion, ...], Plan]
] = {}  # by identity; the tuple is kept, so that its id stays its own


@dataclass(frozen=True)
class Plan:
    """A rubric laid out for evaluation: children by parent (None = top), leaves in order."""

    criteria: tuple[Criterion, ...]
    children: Mapping[str | None, tuple[Criterion, ...]]
    leaves: tuple[Criterion, ...]
    cache: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, criteria: Sequence[Criterion], *, where: str = "rubric") -> Plan:
        """Lay out a rubric, once for each tuple of criteria; DataError when a parent is missing or
        the tree has a cycle.
        """
        kept = _PLANS.get(id(criteria))
        if kept is not None and kept[0] is criteria:
            return kept[1]
        plan = cls._lay_out(tuple(criteria), where)
        if isinstance(criteria, tuple):
            if len(_PLANS) >= 4096:
                _PLANS.clear()
            _PLANS[id(criteria)] = (criteria, plan)
        return plan

    @classmethod
    def _lay_out(cls, criteria: tuple[Criterion, ...], where: str) -> Plan:
        if not sum(abs(c.weight) for c in criteria) < math.inf:
            raise DataError(
                "the weights have no finite sum",
                where=f"{where}, field weight",
                fix="write weights near 1: only their ratios count",
            )
        if all(c.parent is None for c in criteria):
            return cls(criteria, {None: criteria}, criteria)
        ids = {c.id for c in criteria}
        for c in criteria:
            if c.parent is not None and c.parent not in ids:
                raise DataError(
                    f"the parent {c.parent!r} of criterion {c.id!r} does not exist",
                    where=f"{where}, field parent",
                    fix=f"use one of {sorted(ids)[:8]}",
                )
        children = grouped((c.parent, c) for c in criteria)
        reached = [c.id for c in children.get(None, ())]
        for i in reached:  # it grows: each has one parent, so none comes twice
            reached += [c.id for c in children.get(i, ())]
        if len(reached) != len(criteria):
            raise DataError("the rubric's tree has a cycle", where=f"{where}, field parent")
        return cls(criteria, {k: tuple(v) for k, v in children.items()}, leaves(criteria))

    @cached_property
    def ids(self) -> frozenset[str]:
        """Ids of all criteria."""
        return frozenset(c.id for c in self.criteria)

    @cached_property
    def leaf_ids(self) -> tuple[str, ...]:
        """Ids of the leaves, in order."""
        return tuple(c.id for c in self.leaves)

    @cached_property
    def scored(self) -> bool:
        """False when nothing has a weight."""
        return any(c.weight for c in self._counted(None))

    def _counted(self, parent: str | None) -> list[Criterion]:
        """What stands below a parent (None: at the top), without groups that score nothing."""
        below = self.children.get(parent, ())
        return [
            c
            for c in below
            if c.id not in self.children or any(b.weight for b in self._counted(c.id))
        ]

    def evaluate(
        self, values: Mapping[str, tuple[float, float]], *, how: str, gate_to: float | None = 0.0
    ) -> tuple[float, float, dict[str, float | None]]:
        """Low and high score and the contributions of the top criteria, from an interval (low,
        high) per leaf.
        """
        inner = how if how in ("mean", "flip") else "flip"
        nodes = [(c, *self._value(c, values, inner, gate_to)) for c in self._counted(None)]
        return _combine(nodes, how, gate_to)

    def _value(
        self,
        c: Criterion,
        values: Mapping[str, tuple[float, float]],
        how: str,
        gate_to: float | None,
    ) -> tuple[float, float]:
        if c.id not in self.children:
            return values[c.id]
        nodes = [(b, *self._value(b, values, how, gate_to)) for b in self._counted(c.id)]
        return _combine(nodes, how, gate_to)[:2]

    def range(self, *, how: str, gate_to: float | None = 0.0) -> tuple[float, float]:
        """The lowest and highest score that any verdicts can give."""
        key = ("range", how, gate_to)
        if key not in self.cache:
            self.cache[key] = self.evaluate(
                dict.fromkeys(self.leaf_ids, (0.0, 1.0)), how=how, gate_to=gate_to
            )[:2]
        return self.cache[key]


def _term(weight: float, how: str, low: float, high: float) -> tuple[float, float]:
    """What a criterion adds at both ends of its value."""
    w = float(weight > 0) - float(weight < 0) if how == "mean" else float(weight)
    offset = -w if w < 0 and how in ("mean", "flip") else 0.0
    return w * low + offset, w * high + offset


def _denominator(weights: Sequence[float], how: str) -> float:
    if how == "mean":
        return float(sum(w != 0 for w in weights))
    if how == "positive_normalised":
        return max(math.fsum(w for w in weights if w > 0), 1.0)
    positive = math.fsum(w for w in weights if w > 0)
    return positive if how == "net" and positive else math.fsum(abs(w) for w in weights)


def _combine(
    nodes: Sequence[tuple[Criterion, float, float]], how: str, gate_to: float | None
) -> tuple[float, float, dict[str, float | None]]:
    """Low, high and the contribution of each node, None where it is not known."""
    scale = _denominator([c.weight for c, _, _ in nodes], how)
    if not scale:
        return 0.0, 0.0, {}
    terms = [(c.id, *_term(c.weight, how, lo, hi)) for c, lo, hi in nodes]
    parts = {i: a / scale if a == b else None for i, a, b in terms}
    low = math.fsum([min(a, b) for _, a, b in terms]) / scale
    high = math.fsum([max(a, b) for _, a, b in terms]) / scale
    if how == "signed":
        low, high = max(low, 0.0), max(high, 0.0)
    required = [n for n in nodes if n[0].required] if gate_to is not None else ()
    if not all(_passes(c, lo if c.weight >= 0 else hi) for c, lo, hi in required):
        low = min(low, gate_to)
    if not all(_passes(c, hi if c.weight >= 0 else lo) for c, lo, hi in required):
        high = min(high, gate_to)
    return low, high, parts


def _passes(c: Criterion, value: float) -> bool:
    at = c.meta.get("pass_at", PASS_AT)
    return value >= at if c.weight >= 0 else value < at


def _interval(v: Verdict | None, use: str) -> tuple[float, float]:
    if v is None or v.status == "unknown":
        return 0.0, 1.0
    x = v.p if use == "p" and v.p is not None else v.value
    return float(x), float(x)  # type: ignore[arg-type]


def _check(how: str, use: str) -> None:
    for name, value, allowed in (("how", how, HOWS), ("use", use, ("value", "p"))):
        known_names([value], allowed, where=f"parameter {name}", what=name)
