"""Selective prediction: what error remains when only the most confident answers are kept. Tied
confidences in expectation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse, special

from ..stats.clusters import PARTS, UNSEEN, ends, of_influence, worth
from ..stats.columns import takes_table
from ..stats.estimate import Estimate
from ..stats.shares import allow_unseen
from .inputs import Columns, Inputs, check


@dataclass(frozen=True)
class RiskCoverage(Columns):
    """Arrays (m,) per distinct confidence, most confident first: threshold, coverage, risk (error
    rate among those kept).

    aurc : mean over rows of the risk at that row's coverage (Geifman & El-Yaniv 2019). augrc : the
        same of errors kept / all
    rows (Traub et al. 2024). best_aurc : with the same errors, perfectly ordered; random_aurc : in
        random order.
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
    convention: str = (
        "most confident kept first; tied rows in expectation over their orders; "
        "means over coverages 1/n..n/n"
    )

    def __str__(self) -> str:
        return (
            f"AURC {self.aurc}; AUGRC {self.augrc}; perfect order {self.best_aurc:.3f}, "
            f"random {self.random_aurc:.3f} | {self.convention}"
        )


def areas(size: np.ndarray, errors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """AURC and AUGRC (...,) from block weights and errors (..., m), most confident first.

    Within a block of N rows with e errors after n0 rows with E errors the expected risk at its j-th
    row is (E + j e/N) / (n0 + j); the sum over j has the closed form below (digamma).
    """
    after = np.cumsum(size, -1)
    wrong_after = np.cumsum(errors, -1)
    before, wrong = after - size, wrong_after - errors
    slope = np.divide(errors, size, out=np.zeros_like(errors), where=size > 0)
    harmonic = special.digamma(after + 1) - special.digamma(before + 1)
    n = after[..., -1]
    risk = (wrong - slope * before) * harmonic + slope * size
    general = wrong * size + slope * size * (size + 1) / 2
    return risk.sum(-1) / n, general.sum(-1) / n**2


def _most(x: Inputs) -> float:
    """What the rows, the right ones and the wrong ones are worth in equal clusters, at least 2."""
    right = np.asarray(x.correct) == 1
    kinds = [k for k in (right, ~right) if k.any()]
    sizes = [np.bincount(x.group[k]) for k in (slice(None), *kinds)]
    return max(min(map(worth, sizes)), 2.0)


def _estimate(
    value: float,
    psi: np.ndarray,
    moved: np.ndarray,
    name: str,
    x: Inputs,
    level: float,
) -> Estimate:
    more = {
        "n": x.n,
        "n_clusters": x.n_clusters,
        "method": f"{name}, jackknife-t on the logit",
        "missing": x.missing,
        "level": level,
    }
    if len(psi) < 2:
        return Estimate(value, math.nan, math.nan, **more)
    out = of_influence(value, psi, _most(x), bounds=(0.0, 1.0), units=len(psi), **more)
    return allow_unseen(out, moved, (0.0, 1.0), part=1.0)


@takes_table("conf", "correct", "cluster", "weights")
def risk_coverage(
    conf: Any,
    correct: Any,
    *,
    cluster: Any = None,
    weights: Any = None,
    missing: str = "raise",
    interval: bool = True,
    level: float = 0.95,
) -> RiskCoverage:
    """Risk-coverage curve with AURC and AUGRC; shuffling tied rows does not move them.

    conf : (n,) in [0, 1]. correct : (n,). Intervals: jackknife over rows or clusters;
        interval=False leaves them out. weights : how many rows each stands for on the curve;
        without clusters a row is one unit of the interval, whatever its weight.

    >>> round(risk_coverage([.9, .8, .7, .6], [1, 1, 0, 1]).aurc.value, 6)
    0.145833
    """
    x = check(conf, correct, cluster=cluster, weights=weights, missing=missing)
    falling, at = np.unique(-np.asarray(x.conf, dtype=float), return_inverse=True)
    w = np.ones(x.n) if x.weights is None else x.weights
    size = np.bincount(at, weights=w)
    errors = np.bincount(at, weights=w * (1.0 - x.correct))
    keep = size > 0
    aurc, augrc = (float(v) for v in areas(size[keep], errors[keep]))
    psi = moved = np.empty((0, 2))
    if interval and (x.n_clusters or x.n) > 1:
        j, cells = _pooled(x, at, w)
        psi = _influence(x, j, cells, w)
        moved = _moved(x, j // 2, cells)
    total = errors.sum()
    best = float(areas(np.array([size.sum() - total, total]), np.array([0.0, total]))[0])
    estimates = [
        _estimate(v, psi[:, k], moved[:, k], name, x, level)
        for k, (v, name) in enumerate(((aurc, "AURC"), (augrc, "AUGRC")))
    ]
    done = np.cumsum(size)[keep]
    return RiskCoverage(
        -falling[keep],
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


POOLED = 500  # distinct confidences beyond which neighbours share a cell
LEAVE_OUT = 400  # clusters up to which each is really left out; beyond, the derivative does as well


def _pooled(x: Inputs, at: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The cell of each row (n,), 2 * place + right, and the weights of cells (m, 2)."""
    m = int(at.max()) + 1
    place = at if m <= POOLED else (np.cumsum(np.bincount(at))[at] - 1) * POOLED // x.n
    j = place * 2 + np.asarray(x.correct).astype(int)
    return j, np.bincount(j, w, 2 * min(m, POOLED)).reshape(-1, 2)


def _influence(x: Inputs, j: np.ndarray, cells: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Influences (units, 2) of rows or clusters on AURC and AUGRC; their sums of squares are the
    variances. j, cells : from `_pooled`.
    """
    m = cells.size
    c = x.n_clusters if x.cluster is not None else x.n
    if x.cluster is not None and c <= LEAVE_OUT:
        units = np.bincount(x.cluster * m + j, w, c * m).reshape(c, -1, 2)
        left = _both(cells - units)
        return np.sqrt((c - 1) / c) * (left - left.mean(0))
    psi = sparse.csr_matrix((w, (x.group, j)), shape=(c, m)) @ _slopes(cells)
    return np.sqrt(c / max(c - 1, 1)) * (psi - psi.mean(0))


def _moved(x: Inputs, place: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """AURC and AUGRC (k, 2) had clusters been drawn in which all is right, or wrong, at a
    confidence that such rows may have (`ends`).
    """
    p = np.asarray(x.conf, dtype=float)
    unit = UNSEEN * cells.sum() / (x.n_clusters or x.n)
    out = []
    for y, outcome in enumerate((x.correct == 0, x.correct == 1)):
        for conf in ends(p, outcome, x.group, (0.0, 1.0)):
            at = int(place[p > conf].max(initial=-1)) + 1
            more = np.tile(np.insert(cells, at, 0.0, axis=0), (len(PARTS), 1, 1))
            more[:, at, y] = unit * np.array(PARTS)
            out.append(_both(more))
    return np.concatenate(out)


def _both(cells: np.ndarray) -> np.ndarray:
    """AURC and AUGRC (..., 2) of weights (..., m, 2), wrong and right."""
    return np.stack(areas(cells.sum(-1), cells[..., 0]), -1)


def _slopes(cells: np.ndarray) -> np.ndarray:
    """Derivatives (2m, 2) of both areas by each weight (m, 2), less what more rows of all kinds
    would do.
    """
    flat = cells.reshape(-1)
    step = 1e-4 * flat.sum()
    more = flat + step * np.eye(len(flat))
    out = (_both(more.reshape(-1, *cells.shape)) - _both(cells)) / step
    return out - flat @ out / flat.sum()
