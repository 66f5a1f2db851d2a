"""Rows of confidence and outcome, checked, and the bins that they go into."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ...errors import DataError
from ...records import count_of
from ..columns import (
    Column,
    Floats,
    Ints,
    check_choice,
    complete_rows,
    read_numbers,
)

# A confidence this near to i/K lies on that edge, so float32 and .1 * 3 count as written.
EDGE_TOLERANCE = 1e-7
# Few stated values with many rows each get a bin each.
MAX_DISTINCT, ROWS_PER_VALUE = 64, 15


@dataclass(frozen=True)
class ConfidenceRows:
    """conf (n,) in [0, 1], correct (n,) of 0 and 1, cluster numbers (n,) or None; rows left out."""

    conf: Floats
    correct: Floats
    cluster: Ints | None
    missing: int

    @property
    def gap(self) -> Floats:
        """Outcome less confidence (n,)."""
        return np.subtract(self.correct, self.conf)

    @property
    def noise(self) -> Floats:
        """The variance (n,) of each outcome, if its confidence is right."""
        return np.multiply(self.conf, 1 - self.conf)

    @property
    def clusters(self) -> Ints:
        """Cluster numbers (n,); without clusters each row is its own."""
        return np.arange(len(self.conf)) if self.cluster is None else self.cluster


def read_rows(
    conf: Column | ConfidenceRows,
    correct: Column = (),
    *,
    cluster: Column | None = None,
    missing: str = "raise",
) -> ConfidenceRows:
    """Read the columns; DataError names the first row whose confidence or outcome is out of range.

    missing : "raise" makes an unknown value an error too; "count" leaves the row out and counts it.
    conf may also be ConfidenceRows, which were checked before: then they come back.
    """
    if isinstance(conf, ConfidenceRows):
        return conf
    check_choice("missing", missing, ("raise", "count"))
    p, y = read_numbers(conf, "conf"), read_numbers(correct, "correct")
    columns, group, left_out = complete_rows({"conf": p, "correct": y}, cluster)
    # NaN fails every comparison, so what is allowed is listed, not what is bad.
    is_valid = (p >= 0) & (p <= 1) & ((y == 0) | (y == 1))
    if missing == "count":
        is_valid |= np.isnan(p) | np.isnan(y)
    if not is_valid.all():
        row = int(np.argmin(is_valid))
        raise DataError(
            f"confidence {p[row]:g}, correct {y[row]:g}",
            where=f"row {row}, counted from 0",
            fix="confidence in [0, 1] (of percents, divide by 100), correct 1 or 0; "
            'missing="count" (--missing count) leaves unknown rows out',
        )
    if not len(columns[0]):
        raise DataError(
            "no row has a confidence and an outcome", where="conf, correct"
        )
    return ConfidenceRows(columns[0], columns[1], group, left_out)


@dataclass(frozen=True)
class Bins:
    """at : (n,) bin of each row. lower, upper, size : (k,) limits and rows of used bins.

    convention : how rows went into bins, in words.
    """

    at: Ints
    lower: Floats
    upper: Floats
    size: Floats
    convention: str

    def sums(self, values: Floats) -> Floats:
        """Sums of (n,) by bin (k,)."""
        return np.asarray(np.bincount(self.at, values, len(self.lower)), float)


def put_in_bins(
    p: Floats,
    *,
    bins: int | Literal["auto", "distinct"] = "auto",
    closed: Literal["right", "left"] = "right",
    edges: Sequence[float] | None = None,
    equal_mass: bool = False,
) -> Bins:
    """Put confidences (n,) into bins.

    bins : K of equal width (or of equal mass); "distinct": one per value; "auto": one per value
    when there are few values with many rows each, else 15, and fewer below 150 rows. closed : the
    side of a bin that belongs to it. edges : limits as they are. 0 is in the first bin and 1 in the
    last, whatever side is closed.
    """
    check_choice("closed", closed, ("right", "left"))
    if edges is not None:
        limits = np.asarray(edges, float)
        rise = limits.ndim == 1 and len(limits) > 1 and (np.diff(limits) > 0).all()
        if not rise or p.min() < limits[0] or p.max() > limits[-1]:
            raise DataError(
                "edges must rise, be two or more, and hold every confidence",
                where="edges",
            )
        return _bins_between(
            limits,
            p,
            closed,
            f"{len(limits) - 1} {closed}-closed bins, edges as given",
        )
    if bins == "auto":
        bins = 15 if equal_mass else _automatic_bins(p)
    if bins == "distinct":
        # Rounded, because 0.1 * 3 and 0.3 are one stated confidence.
        values, at, size = np.unique(
            np.round(p, 7), return_inverse=True, return_counts=True
        )
        return Bins(
            at,
            values,
            values,
            size.astype(float),
            f"one bin per distinct confidence ({len(values)})",
        )
    if not isinstance(bins, int) or not 1 <= bins <= 10_000:
        raise DataError(
            f"bins is {bins!r}",
            where="bins",
            fix='"auto", "distinct" or 1 to 10000',
        )
    if equal_mass:
        return _equal_mass_bins(p, bins)
    # a confidence near an edge goes to the side that is closed, as one on it does
    nudge = EDGE_TOLERANCE if closed == "left" else -EDGE_TOLERANCE
    return _bins_between(
        np.arange(bins + 1) / bins,
        p + nudge,
        closed,
        f"{bins} equal-width {closed}-closed bins",
    )


def _bins_between(limits: Floats, p: Floats, closed: str, words: str) -> Bins:
    # in numpy's words, the side is where an equal value is put before or after
    at = np.searchsorted(limits, p, "left" if closed == "right" else "right")
    return _used_bins(at - 1, limits, words)


def _equal_mass_bins(p: Floats, bins: int) -> Bins:
    # a confidence goes where the middle of its rows lies, so equal ones stay together
    values, same, count = np.unique(p, return_inverse=True, return_counts=True)
    middle = (np.cumsum(count) - count / 2) / len(p)
    at = (middle * bins).astype(int)
    # a bin reaches up to the lowest confidence of the next one
    lowest = np.append(values, 1.0)[np.searchsorted(at, np.arange(bins))]
    return _used_bins(
        at[same],
        np.append(lowest, p.max()),
        f"{count_of(bins, 'bin')} of about equal mass, equal confidences together",
    )


def _automatic_bins(p: Floats) -> int | Literal["distinct"]:
    # the first rows show whether confidences are a few stated percents
    values = len(np.unique(np.round(p[:100_000], 7)))
    if values <= MAX_DISTINCT and len(p) >= ROWS_PER_VALUE * values:
        return "distinct"
    # With fewer than about ten rows in a bin, its gap is mostly noise.
    if len(p) < 50:
        return 5
    return 10 if len(p) < 150 else 15


def _used_bins(at: Ints, limits: Floats, words: str) -> Bins:
    """Bins without the empty ones: they have no gap, and a model has one only where it speaks."""
    at = np.clip(at, 0, len(limits) - 2)
    used, place, size = np.unique(at, return_inverse=True, return_counts=True)
    return Bins(place, limits[used], limits[used + 1], size.astype(float), words)
