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
from .clusters import codes, floats, of_influence, same_length, worth
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
    names = np.array([str(p) for p in policy])
    keep = np.isin(names, [str(new), str(old)])
    group = np.unique(codes(cluster, n)[0][keep], return_inverse=True)[1]
    f, y, first = f[keep], y[keep], names[keep] == str(new)
    missing = int(np.isnan(f).sum())
    sides = [_side(f, y, where, group) for where in (first, ~first)]
    if any(s is None for s in sides):
        note = "each policy needs labels in two prompts or more"
        return unknown(len(f), method="corrected difference", note=note, missing=missing)
    (value_a, a1, b1, gap1), (value_b, a2, b2, gap2) = sides  # type: ignore[misc]
    base, moves = a1 - a2, np.hstack([b1, -b2])
    found, _, rank, _ = np.linalg.lstsq(moves, base, rcond=None)
    weights = -found
    held = np.bincount(group, ~np.isnan(y))
    labelled = held > 0
    inside = int(labelled.sum())
    spent = 1 + rank if inside > 2 + rank else 1  # the mean and the weights
    psi = math.sqrt(inside / (inside - spent)) * (base + moves @ weights)
    value = value_a - value_b + float(np.append(gap1, -gap2) @ weights)
    value = float(min(max(value, -1.0), 1.0))
    words = (
        f"difference corrected by {int((~np.isnan(y)).sum())} labels in {inside} prompts "
        f"(PPI++, weights {' and '.join(f'{w:.2f}' for w in weights)}), paired by prompt"
    )
    more = {"n": len(f), "n_clusters": len(labelled), "missing": missing, "level": level}
    more |= {"bounds": (-1.0, 1.0), "units": inside, "method": words, "what": "labels"}
    se = math.sqrt(float((psi**2).sum()))
    return of_influence(value, psi[labelled], worth(held), se=se, **more)


def _side(
    f: np.ndarray, y: np.ndarray, where: np.ndarray, group: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray, np.ndarray] | None:
    """Labelled mean, its influence by prompt (c,); the influence of judged less labelled mean and
    that gap, (c, k) and (k,), for each of the k columns that tell of the judge.
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
    told = [np.nan_to_num(f), *([np.isnan(f).astype(float)] if np.isnan(f).any() else [])]
    moves, gaps = [], []
    for x in told:
        there, here = float(x[where].mean()), float(x[lab].mean())
        whole = np.bincount(group[where], x[where] - there, c) / where.sum()
        moves.append(whole - np.bincount(group[lab], x[lab] - here, c) / lab.sum())
        gaps.append(there - here)
    return mean, a, np.column_stack(moves), np.array(gaps)
