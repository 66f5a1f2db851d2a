"""Quantiles and tail probabilities. scipy.special is imported late: no judge waits for it."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from types import ModuleType

from .arguments import sure_level


def _special() -> ModuleType:
    from scipy import special

    return special


@lru_cache(maxsize=1024)
def t_quantile(level: float, df: float) -> float:
    """Two-sided Student quantile; infinite df gives the normal one.

    >>> round(t_quantile(0.95, math.inf), 4), round(t_quantile(0.95, 7), 4)
    (1.96, 2.3646)
    """
    level = sure_level(level)
    if math.isinf(df):
        return NormalDist().inv_cdf((1 + level) / 2)
    if not 1 <= df <= 500 or level < 0.5:
        return float(_special().stdtrit(max(df, 1e-9), (1 + level) / 2))
    return _t_quantile(1 - level, df)


def _t_quantile(tails: float, df: float) -> float:
    """t with P(|T| > t) = `tails`, for df >= 1: scipy.special takes .4 s to import, which is half
    of what `kit judge` needs for 200 stored answers.

    Newton steps on the log of the tail, whose slope is the density over the tail: monotone, so
    that the steps never leave the right side for long.

    >>> round(_t_quantile(0.05, 7), 10)
    2.3646242516
    """
    scale = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - 0.5 * math.log(df * math.pi)
    t = NormalDist().inv_cdf(1 - tails / 2)
    for _ in range(100):
        above = _beta(df / 2, 0.5, df / (df + t * t))
        density = 2 * math.exp(scale - (df + 1) / 2 * math.log1p(t * t / df))
        step = above / density * math.log(above / tails)
        t += step
        if abs(step) <= 1e-15 * t:
            break
    return t


def _beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function by its continued fraction (Lentz; DLMF 8.17.22)."""
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta(b, a, 1 - x)
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(front + a * math.log(x) + b * math.log1p(-x)) / a
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    out = d
    for m in range(1, 500):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for part in (even, odd):
            d, c = 1 / (1 + part * d), 1 + part / c
            out *= c * d
        if abs(c * d - 1) < 1e-16:
            break
    return front * out


def t_below(x: float, df: float) -> float:
    """P(T < x) for Student's t; infinite df gives the normal."""
    return float(_special().ndtr(x) if math.isinf(df) else _special().stdtr(df, x))


def t_two_sided(t: float, df: float) -> float:
    """P(|T| > |t|).

    >>> round(t_two_sided(2.3646, 7), 4)
    0.05
    """
    return 2 * t_below(-abs(t), df)


def chi2_above(x: float, df: float) -> float:
    """P(chi-squared > x).

    >>> round(chi2_above(3.8415, 1), 4)
    0.05
    """
    return float(_special().chdtrc(df, x))


def f_above(x: float, top: float, under: float) -> float:
    """P(F > x) with `top` and `under` degrees of freedom; infinite `under` is a chi-squared.

    >>> round(f_above(4.7374, 2, 7), 3)
    0.05
    """
    open_ended = math.isinf(under)
    return (
        chi2_above(x * top, top) if open_ended else float(_special().fdtrc(top, under, max(x, 0)))
    )
