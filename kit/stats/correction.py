"""Formulas that take a judge's errors out of a rate: Lang-Reiczigel, PPI++, and the
post-stratified posterior.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import DataError
from .arguments import in_bounds
from .arguments import share as in_unit
from .clusters import (
    UNSEEN,
    codes,
    farthest,
    floats,
    of_influence,
    same_length,
    sums,
    worth,
)
from .columns import takes_table
from .estimate import Estimate, unknown
from .shares import allow_unseen, drawn, share
from .tails import t_quantile


def lang_reiczigel(
    p: float,
    n: float,
    *,
    q1: float,
    m1: float,
    q0: float,
    m0: float,
    level: float = 0.95,
) -> Estimate:
    """Lang & Reiczigel 2014, Prev. Vet. Med. 113: adjusted estimates with pseudo-counts; n, m1, m0
    may be effective sizes.

    >>> print(lang_reiczigel(0.4, 1000, q1=0.9, m1=200, q0=0.7, m0=200).text(6))
    .166667 [.05635, .26274], n=1000
    """
    for name, rate in (("p", p), ("q1", q1), ("q0", q0)):
        in_unit(name, rate)
    z = t_quantile(level, math.inf)
    nt = n + z * z
    pt = (n * p + z * z / 2) / nt
    t1, t0 = (m1 * q1 + 1) / (m1 + 2), (m0 * q0 + 1) / (m0 + 2)
    m1, m0, gain = m1 + 2, m0 + 2, t1 + t0 - 1
    if gain <= 0 or q1 + q0 <= 1:
        return unknown(
            round(n),
            method="Lang-Reiczigel",
            note="the judge is no better than chance on the labels",
            level=level,
        )
    theta = (pt + t0 - 1) / gain
    v1, v0 = t1 * (1 - t1) / m1, t0 * (1 - t0) / m0
    shift = 2 * z * z * (theta * v1 - (1 - theta) * v0)
    se = math.sqrt(pt * (1 - pt) / nt + (1 - theta) ** 2 * v0 + theta**2 * v1) / gain
    value = min(max((p + q0 - 1) / (q0 + q1 - 1), 0.0), 1.0)
    low, high = (min(max(theta + shift + s * z * se, 0.0), 1.0) for s in (-1, 1))
    return Estimate(value, low, high, round(n), None, "Lang-Reiczigel", level=level, se=se)


@dataclass(frozen=True)
class Counts:
    """Counts per verdict level: rows (K,), and labelled rows that pass and fail (K,); may be
    effective sizes.
    """

    rows: np.ndarray
    passed: np.ndarray
    failed: np.ndarray

    def variance(self) -> float:
        """Variance of the post-stratified rate for independent rows, with Jeffreys' half-counts."""
        m = self.passed + self.failed
        mu, pi = (self.passed + 0.5) / (m + 1), self.rows / self.rows.sum()
        between = float(pi @ mu**2 - (pi @ mu) ** 2) / self.rows.sum()
        return float((pi**2 * mu * (1 - mu) / np.maximum(m, 0.5)).sum()) + between


def posterior(
    counts: Counts,
    effect: float,
    level: float,
    *,
    draws: int = 4000,
) -> tuple[float, float, float]:
    """Limits and standard deviation of sum pi mu, pi ~ Dirichlet(rows), mu ~ Beta(1/2 + pass, 1/2 +
    fail), counts over `effect`.

    The draws use a fixed seed, so equal counts give equal limits.
    """
    rng = np.random.default_rng(20140113)
    shape = (draws, len(counts.rows))
    pi = rng.standard_gamma(np.maximum(counts.rows / effect, 1e-9), shape)
    one, two = (rng.standard_gamma(0.5 + x / effect, shape) for x in (counts.passed, counts.failed))
    theta = (pi * one / (one + two)).sum(1) / pi.sum(1)
    low, high = np.quantile(theta, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high), float(theta.std())


@takes_table("judge", "human", "cluster")
def ppi(
    judge: Sequence[Any],
    human: Sequence[Any],
    *,
    cluster: Sequence[Any] | None = None,
    level: float = 0.95,
    bounds: tuple[float, float] | None = None,
) -> Estimate:
    """PPI++ for the mean of a human score: theta = mean_L(Y) + lambda (mean_U(f) - mean_L(f)),
    lambda of least variance.

    judge : (n,) numbers; human : (n,) numbers, None where not labelled; labelled rows a random
        sample of rows or of clusters. Without clusters lambda = cov_L(Y, f) / (var_L f + (m / n)
        var_U f), each variance from its own rows, m labelled and n not (as Angelopoulos, Duchi &
        Zrnic 2023, who pool them); with clusters all moments are of cluster sums, and the
        quantile is Student's with the labelled clusters' degrees of freedom. Rows where the judge
        is unknown are left out. bounds : the range that human scores can have, (0, 1) where all
        labels lie in it: value and limits stay in it, and have room for prompts at an end of it
        that were not labelled (where that is unknown: at the least or the highest label). Labels
        of 0 and 1 in no wider range are a rate.

    >>> print(ppi([1, 0.5] * 40, [1, 0.5, 1, 0.5, 0.5, None, None, None] * 10))
    .667 [.59, .74], n=80
    """
    size = same_length(judge=judge, human=human, cluster=cluster)
    f, y, (group, _) = (
        floats(judge, name="judge"),
        floats(human, name="human"),
        codes(cluster, size),
    )
    in_bounds(y, bounds or (-math.inf, math.inf))
    keep = ~np.isnan(f)
    f, y, group = f[keep], y[keep], np.unique(group[keep], return_inverse=True)[1]
    lab, missing = ~np.isnan(y), int((~keep).sum())
    within = ((y[lab] >= 0) & (y[lab] <= 1)).all()
    span = bounds or ((0.0, 1.0) if within else (-math.inf, math.inf))
    m, n, c = int(lab.sum()), int((~lab).sum()), int(group.max(initial=-1)) + 1
    inside = len(np.unique(group[lab]))
    if inside < 2 or n == 0:
        return unknown(
            len(f),
            method="PPI++",
            note="needs two labelled clusters and some unlabelled rows",
            missing=missing,
            level=level,
        )
    a = np.bincount(group, np.where(lab, y - y[lab].mean(), 0.0), c) / m
    labelled = -(f - f[lab].mean()) / m
    unlabelled = (f - f[~lab].mean()) / n
    b = np.bincount(group, np.where(lab, labelled, unlabelled), c)
    extra = _unseen(b, lab, group, m / n)
    spread = float(b @ b) + extra
    lam = 0.0 if not spread > 0 else -float(a @ b) / spread
    value = float(
        np.clip(
            y[lab].mean() + lam * (f[~lab].mean() - f[lab].mean()),  # may lead out of the range
            *span,
        )
    )
    psi = math.sqrt(inside / (inside - 1)) * (a + lam * b)
    held = np.bincount(group, lab, c)
    apart = y[lab] - y[lab].mean()
    # what he moves goes along with the labels so far, whatever his units
    told = lam * (f[lab] @ apart) / max(apart @ apart, 1e-300)
    shares = tuple(span) == (0.0, 1.0) and bool(np.isin(y[lab], span).all())
    out = of_influence(
        value,
        psi[held > 0],
        worth(held),
        se=math.sqrt(float((psi**2).sum()) + lam**2 * extra),
        units=inside,
        n=len(f),
        n_clusters=c,
        method=f"PPI++ (lambda {lam:.3f}), {m} labels",
        missing=missing,
        level=level,
        bounds=span if shares else (-math.inf, math.inf),
        what="labels",
        leans=not shares,
    )
    if shares:
        return out if math.isnan(out.low) else beside_labels(out, y, np.ones(len(y)), group, told)
    kinds = farthest(y[lab], np.arange(m), span)
    return allow_unseen(out, kinds, span, part=_hidden(told, held, np.bincount(group)))


def _unseen(b: np.ndarray, lab: np.ndarray, group: np.ndarray, ratio: float) -> float:
    """The variance that the mean over few unlabelled rows has beyond what they show themselves: one
    row has none of its own, and would be believed as if it were the whole population.

    b : (clusters,) the judge's part of each; ratio : labelled rows for one unlabelled.
    """
    seen = [b[np.unique(group[rows])] for rows in (lab, ~lab)]
    if len(seen[1]) >= len(seen[0]):
        return 0.0
    own, expected = float(seen[1] @ seen[1]), float(seen[0] @ seen[0]) * ratio
    return max(0.0, expected - own)


# labelled clusters that must hold each outcome before the judge narrows the interval of a rate
RARE = 5
EDGE = 0.3  # rates nearer to 0 or 1, where what passes RARE by luck is far off


def beside_labels(
    out: Estimate,
    y: np.ndarray,
    weight: np.ndarray,
    group: np.ndarray,
    told: float,
) -> Estimate:
    """`out`, of labels y (n,) of 0 and 1, NaN where there is none, with room for prompts of one
    kind that were not drawn (`_hidden`; told : the share of them that the judge sees).

    Where fewer than RARE clusters hold the rarer label, the limits of the labels alone: what the
    judge's errors are, and how alike the rows of a prompt, can then not be read off. Up to twice as
    many the limit nearer the edge reaches as far as that of the labels with a tenth of the error:
    of draws that hold RARE by luck, .8 covered.
    """
    has = ~np.isnan(y)
    if has.all():  # the labels alone it is
        return out
    few = min(len(np.unique(group[y == v])) for v in (0.0, 1.0))
    # how much of the error: none where all rows are labelled
    less = 10 ** (has.mean() ** 4 - 1) if few >= RARE else 1.0
    number = np.unique(group[has], return_inverse=True)[1]
    alone = share(y[has], weight[has], number, level=1 - (1 - out.level) * less)
    if few < RARE:
        said = (
            f"the rarer label occurs in {few} labelled clusters, {RARE} are needed: "
            "the interval is that of the labels alone"
        )
        low, high = min(alone.low, out.value), max(alone.high, out.value)
        return replace(out, low=low, high=high, note="; ".join(t for t in (out.note, said) if t))
    part = _hidden(told, np.bincount(group, has), np.bincount(group))
    near = allow_unseen(out, (0.0, 1.0), (0.0, 1.0), part=part)
    edge = EDGE if few < 2 * RARE else 0.0
    return replace(
        near,
        low=min(near.low, alone.low if alone.value < edge else 1.0),
        high=max(near.high, alone.high if alone.value > 1 - edge else 0.0),
    )


def _hidden(told: float, held: np.ndarray, rows: np.ndarray) -> float:
    """The part that prompts of one kind may have which were not drawn: among the labelled ones,
    `held` (C,) labels of each, as far as the judge does not see them; among all, `rows` (C,), as
    far as he does. told : the share of them that he sees, cut to [0, 1].
    """
    unlabelled, unseen = (UNSEEN / (drawn(size[size > 0]) + UNSEEN) for size in (held, rows))
    told = min(max(told, 0.0), 1.0)
    return (1 - told) * unlabelled + told * unseen


@takes_table("judge", "human", "policy", "cluster")
def policy_difference(
    judge: Sequence[Any],
    human: Sequence[Any],
    policy: Sequence[Any],
    *,
    new: Any,
    old: Any,
    cluster: Sequence[Any] | None = None,
    level: float = 0.95,
) -> Estimate:
    """Mean human score of policy `new` less that of `old`, from judge scores of all rows and human
    labels of some.

    judge : (n,) scores in [0, 1], None where it gives none; human : (n,) in [0, 1], None where not
        labelled; policy : (n,) names, rows of others are left out; cluster : (n,) prompt of each
        row, which pairs the policies. Labelled rows are a random sample of rows or of prompts. Each
        policy is corrected by its own labels (PPI++, Angelopoulos et al. 2023): what the judge says
        and that it says nothing have weights that together give the least variance of the
        difference; moments and degrees of freedom are of prompts.

    >>> judge, human = [1, 1, 1, 1, 0, 1, 0, 0] * 5, [0, None, 1, None, 0, None, 0, None] * 5
    >>> policy, prompt = list("aaaabbbb") * 5, [i // 8 for i in range(40)]
    >>> e = policy_difference(judge, human, policy, new="a", old="b", cluster=prompt)
    >>> e.n, e.n_clusters, round(e.value, 2)
    (40, 5, 0.5)
    """
    n = same_length(judge=judge, human=human, policy=policy, cluster=cluster)
    f, y = floats(judge, name="judge"), floats(human, name="human")
    first, second = _rows_of(new, policy), _rows_of(old, policy)
    keep = first | second
    group = np.unique(codes(cluster, n)[0][keep], return_inverse=True)[1]
    f, y, first = f[keep], y[keep], first[keep]
    missing = int(np.isnan(f).sum())
    sides = [_side(f, y, where, group) for where in (first, ~first)]
    if any(s is None for s in sides):
        return unknown(
            len(f),
            method="corrected difference",
            note="each policy needs labels in two prompts or more",
            missing=missing,
            level=level,
        )
    (value_a, a1, b1, gap1, most1), (value_b, a2, b2, gap2, most2) = sides  # type: ignore[misc]
    base, moves = a1 - a2, np.hstack([b1, -b2])
    found, _, rank, _ = np.linalg.lstsq(moves, base, rcond=None)
    most = np.append(most1, most2)
    weights = np.clip(-found, -most, most)  # with few rows unlabelled they are noise: up to 13
    held = np.bincount(group, ~np.isnan(y))
    labelled = held > 0
    inside = int(labelled.sum())
    spent = 1 + rank if inside > 2 + rank else 1  # the mean and the weights
    psi = math.sqrt(inside / (inside - spent)) * (base + moves @ weights)
    value = float(np.clip(value_a - value_b + np.append(gap1, -gap2) @ weights, -1.0, 1.0))
    out = of_influence(
        value,
        psi[labelled],
        worth(
            [
                held,
                np.bincount(group, first & ~np.isnan(y)),
                np.bincount(group, ~first & ~np.isnan(y)),
            ]
        ),
        se=float(np.linalg.norm(psi)),
        units=inside,
        n=len(f),
        n_clusters=len(labelled),
        method=f"difference corrected by {int((~np.isnan(y)).sum())} labels in {inside} prompts "
        f"(PPI++, weights {' and '.join(f'{w:.2f}' for w in weights)}), paired by prompt",
        missing=missing,
        level=level,
        bounds=(-1.0, 1.0),
        what="labels",
    )
    blind = _hidden(0.0, held, np.bincount(group))  # to a kind of prompts that was not labelled
    return allow_unseen(out, (-1.0, 1.0), (-1.0, 1.0), part=blind)


def _rows_of(name: Any, policy: Sequence[Any]) -> np.ndarray:
    """The rows of one policy: 1 is 1.0, as pandas writes it beside a missing one, and "1"."""
    found = np.array([p == name or str(p) == str(name) for p in policy], dtype=bool)
    if not found.any():
        there = ", ".join(sorted({str(p) for p in policy})[:10])
        raise DataError(
            f"no row is of the policy {name!r}", where="argument policy", fix=f"there are {there}"
        )
    return found


def _side(
    f: np.ndarray,
    y: np.ndarray,
    where: np.ndarray,
    group: np.ndarray,
) -> tuple[float, np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None:
    """Labelled mean, its influence by prompt (c,); the influence of judged less labelled mean, that
    gap, and the most that it may weigh, (c, k), (k,) and (k,), for each of the k columns that tell
    of the judge.
    """
    bad = np.flatnonzero(((f < 0) | (f > 1) | (y < 0) | (y > 1)) & where)
    if len(bad):
        raise DataError("a score is outside [0, 1]", where=f"judge or human, row {int(bad[0])}")
    c = int(group.max(initial=-1)) + 1
    lab = where & ~np.isnan(y)
    if len(np.unique(group[lab])) < 2:
        return None
    mean = float(y[lab].mean())
    a = np.bincount(group[lab], y[lab] - mean, c) / lab.sum()
    # what the judge cannot say is a stratum of its own, with the labels that it holds
    silent = np.isnan(f)
    told = np.column_stack([np.nan_to_num(f), silent])[:, : 1 + silent.any()]
    there = told[where].mean(0)
    here = told[lab].mean(0)
    whole = sums(told[where] - there, group[where], c) / where.sum()
    moves = whole - sums(told[lab] - here, group[lab], c) / lab.sum()
    # a right judge's scores weigh as much as the labels are spread, and that he is silent 1
    most = np.ones(told.shape[1])
    most[0] = y[lab].std() / max(float(told[lab, 0].std()), 1e-300)
    return mean, a, moves, there - here, most
