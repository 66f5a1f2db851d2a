"""What goes over the wire and comes back, as text and as JSON: request bodies, replies, messages.

A server's words are foreign: they are made short, storable and free of keys before they are kept.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import json
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from .keys import shown

LARGE = 65_536  # characters; longer replies are decoded and read off the loop
PARTS = 400_000  # objects, lists and commas in one reply


def unusable(data: Any, path: str) -> tuple[str, int]:
    """(why a decoded reply is no answer, what the fault counts); ("", 0) when it is one."""
    if not isinstance(data, dict):
        return "HTTP 200 with a body that is no object", 2
    if data.get("error") or data.get("errors"):
        return f"HTTP 200 with an error: {said(json.dumps(data))}", 1
    if not path.endswith("/chat/completions"):
        return ("", 0) if data.get("answers") else ("HTTP 200 without answers", 2)
    choices = data.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(first, Mapping) or not isinstance(first.get("message"), Mapping):
        return "HTTP 200 without a choice that has a message", 2
    failed = first.get("error") or first.get("finish_reason") == "error"
    if failed or first["message"].get("error") or _failed(data):
        return f"HTTP 200 with an error: {said(json.dumps(first))}", 1
    return "", 0


def _failed(data: Mapping[str, Any]) -> bool:
    """True for a reply that calls itself an error beside its choices."""
    status = data.get("status")
    failed = isinstance(status, str) and status.casefold() in ("failed", "error", "cancelled")
    return failed or data.get("success") is False or data.get("object") == "error"


async def large(size: int, work: Any, *args: Any) -> Any:
    """`work(*args)`; off the loop, one after the other, when there is so much to do."""
    if size < LARGE:
        return work(*args)
    run = contextvars.copy_context().run
    return await asyncio.get_running_loop().run_in_executor(_reader(os.getpid()), run, work, *args)


@functools.lru_cache(maxsize=1)
def _reader(pid: int) -> ThreadPoolExecutor:
    """The thread that reads large replies (a forked child has its own)."""
    return ThreadPoolExecutor(1, "kit-judge-read")


def decoded(raw: str) -> Any:
    """A reply's JSON; ValueError for what is none, or has more parts than any answer has."""
    if len(raw) > LARGE and sum(map(raw.count, "{[,")) > PARTS:
        raise ValueError(f"it has more than {PARTS:,} parts")
    return json.loads(raw, object_pairs_hook=_once)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of a reply; ValueError where it says two things under one name."""
    out = dict(pairs)
    if len(out) < len(pairs):
        for k, v in pairs:
            if out[k] != v:
                raise ValueError(f"it names {k!r} twice")
    return out


def plain(text: Any) -> str:
    """A server's word as text that can be stored: short, without halves of surrogate pairs."""
    return text[:200].encode("utf-8", "replace").decode() if isinstance(text, str) else ""


class Raw(str):
    """JSON text that is ready: `encode` takes it as it is (a schema is the same for many calls)."""


def encode(body: Mapping[str, Any]) -> str:
    """A request body as JSON text.

    >>> encode({"a": Raw("[1,2]"), "b": None})
    '{"a":[1,2],"b":null}'
    """
    parts = (f'"{k}":{v if isinstance(v, Raw) else json.dumps(v)}' for k, v in body.items())
    return "{" + ",".join(parts) + "}"


def said(text: str) -> str:
    """The server's own message, short, on one line; keys are cut out."""
    try:
        error = json.loads(text).get("error")
        text = error.get("message", text) if isinstance(error, dict) else str(error or text)
    except (ValueError, AttributeError, RecursionError):
        pass
    return plain(shown(str(text)))
