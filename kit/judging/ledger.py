"""The ledger: every verdict and every reply that was paid for, in one SQLite file.

It is the cache, what a stopped run continues from, and the cost book. A verdict is on
disk before it is handed on, so a killed process loses nothing that was answered.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import psutil

from ..errors import DataError
from ..records import (
    Criterion,
    Response,
    Task,
    Verdict,
    fingerprint,
    from_json,
    group,
    strip_thinking,
    to_json,
)
from ..system import paths
from .prompt import criterion_texts

# A key has five parts, SETTINGS-TASK-ANSWER-CRITERION-TOGETHER. Two keys that differ in one
# part show why a question was paid twice: another prompt or model, another task text, another
# answer, a reworded criterion, or other criteria in the same call.
KEY_PARTS = ("settings", "task", "answer", "criterion", "together")
HASH_LENGTH = 16  # hex digits of each part
SUBJECT = slice(
    HASH_LENGTH + 1, 4 * HASH_LENGTH + 3
)  # the three parts in the middle
COSTS = ("tokens_in", "tokens_out", "cost")  # what a call takes
# Never stored: they say nothing of the answer.
TRANSIENT_FAILURES = ("transport", "budget", "error")
VERSION = 2
CALL = (
    "call", "judge", "model", "created", "tokens_in", "tokens_out", "cost", "settings",
    "request", "reply", "key",
)  # fmt: skip
SCHEMA = f"""
CREATE TABLE IF NOT EXISTS verdicts(id INTEGER PRIMARY KEY, key TEXT UNIQUE NOT NULL,
  about TEXT, known INTEGER, judge TEXT, created REAL, row BLOB NOT NULL, call TEXT);
CREATE INDEX IF NOT EXISTS verdicts_about ON verdicts(about);
CREATE TABLE IF NOT EXISTS calls(id INTEGER PRIMARY KEY, {", ".join(CALL)});
CREATE UNIQUE INDEX IF NOT EXISTS calls_call ON calls(call);
CREATE INDEX IF NOT EXISTS calls_key ON calls(key) WHERE key IS NOT NULL;
CREATE TABLE IF NOT EXISTS leases(key TEXT PRIMARY KEY, until REAL, owner TEXT);
PRAGMA user_version = {VERSION};"""
# "WHERE NOT known": what a user saw as a verdict never changes under its key.
INSERT = (
    "INSERT INTO verdicts(key, about, known, judge, created, row, call) "
    "VALUES(?, ?, ?, ?, ?, ?, ?) ON CONFLICT(key) DO UPDATE SET known = excluded.known, "
    "created = excluded.created, row = excluded.row, call = excluded.call WHERE NOT known"
)
TAKE_LEASE = (
    "INSERT INTO leases(key, until, owner) VALUES(?, ?, ?) ON CONFLICT(key) "
    "DO UPDATE SET until = excluded.until, owner = excluded.owner "
    "WHERE until <= ? OR owner = ? OR NOT is_running(owner)"
)
INSERT_CALL = (
    f"INSERT OR IGNORE INTO calls({', '.join(CALL)}) VALUES(:{', :'.join(CALL)})"
)
SELECT_CALLS = f"SELECT {', '.join(CALL)} FROM calls"  # noqa: S608
_decode = msgspec.json.Decoder(Verdict).decode


def short_hash(value: Any) -> str:
    """The first 16 hex digits of the sha256 of the canonical JSON of `value`."""
    try:
        return fingerprint(value)[:HASH_LENGTH]
    except UnicodeEncodeError:
        raise DataError(
            "a text holds half of a surrogate pair, which no file can hold",
            where=ascii(value)[:200],
            fix="text.encode('utf-16', 'surrogatepass').decode('utf-16', 'replace')",
        ) from None


def hash_answer(response: Response) -> str:
    """The part of a key that an answer has: without its thought."""
    # A model may write half of a surrogate pair, which JSON cannot carry.
    return short_hash(
        strip_thinking(response.text).encode("utf-8", "replace").decode()
    )


def subject_keys(
    task: Task, response: Response, criteria: Sequence[Criterion]
) -> list[str]:
    """The middle of each key: task, answer and criterion, whoever the judge is.

    Ids do not count: equal texts share a verdict.
    """
    prompt = short_hash([task.conversation, task.system, task.sources])
    answer = hash_answer(response)
    return [f"{prompt}-{answer}-{short_hash(criterion_texts(c))}" for c in criteria]


def open_ledger(ledger: LedgerLike) -> Ledger:
    """A Ledger as it is, or by its path. False : in memory.

    None : the file that all commands and `kit.judge` share: KIT_LEDGER, else in the kit's cache.
    """
    if isinstance(ledger, Ledger):
        return ledger
    if ledger is None or ledger is True:
        ledger = os.environ.get("KIT_LEDGER") or paths.home() / "ledger.db"
    return Ledger(ledger or None)


def borrow_ledger(ledger: LedgerLike) -> contextlib.AbstractContextManager[Ledger]:
    """`open_ledger` for a `with` statement, which closes no ledger of the caller's."""
    if isinstance(ledger, Ledger):
        return contextlib.nullcontext(ledger)
    return open_ledger(ledger)


class Ledger(contextlib.ExitStack):
    """A ledger file, made when there is none (a new folder gets mode 0700).

    path : None keeps it in memory. DataError for a broken file.

    >>> book = Ledger(None)
    >>> ids = {"task_id": "t", "response_id": "r", "criterion_id": "c"}
    >>> book.put([Verdict(**ids, status="met", key="k1")])
    >>> book.get(["k1"])["k1"].status
    'met'
    """

    def __init__(self, path: str | Path | None):
        self.path, self._lock = Path(path or ":memory:"), threading.RLock()
        if path is not None:
            self.path = self.path.expanduser().absolute()
            self.path.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
        # A lease names the process that has it.
        self.owner = f"{os.getpid()} {psutil.Process().create_time()}"
        # Judging happens on another thread than the one that opens the file.
        with self._guard_access():
            self._db = sqlite3.connect(
                self.path,
                timeout=60,
                isolation_level="IMMEDIATE",
                check_same_thread=False,
            )
            self._prepare_tables()
        super().__init__()
        self.callback(self._db.close)

    def _prepare_tables(self) -> None:
        self._db.row_factory = sqlite3.Row
        # In this order: another process may be making both at this moment.
        tables = self._db.execute("SELECT 1 FROM sqlite_master").fetchall()
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if tables and version != VERSION:
            raise sqlite3.DatabaseError(
                f"its form is {version}, this kit reads form {VERSION}"
            )
        # The switch to WAL ignores the time limit above, so processes that start together
        # collide. The next one that opens the file switches it; until then they wait longer.
        with contextlib.suppress(sqlite3.OperationalError):
            self._db.execute("PRAGMA journal_mode=WAL")
        # A killed process loses nothing under NORMAL; only a power cut might.
        self._db.execute("PRAGMA synchronous=NORMAL")
        if not tables:
            self._db.executescript(f"BEGIN IMMEDIATE; {SCHEMA} COMMIT;")
        # Nobody waits for a process that was killed.
        self._db.create_function("is_running", 1, _is_running)

    @contextlib.contextmanager
    def _guard_access(self) -> Iterator[None]:
        """One thread at a time; a broken file is a DataError."""
        with self._lock:
            try:
                yield
            except sqlite3.Error as e:
                raise DataError(
                    f"this is not a usable ledger: {e}",
                    where=str(self.path),
                    fix="give another path, or restore a copy",
                ) from None

    def _fetch_rows(self, sql: str, *values: Any) -> list[Any]:
        with self._guard_access():
            return self._db.execute(sql, values).fetchall()

    def _write_rows(self, *steps: tuple[str, list[Any]]) -> int:
        """Run statements in one transaction; the number of rows that changed."""
        with self._guard_access(), self._db:  # commits, or rolls back
            cursors = itertools.starmap(self._db.executemany, steps)
            return sum(cursor.rowcount for cursor in cursors)

    # -- verdicts and calls ----------------------------------------------------
    def get(self, keys: Iterable[str], since: float = 0.0) -> dict[str, Verdict]:
        """Stored verdicts by key. since : leave unknown ones out that are older."""
        rows = self._fetch_rows(
            "SELECT key, row FROM verdicts WHERE (known OR created >= ?) "
            "AND key IN (SELECT value FROM json_each(?))",
            since,
            json.dumps(list(keys)),
        )
        return {key: _decode(row) for key, row in rows}

    def put(
        self, verdicts: Iterable[Verdict], call: Mapping[str, Any] | None = None
    ) -> None:
        """Store a call and its verdicts in one transaction. call : fields of its row.

        A known verdict under a key stays for ever; an unknown one gives way to a later one.
        Verdicts without a key, and those that were lost on the way, are left out.
        """
        now, row = time.time(), dict.fromkeys(CALL)
        if call:
            row |= {
                "call": f"{time.time_ns():016x}{os.urandom(4).hex()}",
                "created": now,
                **call,
            }
        rows = [
            (
                v.key,
                v.key[SUBJECT],
                v.is_known,
                v.judge,
                now,
                msgspec.json.encode(v),
                row["call"],
            )
            for v in verdicts
            if v.key and v.failure not in TRANSIENT_FAILURES
        ]
        if rows or call:
            self._write_rows((INSERT, rows), (INSERT_CALL, [row] if call else []))

    def find_call(self, key: str) -> dict[str, Any] | None:
        """The stored call of a completion, None when there is none."""
        rows = self._fetch_rows(f"{SELECT_CALLS} WHERE key = ? LIMIT 1", key)
        return dict(rows[0]) if rows else None

    def verdicts(self) -> Iterator[Verdict]:
        """The stored verdicts, oldest first."""
        return itertools.starmap(
            _decode, self._fetch_rows("SELECT row FROM verdicts ORDER BY id")
        )

    def calls(self) -> list[dict[str, Any]]:
        """The stored calls with request and reply, oldest first."""
        return list(map(dict, self._fetch_rows(f"{SELECT_CALLS} ORDER BY id")))

    def costs(self) -> Any:
        """A DataFrame: calls, tokens and US dollars per judge and model."""
        import pandas as pd

        sums = ", ".join(f"sum({name}) AS {name}" for name in COSTS)
        sql = f"SELECT judge, model, count(*) AS calls, {sums} FROM calls GROUP BY 1, 2"  # noqa: S608
        return pd.DataFrame(map(dict, self._fetch_rows(sql)))

    def explain(self, key: str) -> dict[str, Any]:
        """Why a verdict is what it is, and why its call was made.

        key : a key or its beginning. The result holds `verdict`, the fields of its call
        (`request` and `settings` of the judge as JSON text, `reply`, `model`, `created`),
        and `others`: stored verdicts on the same texts or under the same ids of task, answer
        and criterion, each with the parts of its key that differ. They tell why a call was
        made again.
        """
        rows = self._fetch_rows(
            "SELECT key, row, call FROM verdicts WHERE substr(key, 1, ?) = ? LIMIT 2",
            len(key),
            key,
        )
        if len(rows) != 1:
            raise DataError(
                f"{'several' if rows else 'no'} verdicts' key begins with {key!r}",
                where=str(self.path),
                fix="give the whole key of a verdict (verdict.key)",
            )
        whole, row, number = rows[0]
        verdict = _decode(row)
        call = dict(*self._fetch_rows("SELECT * FROM calls WHERE call = ?", number))
        others = []
        for other, other_row in self._fetch_rows(
            "SELECT key, row FROM verdicts WHERE key <> ? AND (about = ? OR json_array(?, ?, ?) ="
            " json_extract(CAST(row AS TEXT), '$.task_id', '$.response_id', '$.criterion_id'))",
            whole,
            whole[SUBJECT],
            *verdict.ids,
        ):
            parts = zip(KEY_PARTS, other.split("-"), whole.split("-"), strict=True)
            differing = [name for name, a, b in parts if a != b]
            others.append({"verdict": _decode(other_row), "differs in": differing})
        return {**call, "verdict": verdict, "others": others}

    def export(self, path: str | Path) -> int:
        """Write all as JSON lines; the number of verdicts."""
        # One row a verdict, in the records' own form, so that other tools read it.
        calls = dict(self._fetch_rows("SELECT key, call FROM verdicts"))
        rows = [{**to_json(v), "call": calls.get(v.key)} for v in self.verdicts()]
        rows += [{"record": "call", **call} for call in self.calls()]
        Path(path).write_bytes(msgspec.json.Encoder().encode_lines(rows))
        return len(calls)

    def load(self, path: str | Path) -> int:
        """Add the verdicts and calls of an exported file; the number of its verdicts."""
        pairs, rows = read_recording(path)
        verdicts, calls = group(pairs), {row["call"]: row for row in rows}
        for number in {**verdicts, **calls}:
            self.put(verdicts.get(number, []), calls.get(number))
        return len(pairs)

    # -- leases: two askers with the same question at the same moment -----------
    def lease(self, keys: Sequence[str], owner: str, seconds: float) -> bool:
        """Reserve questions for one asker; False where another one has one of them.

        owner : begins with number and start of its process. A lease ends by `release`, with
        its process, or after so many seconds.
        """
        now = time.time()
        rows = [(key, now + seconds, owner, now, owner) for key in keys]
        if self._write_rows((TAKE_LEASE, rows)) == len(keys):
            return True
        self.release(keys, owner)
        return False

    def release(self, keys: Sequence[str], owner: str) -> None:
        """End the leases of an asker."""
        sql = "DELETE FROM leases WHERE owner = ? AND key IN (SELECT value FROM json_each(?))"
        self._write_rows((sql, [(owner, json.dumps(list(keys)))]))


LedgerLike = Ledger | str | Path | bool | None


def _is_running(owner: str) -> bool:
    """True while the process of a lease runs. WAL works on one machine only."""
    # In a container that starts again, the first process has the number of the old one.
    number, start, *_ = owner.split()
    with contextlib.suppress(psutil.Error):
        return psutil.Process(int(number)).create_time() == float(start)
    return False


def read_recording(path: str | Path) -> tuple[list[tuple[Any, Verdict]], list[Any]]:
    """(number of its call, verdict) and the calls of a JSONL file, gzipped or not."""
    from ..data.files import read_rows

    pairs, calls = [], []
    for where, row in read_rows(path):
        if row.get("record") == "call":
            calls.append(row)
        else:
            # The number goes first: it is no field of a verdict.
            pairs.append(
                (row.pop("call", None), from_json(row, Verdict, where=where))
            )
    return pairs, calls
