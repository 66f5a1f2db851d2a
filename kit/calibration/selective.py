"""Selective prediction: what error remains when only the most confident answers are kept. Tied confidences in expectation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from ..stats.estimate import Estimate
from . import resample
from .inputs import Inputs, check


@dataclass(frozen=True)
class RiskCoverage:
    """Arrays (m,) per distinct confidence, most confident first: threshold, coverage, risk (error rate among those kept).

    aurc : mean over rows of the risk at that row's coverage (Geifman & El-Yaniv 2019). augrc : the same of errors kept / all
    rows (Traub et al. 2024). best_aurc : with the same errors, perfectly ordered; random_aurc : in random order.
    """

    threshold: np.ndarray
    coverage: np.ndarray
    risk: np.ndarray
    n_at: np.ndarray
    aurc: Estimate
    augrc: Estimate
    best_aurc: float
    random_aurc: float
    n: int
    missing: int
    convention: str = "most confident kept first; tied rows in expectation over their orders; means over coverages 1/n..n/n"

    def __str__(self) -> str:
        return f"AURC {self.aurc}; AUGRC {self.augrc}; perfect order {self.best_aurc:.3f}, random {self.random_aurc:.3f} | {self.convention}"

    def table(self) -> list[dict[str, float]]:
        """One dict per distinct confidence."""
        names = ("threshold", "coverage", "risk", "n_at")
        return [
            dict(zip(names, map(float, row), strict=True))
            for row in zip(*(getattr(self, n) for n in names), strict=True)
        ]


def areas(size: np.ndarray, errors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """AURC and AUGRC (...,) from block weights and errors (..., m), most confident first.

    Within a block of N rows with e errors after n0 rows with E errors the expected risk at its j-th row is
    (E + j e/N) / (n0 + j); the sum over j has the closed form below (digamma).
    """
    after, wrong_after = np.cumsum(size, -1), np.cumsum(errors, -1)
    before, wrong = after - size, wrong_after - errors
    slope = np.divide(errors, size, out=np.zeros_like(errors), where=size > 0)
    harmonic = special.digamma(after + 1) - special.digamma(before + 1)
    n = after[..., -1]
    risk = (wrong - slope * before) * harmonic + slope * size
    general = wrong * size + slope * size * (size + 1) / 2
    return risk.sum(-1) / n, general.sum(-1) / n**2


def _blocks(x: Inputs) -> tuple[np.ndarray, np.ndarray]:
    values, at = np.unique(-np.asarray(x.conf, dtype=float), return_inverse=True)
    return -values, at


def risk_coverage(
    conf: Any,
    correct: Any,
    *,
    cluster: Any = None,
    weights: Any = None,
    missing: str = "raise",
    n_boot: int = 500,
    level: float = 0.95,
    seed: int = 0,
) -> RiskCoverage:
    """Risk-coverage curve with AURC and AUGRC; shuffling tied rows does not move them.

    conf : (n,) in [0, 1]. correct : (n,). Intervals: percentile bootstrap over rows or clusters.

    >>> round(risk_coverage([.9, .8, .7, .6], [1, 1, 0, 1]).aurc.value, 6)
    0.145833
    """
    x = check(conf, correct, cluster=cluster, weights=weights, missing=missing)
    values, at = _blocks(x)
    w = np.ones(x.n) if x.weights is None else x.weights
    wrong = w * (1.0 - x.correct)
    size, errors = np.bincount(at, weights=w), np.bincount(at, weights=wrong)
    keep = size > 0
    aurc, augrc = (float(v) for v in areas(size[keep], errors[keep]))
    limits = _limits(x, at, w, n_boot, level, seed)
    total = errors.sum()
    best = float(areas(np.array([size.sum() - total, total]), np.array([0.0, total]))[0])
    estimates = [
        Estimate(
            v,
            float(lo),
            float(hi),
            x.n,
            x.n_clusters,
            f"{name}, percentile bootstrap",
            "",
            x.missing,
            level,
        )
        for v, (lo, hi), name in zip((aurc, augrc), limits, ("AURC", "AUGRC"), strict=True)
    ]
    done = np.cumsum(size)[keep]
    return RiskCoverage(
        values[keep],
        done / size.sum(),
        np.cumsum(errors)[keep] / done,
        size[keep],
        estimates[0],
        estimates[1],
        best,
        float(total / size.sum()),
        x.n,
        x.missing,
    )


def _limits(
    x: Inputs, at: np.ndarray, w: np.ndarray, n_boot: int, level: float, seed: int
) -> list[tuple[float, float]]:
    """Bootstrap limits of AURC and AUGRC; over 500 distinct confidences are resampled in 500 neighbouring groups."""
    from scipy import sparse

    if n_boot < 2:
        return [(np.nan, np.nan)] * 2
    m = int(at.max()) + 1
    group = at if m <= 500 else (np.cumsum(np.bincount(at))[at] - 1) * 500 // x.n
    m = min(m, 500)
    j = group * 2 + np.asarray(x.correct).astype(int)
    rng = np.random.default_rng(seed)
    if x.cluster is None:
        cell = np.bincount(j, weights=w, minlength=2 * m)
        drawn = rng.multinomial(max(1, round(cell.sum())), cell / cell.sum(), n_boot).astype(float)
    else:
        units = sparse.csr_matrix((w, (x.cluster, j)), shape=(x.n_clusters, 2 * m))
        drawn = np.concatenate([b @ units for _, b in resample.draws(units.shape[0], n_boot, rng)])
    drawn = drawn.reshape(n_boot, m, 2)
    both = areas(drawn.sum(-1), drawn[:, :, 0])
    return [tuple(np.quantile(v, [(1 - level) / 2, (1 + level) / 2])) for v in both]  # type: ignore[misc]
