"""Recalibration: Platt, isotonic and beta maps, fitted across folds of whole
clusters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import special

from ..errors import DataError
from ..stats.arguments import generator
from ..stats.columns import takes_table
from .ece import ECE, ece
from .inputs import Inputs, check
from .scores import grouped, rising
from .significance import both_classes, logit_fit

METHODS = ("platt", "isotonic", "beta")


@dataclass(frozen=True)
class Recalibrator:
    """A fitted map from confidence to confidence. edge : how far 0 and 1 are moved inwards where a
    logarithm is needed
    (1/(2n+2)); params : what was fitted."""

    method: str
    params: dict[str, Any]
    n: int
    edge: float
    apply: Callable[[np.ndarray], np.ndarray]

    def __call__(self, conf: Any) -> np.ndarray:
        """(n,) recalibrated confidences in [0, 1]."""
        p = check(conf, np.zeros(len(conf)), allow_empty=True).conf
        return np.clip(self.apply(np.asarray(p, dtype=float)), 0.0, 1.0)

    def __str__(self) -> str:
        shown = ", ".join(f"{k}={v:.3f}" for k, v in self.params.items() if isinstance(v, float))
        return f"{self.method} fitted on n={self.n}" + (f" ({shown})" if shown else "")


@takes_table("conf", "correct", "weights")
def fit(
    conf: Any,
    correct: Any,
    *,
    method: str = "isotonic",
    weights: Any = None,
    missing: str = "raise",
) -> Recalibrator:
    """Fit one map on all rows. Judge it on other rows, or use `recalibrate`, which fits across
    folds.

    method : "platt" (Platt 1999, on the logit), "isotonic" (Zadrozny & Elkan 2002), "beta" (Kull et
        al. 2017).

    >>> float(fit([.9] * 10, [1] * 6 + [0] * 4, method="isotonic")([.9])[0])
    0.6
    """
    return _fit(check(conf, correct, weights=weights, missing=missing), method)


def _fit(x: Inputs, method: str) -> Recalibrator:
    DataError.other("method", method, METHODS, "argument method")
    both_classes(x, "recalibration")
    edge = 1 / (2 * x.size + 2)
    fitted = {
        "platt": _platt,
        "isotonic": _isotonic,
        "beta": _beta,
    }[method]
    params, apply = fitted(*grouped(x), edge)
    return Recalibrator(method, params, x.n, edge, apply)


def _logit(p: np.ndarray, edge: float) -> np.ndarray:
    return special.logit(np.clip(p, edge, 1 - edge))


def _twice(
    values: np.ndarray, hits: np.ndarray, size: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Groups as rows of outcome 1 and outcome 0."""
    return (
        np.r_[values, values],
        np.r_[np.ones(len(values)), np.zeros(len(values))],
        np.r_[hits, size - hits],
    )


def _platt(
    values: np.ndarray,
    hits: np.ndarray,
    size: np.ndarray,
    edge: float,
) -> tuple[dict[str, Any], Callable[[np.ndarray], np.ndarray]]:
    p, y, w = _twice(values, hits, size)
    z = _logit(p, edge)
    (a, b), _ = logit_fit(np.column_stack([np.ones_like(z), z]), y, w, ridge=1e-6)
    return {"intercept": float(a), "slope": float(b)}, lambda q: special.expit(
        a + b * _logit(q, edge)
    )


def _isotonic(
    values: np.ndarray,
    hits: np.ndarray,
    size: np.ndarray,
    edge: float,
) -> tuple[dict[str, Any], Callable[[np.ndarray], np.ndarray]]:
    y = rising(hits / size, size)
    return {"x": values, "y": y}, lambda q: np.interp(q, values, y)


def _beta(
    values: np.ndarray,
    hits: np.ndarray,
    size: np.ndarray,
    edge: float,
) -> tuple[dict[str, Any], Callable[[np.ndarray], np.ndarray]]:
    p, y, w = _twice(values, hits, size)

    def columns(q: np.ndarray) -> np.ndarray:
        q = np.clip(q, edge, 1 - edge)
        return np.column_stack([np.ones_like(q), np.log(q), -np.log1p(-q)])

    use = [0, 1, 2]
    beta, _ = logit_fit(columns(p), y, w, ridge=1e-6)
    while (
        beta[1:].min() < 0 and len(use) > 1
    ):  # a map that falls anywhere is refused: drop the offending term, fit again
        use.remove(1 + int(np.argmin(beta[1:])))
        part, _ = logit_fit(columns(p)[:, use], y, w, ridge=1e-6)
        beta = np.zeros(3)
        beta[use] = part
    return {"c": float(beta[0]), "a": float(beta[1]), "b": float(beta[2])}, lambda q: special.expit(
        columns(np.asarray(q, dtype=float)) @ beta
    )


@dataclass(frozen=True)
class Recalibrated:
    """Out-of-fold confidences (n,) of the rows that have one (`before.missing` have none) and the
    error before and after; `final` is fitted on all rows, for new data.
    """

    conf: np.ndarray
    correct: np.ndarray
    before: ECE
    after: ECE
    final: Recalibrator
    fold: np.ndarray
    method: str

    def __str__(self) -> str:
        return (
            f"{self.method}, {int(self.fold.max()) + 1} folds: ECE {self.before.value:.3f} "
            f"-> {self.after.value:.3f} out of fold, n={self.before.n}"
            + f", {self.before.missing} missing"
            * bool(self.before.missing)
        )


def folds(n: int, k: int, cluster: np.ndarray | None, seed: int) -> np.ndarray:
    """Fold (n,) of each row; a cluster is never split.

    >>> f = folds(6, 3, np.array([0, 0, 1, 1, 2, 2]), 0); bool((f[::2] == f[1::2]).all())
    True
    """
    unit = np.arange(n) if cluster is None else cluster
    units = int(unit.max()) + 1
    if not 2 <= k <= units:
        raise DataError(
            f"{k} folds of {units} {'rows' if cluster is None else 'clusters'}",
            where="argument k",
            fix=f"use 2 to {units}",
        )
    place = np.empty(units, dtype=int)
    place[generator(seed).permutation(units)] = np.arange(units) % k
    return place[unit]


@takes_table("conf", "correct", "cluster", "weights")
def recalibrate(
    conf: Any,
    correct: Any,
    *,
    method: str = "isotonic",
    cluster: Any = None,
    weights: Any = None,
    k: int = 5,
    seed: int = 0,
    missing: str = "raise",
    n_boot: int = 500,
    **binning: Any,
) -> Recalibrated:
    """Fit on k-1 folds, apply to the other, by cluster, so that the error after is honest.

    conf : (n,) in [0, 1]. correct : (n,). Binning arguments as in `ece` (15 bins by default for
        both, so that they compare).

    >>> rng = np.random.default_rng(0); p = rng.random(500); y = rng.random(500) < p**2
    >>> r = recalibrate(p, y, method="platt", n_boot=0); r.after.value < r.before.value
    True
    """
    x = check(conf, correct, cluster=cluster, weights=weights, missing=missing)
    both_classes(x, "recalibration")
    fold = folds(x.n, k, x.cluster, seed)
    out = np.empty(x.n)
    for f in range(k):
        train, test = fold != f, fold == f
        part = Inputs(
            x.conf[train], x.correct[train], None if x.weights is None else x.weights[train]
        )
        out[test] = np.clip(
            _fit(part, method).apply(np.asarray(x.conf[test], dtype=float)), 0.0, 1.0
        )
    binning.setdefault("bins", 15)
    if binning.get("edges") is not None:
        binning["bins"] = "auto"
    how = dict(cluster=x.cluster, weights=x.weights, n_boot=n_boot, seed=seed, **binning)
    before, after = (replace(ece(p, x.correct, **how), missing=x.missing) for p in (x.conf, out))
    return Recalibrated(out, np.asarray(x.correct), before, after, _fit(x, method), fold, method)
