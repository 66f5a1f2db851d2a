"""What a confidence must beat to count as knowledge of one's errors: constant, table, token."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..stats.clusters import codes, estimate, sums
from ..stats.columns import takes_table
from ..stats.estimate import Estimate, unknown
from .inputs import Inputs, check
from .scores import mean_loss, of_each_outcome


@takes_table("conf", "correct", "cluster")
def against_constant(
    conf: Any,
    correct: Any,
    *,
    cluster: Any = None,
    missing: str = "raise",
    level: float = 0.95,
) -> Estimate:
    """Brier score less that of the best constant, the share of right rows: below 0 it says
    something.

    A constant's calibration error is almost nothing: a low ECE alone shows no knowledge of errors.

    >>> against_constant([0.5] * 40, [1, 0] * 20).value
    0.0
    """
    x = check(conf, correct, cluster=cluster, missing=missing)
    p, one = np.asarray(x.conf, dtype=float), np.ones(x.n)
    by = sums(np.column_stack([squares(x), x.correct, one]), *codes(x.cluster, x.n))
    by_outcome = of_each_outcome(lambda y: (p - y) ** 2, x, (0.0, 1.0))
    kinds = np.array([[e, y, 1.0] for y, each in enumerate(by_outcome) for e in each])

    def stat(t: np.ndarray) -> np.ndarray:
        right = t[..., 1] / t[..., 2]
        return t[..., 0] / t[..., 2] - right * (1 - right)

    words = "Brier less that of the best constant"
    more = {"n": x.n, "method": words, "missing": x.missing, "level": level}
    return estimate(stat, by, size=by[:, 2], kinds=kinds, **more)


@takes_table("conf", "correct", "family", "cluster")
def against_lookup(
    conf: Any,
    correct: Any,
    family: Any,
    *,
    cluster: Any = None,
    level: float = 0.95,
) -> Estimate:
    """Brier score less that of a table of each family's rate: below 0 it knows more than the
    family.

    family : (n,) labels. A row's entry is made of the other clusters' rows of its family, and of
        all other clusters where there are none. What such entries lose by being made of few rows
        is given back: a confidence that is its family's true rate is no better than the table. An
        unknown family is an error; where no family lies in two clusters the result says so.

    >>> against_lookup([1.0, 0.0] * 40, [1, 0] * 40, ["easy", "hard"] * 40).value
    0.0
    """
    x = check(conf, correct, cluster=cluster)
    kind, n_kinds = codes(family, x.n, "family")
    both, n_parts = codes(kind * (int(x.group.max()) + 1) + x.group, x.n)
    words = "that of a look-up of each family's rate"
    if n_parts == n_kinds:
        note = "no family has rows in two clusters: no look-up can be made"
        more = {"n_clusters": x.n_clusters, "method": f"Brier less {words}", "level": level}
        return unknown(x.n, note=note, **more)
    e = _less(x, _lookup(x, kind, both), words, level)
    noise = _table_noise(x, kind, both)
    high = min(e.high + 2 * noise, 1.0)  # the noise is itself known only so well
    return replace(e, value=e.value + noise, high=high)


def _table_noise(x: Inputs, kind: np.ndarray, both: np.ndarray) -> float:
    """Mean variance of a table's entries: by how much its Brier score is above the true rates'."""
    size = np.bincount(kind)
    rest = np.asarray(x.correct, dtype=float)
    rest = rest - (np.bincount(kind, rest) / size)[kind]
    home = np.zeros(both.max() + 1, dtype=int)
    home[both] = kind
    spread = np.bincount(home, np.bincount(both, rest) ** 2) / size
    clusters = np.bincount(home)
    several = clusters > 1
    grown = (clusters[several] / (clusters[several] - 1)) ** 2  # an entry lacks its own cluster
    return float((spread[several] * grown).sum() / x.n)


@takes_table("conf", "correct", "score", "cluster")
def against_score(
    conf: Any,
    correct: Any,
    score: Any,
    *,
    cluster: Any = None,
    level: float = 0.95,
) -> Estimate:
    """Brier score less that of another score in [0, 1] (a token probability): below 0 it is better.

    >>> against_score([0.9, 0.1], [1, 0], [0.5, 0.5]).value
    -0.24
    """
    x = check(conf, correct, cluster=cluster)
    y = check(score, correct, cluster=cluster, name="score")
    return _less(x, np.asarray(y.conf, dtype=float), "that of the score beside it", level)


def _lookup(x: Inputs, kind: np.ndarray, both: np.ndarray) -> np.ndarray:
    """Each row's rate of right (n,) among the other clusters of its family. kind, both : numbers
    (n,) of its family, and of its cluster's part of the family."""
    y = np.asarray(x.correct, dtype=float)
    hits, rows = _others(y, kind, both)
    every_hits, every_rows = _others(y, np.zeros(x.n, dtype=int), x.group)
    alone = np.divide(every_hits, every_rows, out=np.full(x.n, y.mean()), where=every_rows > 0)
    return np.divide(hits, rows, out=alone, where=rows > 0)


def _others(y: np.ndarray, whole: np.ndarray, part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Right rows and rows (n,) of each row's whole, less its own part of it."""
    hits = np.bincount(whole, y)[whole] - np.bincount(part, y)[part]
    return hits, np.bincount(whole)[whole] - np.bincount(part)[part]


def squares(x: Inputs) -> np.ndarray:
    """(confidence - outcome)^2 (n,)."""
    return (np.asarray(x.conf, dtype=float) - x.correct) ** 2


def _less(x: Inputs, other: np.ndarray, words: str, level: float) -> Estimate:
    p = np.asarray(x.conf, dtype=float)
    more = {"method": f"Brier less {words}", "level": level, "bounds": (-1.0, 1.0)}
    return mean_loss(lambda y: (p - y) ** 2 - (other - y) ** 2, x, **more)
