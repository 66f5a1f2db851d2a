"""Smooth calibration error, with a Gaussian kernel reflected at 0 and 1 by cosine transforms; and
the smooth reliability curve, a local linear fit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import fft

from ..errors import DataError
from ..stats.columns import takes_table
from ..stats.estimate import number
from ..stats.tails import t_quantile
from . import resample
from .cells import Cells
from .inputs import Columns, check
from .sketch import G, Sketch

NODES = (
    G // 6
)  # 4200 intervals: the sketch's cells nest in them, so rows and sketch give the same answer


@dataclass(frozen=True)
class SmECE:
    """Smooth calibration error; `value` is also the kernel width where it was read (that is its
    definition).
    """

    value: float
    n: int
    missing: int = 0
    convention: str = (
        "reflected Gaussian kernel, width = value (Blasiok & Nakkiran 2023), 4201 "
        "nodes, boundary nodes mirrored"
    )

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return f"smECE {number(self.value, 4)}, n={self.n} | {self.convention}"


def nodes_of(sketch: Sketch) -> tuple[np.ndarray, np.ndarray]:
    """Linear binning onto 4201 nodes: weight (4201,), sum of (outcome - confidence) (4201,). Exact,
    since a cell of the sketch never crosses a node."""
    used = np.flatnonzero(sketch.weight.any(1))
    w = sketch.weight[used]
    s = sketch.conf[used]
    mean = np.divide(s, w, out=np.zeros_like(s), where=w > 0)
    j = np.minimum(used // 12, NODES - 1)
    mass = np.zeros(NODES + 1)
    gap = np.zeros(NODES + 1)
    for y in (0, 1):
        right = np.clip(mean[:, y] * NODES - j, 0.0, 1.0)
        off = w[:, y] * (y - mean[:, y])
        for values, out in ((w[:, y], mass), (off, gap)):
            np.add.at(out, j, values * (1 - right))
            np.add.at(out, j + 1, values * right)
    return mass, gap


def spread(values: np.ndarray, sigma: float) -> np.ndarray:
    """Smooth masses on nodes (..., 4201) to densities times the node spacing; half the mass of an
    inner kernel lies beyond a
    boundary node and is mirrored back, hence the doubling there."""
    k = np.arange(values.shape[-1])
    doubled = values * (1 + ((k == 0) | (k == k[-1])))
    damped = np.exp(-0.5 * (np.pi * k * sigma) ** 2)
    return fft.idct(fft.dct(doubled, type=1) * damped, type=1)


def smoothed_error(gap: np.ndarray, sigma: float) -> float:
    """Integral of |kernel-smoothed residual| over [0, 1], trapezoid rule on the nodes."""
    values = np.abs(spread(gap, sigma))
    return float(values.sum() - (values[0] + values[-1]) / 2)


@takes_table("conf", "correct", "cluster", "weights")
def smece(conf: Any, correct: Any = None, *, weights: Any = None, missing: str = "raise") -> SmECE:
    """Smooth ECE: the sigma at which the residuals, smoothed with a reflected Gaussian of that
    width, have that L1 norm.

    conf : (n,) in [0, 1], or a Sketch. correct : (n,). No bins, no edges; consistent and Lipschitz.
    Source: Blasiok & Nakkiran 2023, section 4; the boundary nodes are mirrored, so 0 and 1 count in
    full.

    >>> round(smece([0.7] * 10, [1] * 4 + [0] * 6).value, 6)
    0.3
    >>> round(smece([0.5] * 10 + [1.0] * 10, [1] * 5 + [0] * 5 + [1] * 6 + [0] * 4).value, 3)
    0.2
    """
    if not isinstance(conf, Sketch):
        conf = Sketch().add(check(conf, correct, weights=weights, missing=missing))
    mass, gap = nodes_of(conf)
    if mass.sum() <= 0:
        raise DataError("there are no rows", where="argument conf", fix="pass at least one row")
    gap = gap / mass.sum()
    low, high = 0.0, 1.0
    for _ in range(30):  # smoothed_error falls with sigma, so the fixed point is unique
        middle = (low + high) / 2
        low, high = (middle, high) if smoothed_error(gap, middle) > middle else (low, middle)
    return SmECE((low + high) / 2, conf.rows, conf.missing)


@dataclass(frozen=True)
class Curve(Columns):
    """A reliability curve: accuracy y (t,) at confidence x (t,), pointwise limits low / high, and
    the band band_low /
    band_high that a calibrated model's curve would stay in (pointwise). density : rows per unit of
    confidence, in [0, 1].
    """

    x: np.ndarray
    y: np.ndarray
    low: np.ndarray
    high: np.ndarray
    band_low: np.ndarray
    band_high: np.ndarray
    density: np.ndarray
    method: str


def weights_at(weight: np.ndarray, p: np.ndarray, x: np.ndarray, width: float) -> np.ndarray:
    """What a row of each cell counts in a local linear fit at each x: (m, t), every column sums to
    1 over the rows.

    The slope is drawn to 0 a little, so that one distinct confidence has a fit, too. Source: Fan &
    Gijbels 1996, section 2.3.
    """
    d = p[:, None] - x[None]
    k = np.exp(-0.5 * (d / width) ** 2)
    s0, s1, s2 = weight @ k, weight @ (k * d), weight @ (k * d * d)
    s2 = s2 + 0.01 * width**2 * s0
    under = s2 * s0 - s1 * s1
    return np.divide(k * (s2 - d * s1), under, out=np.zeros_like(k), where=under > 0)


def width_of(size: float, p: np.ndarray) -> float:
    """Kernel width for `size` rows: narrower than is best for the curve itself, so that its bias is
    small beside its error and the limits hold; no less than half of what lies between confidences.
    """
    gap = float(np.ptp(p)) / (len(p) - 1) if len(p) > 1 else 0.0
    return min(max(0.4 * size ** (-1 / 3), 0.005, gap / 2), 0.3)


def smooth_curve(
    cells: Cells,
    null: np.ndarray,
    *,
    level: float = 0.95,
) -> Curve:
    """Local linear estimate of accuracy against confidence, with pointwise limits and band.

    null : (B, m) sums of (outcome - confidence) under calibration. Limits: `rate_limits`. They hold
        .92 or more of a steep curve, on average over its points, and .86 of one with a jump.
    """
    x = np.linspace(0, 1, 101)
    weight = cells.n.sum(1)
    p = cells.s.sum(1) / cells.n.sum(1)
    width = width_of(float(weight.sum()), p)
    a = weights_at(weight, p, x, width)
    density = weight @ np.exp(-0.5 * ((p[:, None] - x[None]) / width) ** 2)
    density /= weight.sum() * width * np.sqrt(2 * np.pi)
    y = np.clip(cells.n[:, 1] @ a, 0, 1)
    low, high = rate_limits(y, np.interp(p, x, y), a, cells, level)
    band = x + np.quantile(null @ a, [(1 - level) / 2, (1 + level) / 2], axis=0)
    known = {"y": y, "low": low, "high": high}
    known |= {"band_low": np.clip(band[0], 0, 1), "band_high": np.clip(band[1], 0, 1)}
    known = {k: np.where(density > 1e-3, v, np.nan) for k, v in known.items()}
    return Curve(x=x, density=density, method=f"local linear, kernel width {width:.3g}", **known)


def rate_limits(
    y: np.ndarray,
    here: np.ndarray,
    a: np.ndarray,
    cells: Cells,
    level: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's limits (t,) of rates y (t,), on the independent rows that each is worth, with
    Student's quantile for the clusters that stand behind it.

    a : (m, t), what a row of each cell counts in a rate. here : (m,), the rate at each cell.
    """
    rows = 1 / np.maximum(cells.n.sum(1) @ (a * a), 1e-300)
    df = math.inf
    if cells.units is not None:
        rows, df = _clustered(rows, here, a, cells)
    q = np.vectorize(t_quantile)(level, df)
    scale = 1 + q * q / rows
    middle = (y + q * q / (2 * rows)) / scale
    variance = y * (1 - y) / rows + (q / (2 * rows)) ** 2
    half = q * np.sqrt(variance) / scale
    return np.clip(middle - half, 0, 1), np.clip(middle + half, 0, 1)


def _clustered(
    rows: np.ndarray,
    here: np.ndarray,
    a: np.ndarray,
    cells: Cells,
) -> tuple[np.ndarray, np.ndarray]:
    """Rows over the clusters' design effect, and degrees of freedom, (t,) each."""
    units = resample.pooled(cells.units, np.random.default_rng(0))
    miss = (np.array([0.0, 1.0]) - here[:, None]).reshape(-1, 1)
    both = np.repeat(a, 2, axis=0)
    size = units @ np.abs(both)
    behind = size.sum(0) ** 2 / np.maximum((size**2).sum(0), 1e-300)  # as `worth`, at each point
    df = np.maximum(behind - 1, 1.0)
    spread = ((units @ (both * miss)) ** 2).sum(0) * (1 + 1 / df)
    alone = (cells.n.sum(1) * here * (1 - here)) @ (a * a)
    known = alone > 1e-12
    if not known.any():  # all outcomes alike: a cluster may be as good as one row
        return np.minimum(rows, behind), df
    effect = np.divide(spread, alone, out=np.ones_like(rows), where=known)
    # the effect of one point is noisy: no less than that of all
    rows = rows / np.maximum(effect, max(spread[known].sum() / alone[known].sum(), 1.0))
    return np.where(known, rows, np.minimum(rows, behind)), df
