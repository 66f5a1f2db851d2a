"""What people would say of all rows, from verdicts on all rows and labels on some."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import DataError
from .columns import codes, numbers, takes_table
from .estimate import OPEN, RARE, Estimate, interval, too_rare
from .means import UNIT, binary, mean


def _shares(
    n: int, group: np.ndarray | None, weights: Any, answer: Any
) -> tuple[np.ndarray, np.ndarray]:
    """What a row's label adds to the total (n,), and what the row counts in the divisor (n,).

    Without `answer` a row is a unit. With it an answer is one: its score is sum(weight * label) /
    sum(weight > 0).
    """
    w = np.ones(n) if weights is None else numbers(weights, "weights")
    if len(w) != n:
        raise DataError(f"there are {len(w)} weights for {n} rows", where="weights")
    unit = codes(answer, n)
    if unit is None:
        return w, np.ones(n)
    if group is not None:
        # answer ids such as "a1" may recur in every task
        unit = codes(group * (int(unit.max()) + 1) + unit, n)
    top = np.bincount(unit, np.maximum(w, 0))
    if not (top > 0).all():
        raise DataError("an answer has no positive weight", where="weights")
    return w / top[unit], 1 / np.bincount(unit)[unit]


def _fitted(
    f: np.ndarray, y: np.ndarray, w: np.ndarray, share: np.ndarray
) -> tuple[float, np.ndarray]:
    """The mean label of all rows by regression on the verdict, and the influence (n,) of each row.

    For pass and fail this is post-stratification, for scores PPI++ (Angelopoulos et al. 2023). An
    unknown verdict is a level of its own.
    """
    has, silent = ~np.isnan(y), np.isnan(f)
    columns = [np.ones(len(f)), np.nan_to_num(f)] + [silent * 1.0] * bool(silent.any())
    design = np.column_stack(columns)
    fit = w * (design @ np.linalg.lstsq(design[has], y[has], rcond=None)[0])
    m, total = int(has.sum()), share.sum()
    # each labelled row stands for n / m rows; what the fit used up is added to its residuals
    rest = np.where(has, w * np.nan_to_num(y) - fit, 0.0) * len(f) / m
    value = float((fit.sum() + rest.sum()) / total)
    spent = math.sqrt(m / max(m - design.shape[1], 1))
    drift = rest.sum() / m
    psi = fit - fit.sum() / total * share + spent * np.where(has, rest - drift, 0.0)
    return value, psi / total


def _shifted(f: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray]:
    """The judge's rate on rows without labels, its errors from the labels (Rogan & Gladen 1978)."""
    bare, one, two = np.isnan(y), y == 1, y == 0
    if not (bare.any() and one.any() and two.any()):
        fix = "labels of both outcomes, and rows without labels"
        raise DataError("rows are missing for the shifted design", where="human", fix=fix)
    p, q1, q0 = f[bare].mean(), f[one].mean(), 1 - f[two].mean()
    gain = q1 + q0 - 1
    if not gain > 0:
        return math.nan, f
    value = (p + q0 - 1) / gain
    psi = np.where(bare, f - p, 0) / bare.sum() - value * np.where(one, f - q1, 0) / one.sum()
    psi += (1 - value) * np.where(two, 1 - f - q0, 0) / two.sum()
    return float(np.clip(value, 0, 1)), psi / gain


@takes_table("judge", "human", "cluster", "weights", "answer")
def corrected(
    judge: Any,
    human: Any,
    *,
    design: str,
    cluster: Any = None,
    weights: Any = None,
    answer: Any = None,
) -> Estimate:
    """The mean label that people would give to all rows: a pass rate, or a rubric score.

    judge : (n,) verdicts or scores in [0, 1], None where unknown. human : (n,) labels in [0, 1],
    None where there is none. design : "random" when the labels are a random sample of these rows or
    clusters; "shifted" when the labelled rows come from elsewhere (pass and fail only). weights,
    answer : (n,) weights of criteria and ids of answers; then the result is the mean rubric score,
    sum(weight * label) / sum(positive weights) of each answer ("random" only). With fewer than five
    labelled clusters of an outcome, the labels are used alone.

    >>> judge = [1] * 400 + [0] * 600 + [1] * 180 + [0] * 20 + [0] * 140 + [1] * 60
    >>> human = [None] * 1000 + [1] * 200 + [0] * 200
    >>> print(corrected(judge, human, design="shifted"))
    .167 [.08, .30], n=1400
    """
    f, y = numbers(judge, "judge", 0, 1), numbers(human, "human", 0, 1)
    if len(f) != len(y):
        raise DataError(f"{len(f)} verdicts, {len(y)} labels", where="judge, human")
    group, has = codes(cluster, len(f)), ~np.isnan(y)
    more: dict[str, Any] = {"method": f"corrected by {int(has.sum())} labels"}
    if design == "shifted":
        if weights is not None or answer is not None or not binary(y[has]):
            fix = 'pass and fail without weights, or design="random"'
            raise DataError("the shifted design corrects a pass rate", where="human", fix=fix)
        keep = ~np.isnan(f)
        value, psi = _shifted(f[keep], y[keep])
        group = None if group is None else np.unique(group[keep], return_inverse=True)[1]
        e = interval(value, psi, group, bounds=UNIT, ends=UNIT, missing=int((~keep).sum()), **more)
        weak = "the judge is no better than chance on the labels"
        return replace(e, note=weak) if math.isnan(value) else e
    if design != "random":
        fix = '"random": a random sample of these rows; "shifted": from elsewhere'
        raise DataError(f"design is {design!r}", where="design", fix=fix)
    labelled = None if group is None else group[has]
    rare = too_rare(y[has], labelled) if binary(y[has]) else ""
    if rare and weights is None and answer is None:
        alone = mean(y[has], cluster=labelled)
        return replace(alone, method="labels alone", note=f"labels alone: {rare}")
    w, share = _shares(len(f), group, weights, answer)
    held = int(has.sum()) if labelled is None else len(np.unique(labelled))
    if held < RARE:
        note = f"labels lie in {held} clusters, {RARE} are needed"
        return Estimate(math.nan, n=len(f), note=note, **more)
    value, psi = _fitted(f, y, w, share)
    plain = weights is None and answer is None
    return interval(
        value, psi, group, bounds=UNIT if plain else OPEN, ends=UNIT if plain else None, **more
    )


@takes_table("judge", "human", "policy", "cluster", "weights", "answer")
def policy_difference(
    judge: Any,
    human: Any,
    policy: Any,
    *,
    new: Any,
    old: Any,
    cluster: Any,
    weights: Any = None,
    answer: Any = None,
) -> Estimate:
    """The mean label of policy `new` less that of `old`, each corrected by its own labels.

    policy : (n,) who wrote the row's answer. Labels are a random sample of the rows of each policy.
    Other arguments as in `corrected`.
    """
    f, y = numbers(judge, "judge", 0, 1), numbers(human, "human", 0, 1)
    names = np.asarray(policy, dtype=object)
    if not len(f) == len(y) == len(names):
        raise DataError("columns differ in length", where="judge, human, policy")
    group = codes(cluster, len(f))
    value, psi = 0.0, np.zeros(len(f))
    for name, sign in ((new, 1), (old, -1)):
        here = names == name
        if np.isfinite(y[here]).sum() < RARE:
            raise DataError(f"policy {name!r} has fewer than {RARE} labels", where="human")
        w = None if weights is None else np.asarray(weights)[here]
        one = None if answer is None else np.asarray(answer, dtype=object)[here]
        w, share = _shares(int(here.sum()), group[here], w, one)
        mean_label, moves = _fitted(f[here], y[here], w, share)
        value += sign * mean_label
        psi[here] = sign * moves
    rows = (names == new) | (names == old)
    plain = weights is None and answer is None
    return interval(
        value,
        psi[rows],
        np.unique(group[rows], return_inverse=True)[1],
        method="difference corrected by labels",
        bounds=(-1.0, 1.0) if plain else OPEN,
        ends=(-1.0, 1.0) if plain else None,
        scale=1.0,
    )
