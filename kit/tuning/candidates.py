"""Ways of judging to choose between: recorded verdicts, thresholds on scores, escalation from a
cheap judge to a strong one, panels.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import DataError
from ..records import Verdict
from ..stats.clusters import floats, same_length

PARTS = ("train", "dev", "test")


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
    meta: Mapping[str, Any] = field(default_factory=dict)

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

    def __str__(self) -> str:
        return self.name

    @property
    def known(self) -> float:
        """Share of rows with a verdict."""
        return float((~np.isnan(self.verdicts)).mean()) if len(self.verdicts) else 0.0


def thresholds(
    scores: Mapping[str, Sequence[Any]],
    cuts: Sequence[float],
    *,
    cost: Mapping[str, Sequence[float]] | None = None,
) -> list[Candidate]:
    """One candidate per judge and cut: met when the score is at least the cut. The group is the
    judge.

    scores : judge (or judge/prompt) -> (n,) scores, None / NaN unknown.

    >>> [c.name for c in thresholds({"a": [1, 4, None]}, [3, 4])]
    ['a >= 3', 'a >= 4']
    """
    out = []
    for name, column in scores.items():
        x = floats(column, name=name)
        paid = None if cost is None else floats(cost[name], name=f"cost of {name}")
        out += [
            Candidate(
                f"{name} >= {c:g}",
                np.where(np.isnan(x), np.nan, (x >= c).astype(float)),
                paid,
                name,
                {"cut": c},
            )
            for c in cuts
        ]
    return out


@dataclass(frozen=True)
class Aligned:
    """Recorded scores side by side: ids and human scores (n,), and per "judge/prompt" its scores
    (n,), NaN where unknown.
    """

    ids: tuple[str, ...]
    human: np.ndarray
    scores: Mapping[str, np.ndarray]


def align(rows: Iterable[Any], *, field: str = "score") -> Aligned:
    """Recorded rows (item_id, judge, prompt, human and a score `field`) as columns over the items,
    items in order of first sight.
    """
    rows = list(rows)
    ids = tuple(dict.fromkeys(r.item_id for r in rows))
    at = {name: i for i, name in enumerate(ids)}
    human, scores = np.full(len(ids), np.nan), {}
    for r in rows:
        value = getattr(r, field)
        column = scores.setdefault(f"{r.judge}/{r.prompt}", np.full(len(ids), np.nan))
        column[at[r.item_id]] = np.nan if value is None else value
        human[at[r.item_id]] = np.nan if r.human is None else r.human
    return Aligned(ids, human, scores)


def escalate(
    cheap: Candidate,
    strong: Candidate,
    *,
    when: Sequence[Any],
    name: str | None = None,
    group: str | None = None,
) -> Candidate:
    """The cheap judge's verdict, but the strong one's where `when` holds or the cheap one is
    unknown; the costs add up there.

    when : (n,) True where to ask the strong judge (a score near the cut, a low confidence).

    >>> a, b = Candidate("a", [1, None, 0]), Candidate("b", [0, 1, 1])
    >>> escalate(a, b, when=[False, False, True]).verdicts.tolist()
    [1.0, 1.0, 1.0]
    """
    same_length(cheap=cheap.verdicts, strong=strong.verdicts, when=when)
    up = (np.nan_to_num(floats(when, name="when"), nan=1.0) > 0) | np.isnan(cheap.verdicts)
    paid = None
    if cheap.cost is not None and strong.cost is not None:
        paid = cheap.cost + np.where(up, strong.cost, 0.0)
    words = name or f"{cheap.name}, else {strong.name}"
    return Candidate(
        words,
        np.where(up, strong.verdicts, cheap.verdicts),
        paid,
        group or words,
        {"asked_strong": float(up.mean())},
    )


def panel(members: Sequence[Candidate], *, name: str | None = None) -> Candidate:
    """The majority of the known verdicts; a tie or an empty panel is unknown.

    >>> three = [Candidate("a", [1, 1]), Candidate("b", [1, 0]), Candidate("c", [0, None])]
    >>> panel(three).verdicts.tolist()
    [1.0, nan]
    """
    same_length(**{m.name: m.verdicts for m in members})
    v = np.stack([m.verdicts for m in members])
    met, unmet = (v == 1).sum(0), (v == 0).sum(0)
    paid = (
        sum((m.cost for m in members), np.zeros(v.shape[1]))
        if all(m.cost is not None for m in members)
        else None
    )
    words = name or "panel of " + ", ".join(m.name for m in members)
    return Candidate(
        words, np.where(met == unmet, np.nan, (met > unmet).astype(float)), paid, words
    )


def from_verdicts(
    verdicts: Iterable[Verdict], rows: Sequence[tuple[str, str, str]]
) -> dict[str, Candidate]:
    """Candidates by judge from verdict records; rows = the labelled (task, response, criterion) ids
    in order. Level verdicts: met at >= 1/2.

    >>> v = Verdict(task_id="t", response_id="r", criterion_id="c", status="met", judge="j")
    >>> from_verdicts([v], [("t", "r", "c"), ("t", "r", "d")])["j"].verdicts.tolist()
    [1.0, nan]
    """
    at = {row: i for i, row in enumerate(rows)}
    out: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for v in verdicts:
        i = at.get((v.task_id, v.response_id, v.criterion_id))
        if i is None:
            continue
        values, cost = out.setdefault(
            v.judge, (np.full(len(rows), np.nan), np.full(len(rows), np.nan))
        )
        values[i], cost[i] = np.nan if v.value is None else float(v.value >= 0.5), v.cost
    return {name: Candidate(name, values, cost, name) for name, (values, cost) in out.items()}


def split(
    cluster: Sequence[Any],
    *,
    fractions: tuple[float, float, float] = (0.4, 0.3, 0.3),
    seed: int = 0,
) -> np.ndarray:
    """ "train", "dev" or "test" for every row, whole clusters together, by a hash of the cluster's
    name and the seed.

    A prompt stays in its part when others are added or the order changes.

    >>> split(["a", "b", "a"])[0] == split(["b", "a"])[1]
    True
    """
    if len(fractions) != 3 or min(fractions) <= 0 or abs(sum(fractions) - 1) > 1e-9:
        raise DataError(
            f"fractions are {fractions}",
            where="fractions",
            fix="three positive numbers that sum to 1",
        )
    edges = np.cumsum(fractions)[:2]

    def part(name: Any) -> str:
        digest = hashlib.sha256(f"{seed}|{name}".encode("utf-8", "surrogatepass")).digest()
        return PARTS[
            int(np.searchsorted(edges, int.from_bytes(digest[:8], "big") / 2**64, "right"))
        ]

    known: dict[Any, str] = {}
    for c in cluster:
        if c not in known:
            known[c] = part(c)
    return np.array([known[c] for c in cluster], dtype="<U5")


@dataclass(frozen=True)
class Slice:
    """Agreement of a candidate inside one slice of the rows."""

    name: str
    result: Any
    n_wrong: int


def slices(
    candidate: Candidate,
    human: Sequence[Any],
    by: Sequence[Any],
    *,
    cluster: Sequence[Any] | None = None,
    measure: Callable[..., Any] | None = None,
) -> list[Slice]:
    """Where the judge fails: raw agreement (or another measure of kit.stats) per value of `by`,
    worst first.
    """
    from ..stats import accuracy

    h, names = floats(human, name="human"), np.array([str(b) for b in by])
    group = np.arange(len(h)) if cluster is None else np.asarray(cluster)
    same_length(verdicts=candidate.verdicts, human=h, by=names, cluster=group)
    out = []
    for s in sorted(set(names)):
        pick = names == s
        v, y = candidate.verdicts[pick], h[pick]
        wrong = int(((v != y) & ~np.isnan(v) & ~np.isnan(y)).sum())
        out.append(Slice(s, (measure or accuracy)(v, y, cluster=group[pick]), wrong))
    return sorted(out, key=lambda r: (np.nan_to_num(r.result.value, nan=2.0), r.name))


def disagreements(
    candidate: Candidate, human: Sequence[Any], *, most: int = 10, seed: int = 0
) -> list[int]:
    """Row numbers to read: a random sample of where the judge and the human disagree, false passes
    and false fails in turn.
    """
    h = floats(human, name="human")
    rng = np.random.default_rng(seed)
    kinds = [
        rng.permutation(np.flatnonzero((candidate.verdicts == v) & (h == 1 - v))).tolist()
        for v in (1.0, 0.0)
    ]
    out: list[int] = []
    while len(out) < most and any(kinds):
        for kind in kinds:
            if kind and len(out) < most:
                out.append(int(kind.pop()))
    return out
