"""Rows of confidence and outcome, checked, and the bins that they go into."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import DataError
from ..stats.columns import codes, numbers

NEAR = (
    1e-7  # a confidence this near to i/K lies on that edge, so float32 and .1 * 3 count as written
)


@dataclass(frozen=True)
class Rows:
    """conf (n,) in [0, 1], correct (n,) of 0 and 1, cluster numbers (n,) or None; rows left out."""

    conf: np.ndarray
    correct: np.ndarray
    cluster: np.ndarray | None
    missing: int

    @property
    def gap(self) -> np.ndarray:
        """Outcome less confidence (n,)."""
        return self.correct - self.conf


def check(conf: Any, correct: Any, *, cluster: Any = None, missing: str = "raise") -> Rows:
    """Read the columns; DataError names the first row that is no probability or no outcome.

    missing : "raise" makes an unknown value an error too; "count" leaves the row out and counts it.
    """
    p, y = numbers(conf, "conf"), numbers(correct, "correct")
    if len(p) != len(y) or not len(p):
        text = f"there are {len(p)} confidences and {len(y)} outcomes"
        raise DataError(text, where="conf, correct", fix="pass one outcome for each confidence")
    unknown = np.isnan(p) | np.isnan(y)
    bad = ~unknown & ~((p >= 0) & (p <= 1) & ((y == 0) | (y == 1)))
    if bad.any():
        row = int(np.argmax(bad))
        fix = "confidence in [0, 1], correct 1 or 0"
        if 1 < p[row] <= 100:
            fix = "percents? divide by 100"
        raise DataError(f"confidence {p[row]:g}, correct {y[row]:g}", where=f"row {row}", fix=fix)
    if missing not in ("raise", "count"):
        raise DataError(f"missing is {missing!r}", where="missing", fix='"raise" or "count"')
    group = codes(cluster, len(p))
    if not unknown.any():
        return Rows(p, y, group, 0)
    if missing == "raise":
        where = f"row {int(np.argmax(unknown))}"
        raise DataError("a value is unknown", where=where, fix='missing="count" leaves it out')
    keep = ~unknown
    if not keep.any():
        raise DataError("every row is unknown", where="conf, correct")
    if group is not None:
        group = np.unique(group[keep], return_inverse=True)[1]
    return Rows(p[keep], y[keep], group, int(unknown.sum()))


@dataclass(frozen=True)
class Binned:
    """at : (n,) bin of each row. lower, upper : (k,) limits of used bins. convention : words."""

    at: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    convention: str

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Sums of (n,) by bin (k,)."""
        return np.bincount(self.at, values, len(self.lower))

    @property
    def size(self) -> np.ndarray:
        """Rows in each bin (k,)."""
        return np.bincount(self.at, minlength=len(self.lower)).astype(float)


def binned(
    p: np.ndarray,
    *,
    bins: int | str = "auto",
    closed: str = "right",
    edges: Sequence[float] | None = None,
    equal_mass: bool = False,
) -> Binned:
    """Put confidences (n,) into bins.

    bins : K of equal width (or of equal mass); "distinct": one per value; "auto": one per value
    when there are few values with many rows each, else 15, and fewer below 150 rows. closed : the
    side of a bin that belongs to it. edges : limits as they are. 0 is in the first bin and 1 in the
    last, whatever side is closed.
    """
    if closed not in ("right", "left"):
        raise DataError(f"closed is {closed!r}", where="closed", fix='"right" or "left"')
    if edges is not None:
        return _on_edges(p, np.asarray(edges, float), closed)
    if bins == "auto":
        bins = _automatic(p) if not equal_mass else 15
    if bins == "distinct":
        values, at = np.unique(np.round(p, 7), return_inverse=True)
        return Binned(at, values, values, f"one bin per distinct confidence ({len(values)})")
    if not isinstance(bins, int) or not 1 <= bins <= 10_000:
        fix = '"auto", "distinct" or 1 to 10000'
        raise DataError(f"bins is {bins!r}", where="bins", fix=fix)
    if equal_mass:
        return _of_equal_mass(p, bins)
    at = np.floor(p * bins + NEAR * bins)
    if closed == "right":
        at = np.ceil(p * bins - NEAR * bins) - 1
    limits = np.arange(bins + 1) / bins
    return _used(at, limits[:-1], limits[1:], f"{bins} equal-width {closed}-closed bins")


def _automatic(p: np.ndarray) -> int | str:
    values = len(np.unique(np.round(p[:100_000], 7)))
    if values <= 64 and len(p) >= 5 * values:
        return "distinct"
    return 5 if len(p) < 50 else 10 if len(p) < 150 else 15


def _on_edges(p: np.ndarray, edges: np.ndarray, closed: str) -> Binned:
    if len(edges) < 2 or (np.diff(edges) <= 0).any() or p.min() < edges[0] or p.max() > edges[-1]:
        raise DataError("edges must rise and hold every confidence", where="edges")
    at = np.searchsorted(edges, p, side="left" if closed == "right" else "right") - 1
    words = f"{len(edges) - 1} {closed}-closed bins, edges as given"
    return _used(at, edges[:-1], edges[1:], words)


def _of_equal_mass(p: np.ndarray, bins: int) -> Binned:
    values, same, count = np.unique(p, return_inverse=True, return_counts=True)
    of_value = ((np.cumsum(count) - count / 2) / len(p) * bins).astype(int)
    # a bin's limits are its lowest and highest confidence
    lower = np.array([values[of_value == i].min(initial=1.0) for i in range(bins)])
    upper = np.array([values[of_value == i].max(initial=0.0) for i in range(bins)])
    words = f"{bins} bins of about equal mass, equal confidences together"
    return _used(of_value[same], lower, upper, words)


def _used(at: np.ndarray, lower: np.ndarray, upper: np.ndarray, words: str) -> Binned:
    """Bins that hold rows."""
    at = np.clip(at, 0, len(lower) - 1).astype(int)
    used = np.bincount(at, minlength=len(lower)) > 0
    return Binned((np.cumsum(used) - 1)[at], lower[used], upper[used], words)
