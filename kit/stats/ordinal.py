"""Ordered levels: the ranked probability score of a judge that gives a distribution over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import DataError
from .clusters import floats, same_length, unmasked
from .estimate import Estimate
from .rates import mean


def distributions(probs: Any) -> np.ndarray:
    """Rows of probabilities as floats (n, k), k >= 2, NaN rows left; DataError names a row that is
    no distribution.

    >>> distributions([[0.2, 0.8]]).shape
    (1, 2)
    """
    try:
        array = np.asarray(unmasked(probs))
        p = array.astype(float) if array.dtype.kind in "biufO" else None
    except (TypeError, ValueError):
        p = None
    if p is None or p.ndim != 2 or p.shape[1] < 2:
        got = "no grid of numbers" if p is None else f"of shape {p.shape}"
        raise DataError(f"probs is {got}", where="probs", fix="give (n, k): a number per class")
    known = ~np.isnan(p).any(1)
    with np.errstate(invalid="ignore"):
        fine = ((p >= 0) & (p <= 1 + 1e-6)).all(1) & (np.abs(p.sum(1) - 1) <= 1e-3)
    bad = np.flatnonzero(known & ~fine)
    if len(bad):
        raise DataError(
            f"the probabilities sum to {p[bad[0]].sum():g} or leave [0, 1]",
            where=f"probs, row {bad[0]}",
            fix="pass probabilities, not logits",
        )
    return p


def ranked_scores(probs: Any, level: Sequence[Any]) -> np.ndarray:
    """Ranked probability score of every row (n,), in [0, 1]: 0 where the right level had all the
    weight, worse the farther off.

    probs : (n, k), rows that sum to 1 within 1e-3, levels in order; level : (n,) numbers 0..k-1.
        NaN rows stay NaN. sum over levels of (cumulative probability - cumulative truth)^2, over k
        - 1 (Epstein 1969; Murphy 1971).

    >>> ranked_scores([[1, 0, 0], [0, 1, 0], [0, 0, 1]], [0, 0, 0]).tolist()
    [0.0, 0.5, 1.0]
    """
    p, y = distributions(probs), floats(level, name="level")
    same_length(probs=p, level=y)
    known = ~(np.isnan(y) | np.isnan(p).any(1))
    wrong = np.flatnonzero(known & ~np.isin(y, np.arange(p.shape[1])))
    if len(wrong):
        raise DataError(
            f"{y[wrong[0]]:g} is no level below {p.shape[1]}", where=f"level, row {int(wrong[0])}"
        )
    truth = np.arange(p.shape[1]) >= np.where(known, y, 0)[:, None]
    score = ((np.cumsum(p, 1) - truth) ** 2)[:, :-1].sum(1) / (p.shape[1] - 1)
    return np.where(known, score, np.nan)


def rps(
    probs: Any,
    level: Sequence[Any],
    *,
    cluster: Sequence[Any] | None = None,
    confidence: float = 0.95,
) -> Estimate:
    """Mean ranked probability score with a clustered interval; with two levels it is the Brier
    score.

    >>> round(rps([[0.2, 0.8], [0.5, 0.5]], [1, 0]).value, 3)
    0.145
    """
    return mean(ranked_scores(probs, level), cluster=cluster, level=confidence, bounds=(0.0, 1.0))
