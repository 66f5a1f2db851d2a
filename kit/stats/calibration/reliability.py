"""The calibration error and the reliability report: value, interval, tests, one sentence."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy import optimize, special

from ...plots import Figure, forest, reliability_figure
from ...records.tables import Results, per_group
from ..columns import Column, Floats, Ints, takes_table
from ..estimate import (
    UNIT_RANGE,
    ZERO_ERROR,
    Estimate,
    PrintedResult,
    estimate_from_influence,
    format_number,
    format_p,
    kish_size,
    rare_outcome_note,
    t_quantile,
)
from ..means import difference, mean
from .rows import Bins, ConfidenceRows, put_in_bins, read_rows
from .scores import brier, smece

# a stated 100 % stands for 99.5 % and more
ROUNDING_MARGIN = 0.005
# no line is drawn across so wide a stretch of confidences without rows
MAX_EMPTY_STRETCH = 0.1
# groups into which more clusters than twice this are pooled for random signs
POOLED_CLUSTERS = 2000
# clusters (Kish) that the logistic test needs
MIN_TEST_CLUSTERS = 4


@dataclass(frozen=True, repr=False)
class ECE(PrintedResult):
    """An expected calibration error and what to compare it with.

    value : plug-in, as other tools print it. debiased : Estimate with the interval.
    null : what a calibrated model would score on so many rows. p_value : of the test of
    calibration. convention : how rows went into bins.
    """

    value: float
    debiased: Estimate
    null: float
    p_value: float
    convention: str

    @property
    def estimate(self) -> Estimate:
        """The debiased error: what a forest of several shows."""
        return self.debiased

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return (
            f"ECE {format_number(self.value)}; debiased {self.debiased}; a calibrated "
            f"model would score {format_number(self.null)} ({format_p(self.p_value)}) "
            f"| {self.convention}"
        )

    def plot(self, **options: Any) -> Figure:
        """The debiased error with its interval; dashed: what a calibrated model would score."""
        title, _, convention = str(self).partition(" | ")
        return forest(
            {"debiased ECE": self.debiased},
            **{
                "title": title,
                "subtitle": convention,
                "zero": self.null,
                **options,
            },
        )


def gap_sums(x: ConfidenceRows, b: Bins, seed: int) -> Floats:
    """Sums (C, k) of outcome less confidence by cluster and bin; very many clusters are pooled."""
    k, group = len(b.size), x.clusters
    c = int(group.max()) + 1
    if c > 2 * POOLED_CLUSTERS:
        # 2,000 sums tell the null as well as a million, in a thousandth of the time
        pool = np.random.default_rng(seed).permutation(c) % POOLED_CLUSTERS
        group, c = pool[group], POOLED_CLUSTERS
    return np.bincount(group * k + b.at, x.gap, c * k).reshape(c, k).astype(float)


def null_sums(
    x: ConfidenceRows, b: Bins, by_cluster: Floats, draws: int, seed: int
) -> Floats:
    """Sums (draws, k) of outcome less confidence per bin, had the model been calibrated.

    Without clusters they are drawn from the confidences. With clusters the centred sums of each get
    random signs (wild bootstrap), and are at least as wide as the confidences imply.
    """
    rng = np.random.default_rng(seed)
    deviation = np.sqrt(b.sums(x.noise))
    if x.cluster is None:
        return rng.standard_normal((draws, len(deviation))) * deviation
    # centred, so that a real miscalibration does not widen its own null
    centred, c = by_cluster - by_cluster.mean(0), len(by_cluster)
    signs = rng.integers(0, 2, (draws, c), dtype=np.int8) * 2.0 - 1
    sums = signs @ centred
    # signs are normal in the limit; few clusters have the tails of Student's t
    wider = t_quantile(0.95, max(c - 1, 1)) / t_quantile(0.95, math.inf)
    ratio = deviation / np.maximum(sums.std(0), 1e-12)
    return np.asarray(sums * wider * np.maximum(1.0, ratio))


def _gap_errors(x: ConfidenceRows, b: Bins, by_cluster: Floats) -> Floats:
    """The standard error (k,) of each bin's gap; of one cluster, what its confidences imply."""
    clusters = (by_cluster != 0).sum(0)
    between = (by_cluster**2).sum(0) - by_cluster.sum(0) ** 2 / np.maximum(
        clusters, 1
    )
    variance = np.maximum(between, 0) * clusters / np.maximum(clusters - 1, 1)
    # A bin of one cluster has no spread to read, so its confidences tell it.
    variance = np.where(clusters > 1, variance, b.sums(x.noise))
    # no error at all would turn a bin without spread into certainty
    return np.maximum(np.sqrt(variance) / b.size, ZERO_ERROR)


def debias(gap: Floats, errors: Floats, size: Floats, n: int) -> float:
    """The ECE of n rows without its bias. gap, errors, size : |gap|, its error, rows of bins (k,).

    |gap| of a noisy bin is too large on average. Kumar et al. (2019) subtract the excess of the
    folded normal.
    """
    at_zero = errors * math.sqrt(2 / math.pi) * np.exp(-((gap / errors) ** 2) / 2)
    absolute = at_zero + gap * (1 - 2 * special.ndtr(-gap / errors))
    return max(0.0, float(size @ (2 * gap - absolute)) / n)


def _debiased_error(x: ConfidenceRows, b: Bins, by_cluster: Floats) -> Estimate:
    """The debiased error with its interval."""
    n, gap, errors = len(x.conf), by_cluster.sum(0), _gap_errors(x, b, by_cluster)
    plug_in = float(np.abs(gap).sum() / n)
    best = debias(np.abs(gap) / b.size, errors, b.size, n)
    # the interval of the mean gap, where it is wider: where some gaps change sign from sample to
    # sample, clusters that move all bins at once seem to cancel
    estimates = (
        estimate_from_influence(best, psi / n, x.cluster, method="debiased ECE")
        for psi in (np.sign(gap)[b.at] * x.gap - plug_in, x.gap - x.gap.mean())
    )
    e = max(estimates, key=lambda e: float(np.nan_to_num(e.se)))
    # the sign of a gap near 0 is noise, which the influence does not know
    fold = t_quantile(0.95, math.inf) * float(np.linalg.norm(b.size * errors)) / n
    low = best - max(best - e.low, fold) - (plug_in - best) / 2
    high = (best + plug_in) / 2 + max(e.high - best, fold)
    return replace(e, low=max(low, 0.0), high=min(high, 1.0), missing=x.missing)


def ece_and_null(
    x: ConfidenceRows, b: Bins, *, draws: int = 1000, seed: int = 0
) -> tuple[ECE, Floats]:
    """The error of one binning, and the sums (draws, k) of bins that a calibrated model gives."""
    n, by_cluster = len(x.conf), gap_sums(x, b, seed)
    value = float(np.abs(by_cluster.sum(0)).sum() / n)
    sums = null_sums(x, b, by_cluster, draws, seed)
    hits = np.count_nonzero(np.abs(sums).sum(1) / n >= value - 1e-12)
    # One more on both sides: a finite number of draws never gives p = 0.
    p_value = (hits + 1) / (draws + 1)
    error = _debiased_error(x, b, by_cluster)
    # a test that does not reject and an interval that excludes 0 would contradict each other
    if error.low > 0 and p_value > 0.05:
        error = replace(error, low=0.0)
    return ECE(
        value=value,
        debiased=error,
        null=float(np.sqrt(2 / math.pi * b.sums(x.noise)).sum() / n),
        p_value=p_value,
        convention=b.convention,
    ), sums


@takes_table("conf", "correct", "cluster")
def ece(
    conf: Column | ConfidenceRows,
    correct: Column = (),
    *,
    cluster: Column | None = None,
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
    x = read_rows(conf, correct, cluster=cluster, missing=missing)
    error, _ = ece_and_null(
        x, put_in_bins(x.conf, **binning), draws=draws, seed=seed
    )
    return error


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
    conf: Column,
    correct: Column,
    *,
    cluster: Column | None = None,
    missing: str = "raise",
    seed: int = 0,
) -> Results:
    """The error of the same rows under nine binnings: how much of the number is convention.

    Returns Results: binning -> ECE.

    >>> round(sensitivity([0.9] * 4, [1, 1, 1, 0])["one bin"].value, 3)
    0.15
    """
    x = read_rows(conf, correct, cluster=cluster, missing=missing)
    return Results(
        {k: ece(x, draws=200, seed=seed, **how) for k, how in BINNINGS.items()}
    )


@dataclass(frozen=True, repr=False)
class LogisticTest(PrintedResult):
    """Is logit(accuracy) = intercept + slope * logit(confidence) with intercept 0 and slope 1?

    p_value : of both together, NaN when rows are worth fewer than four clusters. extreme : above 0
    when the confidences lie too far from 1/2, below 0 when too near; a direction, not an estimate.
    """

    p_value: float
    extreme: float

    def __str__(self) -> str:
        return f"logistic recalibration: {format_p(self.p_value)}"


@takes_table("conf", "correct", "cluster")
def logistic_test(
    conf: Column | ConfidenceRows,
    correct: Column = (),
    *,
    cluster: Column | None = None,
    missing: str = "raise",
) -> LogisticTest:
    """Test of calibration: intercept 0 and slope 1 of a logistic recalibration (Cox 1958).

    On 60 rows of an over-confident model it found the fault in .62 of samples, the ECE's test in .40.

    >>> logistic_test([0.9] * 50, [1] * 25 + [0] * 25).p_value < 0.001
    True
    """
    x = read_rows(conf, correct, cluster=cluster, missing=missing)
    # clusters of unequal size are worth fewer equal ones, and so are their degrees of freedom
    n_effective = kish_size(np.bincount(x.clusters))
    if n_effective < MIN_TEST_CLUSTERS:
        return LogisticTest(math.nan, 0.0)
    # a single wrong answer at 100 % would otherwise decide the test alone
    p = np.clip(x.conf, ROUNDING_MARGIN, 1 - ROUNDING_MARGIN)
    z = np.column_stack([np.ones(len(p)), special.logit(p)])
    # one distinct confidence has no slope
    if np.ptp(p) < 1e-9:
        z = z[:, :1]
    # a score test needs no fit: both sums are 0 on average for a calibrated model
    score, noise = z * (x.correct - p)[:, None], (p * (1 - p))[:, None]
    total = score.sum(0)
    step = np.linalg.solve((z * noise).T @ z, total)
    p_value = float(special.chdtrc(len(step), step @ total))
    if x.cluster is not None:
        # Clusters may make the test only more cautious, so the larger p counts.
        p_value = max(_hotelling_p(score, x.cluster, n_effective), p_value)
    return LogisticTest(p_value, -float(step[1]) if len(step) > 1 else 0.0)


def _hotelling_p(score: Floats, cluster: Ints, n_effective: float) -> float:
    """The p-value of Hotelling's T: do the columns of scores (n, k), summed by cluster, have the mean 0?"""
    by = np.column_stack([np.bincount(cluster, column) for column in score.T])
    center, (c, k) = by.mean(0), by.shape
    covariance = (by - center).T @ (by - center) / max(c - 1, 1)
    distance = c * float(center @ np.linalg.pinv(covariance) @ center)
    # the F that it is worth
    rest = n_effective - k
    distance *= rest / (k * (rest + k - 1))
    return float(special.fdtrc(k, rest, distance))


@takes_table("conf", "correct", "cluster")
def overconfidence(
    conf: Column | ConfidenceRows,
    correct: Column = (),
    *,
    cluster: Column | None = None,
    missing: str = "raise",
) -> Estimate:
    """Mean confidence less accuracy; above 0 the model claims more than it delivers.

    There is no interval when right or wrong rows lie in fewer than five clusters.

    >>> round(overconfidence([0.9] * 4, [1, 0, 1, 0]).value, 3)
    0.4
    """
    x = read_rows(conf, correct, cluster=cluster, missing=missing)
    e = difference(x.conf, x.correct, cluster=x.cluster, bounds=UNIT_RANGE)
    # rows that are all right say nothing of how often a wrong one comes
    if note := rare_outcome_note(x.correct, x.cluster):
        e = replace(e, low=math.nan, high=math.nan, se=math.nan, note=note)
    return replace(
        e, method="overconfidence", noun="overconfidence", missing=x.missing
    )


@dataclass(frozen=True, repr=False)
class Reliability(PrintedResult):
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
    bins: pd.DataFrame
    curve: pd.DataFrame
    rows: ConfidenceRows

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
        p, e = self.test.p_value, self.ece
        error = (
            f"ECE {format_number(e.value)}, {format_number(e.null)} if calibrated"
        )
        if math.isnan(p):
            return "Too few clusters to test calibration."
        if p < 0.05:
            fault = "confidences are not extreme enough"
            if self.gap.excludes(0) or self.test.extreme == 0:
                side = "over" if self.gap.value > 0 else "under"
                fault = f"{side}-confident by {self.gap}"
            elif self.test.extreme > 0:
                fault = "confidences are too extreme"
            return f"Miscalibrated ({format_p(p)}): {fault}; {error}."
        # a second test, so it must be surer
        if e.p_value < 0.01:
            return f"Miscalibrated in some bins ({format_p(e.p_value)}): {error}."
        return (
            f"No miscalibration is shown ({format_p(p)}): {error}, gap {self.gap}."
        )

    def __str__(self) -> str:
        lines = [
            self.sentence,
            self.ece,
            f"mean confidence less accuracy {self.gap}",
            self.test,
            f"MCE {self.mce}",
            f"Brier {self.brier}",
            f"smECE {format_number(self.smece)}",
        ]
        return "\n".join(map(str, lines))

    def _repr_html_(self) -> str:
        return super()._repr_html_() + self.bins.to_html(
            index=False, float_format="{:.3f}".format
        )

    def plot(self, **options: Any) -> Figure:
        """The reliability diagram (plotly); its title is the conclusion."""
        title, _, detail = self.sentence.partition(": ")
        return reliability_figure(
            {"": self}, **{"title": title, "subtitle": detail, **options}
        )


@takes_table("conf", "correct", "cluster")
def reliability(
    conf: Column | ConfidenceRows,
    correct: Column = (),
    *,
    cluster: Column | None = None,
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
    x = read_rows(conf, correct, cluster=cluster, missing=missing)
    b = put_in_bins(x.conf, **binning)
    error, sums = ece_and_null(x, b, draws=draws, seed=seed)
    table = _bin_table(x, b, sums)
    return Reliability(
        ece=error,
        mce=_largest_gap(table),
        brier=brier(x),
        smece=smece(x),
        gap=overconfidence(x),
        test=logistic_test(x),
        bins=table,
        curve=_isotonic_curve(x),
        rows=x,
    )


def _bin_table(x: ConfidenceRows, b: Bins, sums: Floats) -> pd.DataFrame:
    rows = pd.DataFrame(
        # 16 bits: numpy then sorts in one pass
        {
            "bin": b.at.astype(np.int16),
            "correct": x.correct,
            "cluster": x.clusters,
        }
    ).sort_values("bin", kind="stable")
    rates = per_group(
        rows,
        "bin",
        mean,
        "correct",
        cluster=None if x.cluster is None else "cluster",
    )
    conf = b.sums(x.conf) / b.size
    band = np.clip(conf + np.quantile(sums, [0.025, 0.975], axis=0) / b.size, 0, 1)
    return pd.DataFrame(
        {
            "lower": b.lower,
            "upper": b.upper,
            "n": b.size.astype(int),
            "conf": conf,
            "accuracy": list(rates.value.values()),
            "low": list(rates.low.values()),
            "high": list(rates.high.values()),
            "band_low": band[0],
            "band_high": band[1],
        }
    )


def _largest_gap(table: pd.DataFrame) -> Estimate:
    """The bin with the largest gap. It was chosen for its size, so it is too large on average."""
    gap = table["accuracy"] - table["conf"]
    row = table.iloc[int(np.argmax(gap.abs()))]
    # the gap has a sign here, so its limits are the accuracy's, moved and cut at 0
    low, high = row["low"] - row["conf"], row["high"] - row["conf"]
    if row["accuracy"] <= row["conf"]:
        low, high = -high, -low
    return Estimate(
        float(gap.abs().max()),
        float(np.maximum(0.0, low)),
        float(np.maximum(0.0, high)),
        int(row["n"]),
        method=f"largest gap, bin {row['lower']:g} to {row['upper']:g}",
    )


def _isotonic_curve(x: ConfidenceRows) -> pd.DataFrame:
    """The isotonic line (Dimitriadis et al. 2021) on confidences rounded to .001."""
    at = np.rint(x.conf * 1000).astype(int)
    rows, right = np.bincount(at), np.bincount(at, x.correct)
    filled = np.flatnonzero(rows)
    conf, w = filled / 1000, rows[filled]
    line = optimize.isotonic_regression(right[filled] / w, weights=w).x
    empty = np.flatnonzero(np.diff(conf) > MAX_EMPTY_STRETCH) + 1
    conf, line = np.insert(conf, empty, np.nan), np.insert(line, empty, np.nan)
    return pd.DataFrame({"conf": conf, "accuracy": line})
