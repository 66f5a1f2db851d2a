"""Smooth calibration error and the smooth reliability curve: Gaussian kernels reflected at 0 and 1,
by cosine transforms.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import fft

from ..errors import DataError
from ..stats.columns import takes_table
from ..stats.estimate import number
from .cells import Cells
from .inputs import CHUNK, check
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


def nodes_of(
    conf: Any, correct: Any = None, *, weights: Any = None, missing: str = "raise"
) -> tuple[np.ndarray, np.ndarray, int, int]:
    """Linear binning onto 4201 nodes: weight (4201,), sum of (outcome - confidence) (4201,), rows,
    missing.
    """
    if isinstance(conf, Sketch):
        return (*_nodes_of_sketch(conf), conf.rows, conf.missing)
    x = check(conf, correct, weights=weights, missing=missing)
    mass, gap = np.zeros(NODES + 2), np.zeros(NODES + 2)
    for i in range(0, x.n, CHUNK):
        p = np.asarray(x.conf[i : i + CHUNK], dtype=float)
        w = np.ones(len(p)) if x.weights is None else x.weights[i : i + CHUNK]
        r = (x.correct[i : i + CHUNK] - p) * w
        t = p * NODES
        j = t.astype(np.int64)
        t -= j
        for values, out in ((w, mass), (r, gap)):
            right = values * t
            out[:-1] += np.bincount(j, weights=values - right, minlength=NODES + 1)
            out[1:] += np.bincount(j, weights=right, minlength=NODES + 1)
    return mass[:-1], gap[:-1], x.n, x.missing


def _nodes_of_sketch(sketch: Sketch) -> tuple[np.ndarray, np.ndarray]:
    used = np.flatnonzero(sketch.weight.any(1))
    w, s = sketch.weight[used], sketch.conf[used]
    mean = np.divide(s, w, out=np.zeros_like(s), where=w > 0)
    j = np.minimum(used // 12, NODES - 1)  # a sketch cell never crosses a node
    mass, gap = np.zeros(NODES + 1), np.zeros(NODES + 1)
    for y in (0, 1):
        right = np.clip(mean[:, y] * NODES - j, 0.0, 1.0)
        for values, out in ((w[:, y], mass), (w[:, y] * (y - mean[:, y]), gap)):
            np.add.at(out, j, values * (1 - right))
            np.add.at(out, j + 1, values * right)
    return mass, gap


def spread(values: np.ndarray, sigma: float) -> np.ndarray:
    """Smooth masses on nodes (..., 4201) to densities times the node spacing; half the mass of an
    inner kernel lies beyond a
    boundary node and is mirrored back, hence the doubling there."""
    doubled = values.copy()
    doubled[..., 0] *= 2
    doubled[..., -1] *= 2
    m = values.shape[-1] - 1
    k = np.arange(m + 1)
    return fft.idct(fft.dct(doubled, type=1) * np.exp(-0.5 * (np.pi * k * sigma) ** 2), type=1)


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
    mass, gap, n, lost = nodes_of(conf, correct, weights=weights, missing=missing)
    if mass.sum() <= 0:
        raise DataError("there are no rows", where="argument conf", fix="pass at least one row")
    gap = gap / mass.sum()
    low, high = 0.0, 1.0
    for _ in range(40):  # smoothed_error falls with sigma, so the fixed point is unique
        middle = (low + high) / 2
        low, high = (middle, high) if smoothed_error(gap, middle) > middle else (low, middle)
        if high - low < 1e-9:
            break
    return SmECE((low + high) / 2, n, lost)


@dataclass(frozen=True)
class Curve:
    """A reliability curve: accuracy y (t,) at confidence x (t,), bootstrap limits low / high, and
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

    def table(self) -> list[dict[str, float]]:
        """One dict per point."""
        names = ("x", "y", "low", "high", "band_low", "band_high", "density")
        return [
            dict(zip(names, map(float, row), strict=True))
            for row in zip(*(getattr(self, n) for n in names), strict=True)
        ]


def kernel(points: np.ndarray, at: np.ndarray, sigma: float) -> np.ndarray:
    """Reflected Gaussian kernel, (len(points), len(at)); images up to one reflection beyond [0, 1],
    enough for sigma < .5.
    """
    images = (
        at[None] - points[:, None],
        at[None] + points[:, None],
        2 - at[None] - points[:, None],
    )
    return sum(np.exp(-0.5 * (d / sigma) ** 2) for d in images) / (sigma * np.sqrt(2 * np.pi))  # type: ignore[return-value]


def smooth_curve(
    cells: Cells,
    boot: np.ndarray,
    null: np.ndarray,
    *,
    sigma: float,
    level: float = 0.95,
    points: int = 101,
) -> Curve:
    """Kernel estimate of accuracy against confidence with pointwise bands from given resamples (see
    `reliability`).

    boot : (B, m, 2) resampled weights. null : (B, m) sums of (outcome - confidence) under
        calibration.
    """
    x = np.linspace(0, 1, points)
    weight, p = cells.n.sum(1), cells.s.sum(1) / cells.n.sum(1)
    a = kernel(p, x, sigma)
    size = weight @ a
    enough = size / weight.sum() > 1e-3
    share = np.divide(a * weight[:, None], size, out=np.zeros_like(a), where=size > 0)
    y, line = (cells.n[:, 1] / weight) @ share, p @ share
    tails = [(1 - level) / 2, (1 + level) / 2]
    with np.errstate(all="ignore"):
        b = (boot[:, :, 1] @ a) / (boot.sum(-1) @ a)
        low, high = np.nanquantile(np.where(np.isfinite(b), b, np.nan), tails, axis=0)
        band = line + np.quantile((null / weight) @ share, tails, axis=0)
    out = Curve(
        x,
        y,
        low,
        high,
        np.clip(band[0], 0, 1),
        np.clip(band[1], 0, 1),
        size / weight.sum(),
        f"reflected Gaussian kernel, width {sigma:.3g}",
    )
    return replace(
        out,
        **{
            k: np.where(enough, getattr(out, k), np.nan)
            for k in ("y", "low", "high", "band_low", "band_high")
        },
    )
