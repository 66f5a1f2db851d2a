"""Inference for the weighted rubric score: signed weights, rubrics of unequal size, unknown
verdicts, clusters, labelled corrections.

The score of one answer is sum(w v) / W, v the verdict (1 met, 0 unmet, a level in between). W is,
by `how`:
  "signed"               sum |w|: from -(negative share) to +(positive share).
  "positive_normalised"  sum of the positive weights: 1 is perfect, negatives subtract.
  "flip"                 sum |w|, with v -> 1 - v where w < 0: always in [0, 1].
The estimand is the mean score of an answer (every answer counts the same, whatever the size of its
rubric).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import DataError
from .clusters import UNSEEN, codes, estimate, floats, same_length, sums, worth
from .columns import takes_table
from .estimate import Estimate
from .rates import mean
from .shares import allow_unseen
from .tails import t_below, t_quantile

HOW = ("signed", "positive_normalised", "flip")


@dataclass(frozen=True)
class RubricScore:
    """The mean weighted score, and what the unknown verdicts could make of it.

    estimate : value and interval that hold whatever the unknown verdicts are; value is the middle
        of [worst.value, best.value].
    worst, best : with every unknown verdict counted against, or for, the answer. corrected : a
        labelled subset was used.
    """

    estimate: Estimate
    worst: Estimate
    best: Estimate
    n_answers: int
    n_verdicts: int
    n_unknown: int
    corrected: bool

    def __str__(self) -> str:
        return f"{self.estimate} ({self.n_verdicts} verdicts, {self.n_unknown} unknown)"


@dataclass(frozen=True)
class _Rows:
    a: np.ndarray  # signed share of its answer's score, (n,)
    v: np.ndarray  # judge's verdict, NaN unknown
    h: np.ndarray  # human's verdict, NaN not labelled
    base: np.ndarray  # constant of the answer (the flipped negatives), spread over its rows
    answer: np.ndarray  # (n,)
    owner: np.ndarray  # the cluster of each answer (answers,)


def _column(values: Sequence[Any] | None, n: int, name: str) -> np.ndarray:
    x = np.full(n, math.nan) if values is None else floats(values, name=name)
    bad = np.flatnonzero((x < 0) | (x > 1))
    if len(bad):
        raise DataError(
            f"{x[bad[0]]!r} is not in [0, 1]",
            where=f"{name}, row {bad[0]}",
            fix="1 met, 0 unmet, None unknown",
        )
    return x


def _rows(
    verdicts: Sequence[Any],
    weights: Sequence[float],
    answer: Sequence[Any],
    cluster: Sequence[Any] | None,
    human: Sequence[Any] | None,
    how: str,
) -> _Rows:
    DataError.other("how", how, HOW, "how")
    n = same_length(verdicts=verdicts, weights=weights, answer=answer, cluster=cluster, human=human)
    w, (group, n_answers) = floats(weights, name="weights"), codes(answer, n)
    if np.isnan(w).any():
        raise DataError(
            "a weight is unknown",
            where=f"weights, row {int(np.flatnonzero(np.isnan(w))[0])}",
            fix="give every criterion a weight",
        )
    total = np.bincount(
        group, np.maximum(w, 0) if how == "positive_normalised" else np.abs(w), n_answers
    )
    if (total == 0).any():
        raise DataError(
            "an answer has nothing to score",
            where=f"answer, number {int(np.flatnonzero(total == 0)[0])}",
            fix="leave out answers whose weights are all 0"
            + (" or negative" if how == "positive_normalised" else ""),
        )
    a = w / total[group]
    prompt = codes(answer if cluster is None else cluster, n)[0]
    first = np.unique(group, return_index=True)[1]
    if cluster is not None and (prompt != prompt[first][group]).any():
        raise DataError(
            "one answer lies in two clusters",
            where="cluster",
            fix="the cluster is the answer's prompt (or a larger unit)",
        )
    base = np.where(w < 0, -a, 0.0) if how == "flip" else np.zeros(n)
    return _Rows(
        a,
        _column(verdicts, n, "verdicts"),
        _column(human, n, "human"),
        base,
        group,
        prompt[first],
    )


def _mean_score(r: _Rows, filled: np.ndarray, missing: int, level: float, words: str) -> Estimate:
    """The mean of the answers' scores as `rates.mean` has it, in the range that their weights
    leave; with room for prompts that are met or unmet as a whole and were not drawn.
    """
    least, score, most = (
        np.round(np.bincount(r.answer, part + r.base), 12)  # .999.. is 1
        for part in (np.minimum(r.a, 0.0), r.a * filled, np.maximum(r.a, 0.0))
    )
    bounds = float(least.min()), float(most.max())
    out = mean(score, cluster=r.owner, level=level, bounds=bounds)
    if out.se > 0 and not out.method.startswith("share"):
        out = allow_unseen(out, bounds, bounds)
    return replace(out, missing=missing, method=f"weighted rubric score{words}, {out.method}")


def _cover_both(worst: Estimate, best: Estimate, level: float) -> tuple[float, float]:
    """Imbens & Manski 2004, equation 7, with Student's t: limits that cover a value anywhere
    between the two ends, each as far off as its own interval says.
    """
    gap, wide = best.value - worst.value, max(worst.se, best.se)
    if not (wide > 0):
        return worst.low, best.high
    from scipy import optimize

    df = max((worst.n_clusters or 2) - 1, 1)
    whole = t_quantile(level, df)
    part = (
        optimize.brentq(
            lambda x: t_below(x + gap / wide, df) - t_below(-x, df) - level, 0.0, whole + 1e-9
        )
        / whole
    )
    low = worst.value - part * (worst.value - worst.low)
    return low, best.value + part * (best.high - best.value)


@takes_table("verdicts", "weights", "answer", "cluster", "human")
def rubric_score(
    verdicts: Sequence[Any],
    weights: Sequence[float],
    *,
    answer: Sequence[Any],
    cluster: Sequence[Any] | None = None,
    human: Sequence[Any] | None = None,
    how: str = "signed",
    level: float = 0.95,
) -> RubricScore:
    """Mean weighted rubric score with an interval, from one row per (answer, criterion).

    how : the denominator, as above: "signed" divides by sum |w|, so that with the weights 2, -1, 1
        a perfect answer scores .75.
    verdicts : (n,) in [0, 1], None unknown. weights : (n,) signed. answer : (n,) id of the answer.
        cluster : (n,) its prompt (default: the answer). human : (n,) labels of a random sample of
        rows or of whole prompts, None elsewhere; with them the judge's errors are taken out: rows
        are post-stratified by verdict (unknown is a level too) and by the sign of the weight, and
        the labels of a stratum are averaged in proportion to their share in the score. Interval:
        with labels cluster jackknife-t; without, that of `mean` over the answers' scores in their
        range, and with unknown verdicts the Imbens-Manski interval over all they could be.

    >>> s = rubric_score([1, 0, 1, None], [2, -1, 1, 1], answer=["a", "a", "b", "b"])
    >>> s.worst.value < s.estimate.value < s.best.value
    True
    """
    r = _rows(verdicts, weights, answer, cluster, human, how)
    if not np.isnan(r.h).any():  # every row labelled: the judge says nothing more
        r, human = replace(r, v=r.h), None
    gone = np.isnan(r.v)
    if human is not None and not np.isnan(r.h).all():
        return _corrected(r, int(gone.sum()), level)
    missing = int(gone.sum())
    worst, best = (
        _mean_score(r, np.where(gone, fill, r.v), missing, level, words if missing else "")
        for fill, words in (
            (r.a < 0, ", unknown verdicts counted against"),
            (r.a > 0, ", unknown verdicts counted for"),
        )
    )
    if not missing:
        return RubricScore(worst, worst, worst, worst.n, len(r.v), 0, False)
    low, high = _cover_both(worst, best, level)
    note = (
        f"unknown verdicts leave [{worst.value:.3f}, {best.value:.3f}] open; the interval "
        f"covers all of it"
    )
    middle = Estimate(
        (worst.value + best.value) / 2,
        low,
        high,
        worst.n,
        worst.n_clusters,
        "weighted rubric score, Imbens-Manski",
        worst.note or best.note if math.isnan(low + high) else note,
        missing,
        level,
    )
    return RubricScore(middle, worst, best, worst.n, len(r.v), missing, False)


def _corrected(r: _Rows, n_unknown: int, level: float) -> RubricScore:
    has, size = ~np.isnan(r.h), np.abs(r.a)
    several = np.isnan(r.v).any() or len(np.unique(r.v)) > 2
    # unmet, between, met, unknown
    cut = np.where(np.isnan(r.v), 3.0, np.round(r.v * 2)) if several else r.v * 2
    stratum = np.unique(cut * 2 + (r.a < 0), return_inverse=True)[1]
    answers, cluster = np.bincount(r.owner), r.owner[r.answer]
    k, c, n_answers = int(stratum.max()) + 1, len(answers), len(r.owner)
    parts = (r.a, size * np.where(has, r.h, 0.0), size * has)  # share, met labels, labels
    by_stratum = [sums(part[:, None] * np.eye(k)[stratum], cluster, c) for part in parts]
    columns = np.column_stack([answers, np.bincount(cluster, r.base, c), *by_stratum])
    half = 0.5 * float(size[has].mean())

    def stat(t: np.ndarray, soft: Any = half) -> np.ndarray:
        met = t[..., 2 + k : 2 + 2 * k]
        known = t[..., 2 + 2 * k :]
        mu = (met + soft) / (known + 2 * soft)
        filled = (t[..., 2 : 2 + k] * mu).sum(-1)
        return (t[..., 1] + filled) / t[..., 0]

    inside = len(np.unique(cluster[has]))
    out = estimate(
        stat,
        columns,
        n=n_answers,
        method="weighted rubric score corrected by labels",
        missing=n_unknown,
        level=level,
        bounds=(-math.inf, math.inf),
    )
    # labelled prompts of the rarer outcome may not have been drawn: room for UNSEEN more of each
    more = UNSEEN * columns.sum(0)[2 + 2 * k :] / inside
    added = np.array([[*np.zeros(2 + k), *(more * x), *more] for x in (0.0, 1.0)])
    se = math.sqrt(out.se**2 + _floor(r, stratum, has, size, k)) if inside > 1 else math.nan
    clusters = min(inside, worth(np.bincount(cluster, has)))
    wide = t_quantile(level, max(clusters - 1, 1)) * se
    near = replace(out, low=out.value - wide, high=out.value + wide)
    bounds = [(r.base.sum() + f(r.a, 0.0).sum()) / n_answers for f in (np.minimum, np.maximum)]
    out = allow_unseen(near, stat(columns.sum(0) + added), bounds, part=1.0)
    none = np.bincount(stratum, has, k) == 0
    note = f"{none.sum()} of {k} strata have no label" if none.any() else ""
    # half a label of each kind makes no empty or one-sided stratum certain; it moves no value
    value = float(stat(columns.sum(0), np.where(none, half, 0.0)))
    out = replace(
        out,
        value=min(max(value, out.low), out.high) if out.low <= out.high else value,
        se=se,
        note=note,
        method=f"weighted rubric score corrected by {int(has.sum())} labels in {inside} "
        f"clusters, cluster jackknife-t",
    )
    return RubricScore(out, out, out, n_answers, len(r.v), n_unknown, True)


def _floor(r: _Rows, stratum: np.ndarray, has: np.ndarray, size: np.ndarray, k: int) -> float:
    """Variance of strata whose labels all agree (the jackknife sees none there): that of Jeffreys'
    posterior.
    """
    held = [r.h[(stratum == j) & has] for j in range(k)]
    alike = [not len(h) or np.ptp(h) == 0 for h in held]
    square = np.bincount(stratum, size**2 * has, k)
    m = np.bincount(stratum, size * has, k) ** 2 / np.where(square > 0, square, 1.0)
    part = np.bincount(stratum, r.a, k) / len(r.owner)
    return float((part**2 * (m + 0.5) * 0.5 / ((m + 1) ** 2 * (m + 2)))[alike].sum())
