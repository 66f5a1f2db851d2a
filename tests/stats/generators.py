"""Rows in unequal clusters, and the coverage of an interval over many such samples.

A row has a truth y, a judge's verdict, a second judge's, a confidence, an overconfident one, and scores of two
policies. Everything is alike within clusters as far as `likeness` says (a Gaussian copula).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtr

from kit import calibration, stats


@dataclass(frozen=True)
class Sample:
    cluster: np.ndarray
    y: np.ndarray
    judge: np.ndarray
    second: np.ndarray
    conf: np.ndarray
    bold: np.ndarray
    new: np.ndarray
    old: np.ndarray
    label: np.ndarray  # y, NaN on rows without a label


def sample(
    rng: np.random.Generator, clusters: int, likeness: float, *, rate: float = 0.0
) -> Sample:
    """Clusters of 1 to 60 rows (log-uniform); rate shifts the share of right rows."""
    size = np.exp(rng.uniform(0, math.log(60.99), clusters)).astype(int)
    cluster = np.repeat(np.arange(clusters), size)

    def latent() -> np.ndarray:
        shared = rng.standard_normal(clusters)[cluster]
        alone = rng.standard_normal(len(cluster))
        return math.sqrt(likeness) * shared + math.sqrt(1 - likeness) * alone

    truth = ndtr(0.4 + rate + 0.8 * latent())
    y = (ndtr(latent()) < truth) * 1.0
    judge, second = (np.where(ndtr(latent()) < q, 1 - y, y) for q in (0.15, 0.25))
    bold = np.round(np.clip(truth + 0.12, 0, 1), 2)
    new, old = ndtr(latent()), ndtr(latent())
    labelled = rng.random(clusters)[cluster] < 0.5
    label = np.where(labelled, y, np.nan)
    return Sample(cluster, y, judge, second, np.round(truth, 2), bold, new, old, label)


STATISTICS: dict[str, Callable[[Sample], stats.Estimate]] = {
    "mean": lambda s: stats.mean(s.new, cluster=s.cluster),
    "share": lambda s: stats.mean(s.y, cluster=s.cluster),
    "accuracy": lambda s: stats.accuracy(s.judge, s.y, cluster=s.cluster),
    "kappa": lambda s: stats.kappa(s.judge, s.y, cluster=s.cluster),
    "difference": lambda s: stats.difference(s.new, s.old, cluster=s.cluster),
    "difference of shares": lambda s: stats.difference(s.judge, s.second, cluster=s.cluster),
    "kappa difference": lambda s: stats.agreement_difference(
        s.judge, s.second, s.y, cluster=s.cluster
    ),
    "auroc": lambda s: stats.auroc(s.conf, s.y, cluster=s.cluster),
    "brier": lambda s: calibration.brier(s.bold, s.y, cluster=s.cluster),
    "brier difference": lambda s: stats.difference(
        (s.bold - s.y) ** 2, (s.conf - s.y) ** 2, cluster=s.cluster, bounds=(0, 1)
    ),
    "overconfidence": lambda s: calibration.overconfidence(s.bold, s.y, cluster=s.cluster),
    "ece": lambda s: calibration.ece(s.bold, s.y, cluster=s.cluster, bins=10, draws=200).debiased,
    "ece of a calibrated model": lambda s: (
        calibration.ece(s.conf, s.y, cluster=s.cluster, bins=10, draws=200).debiased
    ),
    "aurc": lambda s: calibration.risk_coverage(s.conf, s.y, cluster=s.cluster).aurc,
    "label mean": lambda s: stats.label_mean(s.judge, s.label, design="random", cluster=s.cluster),
}


def _change_in_ece(s: Sample) -> stats.Estimate:
    return calibration.compare((s.bold, s.y), (s.conf, s.y), cluster=s.cluster).changes["ECE"]


def _shifted(s: Sample) -> stats.Estimate:
    """Labels of half the clusters, as if they came from elsewhere."""
    if np.isfinite(s.label).all():
        return stats.Estimate(math.nan)
    return stats.label_mean(s.judge, s.label, design="shifted", cluster=s.cluster)


STATISTICS |= {"change in ece": _change_in_ece, "label mean, shifted": _shifted}


@lru_cache(None)
def population(name: str, likeness: float, rate: float = 0.0) -> float:
    """The value of a statistic on 40,000 clusters."""
    whole = sample(np.random.default_rng(1), 40_000, likeness, rate=rate)
    return STATISTICS[name](whole).value


def coverage(
    name: str, clusters: int, likeness: float, *, draws: int = 200, rate: float = 0.0, seed: int = 0
) -> tuple[float, float]:
    """The share of intervals that hold the population's value, and the share of refusals."""
    truth, hits, n = population(name, likeness, rate), 0, 0
    for i in range(draws):
        rng = np.random.default_rng([seed, i, clusters])
        e = STATISTICS[name](sample(rng, clusters, likeness, rate=rate))
        if not math.isnan(e.low):
            n, hits = n + 1, hits + (e.low <= truth <= e.high)
    return hits / max(n, 1), 1 - n / draws
