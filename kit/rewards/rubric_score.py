"""From the verdicts on one answer to one score, or to an interval where verdicts are unknown.

Each form and each gate is monotone in each verdict. So the ends of the interval are found by setting
every unknown verdict to its worst and to its best value, and an unknown verdict can never pay.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from ..errors import DataError
from ..records import ComponentScore, Criterion, Verdict, by_criterion, group

ScoreForm = Literal["mean", "flip", "net", "signed", "open_instruct"]
CriterionValues = dict[str, float]
MAX_WIDTH = 0.1
# A required criterion is passed from this value on.
PASS_THRESHOLD = 0.5


def paid_score(
    worst: float, best: float, max_width: float = MAX_WIDTH
) -> float | None:
    """What an interval earns: its worst end where it is at most `max_width` wide, else None.

    >>> paid_score(0.5, 0.55), paid_score(0.5, 0.9)
    (0.5, None)
    """
    # A width of exactly max_width pays, whatever the rounding.
    return worst if abs(best - worst) <= max_width + 1e-12 else None


def score_rubric(
    criteria: Sequence[Criterion],
    verdicts: Iterable[Verdict],
    *,
    how: ScoreForm = "net",
    use: Literal["value", "p"] = "value",
    gate_to: float | None = 0.0,
    name: str = "rubric",
) -> ComponentScore:
    """The score of one answer from the verdicts on its criteria; v in [0, 1], w the signed weight.

    how : "mean" : share of favourable criteria, v or 1 - v where w < 0, unweighted; [0, 1].
        "flip" : sum |w| (v or 1 - v) / sum |w|; [0, 1]. Silence earns the negative share.
        "net" : sum w v / sum of positive w; a perfect answer earns 1, silence 0, a fault less.
        "signed" : sum w v / sum |w|; in [-1, 1].
        "open_instruct" : sum w v / max(sum of positive w, 1).
    use : "p" takes P(met) where the judge gave one.
    gate_to : an answer that fails a `required` criterion, anywhere in a tree, earns at most this;
        None : no gates. What counts against the answer is failed where it is there (v >= .5), what
        counts for it where it is not. Below a parent of negative weight the two change places.
    In a tree, a parent's value is the "mean" or "flip" of its children. Weight 0 : not scored, and so
    is a parent whose children are not.

    >>> criteria = [Criterion(id="a", text="good"), Criterion(id="b", text="bad", weight=-1)]
    >>> verdict = Verdict(task_id="t", response_id="r", criterion_id="a", status="met")
    >>> score = score_rubric(criteria, [verdict])
    >>> score.low, score.high
    (0.0, 1.0)
    """
    tree = CriteriaTree(criteria, how, gate_to)
    worst, best = worst_and_best(tree.is_good, verdicts, use)
    low, high = tree.score(worst), tree.score(best)
    # Every verdict unknown: the ends are those of all answers.
    lowest, highest = map(tree.score, worst_and_best(tree.is_good, ()))
    # Without a weight there is nothing to score: not 0, and not 1.
    if lowest is None or highest is None or low is None or high is None:
        return ComponentScore(name=name, applies=False)
    return ComponentScore(
        name=name,
        low=low,
        high=high,
        range=(lowest, highest),
        details={
            "criteria": {
                i: x if x == best[i] else None
                for i, x in worst.items()
                if i not in tree.children
            }
        },
    )


def worst_and_best(
    is_good: Mapping[str, bool],
    verdicts: Iterable[Verdict],
    use: Literal["value", "p"] = "value",
) -> tuple[CriterionValues, CriterionValues]:
    """The values of criteria, unknown ones at their worst and at their best for the score.

    is_good : id -> False for what counts against the answer: it is at its worst where it is there.
    """
    worst = {i: 1.0 - x for i, x in is_good.items()}
    best = {i: float(x) for i, x in is_good.items()}
    for i, v in by_criterion(verdicts).items():
        # A judge that answers "unknown" may still send a P(met): it pays nothing.
        if i in is_good and v.value is not None:
            worst[i] = best[i] = v.p if use == "p" and v.p is not None else v.value
    return worst, best


class CriterionTerm(NamedTuple):
    """One criterion in the sum of a rubric: its weight, its value in [0, 1], what it adds."""

    id: str
    weight: float
    value: float
    contribution: float


class CriteriaTree:
    """A tree of criteria under one form of score.

    children : by parent; None holds the top. is_good : id -> True for what counts for the answer.
    """

    def __init__(
        self, criteria: Sequence[Criterion], how: ScoreForm, gate_to: float | None
    ):
        self.how = how
        self.gate_to = math.inf if gate_to is None else gate_to
        self.children = group((c.parent, c) for c in criteria)
        self.is_good: dict[str, bool] = {}
        self.order = list(self.children.get(None, ()))
        # The list grows while it is read: each criterion brings its children.
        for c in self.order:
            # A fault of a fault counts for the answer.
            self.is_good[c.id] = self.is_good.get(c.parent, True) == (c.weight >= 0)
            self.order += self.children.get(c.id, ())
        if len(self.order) != len(criteria):
            # A parent that is missing, or a circle: their criteria would silently count nothing.
            orphans = {c.id for c in criteria} - self.is_good.keys()
            raise DataError(
                f"no criterion at the top is above {sorted(orphans)}",
                fix="correct the field parent",
            )

    def value_of(self, name: str | None, values: CriterionValues) -> float | None:
        """The value of a leaf; of a parent, or of None (the top), the score of its children.

        None where none of them has a weight.
        """
        if name not in self.children:
            return values.get(str(name))
        terms, divisor = self.terms_and_divisor(name, values)
        return sum(t.contribution for t in terms) / divisor if terms else None

    def score(self, values: CriterionValues) -> float | None:
        """The score by the values of the leaves; None where nothing has a weight."""
        score = self.value_of(None, values)
        for c in self.order:
            x = self.value_of(c.id, values) if c.required else None
            # None: nothing below it has a weight, so there is nothing to fail.
            is_failed = (
                x is not None and (x >= PASS_THRESHOLD) != self.is_good[c.id]
            )
            if score is not None and is_failed:
                score = min(score, self.gate_to)
        return score

    def terms_and_divisor(
        self, parent: str | None, values: CriterionValues
    ) -> tuple[list[CriterionTerm], float]:
        """What each scored criterion below `parent` adds, and what their sum is divided by (never 0)."""
        how = self.how
        # Inside a tree a value must stay in [0, 1].
        if parent is not None and how != "mean":
            how = "flip"
        terms = []
        for c in self.children.get(parent, ()):
            value, weight = self.value_of(c.id, values), c.weight
            if value is None or not weight:
                continue
            if how == "mean":
                weight = math.copysign(1, weight)
            contribution = weight * value
            # A fault that is absent earns its weight; in the other forms one that is there costs it.
            if how in ("mean", "flip") and weight < 0:
                contribution -= weight
            terms.append(CriterionTerm(c.id, weight, value, contribution))
        divisor = sum(abs(t.weight) for t in terms)
        positive = sum(max(t.weight, 0.0) for t in terms)
        # open-instruct never divides by less than 1, so small weights stay small rewards.
        if how == "open_instruct":
            divisor = max(positive, 1.0)
        # A rubric of faults alone has no positive weight to divide by.
        elif how == "net" and positive:
            divisor = positive
        return terms, divisor
