"""Ways of judging to choose between: recorded verdicts, thresholds on scores, escalation from a
cheap judge to a strong one, panels.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import DataError
from ..stats.clusters import floats

PARTS = ("train", "dev", "test")
FRACTIONS = (0.4, 0.3, 0.3)
LEAST = 3  # prompts that every part needs


@dataclass(frozen=True)
class Candidate:
    """One way of judging the labelled rows.

    verdicts : (n,) 1 met, 0 unmet, NaN unknown. cost : (n,) dollars (or calls) per row, NaN where
        not known.
    group : candidates of one group differ in a setting that is fitted on train (a threshold); dev
        chooses between groups.
    """

    name: str
    verdicts: np.ndarray
    cost: np.ndarray | None = None
    group: str | None = None

    def __post_init__(self) -> None:
        v = floats(self.verdicts, name=f"verdicts of {self.name!r}")
        bad = ~(np.isnan(v) | np.isin(v, (0.0, 1.0)))
        if bad.any():
            raise DataError(
                f"a verdict is {v[bad][0]!r}",
                where=f"candidate {self.name!r}, row {int(np.flatnonzero(bad)[0])}",
                fix="1 met, 0 unmet, None unknown; use thresholds() for scores",
            )
        object.__setattr__(self, "verdicts", v)


def split(cluster: Sequence[Any], *, seed: int = 0) -> np.ndarray:
    """ "train", "dev" or "test" for every row (FRACTIONS of the clusters), whole clusters together,
    by a hash of the cluster's name and the seed.

    A prompt stays in its part when others are added or the order changes.

    >>> split(["a", "b", "a"])[0] == split(["b", "a"])[1]
    True
    """
    edges = np.cumsum(FRACTIONS)[:2]

    def part(name: Any) -> str:
        digest = hashlib.sha256(f"{seed}|{name}".encode("utf-8", "surrogatepass")).digest()
        return PARTS[
            int(np.searchsorted(edges, int.from_bytes(digest[:8], "big") / 2**64, "right"))
        ]

    known = {c: part(c) for c in set(cluster)}
    return np.array([known[c] for c in cluster], dtype="<U5")


def enough(cluster: np.ndarray, part: np.ndarray) -> None:
    """DataError where a part has fewer than LEAST prompts."""
    for name in PARTS:
        n = len(set(cluster[part == name]))
        if n < LEAST:
            raise DataError(
                f"{n} prompts fall into {name}",
                where="labels",
                fix=f"label answers to more prompts: each part needs {LEAST} or more",
            )
