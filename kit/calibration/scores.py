"""Proper scores: Brier with its Murphy and CORP decompositions; and over- and
under-confidence. What a confidence must beat to count as knowledge of
one's errors: constant, table, token.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..stats.arguments import share
from ..stats.clusters import codes, ends, estimate, farthest, limits, sums
from ..stats.columns import takes_table
from ..stats.estimate import Estimate, number, unknown
from ..stats.rates import mean
from ..stats.shares import allow_unseen, wilson
from ..stats.tails import t_quantile
from .cells import AUTO_DISTINCT, Cells, by_value, locator, tally
from .ece import l2_squared, noise
from .inputs import Inputs, check

Loss = Callable[[Any], np.ndarray]  # outcome or outcomes (n,) -> loss of every row (n,)


def of_each_outcome(loss: Loss, x: Inputs, bounds: tuple[float, float]) -> list[list[float]]:
    """The least and the most that a wrong row not drawn may lose, and a right one (`ends`)."""
    return [ends(loss(y), x.correct == y, x.group, bounds) for y in (0.0, 1.0)]


def mean_loss(
    loss: Loss,
    x: Inputs,
    *,
    method: str,
    bounds: tuple[float, float],
    level: float = 0.95,
) -> Estimate:
    """Weighted mean loss of the rows; the limits allow for clusters that were not drawn
    (`allow_unseen`): of the rarer outcome, or of the least or the greatest mean loss drawn.
    """
    values = loss(x.correct)
    out = _mean(values, x, method, level, bounds)
    kinds = [*of_each_outcome(loss, x, bounds), farthest(values, x.group)]
    return allow_unseen(out, np.ravel(kinds), bounds)


def _mean(
    values: np.ndarray,
    x: Inputs,
    method: str,
    level: float,
    bounds: tuple[float, float],
) -> Estimate:
    """Weighted mean of (n,) values by `stats.mean`; weights without clusters count rows."""
    words = f"{method}, t interval"
    if x.weights is None or x.cluster is not None:
        out = mean(values, cluster=x.cluster, weights=x.weights, level=level, bounds=bounds)
        return replace(out, n_clusters=x.n_clusters, missing=x.missing, method=words)
    w = x.weights
    size = float(w.sum())
    value = float(w @ values / size)
    if size <= 1:
        note, nan = "one unit only: no interval", math.nan
        return Estimate(value, nan, nan, x.n, x.n_clusters, words, note, x.missing, level)
    psi = (values - value) / math.sqrt(size * (size - 1))
    se = math.sqrt(float(w @ psi**2))
    carry = float(w @ psi**4)
    df = min(size - 1, max(1.0, 1.5 * se**4 / carry - 1)) if carry > 0 else size - 1
    most = float(np.abs(psi).max())
    low, high = limits(value, se, df, size, bounds=bounds, level=level, most=most)
    return Estimate(value, low, high, x.n, x.n_clusters, words, "", x.missing, level, se)


def brier_score(x: Inputs, level: float) -> Estimate:
    """Mean (confidence - outcome)^2."""
    p = np.asarray(x.conf, dtype=float)
    return _by_value(
        mean_loss(
            lambda y: (p - y) ** 2, x, method="mean squared error", level=level, bounds=(0.0, 1.0)
        ),
        x,
        0.0,
    )


def _by_value(out: Estimate, x: Inputs, constant: float) -> Estimate:
    """`out` with limits put together from Wilson's for the right rows at each stated value, where
    there are few values and no clusters (MOVER: Zou & Donner 2008): the wrong rows at one value, or
    none of them, tell less of their share than the spread of all says, and one of 40 made its upper
    limit 1. The lower one is no nearer than by that spread, for Wilson's of few wrong rows is.

    constant : how often the Brier score of the best constant is taken off.
    """
    values, hits, size = grouped(x)
    if x.cluster is not None or len(values) > AUTO_DISTINCT or not by_value(values, x.size):
        return out
    part = size / size.sum()
    q = t_quantile(out.level, math.inf)
    slope = 1 - 2 * values - constant * (1 - 2 * hits.sum() / size.sum())
    each = (wilson(min(h, m), m, level=out.level) for h, m in zip(hits, size, strict=True))
    step = np.array([(e.low - e.value, e.high - e.value) for e in each]) * part[:, None]
    moved = step * (slope[:, None] + constant * step)
    mean_at = values**2 + slope * hits / size
    mixed = q * q * float(part @ (mean_at - part @ mean_at) ** 2) / size.sum()
    ends = (np.minimum(moved, 0.0).min(1), np.maximum(moved, 0.0).max(1))
    down, up = (math.sqrt(float(v @ v) + mixed) for v in ends)
    return replace(
        out,
        low=max(min(out.low, out.value - down), -constant / 4),
        high=min(out.value + up, 1.0),
        method=f"{out.method.split(',')[0]}, Wilson's limits at each stated value",
        note="",
    )


@dataclass(frozen=True)
class Brier:
    """Mean (confidence - outcome)^2 and its parts.

    Murphy: value = reliability - resolution + uncertainty + within, `within` being what the binning
    hides (0 with one bin per value). *_corrected: the same with the sampling bias removed (Ferro &
    Fricker 2012); may be negative. CORP: value = miscalibration - discrimination + uncertainty,
    from isotonic regression (Dimitriadis et al. 2021).
    """

    value: Estimate
    reliability: float
    resolution: float
    uncertainty: float
    within: float
    reliability_corrected: float
    resolution_corrected: float
    uncertainty_corrected: float
    miscalibration: float
    discrimination: float
    convention: str

    def __float__(self) -> float:
        return float(self.value)

    def __str__(self) -> str:
        return (
            f"Brier {self.value} = {number(self.reliability)} reliability - "
            f"{number(self.resolution)} resolution + "
            f"{number(self.uncertainty)} uncertainty + {number(self.within)} within bins | "
            f"{self.convention}"
        )

    def table(self) -> list[dict[str, Any]]:
        """One dict per part, plain, corrected and CORP."""
        return [
            {
                "part": "reliability (lower is better)",
                "plain": self.reliability,
                "corrected": self.reliability_corrected,
                "CORP": self.miscalibration,
            },
            {
                "part": "resolution (higher is better)",
                "plain": self.resolution,
                "corrected": self.resolution_corrected,
                "CORP": self.discrimination,
            },
            {
                "part": "uncertainty",
                "plain": self.uncertainty,
                "corrected": self.uncertainty_corrected,
                "CORP": self.uncertainty,
            },
        ]


def rising(rate: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The nearest rates (m,) that never fall, by weighted least squares."""
    from scipy import optimize

    return optimize.isotonic_regression(rate, weights=weight).x


def grouped(x: Inputs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sorted distinct confidences (m,), their outcome sums and weights."""
    values, at = np.unique(np.asarray(x.conf, dtype=float), return_inverse=True)
    w = np.ones(x.n) if x.weights is None else x.weights
    size = np.bincount(at, weights=w)
    keep = size > 0
    return values[keep], np.bincount(at, weights=w * x.correct)[keep], size[keep]


def murphy(cells: Cells) -> tuple[float, float, float]:
    """Murphy's reliability, resolution and uncertainty of a binning."""
    size, hits, sums = (v[cells.bins()[0] > 0] for v in cells.bins())
    n = float(size.sum())
    base = float(hits.sum() / size.sum())
    f, o = sums / size, hits / size
    reliability = size @ (f - o) ** 2 / n
    resolved = size @ (o - base) ** 2 / n
    return float(reliability), float(resolved), base * (1 - base)


def resolution(cells: Cells) -> float:
    """Resolution with the sampling bias removed (Ferro & Fricker 2012); NaN for a single row."""
    _, resolved, uncertainty = murphy(cells)
    more = uncertainty / (cells.size - 1) if cells.size > 1 else math.nan
    return resolved - noise(cells) + more


@takes_table("conf", "correct", "cluster", "weights")
def brier(
    conf: Any,
    correct: Any,
    *,
    bins: int | str = "auto",
    closed: str = "right",
    edges: Sequence[float] | None = None,
    equal_mass: bool = False,
    cluster: Any = None,
    weights: Any = None,
    missing: str = "raise",
    level: float = 0.95,
) -> Brier:
    """Brier score with the Murphy (plain and bias-corrected) and CORP decompositions.

    Arguments and binning as in `ece`; CORP needs no bins. What the interval allows for rows that
    were not drawn counts the rows as given, not their weights.

    >>> b = brier([.3] * 10 + [.6] * 10, [1] * 2 + [0] * 8 + [1] * 7 + [0] * 3)
    >>> round(b.value.value, 6), round(b.reliability_corrected, 6)
    (0.195, -0.010556)
    >>> round(b.resolution_corrected, 6), round(b.uncertainty_corrected, 6)
    (0.054971, 0.260526)
    """
    x = check(conf, correct, weights=weights, cluster=cluster, missing=missing)
    value = brier_score(x, level)
    cells = tally([x], locator(x, bins=bins, closed=closed, edges=edges, equal_mass=equal_mass))
    rel, res, unc = murphy(cells)
    n = cells.size
    _, y, w = grouped(x)
    fit = rising(y / w, w)
    corp = float((y * (1 - fit) ** 2 + (w - y) * fit**2).sum() / n)
    return Brier(
        value,
        rel,
        res,
        unc,
        value.value - (rel - res + unc),
        l2_squared(cells),
        resolution(cells),
        unc * n / (n - 1) if n > 1 else math.nan,
        value.value - corp,
        unc - corp,
        cells.convention,
    )


@takes_table("conf", "correct", "cluster")
def overconfidence(
    conf: Any,
    correct: Any,
    *,
    above: float = 0.8,
    cluster: Any = None,
    missing: str = "raise",
    level: float = 0.95,
) -> Estimate:
    """P(wrong | confidence > above); unknown when no row is that confident.

    >>> print(overconfidence([.9, .9, .9, .5], [1, 0, 1, 1]))
    .333 [.06, .80], n=3
    """
    x = check(conf, correct, cluster=cluster, missing=missing)
    return _rate(
        1.0 - x.correct,
        x,
        np.asarray(x.conf) > above,
        f"P(wrong | confidence > {share('above', above):g})",
        level,
    )


@takes_table("conf", "correct", "cluster")
def underconfidence(
    conf: Any,
    correct: Any,
    *,
    below: float = 0.3,
    cluster: Any = None,
    missing: str = "raise",
    level: float = 0.95,
) -> Estimate:
    """P(right | confidence < below); unknown when no row is that unsure.

    >>> underconfidence([.9], [1]).note
    'no known rows'
    """
    x = check(conf, correct, cluster=cluster, missing=missing)
    return _rate(
        1.0 * x.correct,
        x,
        np.asarray(x.conf) < below,
        f"P(right | confidence < {share('below', below):g})",
        level,
    )


def _rate(hit: np.ndarray, x: Inputs, keep: np.ndarray, words: str, level: float) -> Estimate:
    """The share of hits (n,) among the kept rows, as every share has it."""
    e = mean(hit[keep], cluster=None if x.cluster is None else x.cluster[keep], level=level)
    return replace(e, method=f"{words}, {e.method}", missing=x.missing)


@takes_table("conf", "correct", "cluster")
def against_constant(
    conf: Any,
    correct: Any,
    *,
    cluster: Any = None,
    missing: str = "raise",
    level: float = 0.95,
) -> Estimate:
    """Brier score less that of the best constant, the share of right rows: below 0 it says
    something.

    A constant's calibration error is almost nothing: a low ECE alone shows no knowledge of errors.

    >>> against_constant([0.5] * 40, [1, 0] * 20).value
    0.0
    """
    x = check(conf, correct, cluster=cluster, missing=missing)
    p = np.asarray(x.conf, dtype=float)
    one = np.ones(x.n)
    by = sums(np.column_stack([squares(x), x.correct, one]), *codes(x.cluster, x.n))
    by_outcome = of_each_outcome(lambda y: (p - y) ** 2, x, (0.0, 1.0))
    kinds = np.array([[e, y, 1.0] for y, each in enumerate(by_outcome) for e in each])

    def stat(t: np.ndarray) -> np.ndarray:
        right = t[..., 1] / t[..., 2]
        return t[..., 0] / t[..., 2] - right * (1 - right)

    out = estimate(
        stat,
        by,
        size=by[:, 2],
        kinds=kinds,
        n=x.n,
        method="Brier less that of the best constant",
        missing=x.missing,
        level=level,
        bounds=(-math.inf, math.inf),
    )
    # quadratic in the share of right rows: beyond the slope is the square of its error
    right = mean(x.correct, cluster=x.cluster, level=level)
    high = max(out.high, out.value + right.half_width**2)
    # the best constant has .25 at most
    return _by_value(replace(out, low=max(out.low, -0.25), high=min(high, 1.0)), x, 1.0)


@takes_table("conf", "correct", "family", "cluster")
def against_lookup(
    conf: Any,
    correct: Any,
    family: Any,
    *,
    cluster: Any = None,
    level: float = 0.95,
) -> Estimate:
    """Brier score less that of a table of each family's rate: below 0 it knows more than the
    family.

    family : (n,) labels. A row's entry is made of the other clusters' rows of its family, and of
        all other clusters where there are none. What such entries lose by being made of few rows
        is given back: a confidence that is its family's true rate is no better than the table. An
        unknown family is an error; where no family lies in two clusters the result says so.

    >>> against_lookup([1.0, 0.0] * 40, [1, 0] * 40, ["easy", "hard"] * 40).value
    0.0
    """
    x = check(conf, correct, cluster=cluster)
    kind, n_kinds = codes(family, x.n, "family")
    both, n_parts = codes(kind * (int(x.group.max()) + 1) + x.group, x.n)
    words = "that of a look-up of each family's rate"
    if n_parts == n_kinds:
        return unknown(
            x.n,
            note="no family has rows in two clusters: no look-up can be made",
            n_clusters=x.n_clusters,
            method=f"Brier less {words}",
            level=level,
        )
    e = _less(x, _lookup(x, kind, both), words, level)
    noise = _table_noise(x, kind, both)
    high = min(e.high + 2 * noise, 1.0)  # the noise is itself known only so well
    return replace(e, value=e.value + noise, high=high)


def _table_noise(x: Inputs, kind: np.ndarray, both: np.ndarray) -> float:
    """Mean variance of a table's entries: by how much its Brier score is above the true rates'."""
    size = np.bincount(kind)
    rest = np.asarray(x.correct, dtype=float)
    rest = rest - (np.bincount(kind, rest) / size)[kind]
    home = np.zeros(both.max() + 1, dtype=int)
    home[both] = kind
    spread = np.bincount(home, np.bincount(both, rest) ** 2) / size
    clusters = np.bincount(home)
    several = clusters > 1
    grown = (clusters[several] / (clusters[several] - 1)) ** 2  # an entry lacks its own cluster
    return float((spread[several] * grown).sum() / x.n)


@takes_table("conf", "correct", "score", "cluster")
def against_score(
    conf: Any,
    correct: Any,
    score: Any,
    *,
    cluster: Any = None,
    level: float = 0.95,
) -> Estimate:
    """Brier score less that of another score in [0, 1] (a token probability): below 0 it is better.

    >>> against_score([0.9, 0.1], [1, 0], [0.5, 0.5]).value
    -0.24
    """
    x = check(conf, correct, cluster=cluster)
    y = check(score, correct, cluster=cluster, name="score")
    return _less(x, np.asarray(y.conf, dtype=float), "that of the score beside it", level)


def _lookup(x: Inputs, kind: np.ndarray, both: np.ndarray) -> np.ndarray:
    """Each row's rate of right (n,) among the other clusters of its family. kind, both : numbers
    (n,) of its family, and of its cluster's part of the family."""
    y = np.asarray(x.correct, dtype=float)
    hits, rows = _others(y, kind, both)
    every_hits, every_rows = _others(y, np.zeros(x.n, dtype=int), x.group)
    alone = np.divide(every_hits, every_rows, out=np.full(x.n, y.mean()), where=every_rows > 0)
    return np.divide(hits, rows, out=alone, where=rows > 0)


def _others(y: np.ndarray, whole: np.ndarray, part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Right rows and rows (n,) of each row's whole, less its own part of it."""
    hits = np.bincount(whole, y)[whole] - np.bincount(part, y)[part]
    return hits, np.bincount(whole)[whole] - np.bincount(part)[part]


def squares(x: Inputs) -> np.ndarray:
    """(confidence - outcome)^2 (n,)."""
    return (np.asarray(x.conf, dtype=float) - x.correct) ** 2


def _less(x: Inputs, other: np.ndarray, words: str, level: float) -> Estimate:
    p = np.asarray(x.conf, dtype=float)
    return mean_loss(
        lambda y: (p - y) ** 2 - (other - y) ** 2,
        x,
        method=f"Brier less {words}",
        level=level,
        bounds=(-1.0, 1.0),
    )
