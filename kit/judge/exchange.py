"""Verdicts and calls as rows, and ledgers among each other.

Rows are JSON, never pickle, long texts packed; ledgers are written as JSONL, read back field by
field, merged, pruned.
"""

from __future__ import annotations

import gzip
import json
import math
import sqlite3
import time
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from ..data.schemas import readable, stamped
from ..errors import DataError, MissingError
from ..records import FAILURES, Verdict
from ..settings.read import once
from ..system.paths import whole
from .records import PASSING, Call

if TYPE_CHECKING:
    from .ledger import Ledger

MOST = 1 << 53  # beyond this a number is no count, no amount and no second
FORMS: tuple[
    tuple[str, str, Callable[[Any], bool]], ...
] = (  # fields, what is wrong, what is right
    (
        "task_id response_id criterion_id judge model endpoint",
        "not text",
        lambda x: isinstance(x, str),
    ),
    ("id key", "not text, or empty", lambda x: isinstance(x, str) and x != ""),
    ("reason failure request reply status call", "not text", lambda x: isinstance(x, str | None)),
    ("tokens_in tokens_out tokens_cached", "not a count", lambda x: _number(x, MOST, int)),
    ("cost seconds created", "not a number from 0 on", lambda x: _number(x, MOST)),
    ("p value", "not in [0, 1]", lambda x: x is None or _number(x, 1.0)),
    ("meta", "no object", lambda x: isinstance(x, dict)),
)
FIELDS = (
    "task_id",
    "response_id",
    "criterion_id",
    "status",
    "p",
    "value",
    "reason",
    "failure",
    "judge",
    "key",
    "tokens_in",
    "tokens_out",
    "cost",
    "meta",
)
STATUS, VALUE = FIELDS.index("status"), FIELDS.index("value")
RANK = "{0}.row->>{1}<>'unknown', {0}.created, {0}.row, coalesce({0}.call,'')"
# two verdicts of a key: a decided one stays, then the newer; the order of merges is nothing to it
STORE = f"""INSERT INTO verdicts(key,row,call,created) VALUES(?,?,?,?) ON CONFLICT(key) DO UPDATE
    SET row=excluded.row, call=excluded.call, created=excluded.created
    WHERE ({RANK.format("excluded", STATUS)}) > ({RANK.format("verdicts", STATUS)})"""
DIFFERS = f"""SELECT 1 FROM verdicts WHERE key=?1 AND row->>{STATUS}<>'unknown'
    AND ?2->>{STATUS}<>'unknown'
    AND (row->>{STATUS}<>?2->>{STATUS} OR row->>{VALUE}<>?2->>{VALUE})"""


def write(book: Ledger, path: Path, *, requests: bool = False) -> int:
    """Calls and verdicts of a ledger as JSONL (packed where the name ends in .gz); how many lines.

    Memory stays flat, and the same ledger gives the same bytes.
    """
    lines = 0
    with whole(path) as part, open(part, "wb") as raw, _packed(raw, path) as f:
        for row in _rows(book, requests):
            lines += 1
            line = json.dumps(row, ensure_ascii=False) + "\n"
            f.write(line.encode("utf-8", "surrogatepass"))
    return lines


def _packed(raw: BinaryIO, path: Path) -> Any:
    return gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if path.suffix == ".gz" else raw


def _rows(book: Ledger, requests: bool) -> Any:
    for c in book.calls():
        row = {"kind": "call", **vars(c), "meta": dict(c.meta)}
        yield stamped("record", row if requests else row | {"request": "{}"})
    for v, _, call, created in book.sound():
        fields = {name: getattr(v, name) for name in FIELDS}
        yield stamped("record", {"kind": "verdict", **fields, "call": call, "created": created})


def read(db: sqlite3.Connection, path: Path) -> tuple[int, int]:
    """The lines of an exported ledger into the database; (lines, conflicts).

    Verdicts without a date (of before they were exported) are as old as the file.
    """
    if not path.exists():
        raise MissingError("there is no such file", where=str(path))
    n, lines, conflicts, then = 0, 0, 0, path.stat().st_mtime
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rb") as f:  # lines end at \n only: a reason may hold U+2028
            for n, raw in enumerate(f, 1):
                if raw.strip():
                    conflicts += _line(db, raw, f"{path}, line {n}", then)
                    lines += 1
    except (gzip.BadGzipFile, EOFError, zlib.error) as e:
        raise DataError(
            f"not a whole .gz file ({e})",
            where=f"{path}, line {n}",
            fix="copy it again; nothing of this file was read in",
        ) from None
    return lines, conflicts


def _line(db: sqlite3.Connection, raw: bytes, where: str, then: float) -> int:
    try:
        text = raw.decode("utf-8", "surrogatepass").removeprefix("\ufeff")
        row = json.loads(text, object_pairs_hook=once)
        if not isinstance(row, dict):
            raise ValueError("no object")
        kind = row.pop("kind", None)
        if kind not in ("verdict", "call"):
            raise ValueError(f"kind is {kind!r}")
        row = readable("record", row, where=where)
        _sound(row)
        return _insert(db, kind, row, then)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, DataError) as e:
        why = e.what if isinstance(e, DataError) else e
        if isinstance(e, KeyError):
            why = f"the field {e} is missing"
        raise DataError(
            f"not a line of an exported ledger ({why})"[:400],
            where=where,
            fix="export the ledger again; nothing of this file was read in",
        ) from None


def _insert(db: sqlite3.Connection, kind: str, row: dict[str, Any], then: float) -> int:
    """Store a line; how many conflicts (0 or 1). then : the date of its file."""
    if kind == "call":
        db.execute(INSERT_CALL, call_row(Call(**row | {"id": row["id"]}), time.time()))
        return 0
    call = row.pop("call", None)
    _whole(row)
    v = Verdict(**{k: row[k] for k in FIELDS})
    return _store(db, [(v.key, verdict_row(v), call, row.get("created") or then)])


def _sound(row: Mapping[str, Any]) -> None:
    """ValueError for a field that no ledger could have written."""
    for names, wrong, fits in FORMS:
        for name in names.split():
            if name in row and not fits(row[name]):
                raise ValueError(f"{name} is {row[name]!r}, {wrong}")


def _whole(row: Mapping[str, Any]) -> None:
    """ValueError for a verdict that says two things, or holds half a character."""
    json.dumps(row, ensure_ascii=False).encode()
    status, value = row["status"], row["value"]
    fits = {"met": (None, 1), "unmet": (None, 0), "unknown": (None,)}.get(status, (value,))
    if value not in fits:
        raise ValueError(f"status is {status!r} with the value {value!r}")
    if row["failure"] in PASSING or (status != "unknown" and row["failure"] is not None):
        raise ValueError(f"status is {status!r} with the failure {row['failure']!r}")


def _number(x: Any, most: float, kinds: Any = (int, float)) -> bool:
    return isinstance(x, kinds) and not isinstance(x, bool) and 0 <= x <= most  # False for NaN


def _store(db: sqlite3.Connection, rows: Iterable[tuple[Any, ...]]) -> int:
    """Add verdicts; how many were decided otherwise before (the newer stays)."""
    conflicts = 0
    for row in rows:
        conflicts += db.execute(DIFFERS, row[:2]).fetchone() is not None
        db.execute(STORE, row)
    return conflicts


def merge(db: sqlite3.Connection, other: Ledger) -> tuple[int, int, int]:
    """Verdicts and calls of another ledger; how many were new, and how many conflicts."""
    before = [_count(db, t) for t in ("verdicts", "calls")]
    db.executemany(INSERT_CALL, other.pages("calls", CALL_COLUMNS))
    rows = ((v.key, row, call, created) for v, row, call, created in other.sound())
    conflicts = _store(db, rows)
    after = [_count(db, t) for t in ("verdicts", "calls")]
    return after[0] - before[0], after[1] - before[1], conflicts


def _count(db: sqlite3.Connection, table: str) -> int:
    return db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]


def prune(
    db: sqlite3.Connection, *, days: float | None, judge: str | None, kinds: Collection[str]
) -> int:
    """Delete verdicts by age, judge and cause; empty the texts of calls that then have none."""
    wrong = sorted(set(kinds) - set(FAILURES))
    DataError.first(
        (
            wrong,
            f"there is no failure kind {min(wrong, default='')!r}",
            None,
            f"use any of {FAILURES}",
        ),
        (
            days is not None and not 0 <= days < math.inf,
            f"days is {days!r}",
            None,
            "give a number of days from 0 on",
        ),
    )
    marks = ",".join("?" * len(kinds))
    tests = {
        "created < ?": [] if days is None else [time.time() - days * 86400],
        f"row ->> {FIELDS.index('judge')} = ?": [] if judge is None else [judge],
        f"row ->> {FIELDS.index('failure')} IN ({marks})": list(kinds),
    }
    used = {test: values for test, values in tests.items() if values}
    if not used:
        raise DataError("nothing says what to forget", fix="give days, a judge or failure kinds")
    values = [x for row in used.values() for x in row]
    gone = db.execute(f"DELETE FROM verdicts WHERE {' AND '.join(used)}", values).rowcount
    db.execute(
        "UPDATE calls SET request=x'', reply=x'' WHERE NOT EXISTS"
        " (SELECT 1 FROM verdicts v WHERE v.call=calls.call)"
    )
    return gone


SHORT = 1024  # bytes; packing a shorter text costs more than it saves
CALL_COLUMNS = (
    "call,judge,model,endpoint,status,tokens_in,tokens_out,tokens_cached,cost,seconds,created,"
    "request,reply,meta"
)
INSERT_CALL = f"INSERT OR IGNORE INTO calls({CALL_COLUMNS}) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
_decode = json.JSONDecoder().raw_decode


def _pack(text: str) -> bytes:
    raw = text.encode("utf-8", "surrogatepass")
    # 0x78: how zlib's output begins
    return zlib.compress(raw, 1) if len(raw) > SHORT or raw[:1] == b"\x78" else raw


def _unpack(blob: bytes | None) -> str:
    if not blob:
        return ""
    raw = zlib.decompress(blob) if blob[:1] == b"\x78" else blob
    return raw.decode("utf-8", "surrogatepass")


def verdict_row(v: Verdict) -> str:
    return json.dumps(
        (
            v.task_id,
            v.response_id,
            v.criterion_id,
            v.status,
            v.p,
            v.value,
            v.reason,
            v.failure,
            v.judge,
            v.key,
            v.tokens_in,
            v.tokens_out,
            v.cost,
            dict(v.meta),
        ),
        ensure_ascii=True,
    )


def verdict_of(row: str) -> Verdict | None:
    """A stored row as its verdict; None for one that no run has written: a disk has damaged it."""
    try:
        fields = dict(zip(FIELDS, _decode(row)[0], strict=True))
        v = Verdict(**fields)
    except (ValueError, TypeError, RecursionError, DataError):
        return None
    return v if fields["value"] in (None, v.value) else None


def call_row(c: Call, now: float, payer: str = "") -> tuple[Any, ...]:
    signed = {"payer": payer} if payer else {}
    return (
        c.id,
        c.judge,
        c.model,
        c.endpoint,
        c.status,
        c.tokens_in,
        c.tokens_out,
        c.tokens_cached,
        c.cost,
        c.seconds,
        c.created or now,
        _pack(c.request),
        _pack(c.reply),
        json.dumps({**c.meta, **signed}),
    )


def call_of(row: Sequence[Any]) -> Call:
    data = dict(zip(CALL_COLUMNS.split(","), row, strict=True))
    data["id"] = data.pop("call")
    try:
        data["request"], data["reply"] = map(_unpack, (data["request"], data["reply"]))
        data["meta"] = dict(json.loads(data["meta"] or "{}"))
    except (zlib.error, ValueError, TypeError):  # a disk has damaged it: its cost stays
        data |= {"request": "{}", "reply": "", "meta": {"damaged": True}}
    return Call(**data)
