"""Means, differences, ranking; several of them together; how much data a claim needs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np

from ..errors import DataError
from .columns import complete, numbers, takes_table
from .estimate import OPEN, SAME, UNDRAWN, Estimate, Range, interval, t_quantile

UNIT, BOTH = (0.0, 1.0), (-1.0, 1.0)


def binary(x: np.ndarray) -> bool:
    """True when every value is 0 or 1."""
    return bool(((x == 0) | (x == 1)).all())


def _extremes(x: np.ndarray, group: np.ndarray | None) -> Range:
    """The lowest and highest mean of a cluster."""
    means = x if group is None else np.bincount(group, x) / np.bincount(group)
    return float(means.min(initial=math.inf)), float(means.max(initial=-math.inf))


@takes_table("values", "cluster", "weights")
def mean(
    values: Any,
    *,
    cluster: Any = None,
    weights: Any = None,
    bounds: Range = OPEN,
    level: float = 0.95,
) -> Estimate:
    """The mean of a column with its interval. A column of 0 and 1 is a share and stays in [0, 1].

    values : (n,) numbers; None and NaN are left out and counted. cluster : (n,) labels of rows that
    belong together, for example the task. weights : (n,) >= 0; rows of weight 0 are no rows. bounds :
    the range that a value can have, where there is one. A kind of prompt that was not drawn is not
    covered: where a tenth of the prompts fails, the interval of their mean score holds the truth in
    .59, .73, .85 and .94 of samples of 8, 12, 20 and 40 prompts; that of a share in .93 or more.

    >>> print(mean([1, 1, 0, 1, None]))
    .750 [.25, .97], n=4, 1 unknown
    """
    x = numbers(values, "values", *bounds)
    w = np.ones(len(x)) if weights is None else numbers(weights, "weights", 0.0)
    zero = w == 0
    columns = {"values": x, "weights": np.where(zero, math.nan, w)}
    (x, w), group, left_out = complete(columns, cluster)
    w = w / w.sum()
    value, ends = float(w @ x) if len(x) else math.nan, _extremes(x, group)
    if bounds == OPEN and binary(x):
        # Wilson's form alone is right for independent shares; likeness in clusters calls for more
        bounds, ends = UNIT, None if group is None else UNIT
    return interval(
        value,
        w * (x - value),
        group,
        bounds=bounds,
        ends=ends,
        method="mean",
        missing=left_out - int(zero.sum()),
        level=level,
        weights=w if weights is not None else None,
    )


@takes_table("new", "old", "cluster")
def difference(
    new: Any,
    old: Any,
    *,
    cluster: Any = None,
    bounds: Range = OPEN,
    level: float = 0.95,
) -> Estimate:
    """The mean of new - old, paired by row, with its interval.

    new, old : (n,) scores of the same rows; a row in which one is unknown is left out and counted.
    bounds : the range of a score, where there is one. A rare collapse and skewed scores are covered
    less often with few prompts (see `mean`; .86 for a skewed score at 8): `claim` asks for more.

    >>> print(difference([1, 1, 1, 0, 1, 1], [0, 1, 0, 0, 0, 1]))
    .500 [-.13, .83], n=6
    """
    columns = {
        "new": numbers(new, "new", *bounds),
        "old": numbers(old, "old", *bounds),
    }
    (a, b), group, missing = complete(columns, cluster)
    # Paired, so that what makes a prompt easy for both cancels (Miller 2024).
    d, ends, wide = a - b, _extremes(a - b, group), bounds[1] - bounds[0]
    if binary(a) and binary(b):
        wide, ends = 1.0, BOTH
    both = np.append(a, b)
    in_unit = both.min(initial=0) >= 0 and both.max(initial=1) <= 1
    value = float(d.mean()) if len(d) else math.nan
    e = interval(
        value,
        (d - value) / max(len(d), 1),
        group,
        method="paired difference",
        bounds=(-wide, wide),
        ends=ends,
        missing=missing,
        level=level,
        scale=min(wide, 1.0 if in_unit else float(np.ptp(both))),
    )
    if d.any() or not len(d) or e.note.startswith("too few"):
        return e
    # rows without spread show no error; what 3 in n rows may hide is left (rule of three)
    room = e.scale * min(UNDRAWN / e.units, 1.0)
    return replace(e, low=-room, high=room, note=SAME)


@takes_table("values", "cluster")
def per_cluster(values: Any, cluster: Any) -> Any:
    """The mean of each cluster, a Series: `mean` and `difference` of it count every prompt once.

    >>> per_cluster([1, 0, 1], ["a", "a", "b"]).to_dict()
    {'a': 0.5, 'b': 1.0}
    """
    import pandas as pd

    return (
        # A Series would be aligned by its index labels, not by position.
        pd.Series(numbers(values)).groupby(np.asarray(cluster), sort=False).mean()
    )


@takes_table("values", "seeds")
def over_seeds(values: Any, *, seeds: Any = None, bounds: Range = OPEN) -> Estimate:
    """The mean over runs with different seeds, with a t interval; one seed has none.

    seeds : (n,) the seed of each value. A seed that occurs twice is an error: it is no new draw.
    Five seeds usually miss a failure that happens in one run out of ten.

    >>> print(over_seeds([0.5, 0.6, 0.7]))
    .600 [.35, .85], n=3
    """
    x = numbers(values, "values", *bounds)
    # a deterministic run repeated with its seed gives the same value, and no news
    labels = range(len(x)) if seeds is None else list(seeds)
    if not len(labels) == len(x) == len(set(labels)):
        raise DataError(
            "a seed occurs twice, or has no value",
            where="seeds",
            fix="pass one value for each seed",
        )
    x, missing = x[~np.isnan(x)], int(np.isnan(x).sum())
    value = float(x.mean()) if len(x) else math.nan
    e = interval(
        value,
        (x - value) / max(len(x), 1),
        None,
        method="mean over seeds",
        missing=missing,
    )
    # The limits of t know no range, and three seeds may put one beyond it.
    return replace(
        e, low=max(e.low, bounds[0]), high=min(e.high, bounds[1]), bounds=bounds
    )


def _area(score: np.ndarray, right: np.ndarray) -> tuple[float, np.ndarray]:
    """The area under the ROC curve, and the influence (n,) of each row (DeLong et al. 1988)."""
    _, at, ties = np.unique(score, return_inverse=True, return_counts=True)
    hits = np.bincount(at, right)
    misses = ties - hits
    # the share of the other kind that scores lower, ties half
    n1, n0 = hits.sum(), misses.sum()
    # from counts per distinct score: one sort, where three rankings would do the same
    misses_below, hits_below = (np.cumsum(k) - k / 2 for k in (misses, hits))
    area = float(hits @ misses_below / (n1 * n0))
    place = np.where(right == 1, misses_below[at] / n0, 1 - hits_below[at] / n1)
    return area, (place - area) / np.where(right == 1, n1, n0)


@takes_table("score", "correct", "against", "cluster")
def auroc(
    score: Any, correct: Any, *, against: Any = None, cluster: Any = None
) -> Estimate:
    """The chance that a right row scores above a wrong one; ties count half.

    score : (n,) numbers. correct : (n,) of 0 and 1. against : a second score (n,); then the result
    is the first score's area less the second's, paired by row.

    >>> auroc([0.9, 0.8, 0.3, 0.2], [1, 1, 0, 0]).value
    1.0
    """
    columns = {
        "score": numbers(score, "score"),
        "correct": numbers(correct, "correct", 0, 1),
    }
    if against is not None:
        columns["against"] = numbers(against, "against")
    (s, y, *other), group, missing = complete(columns, cluster)
    if not binary(y):
        raise DataError("an outcome is neither 0 nor 1", where="correct")
    if y.all() or not y.any():
        return Estimate(
            math.nan,
            n=len(y),
            missing=missing,
            method="AUROC",
            note="right and wrong rows are needed",
        )
    more: dict[str, Any] = {"outcome": y, "missing": missing}
    value, psi = _area(s, y)
    if not other:
        return interval(
            value, psi, group, method="AUROC", bounds=UNIT, ends=UNIT, **more
        )
    second, less = _area(other[0], y)
    # An area has no range per row, so scale 0: the interval alone decides.
    more |= {"method": "change in AUROC", "bounds": BOTH, "scale": 0.0}
    return interval(value - second, psi - less, group, **more)


def simultaneous_intervals(
    claims: Mapping[str, Estimate], level: float = 0.95
) -> dict[str, Estimate]:
    """The same estimates with wider intervals that hold all at once (Bonferroni).

    In at most one of twenty such families does an interval miss its value.

    >>> one = Estimate(0.1, 0.0, 0.2, n=100)
    >>> print(simultaneous_intervals({"a": one, "b": one})["a"])
    .100 [-.02, .22], n=100
    """
    if not 0 < level < 1:
        raise DataError(f"level is {level!r}", where="level", fix="in (0, 1)")
    out, k = {}, max(len(claims), 1)
    for name, e in claims.items():
        df = max(e.units - 1, 1)
        # the estimate's own half widths are stretched, so its shape stays
        wide = t_quantile(1 - (1 - level) / k, df) / t_quantile(e.level, df)
        low = e.value - wide * (e.value - e.low)
        high = e.value + wide * (e.high - e.value)
        out[name] = replace(
            e,
            low=max(low, e.bounds[0]),
            high=min(high, e.bounds[1]),
            method=f"{e.method}, adjusted for {k} looks",
            level=level,
        )
    return out


def compare_to_baseline(
    scores: Any, baseline: str, *, cluster: Any = None, level: float = 0.95
) -> dict[str, Estimate]:
    """Every column less the baseline column, paired by row; the intervals hold all at once.

    scores : a mapping name -> (n,), or a DataFrame of which `cluster` may name a column.

    >>> scores = {"base": [0, 1, 0, 1, 0, 1], "new": [1, 1, 1, 1, 0, 1]}
    >>> round(compare_to_baseline(scores, "base")["new"].value, 3)
    0.333
    """
    names = [
        k
        for k in scores
        if k != baseline and not (isinstance(cluster, str) and k == cluster)
    ]
    if baseline not in scores:
        raise DataError(
            f"there is no column {baseline!r}", where="baseline", fix=f"{names}"
        )
    group = scores[cluster] if isinstance(cluster, str) else cluster
    return simultaneous_intervals(
        {
            k: difference(scores[k], scores[baseline], cluster=group, level=level)
            for k in names
        },
        level,
    )


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
    result is a number for which `claim` claims the gain. flips : for pass and fail, in place of
    spread (both are an error): the share of prompts whose verdict changes (Connor 1987, for McNemar's
    test; `claim` asks for more).

    >>> prompts_for(0.4, flips=0.5), prompts_for(0.15, flips=0.45), prompts_for(0.05, spread=0.15)
    (23, 155, 171)
    """
    size, certain = abs(gain), 2 * power - 1
    # flips that are fewer than the gain could not make it
    deviation, least = (spread, 0.0) if flips is None else (flips, size)
    is_valid = 0 < size < math.inf and noise >= 0 and samples >= 1
    if (
        (spread is None) == (flips is None)
        or not (is_valid and deviation >= least)
        or not (0 < certain < 1 and 0 < level < 1)
    ):
        raise DataError(
            f"gain {gain}, spread {spread}, flips {flips}, power {power}",
            where="prompts_for",
            fix="a gain other than 0; spread >= 0, or flips >= the gain; power in (.5, 1)",
        )
    if flips is not None:
        z = [t_quantile(p, math.inf) for p in (level, certain)]
        sides = z[0] * math.sqrt(flips) + z[1] * math.sqrt(flips - gain**2)
        return math.ceil((sides / gain) ** 2)
    # Both sides are sampled, so the noise of an answer enters twice.
    sd = math.sqrt(deviation**2 + 2 * noise**2 / samples)

    # No formula gives n: the quantiles and the rule of three both depend on it.
    def least_gain(n: int) -> float:
        wide = t_quantile(level, n - 1) + t_quantile(certain, n - 1)
        return wide * sd / math.sqrt(n) + UNDRAWN / n

    return next(n for n in count(4) if least_gain(n) <= size)


def labels_needed(
    half_width: float, rate: float, *, q1: float, q0: float, level: float = 0.95
) -> dict[str, int]:
    """How many labels give a pass rate of +- half_width: alone, and beside a judge.

    rate : the expected pass rate. q1, q0 : the judge's sensitivity and specificity.

    >>> labels_needed(0.05, 0.8, q1=0.9, q0=0.8)
    {'labels alone': 246, 'with the judge': 141}
    """
    if not (
        0 < rate < 1
        and 0 <= q1 <= 1
        and 0 <= q0 <= 1
        and half_width > 0
        and 0 < level < 1
    ):
        raise DataError(
            "a rate is out of range",
            where="labels_needed",
            fix="rates in (0, 1), half_width > 0",
        )
    scale = (t_quantile(level, math.inf) / half_width) ** 2
    met = rate * q1 + (1 - rate) * (1 - q0)  # share of rows with the verdict "met"
    # Beside a judge, labels pay only for what its verdict leaves open.
    rows = ((met, rate * q1), (1 - met, rate * (1 - q1)))
    variance = sum(right * (1 - right / max(share, 1e-12)) for share, right in rows)
    return {
        "labels alone": math.ceil(scale * rate * (1 - rate)),
        "with the judge": math.ceil(scale * variance),
    }
