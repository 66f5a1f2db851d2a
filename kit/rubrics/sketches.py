"""Bottom-k sketches of prompts, many at a time: near-equal prompts of different splits are found
without keeping any text."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from .words import hash_of

if TYPE_CHECKING:
    import numpy as np

SIZE = 12  # hashes of a sketch
KEYS = 4  # of which the smallest ones are looked up
COMMON = 20  # a triple that more prompts share is a common phrase, not a leak
PAIRS = 2_000_000  # pairs with a common key that are looked at
WAITING = 200_000  # words after which the waiting prompts are sketched


class Sketches:
    """The SIZE smallest hashes of each prompt's word triples: two sketches estimate the overlap of
    their prompts.

    About 70 bytes a prompt; the triples are hashed in batches, by numpy.

    >>> s = Sketches()
    >>> for words in ("one two three four five",) * 2 + ("six seven eight nine ten",):
    ...     s.add(words.split())
    >>> s.overlap(0, 1), s.overlap(0, 2)
    (1.0, 0.0)
    """

    def __init__(self) -> None:
        self._words, self._lengths = (
            array("I"),
            array("I"),
        )  # hashed words of the prompts that wait for their sketch
        self._values, self._sizes = (
            array("I"),
            array("B"),
        )  # the sketches, one after another, each in ascending order
        self._starts: np.ndarray | None = None
        self.limited = False  # True when `alike` met more than PAIRS pairs and left the rest

    def add(self, tokens: Sequence[str]) -> None:
        """Take in the next prompt, as words."""
        if len(tokens) < 3:
            tokens = (" ".join(tokens),)
        self._words.extend(map(hash_of, tokens))
        self._lengths.append(len(tokens))
        self._starts = None
        if len(self._words) > WAITING:
            self._flush()

    def _flush(self) -> None:
        import numpy as np

        if not self._lengths:
            return
        lengths = np.frombuffer(self._lengths, dtype=np.uint32).astype(np.int64)
        h = np.frombuffer(self._words, dtype=np.uint32).astype(np.uint64)
        row = np.repeat(np.arange(len(lengths)), lengths)
        mixed = h.copy()  # a prompt of fewer than three words is one hash already
        a, b, c = h[:-2], h[1:-1], h[2:]
        if len(h) > 2:  # wraps around at 64 bits, as it should
            mixed[:-2] = (
                a * np.uint64(0x9E3779B97F4A7C15)
                + b * np.uint64(0xC2B2AE3D27D4EB4F)
                + c * np.uint64(0x165667B19E3779F9)
            ) >> np.uint64(24) & np.uint64(0xFFFFFFFF)
        ends = np.cumsum(lengths)
        single = lengths == 1
        mixed[ends[single] - 1] = h[ends[single] - 1]
        inside = (
            np.arange(len(h)) < np.where(single, ends, ends - 2)[row]
        )  # no triple reaches into the next prompt
        keys = np.unique(
            (row[inside].astype(np.uint64) << np.uint64(32)) | mixed[inside]
        )  # by prompt, then by hash; doubles gone
        of = (keys >> np.uint64(32)).astype(np.int64)
        first = np.searchsorted(of, np.arange(len(lengths)))
        kept = np.arange(len(keys)) - first[of] < SIZE
        self._values.frombytes((keys[kept] & np.uint64(0xFFFFFFFF)).astype(np.uint32).tobytes())
        self._sizes.frombytes(
            np.bincount(of[kept], minlength=len(lengths)).astype(np.uint8).tobytes()
        )
        self._words, self._lengths = array("I"), array("I")

    def _ready(self) -> np.ndarray:
        import numpy as np

        self._flush()
        if self._starts is None:
            self._starts = np.concatenate(
                [[0], np.cumsum(np.frombuffer(self._sizes, dtype=np.uint8), dtype=np.int64)]
            )
        return self._starts

    def __len__(self) -> int:
        return len(self._sizes) + len(self._lengths)

    def sketch(self, i: int) -> tuple[int, ...]:
        """The sketch of the i-th prompt."""
        starts = self._ready()
        return tuple(self._values[starts[i] : starts[i + 1]])

    def overlap(self, i: int, j: int) -> float:
        """Estimated overlap of two prompts' word triples, in [0, 1]."""
        a, b = set(self.sketch(i)), set(self.sketch(j))
        if not a or not b:
            return 0.0
        union = sorted(a | b)[: max(len(a), len(b))]
        return len(a.intersection(b).intersection(union)) / len(union)

    def alike(self, side: Sequence[int], *, least: float) -> Iterator[tuple[int, int, float]]:
        """(j, i, overlap) for prompts j < i of different sides whose estimated overlap is at least
        `least`."""
        import numpy as np

        starts = self._ready()
        if not len(self):
            return
        values, sizes = (
            np.frombuffer(self._values, dtype=np.uint32),
            np.frombuffer(self._sizes, dtype=np.uint8),
        )
        there = np.arange(KEYS, dtype=np.uint8) < sizes[:, None]
        owner = np.nonzero(there)[0].astype(np.uint32)  # of the keys, row by row
        hashes = values[(starts[:-1, None] + np.arange(KEYS))[there]]
        order = np.argsort(hashes, kind="stable")
        owner, hashes = owner[order], hashes[order]
        edges = np.concatenate([[0], np.flatnonzero(hashes[1:] != hashes[:-1]) + 1, [len(hashes)]])
        counts = np.diff(edges)
        groups = np.flatnonzero((counts >= 2) & (counts <= COMMON))
        groups = groups[np.argsort(order[edges[groups]])]  # in the order of the rows
        del there, hashes, order
        pairs = array("Q")
        for g in groups.tolist():
            members = owner[edges[g] : edges[g + 1]].tolist()
            pairs.extend(
                [
                    j << 32 | i
                    for k, i in enumerate(members)
                    for j in members[:k]
                    if side[i] != side[j]
                ]
            )
            if len(pairs) > PAIRS:
                self.limited = True
                break
        keys, first, n = np.unique(
            np.frombuffer(pairs, dtype=np.uint64), return_index=True, return_counts=True
        )
        for key in keys[n >= 2][np.argsort(first[n >= 2])].tolist():
            j, i = key >> 32, key & 0xFFFFFFFF
            if (s := self.overlap(j, i)) >= least:
                yield j, i, s
