"""Binning: from rows to the sufficient statistics of every estimate (counts and sums of confidence
per small cell and outcome).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from ..errors import DataError
from ..stats.arguments import whole
from ..stats.clusters import floats
from .inputs import CHUNK, Inputs

AUTO_DISTINCT = 64  # bins="auto": one bin per value up to this many distinct values ...
AUTO_ROWS = 5  # ... when each has this many rows on average
AUTO_BINS = 15  # ... otherwise this many equal-width bins, fewer below AUTO_FEW rows
AUTO_FEW = ((50, 5), (150, 10))
# a confidence this near to an edge i/K lies on it, so that float32 and i*0.1 agree with i/10
TOL = 1e-7
FINE = 300  # cells over all bins, for the spread of confidence inside a bin


@dataclass(frozen=True)
class Cells:
    """Counts and sums per cell; a bin is a run of cells.

    bin : (m,) bin of each cell. n : (m, 2) weight of rows with outcome 0 / 1. s : (m, 2) weighted
        sum of their confidences.
    lower, upper : (k,) limits of the bins. units : (C, 2m) sparse, weight per cluster and
        cell*2+outcome, or None.
    convention : how rows went into bins, in words. rows : rows used (unweighted). missing : rows
        left out.
    """

    bin: np.ndarray
    n: np.ndarray
    s: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    convention: str
    rows: int
    missing: int = 0
    units: Any = None

    @property
    def size(self) -> float:
        """Total weight."""
        return float(self.n.sum())

    @property
    def k(self) -> int:
        """Number of bins, empty ones included."""
        return len(self.lower)

    @property
    def n_clusters(self) -> int | None:
        """Clusters, or None when rows are independent."""
        return None if self.units is None else int(self.units.shape[0])

    @property
    def draws(self) -> float:
        """What was drawn independently: clusters, or rows."""
        return self.size if self.units is None else float(self.units.shape[0])

    @property
    def mean(self) -> np.ndarray:
        """(m, 2) mean confidence per cell and outcome; the cell's overall mean where an outcome is
        absent.
        """
        both = self.s.sum(1) / self.n.sum(1)
        return np.divide(self.s, self.n, out=np.repeat(both[:, None], 2, 1), where=self.n > 0)

    @property
    def residual(self) -> np.ndarray:
        """(m, 2) what a row of each cell and outcome adds to (outcome - confidence)."""
        return np.array([0.0, 1.0]) - self.mean

    def per_bin(self, values: np.ndarray) -> np.ndarray:
        """Sum the last axis of (..., m) over the cells of each bin: (..., k).

        Cells are sorted by bin, so this is a reduceat.
        """
        starts = np.flatnonzero(np.r_[True, np.diff(self.bin) > 0])
        out = np.zeros((*values.shape[:-1], self.k))
        out[..., self.bin[starts]] = np.add.reduceat(values, starts, axis=-1)
        return out

    def bins(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Per bin: weight (k,), sum of outcomes (k,), sum of confidences (k,)."""
        return self.per_bin(self.n.sum(1)), self.per_bin(self.n[:, 1]), self.per_bin(self.s.sum(1))

    def unit_blocks(self) -> Iterator[Any]:
        """`units` in blocks of clusters: what is made of a million of them stays small."""
        for i in range(0, self.units.shape[0], CHUNK):
            yield self.units[i : i + CHUNK]

    def to_bins(self, values: np.ndarray, bin: np.ndarray | None = None) -> Any:
        """What sums a row of `units` over each bin, times values (m, 2): (2m, k) sparse.

        bin : (m,), other bins than its own, none of them empty.
        """
        bin, k = (self.bin, self.k) if bin is None else (bin, int(bin.max()) + 1)
        at = np.arange(values.size), np.repeat(bin, 2)
        return sparse.csr_matrix((values.reshape(-1), at), shape=(values.size, k))

    def clusters_per_bin(self) -> np.ndarray:
        """Clusters with rows in each bin (k,)."""
        fold = self.to_bins(np.ones_like(self.n))
        held = (((u @ fold) > 0).sum(0) for u in self.unit_blocks())
        return sum(np.asarray(h, float).ravel() for h in held)  # type: ignore[return-value]

    def squares_per_bin(self, values: np.ndarray) -> np.ndarray:
        """Per bin: the sum over clusters of (the sum of values (m, 2) of their rows there)^2."""
        fold = self.to_bins(values)
        return sum(np.asarray((u @ fold).power(2).sum(0)).ravel() for u in self.unit_blocks())  # type: ignore[return-value]

    def rows_per_cluster(self) -> np.ndarray:
        """How many rows of its own cluster a row's bin holds, in the mean over its rows (k,)."""
        return self.squares_per_bin(np.ones_like(self.n)) / np.maximum(self.bins()[0], 1e-300)

    def dense(self) -> Cells:
        """Without empty cells."""
        keep = self.n.sum(1) > 0
        if keep.all():
            return self
        return replace(
            self,
            bin=self.bin[keep],
            n=self.n[keep],
            s=self.s[keep],
            units=None if self.units is None else self.units[:, np.repeat(keep, 2)],
        )


@dataclass(frozen=True)
class Locator:
    """Where a confidence belongs: `find` maps (n,) confidences to cells, `bin` cells to bins.

    values : (m,) the one confidence of each cell, or None where a cell holds several.
    """

    find: Callable[[np.ndarray], np.ndarray]
    bin: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    convention: str
    values: np.ndarray | None = None

    def sums(self, n: np.ndarray, s: np.ndarray) -> np.ndarray:
        """The sums s (m, 2) of n rows; as products where they are, exact in whatever order."""
        return s if self.values is None else n * self.values[:, None]


def same(conf: np.ndarray) -> np.ndarray:
    """Confidences to seven decimals, so that .1 + .2 is .3 and a float32 is what was written."""
    return np.round(np.asarray(conf, dtype=float), 7)


def auto_bins(rows: float) -> int:
    """Equal-width bins of "auto" for this many rows (the sum of their weights).

    >>> auto_bins(49), auto_bins(149), auto_bins(150)
    (5, 10, 15)
    """
    return next((k for below, k in AUTO_FEW if rows < below), AUTO_BINS)


def by_value(values: np.ndarray | None, rows: float) -> bool:
    """True when "auto" gives each of these distinct values a bin: few values, and rows enough in
    each.

    >>> by_value(np.arange(64) / 64, 64), by_value(np.array([0.5, 0.8]), 20)
    (False, True)
    """
    return values is not None and rows >= AUTO_ROWS * len(values)


def distinct(conf: np.ndarray) -> np.ndarray | None:
    """Sorted distinct values (to seven decimals), or None where there are more than "auto" takes.

    >>> distinct(np.array([0.5, 0.1, 0.5])).tolist()
    [0.1, 0.5]
    """
    seen = np.empty(0)
    for i in range(0, len(conf), CHUNK):
        part = same(conf[i : i + CHUNK])
        if len(seen):
            at = np.minimum(np.searchsorted(seen, part), len(seen) - 1)
            part = part[seen[at] != part]
        if len(part):
            seen = np.union1d(seen, part)
        if len(seen) > AUTO_DISTINCT:
            return None
    return seen


def width(k: int, closed: str = "right") -> Locator:
    """k bins of equal width; a confidence within 1e-7 of i/k lies on that edge."""
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or not 1 <= k <= 100_000:
        raise DataError(
            f"bins is {k!r}",
            where="argument bins",
            fix='use "auto", "distinct" or a whole number from 1 to 100000',
        )
    parts = max(1, -(-FINE // int(k)))
    total = int(k) * parts
    shift = TOL * total if closed_right(closed) is False else -TOL * total

    def find(p: np.ndarray) -> np.ndarray:
        u = np.multiply(p, float(total), dtype=float)
        u += shift
        j = u.astype(np.int64)  # truncation: floor, and 0 for the little below 0
        if shift > 0:
            np.minimum(j, total - 1, out=j)
        return j

    edge = np.arange(k + 1) / k
    side = (
        "right-closed bins, 0 in the first"
        if closed == "right"
        else "left-closed bins, 1 in the last"
    )
    return Locator(
        find,
        np.repeat(np.arange(k), parts),
        edge[:-1],
        edge[1:],
        f"{k} equal-width {side}; edges i/{k}, within 1e-7 counts as on the edge",
    )


def closed_right(closed: str) -> bool:
    """True for "right", False for "left", DataError otherwise."""
    DataError.other("closed", closed, ("right", "left"), "argument closed")
    return closed == "right"


def explicit(edges: Sequence[float], closed: str, conf: np.ndarray) -> Locator:
    """Bins with given edges, compared exactly as the floating-point numbers they are (no
    tolerance).
    """
    e = floats(edges, name="argument edges")
    if e.ndim != 1 or len(e) < 2 or not np.all(np.diff(e) > 0):
        raise DataError(
            "edges must be at least two increasing numbers",
            where="argument edges",
            fix="for example [0, 0.25, 0.5, 1]",
        )
    outside = np.flatnonzero((conf < e[0]) | (conf > e[-1]))
    if len(outside):
        raise DataError(
            f"confidence {conf[outside[0]]:g} lies outside the edges [{e[0]:g}, {e[-1]:g}]",
            where=f"conf, row {outside[0]}",
            fix="widen the first or last edge",
        )
    parts = max(1, FINE // (len(e) - 1))
    fine = np.r_[
        np.concatenate(
            [np.linspace(a, b, parts, endpoint=False) for a, b in itertools.pairwise(e)]
        ),
        e[-1],
    ]
    side = "left" if closed_right(closed) else "right"

    def find(p: np.ndarray) -> np.ndarray:
        return np.clip(np.searchsorted(fine, p, side=side) - 1, 0, len(fine) - 2)

    end = "first edge in the first bin" if closed == "right" else "last edge in the last bin"
    return Locator(
        find,
        np.repeat(np.arange(len(e) - 1), parts),
        e[:-1],
        e[1:],
        f"{len(e) - 1} {closed}-closed bins with the given edges, compared exactly; {end}",
    )


def per_value(values: np.ndarray) -> Locator:
    """One bin per distinct confidence (v,): each row goes to the nearest."""
    between = (values[1:] + values[:-1]) / 2
    return Locator(
        lambda p: np.searchsorted(between, p),
        np.arange(len(values)),
        values,
        values,
        f"one bin per distinct confidence ({len(values)} value{'s' if len(values) != 1 else ''})",
        values,
    )


def mass(values: np.ndarray, weight: np.ndarray, k: int) -> Locator:
    """About equal weight per bin, equal confidences never split: a value goes where the middle of
    its rows ranks.
    """
    k = whole("bins", k, 1)
    middle = (np.cumsum(weight) - weight / 2) / weight.sum()
    bins = np.minimum((middle * k).astype(int), k - 1)
    used, bins = np.unique(bins, return_inverse=True)
    first = np.flatnonzero(np.r_[True, np.diff(bins) > 0])
    last = np.r_[first[1:] - 1, len(values) - 1]
    size = (last - first + 1)[bins]
    parts = max(1, FINE // len(used))
    cell = bins * parts + (np.arange(len(values)) - first[bins]) * np.minimum(parts, size) // size
    return Locator(
        lambda p: cell[np.searchsorted(values, p)],
        np.repeat(np.arange(len(used)), parts),
        values[first],
        values[last],
        f"{len(used)} bins of about equal weight ({k} asked), equal confidences kept together",
    )


def locator(
    x: Inputs,
    *,
    bins: int | str = "auto",
    closed: str = "right",
    edges: Sequence[float] | None = None,
    equal_mass: bool = False,
) -> Locator:
    """The binning that the arguments ask for; see `kit.calibration.ece`."""
    closed_right(closed)
    if edges is not None:
        if bins != "auto" or equal_mass:
            raise DataError(
                "edges and another binning were both asked for",
                where="arguments edges, bins, equal_mass",
                fix="give one of them",
            )
        return explicit(edges, closed, x.conf)
    if equal_mass:
        values, at = np.unique(np.asarray(x.conf, dtype=float), return_inverse=True)
        return mass(
            values,
            np.bincount(at, weights=x.weights).astype(float),
            AUTO_BINS if bins == "auto" else bins,
        )  # type: ignore[arg-type]
    if bins == "auto":
        values = distinct(x.conf if x.weights is None else x.conf[x.weights > 0])
        if by_value(values, x.size):
            return per_value(values if x.weights is None else np.unique(same(x.conf)))
        return width(auto_bins(x.size), closed)
    every = bins == "distinct"
    return per_value(np.unique(same(x.conf))) if every else width(bins, closed)  # type: ignore[arg-type]


def tally(parts: Iterable[Inputs], where: Locator) -> Cells:
    """One pass over blocks of rows, a chunk at a time, float64 accumulators.

    Clusters are numbered alike in all blocks. Memory: one block, and clusters times cells.
    """
    m, units, rows, missing = len(where.bin), None, 0, 0
    n = np.zeros(2 * m)
    s = np.zeros(2 * m)
    for x in parts:
        cells = np.empty(x.n, dtype=np.int32)
        for i in range(0, x.n, CHUNK):
            p = np.asarray(x.conf[i : i + CHUNK], dtype=float)
            j = where.find(p)
            j <<= 1
            np.add(j, x.correct[i : i + CHUNK], out=j, casting="unsafe")
            w = None if x.weights is None else x.weights[i : i + CHUNK]
            n += np.bincount(j, weights=w, minlength=2 * m)
            s += np.bincount(j, weights=p if w is None else p * w, minlength=2 * m)
            cells[i : i + CHUNK] = j
        if x.cluster is not None:
            units = _add_units(units, x, cells, 2 * m)
        rows = rows + x.n
        missing = missing + x.missing
    n = n.reshape(m, 2)
    s = where.sums(n, s.reshape(m, 2))
    out = Cells(where.bin, n, s, where.lower, where.upper, where.convention, rows, missing, units)
    return out.dense()


def _add_units(units: Any, x: Inputs, cells: np.ndarray, columns: int) -> Any:
    """`units` with the sums of one more block, which may hold new clusters: (C, columns) sparse."""
    w = np.ones(x.n, np.int32) if x.weights is None else x.weights
    part = sparse.csr_matrix((w, (x.cluster, cells)), shape=(x.n_clusters, columns))
    if units is None:
        return part
    units.resize(part.shape)
    return units + part
