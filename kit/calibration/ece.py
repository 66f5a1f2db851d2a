"""Expected calibration error: plug-in, debiased with interval, under calibration, and a test."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from ..records.tables import Results
from ..stats.columns import takes_table
from ..stats.estimate import Estimate, Shown, interval, number, t_quantile
from .rows import Binned, Rows, binned, check

POOL = 2000  # groups into which more clusters than twice this are pooled for random signs


@dataclass(frozen=True, repr=False)
class ECE(Shown):
    """An expected calibration error and what to compare it with.

    value : plug-in, as other tools print it. debiased : Estimate, whose low and high are `low` and
    `high`. null : what a calibrated model would score on so many rows. p_value : of the test of
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
        calm = f"a calibrated model would score {number(self.null)} (p={number(self.p_value)})"
        return f"ECE {number(self.value)}; debiased {self.debiased}; {calm} | {self.convention}"

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    def plot(self, **options: Any) -> Any:
        """The debiased error with its interval; dashed: what a calibrated model would score."""
        from ..plots import forest

        return forest({"debiased ECE": self.debiased}, **{"zero": self.null, **options})


def _by_cluster(x: Rows, b: Binned, seed: int) -> np.ndarray:
    """Sums (C, k) of outcome less confidence by cluster and bin."""
    group, k = np.arange(len(x.conf)) if x.cluster is None else x.cluster, len(b.lower)
    c = int(group.max()) + 1
    if c > 2 * POOL:
        group, c = (np.random.default_rng(seed).permutation(c) % POOL)[group], POOL
    return np.bincount(group * k + b.at, x.gap, c * k).reshape(c, k)


def null_sums(x: Rows, b: Binned, by: np.ndarray, draws: int, seed: int) -> np.ndarray:
    """Sums (draws, k) of outcome less confidence per bin, had the model been calibrated.

    Without clusters they are drawn from the confidences. With clusters the centred sums of each get
    random signs (wild bootstrap), and are at least as wide as the confidences imply.
    """
    rng = np.random.default_rng(seed)
    deviation = np.sqrt(b.sums(x.conf * (1 - x.conf)))
    if x.cluster is None:
        return rng.standard_normal((draws, len(deviation))) * deviation
    by = by - by.mean(0)
    signs = rng.integers(0, 2, (draws, len(by)), dtype=np.int8) * 2.0 - 1
    drawn = signs @ by
    wide = t_quantile(0.95, max(len(by) - 1, 1)) / t_quantile(0.95, math.inf)
    return drawn * wide * np.maximum(1.0, deviation / np.maximum(drawn.std(0), 1e-12))


def _errors(x: Rows, b: Binned, by: np.ndarray) -> np.ndarray:
    """The standard error of each bin's sum of gaps (k,), or what confidences imply."""
    clusters = (by != 0).sum(0)
    between = np.maximum((by**2).sum(0) - by.sum(0) ** 2 / np.maximum(clusters, 1), 0)
    spread = between * clusters / np.maximum(clusters - 1, 1)
    return np.sqrt(np.where(clusters > 1, spread, b.sums(x.conf * (1 - x.conf))))


def ece_of(
    x: Rows, b: Binned, *, draws: int = 1000, seed: int = 0
) -> tuple[ECE, np.ndarray, np.ndarray]:
    """The error of one binning, each row's influence (n,), and the null's sums (draws, k)."""
    from scipy import special

    n, size, by = len(x.conf), b.size, _by_cluster(x, b, seed)
    total = by.sum(0)
    gap, value = np.abs(total) / size, float(np.abs(total).sum() / n)
    s = np.maximum(_errors(x, b, by) / size, 1e-12)
    # |gap| of a noisy bin is too large on average; Kumar et al. (2019) subtract the folded normal's excess
    folded = s * math.sqrt(2 / math.pi) * np.exp(-((gap / s) ** 2) / 2)
    folded += gap * (1 - 2 * special.ndtr(-gap / s))
    best = max(0.0, float(size @ (2 * gap - folded)) / n)
    psi = (np.sign(total)[b.at] * x.gap - value) / n
    # where some gaps change sign from sample to sample, clusters that move all bins at once seem to
    # cancel; so the interval is no narrower than that of the mean gap
    shift = (x.gap - x.gap.mean()) / n
    both = [interval(best, moves, x.cluster, method="debiased ECE") for moves in (psi, shift)]
    e = replace(max(both, key=lambda e: np.nan_to_num(e.se)), missing=x.missing)
    # the sign of a gap near 0 is noise, which the influence does not know
    fold = t_quantile(e.level, math.inf) * math.sqrt(float((size * s) @ (size * s))) / n
    low = best - max(best - e.low, fold) - (value - best) / 2
    high = (best + value) / 2 + max(e.high - best, fold)
    drawn = null_sums(x, b, by, draws, seed)
    beyond = (np.abs(drawn).sum(1) / n >= value - 1e-12).sum()
    p_value = float((1 + beyond) / (draws + 1))
    null = float(np.sqrt(2 / math.pi * b.sums(x.conf * (1 - x.conf))).sum() / n)
    if not math.isnan(e.low):
        low = 0.0 if p_value > 0.05 else max(low, 0.0)
        e = replace(e, low=low, high=min(high, 1.0))
    notes = [e.note]
    if size.max() > 0.8 * n:
        notes.append(f"{size.max() / n:.0%} of the rows fall in one bin")
    if value < 2 * null:
        notes.append("not far from what a calibrated model would score: collect more rows")
    error = ECE(
        value, e.low, e.high, n, e, null, p_value, b.convention, "; ".join(filter(None, notes))
    )
    return error, psi, drawn


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
    edges=, equal_mass= (see `kit.calibration.rows.binned`). Source: Naeini et al. 2015; debiased as
    Kumar et al. 2019.

    >>> round(ece([0.95, 1.0], [1, 0], bins=10).value, 3)
    0.475
    """
    x = check(conf, correct, cluster=cluster, missing=missing)
    return ece_of(x, binned(x.conf, **binning), draws=draws, seed=seed)[0]


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
    conf: Any, correct: Any, *, cluster: Any = None, missing: str = "raise", seed: int = 0
) -> Results:
    """The error of the same rows under nine binnings: how much of the number is convention.

    >>> round(sensitivity([0.9] * 4, [1, 1, 1, 0])["one bin"].value, 3)
    0.15
    """
    x = check(conf, correct, cluster=cluster, missing=missing)
    out = Results()
    for name, how in BINNINGS.items():
        out[name] = ece_of(x, binned(x.conf, **how), draws=200, seed=seed)[0]
    return out
