"""Does a higher score mean more often right? AUROC with a clustered interval, and the paired change
of two scores, O(n log n).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import DataError
from .clusters import LEAST, codes, effective_df, floats, limits, same_length, too_few, worth
from .columns import takes_table
from .estimate import Estimate, unknown


def _read(score: Sequence[Any], correct: Sequence[Any], name: str) -> tuple[np.ndarray, np.ndarray]:
    s, y = floats(score, name=name), floats(correct, name="correct")
    bad = np.flatnonzero(~(np.isnan(y) | (y == 0) | (y == 1)))
    if len(bad):
        raise DataError(
            f"{y[bad[0]]:g} is not right (1) or wrong (0)", where=f"correct, row {int(bad[0])}"
        )
    return s, y


def _area(s: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray]:
    """The area, and the influence (n,) of every row on it (DeLong's structural components,
    centred).
    """
    order = np.argsort(s, kind="stable")
    sorted_s, hit = s[order], y[order]
    first = np.flatnonzero(np.r_[True, sorted_s[1:] != sorted_s[:-1]])
    rows = np.diff(np.r_[first, len(s)])
    hits = np.add.reduceat(hit, first)
    right, wrong = float(hits.sum()), float(len(s) - hits.sum())
    wrong_below = np.cumsum(rows - hits) - (rows - hits) / 2
    right_above = right - np.cumsum(hits) + hits / 2
    area = float(hits @ wrong_below) / (right * wrong)
    place = np.where(
        hit == 1,
        (np.repeat(wrong_below / wrong, rows) - area) / right,
        (np.repeat(right_above / right, rows) - area) / wrong,
    )
    out = np.empty(len(s))
    out[order] = place
    return area, out


def _one_kind(y: np.ndarray) -> bool:
    """No rows, or all right, or all wrong."""
    return bool((y == y[:1]).all())


OUTCOME = "rows of the rarer outcome"


def _rarer(y: np.ndarray, group: np.ndarray, c: int) -> float:
    """How many clusters the rows of the rarer outcome are worth."""
    return worth(np.stack([np.bincount(group[y == v], minlength=c) for v in (0, 1)]))


def _spread(psi: np.ndarray, group: np.ndarray, c: int) -> tuple[float, float]:
    by = math.sqrt(c / max(c - 1, 1)) * np.bincount(group, psi, c)
    return math.sqrt(float((by**2).sum())), effective_df(by)


@takes_table("score", "correct", "cluster")
def auroc(
    score: Sequence[Any],
    correct: Sequence[Any],
    *,
    cluster: Sequence[Any] | None = None,
    level: float = 0.95,
) -> Estimate:
    """P(a right row scores higher than a wrong one), ties half: .5 tells nothing apart, 1
    everything.

    score : (n,) numbers; correct : (n,) 1 / 0; unknown rows are left out and counted. Interval:
        DeLong's components summed by cluster (DeLong et al. 1988; Obuchowski 1997), Student's t on
        the logit. Unknown when all rows are right, or all wrong; no interval where the rarer
        outcome lies in one cluster.

    >>> auroc([0.9, 0.8, 0.7, 0.6], [1, 1, 0, 1]).text()
    '.667 [no interval], n=4'
    """
    n = same_length(score=score, correct=correct, cluster=cluster)
    (s, y), (group, _) = _read(score, correct, "score"), codes(cluster, n)
    keep = ~(np.isnan(s) | np.isnan(y))
    s, y, missing = s[keep], y[keep], int((~keep).sum())
    group, c = codes(group[keep], int(keep.sum()))
    if _one_kind(y):
        note = "rows that are right and rows that are wrong are needed"
        return unknown(len(s), method="AUROC", note=note, missing=missing, level=level)
    value, psi = _area(s, y)
    se, df = _spread(psi, group, c)
    rarer = _rarer(y, group, c)
    low, high, note = math.nan, math.nan, too_few(rarer, OUTCOME)
    if rarer >= LEAST:
        df, note = min(df, max(rarer - 1, 1.0)), ""
        low, high = limits(value, se, df, rarer, bounds=(0.0, 1.0), level=level)
    words = "AUROC, clustered DeLong, t on the logit"
    return Estimate(value, low, high, len(s), c, words, note, missing, level, se)


@takes_table("new", "old", "correct", "correct_old", "cluster")
def auroc_change(
    new: Sequence[Any],
    old: Sequence[Any],
    correct: Sequence[Any],
    *,
    correct_old: Sequence[Any] | None = None,
    cluster: Sequence[Any] | None = None,
    level: float = 0.95,
) -> Estimate:
    """AUROC of `new` minus that of `old` on the same rows, paired by row or by cluster.

    correct_old : where the answers differ too, what was right before. Rows with anything unknown
        are left out and counted.

    >>> auroc_change([0.9, 0.2, 0.8, 0.1], [0.5, 0.5, 0.5, 0.5], [1, 0, 1, 0]).value
    0.5
    """
    before = correct if correct_old is None else correct_old
    n = same_length(new=new, old=old, correct=correct, correct_old=before, cluster=cluster)
    (a, y), (b, z) = _read(new, correct, "new"), _read(old, before, "old")
    keep = ~(np.isnan(a) | np.isnan(b) | np.isnan(y) | np.isnan(z))
    missing = int((~keep).sum())
    group, c = codes(codes(cluster, n)[0][keep], int(keep.sum()))
    if c < 2 or _one_kind(y[keep]) or _one_kind(z[keep]):
        note = "rows that are right and rows that are wrong, in two clusters or more, are needed"
        return unknown(int(keep.sum()), method="change in AUROC", note=note, missing=missing)
    (one, psi), (two, phi) = _area(a[keep], y[keep]), _area(b[keep], z[keep])
    se, df = _spread(psi - phi, group, c)
    rarer = min(_rarer(v[keep], group, c) for v in (y, z))
    low, high, note = math.nan, math.nan, too_few(rarer, OUTCOME)
    if rarer >= LEAST:
        df, note = min(df, max(rarer - 1, 1.0)), ""
        low, high = limits(one - two, se, df, rarer, level=level)
    words, rows = "change in AUROC, clustered DeLong, paired", int(keep.sum())
    return Estimate(one - two, low, high, rows, c, words, note, missing, level, se)
