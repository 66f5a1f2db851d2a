"""What calls cost: prices and shutdown dates of hosted models (models.json), and token counts."""

from __future__ import annotations

import datetime
import functools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from .question import Reply, Request

REPLY_SHARE = 3  # a reply takes about a third of the room that it has


@functools.cache
def catalog() -> dict[str, Any]:
    """The data file: `as_of`, `default` (a model's name) and `models` by name."""
    data = Path(__file__).with_name("models.json").read_bytes()
    return msgspec.json.decode(data, type=dict[str, Any])


def entry(model: str) -> dict[str, Any]:
    """The data on a model, {} when it is not in the file.

    price : US dollars per million tokens, [input, output].

    >>> entry("gpt-5-mini-2025-08-07")
    {'price': [0.25, 2.0], 'reasoning': True, 'shutdown': '2026-12-11'}
    """
    # Providers name snapshots by their date; a snapshot costs what its family costs.
    family = re.sub(r"-\d{4}-\d\d-\d\d$", "", model)
    models: dict[str, dict[str, Any]] = catalog()["models"]
    return models.get(model) or models.get(family) or {}


def reasons_first(model: str) -> bool:
    """True for models that think first: only the default temperature, more room.

    >>> reasons_first("gpt-5-mini"), reasons_first("gpt-4o"), reasons_first("llama-3")
    (True, False, False)
    """
    # A model that is newer than the data file is taken for one of its family.
    row = entry(model)
    return bool(
        row.get("reasoning") if row else re.match(r"(gpt-[5-9]|o\d)", model)
    )


def shutdown_warning(model: str, today: datetime.date | None = None) -> str | None:
    """A sentence when the provider turns a model off within 120 days, else None.

    >>> shutdown_warning("gpt-5-mini", datetime.date(2026, 11, 21))
    'gpt-5-mini is shut down on 2026-12-11; use gpt-6-luna'
    """
    day = entry(model).get("shutdown")
    today = today or datetime.date.today()
    if day is None or (datetime.date.fromisoformat(day) - today).days > 120:
        return None
    verb = "is" if day > today.isoformat() else "was"
    return f"{model} {verb} shut down on {day}; use {catalog()['default']}"


def estimate_tokens(text: str) -> int:
    """About how many tokens a text has.

    >>> estimate_tokens("four tokens or so")
    5
    """
    return math.ceil(len(text) / 4)


def estimate_chat_tokens(messages: Iterable[Mapping[str, str]]) -> int:
    """About how many tokens a chat has, with four around each message."""
    return sum(estimate_tokens(m["content"]) + 4 for m in messages)


def dollars(
    price: Sequence[float] | None, tokens_in: int, tokens_out: int
) -> float | None:
    """US dollars of one call, None without a price. Cached input counts in full.

    price : dollars per million tokens, [input, output].

    >>> dollars((1.0, 2.0), 1_000_000, 500_000)
    2.0
    """
    if not price:
        return None
    return (tokens_in * price[0] + tokens_out * price[1]) / 1e6


def most_dollars(request: Request) -> float | None:
    """The most that a call can cost, None without a price."""
    # A token is at least one byte; a message has some more around it.
    sizes = [len(m["content"].encode(errors="replace")) for m in request.messages]
    tokens_in = sum(sizes) + 16 * len(sizes)
    return dollars(request.server.price, tokens_in, request.max_tokens)


def estimate_reply(request: Request) -> Reply:
    """An unknown reply with the tokens and the cost that are to be expected."""
    tokens_in = estimate_chat_tokens(request.messages)
    tokens_out = max(1, request.max_tokens // REPLY_SHARE)
    return Reply(
        failure="budget",
        reason="an estimate sends nothing",
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        cost=dollars(request.server.price, tokens_in, tokens_out),
    )
