"""A mergeable summary of any number of rows: counts and sums of confidence on a fixed grid. Chunks,
files and machines just add.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import DataError
from .cells import (
    AUTO_DISTINCT,
    TOL,
    Cells,
    Locator,
    auto_bins,
    by_value,
    per_value,
    same,
    tally,
    width,
)
from .inputs import Inputs, check

G = 25200  # divisible by 10, 15, 20, 25, 30, 50 and 100
CHUNK = 1 << 18  # rows per step: long against the 100,802 counters
SIZE = (
    2 * G + 1
    # even cells are the points g/G, odd ones the open intervals between: both closures stay exact
)


class Sketch:
    """Rows by fine cell and outcome, 1.6 MB whatever the number of rows.

    weight, conf : (50401, 2) weight and weighted sum of confidences; what is nearer than 1/50400
        shares a cell. rows, missing : counts.
    brier : weighted sum over rows, exact.

    >>> a, b = Sketch().update([0.1, 0.9], [0, 1]), Sketch().update([0.9], [0])
    >>> a.merge(b).rows
    3
    """

    def __init__(self) -> None:
        self.weight, self.conf = np.zeros((SIZE, 2)), np.zeros((SIZE, 2))
        self.rows = self.missing = 0
        self.brier = 0.0

    def update(
        self,
        conf: Any,
        correct: Any,
        *,
        weights: Any = None,
        missing: str = "raise",
    ) -> Sketch:
        """Add rows, a chunk of any length, in place; returns self. Arguments as in
        `kit.calibration.ece`.

        With missing="count" a chunk may consist of missing rows only.
        """
        return self.add(check(conf, correct, weights=weights, missing=missing, allow_empty=True))

    def add(self, x: Inputs) -> Sketch:
        """Add checked rows; returns self."""
        for i in range(0, x.n, CHUNK):
            p = np.asarray(x.conf[i : i + CHUNK], dtype=float)
            y = np.asarray(x.correct[i : i + CHUNK]).astype(np.int64)
            self._chunk(p, y, None if x.weights is None else x.weights[i : i + CHUNK])
        self.rows += x.n
        self.missing += x.missing
        return self

    def _chunk(self, p: np.ndarray, y: np.ndarray, w: np.ndarray | None) -> None:
        u = p * G
        j = (u + TOL * G).astype(np.int64) + np.ceil(u - TOL * G).astype(np.int64)
        np.clip(j, 0, SIZE - 1, out=j)
        j = j * 2 + y
        self.weight += np.bincount(j, weights=w, minlength=2 * SIZE).reshape(SIZE, 2)
        self.conf += np.bincount(j, weights=p if w is None else p * w, minlength=2 * SIZE).reshape(
            SIZE, 2
        )
        w = np.ones(len(p)) if w is None else w
        self.brier += float(w @ (p - y) ** 2)

    def merge(self, other: Sketch) -> Sketch:
        """A new sketch of both sets of rows; the order does not matter."""
        out = Sketch()
        out.weight, out.conf = self.weight + other.weight, self.conf + other.conf
        for name in ("rows", "missing", "brier"):
            setattr(out, name, getattr(self, name) + getattr(other, name))
        return out

    __add__ = merge

    def cells(
        self,
        *,
        bins: int | str = "auto",
        closed: str = "right",
        edges: Sequence[float] | None = None,
        equal_mass: bool = False,
        parts: Iterable[Inputs] | None = None,
    ) -> Cells:
        """The sufficient statistics of a binning; arguments as in `kit.calibration.ece`.

        K must divide 25200. Explicit edges and equal mass need the
        rows themselves. parts : the same rows once more, in blocks, for the sums of their clusters.
        """
        middle = self._used()[0]
        rows = float(self.weight.sum())
        number = isinstance(bins, (int, np.integer)) and not isinstance(bins, bool)
        DataError.first(
            (
                self.rows == 0,
                "the sketch holds no rows",
                f"sketch ({self.missing} rows missing)",
                "update it with rows first",
            ),
            (
                edges is not None or equal_mass,
                "a sketch cannot be cut at explicit edges or into equal mass",
                "arguments edges, equal_mass",
                "pass the rows, or a K that divides 25200",
            ),
            (
                bins == "distinct" and len(middle) > AUTO_DISTINCT,
                f"the sketch saw more than {AUTO_DISTINCT} distinct values",
                "argument bins",
                "pass the rows, or a number of bins",
            ),
            (
                bins not in ("auto", "distinct") and not (number and bins > 0 and G % bins == 0),
                f"bins is {bins!r}, which does not divide {G}",
                "argument bins",
                "use 10, 15, 20, 25, 30, 50 or 100, or pass the rows",
            ),
        )
        few = len(middle) <= AUTO_DISTINCT and by_value(middle, rows)
        if bins == "distinct" or (bins == "auto" and few):
            where = per_value(same(middle))
        else:
            where = width(auto_bins(rows) if bins == "auto" else bins, closed)  # type: ignore[arg-type]
        if parts is not None:
            out = tally(parts, where)
            usable = np.flatnonzero(out.units.getnnz(1))  # not the clusters whose rows all miss
            return out if len(usable) == out.n_clusters else replace(out, units=out.units[usable])
        return self._fold(where)

    def _used(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of the cells that hold rows: mean confidence (u,), weights and sums (u, 2)."""
        used = self.weight.any(1)
        w = self.weight[used]
        s = self.conf[used]
        return s.sum(1) / w.sum(1), w, s

    def _fold(self, where: Locator) -> Cells:
        at, w, sums = self._used()
        n = np.zeros((len(where.bin), 2))
        s = np.zeros((len(where.bin), 2))
        cell = where.find(at)
        np.add.at(n, cell, w)
        np.add.at(s, cell, sums)
        return Cells(
            where.bin,
            n,
            where.sums(n, s),
            where.lower,
            where.upper,
            where.convention,
            self.rows,
            self.missing,
        ).dense()

    def __repr__(self) -> str:
        cells = int(self.weight.any(1).sum())
        loss = self.brier / w if (w := float(self.weight.sum())) else math.nan
        return f"Sketch(rows={self.rows}, missing={self.missing}, cells={cells}, Brier={loss:.4f})"
