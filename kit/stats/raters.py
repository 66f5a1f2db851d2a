"""Agreement of any number of raters, with missing ratings: Krippendorff's alpha. A panel of judges
without a reference: Dawid-Skene, checked against the majority vote, shrunk where items are few.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from ..errors import DataError
from .agreement import numbered, pairs, said_of
from .clusters import codes, estimate, no_surer, same_length, sums
from .columns import grid, takes_table
from .estimate import Estimate, unknown
from .tails import t_quantile

METRICS = ("nominal", "ordinal", "interval", "ratio")


def counts(
    ratings: Sequence[Sequence[Any]], categories: Sequence[Any] | None = None
) -> tuple[np.ndarray, tuple[Any, ...], int, str]:
    """How many raters gave each category: (items, q), the categories, how many ratings are
    missing, and how vocabularies were brought together.

    ratings : (items, raters), None / NaN = not rated; or a table with a column a rater.

    >>> counts([[1, 1, None], [0, 1, 1]])[0].tolist()
    [[0.0, 2.0], [1.0, 2.0]]
    """
    at, cats, said = rated(ratings, categories)
    votes = np.array([(at == k).sum(1) for k in range(len(cats))], float)
    return votes.reshape(len(cats), len(at)).T, cats, int((at < 0).sum()), said


def rated(
    ratings: Sequence[Sequence[Any]], categories: Sequence[Any] | None = None
) -> tuple[np.ndarray, tuple[Any, ...], str]:
    """Ratings as category numbers (items, raters), -1 where missing; the categories, and how the
    raters' vocabularies were brought together. DataError where there are none.
    """
    rows = grid(ratings)
    width = {len(r) for r in rows}
    DataError.first(
        (
            len(width) > 1,
            "items have different numbers of raters",
            "ratings",
            "give one column per rater, None where not rated",
        ),
        (
            width <= {0},
            "there are no ratings",
            "ratings",
            "give (items, raters): a row an item, None where not rated",
        ),
    )
    columns = {f"rater {k + 1}": c for k, c in enumerate(zip(*rows, strict=True))}
    return numbered(columns, categories)


def _ranks_apart(k: np.ndarray) -> np.ndarray:
    middle = np.cumsum(k, axis=-1) - k / 2  # rank of the middle of each category
    return (middle[..., :, None] - middle[..., None, :]) ** 2


def _distance(metric: str, cats: Sequence[Any], k: np.ndarray) -> np.ndarray:
    """How far apart categories are (q, q), of which there are k (q,) ratings."""
    if metric == "nominal":
        return 1 - np.eye(len(cats))
    if metric == "ordinal":
        return _ranks_apart(k)
    at = np.array(cats, float)
    gap = at[:, None] - at[None, :]
    if metric == "interval":
        return gap**2
    if (at < 0).any():
        raise DataError(
            "the ratio metric needs values >= 0", where="ratings", fix='use metric="interval"'
        )
    total = at[:, None] + at[None, :]
    return (gap / np.where(total == 0, 1, total)) ** 2


def _fixed_columns(
    r: np.ndarray, d: np.ndarray, inside: np.ndarray
) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    def stat(t: np.ndarray) -> np.ndarray:
        k = t[..., 1:]
        n = k.sum(-1)
        expected = np.einsum("...i,ij,...j->...", k, d, k)
        return 1 - (n - 1) * t[..., 0] / np.where(np.abs(expected) < 1e-300, np.nan, expected)

    return np.column_stack([inside, r]), stat


def _ordinal_columns(r: np.ndarray) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    q = r.shape[1]
    if q > 64:
        raise DataError(
            f"{q} ordinal categories", where="ratings", fix='use metric="interval", or fewer levels'
        )
    pairs = r[:, :, None] * r[:, None, :]
    itself = r[:, :, None] * np.eye(q)
    others = (r.sum(1) - 1)[:, None, None]
    both = (pairs - itself) / others

    def stat(t: np.ndarray) -> np.ndarray:
        together, k = t[..., : q * q], t[..., q * q :]
        o = together.reshape(*t.shape[:-1], q, q)
        d = _ranks_apart(k)
        expected = np.einsum("...i,...ij,...j->...", k, d, k)
        return 1 - (k.sum(-1) - 1) * (o * d).sum(axis=(-1, -2)) / np.where(
            np.abs(expected) < 1e-300, np.nan, expected
        )

    return np.column_stack([both.reshape(len(r), q * q), r]), stat


def alpha(
    ratings: Sequence[Sequence[Any]],
    *,
    metric: str = "nominal",
    cluster: Sequence[Any] | None = None,
    categories: Sequence[Any] | None = None,
    level: float = 0.95,
    se: str = "jackknife",
) -> Estimate:
    """Krippendorff's alpha, 1 - Do / De, for (items, raters) with missing ratings.

    metric : "nominal", "ordinal", "interval" or "ratio". Items with fewer than two ratings do not
        count; n is the items that do. `missing` counts ratings. Ordinal levels that are text need
        `categories` in order. Source: Krippendorff 2011, "Computing alpha".

    >>> round(alpha([[1, 1], [2, 2], [3, 3], [1, 3]]).value, 4)
    0.6667
    """
    r, cats, missing, said = counts(ratings, categories)
    group, _ = codes(cluster, same_length(ratings=r, cluster=cluster))
    DataError.first(
        (metric not in METRICS, f"metric is {metric!r}", "metric", f"use one of {METRICS}"),
        (
            metric != "nominal" and categories is None and any(isinstance(c, str) for c in cats),
            f"{metric} alpha of text",
            "ratings",
            "give numbers, or categories=[worst, ..., best] for ordinal",
        ),
    )
    use = r.sum(1) > 1
    several, n = r[use], int(use.sum())
    one = np.eye(len(cats))
    # an item of each category, and one that is torn between the first and the last
    more = np.vstack([one, (one[:1] + one[-1:]) / 2]) * (several.sum() / max(n, 1))
    both = np.vstack([several, more])
    d = _distance(metric, cats, several.sum(0))
    cost = (both * (both @ d)).sum(1) / (both.sum(1) - 1)
    columns, stat = _ordinal_columns(both) if metric == "ordinal" else _fixed_columns(both, d, cost)
    inverse, c = codes(group[use], n)
    out = estimate(
        stat,
        sums(columns[:n], inverse, c),
        n=int(use.sum()),
        method=f"Krippendorff's alpha ({metric})",
        missing=missing,
        level=level,
        se=se,
        bounds=(-1.0, 1.0),
        note=said,
        size=np.bincount(inverse, minlength=c),
        kinds=columns[n:-1],
    )
    if math.isnan(out.low):
        return out
    return no_surer(out, stat, columns, cost, np.arange(n), inverse, (-1.0, 1.0))


STRENGTH = 4.0  # labels' worth of belief that a judge is right `RIGHT` of the time, per true level
RIGHT = 0.8
ROUNDS = 200
FALSE = 0.05  # panels of independent judges, at most, which are said to err together


@dataclass(frozen=True)
class Panel:
    """What the panel says. posterior : (items, q) of each level; label : (items,) the likeliest;
    majority : (items,), None at ties.

    confusion : (judges, q, q), P(judge says column | truth is row). agrees : share of items on
        which label and majority agree.
    """

    categories: tuple[Any, ...]
    posterior: np.ndarray
    label: tuple[Any, ...]
    majority: tuple[Any, ...]
    confusion: np.ndarray
    prevalence: np.ndarray
    agrees: float
    note: str

    def accuracy(self) -> np.ndarray:
        """Expected accuracy of each judge (judges,), by the model: an estimate without labels, no
        measurement.
        """
        return np.einsum("jkk,k->j", self.confusion, self.prevalence)


def dawid_skene(
    ratings: Sequence[Sequence[Any]], *, categories: Sequence[Any] | None = None
) -> Panel:
    """True levels and each judge's confusion from (items, judges) ratings alone, None where not
    rated (Dawid & Skene 1979).

    EM from the majority vote, with Dirichlet priors that pull a judge towards being right four
    times in five, so that few items or a judge with few ratings do not run to 0 or 1. The model
    takes judges' errors as independent given the truth: judges of one family share theirs, and then
    it is surer than it may be. Where it turns over the majority on many items, or two of four
    judges or more say the same more often than it expects, the note says so: of panels of five in
    which two are one it tells .7 at 200 items, and .97 at 1,000.

    >>> p = dawid_skene([[1, 1, 0], [0, 0, 0], [1, 1, 1], [0, 0, 1], [1, 1, 1]])
    >>> p.label, p.agrees
    ((1, 0, 1, 0, 1), 1.0)
    """
    said, cats, words = rated(ratings, categories)
    if said.shape[1] < 3 or (said < 0).all():
        raise DataError(
            "a panel needs rated items with the same three judges or more",
            where="ratings",
            fix="one column a judge, None where it did not rate",
        )
    votes = np.stack([(said == k).sum(1) for k in range(len(cats))], 1).astype(float)
    posterior, confusion, prevalence = _em(said, votes, len(cats))
    label = posterior.argmax(1)
    top = votes.max(1)
    tied = (votes == top[:, None]).sum(1) > 1
    clear = ~tied & (top > 0)
    agrees = float((label == votes.argmax(1))[clear].mean()) if clear.any() else float("nan")
    pairs = list(combinations(range(said.shape[1]), 2))
    beyond = max(_beyond(said, posterior, confusion, *pair) for pair in pairs)
    return Panel(
        cats,
        posterior,
        tuple(cats[k] for k in label),
        tuple(cats[k] if ok else None for k, ok in zip(votes.argmax(1), clear, strict=True)),
        confusion,
        prevalence,
        agrees,
        _note(
            len(said),
            agrees,
            int(tied.sum()),
            words,
            beyond > t_quantile(1 - 2 * FALSE / len(pairs), math.inf),
        ),
    )


def _em(said: np.ndarray, votes: np.ndarray, q: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    spoken = np.stack([said == k for k in range(q)], 2).astype(float)  # (items, judges, q)
    wrong = (1 - RIGHT) / max(q - 1, 1)
    prior = STRENGTH * (wrong + (RIGHT - wrong) * np.eye(q))
    posterior = (votes + 1 / q) / (votes + 1 / q).sum(1, keepdims=True)
    for _ in range(ROUNDS):
        prevalence = (posterior.sum(0) + 1) / (len(said) + q)
        counts = np.einsum("ik,ijl->jkl", posterior, spoken) + prior
        confusion = counts / counts.sum(2, keepdims=True)
        log = np.einsum("ijl,jkl->ik", spoken, np.log(confusion)) + np.log(prevalence)
        new = np.exp(log - log.max(1, keepdims=True))
        new /= new.sum(1, keepdims=True)
        moved, posterior = float(np.abs(new - posterior).max()), new
        if moved < 1e-8:
            break
    return posterior, confusion, prevalence


def _beyond(
    said: np.ndarray, posterior: np.ndarray, confusion: np.ndarray, one: int, two: int
) -> float:
    """By how many standard errors two judges say the same more often than the model expects of
    independent errors. Three judges fit it whatever they do; of two that are one it makes the
    truth, so that the others are the pair that stands out.
    """
    both = (said[:, one] >= 0) & (said[:, two] >= 0)
    same = posterior[both] @ (confusion[one] * confusion[two]).sum(1)
    more = float((said[both, one] == said[both, two]).sum() - same.sum())
    return more / math.sqrt(max(float((same * (1 - same)).sum()), 1e-9))


def _note(items: int, agrees: float, tied: int, words: str, alike: bool) -> str:
    parts = (
        (True, words),
        (items < 50, f"{items} items: the judges' confusions are mostly the prior"),
        (
            agrees < 0.9,
            f"it turns over the majority on {1 - agrees:.0%} of the items: look at them before "
            "using it",
        ),
        (tied, f"{tied} items without a majority"),
        (
            alike,
            "judges say the same more often than independent errors would, as where one copies "
            "another: it is surer than it may be",
        ),
    )
    return "; ".join(text for told, text in parts if told and text)


@takes_table("judge", "human", "cluster")
def confusion(
    judge: Sequence[Any],
    human: Sequence[Any],
    *,
    cluster: Sequence[Any] | None = None,
    categories: Sequence[Any] | None = None,
    level: float = 0.95,
) -> dict[tuple[Any, Any], Estimate]:
    """P(judge says x | human says y) for every (y, x), each with a clustered Wilson interval:
    sensitivity, specificity and kin.

    >>> found = confusion([1, 1, 0, 0], [1, 1, 1, 0])
    >>> round(found[1, 1].value, 3), found[0, 1].value
    (0.667, 0.0)
    """
    p = pairs(judge, human, cluster=cluster, categories=categories)
    out = {}
    for y, truth in enumerate(p.categories):
        for x, said in enumerate(p.categories):
            if y not in p.reference:
                note = f"the human never says {truth!r}"
                out[truth, said] = unknown(0, method="share", note=note, level=level)
                continue
            out[truth, said] = said_of(p, x, y, clustered=cluster is not None, level=level)
    return out
