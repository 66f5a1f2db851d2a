"""How a verdict and a call stand in the ledger: rows of JSON, never pickle; long texts packed."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from typing import Any

from ..records import Verdict
from .records import Call, rebuilt

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
SHORT = 1024  # bytes; packing a shorter text costs more than it saves
CALL_COLUMNS = (
    "call,judge,model,endpoint,status,tokens_in,tokens_out,tokens_cached,cost,seconds,created,"
    "request,reply,meta"
)
INSERT_CALL = f"INSERT OR IGNORE INTO calls({CALL_COLUMNS}) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
_decode = json.JSONDecoder().raw_decode


def _pack(text: str) -> bytes:
    raw = text.encode("utf-8", "surrogatepass")
    long = len(raw) > SHORT or raw[:1] == b"\x78"  # 0x78: how zlib's output begins
    return zlib.compress(raw, 1) if long else raw


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


def verdict_of(row: str) -> Verdict:
    t, r, c, status, p, value, reason, failure, judge, key, tin, tout, cost, meta = _decode(row)[0]
    return rebuilt(
        {
            "task_id": t,
            "response_id": r,
            "criterion_id": c,
            "status": status,
            "p": p,
            "value": value,
            "reason": reason,
            "failure": failure,
            "judge": judge,
            "key": key,
            "tokens_in": tin,
            "tokens_out": tout,
            "cost": cost,
            "cached": False,
            "meta": meta,
        }
    )


def call_row(c: Call, now: float) -> tuple[Any, ...]:
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
        json.dumps(dict(c.meta)),
    )


def call_of(row: Sequence[Any]) -> Call:
    names = CALL_COLUMNS.split(",")
    data = dict(zip(names, row, strict=True))
    data["id"] = data.pop("call")
    data["request"], data["reply"] = _unpack(data["request"]), _unpack(data["reply"])
    data["meta"] = json.loads(data["meta"] or "{}")
    return Call(**data)
