"""Resampling on sufficient statistics: cost depends on cells and resamples, not on rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..stats.arguments import generator
from ..stats.clusters import worth
from ..stats.shares import correlation
from .cells import Cells

BLOCK = 8_000_000  # numbers held at once
SIGNS = np.array([-1.0, 1.0])
SHARED = 500  # clusters up to which the rows of each share their luck in a calibrated model's bands
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
    step = max(1, BLOCK // max(gaps.shape[0], 1))
    sizes = (min(step, n_boot - i) for i in range(0, n_boot, step))
    return np.concatenate([rng.choice(SIGNS, (b, gaps.shape[0])) @ gaps for b in sizes])


def nulls(cells: Cells, n_boot: int, seed: int = 0) -> list[np.ndarray]:
    """What a test of calibration is held against: `null_gaps`, and with clusters `calm_gaps` too,
    which know of outcomes that were not drawn.
    """
    wild = null_gaps(cells, n_boot, seed)
    return [wild] if cells.units is None else [wild, calm_gaps(cells, n_boot, seed)]


def calm_gaps(cells: Cells, n_boot: int, seed: int | np.random.Generator = 0) -> np.ndarray:
    """What `null_gaps` gives, for bands and the test: outcomes drawn from the confidences, where
    as large a share of the clusters as the residuals are alike has one luck for all its rows, with
    Student's t for few clusters; of more than SHARED, in each bin as much wider as they are alike.

    Signs of the residuals that are there know of no other outcome: where all rows of a bin are met
    they left no room for one that is not. cells : with clusters;
    without them `null_gaps` draws so itself.
    """
    rng = generator(seed)
    size = np.asarray(cells.units.sum(1)).ravel()
    alike = _alike(cells, np.zeros(len(cells.bin), int), 1)
    if len(size) > SHARED:
        effect = 1 + np.maximum(cells.rows_per_cluster() - 1, 0) * alike
        return null_gaps(replace(cells, units=None), n_boot, rng) * np.sqrt(effect)[cells.bin]
    alike = max(alike, _alike(cells, cells.bin, 2))  # an easy and a hard question differ anyhow
    held = (cells.units @ cells.to_bins(np.ones_like(cells.n), np.arange(len(cells.bin)))).toarray()
    luck = rng.random((n_boot, len(size)))
    same = rng.random((n_boot, len(size))) < alike
    p = np.clip(cells.s.sum(1) / cells.n.sum(1), 0.0, 1.0)
    shared = [(same & (luck < q)) @ h - same @ h * q for q, h in zip(p, held.T, strict=True)]
    left = np.round(held.sum(0) - same @ held).astype(np.int64)
    df = max(worth(size) - 1, 1.0)
    shared = np.stack(shared, 1) * np.sqrt(df / rng.chisquare(df, (n_boot, 1)))
    return shared + rng.binomial(left, p) - left * p


def _alike(cells: Cells, bin: np.ndarray, least: int) -> float:
    """The correlation of the residuals in one cluster and bin (m,); 0 where these hold fewer than
    `least` rows on average.
    """
    off = np.round(cells.residual - (cells.n * cells.residual).sum() / cells.size, 12)
    part = np.stack([off**k for k in range(3)])  # rounded: what is all alike has no spread
    size, total, square = ((cells.units @ cells.to_bins(v, bin)).toarray().ravel() for v in part)
    held = size > 0
    told = size.sum() >= least * held.sum()
    return correlation(total[held], square[held], size[held]) if told else 0.0


def bin_sums(cells: Cells, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Resampled weights (..., m, 2) to, per bin, total weight and sum of (outcome - confidence):
    (..., k) each.
    """
    return cells.per_bin(weights.sum(-1)), cells.per_bin((weights * cells.residual).sum(-1))
