"""Which texts occurred before, in about 20 bytes a text: a table of 64-bit hashes, so that ids of
millions of rows fit."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Any
from zlib import crc32

from ..records import grouped


class Seen:
    """Numbers texts in the order in which they first occur. Two different texts are taken for one
    with a chance of 3e-8 among a million.

    >>> seen = Seen()
    >>> [seen.add(t) for t in ("a", "b", "a")], len(seen)
    ([(0, True), (1, True), (0, False)], 2)
    """

    def __init__(self) -> None:
        self._hashes = array("Q")  # by number
        self._slots = array(
            "I", bytes(4 * 1024)
        )  # number + 1 at the place of the hash or the next free one; 0 = free

    def __len__(self) -> int:
        return len(self._hashes)

    def add(self, text: str) -> tuple[int, bool]:
        """(the text's number, True when it is new)."""
        h = int.from_bytes(
            blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little"
        )
        slots, hashes = self._slots, self._hashes
        mask = len(slots) - 1
        i = h & mask
        while n := slots[i]:
            if hashes[n - 1] == h:
                return n - 1, False
            i = (i + 1) & mask
        hashes.append(h)
        slots[i] = len(hashes)
        if 3 * len(hashes) > 2 * len(slots):
            self._grow()
        return len(hashes) - 1, True

    def _grow(self) -> None:
        self._slots = slots = array("I", bytes(8 * len(self._slots)))
        mask = len(slots) - 1
        for n, h in enumerate(self._hashes, 1):
            i = h & mask
            while slots[i]:
                i = (i + 1) & mask
            slots[i] = n


class Tasks:
    """The row where each task stands first, in about 80 bytes a task: 32 bits of each field tell
    what differs where it stands again.

    >>> tasks = Tasks()
    >>> [tasks.add("t", n, {"prompt": p, "system": ""}) for n, p in enumerate("aab", 1)]
    [(1, []), (1, []), (1, ['prompt'])]
    """

    def __init__(self) -> None:
        self._seen, self._rows, self._marks = Seen(), array("Q"), array("I")

    def add(self, name: str, row: int, told: Mapping[str, str]) -> tuple[int, list[str]]:
        """(the row where the task of this name stands first, the fields that differ there). told :
        the task's fields, each time the same."""
        marks = [crc32(text.encode("utf-8", "surrogatepass")) for text in told.values()]
        n, new = self._seen.add(name)
        if new:
            self._rows.append(row)
            self._marks.extend(marks)
        first = self._marks[n * len(marks) : (n + 1) * len(marks)]
        pairs = zip(told, marks, first, strict=True)
        return self._rows[n], [field for field, mark, known in pairs if mark != known]


class Alike:
    """Things by a key and by what is said of them: found where that is equal, or said by one alone.

    >>> like = Alike([("Q", {"system": "S"}, 1), ("Q", {}, 2), ("Q", {"system": "T"}, 3)])
    >>> list(like("Q", {"system": "S"})), len(list(like("Q", {}))), list(like("P", {}))
    ([1, 2], 3, [])
    """

    def __init__(self, things: Iterable[tuple[Any, Mapping[str, str], Any]]):
        pairs = ((key, (frozenset(said), said, x)) for key, said, x in things)
        self.forms = {
            key: grouped((names, (said, x)) for names, said, x in held)
            for key, held in grouped(pairs).items()
        }
        self.tables: dict[tuple, dict[tuple, deque]] = {}
        self.gone: set[Any] = set()  # not to be found again

    def __call__(self, key: Any, said: Mapping[str, str]) -> Iterator[Any]:
        for names, held in self.forms.get(key, {}).items():
            both = sorted(names & said.keys())
            place = (key, names, *both)
            if place not in self.tables:
                table = grouped((tuple(map(x.get, both)), thing) for x, thing in held)
                self.tables[place] = {k: deque(v) for k, v in table.items()}
            found = self.tables[place].get(tuple(map(said.get, both)), deque())
            while found and found[0] in self.gone:
                found.popleft()
            yield from found
