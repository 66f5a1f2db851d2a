"""Figures over groups of answers and over verdicts: mixed / all good / all bad, macro and micro
pass rates.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from ..records import Verdict

GOOD_AT = 0.5


@dataclass(frozen=True, kw_only=True)
class GroupShares:
    """Shares of groups (answers to one task) by what they can teach.

    mixed : scores differ. all_good, all_bad : one score for all, at least / below `good_at`.
    excluded : fewer than two known scores. The first three sum to 1 over the groups that are not
    excluded; zero_advantage = all_good + all_bad.
    """

    groups: int
    excluded: int
    mixed: float
    all_good: float
    all_bad: float

    @property
    def zero_advantage(self) -> float:
        """Share of groups whose advantages are all 0."""
        return self.all_good + self.all_bad


def group_shares(
    scores: Iterable[tuple[str, float | None]], *, good_at: float = GOOD_AT, tolerance: float = 1e-9
) -> GroupShares:
    """Shares of mixed, all-good and all-bad groups from (task id, score or None) pairs; NaN where
    every group is excluded.

    >>> group_shares([("a", 1.0), ("a", 0.0), ("b", 1.0), ("b", 1.0), ("c", None), ("c", 1.0)])
    GroupShares(groups=3, excluded=1, mixed=0.5, all_good=0.5, all_bad=0.0)
    """
    groups: dict[str, list[float]] = {}
    for task_id, score in scores:
        groups.setdefault(task_id, [])
        if score is not None and not math.isnan(score):
            groups[task_id].append(score)
    used = [g for g in groups.values() if len(g) > 1]
    n = len(used) or math.nan
    mixed = sum(max(g) - min(g) > tolerance for g in used)
    good = sum(max(g) - min(g) <= tolerance and g[0] >= good_at for g in used)
    return GroupShares(
        groups=len(groups),
        excluded=len(groups) - len(used),
        mixed=mixed / n,
        all_good=good / n,
        all_bad=(len(used) - mixed - good) / n,
    )


@dataclass(frozen=True, kw_only=True)
class PassRates:
    """Met verdicts as shares. macro_over_responses: mean over responses of each one's share;
    micro_over_criteria: share of all known verdicts.

    The two differ when rubrics differ in length; neither is "the" pass rate. unknown: verdicts left
    out.
    """

    macro_over_responses: float
    micro_over_criteria: float
    responses: int
    verdicts: int
    unknown: int


def pass_rates(verdicts: Iterable[Verdict]) -> PassRates:
    """Macro and micro share of met verdicts (levels count with their value); NaN without a known
    verdict.
    """
    by_response: dict[tuple[str, str], list[float]] = {}
    n_unknown = 0
    for v in verdicts:
        if v.value is None:
            n_unknown += 1
        else:
            by_response.setdefault((v.task_id, v.response_id), []).append(v.value)
    every = [x for xs in by_response.values() for x in xs]
    macro = (
        math.fsum(math.fsum(xs) / len(xs) for xs in by_response.values()) / len(by_response)
        if by_response
        else math.nan
    )
    return PassRates(
        macro_over_responses=macro,
        micro_over_criteria=math.fsum(every) / len(every) if every else math.nan,
        responses=len(by_response),
        verdicts=len(every),
        unknown=n_unknown,
    )
