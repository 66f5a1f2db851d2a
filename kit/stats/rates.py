"""Rates and means with honest intervals: Wilson, clustered means, and the pass rate corrected for
an imperfect judge.

A pass rate read off a judge is biased by the judge's errors. With some human labels the bias can be
taken out; how depends on how the labelled rows were chosen, so `design` is a required argument.
Rubric verdicts of one prompt are alike: give `cluster`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import DataError
from .anytime import FIRM, betting
from .arguments import in_bounds
from .clusters import codes, estimate, farthest, floats, same_length, sums, worth
from .columns import takes_table
from .correction import Counts, beside_labels, lang_reiczigel, posterior
from .estimate import Estimate, unknown
from .shares import CARRIED, allow_unseen, are_shares, share, signed_share
from .tails import t_quantile

DESIGNS = ("random", "by_label", "shifted", "probability")


@takes_table("values", "cluster", "weights")
def mean(
    values: Sequence[Any],
    *,
    cluster: Sequence[Any] | None = None,
    weights: Sequence[float] | None = None,
    level: float = 0.95,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> Estimate:
    """Mean of a column (a weighted mean with `weights`), NaN / None left out and counted, with a
    clustered interval.

    values : (n,) numbers or True / False. Only 0s and 1s, and no other `bounds`: Wilson on the
        effective number of rows (`shares.share`). Otherwise cluster jackknife-t; give `bounds`, the
        range that the values can have, where it is known. What no drawn prompt shows is not in the
        interval, and a kind that fewer than 3 / n of the prompts are of may not have been drawn
        (rule of three): where scores in a known range may collapse as a prompt, or skewed ones are
        from 8 prompts (coverage .86), `betting` holds, and is wider.

    >>> print(mean([1, 0, 1, 1, None, 1], cluster=list("aabbcc")))
    .800 [.04, 1.00], n=5 in 3 clusters, 1 unknown
    """
    n = same_length(values=values, cluster=cluster, weights=weights)
    x, (group, _) = floats(values), codes(cluster, n)
    in_bounds(x, bounds)
    w = np.ones(n) if weights is None else floats(weights, name="weights")
    bad = np.flatnonzero(~((w >= 0) & (w < 1e100)))
    if len(bad):
        raise DataError(
            f"the weight {w[bad[0]]:g} is unknown, negative or too large",
            where=f"weights, row {int(bad[0])}",
            fix="write numbers near 1: only their ratios count",
        )
    x, group, w = x[w > 0], group[w > 0], w[w > 0]  # a row of weight 0 is none
    keep = ~np.isnan(x)
    inverse, c = codes(group[keep], int(keep.sum()))
    columns = sums(np.column_stack([w[keep] * x[keep], w[keep]]), inverse, c)
    out = estimate(
        lambda t: t[..., 0] / t[..., 1],
        columns,
        n=int(keep.sum()),
        method="mean",
        missing=int((~keep).sum()),
        level=level,
        bounds=bounds,
        size=columns[:, 1],
        leans=True,
    )
    if (
        math.isnan(out.value)
        or (cluster is not None and (out.n_clusters < 2 or out.note.startswith("too few")))
        or not are_shares(x[keep], bounds)
    ):
        return out
    e = share(x[keep], w[keep], None if cluster is None else inverse, level=level)
    note = out.note.replace(": no interval", ", read as a share of 0s and 1s").replace(
        CARRIED, e.note
    )
    return replace(out, low=e.low, high=e.high, method=e.method, se=e.se, note=note)


def _columns(
    judge: Sequence[Any], human: Sequence[Any], cluster: Sequence[Any] | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    n = same_length(judge=judge, human=human, cluster=cluster)
    f, y = floats(judge, name="judge"), floats(human, name="human")
    bad = ~(np.isnan(y) | np.isin(y, (0.0, 1.0)))
    if bad.any():
        raise DataError(
            f"{y[bad][0]!r} is not pass (1) or fail (0)",
            where=f"human, row {int(np.flatnonzero(bad)[0])}",
            fix="cut the human score into pass / fail, or use ppi() for the mean of a score",
        )
    return f, y, codes(cluster, n)[0]


@takes_table("judge", "human", "cluster", "inclusion")
def pass_rate(
    judge: Sequence[Any],
    human: Sequence[Any],
    *,
    design: str,
    cluster: Sequence[Any] | None = None,
    inclusion: Sequence[float] | None = None,
    level: float = 0.95,
) -> Estimate:
    """The rate at which the human would pass, from many judge verdicts and a few human labels.

    judge : (n,) verdicts, 1 / 0 or any few levels; None = unknown, a level of its own. human : (n,)
        1 / 0, None where not labelled. design, how the labelled rows came to be labelled (required:
        the right estimator depends on it):
      "random"       a random sample of rows or of whole clusters -> post-stratification by verdict,
      Beta / Dirichlet posterior.
      "probability"  row i with known probability inclusion[i] -> the same with inverse-probability
      weights.
      "by_label"     of these rows, chosen by their label (half pass, half fail, say) -> Lang &
      Reiczigel 2014 (identical to Lee et al. 2025, arXiv 2511.21140), with the judge's rate on all
      rows; an unknown verdict is read as pass or fail, whichever most of its labels are.
      "shifted"      from elsewhere -> the same, of the rows without label alone, as n is.
    cluster : (n,) prompt of each row; without it rows are taken as independent, and intervals come
        out too narrow for rubric data.

    >>> judge, human = [1, 1, 1, 0, 0, 0, 1, 0] * 20, [1, 1, 0, 0, 0, 1] * 10 + [None] * 100
    >>> e = pass_rate(judge, human, design="random")
    >>> 0 < e.low < e.value < e.high < 1
    True
    """
    DataError.first(
        (
            design not in DESIGNS,
            f"design is {design!r}",
            "design",
            f"say how the labelled rows were chosen: one of {DESIGNS}",
        ),
        (
            (design == "probability") != (inclusion is not None),
            "inclusion probabilities go with design='probability', and only with it",
            "design, inclusion",
            "give inclusion=(n,) in (0, 1] with design='probability'",
        ),
    )
    f, y, group = _columns(judge, human, cluster)
    if np.isnan(y).all():
        return unknown(len(f), method="corrected pass rate", note="no row is labelled", level=level)
    if design in ("by_label", "shifted"):
        f, said = _heard(f, y)
        out = _by_label(
            f, y, group, np.isnan(y) | (design == "by_label"), cluster is not None, level
        )
        out = replace(out, note="; ".join(t for t in (out.note, said) if t))
    else:
        weight = np.ones(len(f)) if inclusion is None else _weights(inclusion, y)
        out = _post_stratified(f, y, group, weight, cluster is not None, level)
    hint = "rows taken as independent; give cluster= for several rows of one prompt"
    return replace(out, note="; ".join(t for t in (out.note, hint * (cluster is None)) if t))


def _weights(inclusion: Sequence[float], y: np.ndarray) -> np.ndarray:
    pi = floats(inclusion, name="inclusion")
    same_length(human=y, inclusion=pi)
    bad = ~np.isnan(y) & ~((pi > 1e-9) & (pi <= 1))
    if bad.any():
        raise DataError(
            "a labelled row has no inclusion probability in (0, 1]",
            where=f"inclusion, row {int(np.flatnonzero(bad)[0])}",
        )
    return np.where(np.isnan(y), 0.0, 1 / np.where(np.isnan(y), 1.0, pi))


def _strata(f: np.ndarray, labelled: int) -> tuple[np.ndarray, str]:
    known = ~np.isnan(f)
    levels = np.unique(f[known])
    note = ""
    if len(levels) > 12:
        k = int(min(max(labelled // 20, 2), 10))
        levels = np.unique(np.quantile(f[known], np.linspace(0, 1, k + 1)[:-1]))
        note = f"judge scores cut into {len(levels)} groups of equal size"
    out = np.searchsorted(levels, f, "right") - 1
    out[~known] = len(levels)
    return np.unique(out, return_inverse=True)[1], note


def _post_stratified(
    f: np.ndarray,
    y: np.ndarray,
    group: np.ndarray,
    weight: np.ndarray,
    clustered: bool,
    level: float,
) -> Estimate:
    has = ~np.isnan(y)
    stratum, note = _strata(f, int(has.sum()))
    k, n, y0 = int(stratum.max()) + 1, len(f), np.where(has, y, 0.0)
    lw = np.where(has, weight, 0.0)
    size, label_w = np.bincount(stratum, minlength=k), np.bincount(stratum, lw, k)
    mass = np.bincount(stratum, lw * y0, k)
    kish = np.where(
        label_w > 0, label_w**2 / np.maximum(np.bincount(stratum, lw**2, k), 1e-300), 0.0
    )
    mu = np.where(label_w > 0, mass / np.where(label_w > 0, label_w, 1), 0.5)
    theta = float(size @ mu / n)
    model = Counts(size.astype(float), kish * mu, kish * (1 - mu))
    effect = 1.0
    if clustered or not np.all(weight[has] == weight[has][0]):
        soft = (kish * mu + 0.5) / (kish + 1)
        centre = float(size @ soft / n)
        psi = (soft[stratum] - centre) / n + (size / n / np.where(label_w > 0, label_w, 1))[
            stratum
        ] * lw * (y0 - soft[stratum])
        by = np.bincount(np.unique(group, return_inverse=True)[1], psi)
        effect = len(by) / max(len(by) - 1, 1) * float((by**2).sum()) / model.variance()
        effect = (
            _clustered_effect(effect, stratum, group, has, model, level)
            if clustered
            else max(effect, 1.0)
        )
    low, high, spread = posterior(model, effect, level)
    empty = int((label_w == 0).sum())
    said = f"{empty} of {k} verdict levels have no label: nothing is known of them"
    note = "; ".join(t for t in (note, said * (empty > 0)) if t)
    words = "post-stratified by verdict" + (
        "" if np.all(weight[has] == 1) else ", inverse-probability weights"
    )
    out = Estimate(
        theta,
        min(low, theta),
        max(high, theta),
        n,
        len(np.unique(group)),
        f"{words}, {int(has.sum())} labels, design effect {effect:.2f}",
        note,
        0,
        level,
        spread,
    )
    if clustered:
        told = float(soft[stratum].var()) / (centre * (1 - centre))
        out = beside_labels(out, y, weight, group, told)
    return _towards_labels(out, y[has], weight[has], group[has] if clustered else None)


def _towards_labels(
    out: Estimate,
    y: np.ndarray,
    weight: np.ndarray,
    group: np.ndarray | None,
) -> Estimate:
    """`out` with limits drawn to those of the labels y (m,) alone, as all rows become labelled: the
    judge then says no more. By the fourth power of the labelled share, .06 at half of the rows.
    """
    number = None if group is None else np.unique(group, return_inverse=True)[1]
    if number is not None and number.max() < 1:
        return out
    alone, near = share(y, weight, number, level=out.level), (len(y) / out.n) ** 4
    moved = out.value - alone.value
    low = out.low + near * (alone.low + moved - out.low)
    high = out.high + near * (alone.high + moved - out.high)
    return replace(out, low=max(low, 0.0), high=min(high, 1.0))


def _clustered_effect(
    measured: float,
    stratum: np.ndarray,
    group: np.ndarray,
    has: np.ndarray,
    model: Counts,
    level: float,
) -> float:
    """Measured design effect drawn towards the implied one, widened by Student's t, as far as
    clusters hold several labels.
    """
    held = np.unique(group[has], return_counts=True)[1]
    several = 1 - held.sum() / float((held**2).sum())
    wide = (t_quantile(level, max(worth(held) - 1, 1)) / t_quantile(level, math.inf)) ** 2
    least = _least_effect(stratum, group, has, model)
    # the measured effect is noisy with few labelled clusters; where it is below the implied one it
    # counts for a quarter
    trust = several * (len(held) / (len(held) + 10) if measured > least else 0.25)
    return max(least + trust * (measured - least), 1.0) * (1 + several * (wide - 1))


def _least_effect(stratum: np.ndarray, group: np.ndarray, has: np.ndarray, model: Counts) -> float:
    """Design effect that the judge's own verdicts imply. With few failures among the labels, the
    labels alone show it too small.

    x = E[y | verdict] has R^2 = var x / var y. When the judge's errors are independent given the
    truth, the correlation within a cluster of x is R^2 times that of y, and that of the residual y
    - x is 1 - R^2 times it.
    """
    soft = (model.passed + 0.5) / (model.passed + model.failed + 1)
    x = soft[stratum]
    var, n, m = float(x.var()), len(x), float(has.sum())
    if var <= 0:
        return 1.0
    r2 = min(var / (x.mean() * (1 - x.mean())), 1.0)
    inverse = np.unique(group, return_inverse=True)[1]
    sizes, held = np.bincount(inverse), np.bincount(inverse, has)
    rows, labels = float((sizes**2).sum()) / n, float((held**2).sum()) / m
    by = np.bincount(inverse, x - x.mean())
    alike_x = max((float((by**2).sum()) / (n * var) - 1) / max(rows - 1, 1e-9), 0.0)
    alike_y = min(alike_x / r2, 1.0)
    judged = r2 / n * (1 + (rows - 1) * r2 * alike_y)
    checked = (1 - r2) / m * (1 + (labels - 1) * (1 - r2) * alike_y)
    both = 2 * float((held * (sizes - 1)).sum()) / (n * m) * r2 * (1 - r2) * alike_y
    return max((judged + checked + both) / (r2 / n + (1 - r2) / m), 1.0)


def _effective(
    hit: np.ndarray,
    group: np.ndarray,
    clustered: bool,
    level: float,
) -> tuple[float, float]:
    n, p = len(hit), float(hit.mean()) if len(hit) else math.nan
    if not clustered or n < 2:
        return p, float(n)
    by = (
        np.bincount(np.unique(group, return_inverse=True)[1], hit - (hit.sum() + 0.5) / (n + 1)) / n
    )
    soft, c = (hit.sum() + 0.5) / (n + 1), len(by)
    wide = (t_quantile(level, max(c - 1, 1)) / t_quantile(level, math.inf)) ** 2
    return p, n / (
        max(c / max(c - 1, 1) * float((by**2).sum()) / (soft * (1 - soft) / n), 1.0) * wide
    )


def _heard(f: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, str]:
    """The verdicts, unknown ones read as most labels on such; as they are where none has a label.

    Any fixed reading keeps the estimate right: what it costs in errors is in q1 and q0.
    """
    silent = np.isnan(f)
    labels = y[silent & ~np.isnan(y)]
    if not len(labels):
        return f, ""
    side = float(labels.mean() > 0.5)
    word = "pass" if side else "fail"
    return np.where(silent, side, f), f"{int(silent.sum())} unknown verdicts are read as {word}"


def _by_label(
    f: np.ndarray,
    y: np.ndarray,
    group: np.ndarray,
    here: np.ndarray,
    clustered: bool,
    level: float,
) -> Estimate:
    """here : (n,) the rows that the rate is of; their judge's rate is corrected."""
    known = ~np.isnan(f)
    target = known & here
    if not np.isin(f[known], (0.0, 1.0)).all():
        raise DataError(
            "the judge gives more than pass and fail",
            where="judge",
            fix="cut the judge's score at a threshold first",
        )
    missing = int((here & ~known).sum())
    if not target.any():
        raise DataError(
            "every row is labelled: no rows to read the judge's rate from",
            where="human",
            fix="keep unlabelled rows, with human None",
        )
    parts = [
        _effective(hit[rows].astype(float), group[rows], clustered, level)
        for hit, rows in ((f, target), (f, known & (y == 1)), (1 - f, known & (y == 0)))
    ]
    if min(size for _, size in parts) == 0:
        return unknown(
            len(f),
            method="Lang-Reiczigel",
            note="labels of both kinds, pass and fail, are needed",
            missing=missing,
            level=level,
        )
    (p, n), (q1, m1), (q0, m0) = parts
    out = lang_reiczigel(p, n, q1=q1, m1=m1, q0=q0, m0=m0, level=level)
    return replace(
        out,
        n=int(target.sum()),
        n_clusters=len(np.unique(group[here])),
        missing=missing,
        method=f"{out.method}, {int((known & ~np.isnan(y)).sum())} labels"
        + " of other rows" * (not here.all()),
    )


@takes_table("values", "cluster")
def macro_mean(
    values: Sequence[Any],
    *,
    cluster: Sequence[Hashable],
    level: float = 0.95,
    method: str = "mean over clusters",
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> Estimate:
    """Mean of cluster means with the interval of `rates.mean` over clusters; None / NaN left out
    and counted. bounds : the range that the values can have, where it is known.

    >>> e = macro_mean([1, 0, 1, 1, None], cluster=list("aabbb"))
    >>> e.value, e.n, e.n_clusters, e.missing
    (0.75, 4, 2, 1)
    """
    n = same_length(values=values, cluster=cluster)
    group, known = codes(cluster, n)[0], ~np.isnan(floats(values))
    w = 1 / np.maximum(np.bincount(group, known), 1)[group]
    e = mean(values, cluster=group, weights=w, level=level, bounds=bounds)
    return replace(e, method=e.method.replace("share", "mean", 1).replace("mean", method, 1))


@takes_table("new", "old", "new_cluster", "old_cluster")
def macro_difference(
    new: Sequence[Any],
    old: Sequence[Any],
    *,
    new_cluster: Sequence[Hashable],
    old_cluster: Sequence[Hashable],
    level: float = 0.95,
    method: str = "difference paired by cluster",
    bounds: tuple[float, float] | None = None,
    span: tuple[float, float] = (0.0, 1.0),
) -> Estimate:
    """Mean over clusters of (mean of new - mean of old), with a paired t interval over the clusters
    that both have.

    The two need not have the same rows, nor as many of a cluster. n : known rows of both. bounds :
    the range of a difference, such as (-1, 1). With fewer than 60 clusters, where a t interval is
    deceived by a few prompts that collapse, the interval is then the betting one, which no skew
    deceives. It has the room that `difference` has, and leans as it does. span : the range of a
    value, of use where no value lies outside it; in [0, 1], or where it is unknown, columns of 0s
    and 1s have an interval within [-1, 1]: `difference`'s for shares where each cluster has one row
    of each.

    >>> ids = {"new_cluster": list("aab"), "old_cluster": list("abb")}
    >>> macro_difference([1, 1, 0], [0, 1, 0], **ids).value
    0.25
    """
    n = same_length(new=new, new_cluster=new_cluster)
    same_length(old=old, old_cluster=old_cluster)
    x = np.concatenate([floats(new), floats(old)])
    group, c = codes([*new_cluster, *old_cluster], len(x))
    known, first = ~np.isnan(x), np.arange(len(x)) < n
    sides = [known & first, known & ~first]
    sizes = [np.bincount(group[side], minlength=c) for side in sides]
    both = np.minimum(*sizes) > 0
    sums = [np.bincount(group[side], x[side], c) for side in sides]
    one, two = (s[both] / size[both] for s, size in zip(sums, sizes, strict=True))
    d, n, missing = one - two, int(known.sum()), int((~known).sum())
    given = bounds or (-math.inf, math.inf)
    in_bounds(d, given)
    if bounds is not None and 1 < len(d) < FIRM:
        e = betting(d, bounds=bounds, horizon=len(d), level=level)
        return replace(e, n=n, n_clusters=len(d), missing=missing, method=f"{e.method}; {method}")
    out = estimate(
        lambda t: t[..., 0] / t[..., 1],
        np.column_stack([d, np.ones(len(d))]),
        n=n,
        method=method,
        missing=missing,
        level=level,
        bounds=(-math.inf, math.inf),
        leans=True,
    )
    shares = tuple(bounds or (-1.0, 1.0)) == (-1.0, 1.0) and are_shares(x[known], span)
    if shares and len(d) > 1 and np.isin(d, (-1.0, 0.0, 1.0)).all():
        e = signed_share(d, None, level=level)
        method = f"{method}; {e.method}"
        return replace(out, low=e.low, high=e.high, se=e.se, method=method, note="")
    kinds = farthest(d, np.arange(len(d)), given)
    if shares and np.max(sizes) > 1:  # another value may be in neither of a prompt's
        kinds = [-1.0, 1.0]
    elif (sizes[0] != sizes[1])[both].any():  # one row of the fewer counts for more than was drawn
        mean_of = [s / np.maximum(size, 1) for s, size in zip(sums, sizes, strict=True)]
        apart = np.abs(x - np.where(first, mean_of[1][group], mean_of[0][group]))
        far = apart[known & both[group]].max() / np.minimum(*sizes)[both].min()
        kinds = [min(kinds[0], -far), max(kinds[1], far)]
    width = 1.0 if shares else span[1] - span[0]
    within = (span[0] <= x[known]) & (x[known] <= span[1])
    room = width if within.all() else math.inf
    return allow_unseen(out, kinds, bounds or (-room, room))
