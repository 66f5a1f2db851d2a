"""The calibration error and the reliability report: value, interval, tests, one sentence."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..columns import takes_table
from ..estimate import (
    Estimate,
    Result,
    format_number,
    format_p,
    interval,
    t_quantile,
    too_rare,
)
from ..means import UNIT, difference, mean
from .rows import Bins, Rows, check, put_in_bins
from .scores import brier, smece

ROUND = 0.005  # a stated 100 % stands for 99.5 % and more
APART = 0.1  # no line is drawn across so wide a stretch of confidences without rows
POOL = 2000  # groups into which more clusters than twice this are pooled for random signs


@dataclass(frozen=True, repr=False)
class ECE(Result):
    """An expected calibration error and what to compare it with.

    value : plug-in, as other tools print it. debiased : Estimate, whose limits are low and high.
    null : what a calibrated model would score on so many rows. p_value : of the test of
    calibration. convention : how rows went into bins.
    """

    value: float
    low: float
    high: float
    n: int
    debiased: Estimate
    null: float
    p_value: float
    convention: str
    note: str = ""

    @property
    def estimate(self) -> Estimate:
        """The debiased error: what a forest of several shows."""
        return self.debiased

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        calm = f"a calibrated model would score {format_number(self.null)} ({format_p(self.p_value)})"
        return f"ECE {format_number(self.value)}; debiased {self.debiased}; {calm} | {self.convention}"

    def plot(self, **options: Any) -> Any:
        """The debiased error with its interval; dashed: what a calibrated model would score."""
        from ...plots import forest

        return forest(
            {"debiased ECE": self.debiased}, **{"zero": self.null, **options}
        )


def _by_cluster(x: Rows, b: Bins, seed: int) -> np.ndarray:
    """Sums (C, k) of outcome less confidence by cluster and bin."""
    group = np.arange(len(x.conf)) if x.cluster is None else x.cluster
    k, c = len(b.lower), int(group.max()) + 1
    if c > 2 * POOL:
        # 2,000 sums tell the null as well as a million, in a thousandth of the time
        group, c = (np.random.default_rng(seed).permutation(c) % POOL)[group], POOL
    return np.bincount(group * k + b.at, x.gap, c * k).reshape(c, k)


def null_sums(
    x: Rows, b: Bins, by: np.ndarray, draws: int, seed: int
) -> np.ndarray:
    """Sums (draws, k) of outcome less confidence per bin, had the model been calibrated.

    Without clusters they are drawn from the confidences. With clusters the centred sums of each get
    random signs (wild bootstrap), and are at least as wide as the confidences imply.
    """
    rng = np.random.default_rng(seed)
    deviation = np.sqrt(b.sums(x.noise))
    if x.cluster is None:
        return rng.standard_normal((draws, len(deviation))) * deviation
    # centred, so that a real miscalibration does not widen its own null
    by = by - by.mean(0)
    sums = (rng.integers(0, 2, (draws, len(by)), dtype=np.int8) * 2.0 - 1) @ by
    # signs are normal in the limit; few clusters have the tails of Student's t
    wide = t_quantile(0.95, max(len(by) - 1, 1)) / t_quantile(0.95, math.inf)
    return sums * wide * np.maximum(1.0, deviation / np.maximum(sums.std(0), 1e-12))


def _errors(x: Rows, b: Bins, by: np.ndarray) -> np.ndarray:
    """The standard error of each bin's sum of gaps (k,), or what confidences imply."""
    clusters = (by != 0).sum(0)
    between = np.maximum(
        (by**2).sum(0) - by.sum(0) ** 2 / np.maximum(clusters, 1), 0
    )
    spread = between * clusters / np.maximum(clusters - 1, 1)
    # A bin of one cluster has no spread to read, so its confidences tell it.
    return np.sqrt(np.where(clusters > 1, spread, b.sums(x.noise)))


def ece_of(
    x: Rows, b: Bins, *, draws: int = 1000, seed: int = 0
) -> tuple[ECE, np.ndarray]:
    """The error of one binning, and the null's sums (draws, k)."""
    from scipy import special

    n, size, by = len(x.conf), b.size, _by_cluster(x, b, seed)
    total = by.sum(0)
    gap, value = np.abs(total) / size, float(np.abs(total).sum() / n)
    # no error at all would turn a bin without spread into certainty
    s = np.maximum(_errors(x, b, by) / size, 1e-12)
    # |gap| of a noisy bin is too large on average; Kumar et al. (2019) subtract the folded normal's excess
    at_zero = s * math.sqrt(2 / math.pi) * np.exp(-((gap / s) ** 2) / 2)
    absolute = at_zero + gap * (1 - 2 * special.ndtr(-gap / s))
    best = max(0.0, float(size @ (2 * gap - absolute)) / n)
    psi = (np.sign(total)[b.at] * x.gap - value) / n
    # where some gaps change sign from sample to sample, clusters that move all bins at once seem to
    # cancel; so the interval is no narrower than that of the mean gap
    shift = (x.gap - x.gap.mean()) / n
    both = [
        interval(best, moves, x.cluster, method="debiased ECE")
        for moves in (psi, shift)
    ]
    e = replace(max(both, key=lambda e: np.nan_to_num(e.se)), missing=x.missing)
    # the sign of a gap near 0 is noise, which the influence does not know
    fold = t_quantile(e.level, math.inf) * float(np.linalg.norm(size * s)) / n
    low = best - max(best - e.low, fold) - (value - best) / 2
    high = (best + value) / 2 + max(e.high - best, fold)
    sums = null_sums(x, b, by, draws, seed)
    # One more on both sides: a finite number of draws never gives p = 0.
    hits = np.count_nonzero(np.abs(sums).sum(1) / n >= value - 1e-12)
    p_value = (hits + 1) / (draws + 1)
    null = float(np.sqrt(2 / math.pi * b.sums(x.noise)).sum() / n)
    if not math.isnan(e.low):
        # a test that does not reject and an interval that excludes 0 would contradict each other
        e = replace(
            e, low=max(low, 0.0) if p_value <= 0.05 else 0.0, high=min(high, 1.0)
        )
    doubts = {
        e.note: bool(e.note),
        f"{size.max() / n:.0%} of the rows fall in one bin": size.max() > 0.8 * n,
        "near what a calibrated model would score: collect more rows": value
        < 2 * null,
    }
    note = "; ".join(text for text, applies in doubts.items() if applies)
    return ECE(value, e.low, e.high, n, e, null, p_value, b.convention, note), sums


@takes_table("conf", "correct", "cluster")
def ece(
    conf: Any,
    correct: Any,
    *,
    cluster: Any = None,
    missing: str = "raise",
    draws: int = 1000,
    seed: int = 0,
    **binning: Any,
) -> ECE:
    """Expected calibration error: the mean distance of confidence and accuracy over bins.

    conf : (n,) in [0, 1]. correct : (n,) of 0 and 1. cluster : (n,) labels of rows that belong
    together. missing : "raise", or "count" leaves unknown rows out. binning : bins=, closed=,
    edges=, equal_mass= (see `put_in_bins`). Source: Naeini et al. 2015; debiased as
    Kumar et al. 2019.

    >>> round(ece([0.95, 1.0], [1, 0], bins=10).value, 3)
    0.475
    """
    x = check(conf, correct, cluster=cluster, missing=missing)
    return ece_of(x, put_in_bins(x.conf, **binning), draws=draws, seed=seed)[0]


BINNINGS: dict[str, dict[str, Any]] = {
    "auto": {},
    "one bin": {"bins": 1},
    "one per value": {"bins": "distinct"},
    "10 right-closed": {"bins": 10},
    "10 left-closed": {"bins": 10, "closed": "left"},
    "15 right-closed": {"bins": 15},
    "15 left-closed": {"bins": 15, "closed": "left"},
    "100 right-closed": {"bins": 100},
    "10 of equal mass": {"bins": 10, "equal_mass": True},
}


@takes_table("conf", "correct", "cluster")
def sensitivity(
    conf: Any,
    correct: Any,
    *,
    cluster: Any = None,
    missing: str = "raise",
    seed: int = 0,
) -> Any:
    """The error of the same rows under nine binnings: how much of the number is convention.

    Returns Results: binning -> ECE.

    >>> round(sensitivity([0.9] * 4, [1, 1, 1, 0])["one bin"].value, 3)
    0.15
    """
    from ...records.tables import Results  # imports pandas, so not above

    x = check(conf, correct, cluster=cluster, missing=missing)
    return Results(
        {
            name: ece_of(x, put_in_bins(x.conf, **how), draws=200, seed=seed)[0]
            for name, how in BINNINGS.items()
        }
    )


@dataclass(frozen=True, repr=False)
class LogisticTest(Result):
    """Is logit(accuracy) = intercept + slope * logit(confidence) with intercept 0 and slope 1?

    p_value : of both together, NaN when rows are worth fewer than four clusters. extreme : above 0
    when the confidences lie too far from 1/2, below 0 when too near; a direction, no estimate.
    """

    p_value: float
    extreme: float

    def __str__(self) -> str:
        return f"logistic recalibration: {format_p(self.p_value)}"


@takes_table("conf", "correct", "cluster")
def logistic_test(
    conf: Any, correct: Any = None, *, cluster: Any = None, missing: str = "raise"
) -> LogisticTest:
    """Test of calibration: intercept 0 and slope 1 of a logistic recalibration (Cox 1958).

    On 60 rows of an over-confident model it found the fault in .62 of samples, the ECE's test in .40.

    >>> logistic_test([0.9] * 50, [1] * 25 + [0] * 25).p_value < 0.001
    True
    """
    from scipy import special

    x = check(conf, correct, cluster=cluster, missing=missing)
    # clusters of unequal size are worth fewer equal ones (Kish), and so are their degrees
    size = np.bincount(np.arange(len(x.conf)) if x.cluster is None else x.cluster)
    worth = len(x.conf) ** 2 / float(size @ size)
    if worth < 4:
        return LogisticTest(math.nan, 0.0)
    # a single wrong answer at 100 % would otherwise decide the test alone
    p = np.clip(x.conf, ROUND, 1 - ROUND)
    z = np.column_stack([np.ones(len(p)), np.log(p / (1 - p))])
    if np.ptp(p) < 1e-9:  # one distinct confidence has no slope
        z = z[:, :1]
    score, k = z * (x.correct - p)[:, None], z.shape[1]
    # a score test needs no fit: both sums are 0 on average for a calibrated model
    total, noise = score.sum(0), (p * (1 - p))[:, None]
    step = np.linalg.solve((z * noise).T @ z, total)
    p_value = float(special.chdtrc(k, step @ total))
    if x.cluster is not None:
        by = np.column_stack([np.bincount(x.cluster, column) for column in score.T])
        mid, c, rest = by.mean(0), len(by), worth - k
        spread = (by - mid).T @ (by - mid) / max(c - 1, 1)
        # Hotelling's T, and the F that it is worth
        distance = c * float(mid @ np.linalg.pinv(spread) @ mid)
        f = distance * rest / (k * (rest + k - 1))
        # Clusters may make the test only more cautious, so the larger p counts.
        p_value = max(float(special.fdtrc(k, rest, f)), p_value)
    return LogisticTest(p_value, -float(step[1]) if k > 1 else 0.0)


@takes_table("conf", "correct", "cluster")
def overconfidence(
    conf: Any, correct: Any = None, *, cluster: Any = None, missing: str = "raise"
) -> Estimate:
    """Mean confidence less accuracy; above 0 the model claims more than it delivers.

    There is no interval when right or wrong rows lie in fewer than five clusters.

    >>> round(overconfidence([0.9] * 4, [1, 0, 1, 0]).value, 3)
    0.4
    """
    x = check(conf, correct, cluster=cluster, missing=missing)
    e = difference(x.conf, x.correct, cluster=x.cluster, bounds=UNIT)
    # rows that are all right say nothing of how often a wrong one comes
    if note := too_rare(x.correct, x.cluster):
        e = replace(e, low=math.nan, high=math.nan, se=math.nan, note=note)
    return replace(
        e, method="overconfidence", noun="overconfidence", missing=x.missing
    )


@dataclass(frozen=True, repr=False)
class Reliability(Result):
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

    def in_bins(self, **binning: Any) -> Reliability:
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
        error = f"ECE {format_number(self.ece.value)}, {format_number(self.ece.null)} if calibrated"
        if math.isnan(p):
            return "Too few clusters to test calibration."
        if p < 0.05:
            side = "too extreme" if self.test.extreme > 0 else "not extreme enough"
            fault = f"confidences are {side}"
            if gap.excludes(0) or self.test.extreme == 0:
                fault = f"{'over' if gap.value > 0 else 'under'}-confident by {gap}"
            return f"Miscalibrated ({format_p(p)}): {fault}; {error}."
        # a second test, so it must be surer
        if self.ece.p_value < 0.01:
            return f"Miscalibrated in some bins ({format_p(self.ece.p_value)}): {error}."
        return f"No miscalibration is shown ({format_p(p)}): {error}, gap {gap}."

    def __str__(self) -> str:
        rows = [
            self.sentence,
            self.ece,
            f"mean confidence less accuracy {self.gap}",
            self.test,
            f"MCE {self.mce}",
            f"Brier {self.brier}",
            f"smECE {format_number(self.smece)}",
        ]
        return "\n".join(map(str, rows))

    def _repr_html_(self) -> str:
        return super()._repr_html_() + self.bins.to_html(
            index=False, float_format="%.3f"
        )

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
        from ...plots import reliability_figure

        return reliability_figure(
            {"": self}, **{"subtitle": self.sentence, **options}
        )


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
    Miscalibrated (p<.001): over-confident by .400 [.25, .54], n=50; ECE .400, .034 if calibrated.
    """
    x = check(conf, correct, cluster=cluster, missing=missing)
    b = put_in_bins(x.conf, **binning)
    error, sums = ece_of(x, b, draws=draws, seed=seed)
    table = _bins(x, b, sums)
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


def _bins(x: Rows, b: Bins, sums: np.ndarray) -> Any:
    import pandas as pd

    # 16 bits: numpy then sorts in one pass
    size, order = b.size, np.argsort(b.at.astype(np.int16), kind="stable")
    rates = []
    for here in np.split(order, np.cumsum(size.astype(int))[:-1]):
        group = None if x.cluster is None else x.cluster[here]
        rates.append(mean(x.correct[here], cluster=group))
    conf = b.sums(x.conf) / size
    band = np.clip(conf + np.quantile(sums, [0.025, 0.975], axis=0) / size, 0, 1)
    columns = {
        "lower": b.lower,
        "upper": b.upper,
        "n": size.astype(int),
        "conf": conf,
    }
    for name, field in (("accuracy", "value"), ("low", "low"), ("high", "high")):
        columns[name] = [getattr(e, field) for e in rates]
    return pd.DataFrame({**columns, "band_low": band[0], "band_high": band[1]})


def _largest(table: Any) -> Estimate:
    """The bin with the largest gap. It was chosen for its size, so it is too large on average."""
    gap = table["accuracy"] - table["conf"]
    row = table.loc[gap.abs().idxmax()]
    # the gap has a sign here, so its limits are the accuracy's, moved and cut at 0
    sign = 1 if row["accuracy"] > row["conf"] else -1
    low, high = sorted(np.maximum(0.0, sign * (row[["low", "high"]] - row["conf"])))
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
    filled = np.flatnonzero(rows)
    conf, w = filled / 1000, rows[filled]
    fit = isotonic_regression(right[filled] / w, weights=w).x
    empty = np.flatnonzero(np.diff(conf) > APART) + 1
    conf, fit = np.insert(conf, empty, np.nan), np.insert(fit, empty, np.nan)
    return pd.DataFrame({"conf": conf, "accuracy": fit})
