"""Means, differences, ranking; several looks at once; how much data a claim needs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from ..errors import DataError
from ..records import count_of
from .columns import Column, Floats, Ints, complete_rows, read_numbers, takes_table
from .estimate import (
    NO_DIFFERENCE,
    RULE_OF_THREE,
    SIGNED_RANGE,
    UNBOUNDED,
    UNIT_RANGE,
    Estimate,
    ValueRange,
    estimate_from_influence,
    t_quantile,
)

Name = TypeVar("Name")


def is_binary(x: Floats) -> bool:
    """True when every value is 0 or 1."""
    return bool(((x == 0) | (x == 1)).all())


def _extreme_means(x: Floats, group: Ints | None) -> ValueRange:
    """The lowest and highest mean of a cluster."""
    if group is not None:
        x = np.bincount(group, x) / np.bincount(group)
    return float(x.min(initial=math.inf)), float(x.max(initial=-math.inf))


@takes_table("values", "cluster", "weights")
def mean(
    values: Column,
    *,
    cluster: Column | None = None,
    weights: Column | None = None,
    bounds: ValueRange = UNBOUNDED,
    level: float = 0.95,
) -> Estimate:
    """The mean of a column with its interval. A column of 0 and 1 is a share and stays in [0, 1].

    values : (n,) numbers; None and NaN are left out and counted. cluster : (n,) labels of rows that
    belong together, for example the task. weights : (n,) >= 0; rows of weight 0 do not count. bounds :
    the range that a value can have, where there is one. A kind of prompt that was not drawn is not
    covered: where a tenth of the prompts fails, the interval of their mean score holds the truth in
    .59, .73, .85 and .94 of samples of 8, 12, 20 and 40 prompts; that of a share in .93 or more.

    >>> print(mean([1, 1, 0, 1, None]))
    .750 [.25, .97], n=4, 1 unknown
    """
    x = read_numbers(values, "values", *bounds)
    w = read_numbers(np.ones(len(x)) if weights is None else weights, "weights", 0)
    is_zero = w == 0
    (x, w), group, left_out = complete_rows(
        {"values": x, "weights": np.where(is_zero, math.nan, w)}, cluster
    )
    w = w / w.sum()
    value = float(w @ x) if len(x) else math.nan
    ends: ValueRange | None = _extreme_means(x, group)
    if bounds == UNBOUNDED and is_binary(x):
        # Wilson's form alone is right for independent shares; likeness in clusters calls for more
        bounds, ends = UNIT_RANGE, None if group is None else UNIT_RANGE
    return estimate_from_influence(
        value,
        w * (x - value),
        group,
        bounds=bounds,
        ends=ends,
        method="mean",
        missing=left_out - int(is_zero.sum()),
        level=level,
        weights=None if weights is None else w * w.sum() / (w @ w),
    )


@takes_table("new", "old", "cluster")
def difference(
    new: Column,
    old: Column,
    *,
    cluster: Column | None = None,
    bounds: ValueRange = UNBOUNDED,
    level: float = 0.95,
) -> Estimate:
    """The mean of new - old, paired by row, with its interval.

    new, old : (n,) scores of the same rows; a row in which one is unknown is left out and counted.
    bounds : the range of a score, where there is one. A rare collapse and skewed scores are covered
    less often with few prompts (see `mean`; .86 for a skewed score at 8): `claim` asks for more.

    >>> print(difference([1, 1, 1, 0, 1, 1], [0, 1, 0, 0, 0, 1]))
    .500 [-.13, .83], n=6
    """
    (a, b), group, missing = complete_rows(
        {
            "new": read_numbers(new, "new", *bounds),
            "old": read_numbers(old, "old", *bounds),
        },
        cluster,
    )
    # Paired, so that what makes a prompt easy for both cancels (Miller 2024).
    change = a - b
    ends, width = _extreme_means(change, group), bounds[1] - bounds[0]
    both, span = np.append(a, b), 1.0
    # the range of a score is 1 where all lie in [0, 1], else what they span
    if both.min(initial=0) < 0 or both.max(initial=1) > 1:
        span = float(np.ptp(both))
    if is_binary(both):
        width, ends = 1.0, SIGNED_RANGE
    value = float(change.mean()) if len(change) else math.nan
    e = estimate_from_influence(
        value,
        (change - value) / len(change),
        group,
        method="paired difference",
        bounds=(-width, width),
        ends=ends,
        missing=missing,
        level=level,
        scale=min(width, span),
    )
    if change.any() or not len(change) or e.note.startswith("too few"):
        return e
    # rows without spread show no error; what 3 in n rows may hide is left (rule of three)
    room = e.scale * min(RULE_OF_THREE / e.units, 1.0)
    return replace(e, low=-room, high=room, note=NO_DIFFERENCE)


@takes_table("values", "cluster")
def per_cluster(values: Column, cluster: Column) -> pd.Series[float]:
    """The mean of each cluster, a Series: `mean` and `difference` of it count every prompt once.

    >>> per_cluster([1, 0, 1], ["a", "a", "b"]).to_dict()
    {'a': 0.5, 'b': 1.0}
    """
    return (
        pd.Series(read_numbers(values))
        # A Series would be aligned by its index labels, not by position.
        .groupby(np.asarray(cluster), sort=False)
        .mean()
    )


@takes_table("values", "seeds")
def over_seeds(
    values: Column, *, seeds: Column | None = None, bounds: ValueRange = UNBOUNDED
) -> Estimate:
    """The mean over runs with different seeds, with a t interval; one seed has none.

    seeds : (n,) the seed of each value. A seed that occurs twice is an error: it is not a new draw.
    Five seeds usually miss a failure that happens in one run out of ten.

    >>> print(over_seeds([0.5, 0.6, 0.7]))
    .600 [.35, .85], n=3
    """
    column = read_numbers(values, "values", *bounds)
    # a deterministic run repeated with its seed gives the same value, and no news
    labels = list(range(len(column)) if seeds is None else seeds)
    if not len(labels) == len(column) == len(set(labels)):
        raise DataError(
            "a seed occurs twice, or has no value",
            where="seeds",
            fix="pass one value for each seed",
        )
    (x,), _, missing = complete_rows({"values": column}, None)
    value = float(x.mean()) if len(x) else math.nan
    e = estimate_from_influence(
        value,
        (x - value) / len(x),
        None,
        method="mean over seeds",
        missing=missing,
    )
    # The limits of t know no range, and three seeds may put one beyond it.
    return replace(
        e, low=max(e.low, bounds[0]), high=min(e.high, bounds[1]), bounds=bounds
    )


def _roc_area(score: Floats, right: Floats) -> tuple[float, Floats]:
    """The area under the ROC curve, and the influence (n,) of each row (DeLong et al. 1988)."""
    _, at, ties = np.unique(score, return_inverse=True, return_counts=True)
    hits = np.bincount(at, right)
    misses = ties - hits
    n1, n0 = hits.sum(), misses.sum()
    # the share of the other kind that scores lower, ties half
    # from counts per distinct score: one sort, where three rankings would do the same
    misses_below = np.cumsum(misses) - misses / 2
    hits_below = np.cumsum(hits) - hits / 2
    area = float(hits @ misses_below / (n1 * n0))
    place = np.where(right == 1, misses_below[at] / n0, 1 - hits_below[at] / n1)
    return area, (place - area) / np.where(right == 1, n1, n0)


@takes_table("score", "correct", "against", "cluster")
def auroc(
    score: Column,
    correct: Column,
    *,
    against: Column | None = None,
    cluster: Column | None = None,
) -> Estimate:
    """The chance that a right row scores above a wrong one; ties count half.

    score : (n,) numbers. correct : (n,) of 0 and 1. against : a second score (n,); then the result
    is the first score's area less the second's, paired by row.

    >>> auroc([0.9, 0.8, 0.3, 0.2], [1, 1, 0, 0]).value
    1.0
    """
    columns = {
        "score": read_numbers(score, "score"),
        "correct": read_numbers(correct, "correct", 0, 1),
    }
    if against is not None:
        columns["against"] = read_numbers(against, "against")
    (s, y, *other), group, missing = complete_rows(columns, cluster)
    if not is_binary(y):
        raise DataError("an outcome is neither 0 nor 1", where="correct")
    if y.all() or not y.any():
        return Estimate(
            math.nan,
            n=len(y),
            missing=missing,
            method="AUROC",
            note="right and wrong rows are needed",
        )
    value, psi = _roc_area(s, y)
    if not other:
        return estimate_from_influence(
            value,
            psi,
            group,
            method="AUROC",
            bounds=UNIT_RANGE,
            ends=UNIT_RANGE,
            outcome=y,
            missing=missing,
        )
    second, less = _roc_area(other[0], y)
    # An area has no range per row, so scale 0: the interval alone decides.
    return estimate_from_influence(
        value - second,
        psi - less,
        group,
        method="change in AUROC",
        bounds=SIGNED_RANGE,
        scale=0.0,
        outcome=y,
        missing=missing,
    )


def simultaneous_intervals(
    claims: Mapping[Name, Estimate], level: float = 0.95
) -> dict[Name, Estimate]:
    """The same estimates with wider intervals that hold all at once (Bonferroni).

    In at most one of twenty such families does an interval miss its value.

    >>> one = Estimate(0.1, 0.0, 0.2, n=100)
    >>> print(simultaneous_intervals({"a": one, "b": one})["a"])
    .100 [-.02, .22], n=100
    """
    out, looks = {}, max(len(claims), 1)
    for name, e in claims.items():
        df = max(e.units - 1, 1)
        # the estimate's own half widths are stretched, so its shape stays
        wider = t_quantile(1 - (1 - level) / looks, df) / t_quantile(e.level, df)
        out[name] = replace(
            e,
            low=max(e.value - wider * (e.value - e.low), e.bounds[0]),
            high=min(e.value + wider * (e.high - e.value), e.bounds[1]),
            method=f"{e.method}, adjusted for {count_of(looks, 'look')}",
            level=level,
        )
    return out


def compare_to_baseline(
    scores: Mapping[str, Column] | pd.DataFrame,
    baseline: str,
    *,
    cluster: Column | None = None,
) -> dict[str, Estimate]:
    """Every column less the baseline column, paired by row; the intervals hold all at once.

    scores : a mapping name -> (n,), or a DataFrame of which `cluster` may name a column.

    >>> scores = {"base": [0, 1, 0, 1, 0, 1], "new": [1, 1, 1, 1, 0, 1]}
    >>> round(compare_to_baseline(scores, "base")["new"].value, 3)
    0.333
    """
    columns: dict[Any, Column] = dict(scores.items())
    group = columns.pop(cluster) if isinstance(cluster, str) else cluster
    if baseline not in columns:
        raise DataError(
            f"there is no column {baseline!r}",
            where="baseline",
            fix=f"{list(columns)}",
        )
    base = columns.pop(baseline)
    return simultaneous_intervals(
        {
            name: difference(column, base, cluster=group)
            for name, column in columns.items()
        }
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
    certain = 2 * power - 1
    if (
        0 < abs(gain) < math.inf
        and noise >= 0
        and samples >= 1
        and 0 < certain < 1
        and 0 < level < 1
    ):
        # flips that are fewer than the gain could not make it
        if spread is None and flips is not None and flips >= abs(gain):
            sides = t_quantile(level, math.inf) * math.sqrt(flips)
            sides += t_quantile(certain, math.inf) * math.sqrt(flips - gain**2)
            return math.ceil((sides / gain) ** 2)
        if flips is None and spread is not None and spread >= 0:
            # Both sides are sampled, so the noise of an answer enters twice.
            sd = math.sqrt(spread**2 + 2 * noise**2 / samples)
            # No formula gives n: the quantiles and the rule of three both depend on it.
            for n in count(4):
                width = t_quantile(level, n - 1) + t_quantile(certain, n - 1)
                if width * sd / math.sqrt(n) + RULE_OF_THREE / n <= abs(gain):
                    return n
    raise DataError(
        f"gain {gain}, spread {spread}, flips {flips}, power {power}",
        where="prompts_for",
        fix="a gain other than 0; spread >= 0, or flips >= the gain; power in (.5, 1)",
    )


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
    # share of rows that are met under either verdict, and of rows with the verdict "met"
    right, wrong = rate * q1, rate * (1 - q1)
    met = right + (1 - rate) * (1 - q0)
    # Beside a judge, labels pay only for what its verdict leaves open.
    open_met = right * (1 - right / max(met, 1e-12))
    open_unmet = wrong * (1 - wrong / max(1 - met, 1e-12))
    return {
        "labels alone": math.ceil(scale * rate * (1 - rate)),
        "with the judge": math.ceil(scale * (open_met + open_unmet)),
    }
