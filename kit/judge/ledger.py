"""The ledger: every verdict and every raw reply that was paid for, in one SQLite file.

Cache, resume, replay and cost book. Rows are JSON, never pickle. WAL mode, a rowid table and a
commit before anything is handed on: two processes may use one file at once (claims.py: they share
the work), and a kill -9 loses nothing that had been answered. On a network file system, where WAL
is unsafe, the journal is an ordinary one.
"""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import os
import random
import sqlite3
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ..errors import DataError, MissingError
from ..records import Verdict
from ..system import paths
from . import claims, exchange
from .exchange import CALL_COLUMNS, FIELDS, INSERT_CALL, call_of, call_row, verdict_of, verdict_row
from .records import Call

log = logging.getLogger(__name__)
MIGRATIONS = (
    """CREATE TABLE verdicts(id INTEGER PRIMARY KEY, key TEXT NOT NULL, row TEXT NOT NULL,
         call TEXT, created REAL NOT NULL);
       CREATE UNIQUE INDEX verdicts_key ON verdicts(key);
       CREATE TABLE calls(id INTEGER PRIMARY KEY, call TEXT NOT NULL, judge TEXT, model TEXT,
         endpoint TEXT, status TEXT, tokens_in INTEGER, tokens_out INTEGER, tokens_cached INTEGER,
         cost REAL, seconds REAL, created REAL, request BLOB, reply BLOB, meta TEXT);
       CREATE UNIQUE INDEX calls_call ON calls(call);
       CREATE TABLE notes(name TEXT PRIMARY KEY, value TEXT NOT NULL, created REAL NOT NULL);""",
    """CREATE TABLE claims(key TEXT PRIMARY KEY, owner TEXT NOT NULL, until REAL NOT NULL)
       WITHOUT ROWID;""",
    """DROP TABLE claims;
       CREATE TABLE claims(key TEXT PRIMARY KEY, owner TEXT NOT NULL, beat INTEGER NOT NULL)
         WITHOUT ROWID;
       CREATE INDEX verdicts_call ON verdicts(call) WHERE call IS NOT NULL;""",
)
PAGE = 1000  # rows read at once
ANOTHER = "give another path, or move the file away; --ledger NEW starts a new one"
DAMAGED = (
    "disk image is malformed",
    "no such table",
    "no such column",
    "has no column",
    "not a database",
    "not decode to UTF-8",
)
TEXT = functools.partial(str, encoding="utf-8", errors="replace")  # a damaged row is no end
LOST = "%s: the row of %s is damaged; it counts as absent, and is asked again"


@contextlib.contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    if db.in_transaction:  # part of a larger one
        yield db
        return
    db.execute("BEGIN IMMEDIATE")
    try:
        yield db
        db.execute("COMMIT")
    except BaseException:
        if (
            db.in_transaction
        ):  # a full disk has rolled back already; a second time would hide what happened
            db.execute("ROLLBACK")
        raise


def _unwritable(path: Path, e: BaseException) -> DataError | None:
    """The error for a full or failing disk or a damaged file, None when it is something else."""
    if isinstance(e, sqlite3.DatabaseError) and any(said in str(e) for said in DAMAGED):
        return DataError(f"this is no usable ledger ({e})", where=str(path), fix=ANOTHER)
    if isinstance(e, sqlite3.OperationalError) and (
        any(said in str(e) for said in ("full", "disk I/O", "readonly"))
    ):
        return DataError(
            f"the ledger cannot be written ({e})",
            where=str(path),
            fix="free some space or look at its rights, or put the ledger elsewhere (--ledger, or "
            "--set ledger= in training); then run the same command again",
        )
    return None


class Ledger(contextlib.AbstractContextManager["Ledger"]):
    """A ledger file; made, with its folder (mode 0700), when it is not there.

    >>> import tempfile, pathlib
    >>> book = Ledger(pathlib.Path(tempfile.mkdtemp()) / "ledger.sqlite")
    >>> book.put([Verdict(task_id="t", response_id="r", criterion_id="c", status="met", key="k1")])
    >>> book.get("k1").status, book.get("k2"), len(book)
    ('met', None, 1)
    """

    def __init__(self, path: str | Path, *, readonly: bool = False):
        self.path, self.readonly = Path(path).expanduser().absolute(), readonly
        self.lock, self._db, self._pid = threading.RLock(), None, -1
        self._claims = claims.Claims()
        self.payer = ""  # signs the calls that are stored from now on
        if readonly and not self.path.exists():
            raise MissingError(
                "there is no such ledger",
                where=str(self.path),
                fix="give the path that was used with --ledger",
            )
        self.connection()

    # -- the file
    def connection(self, *, frozen: bool = False) -> sqlite3.Connection:
        """The connection of this process (a forked child opens its own).

        frozen : nobody can write there, so SQLite needs no file of its own beside it.
        """
        if self._db is not None and self._pid == os.getpid():
            return self._db
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not self.path.exists() and not self.readonly:
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        try:
            db = sqlite3.connect(
                f"{self.path.as_uri()}?immutable=1" if frozen else self.path,
                uri=frozen,
                timeout=30.0,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=256,
            )
            db.text_factory = TEXT
            self._settle(db)
        except (sqlite3.DatabaseError, UnicodeDecodeError) as e:
            wal = self.path.with_name(f"{self.path.name}-wal")
            open_ = frozen or (wal.exists() and wal.stat().st_size)
            if self.readonly and not open_ and not os.access(self.path.parent, os.W_OK):
                return self.connection(frozen=True)
            raise _unwritable(self.path, e) or DataError(
                f"this is no usable ledger ({e})",
                where=str(self.path),
                fix=ANOTHER,
            ) from None
        self._db, self._pid = db, os.getpid()
        return db

    def _settle(self, db: sqlite3.Connection) -> None:
        """Journal mode (the switch to WAL ignores the busy time-out: tried again) and schema."""
        mode = "DELETE" if paths.on_network(self.path.parent) else "WAL"
        for attempt in range(200):
            try:
                if (
                    db.execute("PRAGMA journal_mode").fetchone()[0].upper() != mode
                    and not self.readonly
                ):
                    db.execute(f"PRAGMA journal_mode={mode}")
                db.execute(
                    "PRAGMA synchronous=NORMAL" if mode == "WAL" else "PRAGMA synchronous=FULL"
                )
                db.execute("PRAGMA wal_autocheckpoint=8000")
                self._migrate(db)
                return
            except sqlite3.OperationalError as e:
                if ("locked" not in str(e) and "busy" not in str(e)) or attempt == 199:
                    raise
                time.sleep(random.uniform(0.005, 0.05))

    def _migrate(self, db: sqlite3.Connection) -> None:
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if version > len(MIGRATIONS):
            raise DataError(
                f"the ledger has version {version}, this kit knows {len(MIGRATIONS)}",
                where=str(self.path),
                fix="install a newer kit, or use another ledger",
            )
        if version < len(MIGRATIONS) and not self.readonly:
            with _transaction(db):
                version = db.execute("PRAGMA user_version").fetchone()[0]
                for number in range(version, len(MIGRATIONS)):
                    for statement in filter(str.strip, MIGRATIONS[number].split(";")):
                        db.execute(statement)
                    db.execute(f"PRAGMA user_version={number + 1}")
        db.execute("SELECT row FROM verdicts, calls LIMIT 0")  # an empty file, another's database

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The connection, locked; DataError when the file is damaged, or the disk is full."""
        with self.lock:
            try:
                yield self.connection()
            except sqlite3.DatabaseError as e:
                raise (_unwritable(self.path, e) or e) from None

    def _rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """What a question to the database gives."""
        with self.reading() as db:
            return db.execute(sql, values).fetchall()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """The connection, locked, in a write transaction; DataError as in `reading`."""
        with self.reading() as db:
            if not self.path.exists():  # what is written now would be in no file
                raise DataError(
                    "the ledger was removed while it was in use",
                    where=str(self.path),
                    fix="run the same command again; what was in the file is asked anew",
                )
            with _transaction(db):
                yield db

    @contextlib.contextmanager
    def _swept(self) -> Iterator[sqlite3.Connection]:
        """A write transaction, the damaged rows left out."""
        with self.transaction() as db:
            db.create_function("sound", 1, lambda raw: verdict_of(TEXT(raw)) is not None)
            db.execute("DELETE FROM verdicts WHERE NOT sound(CAST(row AS BLOB))")
            yield db

    def close(self) -> None:
        """Close the file; a later use opens it again."""
        with self.lock:
            if self._db is not None and self._pid == os.getpid():
                self._db.close()
            self._db = None

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __bool__(self) -> bool:
        return True  # an empty ledger is a ledger

    def __len__(self) -> int:
        return self._rows("SELECT count(*) FROM verdicts")[0][0]

    # -- verdicts
    def get(self, key: str) -> Verdict | None:
        """The verdict stored under this key, or None."""
        return self.get_many([key]).get(key)

    def get_many(self, keys: Sequence[str]) -> dict[str, Verdict]:
        """Stored verdicts by key; those that are not there are left out."""
        with self.reading() as db:
            return self._found(db, keys)

    def claim(
        self, keys: Sequence[str], *, again: Collection[str] = ()
    ) -> tuple[set[str], dict[str, Verdict]]:
        """Claim these keys: (those that are ours to ask now, verdicts that are there meanwhile).

        What is in neither is being asked by another process. again : failure kinds that do not
        count as an answer.
        """
        with self.lock:
            if self._claims.watched(keys):  # who waits looks often: without the write lock then
                free, there = self._free(self.connection(), keys, again)
                if not free:
                    return free, there
        with self.transaction() as db:
            free, there = self._free(db, keys, again)
            self._claims.take(db, free)
        return free, there

    def _free(
        self, db: sqlite3.Connection, keys: Sequence[str], again: Collection[str]
    ) -> tuple[set[str], dict[str, Verdict]]:
        others = self._claims.others(db, keys)
        there = {k: v for k, v in self._found(db, keys).items() if v.failure not in again}
        return set(keys) - others - there.keys(), there

    def _found(self, db: sqlite3.Connection, keys: Collection[str]) -> dict[str, Verdict]:
        """Stored verdicts by key; a damaged row is forgotten, and its key can be asked again."""
        sql = "SELECT key, row FROM verdicts WHERE key IN (SELECT value FROM json_each(?))"
        rows = {key: verdict_of(row) for key, row in db.execute(sql, (json.dumps(list(keys)),))}
        gone = [key for key, v in rows.items() if v is None]
        if gone and not self.readonly:
            self.correct((), gone)
        for key in gone:
            log.warning(LOST, self.path, key)
        return {key: v for key, v in rows.items() if v is not None}

    def renew(self, keys: Collection[str]) -> None:
        """Say that these claims of this process still hold."""
        with self.transaction() as db:
            claims.renew(db, keys)

    def bury(self) -> None:
        """Give back the claims of processes that are dead."""
        with self.reading() as db:
            dead = claims.dead(db)
        if dead:
            with self.transaction() as db:
                db.executemany("DELETE FROM claims WHERE owner=?", [(owner,) for owner in dead])

    def put(
        self, verdicts: Iterable[Verdict] = (), *, call: Call | None = None, replace: bool = False
    ) -> None:
        """Store verdicts and the call that gave them, on disk when this returns.

        A key that is there stays as it is (the first answer counts) unless `replace`.
        """
        self.put_many([(verdicts, call)], replace=replace)

    def put_many(
        self,
        batch: Sequence[tuple[Iterable[Verdict], Call | None]],
        *,
        replace: bool = False,
        done: Sequence[str] = (),
    ) -> None:
        """`put` for several calls, in one transaction. `done`: further claims to give back.

        A verdict and the end of its claim are one commit: no kill comes between them.
        """
        how, now = "REPLACE" if replace else "IGNORE", time.time()
        rows = [
            (v.key, verdict_row(v), call and call.id, now)
            for verdicts, call in batch
            for v in verdicts
            if v.key
        ]
        calls = [call_row(call, now, self.payer) for _, call in batch if call is not None]
        with self.transaction() as db:
            db.executemany(INSERT_CALL, calls)
            db.executemany(
                f"INSERT OR {how} INTO verdicts(key,row,call,created) VALUES(?,?,?,?)", rows
            )
            claims.give_back(db, [*done, *(row[0] for row in rows)])

    def correct(self, verdicts: Iterable[Verdict], gone: Collection[str] = ()) -> None:
        """Put these in the place of what stands under their keys; forget the keys in `gone`."""
        with self.transaction() as db:
            rows = [(verdict_row(v), v.key) for v in verdicts]
            db.executemany("UPDATE verdicts SET row=? WHERE key=?", rows)
            db.executemany("DELETE FROM verdicts WHERE key=?", [(k,) for k in gone])

    def verdicts(self) -> Iterator[Verdict]:
        """All stored verdicts, oldest first."""
        return (v for v, *_ in self.sound())

    def sound(self) -> Iterator[tuple[Verdict, str, str | None, float]]:
        """(verdict, its row, call, created) of all rows but the damaged, oldest first."""
        for key, row, call, created in self.pages("verdicts", "key, row, call, created"):
            v = verdict_of(row)
            if v is None:
                log.warning(LOST, self.path, key)
            else:
                yield v, row, call, created

    def pages(self, table: str, columns: str) -> Iterator[tuple[Any, ...]]:
        """All rows of a table, oldest first, a page at a time: memory stays flat."""
        last = 0
        sql = f"SELECT id, {columns} FROM {table} WHERE id > ? ORDER BY id LIMIT {PAGE}"
        while True:
            rows = self._rows(sql, last)
            if not rows:
                return
            yield from (r[1:] for r in rows)
            last = rows[-1][0]

    # -- calls and costs
    def calls(self) -> Iterator[Call]:
        """All paid calls with request and raw reply, oldest first."""
        return map(call_of, self.pages("calls", CALL_COLUMNS))

    def call(self, call_id: str) -> Call | None:
        """One call by its id."""
        rows = self._rows(f"SELECT {CALL_COLUMNS} FROM calls WHERE call=?", call_id)
        return call_of(rows[0]) if rows else None

    def newest(self) -> int:
        """The number of the newest call; 0 where there is none."""
        return self._rows("SELECT coalesce(max(id), 0) FROM calls")[0][0]

    def paid(self, payer: str, since: int) -> tuple[int, float]:
        """Calls and US dollars of a payer behind the call of the number `since`."""
        sql = """SELECT count(*), total(cost) FROM calls
                 WHERE id > ? AND CASE WHEN json_valid(meta) THEN meta->>'payer' END = ?"""
        return self._rows(sql, since, payer)[0]

    def costs(self) -> list[dict[str, Any]]:
        """The cost book, per judge, model and endpoint.

        Calls, tokens, US dollars, verdicts, and dollars per verdict.
        """
        sql = """SELECT judge, model, endpoint, count(*), sum(tokens_in), sum(tokens_out),
                   sum(tokens_cached), sum(cost), avg(seconds), coalesce(sum(n), 0),
                   sum(cost) / sum(n)
                 FROM calls LEFT JOIN (SELECT call AS of, count(*) AS n FROM verdicts
                                       WHERE call IS NOT NULL GROUP BY call) ON of=calls.call
                 GROUP BY judge, model, endpoint ORDER BY sum(cost) DESC"""
        names = (
            "judge",
            "model",
            "endpoint",
            "calls",
            "tokens_in",
            "tokens_out",
            "tokens_cached",
            "cost",
            "seconds_mean",
            "verdicts",
            "cost_per_verdict",
        )
        return [dict(zip(names, r, strict=True)) for r in self._rows(sql)]

    def explain(self, key: str) -> dict[str, Any]:
        """All that is known of one verdict: what was asked, the raw reply, tokens, cost, time.

        `key` may be the beginning of a key. MissingError when nothing begins so, DataError when
        several do.
        """
        sql = "SELECT key, row, call, created FROM verdicts WHERE key>=? AND key<? LIMIT 3"
        found = self._rows(sql, key, key + "\U0010ffff")
        exact = [r for r in found if r[0] == key] or found
        if not exact:
            raise MissingError(
                f"no verdict has the key {key!r}",
                where=str(self.path),
                fix="keys stand in the grades file, field `key`",
            )
        if len(exact) > 1:
            raise DataError(
                f"several keys begin with {key!r}", where=str(self.path), fix="give more digits"
            )
        found_key, row, call_id, created = exact[0]
        v = verdict_of(row)
        if v is None:
            raise DataError(
                f"the row of {found_key} is damaged",
                where=str(self.path),
                fix="judge with this ledger again: that verdict alone is asked anew",
            )
        call = self.call(call_id or str(v.meta.get("call")))  # of an escalated one: its judge's
        rows = self._rows("SELECT row FROM verdicts WHERE call=? AND key<>?", call_id, found_key)
        others = [o for (other,) in rows if (o := verdict_of(other)) is not None]
        return {
            "key": found_key,
            "stored": created,
            "verdict": {name: getattr(v, name) for name in FIELDS},
            "call": vars(call) | {"request": _json(call.request), "meta": dict(call.meta)}
            if call
            else None,
            "same_call": [
                {"criterion_id": o.criterion_id, "status": o.status, "key": o.key} for o in others
            ],
            "status": v.status,
        }

    # -- small facts, kept openly (what an endpoint can do)
    def note(self, name: str, value: Any = None) -> Any:
        """Read a small JSON note, or write it when a value is given."""
        if value is None:
            rows = self._rows("SELECT value FROM notes WHERE name=?", name)
            return _json(rows[0][0]) if rows else None
        with self.reading() as db:
            db.execute(
                "INSERT OR REPLACE INTO notes VALUES(?,?,?)", (name, json.dumps(value), time.time())
            )
        return value

    # -- for others to replay
    def export(self, path: str | Path, *, requests: bool = False) -> int:
        """Write verdicts and raw replies as JSONL (requests only on wish; packed where the name
        ends in .gz); how many lines.
        """
        paths.apart({"the ledger": self.path, "the export": path}, {})
        return exchange.write(self, Path(path), requests=requests)

    def load(self, path: str | Path) -> tuple[int, int]:
        """Read what `export` wrote, as `merge` does. (lines, conflicts).

        DataError names the bad line, and nothing of the file is kept then.
        """
        with self._swept() as db:
            return exchange.read(db, Path(path))

    def merge(self, other: str | Path) -> tuple[int, int, int]:
        """Add another ledger's verdicts and calls: (new verdicts, new calls, conflicts).

        Of two verdicts under one key a decided one stays before an unknown one, then the newer;
        a conflict is two that are decided differently.
        """
        with Ledger(other, readonly=True) as book, self._swept() as db:
            return exchange.merge(db, book)

    def prune(
        self, *, days: float | None = None, judge: str | None = None, kinds: Collection[str] = ()
    ) -> int:
        """Forget verdicts older than `days`, of one judge, or unknown for one of these causes.

        What is given must all hold. The calls stay in the cost book, without their texts where no
        verdict is left. How many verdicts went; the file shrinks.
        """
        with self._swept() as db:
            gone = exchange.prune(db, days=days, judge=judge, kinds=kinds)
        with self.lock:
            self.connection().execute("VACUUM")
        return gone


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
