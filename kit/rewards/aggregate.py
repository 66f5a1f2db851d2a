"""From the verdicts on one answer to one score, or to an interval where verdicts are unknown.

Each form is monotone in each verdict. So the ends of the interval are found by setting every
unknown verdict to its worst and to its best value, and an unknown verdict can never pay.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from ..errors import DataError
from ..records import Criterion, Part, Verdict, by_criterion, group

How = Literal["mean", "flip", "net", "signed", "open_instruct"]
Interval = tuple[float, float]
MAX_WIDTH = 0.1
PASS_AT = 0.5  # a required criterion is passed from this value on


def pay(low: float, high: float, max_width: float = MAX_WIDTH) -> float | None:
    """What an interval earns: its low end where it is at most `max_width` wide, else None.

    >>> pay(0.5, 0.55), pay(0.5, 0.9)
    (0.5, None)
    """
    # A width of exactly max_width pays, whatever the rounding.
    return low if high - low <= max_width + 1e-12 else None


def aggregate(
    criteria: Sequence[Criterion],
    verdicts: Iterable[Verdict],
    *,
    how: How = "net",
    use: Literal["value", "p"] = "value",
    gate_to: float | None = 0.0,
    name: str = "rubric",
) -> Part:
    """The score of one answer from the verdicts on its criteria; v in [0, 1], w the signed weight.

    how : "mean" : share of favourable criteria, v or 1 - v where w < 0, unweighted; [0, 1].
        "flip" : sum |w| (v or 1 - v) / sum |w|; [0, 1]. Silence earns the negative share.
        "net" : sum w v / sum of positive w; a perfect answer earns 1, silence 0, a fault less.
        "signed" : sum w v / sum |w|; in [-1, 1].
        "open_instruct" : sum w v / max(sum of positive w, 1).
    use : "p" takes P(met) where the judge gave one.
    gate_to : an answer that fails a `required` criterion earns at most this; None : no gates.
    In a tree, a parent's value is the "mean" or "flip" of its children. Weight 0 : not scored.

    >>> criteria = [Criterion(id="a", text="good"), Criterion(id="b", text="bad", weight=-1)]
    >>> verdict = Verdict(task_id="t", response_id="r", criterion_id="a", status="met")
    >>> part = aggregate(criteria, [verdict])
    >>> part.low, part.high
    (0.0, 1.0)
    """
    tree = _tree(criteria)
    values = {i: _interval(v, use) for i, v in by_criterion(verdicts).items()}
    rubric = Rubric(tree, how, gate_to)
    # Without a weight there is nothing to score: not 0, and not 1.
    if not any(c.weight for c in tree.get(None, ())):
        return Part(name=name, applies=False)
    low, high = rubric.score(values, None)
    top: dict[str, float | None] = {}
    for c in tree[None]:
        worst, best = rubric.value(c, values)
        top[c.id] = worst if worst == best else None
    # Every verdict unknown: the ends are those of all answers.
    span = rubric.score({}, None)
    return Part(
        name=name, low=low, high=high, range=span, details={"criteria": top}
    )


def _interval(verdict: Verdict, use: str) -> Interval:
    x = verdict.value
    # A judge that answers "unknown" may still send a P(met): it pays nothing.
    if use == "p" and verdict.is_known and verdict.p is not None:
        x = verdict.p
    return (0.0, 1.0) if x is None else (x, x)


def _tree(
    criteria: Sequence[Criterion],
) -> Mapping[str | None, Sequence[Criterion]]:
    """Children by parent; None holds the top."""
    total = sum(abs(c.weight) for c in criteria)
    if not total < math.inf:
        raise DataError(
            "the weights have no finite sum",
            fix="only their ratios count: make them small",
        )
    tree = group((c.parent, c) for c in criteria)
    order = [c.id for c in tree.get(None, ())]
    for i in order:  # the list grows while it is read
        order += [c.id for c in tree.get(i, ())]
    if len(order) != len(criteria):
        # A parent that is missing, or a circle: their criteria would silently count nothing.
        orphans = sorted({c.id for c in criteria} - set(order))
        raise DataError(
            f"no criterion at the top is above {orphans}",
            fix="correct the field parent",
        )
    return tree


class Rubric:
    """A tree of criteria under one form of score."""

    def __init__(
        self,
        tree: Mapping[str | None, Sequence[Criterion]],
        how: How,
        gate_to: float | None,
    ):
        self.tree = tree
        self.how = how
        self.gate_to = gate_to

    def value(self, c: Criterion, values: Mapping[str, Interval]) -> Interval:
        """The value of a criterion: its verdict, or the score of what stands below it."""
        if c.id in self.tree:
            return self.score(values, c.id)
        return values.get(c.id, (0.0, 1.0))

    def score(self, values: Mapping[str, Interval], parent: str | None) -> Interval:
        """Low and high score of the criteria below `parent`."""
        below = self.tree[parent]
        ends = [self.value(c, values) for c in below]
        # Inside a tree a value must stay in [0, 1].
        how = self.how if parent is None or self.how == "mean" else "flip"
        weights = [c.weight for c in below]
        if how == "mean":
            weights = [math.copysign(bool(w), w) for w in weights]
        low = high = 0.0
        # "mean" and "flip" count a fault that is absent, the others a fault that is there.
        if how in ("mean", "flip"):
            low = high = -sum(min(w, 0.0) for w in weights)
        for w, (worst, best) in zip(weights, ends, strict=True):
            # A fault that may be there lowers the low end.
            low += w * (worst if w > 0 else best)
            high += w * (best if w > 0 else worst)
        scale = _scale(weights, how)
        low, high = (low / scale, high / scale) if scale else (1.0, 1.0)
        if self.gate_to is None:
            return low, high
        for c, (worst, best) in zip(below, ends, strict=True):
            if c.required:
                # A gate only lowers an end, and the low one first: so unknown never pays.
                low = low if _passes(c, worst, best) else min(low, self.gate_to)
                high = high if _passes(c, best, worst) else min(high, self.gate_to)
        return low, high


def _passes(c: Criterion, value: float, other_end: float) -> bool:
    # A fault must be absent, so for it the other end of the interval counts.
    return value >= PASS_AT if c.weight >= 0 else other_end < PASS_AT


def _scale(weights: Sequence[float], how: str) -> float:
    positive = sum(w for w in weights if w > 0)
    # open-instruct never divides by less than 1, so small weights stay small rewards.
    if how == "open_instruct":
        return max(positive, 1.0)
    # A rubric of faults alone has no positive weight to divide by.
    if how == "net" and positive:
        return positive
    return sum(abs(w) for w in weights)
