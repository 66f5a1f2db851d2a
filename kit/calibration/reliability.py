"""The reliability report: binned, smooth and CORP curves with bands, and the errors, from one pass
over the rows.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..stats.arguments import sure_level, whole
from ..stats.columns import takes_table
from ..stats.estimate import Estimate, band, number
from ..tables import rows_html
from . import resample
from .cells import Cells, locator, tally
from .ece import ECE, cells_of, ece_of, mce_of
from .inputs import Columns, check
from .scores import rising
from .sketch import Sketch
from .smooth import Curve, SmECE, rate_limits, smece, smooth_curve

LEAST = 200  # resamples: the quantiles of fewer make narrow bands


@dataclass(frozen=True)
class Bins(Columns):
    """Non-empty bins, all arrays (k,): limits, weight, mean confidence, accuracy with interval
    [low, high] (Wilson, with the
    clusters' design effect), and the band that a calibrated model's accuracy would stay in.

    strays : the share of a calibrated model's diagrams with a bin outside its band.
    """

    lower: np.ndarray
    upper: np.ndarray
    n: np.ndarray
    conf: np.ndarray
    accuracy: np.ndarray
    low: np.ndarray
    high: np.ndarray
    band_low: np.ndarray
    band_high: np.ndarray
    strays: float


@dataclass(frozen=True)
class Reliability:
    """What `reliability` found. `ece`, `mce`, `smece` with their own conventions; curves `bins`,
    `smooth`, `corp`.

    brier : mean squared error of the confidences.
    """

    ece: ECE
    mce: Estimate
    smece: SmECE
    brier: float
    mean_conf: float
    accuracy: float
    bins: Bins
    smooth: Curve
    corp: Curve
    n: int
    n_clusters: int | None
    missing: int
    level: float

    @property
    def convention(self) -> str:
        """How rows went into bins, in words."""
        return self.ece.convention

    def table(self) -> list[dict[str, float]]:
        """The binned curve, one dict per bin."""
        return self.bins.table()

    def as_dict(self) -> dict[str, Any]:
        """Plain dict, for JSON."""
        return {
            **self.ece.as_dict(),
            "mce": self.mce.value,
            "smece": self.smece.value,
            "brier": self.brier,
            "mean_confidence": self.mean_conf,
            "accuracy": self.accuracy,
            "table": self.table(),
        }

    def __str__(self) -> str:
        clusters = f" in {self.n_clusters} clusters" if self.n_clusters is not None else ""
        lines = [
            f"n={self.n}{clusters}, {self.missing} missing; mean confidence "
            f"{number(self.mean_conf)}, accuracy {number(self.accuracy)}",
            str(self.ece),
            f"MCE {self.mce}",
            str(self.smece),
            f"Brier {number(self.brier)}",
        ]
        return "\n".join(lines + [f"note: {self.ece.note}"] * bool(self.ece.note))

    def _repr_html_(self) -> str:
        head = "<br>".join(html.escape(line) for line in str(self).split("\n"))
        rows = [
            (
                f"{r['lower']:.3g} to {r['upper']:.3g}",
                f"{r['n']:g}",
                f"{r['conf']:.3f}",
                f"{r['accuracy']:.3f}",
                band(r["low"], r["high"]),
            )
            for r in self.table()
        ]
        return head + rows_html(("bin", "n", "confidence", "accuracy", "interval"), rows)


def _bin_table(cells: Cells, null: np.ndarray, level: float) -> Bins:
    size, hits, sums = cells.bins()
    used = size > 0
    n, o, f = size[used], hits[used] / size[used], sums[used] / size[used]
    at = (np.cumsum(used) - 1)[cells.bin]
    share = (at[:, None] == np.arange(len(n))) / n
    low, high = rate_limits(o, o[at], share, cells, level)
    calm = cells.per_bin(null)[:, used] / n
    down, up = np.quantile(calm, [(1 - level) / 2, (1 + level) / 2], axis=0)
    down, up = down - 1e-12, up + 1e-12  # an accuracy on the end itself lies inside
    strays = float(((calm < down) | (calm > up)).any(axis=1).mean())
    band = (np.clip(f + side, 0, 1) for side in (down, up))
    return Bins(cells.lower[used], cells.upper[used], n, f, o, low, high, *band, strays)


def _pool(cells: Cells, parts: int = 200) -> tuple[Cells, np.ndarray]:
    """Pool cells by confidence for the isotonic curve, at most `parts`, sorted; and the (groups, m)
    matrix that pools.
    """
    p = cells.s.sum(1) / cells.n.sum(1)
    group = np.minimum((p * parts).astype(int), parts - 1)
    _, at = np.unique(group if len(p) > parts else p, return_inverse=True)
    fold = np.zeros((at.max() + 1, len(p)))
    fold[at, np.arange(len(p))] = 1.0
    return replace(
        cells,
        n=fold @ cells.n,
        s=fold @ cells.s,
        bin=np.arange(len(fold)),
        units=None,
        lower=np.arange(len(fold)),
        upper=np.arange(len(fold)),
    ), fold


def _corp(cells: Cells, null: np.ndarray, smooth: Curve, level: float) -> Curve:
    """Isotonic accuracy over at most 200 pooled confidences; the band from the first 200 resamples.

    Limits: those of the smooth curve, sorted, as accuracy is taken to rise (Chernozhukov,
    Fernandez-Val & Galichon 2009). A bootstrap of isotonic fits is not consistent:
    it held .58 to .93.
    """
    pooled, fold = _pool(cells)
    n = pooled.n.sum(1)
    x = pooled.s.sum(1) / pooled.n.sum(1)
    fit = rising(pooled.n[:, 1] / n, n)
    calm = np.array([rising(row, n) for row in x + (null[:LEAST] @ fold.T) / n])
    band = np.clip(np.quantile(calm, [(1 - level) / 2, (1 + level) / 2], axis=0), 0, 1)
    here = np.isfinite(smooth.low)
    low, high = (np.interp(x, smooth.x[here], np.sort(v[here])) for v in (smooth.low, smooth.high))
    return Curve(
        x,
        fit,
        np.minimum(low, fit),
        np.maximum(high, fit),
        band[0],
        band[1],
        n / n.sum(),
        "CORP: isotonic regression (Dimitriadis et al. 2021)",
    )


@takes_table("conf", "correct", "cluster", "weights")
def reliability(
    conf: Any,
    correct: Any = None,
    *,
    bins: int | str = "auto",
    closed: str = "right",
    edges: Sequence[float] | None = None,
    equal_mass: bool = False,
    cluster: Any = None,
    weights: Any = None,
    missing: str = "raise",
    n_boot: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> Reliability:
    """Reliability curves and calibration errors with intervals. Numbers only: `.table()` lists
    them, `kit.plot(result)` draws them.

    Arguments as in `ece`. n_boot : resamples of the test and of a calibrated model's bands, 200
        where fewer are asked; the limits need none.

    >>> r = reliability([0.2, 0.2, 0.8, 0.8] * 3, [0, 0, 1, 1] * 3, n_boot=100)
    >>> round(r.ece.value, 3), r.bins.n.tolist(), r.convention
    (0.2, [6.0, 6.0], 'one bin per distinct confidence (2 values)')
    """
    n_boot = max(whole("n_boot", n_boot), LEAST)
    level = sure_level(level)
    binning: dict[str, Any] = dict(bins=bins, closed=closed, edges=edges, equal_mass=equal_mass)
    if isinstance(conf, Sketch):
        sketch = conf
        cells = cells_of(conf, correct, cluster=cluster, weights=weights, **binning)
    else:
        x = check(conf, correct, weights=weights, cluster=cluster, missing=missing)
        sketch = Sketch().add(x)
        cells = tally([x], locator(x, **binning))
    nulls = resample.nulls(cells, n_boot, seed)
    calm = nulls[-1]
    base = cells.n[:, 1].sum() / cells.size
    curve = smooth_curve(cells, calm, level=level)
    return Reliability(
        ece_of(cells, n_boot=n_boot, level=level, seed=seed, nulls=nulls),
        mce_of(cells, level=level),
        smece(sketch),
        sketch.brier / float(sketch.weight.sum()),
        float(cells.s.sum() / cells.size),
        float(base),
        _bin_table(cells, calm, level),
        curve,
        _corp(cells, calm, curve, level),
        cells.rows,
        cells.n_clusters,
        cells.missing,
        level,
    )


BINNINGS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("auto", {}),
    ("one bin", {"bins": 1}),
    ("10 right-closed", {"bins": 10}),
    ("10 left-closed", {"bins": 10, "closed": "left"}),
    ("15 right-closed", {"bins": 15}),
    ("15 left-closed", {"bins": 15, "closed": "left"}),
    ("20 right-closed", {"bins": 20}),
    ("100 right-closed", {"bins": 100}),
    ("10 equal mass", {"bins": 10, "equal_mass": True}),
    ("one per value", {"bins": "distinct"}),
    ("10, edges i*0.1", {"edges": [i * 0.1 for i in range(11)], "closed": "left"}),
)


@dataclass(frozen=True)
class Sensitivity:
    """The same rows under many binnings: `rows` of name and ECE; spread = largest minus smallest
    plug-in.
    """

    rows: tuple[tuple[str, ECE], ...]

    @property
    def spread(self) -> float:
        """Largest minus smallest plug-in ECE."""
        values = [e.value for _, e in self.rows]
        return max(values) - min(values)

    def table(self) -> list[dict[str, Any]]:
        """One dict per binning."""
        return [
            {
                "binning": name,
                "ece": e.value,
                "debiased": e.debiased.value,
                "low": e.low,
                "high": e.high,
                "null": e.null,
                "p_value": e.p_value,
                "bins": e.n_bins,
                "convention": e.convention,
            }
            for name, e in self.rows
        ]

    def _repr_html_(self) -> str:
        rows = [
            (
                name,
                f"{e.value:.3f}",
                e.debiased.span(),
                f"{e.null:.3f}",
            )
            for name, e in self.rows
        ]
        return rows_html(("binning", "ECE", "debiased", "calibrated would be"), rows)


@takes_table("conf", "correct", "cluster", "weights")
def sensitivity(
    conf: Any,
    correct: Any,
    *,
    cluster: Any = None,
    weights: Any = None,
    missing: str = "raise",
    n_boot: int = 500,
    seed: int = 0,
) -> Sensitivity:
    """ECE of the same rows under eleven binnings: what of the number is the convention.

    >>> sensitivity([.5, .5, .9, .9], [1, 0, 1, 0], n_boot=0).table()[1]["ece"]
    0.2
    """
    x = check(conf, correct, cluster=cluster, weights=weights, missing=missing)
    cells = ((name, tally([x], locator(x, **binning))) for name, binning in BINNINGS)
    return Sensitivity(tuple((name, ece_of(c, n_boot=n_boot, seed=seed)) for name, c in cells))
