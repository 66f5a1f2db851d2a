"""Agreement of any number of raters, with missing ratings: Krippendorff's alpha."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import DataError
from .agreement import numbered
from .clusters import codes, estimate, same_length, sums
from .columns import grid
from .estimate import Estimate


def counts(
    ratings: Sequence[Sequence[Any]], categories: Sequence[Any] | None = None
) -> tuple[np.ndarray, tuple[Any, ...], int, str]:
    """How many raters gave each category: (items, q), the categories, how many ratings are
    missing, and how vocabularies were brought together.

    ratings : (items, raters), None / NaN = not rated; or a table with a column a rater.

    >>> counts([[1, 1, None], [0, 1, 1]])[0].tolist()
    [[0.0, 2.0], [1.0, 2.0]]
    """
    at, cats, said = rated(ratings, categories)
    votes = np.array([(at == k).sum(1) for k in range(len(cats))], float)
    return votes.reshape(len(cats), len(at)).T, cats, int((at < 0).sum()), said


def rated(
    ratings: Sequence[Sequence[Any]], categories: Sequence[Any] | None = None
) -> tuple[np.ndarray, tuple[Any, ...], str]:
    """Ratings as category numbers (items, raters), -1 where missing; the categories, and how the
    raters' vocabularies were brought together. DataError where there are none.
    """
    rows = grid(ratings)
    width = {len(r) for r in rows}
    if len(width) > 1:
        raise DataError(
            "items have different numbers of raters",
            where="ratings",
            fix="give one column per rater, None where not rated",
        )
    if width <= {0}:
        raise DataError(
            "there are no ratings",
            where="ratings",
            fix="give (items, raters): a row an item, None where not rated",
        )
    columns = {f"rater {k + 1}": c for k, c in enumerate(zip(*rows, strict=True))}
    return numbered(columns, categories)


def _distance(metric: str, cats: Sequence[Any]) -> np.ndarray:
    if metric == "nominal":
        return 1 - np.eye(len(cats))
    at = np.array(cats, float)
    gap = at[:, None] - at[None, :]
    if metric == "interval":
        return gap**2
    if (at < 0).any():
        raise DataError(
            "the ratio metric needs values >= 0", where="ratings", fix='use metric="interval"'
        )
    total = at[:, None] + at[None, :]
    return (gap / np.where(total == 0, 1, total)) ** 2


def _fixed_columns(
    r: np.ndarray, d: np.ndarray
) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    inside = (r * (r @ d)).sum(1) / (r.sum(1) - 1)

    def stat(t: np.ndarray) -> np.ndarray:
        k = t[..., 1:]
        n = k.sum(-1)
        expected = np.einsum("...i,ij,...j->...", k, d, k)
        return 1 - (n - 1) * t[..., 0] / np.where(np.abs(expected) < 1e-300, np.nan, expected)

    return np.column_stack([inside, r]), stat


def _ordinal_columns(r: np.ndarray) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    q = r.shape[1]
    if q > 64:
        raise DataError(
            f"{q} ordinal categories", where="ratings", fix='use metric="interval", or fewer levels'
        )
    both = (r[:, :, None] * r[:, None, :] - r[:, :, None] * np.eye(q)) / (r.sum(1) - 1)[
        :, None, None
    ]

    def stat(t: np.ndarray) -> np.ndarray:
        o, k = t[..., : q * q].reshape(*t.shape[:-1], q, q), t[..., q * q :]
        middle = np.cumsum(k, axis=-1) - k / 2  # rank of the middle of each category
        d = (middle[..., :, None] - middle[..., None, :]) ** 2
        expected = np.einsum("...i,...ij,...j->...", k, d, k)
        return 1 - (k.sum(-1) - 1) * (o * d).sum(axis=(-1, -2)) / np.where(
            np.abs(expected) < 1e-300, np.nan, expected
        )

    return np.column_stack([both.reshape(len(r), q * q), r]), stat


def alpha(
    ratings: Sequence[Sequence[Any]],
    *,
    metric: str = "nominal",
    cluster: Sequence[Any] | None = None,
    categories: Sequence[Any] | None = None,
    level: float = 0.95,
    se: str = "jackknife",
) -> Estimate:
    """Krippendorff's alpha, 1 - Do / De, for (items, raters) with missing ratings.

    metric : "nominal", "ordinal", "interval" or "ratio". Items with fewer than two ratings do not
        count; n is the items that do. `missing` counts ratings. Ordinal levels that are text need
        `categories` in order. Source: Krippendorff 2011, "Computing alpha".

    >>> round(alpha([[1, 1], [2, 2], [3, 3], [1, 3]]).value, 4)
    0.6667
    """
    if metric not in ("nominal", "ordinal", "interval", "ratio"):
        raise DataError(
            f"metric is {metric!r}", where="metric", fix="nominal, ordinal, interval or ratio"
        )
    r, cats, missing, said = counts(ratings, categories)
    group, _ = codes(cluster, same_length(ratings=r, cluster=cluster))
    if metric != "nominal" and categories is None and any(isinstance(c, str) for c in cats):
        raise DataError(
            f"{metric} alpha of text",
            where="ratings",
            fix="give numbers, or categories=[worst, ..., best] for ordinal",
        )
    use = r.sum(1) > 1
    several, n = r[use], int(use.sum())
    alike = np.eye(len(cats)) * (several.sum() / max(n, 1))  # an item of each category
    both = np.vstack([several, alike])
    columns, stat = (
        _ordinal_columns(both)
        if metric == "ordinal"
        else _fixed_columns(both, _distance(metric, cats))
    )
    inverse, c = codes(group[use], n)
    return estimate(
        stat,
        sums(columns[:n], inverse, c),
        n=int(use.sum()),
        method=f"Krippendorff's alpha ({metric})",
        missing=missing,
        level=level,
        se=se,
        bounds=(-1.0, 1.0),
        note=said,
        size=np.bincount(inverse, minlength=c),
        kinds=columns[n:],
    )
