"""The ledger: every verdict and every reply that was paid for, in one SQLite file.

It is the cache, what a stopped run continues from, and the cost book. A verdict is on disk
before it is
handed on, so a killed process loses nothing that was answered.
"""

from __future__ import annotations

import gzip
import json
import os
import socket
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ..errors import DataError
from ..records import Verdict, from_json, group, to_json
from .keys import ABOUT, PARTS

VERSION = 2
CALL = (
    "call", "judge", "model", "created", "tokens_in", "tokens_out", "cost", "settings", "request", "reply",
)  # fmt: skip
SCHEMA = f"""
CREATE TABLE IF NOT EXISTS verdicts(id INTEGER PRIMARY KEY, key TEXT UNIQUE NOT NULL,
  about TEXT, known INTEGER, judge TEXT, created REAL, row BLOB NOT NULL, call TEXT);
CREATE INDEX IF NOT EXISTS verdicts_about ON verdicts(about);
CREATE TABLE IF NOT EXISTS calls(id INTEGER PRIMARY KEY, {", ".join(CALL)}, key TEXT);
CREATE UNIQUE INDEX IF NOT EXISTS calls_call ON calls(call);
CREATE INDEX IF NOT EXISTS calls_key ON calls(key) WHERE key IS NOT NULL;
CREATE TABLE IF NOT EXISTS leases(key TEXT PRIMARY KEY, until REAL, owner TEXT);
PRAGMA user_version = {VERSION};"""
_decode = msgspec.json.Decoder(Verdict).decode


class Ledger:
    """A ledger file, made when there is none (its new folder gets mode 0700). DataError for a
    broken file.

    readonly : never write; MissingError when there is no file.

    >>> import tempfile
    >>> book = Ledger(Path(tempfile.mkdtemp()) / "ledger.sqlite")
    >>> book.put([Verdict(task_id="t", response_id="r", criterion_id="c", status="met", key="k1")])
    >>> book.get(["k1"])["k1"].status, len(book)
    ('met', 1)
    """

    def __init__(self, path: str | Path):
        self.path, self._lock = Path(path).expanduser().absolute(), threading.RLock()
        if not self.path.parent.exists():
            self.path.parent.mkdir(parents=True, mode=0o700)
        try:
            self._db = sqlite3.connect(
                self.path, timeout=60, isolation_level=None, check_same_thread=False
            )
            self._prepare(self._db)
        except sqlite3.Error as e:
            raise self._fault(e) from None

    def _prepare(self, db: sqlite3.Connection) -> None:
        version = db.execute("PRAGMA user_version").fetchone()[0]
        tables = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if version != VERSION and tables:
            raise sqlite3.DatabaseError(
                f"its form is {version}, this kit reads form {VERSION}"
            )
        # The switch to WAL ignores the time limit above, so processes that start together collide.
        for wait in [0.05] * 100 + [None]:
            try:
                db.execute("PRAGMA journal_mode=WAL")
                break
            except sqlite3.OperationalError:
                if wait is None:
                    raise
                time.sleep(wait)
        db.execute("PRAGMA synchronous=NORMAL")
        if version != VERSION:
            db.executescript(f"BEGIN IMMEDIATE; {SCHEMA} COMMIT;")

    def _fault(self, error: Exception) -> DataError:
        return DataError(
            f"this is no usable ledger: {error}",
            where=str(self.path),
            fix="give another path, or restore the file from a copy",
        )

    def _read(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._lock:
            try:
                return self._db.execute(sql, values).fetchall()
            except sqlite3.Error as e:
                raise self._fault(e) from None

    def _write(self, *steps: tuple[str, list[Any]]) -> int:
        """Run statements in one transaction; the number of rows that changed."""
        with self._lock:
            db = self._db
            before = db.total_changes
            try:
                db.execute("BEGIN IMMEDIATE")
                try:
                    for sql, rows in steps:
                        db.executemany(sql, rows)
                    db.execute("COMMIT")
                except BaseException:
                    db.execute("ROLLBACK")
                    raise
            except sqlite3.Error as e:
                raise self._fault(e) from None
            return db.total_changes - before

    # -- verdicts and calls ----------------------------------------------------
    def get(self, keys: Iterable[str]) -> dict[str, Verdict]:
        """Stored verdicts by key."""
        sql = "SELECT key, row FROM verdicts WHERE key IN (SELECT value FROM json_each(?))"
        return {
            key: _decode(row) for key, row in self._read(sql, (json.dumps(list(keys)),))
        }

    def put(
        self, verdicts: Iterable[Verdict], call: dict[str, Any] | None = None
    ) -> None:
        """Store a call and its verdicts in one transaction, and end their leases.

        A known verdict under a key stays for ever; an unknown one gives way to a later one.
        """
        now = time.time()
        number = call["call"] if call else None
        rows = [
            (
                v.key,
                v.key[ABOUT],
                v.is_known,
                v.judge,
                now,
                msgspec.json.encode(v),
                number,
            )
            for v in verdicts
            if v.key
        ]
        # "WHERE NOT known": what a user saw as a verdict never changes under its key.
        insert = (
            "INSERT INTO verdicts(key, about, known, judge, created, row, call) "
            "VALUES(?, ?, ?, ?, ?, ?, ?) ON CONFLICT(key) DO UPDATE SET known = excluded.known, "
            "created = excluded.created, row = excluded.row, call = excluded.call WHERE NOT known"
        )
        steps = [
            (insert, rows),
            ("DELETE FROM leases WHERE key = ?", [row[:1] for row in rows]),
        ]
        if call:
            names = [*CALL, "key"]
            places = ", ".join("?" * len(names))
            sql = f"INSERT OR IGNORE INTO calls({', '.join(names)}) VALUES({places})"
            steps.append((sql, [[call.get(name) for name in names]]))
        self._write(*steps)

    def reply(self, key: str) -> str | None:
        """The stored text of a completion, None when there is none."""
        rows = self._read(
            "SELECT reply FROM calls WHERE key = ? ORDER BY id LIMIT 1", (key,)
        )
        return rows[0][0] if rows else None

    def verdicts(self, judge: str | None = None) -> Iterator[Verdict]:
        """The stored verdicts, oldest first. judge : only those of this judge."""
        sql = "SELECT row FROM verdicts WHERE ? IS NULL OR judge = ? ORDER BY id"
        return (_decode(row) for (row,) in self._read(sql, (judge, judge)))

    def calls(self) -> list[dict[str, Any]]:
        """The stored calls with request and reply, oldest first."""
        rows = self._read(f"SELECT {', '.join(CALL)} FROM calls ORDER BY id")  # noqa: S608
        return [dict(zip(CALL, row, strict=True)) for row in rows]

    def costs(self) -> Any:
        """A DataFrame: calls, tokens and US dollars per judge and model."""
        import pandas as pd

        names = ["judge", "model", "calls", "tokens_in", "tokens_out", "cost"]
        sql = (
            "SELECT judge, model, count(*), sum(tokens_in), sum(tokens_out), sum(cost) FROM calls "
            "GROUP BY 1, 2 ORDER BY 1, 2"
        )
        rows = self._read(sql)
        return pd.DataFrame(rows, columns=names)

    def explain(self, key: str) -> dict[str, Any]:
        """Why a verdict is what it is, and why its call was made.

        key : a key or its beginning. The result holds `verdict`, `request` and `reply` of
            its call, `model`,
        `created`, `settings` of the judge, `parts` of the key, and `others`: stored verdicts on
        the same
        task, answer and criterion, each with the parts of its key that differ. They tell why a
        call was
        made again.
        """
        columns = ("request", "reply", "model", "created", "settings")
        rows = self._read(
            f"SELECT v.key, v.row, {', '.join('c.' + name for name in columns)} FROM verdicts v "  # noqa: S608
            "LEFT JOIN calls c ON v.call = c.call WHERE substr(v.key, 1, ?) = ? LIMIT 2",
            (len(key), key),
        )
        if len(rows) != 1:
            raise DataError(
                f"{'several' if rows else 'no'} verdicts have a key that begins with {key!r}",
                where=str(self.path),
                fix="give the whole key of a verdict (verdict.key)",
            )
        whole, row, *call = rows[0]
        parts = dict(zip(PARTS, whole.split("-"), strict=False))
        same = "SELECT key, row FROM verdicts WHERE about = ? AND key <> ?"
        others = []
        for other, v in self._read(same, (whole[ABOUT], whole)):
            pairs = zip(PARTS, whole.split("-"), other.split("-"), strict=False)
            changes = [name for name, mine, theirs in pairs if mine != theirs]
            others.append({"key": other, "verdict": _decode(v), "differs in": changes})
        about = dict(zip(columns, call, strict=True))
        for name in ("request", "settings"):
            about[name] = json.loads(about[name] or "null")
        return {"verdict": _decode(row), "parts": parts, **about, "others": others}

    def export(self, path: str | Path) -> int:
        """Write all verdicts and calls as JSON lines (.jsonl or .jsonl.gz);

        the number of verdicts.
        """
        # One row a verdict, in the records' own form, so that `replay` and other tools read it.
        made = dict(self._read("SELECT key, call FROM verdicts"))
        opened = gzip.open if str(path).endswith(".gz") else open
        with opened(path, "wt", encoding="utf-8") as f:
            rows = [{**to_json(v), "call": made.get(v.key)} for v in self.verdicts()]
            rows += [{"record": "call", **call} for call in self.calls()]
            f.writelines(json.dumps(row) + "\n" for row in rows)
        return len(made)

    def load(self, path: str | Path) -> int:
        """Add the verdicts and calls of an exported file; the number of verdicts in it."""
        calls, pairs = {}, []
        for where, row in records(path):
            number = row.pop("call", None)
            if row.get("record") == "call":
                calls[number] = {**row, "call": number}
            else:
                pairs.append((number, from_json(row, Verdict, where=where)))
        made = group(pairs)
        for number in {**made, **calls}:
            self.put(made.get(number, []), calls.get(number))
        return len(pairs)

    def prune(
        self,
        *,
        judge: str | None = None,
        days: float | None = None,
        unknown: bool = False,
    ) -> int:
        """Delete verdicts that fit all given conditions, and calls that no verdict came from any
        more.

        judge : of this judge. days : older than so many days. unknown : only unknown ones.
            Returns their number.
        """
        if judge is None and days is None and not unknown:
            raise DataError(
                "prune needs a condition",
                where="Ledger.prune",
                fix="give judge, days or unknown",
            )
        before = time.time() + 1 if days is None else time.time() - days * 86400
        where = "created < ? AND (? IS NULL OR judge = ?) AND NOT (? AND known)"
        values = (before, judge, judge, unknown)
        calls = self._read(f"SELECT DISTINCT call FROM verdicts WHERE {where}", values)  # noqa: S608
        n = self._write((f"DELETE FROM verdicts WHERE {where}", [values]))  # noqa: S608
        orphan = "DELETE FROM calls WHERE call = ? AND call NOT IN (SELECT call FROM verdicts WHERE call NOTNULL)"
        self._write((orphan, calls))
        return n

    # -- leases: two processes that ask the same at the same moment -------------
    def lease(self, keys: Sequence[str], owner: str, seconds: float) -> bool:
        """Reserve questions for one asker; False, and no lease, where another process holds one
        of them.

        A lease ends with its verdict, by `release`, or after so many seconds: then its process
        was killed.
        """
        # A killed process leaves leases; whoever comes next on this machine need not wait for them.
        now, names = time.time(), json.dumps(list(keys))
        others = (
            "SELECT key, owner FROM leases WHERE key IN (SELECT value FROM json_each(?)) "
            "AND until > ? AND owner <> ?"
        )
        for key, other in self._read(others, (names, now, owner)):
            if _alive(other):
                return False
            self.release([key], other)
        take = (
            "INSERT INTO leases(key, until, owner) VALUES(?, ?, ?) ON CONFLICT(key) DO UPDATE "
            "SET until = excluded.until, owner = excluded.owner WHERE until <= ? OR owner = ?"
        )
        if self._write(
            (take, [(key, now + seconds, owner, now, owner) for key in keys])
        ) == len(keys):
            return True
        self.release(keys, owner)  # another process was a moment faster
        return False

    def release(self, keys: Sequence[str], owner: str) -> None:
        """End the leases of an asker."""
        if keys:
            rows = [(key, owner) for key in keys]
            self._write(("DELETE FROM leases WHERE key = ? AND owner = ?", rows))

    def __len__(self) -> int:
        return self._read("SELECT count(*) FROM verdicts")[0][0]

    def __bool__(self) -> bool:
        return True

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()


def _alive(owner: str) -> bool:
    """False for an owner ("HOST PID ...") whose process on this machine has ended."""
    host, pid, _ = owner.split(" ")
    try:
        os.kill(int(pid), 0) if host == socket.gethostname() else None
    except ProcessLookupError:
        return False
    except PermissionError:  # it runs, as another user
        pass
    return True


def records(path: str | Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(place, row) of a JSONL file, gzipped or not."""
    from ..data.files import rows_of

    for where, row in rows_of(path):
        value = row() if callable(row) else row
        if not isinstance(value, dict):
            raise DataError("the row is no JSON object", where=where)
        yield where, value
