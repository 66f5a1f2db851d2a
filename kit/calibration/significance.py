"""A test of calibration: Cox's intercept and slope, cluster-robust on request."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from ..errors import DataError
from ..stats.clusters import effective_df
from ..stats.columns import takes_table
from ..stats.estimate import Estimate, number, unknown
from ..stats.ranking import rarer_worth
from ..stats.tails import chi2_above, f_above, t_quantile
from .inputs import Inputs, check


@dataclass(frozen=True)
class Cox:
    """logit P(correct) = intercept + slope * logit(confidence); calibrated = (0, 1). slope < 1: too
    extreme.
    """

    intercept: Estimate
    slope: Estimate
    p_value: float
    n: int
    note: str = ""

    def __str__(self) -> str:
        return (
            f"Cox intercept {self.intercept}, slope {self.slope}, joint Wald "
            f"p={number(self.p_value)}" + (f" ({self.note})" if self.note else "")
        )


def logit_fit(
    design: np.ndarray, y: np.ndarray, w: np.ndarray, *, ridge: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Weighted logistic regression: coefficients (d,), information matrix (d, d)."""
    from scipy import optimize

    def loss(b: np.ndarray) -> float:
        eta = design @ b
        return float(w @ (np.logaddexp(0, eta) - y * eta) + ridge / 2 * b @ b)

    def slope(b: np.ndarray) -> np.ndarray:
        return design.T @ (w * (special.expit(design @ b) - y)) + ridge * b

    def information(b: np.ndarray) -> np.ndarray:
        mu = special.expit(design @ b)
        return (design * (w * mu * (1 - mu))[:, None]).T @ design

    size = design.shape[1]
    beta = optimize.minimize(
        loss,
        np.zeros(size),
        jac=slope,
        hess=lambda b: information(b) + ridge * np.eye(size),
        method="trust-exact",
        options={"gtol": 1e-9},
    ).x
    return beta, information(beta)


def both_classes(x: Inputs, what: str) -> None:
    """DataError when all outcomes are equal."""
    y = np.asarray(x.correct)
    if len(np.unique(y)) < 2:
        word = "correct" if y[0] else "wrong"
        raise DataError(
            f"{what} needs right and wrong rows; all {x.n} are {word}",
            where=f"rows 0 to {x.n - 1}, correct",
            fix="ece, smece and brier work with one class; for this, collect rows of the other",
        )


@takes_table("conf", "correct", "cluster", "weights")
def cox(
    conf: Any,
    correct: Any,
    *,
    eps: float | None = None,
    cluster: Any = None,
    weights: Any = None,
    missing: str = "raise",
    level: float = 0.95,
) -> Cox:
    """Cox recalibration: intercept and slope with intervals (cluster jackknife-t), and the joint
    test of (0, 1):
    Wald's, by clusters an F test with their degrees of freedom. Separated rows give no slope and
    say so.

    eps : confidences of exactly 0 and 1 have no logit; with eps they are moved to eps and 1 - eps
        and counted in the note, without it they raise. Source: Cox 1958.

    >>> cox([.2, .2, .2, .2, .8, .8, .8, .8], [1, 0, 0, 0, 1, 1, 1, 0]).slope.value < 1
    True
    """
    x = check(conf, correct, cluster=cluster, weights=weights, missing=missing)
    both_classes(x, "Cox regression")
    p = np.asarray(x.conf, dtype=float)
    w = np.ones(x.n) if x.weights is None else x.weights
    edge = np.flatnonzero((p <= 0) | (p >= 1))
    if len(edge) and eps is None:
        raise DataError(
            f"confidence {p[edge[0]]:g} has no logit ({len(edge)} such rows)",
            where=f"conf, row {edge[0]}",
            fix="pass eps, for example eps=0.005, to move 0 and 1 inwards by it; the move is "
            "counted in the note",
        )
    z = special.logit(np.clip(p, eps, 1 - eps) if len(edge) else p)
    if np.ptp(z) < 1e-12:
        raise DataError(
            "all confidences are equal: a slope cannot be fitted",
            where="argument conf",
            fix="use ece",
        )
    if (parted := _separated(x, z, level)) is not None:
        return parted
    design = np.column_stack([np.ones_like(z), z])
    beta, info = logit_fit(design, np.asarray(x.correct, dtype=float), w)
    psi = None if x.cluster is None else _left_out(x, design, beta, info, w)
    covariance = np.linalg.pinv(info) if psi is None else psi.T @ psi
    one, two = (
        _coefficient(k, name, beta, covariance, psi, x, level)
        for k, name in ((0, "intercept"), (1, "slope"))
    )
    off = beta - np.array([0.0, 1.0])
    wald = float(off @ np.linalg.pinv(covariance) @ off)
    note = f"{len(edge)} rows at 0 or 1 moved inwards by {eps:g}" if len(edge) else ""
    if psi is None:
        return Cox(one, two, chi2_above(wald, 2), x.n, note)
    c = len(psi)
    if c < 4:
        note = "; ".join(s for s in (note, f"{c} clusters: too few for a test") if s)
        return Cox(one, two, math.nan, x.n, note)
    df = min(effective_df(psi[:, 0]), effective_df(psi[:, 1]))
    under = max(df - 1, 1.0)
    return Cox(one, two, f_above(wald / 2 * under / df, 2, under), x.n, note)


def _separated(x: Inputs, z: np.ndarray, level: float) -> Cox | None:
    """Where a threshold parts right from wrong rows the slope has no finite value: what says so;
    else None.
    """
    right = z[x.correct == 1]
    wrong = z[x.correct == 0]
    up = wrong.max() <= right.min()
    down = right.max() <= wrong.min()
    if not (up or down):
        return None
    note = (
        f"right and wrong rows are separated at a confidence: the slope is "
        f"{'' if up else '-'}infinite, "
        "with no interval and no test; collect more rows"
    )
    nothing = unknown(
        x.n,
        n_clusters=x.n_clusters,
        method="Cox",
        note=note,
        missing=x.missing,
        level=level,
    )
    return Cox(nothing, nothing, math.nan, x.n, note)


def _left_out(
    x: Inputs,
    design: np.ndarray,
    beta: np.ndarray,
    info: np.ndarray,
    w: np.ndarray,
) -> np.ndarray:
    """How far each cluster, left out, moves the coefficients (C, 2), one Newton step; the sum of
    squares is the variance (CR3).
    """
    mu = special.expit(design @ beta)
    c = x.n_clusters or 0
    score = design * (w * (x.correct - mu))[:, None]
    heavy = w * mu * (1 - mu)
    s = np.stack([np.bincount(x.cluster, score[:, k], c) for k in (0, 1)], 1)
    own = np.empty((c, 2, 2))
    for i, j in ((0, 0), (0, 1), (1, 1)):
        both = heavy * design[:, i] * design[:, j]
        own[:, i, j] = np.bincount(x.cluster, both, c)
        own[:, j, i] = own[:, i, j]
    without = np.linalg.pinv(info - own)
    step = np.einsum("cij,cj->ci", without, s)
    return math.sqrt((c - 1) / c) * (step - step.mean(0))


def _df(psi: np.ndarray, x: Inputs, slope: bool) -> float:
    """Degrees of freedom of a coefficient; a slope is told by the rarer outcome, and has no more
    than the clusters that its rows are worth. At 20 clusters and a rate of .97 it covered .79 to
    .86 without that, and .96 to .99 with it; at a rate of .5 its width is the same.
    """
    df = effective_df(psi)
    if not slope:
        return df
    rarer = rarer_worth(x.correct, x.cluster, len(psi))
    return min(df, max(1.0, rarer))


def _coefficient(
    k: int,
    name: str,
    beta: np.ndarray,
    covariance: np.ndarray,
    psi: np.ndarray | None,
    x: Inputs,
    level: float,
) -> Estimate:
    se = math.sqrt(float(covariance[k, k]))
    df = math.inf if psi is None else _df(psi[:, k], x, k == 1)
    alone = psi is not None and len(psi) < 2
    half = math.nan if alone else t_quantile(level, df) * se
    return Estimate(
        float(beta[k]),
        float(beta[k]) - half,
        float(beta[k]) + half,
        x.n,
        x.n_clusters,
        f"Cox {name}, {'Wald' if psi is None else 'cluster jackknife-t'}",
        "one cluster: no interval" if alone else "",
        x.missing,
        level,
        math.nan if alone else se,
    )
