"""Rank agreement of two score columns: Spearman's rho and Kendall's tau-b with cluster-robust
intervals, O(n log n).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .clusters import (
    LEAST,
    UNSEEN,
    effective_df,
    known,
    reach,
    too_few,
    worth,
)
from .columns import takes_table
from .estimate import Estimate
from .tails import ranks, t_quantile

COARSE = 0.15  # chance of a tie from which on a column has few values; six equal levels have .17


def _tied(x: np.ndarray) -> float:
    """The chance that two rows have one value."""
    share = np.unique(x, return_counts=True)[1] / len(x)
    return float(share @ share)


# Variance of Fisher's z of independent normal columns, less 3 rows: Bonett & Wright 2000, Fieller,
# Hartley & Pearson 1957.
NORMAL = {"Spearman's rho": lambda r: 1 + r * r / 2, "Kendall's tau-b": lambda r: 0.437}


def _finish(
    value: float,
    psi: np.ndarray,
    columns: tuple[np.ndarray, np.ndarray],
    group: np.ndarray,
    name: str,
    missing: int,
    level: float,
) -> Estimate:
    """The interval on Fisher's z: its spread no less than that of normal columns on the effective
    rows. Where a column has few values, with room for UNSEEN clusters of the reverse order: the
    few rows that disagree may not have been drawn. Without ties every row tells how much they do.
    """
    n, c = len(psi), int(group.max(initial=-1)) + 1
    if c < 3 or math.isnan(value):
        short = "fewer than three rows" if n < 3 else "one column is constant"
        note = short if math.isnan(value) else "fewer than three clusters: no interval"
        return Estimate(value, math.nan, math.nan, n, c, name, note, missing, level)
    by = np.bincount(group, psi, c) / n
    se = math.sqrt(c / (c - 1) * float((by**2).sum()))
    if abs(value) >= 1:
        return Estimate(
            value, math.nan, math.nan, n, c, name, "perfect order: no interval", missing, level, se
        )
    clusters = worth(np.bincount(group, minlength=c))
    if clusters < LEAST:
        nan = math.nan
        return Estimate(value, nan, nan, n, c, name, too_few(clusters), missing, level, se)
    df = min(effective_df(by), max(clusters - 1, 1.0))
    rows = n / max((n * by) @ (n * by) / max(psi @ psi, 1e-300), 1.0)
    least = math.sqrt(NORMAL[name](value) / max(rows - 3, 1.0))
    half = t_quantile(level, df) * max(se / (1 - value**2), least)
    low, high = (math.tanh(math.atanh(value) + s * half) for s in (-1, 1))
    if max(map(_tied, columns)) >= COARSE:
        reverse = np.array([value * (c - UNSEEN) / (c + UNSEEN)])
        low, high = reach(value, low, high, reverse, (-1.0, 1.0))
    return Estimate(
        value,
        low,
        high,
        n,
        c,
        f"{name}, cluster linearised-t on Fisher's z",
        "",
        missing,
        level,
        se,
    )


def _share_above(x: np.ndarray, mark: np.ndarray) -> np.ndarray:
    """For every i: mean over j of mark_j * (1 if x_j > x_i, 1/2 if equal, 0 if below)."""
    order = np.argsort(x, kind="stable")
    xs, total = x[order], np.concatenate([[0.0], np.cumsum(mark[order])])
    left, right = np.searchsorted(xs, x, "left"), np.searchsorted(xs, x, "right")
    return (total[-1] - (total[left] + total[right]) / 2) / len(x)


@takes_table("a", "b", "cluster")
def spearman(
    a: Sequence[Any], b: Sequence[Any], *, cluster: Sequence[Any] | None = None, level: float = 0.95
) -> Estimate:
    """Spearman's rank correlation, ties at their mid-rank.

    a, b : (n,) numbers, None / NaN = unknown, left out and counted. Range [-1, 1]; NaN when a
        column is constant. The interval uses the influence of every row on the correlation of
        mid-ranks, summed by cluster.

    >>> round(spearman([1, 2, 3, 4, 5], [2, 1, 4, 3, 5]).value, 3)
    0.8
    """
    (x, y), group, _, missing = known({"a": a, "b": b}, cluster)
    n = len(x)
    if n < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return _finish(math.nan, np.zeros(n), (x, y), group, "Spearman's rho", missing, level)
    u, v = (ranks(x) - 0.5) / n - 0.5, (ranks(y) - 0.5) / n - 0.5
    suu, svv, suv = float((u * u).mean()), float((v * v).mean()), float((u * v).mean())
    rho = suv / math.sqrt(suu * svv)
    one = np.ones(n)

    def through(
        z: np.ndarray, mark: np.ndarray
    ) -> np.ndarray:  # how row i moves the mean of mark * rank(z), through the ranks
        return _share_above(z, mark) - _share_above(z, one).mean() * mark.mean()

    duv = (u * v - suv) + (through(x, v) - (u * v).mean()) + (through(y, u) - (u * v).mean())
    duu = (u * u - suu) + 2 * (through(x, u) - suu)
    dvv = (v * v - svv) + 2 * (through(y, v) - svv)
    psi = duv / math.sqrt(suu * svv) - rho / 2 * (duu / suu + dvv / svv)
    return _finish(rho, psi - psi.mean(), (x, y), group, "Spearman's rho", missing, level)


def _below(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """For every i: how many j have x_j < x_i and y_j < y_i; a merge sort done level by level, O(n
    log^2 n).
    """
    n = len(x)
    order = np.lexsort(
        (-y, x)
    )  # inside equal x the larger y come first, so they never count as below
    rank = np.unique(y, return_inverse=True)[1][order] + 1
    out, place, width = np.zeros(n, np.int64), np.arange(n), 1
    while width < n:
        block = place // width
        key = block * (n + 2) + rank
        right = (block % 2) == 1
        left_sorted = np.sort(key[~right])
        low = (block[right] - 1) * (n + 2)
        out[right] += np.searchsorted(left_sorted, low + rank[right], "left") - np.searchsorted(
            left_sorted, low, "left"
        )
        width *= 2
    back = np.empty(n, np.int64)
    back[order] = out
    return back


@takes_table("a", "b", "cluster")
def kendall(
    a: Sequence[Any], b: Sequence[Any], *, cluster: Sequence[Any] | None = None, level: float = 0.95
) -> Estimate:
    """Kendall's tau-b. a, b : (n,) numbers, unknown left out and counted. Range [-1, 1]; NaN when a
    column is constant.

    >>> round(kendall([1, 2, 3, 4, 5], [2, 1, 4, 3, 5]).value, 3)
    0.6
    """
    (x, y), group, _, missing = known({"a": a, "b": b}, cluster)
    n = len(x)
    if n < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return _finish(math.nan, np.zeros(n), (x, y), group, "Kendall's tau-b", missing, level)
    agree = _below(x, y) + _below(-x, -y)
    against = _below(x, -y) + _below(-x, y)
    tied_x = np.unique(x, return_inverse=True, return_counts=True)
    tied_y = np.unique(y, return_inverse=True, return_counts=True)
    s, free_x, free_y = (
        (agree - against) / n,
        1 - tied_x[2][tied_x[1]] / n,
        1 - tied_y[2][tied_y[1]] / n,
    )
    ms, mx, my = float(s.mean()), float(free_x.mean()), float(free_y.mean())
    tau = ms / math.sqrt(mx * my)
    psi = 2 * (s - ms) / math.sqrt(mx * my) - tau * ((free_x - mx) / mx + (free_y - my) / my)
    return _finish(tau, psi, (x, y), group, "Kendall's tau-b", missing, level)
