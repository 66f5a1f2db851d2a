"""The winner's curse on real numbers: how much better the best of many candidates looks than it is,
for a given number of labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import DataError
from ..stats.clusters import codes, floats, same_length
from ..stats.paired import table_stat
from .candidates import Candidate


@dataclass(frozen=True)
class Curse:
    """Choosing the best of n_candidates on about m labels, over many draws.

    looked : mean score of the winner on the labels that chose it. is_worth : its mean score on all
        other rows. optimism : looked - is_worth.
    low, high : the middle 95% of the optimism of single draws. regret : best candidate's score on
        the other rows minus the winner's.
    """

    m: int
    n_candidates: int
    measure: str
    looked: float
    is_worth: float
    optimism: float
    low: float
    high: float
    regret: float
    draws: int


def _draw(rng: np.random.Generator, sizes: np.ndarray, m: int, draws: int) -> np.ndarray:
    order = np.argsort(rng.random((draws, len(sizes))), axis=1)
    filled = np.cumsum(sizes[order], axis=1)
    out = np.zeros((draws, len(sizes)))
    np.put_along_axis(out, order, (filled <= max(m, int(sizes.max()))).astype(float), axis=1)
    return out


def winners_curse(
    candidates: Sequence[Candidate],
    human: Sequence[Any],
    *,
    cluster: Sequence[Any] | None = None,
    sizes: Sequence[int] = (50, 100, 200),
    measure: str = "accuracy",
    draws: int = 1000,
    seed: int = 0,
) -> list[Curse]:
    """Draw whole clusters with about m labels, choose the best candidate on them, and look at it on
    all the other rows.

    measure : "accuracy", "kappa", "balanced_accuracy" or "ac1". Needs more rows than the largest m.

    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 600)
    >>> many = [Candidate(str(k), np.where(rng.random(600) < 0.8, y, 1 - y)) for k in range(20)]
    >>> winners_curse(many, y, sizes=[50], draws=200)[0].optimism > 0.03
    True
    """
    h = floats(human, name="human")
    same_length(human=h, **{c.name: c.verdicts for c in candidates})
    group, c = codes(cluster, len(h))
    labelled = int(np.sum(~np.isnan(h)))
    if not candidates or max(sizes) >= labelled:
        raise DataError(
            f"{len(candidates)} candidates, {labelled} labelled rows, m up to {max(sizes)}",
            where="sizes",
            fix="m must be smaller than the rows",
        )
    blocks = []
    for cand in candidates:
        known = ~(np.isnan(h) | np.isnan(cand.verdicts))
        cell = (cand.verdicts[known] * 2 + h[known]).astype(int)
        blocks.append(np.bincount(group[known] * 4 + cell, minlength=4 * c).reshape(c, 4))
    cells = np.concatenate(blocks, axis=1).astype(float)
    rows, rng, stat = (
        np.bincount(group[~np.isnan(h)], minlength=c),  # a row without a label is no row here
        np.random.default_rng(seed),
        table_stat(measure, 2),
    )
    return [
        _one(_draw(rng, rows, m, draws), cells, stat, m, len(candidates), measure) for m in sizes
    ]


def _one(chosen: np.ndarray, cells: np.ndarray, stat: Any, m: int, k: int, measure: str) -> Curse:
    with np.errstate(all="ignore"):
        seen = np.nan_to_num(stat((chosen @ cells).reshape(len(chosen), k, 4)), nan=-1.0)
        other = np.nan_to_num(stat(((1 - chosen) @ cells).reshape(len(chosen), k, 4)), nan=0.0)
    best = seen.argmax(1)[:, None]
    looked, worth = (
        np.take_along_axis(seen, best, 1)[:, 0],
        np.take_along_axis(other, best, 1)[:, 0],
    )
    low, high = np.quantile(looked - worth, [0.025, 0.975])
    regret = float(other[:, other.mean(0).argmax()].mean() - worth.mean())
    return Curse(
        m,
        k,
        measure,
        float(looked.mean()),
        float(worth.mean()),
        float((looked - worth).mean()),
        float(low),
        float(high),
        regret,
        len(chosen),
    )
