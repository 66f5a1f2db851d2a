"""The reliability report: bins, curve, errors, tests, and one sentence from all of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..stats.columns import takes_table
from ..stats.estimate import Estimate, Shown, number
from ..stats.means import UNIT, difference, mean
from .ece import ECE, ece_of
from .rows import Binned, Rows, binned, check
from .scores import brier, smece

ROUND = 0.005  # a stated 100 % stands for 99.5 % and more
APART = 0.1  # no line is drawn across so wide a stretch of confidences without rows


@dataclass(frozen=True, repr=False)
class LogisticTest(Shown):
    """Is logit(accuracy) = intercept + slope * logit(confidence) with intercept 0 and slope 1?

    p_value : of both together, NaN when rows are worth fewer than four clusters. intercept, slope : one Newton step from (0,
    1). A slope below 1 means that the confidences are too extreme.
    """

    p_value: float
    intercept: float
    slope: float

    def __str__(self) -> str:
        fit = f"intercept {number(self.intercept, 2)}, slope {number(self.slope, 2)}"
        return f"logistic recalibration: {fit}; calibrated: p={number(self.p_value)}"


@takes_table("conf", "correct", "cluster")
def logistic_test(
    conf: Any, correct: Any = None, *, cluster: Any = None, missing: str = "raise"
) -> LogisticTest:
    """Test of calibration: intercept 0 and slope 1 of a logistic recalibration (Cox 1958).

    On 60 rows of an over-confident model it finds the fault three times as often as the test of the
    ECE.

    >>> logistic_test([0.9] * 50, [1] * 25 + [0] * 25).p_value < 0.001
    True
    """
    from scipy import special

    x = check(conf, correct, cluster=cluster, missing=missing)
    p = np.clip(x.conf, ROUND, 1 - ROUND)
    z = np.column_stack([np.ones(len(p)), np.log(p / (1 - p))])
    if np.ptp(p) < 1e-9:  # one distinct confidence has no slope
        z = z[:, :1]
    score, k = z * (x.correct - p)[:, None], z.shape[1]
    step = np.linalg.solve((z * (p * (1 - p))[:, None]).T @ z, score.sum(0))
    p_value = float(special.chdtrc(k, step @ score.sum(0)))
    if x.cluster is not None:
        by = np.column_stack([np.bincount(x.cluster, column) for column in score.T])
        size, mid = np.bincount(x.cluster), by.mean(0)
        # clusters of unequal size are worth fewer equal ones (Kish), and so are their degrees
        c, left = len(by), len(x.conf) ** 2 / float(size @ size) - k
        inner = np.linalg.pinv((by - mid).T @ (by - mid) / max(c - 1, 1))
        distance = c * float(mid @ inner @ mid) * left / (k * (left + k - 1))
        clustered = float(special.fdtrc(k, left, distance)) if left >= 2 else math.nan
        p_value = max(clustered, p_value)
    return LogisticTest(p_value, float(step[0]), 1 + float(step[1] if k > 1 else 0))


@takes_table("conf", "correct", "cluster")
def overconfidence(
    conf: Any, correct: Any = None, *, cluster: Any = None, missing: str = "raise"
) -> Estimate:
    """Mean confidence less accuracy; above 0 the model claims more than it delivers.

    >>> round(overconfidence([0.9] * 4, [1, 0, 1, 0]).value, 3)
    0.4
    """
    x = check(conf, correct, cluster=cluster, missing=missing)
    e, method = difference(x.conf, x.correct, cluster=x.cluster, bounds=UNIT), "overconfidence"
    return replace(e, method=method, noun=method, missing=x.missing)


@dataclass(frozen=True, repr=False)
class Reliability(Shown):
    """A reliability report.

    bins : DataFrame, a row for each bin: lower, upper, n, conf, accuracy with low and high, and the
    band (band_low, band_high) of a calibrated model. curve : the isotonic (CORP) line, NaN across
    stretches without rows. gap : mean confidence less accuracy. test : of a logistic recalibration.
    mce : the largest gap of a bin.
    """

    ece: ECE
    mce: Estimate
    brier: Estimate
    smece: float
    gap: Estimate
    test: LogisticTest
    bins: Any
    curve: Any
    rows: Rows

    def rebinned(self, **binning: Any) -> Reliability:
        """The report of the same rows in other bins."""
        return reliability(self.rows, **binning)

    @property
    def estimate(self) -> Estimate:
        """The debiased ECE."""
        return self.ece.debiased

    @property
    def sentence(self) -> str:
        """One conclusion from the logistic test, the gap and the ECE."""
        p, gap = self.test.p_value, self.gap
        if math.isnan(p):
            return "Too few clusters to test calibration."
        if p < 0.05:
            fault = f"confidence and accuracy differ by {gap} on average"
            if gap.excludes(0):
                side = "over" if gap.value > 0 else "under"
                fault = f"{side}-confident by {gap}"
            elif abs(self.test.slope - 1) > 0.05:
                side = "too extreme" if self.test.slope < 1 else "not extreme enough"
                fault = f"confidences are {side} (slope {number(self.test.slope, 2)})"
            return f"Miscalibrated (p={number(p)}): {fault}; {self._ece()}."
        # a second test, so it must be surer
        if self.ece.p_value < 0.01:
            return f"Miscalibrated in some bins (p={number(self.ece.p_value)}): {self._ece()}."
        return f"No miscalibration is shown (p={number(p)}): {self._ece()}, gap {gap}."

    def _ece(self) -> str:
        return f"ECE {number(self.ece.value)}, {number(self.ece.null)} if calibrated"

    def __str__(self) -> str:
        rows = [self.sentence, self.ece, f"mean confidence less accuracy {self.gap}", self.test]
        rows += [f"MCE {self.mce}", f"Brier {self.brier}", f"smECE {number(self.smece)}"]
        return "\n".join(map(str, rows))

    def _repr_html_(self) -> str:
        return super()._repr_html_() + self.bins.to_html(index=False, float_format="%.3f")

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "ece": self.ece.as_dict(),
            "mce": self.mce.value,
            "brier": self.brier.value,
            "smece": self.smece,
            "gap": self.gap.as_dict(),
            "logistic_p": self.test.p_value,
            "sentence": self.sentence,
            "table": self.bins.to_dict("records"),
        }

    def plot(self, **options: Any) -> Any:
        """The reliability diagram (plotly)."""
        from ..plots import reliability_figure

        return reliability_figure({"": self}, **{"subtitle": self.sentence, **options})


@takes_table("conf", "correct", "cluster")
def reliability(
    conf: Any,
    correct: Any = None,
    *,
    cluster: Any = None,
    missing: str = "raise",
    draws: int = 1000,
    seed: int = 0,
    **binning: Any,
) -> Reliability:
    """The numbers of a reliability diagram, the errors, the tests, and a sentence.

    Arguments as in `ece`.

    >>> print(reliability([0.9] * 50, [1] * 25 + [0] * 25).sentence)
    Miscalibrated (p=.000): over-confident by .400 [.25, .54], n=50; ECE .400, .034 if calibrated.
    """
    x = check(conf, correct, cluster=cluster, missing=missing)
    b = binned(x.conf, **binning)
    error, _, drawn = ece_of(x, b, draws=draws, seed=seed)
    table = _bins(x, b, drawn)
    return Reliability(
        ece=error,
        mce=_largest(table),
        brier=brier(x),
        smece=smece(x),
        gap=overconfidence(x),
        test=logistic_test(x),
        bins=table,
        curve=_isotonic(x),
        rows=x,
    )


def _bins(x: Rows, b: Binned, drawn: np.ndarray) -> Any:
    import pandas as pd

    # 16 bits: numpy then sorts in one pass
    size, order = b.size, np.argsort(b.at.astype(np.int16), kind="stable")
    rates = []
    for here in np.split(order, np.cumsum(size.astype(int))[:-1]):
        group = None if x.cluster is None else x.cluster[here]
        rates.append(mean(x.correct[here], cluster=group))
    conf = b.sums(x.conf) / size
    band = np.clip(conf + np.quantile(drawn, [0.025, 0.975], axis=0) / size, 0, 1)
    columns = {"lower": b.lower, "upper": b.upper, "n": size.astype(int), "conf": conf}
    for name, field in (("accuracy", "value"), ("low", "low"), ("high", "high")):
        columns[name] = [getattr(e, field) for e in rates]
    return pd.DataFrame({**columns, "band_low": band[0], "band_high": band[1]})


def _largest(table: Any) -> Estimate:
    """The bin with the largest gap. It was chosen for its size, so it is too large on average."""
    gap = table["accuracy"] - table["conf"]
    row = table.loc[gap.abs().idxmax()]
    sign = 1 if row["accuracy"] > row["conf"] else -1
    low, high = sorted(max(0.0, sign * (row[k] - row["conf"])) for k in ("low", "high"))
    return Estimate(
        float(gap.abs().max()),
        low,
        high,
        int(row["n"]),
        method=f"largest gap, bin {row['lower']:g} to {row['upper']:g}",
    )


def _isotonic(x: Rows) -> Any:
    """The isotonic line (Dimitriadis et al. 2021) on confidences rounded to .001."""
    import pandas as pd
    from scipy.optimize import isotonic_regression

    at = np.rint(x.conf * 1000).astype(int)
    rows, right = np.bincount(at), np.bincount(at, x.correct)
    used = np.flatnonzero(rows)
    conf, fit = used / 1000, isotonic_regression(right[used] / rows[used], weights=rows[used]).x
    empty = np.flatnonzero(np.diff(conf) > APART) + 1
    conf, fit = np.insert(conf, empty, np.nan), np.insert(fit, empty, np.nan)
    return pd.DataFrame({"conf": conf, "accuracy": fit})
