"""The lint's rules across rows: repeated prompts, leaks between splits, boilerplate criteria.
Memory: about 100 bytes a row."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from heapq import nlargest

from ..data.findings import Finding
from ..data.seen import Seen
from ..data.taskset import Parsed
from .splits import asked_key
from .words import hash_of

LEAK = 0.8  # overlap of word triples from which two prompts are the same
BOILERPLATE = 0.05  # share of tasks from which a repeated criterion is reported
KEEP = 200_000  # criterion texts, and groups, that are counted


@dataclass
class Corpus:
    """Gathers, row by row, what rules across rows need; `findings()` at the end."""

    prompts: Seen = field(default_factory=Seen)  # numbers the distinct prompts
    rows: array[int] = field(
        default_factory=lambda: array("Q")
    )  # of each distinct prompt its row, and the number of its split
    sides: array[int] = field(default_factory=lambda: array("I"))
    splits: dict[str | None, int] = field(default_factory=dict)  # split -> its number, in order
    names: list[str | None] = field(default_factory=list)
    sketches: Sketches = field(default_factory=lambda: Sketches())
    sketched: array[int] = field(
        default_factory=lambda: array("I")
    )  # numbers of the prompts with a sketch: those in a split
    criteria: dict[bytes, int] = field(default_factory=dict)
    texts: dict[bytes, str] = field(default_factory=dict)
    groups: dict[str, int] = field(
        default_factory=dict
    )  # group -> the number of its split, -1 for several
    tasks: int = 0
    bare: array[int] = field(
        default_factory=lambda: array("Q")
    )  # rows of tasks that nothing scores
    negative: int = 0
    scored: int = 0
    dropped: int = 0
    lost: int = 0

    def add(self, p: Parsed) -> Iterator[Finding]:
        """Take in one row; yields findings on repeated prompts."""
        task = p.task
        if task is None:
            return
        self.tasks += 1
        if not task.criteria and not task.truth:
            self.bare.append(p.row)
        side = self.splits.setdefault(task.split, len(self.splits))
        if side == len(self.names):
            self.names.append(task.split)
        key = asked_key(task)
        if key:
            known, new = self.prompts.add(key)
            if not new:
                row, split = self.rows[known], self.names[self.sides[known]]
                across = split != task.split and None not in (split, task.split)
                yield Finding(
                    code="split-leak" if across else "duplicate-prompt",
                    severity="error" if across else "warning",
                    row=p.row,
                    where=p.where,
                    task_id=task.id,
                    message=f"the same prompt as in row {row}"
                    + (f", of split {split!r}; this is {task.split!r}" if across else ""),
                    suggestion="keep it in one split only"
                    if across
                    else "merge the rows or remove one",
                )
            else:
                self.rows.append(p.row)
                self.sides.append(side)
                if task.split is not None:
                    self.sketched.append(known)
                    self.sketches.add(key.split(" ", 400)[:400])
        if task.group is not None and task.split is not None:
            if task.group in self.groups or len(self.groups) < KEEP:
                if self.groups.setdefault(task.group, side) != side:
                    self.groups[task.group] = -1
            else:
                self.lost += 1
        counts = self.criteria
        for c in task.criteria:
            weight = c.weight
            if weight:
                self.scored += 1
                self.negative += weight < 0
            digest = blake2b(
                c.text.strip().lower().encode("utf-8", "surrogatepass"), digest_size=8
            ).digest()
            seen = counts.get(digest, 0)
            if not seen and len(counts) >= KEEP:
                self.dropped += 1
                continue
            counts[digest] = seen + 1
            if seen == 1:
                self.texts[digest] = c.text[:200]

    def findings(self) -> Iterator[Finding]:
        """Findings on the whole set."""
        yield from self._near_leaks()
        if 0 < len(self.bare) < self.tasks:
            yield Finding(
                code="no-criteria",
                severity="warning",
                row=self.bare[0],
                message=f"{len(self.bare)} of {self.tasks} tasks have no criterion and no truth "
                f"(rows {', '.join(map(str, self.bare[:5]))}): their answers are not scored",
                suggestion="write criteria for them, or keep them in a file of prompts",
            )
        shared = sorted(g for g, s in self.groups.items() if s < 0)
        if shared:
            yield Finding(
                code="group-in-splits",
                severity="info",
                message=f"{len(shared)} of {len(self.groups)} groups occur in several splits "
                f"({', '.join(shared[:5])})",
                suggestion="for a hold-out by group, split with splits.by_group",
            )
        for digest, n in nlargest(20, self.criteria.items(), key=lambda x: x[1]):
            if n >= 5 and n > BOILERPLATE * self.tasks and digest in self.texts:
                yield Finding(
                    code="boilerplate",
                    severity="info",
                    message=f"this criterion occurs {n} times in {self.tasks} tasks",
                    text=self.texts[digest],
                    suggestion="fine for a house rule; otherwise make it specific",
                )
        if self.scored and not self.negative:
            yield Finding(
                code="one-signed-set",
                severity="info",
                message="no criterion of the set has a negative weight",
                suggestion="add what an answer must not do: padding and guessing cost nothing here",
            )
        if self.dropped:
            yield Finding(
                code="rule-limited",
                severity="info",
                message=f"repeated criteria were counted among the first {KEEP} different "
                f"texts only",
            )
        if self.lost:
            yield Finding(
                code="rule-limited",
                severity="info",
                message=f"groups in several splits were looked for among the first {KEEP} "
                f"groups only",
            )

    def _near_leaks(self) -> Iterator[Finding]:
        sides = array("I", [self.sides[k] for k in self.sketched])
        if len(set(sides)) < 2:
            return
        for j, i, s in self.sketches.alike(sides, least=LEAK):
            yield Finding(
                code="split-leak",
                severity="warning",
                row=self.rows[self.sketched[i]],
                confidence=round(s, 2),
                message=f"nearly the prompt of row {self.rows[self.sketched[j]]}: split "
                f"{self.names[sides[i]]!r} here, {self.names[sides[j]]!r} there "
                f"(overlap {s:.2f})",
                suggestion="keep both in one split",
            )
        if self.sketches.limited:
            yield Finding(
                code="rule-limited",
                severity="info",
                message="the prompts of different splits have too many phrases in common: "
                "near-equal ones were looked for in the first rows only",
            )


SIZE = 12  # hashes of a sketch
KEYS = 4  # of which the smallest ones are looked up
COMMON = 20  # a triple that more prompts share is a common phrase, not a leak
PAIRS = 1_000_000  # pairs with a common key that are looked at
MIX = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)


class Sketches:
    """The SIZE smallest hashes of each prompt's word triples: two sketches estimate the overlap of
    their prompts, in about 60 bytes a prompt.

    >>> s = Sketches()
    >>> for words in ("one two three four five",) * 2 + ("six seven eight nine ten",):
    ...     s.add(words.split())
    >>> s.overlap(0, 1), s.overlap(0, 2)
    (1.0, 0.0)
    """

    def __init__(self) -> None:
        self.values = array("I")  # the sketches, one after another, each in ascending order
        self.ends = array("Q", [0])
        self.limited = False  # True when `alike` met more than PAIRS pairs and left the rest

    def __len__(self) -> int:
        return len(self.ends) - 1

    def add(self, tokens: Sequence[str]) -> None:
        """Take in the next prompt, as words."""
        h = [hash_of(w) for w in tokens]
        x, y, z = MIX
        triples = zip(h, h[1:], h[2:], strict=False)
        mixed = {(a * x + b * y + c * z) >> 24 & 0xFFFFFFFF for a, b, c in triples}
        self.values.extend(sorted(mixed or {hash_of(" ".join(tokens))})[:SIZE])
        self.ends.append(len(self.values))

    def sketch(self, i: int) -> tuple[int, ...]:
        """The sketch of the i-th prompt."""
        return tuple(self.values[self.ends[i] : self.ends[i + 1]])

    def overlap(self, i: int, j: int) -> float:
        """Estimated overlap of two prompts' word triples, in [0, 1]."""
        a, b = set(self.sketch(i)), set(self.sketch(j))
        union = sorted(a | b)[: max(len(a), len(b))]
        return len(a.intersection(b).intersection(union)) / len(union)

    def alike(self, side: Sequence[int], *, least: float) -> Iterator[tuple[int, int, float]]:
        """(j, i, overlap) for prompts j < i of different sides whose estimated overlap is at least
        `least`."""
        shared: Counter[tuple[int, int]] = Counter()
        looked = 0
        for members in self._groups():
            pairs = [(j, i) for k, i in enumerate(members) for j in members[:k]]
            shared.update((j, i) for j, i in pairs if side[i] != side[j])
            looked += len(pairs)
            if looked > PAIRS:
                self.limited = True
                break
        for (j, i), n in shared.items():
            if n >= 2 and (s := self.overlap(j, i)) >= least:
                yield j, i, s

    def _groups(self) -> Iterator[list[int]]:
        """The prompts that have one of their KEYS smallest hashes in common, in order of rows."""
        import numpy as np

        ends = np.frombuffer(self.ends, np.uint64).astype(np.int64)
        place = ends[:-1, None] + np.arange(KEYS)
        there = place < ends[1:, None]
        owner = np.nonzero(there)[0]
        hashes = np.array(self.values, np.uint32)[place[there]]
        order = np.argsort(hashes, kind="stable")
        edges = np.flatnonzero(np.diff(hashes[order], prepend=-1, append=-1))
        counts = np.diff(edges)
        groups = np.flatnonzero((counts >= 2) & (counts <= COMMON))
        for g in groups[np.argsort(order[edges[groups]])]:
            yield owner[order[edges[g] : edges[g + 1]]].tolist()
