"""Tuning a judge without fooling oneself: fit on train, select on dev, read a sealed test once, and
report the optimism. The ways of judging to choose between; how many labelled prompts a better
prompt needs, to be found and to be believed; and whether a judge keeps its verdict when the
criterion is said in other words.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import DataError
from ..records import Task, fingerprint, grouped
from ..stats import (
    Estimate,
    ac1,
    accuracy,
    agreement_difference,
    balanced_accuracy,
    claim,
    estimate_from_json,
    kappa,
    mean,
)
from ..stats.clusters import codes, floats, same_length
from ..stats.planning import power_of, prompts_for
from ..stats.tails import t_below
from .seal import SealedError, Seals, row_keys

SILENT = "unknown verdicts count as disagreements"
MEASURES = {
    "kappa": kappa,
    "accuracy": accuracy,
    "balanced_accuracy": balanced_accuracy,
    "ac1": ac1,
}


@dataclass(frozen=True)
class Scored:
    """A candidate on one part of the rows: its agreement, the share of rows it judged at all, and
    its mean cost per row.
    """

    name: str
    part: str
    result: Estimate
    known: float
    cost: float
    usable: bool


@dataclass(frozen=True)
class Selection:
    """What train and dev say: the winner, and the tables."""

    winner: Candidate
    baseline: Candidate
    train: tuple[Scored, ...]
    dev: tuple[Scored, ...]

    @property
    def dev_result(self) -> Estimate:
        """The winner on dev; too good by the winner's curse."""
        return next(s.result for s in self.dev if s.name == self.winner.name)


@dataclass(frozen=True)
class TestRead:
    """The one look at the test rows.

    gain : paired difference to the baseline on test. optimism : dev - test of the winner. reads :
        times that these rows were read, with
    this one; over 1 the test is no test any more. sentence : what may be claimed.
    """

    __test__ = False  # not a test class

    winner: str
    baseline: str
    measure: str
    dev: Estimate
    test: Estimate
    baseline_test: Estimate
    gain: Estimate
    optimism: Estimate
    reads: int
    sentence: str
    replayed: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {k: v.as_dict() if isinstance(v, Estimate) else v for k, v in self.__dict__.items()}


def less(a: Estimate, b: Estimate, method: str) -> Estimate:
    """a - b of other rows, with what each interval is wide (Zou & Donner 2008, Stat. Med. 27).

    >>> print(less(Estimate(0.9, 0.8, 1.0, 40), Estimate(0.5, 0.2, 0.8, 30), ""))
    .400 [.08, .72], n=70
    """
    gap = a.value - b.value
    low = gap - math.hypot(a.value - a.low, b.high - b.value)
    high = gap + math.hypot(a.high - a.value, b.value - b.low)
    clusters = None if None in (a.n_clusters, b.n_clusters) else a.n_clusters + b.n_clusters
    return Estimate(gap, low, high, a.n + b.n, clusters, method)


@dataclass(frozen=True, kw_only=True)
class Study:
    """Labelled rows in three parts, and what "better" means.

    human : (n,) 1 / 0, None unknown. cluster : (n,) prompt of each row. part : (n,) "train", "dev",
        "test"; a cluster lies in one part.
    measure : "kappa" (default), "ac1", "accuracy", "balanced_accuracy". least_known : a candidate
        that judges a smaller share of the
    rows is not chosen. ids : (n,) ids of the rows, for the seal (default: the cluster); data : name
    of the data set, so that equal ids of two data sets are not mistaken for each other. before :
    (n,) ids that an earlier version gave the rows: its seals hold. parts : (n,) lists of ids of
    what each row was joined from: who reads the one has read the other.
    """

    human: Sequence[Any]
    cluster: Sequence[Any]
    part: Sequence[str]
    measure: str = "kappa"
    least_known: float = 0.9
    ids: Sequence[Any] | None = None
    data: str = ""
    before: Sequence[Any] | None = None
    parts: Sequence[Sequence[Any]] | None = None

    def __post_init__(self) -> None:
        n = same_length(
            human=self.human,
            cluster=self.cluster,
            part=self.part,
            ids=self.ids,
        )
        part, (group, c) = np.asarray(self.part, str), codes(self.cluster, n)
        DataError.first(
            (
                self.measure not in MEASURES,
                f"measure is {self.measure!r}",
                "measure",
                f"use one of {sorted(MEASURES)}",
            ),
            (
                set(part) - set(PARTS),
                f"parts are {sorted(set(part))[:6]}",
                "part",
                f"use {PARTS}",
            ),
        )
        table = np.stack([np.bincount(group[part == p], minlength=c) > 0 for p in PARTS])
        if (table.sum(0) > 1).any():
            where = int(np.flatnonzero(np.isin(group, np.flatnonzero(table.sum(0) > 1)))[0])
            raise DataError(
                f"cluster {self.cluster[where]!r} lies in more than one part",
                where=f"part, row {where}",
                fix="split by cluster",
            )
        clean = {
            "ids": [str(i) for i in (self.ids if self.ids is not None else self.cluster)],
            "human": floats(self.human, name="human"),
            "cluster": group,
        }
        for name, value in {**clean, "part": part}.items():
            object.__setattr__(self, name, value)

    def _score(self, candidate: Candidate, part: str) -> Scored:
        pick = self.part == part
        if not pick.any():
            raise DataError(f"no rows in {part}", where="part", fix="give every part some clusters")
        same_length(human=self.human, verdicts=candidate.verdicts)
        v = candidate.verdicts[pick]
        result = MEASURES[self.measure](
            v, self.human[pick], cluster=self.cluster[pick], categories=(0, 1)
        )
        known = float((~np.isnan(v)).mean())
        cost = math.nan if candidate.cost is None else float(np.mean(candidate.cost[pick]))
        return Scored(
            candidate.name,
            part,
            result,
            known,
            cost,
            known >= self.least_known and not math.isnan(result.value),
        )

    def scores(
        self, candidates: Sequence[Candidate], part: str, *, baseline: str = ""
    ) -> list[Scored]:
        """The table of candidates on train or dev, best first; of equal ones the baseline, then the
        cheaper. "test" is refused: it is read once, by test().
        """
        if part == "test":
            raise SealedError(
                "the test part is sealed", where="part", fix="choose on dev, then call test() once"
            )
        return sorted(
            (self._score(c, part) for c in candidates),
            key=lambda s: (
                not s.usable,
                -np.nan_to_num(s.result.value, nan=-9),
                s.name != baseline,
                np.nan_to_num(s.cost, nan=math.inf),
                s.name,
            ),
        )

    def select(self, candidates: Sequence[Candidate], *, baseline: str) -> Selection:
        """Best of each group on train, best group on dev. The baseline competes too, and is never
        dropped on train.
        """
        by = {c.name: c for c in candidates}
        names = f"candidates: {list(by)[:12]}"
        twice = len(by) != len(candidates)
        DataError.first(
            (twice, "two candidates share a name", "candidates", "give each its own name"),
            (baseline not in by, f"no candidate {baseline!r}", "baseline", names),
        )
        train = self.scores(candidates, "train")
        alike = grouped((by[s.name].group or s.name, s.name) for s in train)
        left = [by[name] for name in dict.fromkeys([*(x[0] for x in alike.values()), baseline])]
        dev = self.scores(left, "dev", baseline=baseline)
        if not dev[0].usable:
            raise DataError(
                f"no candidate judges {self.least_known:.0%} of the dev rows",
                where="candidates",
                fix="see why verdicts are unknown (their failure and reason), or lower least_known",
            )
        return Selection(by[dev[0].name], by[baseline], tuple(train), tuple(dev))

    def _test_rows(self, ids: Sequence[Any]) -> list[str]:
        """The keys of the test's rows, by which the seals know them."""
        test = [str(i) for i, p in zip(ids, self.part, strict=True) if p == "test"]
        return row_keys(test, data=self.data)

    def _keys(self) -> tuple[list[str], list[str], list[str]]:
        """The keys of the test's rows; of their parts; and all others by which they are known."""
        pairs = zip(self.parts or (), self.part, strict=False)
        parts = [str(i) for ids, p in pairs if p == "test" for i in ids]
        keys = row_keys(parts, data=self.data)
        before = self._test_rows(self.before or self.ids)
        return self._test_rows(self.ids), keys, [*keys, *before]

    def sealed(
        self,
        selection: Selection | None = None,
        *,
        seals: Seals | None = None,
        unseal: bool = False,
        replay: bool = False,
    ) -> None:
        """SealedError where `test` would refuse (None: whatever is selected); to be asked before
        anything is paid for.
        """
        seals, (rows, _, before) = Seals() if seals is None else seals, self._keys()
        there = {(r.candidate, r.baseline) for r in seals.seen(rows)}
        wanted = selection and {(selection.winner.name, selection.baseline.name)}
        if not (replay and there & (wanted or there)):
            seals.check(rows, unseal=unseal, before=before)

    def test(
        self,
        selection: Selection,
        *,
        seals: Seals | None = None,
        unseal: bool = False,
        replay: bool = False,
    ) -> TestRead:
        """Read the test once. A second read of any of its rows raises SealedError unless `unseal`.

        seals : default one file beside the runs, shared by all of them; rows are known by `data`
            and id.
        replay : give back the recorded result when exactly this question was asked before (for
            re-running a notebook); nothing new is read.
        """
        seals = Seals() if seals is None else seals
        pick = self.part == "test"
        rows, parts, before = self._keys()
        a, b = selection.winner, selection.baseline
        columns = [x[pick] for x in (a.verdicts, b.verdicts, self.human)]
        asked = [sorted(rows), a.name, b.name, self.measure]
        columns = [jsonable(x[np.argsort(rows)].tolist()) for x in columns]
        request = fingerprint([*asked, columns])
        if replay:
            for old in seals.seen(rows):
                if old.request == request:
                    row = {**old.result, "replayed": True}.items()
                    row = {k: estimate_from_json(v) if isinstance(v, dict) else v for k, v in row}
                    return TestRead(**row)
        read = self._read(selection, pick, (seals.check(rows, unseal=unseal, before=before) + 1))
        seals.record(
            [*rows, *parts],
            candidate=a.name,
            baseline=b.name,
            request=request,
            result=jsonable(read.as_dict()),
            unseal=unseal,
            before=before,
        )
        return read

    def gap(self, new: Candidate, old: Candidate, pick: np.ndarray) -> Estimate:
        """How much better `new` agrees with people than `old` on the rows `pick` (n,), in pairs."""
        return agreement_difference(
            new.verdicts[pick],
            old.verdicts[pick],
            self.human[pick],
            cluster=self.cluster[pick],
            measure=self.measure,
        )

    def _gains(self, a: Candidate, b: Candidate, pick: np.ndarray) -> list[Estimate]:
        """The gap on rows that both judge; and, where one leaves rows open, with these as
        disagreements: who keeps silent where it would be wrong gains nothing.
        """
        gains = [self.gap(a, b, pick)]
        open_ = [np.isnan(c.verdicts) for c in (a, b)]
        if (pick & (open_[0] | open_[1]) & ~np.isnan(self.human)).any():
            filled = [
                replace(c, verdicts=np.where(gone, 1 - self.human, c.verdicts))
                for c, gone in zip((a, b), open_, strict=True)
            ]
            silent = self.gap(*filled, pick)
            gains.append(replace(silent, note="; ".join(filter(None, (silent.note, SILENT)))))
        return gains

    def _read(self, selection: Selection, pick: np.ndarray, reads: int) -> TestRead:
        a, b, dev = selection.winner, selection.baseline, selection.dev_result
        test = self._score(a, "test").result
        base = self._score(b, "test").result
        gain = min(self._gains(a, b, pick), key=lambda g: g.low)
        optimism = less(dev, test, "dev - test of the winner")
        if a.name == b.name:
            old = "baseline" if b.name == "baseline" else f"baseline {b.name}"
            sentence = f"The {old} was the best on dev: nothing to claim."
            gain = Estimate(
                0.0, 0.0, 0.0, gain.n, gain.n_clusters, "the same judge", "", gain.missing
            )
        else:
            sentence = claim(gain, new=a.name, old=b.name, what=self.measure)
            sentence += f" ({SILENT}.)" if SILENT in gain.note else ""
        if reads > 1:
            sentence += f" The test was read {reads} times: this is no sealed result."
        return TestRead(
            a.name, b.name, self.measure, dev, test, base, gain, optimism, reads, sentence
        )


def jsonable(value: Any) -> Any:
    """Plain values with None in place of what JSON has no number for."""
    return json.loads(json.dumps(value), parse_constant=lambda _: None)


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


def chance(prompts: int, gain: float, *, spread: float, trials: int = 1) -> float:
    """The chance (a lower bound, down to -trials) that a trial better by `gain` is chosen on
    `prompts` of dev among `trials`, and its gain then claimed on as many of the test.

    spread : standard deviation over prompts of the paired difference, as `Estimate.se` times the
    root of its clusters. A prompt chosen wrongly on dev is a gain not found. Under 100 prompts a
    claim has to clear a margin (`kit.stats.claim`), too.

    >>> round(chance(508, 0.05, spread=0.4), 3), round(chance(508, 0.05, spread=0.4, trials=10), 3)
    (0.774, 0.563)
    """
    apart = spread * math.sqrt(2)  # two trials differ from each other by what each has of its own
    lost = trials * t_below(-gain * math.sqrt(prompts) / apart, prompts - 1)
    return power_of(prompts, gain, spread=spread) - lost


def prompts_to_find(gain: float, *, power: float = 0.8, **more: Any) -> int:
    """Prompts of the test, and as many of dev, for which `chance` reaches `power`; arguments as
    there.

    >>> prompts_to_find(0.05, spread=0.4), prompts_to_find(0.3, spread=0.4)
    (538, 38)
    """
    n = prompts_for(gain, spread=more["spread"], power=power)
    while chance(n, gain, **more) < power:
        n = math.ceil(1.005 * n)
    return n


def plan(
    gap: Estimate | None, trials: int, study: Study, gain: float, power: float, room: float = 2.0
) -> dict[str, Any]:
    """What a gain needs: labelled prompts in all ("needed"), and the smallest gain that those at
    hand ("prompts") find as often (NaN where none is; "finds": in words).

    gap : the difference of a trial to the baseline, which tells the spread over prompts; None:
        there is none with a spread (DataError). Its 80 % upper limit is planned with: half of all
        pilots understate it (Browne 1995). room : what the baseline lacks to the best value.
    """
    DataError.first(
        (not 0 < gain <= 1, f"a gain of {gain}", "--gain", "give a number in (0, 1]"),
        (
            gap is None,
            "no trial differs here and there from the baseline",
            "plan",
            "try a prompt that changes some verdicts first: its spread over prompts tells",
        ),
    )
    units = gap.n_clusters or gap.n
    sure = 1 + 0.84 / math.sqrt(2 * units)
    more = {"spread": sure * gap.se * math.sqrt(units), "trials": trials}
    size = {p: len(set(study.cluster[study.part == p])) for p in PARTS}
    here = min(size["dev"], size["test"])
    shown = (g for g in np.arange(0.01, room, 0.01) if chance(here, g, **more) >= power)
    smallest = float(next(shown, math.nan))
    none = f"none, whatever its size: the baseline lacks {room:.2f}"
    return {
        "gain": gain,
        "measure": study.measure,
        "found in": power,
        "needed": math.ceil(prompts_to_find(gain, power=power, **more) / min(FRACTIONS[1:])),
        "prompts": sum(size.values()),
        "smallest": smallest,
        "finds": none if math.isnan(smallest) else f"one of {smallest:.2f}",
    }


# Variants that mean the same; "control_negated" and "control_swapped" of the recordings do not.
PARAPHRASES = (
    "original",
    "lexical",
    "syntactic",
    "register_formal",
    "register_casual",
    "form_question",
    "form_imperative",
)


def paraphrase_flips(
    rows: Iterable[Mapping[str, Any]],
    *,
    threshold: float = 2.5,
    kinds: tuple[str, ...] = PARAPHRASES,
    tasks: Iterable[Task] = (),
) -> dict[str, Estimate]:
    """Per judge, the share of items on which at least one paraphrase falls on the other side of the
    threshold.

    rows : judge, item_id, variant_type, score_direct (None unknown). Items without every kind, or
        with an unknown score, are left
    out (counted in `missing`): a flip that could not be seen is no stability.
    tasks : the items as tasks: those of one group are one cluster. Without: items are independent.

    >>> said = ("a", 1, 5), ("b", 4, 4), ("c", 4, None)
    >>> rows = [{"judge": "j", "item_id": i, "variant_type": k, "score_direct": s}
    ...         for i, x, y in said for k, s in (("x", x), ("y", y))]
    >>> print(paraphrase_flips(rows, kinds=("x", "y"))["j"])
    .500 [.09, .91], n=2, 1 unknown
    """
    sides: dict[str, dict[str, dict[str, bool | None]]] = {}
    for r in rows:
        if r["variant_type"] in kinds:
            score = r["score_direct"]
            item = sides.setdefault(r["judge"], {}).setdefault(r["item_id"], {})
            item[r["variant_type"]] = None if score is None else score >= threshold
    groups = {t.id: t.group or t.id for t in tasks}
    out = {}
    for judge, items in sides.items():
        full = {i: set(s.values()) for i, s in items.items() if len(s) == len(kinds)}
        flips = [None if None in s else float(len(s) > 1) for s in full.values()]
        out[judge] = mean(flips, cluster=[groups[i] for i in full] if groups else None)
    return out
