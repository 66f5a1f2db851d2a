"""Rows of confidence and outcome, checked, and the bins that they go into."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import DataError
from ..columns import complete, numbers

NEAR = 1e-7  # a confidence this near to i/K lies on that edge, so float32 and .1 * 3 count as written


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

    @property
    def noise(self) -> np.ndarray:
        """The variance (n,) of each outcome, if its confidence is right."""
        return self.conf * (1 - self.conf)


def check(
    conf: Any, correct: Any = None, *, cluster: Any = None, missing: str = "raise"
) -> Rows:
    """Read the columns; DataError names the first row that is no probability or no outcome.

    missing : "raise" makes an unknown value an error too; "count" leaves the row out and counts it.
    conf may also be Rows, which were checked before: then they come back.
    """
    if isinstance(conf, Rows):
        return conf
    if missing not in ("raise", "count"):
        raise DataError(
            f"missing is {missing!r}", where="missing", fix='"raise" or "count"'
        )
    p, y = numbers(conf, "conf"), numbers(correct, "correct")
    columns, group, left_out = complete({"conf": p, "correct": y}, cluster)
    unknown = np.isnan(p) | np.isnan(y)
    # NaN fails every comparison, so what is allowed is listed, not what is bad.
    is_valid = (p >= 0) & (p <= 1) & ((y == 0) | (y == 1))
    bad = ~is_valid & ~(unknown & (missing == "count"))
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(
            f"confidence {p[row]:g}, correct {y[row]:g}",
            where=f"row {row}",
            fix='missing="count" leaves unknown rows out'
            if unknown[row]
            else "confidence in [0, 1] (of percents, divide by 100), correct 1 or 0",
        )
    if not len(columns[0]):
        raise DataError(
            "no row has a confidence and an outcome", where="conf, correct"
        )
    return Rows(*columns, group, left_out)


@dataclass(frozen=True)
class Bins:
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


def put_in_bins(
    p: np.ndarray,
    *,
    bins: int | str = "auto",
    closed: str = "right",
    edges: Sequence[float] | None = None,
    equal_mass: bool = False,
) -> Bins:
    """Put confidences (n,) into bins.

    bins : K of equal width (or of equal mass); "distinct": one per value; "auto": one per value
    when there are few values with many rows each, else 15, and fewer below 150 rows. closed : the
    side of a bin that belongs to it. edges : limits as they are. 0 is in the first bin and 1 in the
    last, whatever side is closed.
    """
    if closed not in ("right", "left"):
        raise DataError(
            f"closed is {closed!r}", where="closed", fix='"right" or "left"'
        )
    if bins == "auto":
        bins = 15 if equal_mass else _automatic(p)
    if edges is not None:
        limits = np.asarray(edges, float)
        if (
            limits.ndim != 1
            or len(limits) < 2
            or not (np.diff(limits) > 0).all()
            or p.min() < limits[0]
            or p.max() > limits[-1]
        ):
            raise DataError(
                "edges must rise, be two or more, and hold every confidence",
                where="edges",
            )
        at = (
            np.searchsorted(limits, p, "left" if closed == "right" else "right") - 1
        )
        words = f"{len(limits) - 1} {closed}-closed bins, edges as given"
    elif bins == "distinct":
        # Rounded, because 0.1 * 3 and 0.3 are one stated confidence.
        values, at = np.unique(np.round(p, 7), return_inverse=True)
        return Bins(
            at, values, values, f"one bin per distinct confidence ({len(values)})"
        )
    elif not isinstance(bins, int) or not 1 <= bins <= 10_000:
        raise DataError(
            f"bins is {bins!r}",
            where="bins",
            fix='"auto", "distinct" or 1 to 10000',
        )
    elif equal_mass:
        # a confidence goes where the middle of its rows lies, so equal ones stay together
        values, same, count = np.unique(p, return_inverse=True, return_counts=True)
        at = ((np.cumsum(count) - count / 2) / len(p) * bins).astype(int)
        limits = np.append(
            [values[at >= i].min(initial=1.0) for i in range(bins)], p.max()
        )
        at = at[same]
        words = f"{bins} bins of about equal mass, equal confidences together"
    else:
        low_side = np.floor(p * bins + NEAR * bins)
        at = low_side if closed == "left" else np.ceil(p * bins - NEAR * bins) - 1
        limits = np.arange(bins + 1) / bins
        words = f"{bins} equal-width {closed}-closed bins"
    at = np.clip(at, 0, len(limits) - 2).astype(int)
    # empty bins have no gap, and a model has a gap only where it speaks
    places = np.flatnonzero(np.bincount(at, minlength=len(limits) - 1))
    return Bins(
        np.searchsorted(places, at), limits[places], limits[places + 1], words
    )


def _automatic(p: np.ndarray) -> int | str:
    # the first rows show whether confidences are a few stated percents
    values = len(np.unique(np.round(p[:100_000], 7)))
    if values <= 64 and len(p) >= 15 * values:
        return "distinct"
    # With fewer than about ten rows in a bin, its gap is mostly noise.
    return next(
        k for k, limit in ((5, 50), (10, 150), (15, np.inf)) if len(p) < limit
    )
