"""Does a higher score mean more often right? AUROC with a clustered interval, and the paired change
of two scores, O(n log n). For a distribution over ordered levels: the ranked probability score.
When to abstain or to escalate: a threshold that keeps a promised risk (conformal risk control).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import DataError
from .anytime import FIRM
from .clusters import (
    codes,
    ends,
    floats,
    known,
    of_influence,
    same_length,
    unmasked,
    worth,
)
from .columns import takes_table
from .estimate import Estimate, unknown
from .rates import mean
from .shares import UNSEEN, allow_unseen, drawn


def _outcome(correct: Sequence[Any]) -> np.ndarray:
    y = floats(correct, name="correct")
    bad = np.flatnonzero(~(np.isnan(y) | (y == 0) | (y == 1)))
    if len(bad):
        raise DataError(
            f"{y[bad[0]]:g} is not right (1) or wrong (0)", where=f"correct, row {int(bad[0])}"
        )
    return y


def _area(s: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray]:
    """The area, and the influence (n,) of every row on it (DeLong's structural components,
    centred).
    """
    order = np.argsort(s, kind="stable")
    sorted_s, hit = s[order], y[order]
    first = np.flatnonzero(np.r_[True, sorted_s[1:] != sorted_s[:-1]])
    rows = np.diff(np.r_[first, len(s)])
    hits = np.add.reduceat(hit, first)
    right, wrong = float(hits.sum()), float(len(s) - hits.sum())
    wrong_below = np.cumsum(rows - hits) - (rows - hits) / 2
    right_above = right - np.cumsum(hits) + hits / 2
    area = float(hits @ wrong_below) / (right * wrong)
    place = np.where(
        hit == 1,
        (np.repeat(wrong_below / wrong, rows) - area) / right,
        (np.repeat(right_above / right, rows) - area) / wrong,
    )
    out = np.empty(len(s))
    out[order] = place
    return area, out


def _one_kind(y: np.ndarray) -> bool:
    """No rows, or all right, or all wrong."""
    return bool((y == y[:1]).all())


OUTCOME = "rows of the rarer outcome"
SELDOM = "few clusters: a kind that one in 20 is may be in none of them, and not in the interval"


def rarer_worth(y: np.ndarray, group: np.ndarray, c: int) -> float:
    """How many clusters the rows of the rarer outcome are worth."""
    return worth(np.stack([np.bincount(group[y == v], minlength=c) for v in (0, 1)]))


def _pulls(psi: np.ndarray, y: np.ndarray, group: np.ndarray) -> np.ndarray:
    """How far UNSEEN prompts more like each of those drawn would move an area (C,): the influence
    of their rows, less what more rows of an outcome take from it.
    """
    size = np.bincount(group)
    more = UNSEEN * len(y) / drawn(size) / size
    sums = [[np.bincount(group, v * here) for v in (psi, 1)] for here in (y == 0, y == 1)]
    return sum(more * pull / (1 + more * rows / rows.sum()) for pull, rows in sums)


def _ranks(s: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The share of the rows of the commoner outcome that a row with each score (n,) would stand
    right to, were it of the rarer; ties half.
    """
    rare = y == (y.mean() <= 0.5)
    other = np.sort(s[~rare])
    below = (np.searchsorted(other, s) + np.searchsorted(other, s, "right")) / (2 * len(other))
    return below if y.mean() <= 0.5 else 1 - below


def _with_room(
    out: Estimate, moved: np.ndarray, bounds: tuple[float, float], group: np.ndarray
) -> Estimate:
    """With room for the values it could have (`allow_unseen`), and a note where a kind of prompts
    of several rows may well be in none drawn.
    """
    few = len(np.unique(group)) < len(group) and drawn(np.bincount(group)) < FIRM
    return replace(allow_unseen(out, moved, bounds, part=1.0), note=out.note or SELDOM * few)


def _by_cluster(psi: np.ndarray, group: np.ndarray, c: int) -> np.ndarray:
    return math.sqrt(c / max(c - 1, 1)) * np.bincount(group, psi, c)


@takes_table("score", "correct", "cluster")
def auroc(
    score: Sequence[Any],
    correct: Sequence[Any],
    *,
    cluster: Sequence[Any] | None = None,
    level: float = 0.95,
) -> Estimate:
    """P(a right row scores higher than a wrong one), ties half: .5 tells nothing apart, 1
    everything.

    score : (n,) numbers; correct : (n,) 1 / 0; unknown rows are left out and counted. Interval:
        DeLong's components summed by cluster (DeLong et al. 1988; Obuchowski 1997), Student's t on
        the logit. Unknown when all rows are right, or all wrong; no interval where the rarer
        outcome lies in one cluster.

    >>> auroc([0.9, 0.8, 0.7, 0.6], [1, 1, 0, 1]).text()
    '.667 [no interval], n=4'
    """
    (s, y), group, c, missing = known({"score": score, "correct": _outcome(correct)}, cluster)
    if _one_kind(y):
        return unknown(
            len(s),
            method="AUROC",
            note="rows that are right and rows that are wrong are needed",
            missing=missing,
            level=level,
        )
    value, psi = _area(s, y)
    rarer = rarer_worth(y, group, c)
    out = of_influence(
        value,
        _by_cluster(psi, group, c),
        rarer,
        n=len(s),
        n_clusters=c,
        missing=missing,
        level=level,
        what=OUTCOME,
        method="AUROC, clustered DeLong, t on the logit",
        bounds=(0.0, 1.0),
    )
    # rows of the rarer outcome that were not drawn may stand on the wrong side of all others
    far = (rarer * value + UNSEEN * np.array([0.0, 1.0])) / (rarer + UNSEEN)
    return _with_room(out, np.append(far, value + _pulls(psi, y, group)), (0.0, 1.0), group)


@takes_table("new", "old", "correct", "correct_old", "cluster")
def auroc_change(
    new: Sequence[Any],
    old: Sequence[Any],
    correct: Sequence[Any],
    *,
    correct_old: Sequence[Any] | None = None,
    cluster: Sequence[Any] | None = None,
    level: float = 0.95,
) -> Estimate:
    """AUROC of `new` minus that of `old` on the same rows, paired by row or by cluster.

    correct_old : where the answers differ too, what was right before. Rows with anything unknown
        are left out and counted.

    >>> auroc_change([0.9, 0.2, 0.8, 0.1], [0.5, 0.5, 0.5, 0.5], [1, 0, 1, 0]).value
    0.5
    """
    before = correct if correct_old is None else correct_old
    columns = {"new": new, "old": old, "correct": _outcome(correct), "before": _outcome(before)}
    (a, b, y, z), group, c, missing = known(columns, cluster)
    if c < 2 or _one_kind(y) or _one_kind(z):
        return unknown(
            len(y),
            method="change in AUROC",
            note="rows that are right and rows that are wrong, in two clusters or more, are needed",
            missing=missing,
            level=level,
        )
    (one, psi), (two, phi) = _area(a, y), _area(b, z)
    rarer = min(rarer_worth(v, group, c) for v in (y, z))
    out = of_influence(
        one - two,
        _by_cluster(psi - phi, group, c),
        rarer,
        n=len(y),
        n_clusters=c,
        missing=missing,
        level=level,
        what=OUTCOME,
        method="change in AUROC, clustered DeLong, paired",
        bounds=(-math.inf, math.inf),
    )
    # rows of the rarer outcome that were not drawn may be as far apart as one of 20 of all rows is,
    # and below FIRM prompts one of the two may rank those of a prompt without a fault (all pairs)
    value, units = out.value, drawn(np.bincount(group))
    apart = np.quantile(_ranks(a, y) - _ranks(b, z), [0.05, 0.95]) - value
    faultless = (np.array([one - 1, 1 - two]) - value) * (1 - (units / (units + UNSEEN)) ** 2)
    pulls = _pulls(psi, y, group) - _pulls(phi, z, group)
    moved = [
        *pulls,
        *(UNSEEN / (rarer + UNSEEN) * apart),
        *(faultless * (units < FIRM)),
    ]
    return _with_room(out, value + np.array(moved), (-1.0, 1.0), group)


def distributions(probs: Any) -> np.ndarray:
    """Rows of probabilities as floats (n, k), k >= 2, NaN rows left; DataError names a row that is
    no distribution.

    >>> distributions([[0.2, 0.8]]).shape
    (1, 2)
    """
    try:
        array = np.asarray(unmasked(probs))
        p = array.astype(float) if array.dtype.kind in "biufO" else None
    except (TypeError, ValueError):
        p = None
    if p is None or p.ndim != 2 or p.shape[1] < 2:
        got = "no grid of numbers" if p is None else f"of shape {p.shape}"
        raise DataError(f"probs is {got}", where="probs", fix="give (n, k): a number per class")
    known = ~np.isnan(p).any(1)
    with np.errstate(invalid="ignore"):
        fine = ((p >= 0) & (p <= 1 + 1e-6)).all(1) & (np.abs(p.sum(1) - 1) <= 1e-3)
    bad = np.flatnonzero(known & ~fine)
    if len(bad):
        raise DataError(
            f"the probabilities sum to {p[bad[0]].sum():g} or leave [0, 1]",
            where=f"probs, row {bad[0]}",
            fix="pass probabilities, not logits",
        )
    return p


def ranked_scores(probs: Any, level: Sequence[Any]) -> np.ndarray:
    """Ranked probability score of every row (n,), in [0, 1]: 0 where the right level had all the
    weight, worse the farther off.

    probs : (n, k), rows that sum to 1 within 1e-3, levels in order; level : (n,) numbers 0..k-1.
        NaN rows stay NaN. sum over levels of (cumulative probability - cumulative truth)^2, over k
        - 1 (Epstein 1969; Murphy 1971).

    >>> ranked_scores([[1, 0, 0], [0, 1, 0], [0, 0, 1]], [0, 0, 0]).tolist()
    [0.0, 0.5, 1.0]
    """
    p, y = distributions(probs), floats(level, name="level")
    same_length(probs=p, level=y)
    known = ~(np.isnan(y) | np.isnan(p).any(1))
    wrong = np.flatnonzero(known & ~np.isin(y, np.arange(p.shape[1])))
    if len(wrong):
        raise DataError(
            f"{y[wrong[0]]:g} is no level below {p.shape[1]}", where=f"level, row {int(wrong[0])}"
        )
    truth = np.arange(p.shape[1]) >= np.where(known, y, 0)[:, None]
    score = ((np.cumsum(p, 1) - truth) ** 2)[:, :-1].sum(1) / (p.shape[1] - 1)
    return np.where(known, score, np.nan)


def rps(
    probs: Any,
    level: Sequence[Any],
    *,
    cluster: Sequence[Any] | None = None,
    confidence: float = 0.95,
) -> Estimate:
    """Mean ranked probability score with a clustered interval; with two levels it is the Brier
    score. The limits allow for rows of a level that were not drawn, as that of Brier's do.

    >>> round(rps([[0.2, 0.8], [0.5, 0.5]], [1, 0]).value, 3)
    0.145
    """
    score, bounds = ranked_scores(probs, level), (0.0, 1.0)
    out, here = mean(score, cluster=cluster, level=confidence, bounds=bounds), ~np.isnan(score)
    if not out.n:
        return out
    p, y = distributions(probs)[here], floats(level)[here]
    group = codes(cluster, len(score))[0][here]
    kinds = [
        ends(ranked_scores(p, np.full(len(p), k)), y == k, group, bounds) for k in range(p.shape[1])
    ]
    return allow_unseen(out, np.ravel(kinds), bounds)


@dataclass(frozen=True)
class Threshold:
    """Answer where the confidence is at least `at`; elsewhere abstain, or ask a better judge.

    risk : wrong answers given, as a share of a prompt's answers, in the mean over the prompts that
        chose it; promised : its bound for new prompts.
    coverage : share answered, in the same mean. at is infinite where no threshold keeps the
        promise: then always abstain.
    """

    at: float
    risk: float
    coverage: float
    promised: float
    n: int
    n_clusters: int
    missing: int = 0

    def __str__(self) -> str:
        lost = f"; {self.missing} rows unknown, left out" if self.missing else ""
        units = f"{self.n_clusters} prompts" if self.n_clusters < self.n else f"{self.n} rows"
        if np.isinf(self.at):
            words = f"no threshold keeps a risk of {self.promised:g}: abstain always"
            return f"{words} (n={self.n}{lost})"
        return (
            f"answer from a confidence of {self.at:g}: {self.coverage:.0%} answered, wrong and "
            f"given {self.risk:.3f} (means over the {units} here), at most "
            f"{self.promised:g} on average for new prompts{lost}"
        )


@takes_table("conf", "correct", "cluster")
def abstain_below(
    conf: Sequence[Any],
    correct: Sequence[Any],
    *,
    risk: float,
    cluster: Sequence[Any] | None = None,
) -> Threshold:
    """The lowest threshold at which wrong answers given stay below `risk` of all answers, for new
    prompts like these.

    conf : (n,) numbers; correct : (n,) 1 / 0. cluster : (n,) prompt; prompts are then the
        exchangeable units, each with the mean loss of its rows. Guarantee: E[loss] <= risk over new
        prompts and calibration sets, for any confidence, also a bad one, when prompts are
        exchangeable: (n R(t) + 1) / (n + 1) <= risk. Source: Angelopoulos, Bates, Fisch, Lei &
        Schuster 2024, Theorem 1.

    >>> rows = range(100)
    >>> found = abstain_below([i / 100 for i in rows], [int(i > 20) for i in rows], risk=0.05)
    >>> found.at, round(found.coverage, 2)
    (0.17, 0.83)
    """
    if not 0 < risk < 1:
        raise DataError(f"risk is {risk!r}", where="risk", fix="a share in (0, 1), such as 0.05")
    (p, y), group, units, missing = known({"conf": conf, "correct": correct}, cluster)
    if not len(p):
        raise DataError("no row is known", where="conf, correct", fix="give labelled rows")
    weight = 1 / np.bincount(group)[group] / units
    order = np.argsort(-p, kind="stable")
    loss = np.cumsum((weight * (1 - y))[order])
    last = np.flatnonzero(np.r_[p[order][1:] != p[order][:-1], True])
    good = last[(units * loss[last] + 1) / (units + 1) <= risk + 1e-12]  # a limit met is kept
    if not len(good):
        return Threshold(np.inf, 0.0, 0.0, risk, len(p), units, missing)
    at = float(p[order][good[-1]])
    given = float(weight[p >= at].sum())
    return Threshold(at, float(loss[good[-1]]), given, risk, len(p), units, missing)
