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

from ..errors import DataError
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
    left, right = _means(old, old_cluster), _means(new, new_cluster)
    missing = _missing(new) + _missing(old)
    d = [right[c] - left[c] for c in left if c in right]
    n = len(new) + len(old) - missing
    if bounds is None and _is_share(new) and _is_share(old):
        return _of_shares(_t(d, n, missing, level, method), d)
    if bounds is None or not 1 < len(d) < FIRM:
        return _t(d, n, missing, level, method)
    e = betting(d, bounds=bounds, horizon=len(d), level=level)
    return replace(e, n=n, n_clusters=len(d), missing=missing, method=f"{e.method}; {method}")


def _is_share(values: Sequence[Any]) -> bool:
    x = floats(values)
    return bool(np.isin(x[~np.isnan(x)], (0.0, 1.0)).all())


def _of_shares(out: Estimate, d: Sequence[float]) -> Estimate:
    """The same difference, its interval within [-1, 1]; nan stays nan."""
    if len(d) > 1 and np.isin(d, (-1.0, 0.0, 1.0)).all():
        e = signed_share(np.asarray(d), None, level=out.level)
        method = f"{out.method.split(',')[0]}; {e.method}"
        return replace(out, low=e.low, high=e.high, se=e.se, method=method, note="")
    low, high = np.clip([out.low, out.high], -1.0, 1.0).tolist()
    return replace(out, low=low, high=high)


def _missing(values: Sequence[Any]) -> int:
    return int(np.isnan(floats(values)).sum())


def _means(values: Sequence[Any], cluster: Sequence[Hashable]) -> dict[Hashable, float]:
    same_length(values=values, cluster=cluster)
    groups: dict[Hashable, list[float]] = {}
    try:
        for v, c in zip(floats(values).tolist(), cluster, strict=True):
            if not math.isnan(v):
                groups.setdefault(c, []).append(v)
    except TypeError:
        fix = "give text or numbers, one label per row"
        raise DataError("a cluster is no label", where="cluster", fix=fix) from None
    return {c: math.fsum(v) / len(v) for c, v in groups.items()}


def _t(x: Sequence[float], n: int, missing: int, level: float, method: str) -> Estimate:
    columns = np.column_stack([x, np.ones(len(x))]) if x else np.zeros((0, 2))
    return estimate(
        lambda t: t[..., 0] / t[..., 1], columns, n=n, method=method, missing=missing, level=level
    )
