"""Bottom-k sketches of prompts: near-equal prompts of different splits are found without keeping
any text."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence

from .words import hash_of

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
