"""Shares of clustered rows: Wilson's interval on the effective number of rows, and its kin for
paired differences.

Rows of one prompt are alike. How much is read off by analysis of variance; with few clusters, or a
rare outcome, that reading is noisy, and an interval that believes it is too narrow. So the
correlation is drawn up by half its standard error and towards 1 by a quarter of an informative
cluster, the quantile is Student's with the degrees of freedom of the clusters that tell it, and the
interval is Wilson's. It is wider where the clusters themselves differ by more than one correlation
says: where long rubrics are harder. A giant cluster makes it as wide as the others say that rows
are alike. Coverage, 8 to 200 clusters of 1 to 16 rows, correlation .1 to .8, rates .02 to .99: .93
or more, also where clusters are all alike beside others that are not
(tests/benchmarks/bench_intervals.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real

import numpy as np

from ..errors import DataError
from .estimate import Estimate
from .tails import t_quantile

UNSEEN = 2.0  # clusters of one kind that may not have been drawn, as in Agresti & Coull 1998
FEW = 2.0  # degrees of freedom below which an interval says why it is so wide
CARRIED = "few clusters carry all the spread: the interval is wide for that"
MOST = 2.0  # mean sizes that a cluster counts for, at most, where the correlation is read off
NOISE = 0.5  # standard errors of independent rows' correlation by which it is drawn up
LONE = 3.0  # clusters of one size, by rows, up to which they tell nothing of their size
PULL = 0.25  # informative clusters that say "all rows of a cluster are alike"


SHARES = ((0.0, 1.0), (-math.inf, math.inf))  # ranges, known or not, in which 0s and 1s are shares


def are_shares(x: np.ndarray, bounds: tuple[float, float]) -> bool:
    """Whether values (n,) are all 0 or 1 and `bounds`, their range, does not say that they are a
    loss, a reward or a rating of which no other value was drawn.

    >>> ones = np.array([1.0, 0, 1])
    >>> are_shares(ones, (0, 1)), are_shares(ones, (-1, 1))
    (True, False)
    """
    return tuple(bounds) in SHARES and bool(np.isin(x, (0.0, 1.0)).all())


def wilson(k: float, n: float, *, level: float = 0.95, q: float | None = None) -> Estimate:
    """Wilson's interval for k of n (Wilson 1927). k and n may be effective counts; q replaces the
    normal quantile.

    >>> print(wilson(10, 10).text(5))
    1.00000 [.7224, 1.0000], n=10
    """
    if not all(isinstance(v, Real) for v in (k, n)) or not 0 <= k <= n or n <= 0:
        raise DataError(f"{k!r} of {n!r}", where="k, n", fix="need 0 <= k <= n and n > 0")
    z = t_quantile(level, math.inf) if q is None else q
    p, z2 = k / n, z * z
    middle = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = z / (1 + z2 / n) * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    low = 0.0 if k == 0 else max(middle - half, 0.0)
    high = 1.0 if k == n else min(middle + half, 1.0)
    se = math.sqrt(p * (1 - p) / n)
    return Estimate(p, low, high, round(n), None, "Wilson", level=level, se=se)


@dataclass(frozen=True)
class Effective:
    """What clustered rows are worth: independent rows, degrees of freedom, and the correlation
    within a cluster.
    """

    rows: float
    df: float
    correlation: float


def correlation(total: np.ndarray, square: np.ndarray, size: np.ndarray) -> float:
    """Intraclass correlation in [0, 1] by analysis of variance, from sums of x, of x^2 and rows by
    cluster, each (C,).

    1 where the rows do not tell (no variation at all). Source: Donner & Koval 1980; Searle 1971 for
    unequal sizes.

    >>> hits = np.array([4.0, 0, 2, 0])
    >>> round(correlation(hits, hits, np.full(4, 4.0)), 3)
    0.714
    """
    c, part = len(size), _counted(size)
    if c < 2 or size.sum() <= c:
        return 1.0
    rows = part * size
    most = float(rows.sum())
    mean = float(part @ total) / most
    inside = float(part @ (square - total**2 / size)) / float(part @ (size - 1))
    apart = float(rows @ (total / size - mean) ** 2) - inside * float(part @ (1 - rows / most))
    apart /= most - float(rows @ rows) / most
    whole = apart + inside
    return min(max(apart / whole, 0.0), 1.0) if whole > 1e-300 else 1.0


def _counted(size: np.ndarray) -> np.ndarray:
    """The part (C,) of its rows that each cluster counts for where the correlation is read off: a
    giant cluster whose rate is its own would hide how alike the rows of all others are.
    """
    return np.minimum(1.0, MOST * size.mean() / size)


def reach(
    value: float,
    low: float,
    high: float,
    moved: np.ndarray,
    bounds: tuple[float, float],
) -> tuple[float, float]:
    """The limits with room for what was not seen: `moved`, the values (m,) it could make. What was
    seen is independent of it, so their distances add as squares do.
    """
    down = np.fmin.reduce(moved, initial=value) - value
    up = np.fmax.reduce(moved, initial=value) - value
    low, high = value - math.hypot(value - low, down), value + math.hypot(high - value, up)
    return max(low, bounds[0]), min(high, bounds[1])


def drawn(size: np.ndarray) -> float:
    """How many of equal size the clusters (C,) are worth (Kish 1965), of which UNSEEN more may not
    have been drawn; a giant one counts for MOST mean sizes. Were each counted for one, 100 of
    which half have 1 row and half 16 held .90 of rates of .05.

    >>> round(drawn(np.array([1.0, 16, 1, 16])), 2), round(drawn(np.array([1.0] * 9 + [99])), 2)
    (2.25, 1.97)
    """
    rows = np.minimum(size, MOST * size.mean())
    return float(rows.sum()) ** 2 / float(rows @ rows)


def allow_unseen(
    mean: Estimate,
    kinds: Sequence[float] | np.ndarray,
    bounds: tuple[float, float],
    *,
    part: float | None = None,
) -> Estimate:
    """A mean whose limits allow for clusters of one kind that were not drawn; kinds : what a row of
    each kind adds; part : of all clusters, those that may be of it (default: UNSEEN more than there
    are). Clusters of wrong answers may not have been drawn.

    >>> print(allow_unseen(Estimate(0.01, 0.0, 0.02, 80, 8), [0.9], (0, 1)))
    .010 [.00, .19], n=80 in 8 clusters
    """
    part = UNSEEN / (mean.units + UNSEEN) if part is None else part
    if math.isinf(mean.value):
        return mean
    moved = mean.value + part * (np.asarray(kinds) - mean.value)
    low, high = reach(mean.value, mean.low, mean.high, moved, bounds)
    return replace(mean, low=low, high=high)


def _hidden(size: np.ndarray, alike: float) -> float:
    """The part of clusters of so many rows that may be of one kind as a whole, where none such was
    drawn: 20 clusters held .87 of rates of .1. As many as the correlation says there are, UNSEEN at
    most: independent rows need none. A quarter more than it says, or 20 clusters of 16 rows hold
    .92 of rates of .135, and .90 of kappas without a note.
    """
    clusters = drawn(size)
    more = min(UNSEEN, 1.25 * alike * clusters)
    return more / (clusters + more)


def effective(
    x: np.ndarray,
    weight: np.ndarray,
    group: np.ndarray,
    *,
    informative: float,
) -> Effective:
    """Effective rows of a weighted mean of x (n,), clusters 0..C-1 in `group` (n,), all of them
    used.

    informative : in [0, 1], how much a cluster tells of the correlation: 4 p (1 - p) for a share.
    """
    size, total = np.bincount(group).astype(float), np.bincount(group, x)
    alike = correlation(total, np.bincount(group, x * x), size)
    part = _counted(size)
    pairs = max(float(part @ (size - 1)), 1e-300)
    alike += NOISE * (1 - alike) * math.sqrt(2 * float(part**2 @ (1 - 1 / size))) / pairs
    known = informative * len(size)
    alike = (known * alike + PULL) / (known + PULL)
    own, both = np.bincount(group, weight**2), np.bincount(group, weight) ** 2
    variance = own + alike * (both - own)
    whole = float(variance.sum())
    told = variance / np.where(own > 0, own, 1.0)  # clusters tell the correlation, not the rows
    df = float(told.sum()) ** 2 / float((told**2).sum()) - 1
    alike *= len(size) < len(x)  # rows alone are like no other
    model = Effective(float(weight.sum()) ** 2 / whole, max(df, 1.0), alike)
    return _apart(model, x, weight, group, variance)


def _apart(
    model: Effective,
    x: np.ndarray,
    weight: np.ndarray,
    group: np.ndarray,
    variance: np.ndarray,
) -> Effective:
    """The effective rows by what the clusters themselves are off the mean by, where they are fewer:
    large ones have a rate of their own. Of 90 prompts of 4 rows at .98 and 10 of
    16 at .5, one correlation for all held .86, with any number of prompts.

    variance : (C,) what each is off by where the correlation is all; it stands for a giant one,
    whose like is not there to tell.
    """
    whole = weight.sum()
    off = x - weight @ x / whole
    spread = float(weight @ off**2) / whole
    size = np.bincount(group, weight)
    trust = np.clip(whole / LONE / np.maximum(size, 1e-300) - 1, 0.0, 1.0)
    far = trust * np.bincount(group, weight * off) ** 2 / max(spread, 1e-300)
    most = float(far.sum())
    rows = float(whole**2) / max(most + float((1 - trust) @ variance), 1e-300)
    kept = rows / model.rows
    if most <= 0 or kept >= 1:
        return model
    df = 1 / (kept / model.df + (1 - kept) * float(far @ far) / most**2)
    return replace(model, rows=rows, df=max(df, 1.0))


def share(
    x: np.ndarray,
    weight: np.ndarray,
    group: np.ndarray | None,
    *,
    level: float = 0.95,
) -> Estimate:
    """Weighted share of 1 among 0s and 1s (n,) with Wilson's interval on the effective rows; no
    group: rows are independent.

    >>> print(share(np.array([1.0, 0, 1, 1, 1]), np.ones(5), np.array([0, 0, 1, 1, 2])))
    .800 [.04, 1.00], n=5 in 3 clusters
    """
    p = min(max(float(weight @ x / weight.sum()), 0.0), 1.0)
    if group is None:
        alone = Effective(float(weight.sum() ** 2 / (weight**2).sum()), math.inf, 0.0)
        e = _apart(alone, x, weight, np.arange(len(x)), weight**2)
    else:
        e = effective(x, weight, group, informative=4 * p * (1 - p))
    w = wilson(min(p * e.rows, e.rows), e.rows, level=level, q=t_quantile(level, e.df))
    size = weight if group is None else np.bincount(group, weight)
    plain = group is None and bool((weight == weight[0]).all())
    words = "share, Wilson" if plain else f"share, Wilson on {e.rows:.1f} effective rows"
    note = CARRIED if e.df < FEW else ""
    out = replace(
        w,
        value=p,
        n=len(x),
        n_clusters=len(size),
        method=words,
        note=note,
    )
    return allow_unseen(
        out,
        (0.0, 1.0),
        (0.0, 1.0),
        part=_hidden(size, e.correlation),
    )


def signed_share(d: np.ndarray, group: np.ndarray | None, *, level: float = 0.95) -> Estimate:
    """Mean of differences in {-1, 0, 1} (n,) of two columns of 0s and 1s, paired.

    One row more for each side is added to the effective counts, so rare outcomes never give an
    interval of no width (Bonett & Price 2012, Brit. J. Math. Stat. Psych. 65, with the clusters'
    effective rows).

    >>> print(signed_share(np.array([0.0, 0, 0, 1]), None))
    .250 [-.39, .72], n=4
    """
    n, value = len(d), float(d.mean())
    at = np.arange(n) if group is None else group
    e = effective(d, np.ones(n), at, informative=min(1.0, 2 * float(np.abs(d).mean())))
    up, down = ((float((d == s).mean()) * e.rows + 1) / (e.rows + 2) for s in (1, -1))
    middle = up - down
    se = math.sqrt((up + down - middle**2) / (e.rows + 2))
    half = t_quantile(level, math.inf if group is None else e.df) * se
    low, high = min(middle - half, value), max(middle + half, value)
    words = f"paired difference of shares, adjusted Wald on {e.rows:.1f} effective rows"
    out = Estimate(value, low, high, n, int(at.max()) + 1, words, level=level, se=se)
    return allow_unseen(out, (-1.0, 1.0), (-1.0, 1.0), part=_hidden(np.bincount(at), e.correlation))
