"""Does a higher score mean more often right? AUROC with a clustered interval, and the paired change
of two scores, O(n log n).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import DataError
from .clusters import floats, known, of_influence, worth
from .columns import takes_table
from .estimate import Estimate, unknown


def _outcome(correct: Sequence[Any]) -> np.ndarray:
    y = floats(correct, name="correct")
    bad = np.flatnonzero(~(np.isnan(y) | (y == 0) | (y == 1)))
    if len(bad):
        raise DataError(
            f"{y[bad[0]]:g} is not right (1) or wrong (0)", where=f"correct, row {int(bad[0])}"
        )
    return y


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


def _by_cluster(psi: np.ndarray, group: np.ndarray, c: int) -> np.ndarray:
    return math.sqrt(c / max(c - 1, 1)) * np.bincount(group, psi, c)


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
    columns = {"score": score, "correct": _outcome(correct)}
    (s, y), group, c, missing = known(columns, cluster)
    if _one_kind(y):
        return unknown(
            len(s),
            method="AUROC",
            note="rows that are right and rows that are wrong are needed",
            missing=missing,
            level=level,
        )
    value, psi = _area(s, y)
    words = "AUROC, clustered DeLong, t on the logit"
    more = {"n": len(s), "n_clusters": c, "missing": missing, "level": level, "what": OUTCOME}
    more |= {"method": words, "bounds": (0.0, 1.0)}
    return of_influence(value, _by_cluster(psi, group, c), _rarer(y, group, c), **more)


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
    columns = {"new": new, "old": old, "correct": _outcome(correct), "before": _outcome(before)}
    (a, b, y, z), group, c, missing = known(columns, cluster)
    if c < 2 or _one_kind(y) or _one_kind(z):
        return unknown(
            len(y),
            method="change in AUROC",
            note="rows that are right and rows that are wrong, in two clusters or more, are needed",
            missing=missing,
        )
    (one, psi), (two, phi) = _area(a, y), _area(b, z)
    rarer = min(_rarer(v, group, c) for v in (y, z))
    words = "change in AUROC, clustered DeLong, paired"
    more = {"n": len(y), "n_clusters": c, "missing": missing, "level": level}
    by = _by_cluster(psi - phi, group, c)
    return of_influence(one - two, by, rarer, method=words, what=OUTCOME, **more)
