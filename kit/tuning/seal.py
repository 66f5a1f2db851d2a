"""The sealed test: a ledger in SQLite of which labelled rows were read as a test, when, for which
candidate, and what came out.
"""

from __future__ import annotations

import itertools
import json
import re
import sqlite3
import time
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import KitError
from ..records import fingerprint
from ..system import paths


class SealedError(KitError):
    """The sealed test was read before."""

    exit_code = 5


@dataclass(frozen=True)
class Read:
    """One recorded read of a test set."""

    id: int
    when: str
    candidate: str
    baseline: str
    request: str
    rows: frozenset[str]
    result: Mapping[str, Any]


class Seals:
    """The ledger of test reads, one SQLite file; rows are remembered by fingerprint, so a new name
    or a new split does not break a seal.

    path : file, made on first use; several processes may share it. Default: seals.sqlite beside the
        folders of the runs (KIT_RUNS), so that a read in one run is known to every other: seals
        belong to the data, not to a run.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = paths.runs() / "seals.sqlite" if path is None else Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with closing(self._open()) as db:
            db.execute(
                "CREATE TABLE IF NOT EXISTS reads (id INTEGER PRIMARY KEY, at TEXT, candidate "
                "TEXT, baseline TEXT, request TEXT, "
                "rows TEXT, result TEXT)"
            )

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=30, isolation_level=None)

    def reads(self) -> list[Read]:
        """All recorded reads, oldest first."""
        with closing(self._open()) as db:
            found = db.execute(
                "SELECT id, at, candidate, baseline, request, rows, result FROM reads ORDER BY id"
            ).fetchall()
        return [
            Read(i, at, c, b, q, frozenset(json.loads(rows)), json.loads(result))
            for i, at, c, b, q, rows, result in found
        ]

    def seen(self, rows: Sequence[str]) -> list[Read]:
        """Earlier reads that share at least one row with these."""
        mine = set(rows)
        return [r for r in self.reads() if r.rows & mine]

    def check(self, rows: Sequence[str], *, unseal: bool, before: Sequence[str] = ()) -> int:
        """How often these rows were read before; SealedError when they were, without `unseal`.

        before : names under which an earlier version knew the rows.
        """
        earlier = self.seen(rows) or self.seen(before)
        if earlier and not unseal:
            last = earlier[-1]
            its, parts = (len(last.rows & set(names)) for names in (rows, before))
            shared = f"{its} of its" if its else f"{parts} of the parts of its"
            raise SealedError(
                f"this test set was read before: {shared} {len(rows)} rows, on "
                f"{last.when}, for {last.candidate!r}",
                where=str(self.path),
                fix="report the first read; a second one is no test any more (label new rows, or "
                "pass unseal=True and say so in the report)",
            )
        return len(earlier)

    def record(
        self,
        rows: Sequence[str],
        *,
        candidate: str,
        baseline: str,
        request: str,
        result: Mapping[str, Any],
        unseal: bool,
        before: Sequence[str] = (),
    ) -> None:
        """Write one read, atomically with a last look at earlier ones."""
        with closing(self._open()) as db:
            db.execute("BEGIN IMMEDIATE")  # closed before COMMIT it is as if nothing was written
            self.check(rows, unseal=unseal, before=before)
            db.execute(
                "INSERT INTO reads (at, candidate, baseline, request, rows, result) VALUES "
                "(?, ?, ?, ?, ?, ?)",
                (
                    time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                    candidate,
                    baseline,
                    request,
                    json.dumps(sorted(rows)),
                    json.dumps(result),
                ),
            )
            db.execute("COMMIT")


def words(text: str) -> str:
    """A text without what a spreadsheet or an editor changes when it saves: line ends, blanks,
    case, marks between words.

    >>> words("Is it 3.5?\\r\\n") == words("is it  3.5")
    True
    """
    seen = "".join(c for c in text if unicodedata.category(c) != "Cf")  # zero-width marks
    return " ".join(re.findall(r"\w+", unicodedata.normalize("NFKC", seen).casefold())) or text


def row_keys(ids: Sequence[Any], *, data: str = "") -> list[str]:
    """A fingerprint per row from its id (and its count among equal ids) and the name of the data
    set, independent of the rows' order.

    >>> sorted(row_keys(["a", "b", "a"])) == sorted(row_keys(["b", "a", "a"]))
    True
    """
    count: defaultdict[str, Iterator[int]] = defaultdict(lambda: itertools.count(1))
    return [fingerprint([data, name, next(count[name])])[:16] for name in map(str, ids)]
