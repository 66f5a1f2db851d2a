"""Resampling on sufficient statistics: cost depends on cells and resamples, not on rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..stats.arguments import generator
from ..stats.shares import correlation
from .cells import Cells

BLOCK = 8_000_000  # numbers held at once
POOL = 2000  # groups that many clusters are resampled in


def pooled(units, rng: np.random.Generator):  # type: ignore[no-untyped-def]
    """The clusters' sums, at random in POOL groups of clusters where there are more: the sum of
    groups has the same variance.

    With 2,000 groups that variance is known to 3 %, far below what the interval's own noise is.
    """
    c = units.shape[0]
    if c <= 2 * POOL:
        return units
    from scipy import sparse

    group = rng.permutation(c) % POOL
    fold = sparse.csr_matrix((np.ones(c), (group, np.arange(c))), shape=(POOL, c))
    return (fold @ units).toarray()


def null_gaps(cells: Cells, n_boot: int, seed: int | np.random.Generator = 0) -> np.ndarray:
    """Sums of (outcome - confidence) per cell if the confidences were calibrated: (n_boot, m).

    Rows independent: outcomes drawn anew from the confidences (consistency resampling, Broecker &
    Smith 2007). Clusters: each cluster's centred residuals keep their size and get a common random
    sign (wild bootstrap), so what hangs together within a cluster stays together.
    """
    rng = generator(seed)
    if cells.units is None:
        n = cells.n.sum(1)
        # a draw changes at (n + 1) p whole: .1 must be .1, in whatever order the rows were summed
        p = np.round(np.clip(cells.s.sum(1) / n, 0.0, 1.0), 12)
        whole = np.round(n)
        if np.abs(n - whole).max() > 1e-9 or n.min() > 2000:
            # many rows or fractional weights: the normal limit
            return rng.standard_normal((n_boot, len(n))) * np.sqrt(n * p * (1 - p))
        return rng.binomial(whole.astype(np.int64), p, (n_boot, len(n))) - n * p
    gaps = pooled(cells.units, rng) @ cells.to_bins(cells.residual, np.arange(len(cells.bin)))
    out = np.empty((n_boot, len(cells.bin)))
    units = gaps.shape[0]
    step = max(1, BLOCK // max(units, 1))
    for i in range(0, n_boot, step):
        b = min(step, n_boot - i)
        out[i : i + b] = rng.choice(np.array([-1.0, 1.0]), (b, units)) @ gaps
    return out


def calm_gaps(cells: Cells, n_boot: int, seed: int | np.random.Generator = 0) -> np.ndarray:
    """What `null_gaps` gives, for the bands of curves: outcomes drawn from the confidences, in each
    bin as much wider as its clusters are alike.

    Signs of the residuals that are there know of no other outcome: where all rows of a bin are met
    they left no room for one that is not. cells : with clusters;
    without them `null_gaps` draws so itself.
    """
    alone = null_gaps(replace(cells, units=None), n_boot, seed)
    part = cells.residual.reshape(-1)
    size = np.asarray(cells.units.sum(1)).ravel()
    alike = correlation(cells.units @ part, cells.units @ part**2, size)
    effect = 1 + np.maximum(cells.rows_per_cluster() - 1, 0) * alike
    return alone * np.sqrt(effect)[cells.bin]


def bin_sums(cells: Cells, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Resampled weights (..., m, 2) to, per bin, total weight and sum of (outcome - confidence):
    (..., k) each.
    """
    return cells.per_bin(weights.sum(-1)), cells.per_bin((weights * cells.residual).sum(-1))
