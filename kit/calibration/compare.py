"""Before against after: is one set of confidences better calibrated than another, and top-label confidence from class probabilities."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import DataError
from ..stats.estimate import Estimate, number
from . import resample
from .cells import Cells, locator, tally
from .ece import ECE, ece_of, plugin
from .inputs import Inputs, check
from .scores import overconfidence, underconfidence


@dataclass(frozen=True)
class Comparison:
    """Two calibrations. difference : debiased ECE after minus before (below 0 = better). brier, accuracy : after minus before.

    paired : the same rows (or clusters) were resampled together. verdict : a sentence that claims no more than the interval.
    """

    before: ECE
    after: ECE
    difference: Estimate
    brier: Estimate
    accuracy: Estimate
    over: tuple[Estimate, Estimate]
    under: tuple[Estimate, Estimate]
    paired: bool
    verdict: str

    def table(self) -> list[dict[str, Any]]:
        """One dict per measure."""
        rows: list[dict[str, Any]] = [
            {"measure": "ECE (plug-in)", "before": self.before.value, "after": self.after.value},
            {
                "measure": "ECE (debiased)",
                "before": self.before.debiased.value,
                "after": self.after.debiased.value,
                "change": self.difference.value,
                "low": self.difference.low,
                "high": self.difference.high,
            },
            {"measure": "ECE if calibrated", "before": self.before.null, "after": self.after.null},
            {
                "measure": "Brier",
                "change": self.brier.value,
                "low": self.brier.low,
                "high": self.brier.high,
            },
            {
                "measure": "accuracy",
                "change": self.accuracy.value,
                "low": self.accuracy.low,
                "high": self.accuracy.high,
            },
            {
                "measure": "P(wrong | confidence > .8)",
                "before": self.over[0].value,
                "after": self.over[1].value,
            },
            {
                "measure": "P(right | confidence < .3)",
                "before": self.under[0].value,
                "after": self.under[1].value,
            },
        ]
        return rows

    def __str__(self) -> str:
        return f"{self.verdict} | before: {self.before}; after: {self.after}"

    def _repr_html_(self) -> str:
        def show(v: Any) -> str:
            return "" if v is None else number(v)

        rows = "".join(
            f"<tr><td>{html.escape(r['measure'])}</td>"
            + "".join(
                f"<td>{show(r.get(k))}</td>" for k in ("before", "after", "change", "low", "high")
            )
            + "</tr>"
            for r in self.table()
        )
        return f"{html.escape(self.verdict)}<table><tr><th></th><th>before</th><th>after</th><th>change</th><th>low</th><th>high</th></tr>{rows}</table>"


def _statistics(cells: Cells, weights: np.ndarray) -> np.ndarray:
    """Plug-in ECE, Brier, accuracy of resampled cell weights (B, m, 2): (B, 3)."""
    p = cells.mean
    size = weights.sum((-1, -2))
    square = (weights * (np.array([0.0, 1.0]) - p) ** 2).sum((-1, -2)) / size
    return np.stack(
        [plugin(*resample.bin_sums(cells, weights)), square, weights[..., 1].sum(-1) / size], -1
    )


def _together(a: Cells, b: Cells, n_boot: int, seed: int) -> np.ndarray:
    """Changes in the statistics when the same units are drawn for both, and both errors: (n_boot, 5)."""
    rng, out = np.random.default_rng(seed), np.empty((n_boot, 5))
    for rows, w in resample.draws(a.units.shape[0], n_boot, rng):
        both = [_statistics(c, np.asarray(w @ c.units).reshape(len(w), -1, 2)) for c in (a, b)]
        out[rows] = np.column_stack([both[1] - both[0], both[0][:, 0], both[1][:, 0]])
    return out


def _mover(one: ECE, two: ECE, change: float, rho: float) -> tuple[float, float]:
    """Limits of a difference from the limits of its parts, correlated by rho (Zou & Donner 2008)."""

    def reach(a: float, b: float) -> float:
        return math.sqrt(max(a * a + b * b - 2 * rho * a * b, 0.0))

    down1, up1 = one.debiased.value - one.low, one.high - one.debiased.value
    down2, up2 = two.debiased.value - two.low, two.high - two.debiased.value
    return change - reach(down2, up1), change + reach(up2, down1)


def _with_units(x: Inputs, cells: Cells, binning: dict[str, Any]) -> Cells:
    """Cells whose units are rows, where there are no clusters."""
    if cells.units is not None:
        return cells
    whole = Inputs(x.conf, x.correct, x.weights, np.arange(x.n), x.n, x.missing)
    return tally(whole, locator(whole, **binning))


def compare(
    before: tuple[Any, Any],
    after: tuple[Any, Any],
    *,
    paired: bool = False,
    cluster: Any = None,
    cluster_after: Any = None,
    n_boot: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    missing: str = "raise",
    **binning: Any,
) -> Comparison:
    """Calibration before and after (a recalibration, a training), each given as (conf, correct).

    paired : row i of both is the same question; both are then drawn together, by `cluster` where given (paired rows with
    missing values are refused, since the pairs would shift). Unpaired: `cluster` and `cluster_after` label each side.
    Binning as in `ece`; 15 equal-width bins by default for both, so that they compare.

    >>> c = compare(([.9] * 40, [1] * 20 + [0] * 20), ([.5] * 40, [1] * 20 + [0] * 20), paired=True)
    >>> round(c.difference.value, 2), c.verdict.split(":")[0]
    (-0.4, 'better calibrated')
    """
    if binning.get("edges") is None:
        binning.setdefault("bins", 15)
    if paired and missing != "raise":
        raise DataError(
            "paired rows cannot be dropped one side at a time",
            where="argument missing",
            fix="drop incomplete pairs first",
        )
    x, y = (
        check(*rows, cluster=c, missing=missing)
        for rows, c in ((before, cluster), (after, cluster if paired else cluster_after))
    )
    if paired and x.n != y.n:
        raise DataError(
            f"{x.n} rows before, {y.n} after",
            where="arguments before, after",
            fix="pass the same rows in the same order, or paired=False",
        )
    cells = [tally(v, locator(v, **binning)) for v in (x, y)]
    one, two = (ece_of(c, n_boot=n_boot, level=level, seed=seed) for c in cells)
    if paired:
        moved = _together(
            *(_with_units(v, c, binning) for v, c in zip((x, y), cells, strict=True)), n_boot, seed
        )  # type: ignore[misc]
    else:
        moved = _statistics(cells[1], resample.bootstrap(cells[1], n_boot, seed + 2)) - _statistics(
            cells[0], resample.bootstrap(cells[0], n_boot, seed + 1)
        )
    point = [
        two.debiased.value - one.debiased.value,
        *(_statistics(cells[1], cells[1].n[None]) - _statistics(cells[0], cells[0].n[None]))[0, 1:],
    ]
    limits = np.quantile(moved[:, :3], [(1 - level) / 2, (1 + level) / 2], axis=0)
    limits[:, 0] = _mover(
        one,
        two,
        point[0],
        float(np.nan_to_num(np.corrcoef(moved[:, 3], moved[:, 4])[0, 1])) if paired else 0.0,
    )
    if (
        one.low == 0 and two.low == 0
    ):  # neither is told apart from a calibrated model: no change can be claimed
        limits[:, 0] = min(limits[0, 0], 0.0), max(limits[1, 0], 0.0)
    n, units = x.n + y.n if not paired else x.n, x.n_clusters
    d, b, a = (
        Estimate(
            float(v),
            float(lo),
            float(hi),
            n,
            units,
            f"change in {name}, {'paired' if paired else 'unpaired'} bootstrap",
            level=level,
        )
        for v, lo, hi, name in zip(
            point, limits[0], limits[1], ("debiased ECE", "Brier", "accuracy"), strict=True
        )
    )
    over = tuple(overconfidence(v.conf, v.correct, cluster=v.cluster, level=level) for v in (x, y))
    under = tuple(
        underconfidence(v.conf, v.correct, cluster=v.cluster, level=level) for v in (x, y)
    )
    return Comparison(one, two, d, b, a, over, under, paired, _verdict(d, one, two))  # type: ignore[arg-type]


def _verdict(d: Estimate, one: ECE, two: ECE) -> str:
    tail = f"debiased ECE changed by {number(d.value)} [{number(d.low, 2)}, {number(d.high, 2)}] (n={one.n} and {two.n})"
    if d.high < 0:
        return f"better calibrated: {tail}"
    if d.low > 0:
        return f"worse calibrated: {tail}"
    return f"no change can be claimed: {tail}"


@dataclass(frozen=True)
class TopLabel:
    """The predicted class of each row (n,), its probability, and whether it was right. ties : rows with equal top classes."""

    conf: np.ndarray
    correct: np.ndarray
    predicted: np.ndarray
    ties: int


def top_label(probs: Any, labels: Any) -> TopLabel:
    """Confidence and correctness of the most probable class.

    probs : (n, k) in [0, 1], rows summing to 1 within 1e-3. labels : (n,) class numbers. Equal top classes: the lowest
    number is predicted, and counted in `ties`.

    >>> top_label([[.2, .8], [.6, .4]], [1, 1]).correct.tolist()
    [True, False]
    """
    p, y = np.asarray(probs, dtype=float), np.asarray(labels)
    if p.ndim != 2 or y.shape != (len(p),):
        raise DataError(
            f"probs has shape {p.shape}, labels {y.shape}",
            where="arguments probs, labels",
            fix="pass (n, k) and (n,)",
        )
    bad = np.flatnonzero(~((p >= 0) & (p <= 1 + 1e-6)).all(1) | ~(np.abs(p.sum(1) - 1) <= 1e-3))
    if len(bad):
        raise DataError(
            f"the probabilities sum to {p[bad[0]].sum():g} or leave [0, 1]",
            where=f"row {bad[0]} (the first row is 0), probs",
            fix="pass probabilities, not logits",
        )
    wrong = np.flatnonzero(~np.isin(y, np.arange(p.shape[1])))
    if len(wrong):
        raise DataError(
            f"label {y[wrong[0]]!r} is no class number below {p.shape[1]}",
            where=f"row {wrong[0]} (the first row is 0), labels",
            fix="use 0..k-1",
        )
    top = p.argmax(1)
    conf = p[np.arange(len(p)), top]
    return TopLabel(
        np.minimum(conf, 1.0), top == y, top, int(((p == conf[:, None]).sum(1) > 1).sum())
    )
