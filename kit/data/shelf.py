"""Which rows of a flat table are one task: they wait for each other on disk, so that memory does
not grow with them."""

from __future__ import annotations

import itertools
import json
import re
import tempfile
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from ..system.paths import naming
from .findings import Finding
from .jsonl import dumps
from .names import spelled
from .rows import Context, Row
from .seen import Seen
from .values import blank

IDENT = ("task_id", "id", "prompt", "question", "instruction")  # what tells a flat row's task
ASKED_OF = re.compile(
    "prompt|question|instruction"
)  # what makes two rows of a flat table two tasks
TELLS = re.compile(  # the same where they have no ids: what an answer is held against, too
    rf"{ASKED_OF.pattern}|input|history|system(?:_prompt)?|sources|code|doc_id|background"
    r"|(?:source_)?(?:context|passage|document|article)s?"
)
FAR = 2**40  # more bytes than a file has


class Shelf:
    """Blocks of rows, given back task by task in the order of first sight; 8 bytes of memory a
    block and 20 a task.

    file : where they lie, open for reading and writing.

    >>> with tempfile.TemporaryFile() as file:
    ...     shelf = Shelf(file, Context())
    ...     for i, prompt in enumerate("aba"):
    ...         shelf.put([Row({"prompt": prompt}, i, f"row {i}", Context())])
    ...     [[row.number for row in rows] for rows in shelf]
    [[0, 2], [1]]
    """

    def __init__(self, file: Any, context: Context) -> None:
        self.file, self.context = file, context
        self.names, self.places = Seen(), array("Q")  # of each block: the name's number, its start

    def put(self, rows: list[Row]) -> None:
        """Lay down a block of one task; OSError where the disk is full."""
        self.places.append(self.names.add(_name(rows[0]))[0] * FAR + self.file.tell())
        held = [[r.data, r.number, r.where, [asdict(f) for f in r.findings]] for r in rows]
        with naming(tempfile.gettempdir()):
            self.file.write(dumps(held) + b"\n")

    def __iter__(self) -> Iterator[list[Row]]:
        for _, places in itertools.groupby(sorted(self.places), lambda p: p // FAR):
            yield from _joined(list(self._block(p % FAR)) for p in places)

    def _block(self, start: int) -> Iterator[Row]:
        self.file.seek(start)
        for *given, notes in json.loads(self.file.readline()):
            row = Row(*given, self.context)
            row.findings += [Finding(**f) for f in notes]
            yield row


def _name(row: Row) -> str:
    """What rows of one task have in common, be it of others, too."""
    named = (str(row.data[k]) for k in IDENT if row.data.get(k) is not None)
    return next(named, f"row {row.number}")


def _joined(blocks: Iterable[list[Row]]) -> Iterable[list[Row]]:
    """All rows of a task together, in the order of first sight; the blocks have one name."""
    out: list[list[Row]] = []
    alike: dict[frozenset[str], dict[str, list[Row]]] = {}  # by fields filled, by values
    for rows in blocks:
        first = rows[0].data
        ids = [first.get("task_id"), first.get("id")]
        told = _told(rows[0], TELLS if ids == [None, None] else ASKED_OF)
        key = repr((ids, told))
        own = alike.setdefault(frozenset(told), {})
        others = (b for g in alike.values() if g is not own for b in g.values())
        near = itertools.chain([own[key]] if key in own else (), others)
        known = next((b for b in near if same_task(b[0], rows[0])), None)
        if known is None:
            own[key] = rows
            out.append(rows)
        else:
            known += rows
    return out


def same_task(a: Row, b: Row) -> bool:
    ids = [k for k in ("task_id", "id") if (a.data.get(k), b.data.get(k)) != (None, None)]
    one, two = (_told(r, ASKED_OF if ids else TELLS) for r in (a, b))
    if any(v != two.get(k, v) for k, v in one.items()):
        return False  # one id for two prompts: the second gets an id of its own, and an error
    if ids:
        return a.data.get(ids[0]) == b.data.get(ids[0])
    return any(k in one and k in two for k in IDENT)


def _told(row: Row, names: re.Pattern[str]) -> dict[str, Any]:
    """The filled fields of a row that are called so."""
    return {k: v for k, v in row.data.items() if names.fullmatch(spelled(str(k))) and not blank(v)}


def say_ids(a: Row, b: Row) -> None:
    """A finding where two rows have one prompt and an `id` each: it may name the row."""
    if (
        _told(a, ASKED_OF) == _told(b, ASKED_OF) != {}
        and a.data.get("id") != b.data.get("id")
        and a.data.get("task_id") is None
    ):
        b.find(
            "same-prompt",
            f"the row before has this prompt too, and another id ({a.data.get('id')!r}, "
            f"{b.data.get('id')!r}): they are two tasks",
            field="id",
            suggestion="call it criterion_id or row where it does not name the task",
        )
