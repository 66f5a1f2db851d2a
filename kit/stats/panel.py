"""A panel of judges without a reference: Dawid-Skene, checked against the majority vote, shrunk
where items are few.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import DataError
from .agreement import pairs
from .clusters import codes
from .columns import takes_table
from .estimate import Estimate, unknown
from .raters import rated
from .shares import share

STRENGTH = 4.0  # labels' worth of belief that a judge is right `RIGHT` of the time, per true level
RIGHT = 0.8
ROUNDS = 200


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
    it is surer than it may be. Where it turns over the majority on many items the note says so.

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
    return Panel(
        cats,
        posterior,
        tuple(cats[k] for k in label),
        tuple(cats[k] if ok else None for k, ok in zip(votes.argmax(1), clear, strict=True)),
        confusion,
        prevalence,
        agrees,
        _note(len(said), agrees, int(tied.sum()), words),
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


def _note(items: int, agrees: float, tied: int, words: str) -> str:
    notes = [words] if words else []
    if items < 50:
        notes.append(f"{items} items: the judges' confusions are mostly the prior")
    if agrees < 0.9:
        notes.append(
            f"it turns over the majority on {1 - agrees:.0%} of the items: look at them before "
            f"using it"
        )
    if tied:
        notes.append(f"{tied} items without a majority")
    return "; ".join(notes)


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
        here = p.reference == y
        group = None if cluster is None else codes(p.cluster[here], int(here.sum()))[0]
        for x, said in enumerate(p.categories):
            if not here.any():
                note = f"the human never says {truth!r}"
                out[truth, said] = unknown(0, method="share", note=note, level=level)
                continue
            hit = (p.judge[here] == x).astype(float)
            out[truth, said] = share(hit, np.ones(len(hit)), group, level=level)
    return out
