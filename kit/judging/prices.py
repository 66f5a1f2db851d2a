"""What calls cost: prices and shutdown dates of hosted models (models.json), token counts,
what a run took (`Usage`), and caps on it (`Budget`)."""

from __future__ import annotations

import datetime
import functools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from ..errors import BudgetError, DataError
from ..records import count_of
from .prompt import is_number


@functools.cache
def catalog() -> dict[str, Any]:
    """The data file: `as_of`, `default` (a model's name) and `models` by name."""
    return msgspec.json.decode(
        Path(__file__).with_name("models.json").read_bytes(), type=dict[str, Any]
    )


def model_entry(model: str) -> dict[str, Any]:
    """The data on a model, {} when it is not in the file.

    price : US dollars per million tokens, [input, output].

    >>> model_entry("gpt-5-mini-2025-08-07")
    {'price': [0.25, 2.0], 'reasoning': True, 'shutdown': '2026-12-11'}
    """
    # Providers name snapshots by their date; a snapshot costs what its family costs.
    models: dict[str, dict[str, Any]] = catalog()["models"]
    return models.get(model) or models.get(
        re.sub(r"-\d{4}(-\d\d){2}$", "", model), {}
    )


def reasons_first(model: str) -> bool:
    """True for models that think first: only the default temperature, more room.

    >>> reasons_first("gpt-5-mini"), reasons_first("gpt-4o"), reasons_first("llama-3")
    (True, False, False)
    """
    # A model that is newer than the data file is taken for one of its family.
    row = model_entry(model)
    return bool(
        row.get("reasoning") if row else re.match(r"(gpt-[5-9]|o\d)", model)
    )


def shutdown_warning(model: str, today: datetime.date | None = None) -> str | None:
    """A sentence when the provider turns a model off within 120 days, else None.

    >>> shutdown_warning("gpt-5-mini", datetime.date(2026, 11, 21))
    'gpt-5-mini is shut down on 2026-12-11; use gpt-6-luna'
    """
    day = model_entry(model).get("shutdown")
    today = today or datetime.date.today()
    if day is None or (datetime.date.fromisoformat(day) - today).days > 120:
        return None
    return f"{model} {'is' if day > today.isoformat() else 'was'} shut down on {day}; use {catalog()['default']}"


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


class Usage(msgspec.Struct, kw_only=True, frozen=True):
    """What a run took, or (from `estimate`) will take about.

    calls, tokens_in, tokens_out; cost : US dollars, None where a price is not known;
    seconds : 0 in an estimate; cached : verdicts that cost nothing.

    >>> print(Usage(calls=1, cost=0.5) + Usage(calls=2, cached=3))
    3 calls, 0 + 0 tokens, $0.5000, 3 verdicts from the ledger
    """

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = 0.0
    seconds: float = 0.0
    cached: int = 0

    def __add__(self, other: Usage) -> Usage:
        cost = None
        # A sum with an unknown price is unknown, not cheaper.
        if self.cost is not None and other.cost is not None:
            cost = self.cost + other.cost
        return Usage(
            calls=self.calls + other.calls,
            tokens_in=self.tokens_in + other.tokens_in,
            tokens_out=self.tokens_out + other.tokens_out,
            cost=cost,
            seconds=self.seconds + other.seconds,
            cached=self.cached + other.cached,
        )

    def __str__(self) -> str:
        calls, cost = count_of(self.calls, "call"), format_cost(self.cost, 4)
        words = f"{calls}, {self.tokens_in} + {self.tokens_out} tokens, {cost}"
        if self.seconds:
            words += f", {self.seconds:.1f} s"
        return f"{words}, {count_of(self.cached, 'verdict')} from the ledger"


def format_cost(cost: float | None, digits: int = 2) -> str:
    """US dollars as text; an unknown price is never $0.

    >>> format_cost(0.5), format_cost(None)
    ('$0.50', 'price unknown')
    """
    return "price unknown" if cost is None else f"${cost:.{digits}f}"


@dataclass(kw_only=True)
class Budget:
    """Caps that are checked before each call; None means no cap. Runs may share one.

    calls : questions that are sent (a repetition after HTTP 429 or 500 does not count).
    usd : US dollars. A call first reserves the most that it may cost, so calls in flight
        cannot break the cap.
    `calls_made` and `usd_spent` count what was used; `unpriced_calls` had no known price.

    >>> Budget(calls=1).calls_made
    0
    """

    calls: int | None = None
    usd: float | None = None
    calls_made: int = field(default=0, init=False)
    usd_spent: float = field(default=0.0, init=False)
    unpriced_calls: int = field(default=0, init=False)
    # A list, because a sum of floats does not come back to 0.
    reserved: list[float] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        for name, cap in (("calls", self.calls), ("usd", self.usd)):
            if cap is not None and not (is_number(cap) and cap >= 0):
                raise DataError(
                    f"{name} is {cap!r}",
                    where=f"Budget({name}=...)",
                    fix="give a number >= 0",
                )

    def reserve(self, most: float | None) -> bool:
        """Count a call of at most so many dollars; False while calls in flight may leave room for it.

        BudgetError where it would break a cap.
        """
        if self.usd is not None and most is None:
            raise BudgetError(
                "a cap in dollars needs the price of the model",
                where="Budget(usd=...)",
                fix="give the judge price=[input, output], dollars a million tokens (--set price=[0.25,2])",
            )
        usd = self.usd_spent + sum(self.reserved) + (most or 0.0)
        has_call = self.calls is None or self.calls_made < self.calls
        if has_call and (self.usd is None or usd <= self.usd):
            self.calls_made += 1
            self.reserved.append(most or 0.0)
            return True
        if not self.reserved:
            raise BudgetError(
                "the budget is used up",
                where=repr(self),
                fix="raise the cap (--budget-usd, --budget-calls); stored verdicts are not paid again",
            )
        return False

    def settle(self, most: float | None, cost: float | None) -> None:
        """Replace a reservation by the true cost (None: not known)."""
        self.reserved.remove(most or 0.0)
        self.usd_spent += cost or 0.0
        self.unpriced_calls += cost is None
