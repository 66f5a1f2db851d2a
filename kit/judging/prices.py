"""What judging costs: prices and shutdown dates of models (one data file, models.json),
budgets, forecasts.
"""

from __future__ import annotations

import asyncio
import datetime
import functools
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import BudgetError, DataError

FILE = Path(__file__).with_name("models.json")
CHARACTERS_PER_TOKEN = 4


@functools.cache
def catalog() -> dict[str, Any]:
    """The data file: `as_of`, `default` (a model's name) and `models` by name."""
    return json.loads(FILE.read_text("utf-8"))


def entry(model: str) -> dict[str, Any]:
    """The data on a model, {} when it is not in the file. A dated snapshot counts as its family.

    >>> entry("gpt-5-mini-2025-08-07")["shutdown"]
    '2026-12-11'
    """
    models = catalog()["models"]
    return (
        models.get(model) or models.get(re.sub(r"-\d{4}-\d\d-\d\d$", "", model)) or {}
    )


def price(model: str) -> tuple[float, float, float] | None:
    """US dollars per million tokens: (input, output, input from the provider's cache). None: no
    data.

    >>> price("gpt-4o-mini")
    (0.15, 0.6, 0.075)
    """
    row = entry(model)
    if "input" not in row:
        return None
    return row["input"], row["output"], row.get("cached", row["input"])


def reasons_first(model: str) -> bool:
    """True for models that think before they reply: only the default temperature, more room.

    >>> reasons_first("gpt-5-mini"), reasons_first("gpt-4o"), reasons_first("llama-3")
    (True, False, False)
    """
    # A model that is newer than the data file is taken for one of its family.
    row = entry(model)
    return bool(row.get("reasoning") if row else re.match(r"(gpt-[5-9]|o\d)", model))


def shutdown_warning(
    model: str, today: datetime.date | None = None, days: int = 120
) -> str | None:
    """A sentence when the provider turns a model off within so many days, else None.

    >>> shutdown_warning("gpt-5-mini", datetime.date(2026, 11, 21))
    'gpt-5-mini is shut down on 2026-12-11; use gpt-6-luna'
    """
    day = entry(model).get("shutdown")
    today = today or datetime.date.today()
    if day is None or (datetime.date.fromisoformat(day) - today).days > days:
        return None
    verb = "is" if day > today.isoformat() else "was"
    return f"{model} {verb} shut down on {day}; use {catalog()['default']}"


def tokens(text: str) -> int:
    """About how many tokens a text has.

    >>> tokens("four tokens or so")
    5
    """
    return math.ceil(len(text) / CHARACTERS_PER_TOKEN)


def dollars(
    rates: Sequence[float] | None, n_in: int, n_out: int, n_cached: int = 0
) -> float:
    """US dollars of one call; 0 without rates. `n_in` includes the cached ones.

    >>> dollars((1.0, 2.0, 0.1), 1_000_000, 500_000, 500_000)
    1.55
    """
    if rates is None:
        return 0.0
    n_cached = min(n_cached, n_in)
    cached = rates[2] if len(rates) > 2 else rates[0]
    return ((n_in - n_cached) * rates[0] + n_cached * cached + n_out * rates[1]) / 1e6


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """What a run will take:

    calls, tokens, US dollars (None: a price is missing), verdicts that are stored.
    """

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = 0.0
    stored: int = 0

    def __add__(self, other: Forecast) -> Forecast:
        costs = (self.cost, other.cost)
        return Forecast(
            calls=self.calls + other.calls,
            tokens_in=self.tokens_in + other.tokens_in,
            tokens_out=self.tokens_out + other.tokens_out,
            cost=None if None in costs else sum(costs),
            stored=self.stored + other.stored,
        )

    def __str__(self) -> str:
        money = "price not known" if self.cost is None else f"${self.cost:.4f}"
        volume = f"{self.tokens_in} + {self.tokens_out} tokens"
        return f"{self.calls} calls, {volume}, {money}; {self.stored} verdicts are stored already"


@dataclass(kw_only=True)
class Budget:
    """Caps that are checked before each call; None means no cap. One Budget may serve several runs.

    calls : questions that are sent (a repetition after HTTP 429 or 500 does not count).
    usd : US dollars. A call first reserves the most that it may cost, so calls in flight
        cannot break the cap.
    `calls_made` and `usd_spent` count what was used.

    >>> budget = Budget(calls=1)
    >>> budget.calls_made
    0
    """

    calls: int | None = None
    usd: float | None = None
    calls_made: int = field(default=0, init=False)
    usd_spent: float = field(default=0.0, init=False)
    reserved: float = field(default=0.0, init=False, repr=False)

    def __post_init__(self) -> None:
        for name, cap in (("calls", self.calls), ("usd", self.usd)):
            if cap is not None and not (
                type(cap) in (int, float) and 0 <= cap < math.inf
            ):
                raise DataError(
                    f"{name} is {cap!r}",
                    where=f"Budget({name}=...)",
                    fix="give a number >= 0",
                )

    async def reserve(self, most: float | None) -> None:
        """Count one call that costs at most so many dollars;

        BudgetError where a cap would break.
        """
        if self.usd is not None and most is None:
            raise BudgetError(
                "the price of this model is not in models.json, so a cap in dollars cannot hold",
                where="Budget(usd=...)",
                fix="give the judge price=[input, output] (dollars per million tokens), or cap calls",
            )
        most = most or 0.0
        # What is in flight may turn out cheaper than its reservation.
        while self.usd is not None and self.reserved and not self._fits(most):
            await asyncio.sleep(0.02)
        if (self.calls is not None and self.calls_made >= self.calls) or not self._fits(
            most
        ):
            raise BudgetError(
                f"the budget is used up ({self.calls_made} calls, ${self.usd_spent:.4f})",
                where=repr(self),
                fix="raise the cap; stored verdicts are not paid again",
            )
        self.calls_made += 1
        self.reserved += most

    def settle(self, most: float | None, cost: float) -> None:
        """Replace a reservation by the true cost."""
        self.reserved = max(0.0, self.reserved - (most or 0.0))
        if self.reserved < 1e-12:  # what sums of floats leave
            self.reserved = 0.0
        self.usd_spent += cost

    def _fits(self, most: float) -> bool:
        return (
            self.usd is None
            or self.usd_spent + self.reserved + most <= self.usd + 1e-12
        )
