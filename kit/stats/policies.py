"""The difference of two policies under one imperfect judge, its errors taken out per policy, paired
by prompt.

A judge lenient to one policy makes a gain out of nothing: with sensitivity .9 for both but
specificity .6 and .9, the interval of the judge's own rates never held the truth. A few labels of
each policy mend that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import DataError
from .clusters import codes, effective_df, floats, limits, same_length, worth
from .columns import takes_table
from .estimate import Estimate, unknown


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

    judge : (n,) scores in [0, 1]; human : (n,) in [0, 1], None where not labelled; policy : (n,)
        names, rows of others are left out; cluster : (n,) prompt of each row, which pairs the
        policies. Labelled rows are a random sample of rows or of prompts. Each policy is corrected
        by its own labels (PPI++, Angelopoulos et al. 2023), with the two weights that together give
        the least variance of the difference; moments and degrees of freedom are of prompts.

    >>> judge, human = [1, 1, 1, 1, 0, 1, 0, 0] * 5, [0, None, 1, None, 0, None, 0, None] * 5
    >>> policy, prompt = list("aaaabbbb") * 5, [i // 8 for i in range(40)]
    >>> e = policy_difference(judge, human, policy, new="a", old="b", cluster=prompt)
    >>> e.n, e.n_clusters, round(e.value, 2)
    (40, 5, 0.5)
    """
    n = same_length(judge=judge, human=human, policy=policy, cluster=cluster)
    f, y = floats(judge, name="judge"), floats(human, name="human")
    names = np.array([str(p) for p in policy])
    keep = ~np.isnan(f) & np.isin(names, [str(new), str(old)])
    group = np.unique(codes(cluster, n)[0][keep], return_inverse=True)[1]
    f, y, first = f[keep], y[keep], names[keep] == str(new)
    missing = int(np.isnan(floats(judge, name="judge")).sum())
    sides = [_side(f, y, where, group) for where in (first, ~first)]
    if any(s is None for s in sides):
        note = "each policy needs labels in two prompts or more"
        return unknown(int(keep.sum()), method="corrected difference", note=note, missing=missing)
    (value_a, a1, b1, gap1), (value_b, a2, b2, gap2) = sides  # type: ignore[misc]
    base, moves = a1 - a2, np.column_stack([b1, -b2])
    weights = -np.linalg.lstsq(moves, base, rcond=None)[0]
    held = np.bincount(group, ~np.isnan(y))
    labelled = held > 0
    inside = int(labelled.sum())
    spent = 3 if inside > 4 else 1  # the mean and the two weights
    psi = math.sqrt(inside / (inside - spent)) * (base + moves @ weights)
    value = value_a + weights[0] * gap1 - (value_b + weights[1] * gap2)
    se, df = math.sqrt(float((psi**2).sum())), effective_df(psi[labelled])
    df = min(df, max(worth(held) - 1, 1.0))
    value = float(min(max(value, -1.0), 1.0))
    low, high = limits(value, se, df, inside, bounds=(-1.0, 1.0), level=level)
    words = (
        f"difference corrected by {int((~np.isnan(y)).sum())} labels in {inside} prompts "
        f"(PPI++, weights {weights[0]:.2f} and {weights[1]:.2f}), paired by prompt"
    )
    return Estimate(value, low, high, int(keep.sum()), len(labelled), words, "", missing, level, se)


def _side(
    f: np.ndarray, y: np.ndarray, where: np.ndarray, group: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray, float] | None:
    """Labelled mean, its influence by prompt, the influence of judged less labelled mean, and that
    gap.
    """
    bad = np.flatnonzero(((f < 0) | (f > 1) | (y < 0) | (y > 1)) & where)
    if len(bad):
        raise DataError(
            "a score is outside [0, 1]", where=f"judge or human, known row {int(bad[0])}"
        )
    c = int(group.max(initial=-1)) + 1
    lab = where & ~np.isnan(y)
    m, n = int(lab.sum()), int(where.sum())
    if len(np.unique(group[lab])) < 2:
        return None
    mean_y, mean_l, mean_f = float(y[lab].mean()), float(f[lab].mean()), float(f[where].mean())
    a = np.bincount(group[lab], y[lab] - mean_y, c) / m
    b = np.bincount(group[where], f[where] - mean_f, c) / n
    b -= np.bincount(group[lab], f[lab] - mean_l, c) / m
    return mean_y, a, b, mean_f - mean_l
