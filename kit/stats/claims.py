"""Sentences that claim no more than the data; several looks; how much data a claim needs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import DataError
from .estimate import Estimate, t_quantile
from .means import SAME, difference

FEW = 100  # prompts below which a rare collapse may have gone undrawn


def together(claims: Mapping[str, Estimate], level: float = 0.95) -> dict[str, Estimate]:
    """The same estimates with wider intervals that hold all at once (Bonferroni).

    In at most one of twenty such families does an interval miss its value.

    >>> one = Estimate(0.1, 0.0, 0.2, n=100)
    >>> print(together({"a": one, "b": one})["a"])
    .100 [-.02, .22], n=100
    """
    out, k = {}, max(len(claims), 1)
    for name, e in claims.items():
        df = max((e.n if e.n_clusters is None else e.n_clusters) - 1, 1)
        wide = t_quantile(1 - (1 - level) / k, df) / t_quantile(e.level, df)
        low, high = e.value - wide * (e.value - e.low), e.value + wide * (e.high - e.value)
        method = f"{e.method}, adjusted for {k} looks"
        out[name] = replace(e, low=low, high=high, method=method, level=level)
    return out


def compare(
    scores: Any, baseline: str, *, cluster: Any = None, level: float = 0.95
) -> dict[str, Estimate]:
    """Every column less the baseline column, paired by row; the intervals hold all at once.

    scores : a mapping name -> (n,), or a DataFrame of which `cluster` may name a column.

    >>> scores = {"base": [0, 1, 0, 1, 0, 1], "new": [1, 1, 1, 1, 0, 1]}
    >>> round(compare(scores, "base")["new"].value, 3)
    0.333
    """
    names = [k for k in scores if k != baseline and not (isinstance(cluster, str) and k == cluster)]
    if baseline not in scores:
        raise DataError(f"there is no column {baseline!r}", where="baseline", fix=f"{names}")
    group = scores[cluster] if isinstance(cluster, str) else cluster
    each = {k: difference(scores[k], scores[baseline], cluster=group, level=level) for k in names}
    return together(each, level)


def claim(
    e: Estimate, noun: str = "", *, new: str = "the new one", old: str = "the baseline"
) -> str:
    """One sentence. Of a difference it says "gain" or "loss" only where the data show one.

    The interval must exclude 0. Below 100 prompts it must also clear 3 / prompts of the range: a
    collapse in that share of the prompts may not have been drawn (rule of three). noun : what is
    measured (default: `e.noun`).

    >>> claim(Estimate(0.107, 0.054, 0.196, n=184, scale=1.0), "held-out reward")
    'A gain in held-out reward of the new one over the baseline: +.107 [.05, .20], n=184.'
    """
    noun, text = noun or e.noun or "score", f"{'+' if e.value > 0 else ''}{e}"
    units = max(e.n if e.n_clusters is None else e.n_clusters, 1)
    if math.isnan(e.low):
        return f"No statement on {noun} is possible: {e.note or 'there is no interval'} ({e})."
    if math.isnan(e.scale):
        return f"{noun[0].upper()}{noun[1:]} is {e}."
    if e.note == SAME:
        return f"No difference in {noun}: {e.note} (n={e.n})."
    if not e.excludes(0):
        return f"No difference in {noun} is shown between {new} and {old}: {text}."
    room = clearance(units) * e.scale
    side = "gain" if e.value > 0 else "loss"
    if min(abs(e.low), abs(e.high)) <= room:
        few = f"a collapse in 3 of {units} prompts may not have been drawn"
        return f"Too few prompts to show a {side} in {noun}: {text}; {few}."
    return f"A {side} in {noun} of {new} over {old}: {text}."


def clearance(units: int) -> float:
    """The share of prompts that may collapse undrawn: 3 in n below 100 prompts, then 0."""
    return 3 / units if units < FEW else 0.0


def prompts_for(
    gain: float,
    *,
    spread: float | None = None,
    flips: float | None = None,
    samples: int = 1,
    noise: float = 0.0,
    power: float = 0.8,
    level: float = 0.95,
) -> int:
    """How many held-out prompts show a paired gain.

    gain : the difference to show. spread : standard deviation over prompts of a prompt's true gain.
    samples, noise : answers per prompt, and the standard deviation of one answer's score. The
    result is a number for which `claim` claims the gain. flips : instead of spread, for pass and
    fail, the share of prompts whose verdict changes (Connor 1987, for McNemar's test; below 100
    prompts `claim` asks for more).

    >>> prompts_for(0.4, flips=0.5), prompts_for(0.15, flips=0.45), prompts_for(0.05, spread=0.15)
    (23, 155, 100)
    """
    deviation = spread if flips is None else flips
    if not (0 < abs(gain) < math.inf and deviation is not None and deviation >= 0):
        fix = "a gain other than 0, and a spread or flips"
        raise DataError(f"gain {gain}, spread {deviation}", where="prompts_for", fix=fix)
    if not (noise >= 0 and samples >= 1 and 0.5 < power < 1 and 0 < level < 1):
        fix = "noise >= 0, samples >= 1, power in (.5, 1), level in (0, 1)"
        raise DataError("an argument is out of range", where="prompts_for", fix=fix)
    if flips is not None:
        if abs(gain) > flips or flips > 1:
            fix = "|gain| <= flips <= 1"
            raise DataError(f"gain {gain} of {flips} flips", where="prompts_for", fix=fix)
        z = [t_quantile(p, math.inf) for p in (level, 2 * power - 1)]
        sides = z[0] * math.sqrt(flips) + z[1] * math.sqrt(flips - gain**2)
        return math.ceil((sides / gain) ** 2)
    sd = math.sqrt(deviation**2 + 2 * noise**2 / samples)
    n = 4
    while True:
        reach = t_quantile(level, n - 1) + t_quantile(2 * power - 1, n - 1)
        if reach * sd / math.sqrt(n) <= abs(gain) - clearance(n):
            return n
        n += 1


def labels_needed(
    half_width: float, rate: float, *, q1: float, q0: float, level: float = 0.95
) -> dict[str, int]:
    """How many labels give a pass rate of +- half_width: alone, and beside a judge.

    rate : the expected pass rate. q1, q0 : the judge's sensitivity and specificity.

    >>> labels_needed(0.05, 0.8, q1=0.9, q0=0.8)
    {'labels alone': 246, 'with the judge': 141}
    """
    if not (0 < rate < 1 and 0 <= q1 <= 1 and 0 <= q0 <= 1 and half_width > 0):
        fix = "rates in (0, 1), half_width > 0"
        raise DataError("a rate is out of range", where="labels_needed", fix=fix)
    scale = (t_quantile(level, math.inf) / half_width) ** 2
    met = rate * q1 + (1 - rate) * (1 - q0)  # share of rows with the verdict "met"
    right = np.array([rate * q1 / max(met, 1e-12), rate * (1 - q1) / max(1 - met, 1e-12)])
    left = float(np.array([met, 1 - met]) @ (right * (1 - right)))
    alone = math.ceil(scale * rate * (1 - rate))
    return {"labels alone": alone, "with the judge": math.ceil(scale * left)}
