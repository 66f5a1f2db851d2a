"""Macro means: every cluster (a prompt, say) counts once, whatever its number of rows; and
differences of two of them, paired by cluster.

Where `rates.mean` weighs rows, these weigh prompts: the samples of a prompt are no pairs of each
other, the prompts are (Miller 2024, arXiv:2411.00640).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .anytime import FIRM, betting
from .clusters import codes, estimate, floats, same_length
from .columns import takes_table
from .estimate import Estimate
from .rates import mean
from .shares import signed_share


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
    size = np.bincount(group, known)
    w = 1 / np.maximum(size, 1)[group]
    e = mean(values, cluster=group, weights=w, level=level, bounds=bounds)
    words = e.method.replace("share", "mean", 1).replace("mean", method, 1)
    return replace(e, method=words)


def macro_difference(
    new: Sequence[Any],
    old: Sequence[Any],
    *,
    new_cluster: Sequence[Hashable],
    old_cluster: Sequence[Hashable],
    level: float = 0.95,
    method: str = "difference paired by cluster",
    bounds: tuple[float, float] | None = None,
) -> Estimate:
    """Mean over clusters of (mean of new - mean of old), with a paired t interval over the clusters
    that both have.

    The two need not have the same rows, nor as many of a cluster. n : known rows of both. bounds :
    the range of a difference, such as (-1, 1). With fewer than 60 clusters, where a t interval is
    deceived by a few prompts that collapse, the interval is then the betting one, which no skew
    deceives. Columns of 0s and 1s have an interval within [-1, 1]: `difference`'s for shares where
    each cluster has one row of each.

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
    if bounds is None and np.isin(x[known], (0.0, 1.0)).all():
        return _of_shares(_t(d, n, missing, level, method), d)
    if bounds is None or not 1 < len(d) < FIRM:
        return _t(d, n, missing, level, method)
    e = betting(d, bounds=bounds, horizon=len(d), level=level)
    return replace(e, n=n, n_clusters=len(d), missing=missing, method=f"{e.method}; {method}")


def _of_shares(out: Estimate, d: np.ndarray) -> Estimate:
    """The same difference, its interval within [-1, 1]; nan stays nan."""
    if len(d) > 1 and np.isin(d, (-1.0, 0.0, 1.0)).all():
        e = signed_share(d, None, level=out.level)
        method = f"{out.method.split(',')[0]}; {e.method}"
        return replace(out, low=e.low, high=e.high, se=e.se, method=method, note="")
    low, high = np.clip([out.low, out.high], -1.0, 1.0).tolist()
    return replace(out, low=low, high=high)


def _t(x: np.ndarray, n: int, missing: int, level: float, method: str) -> Estimate:
    columns = np.column_stack([x, np.ones(len(x))])
    return estimate(
        lambda t: t[..., 0] / t[..., 1], columns, n=n, method=method, missing=missing, level=level
    )
