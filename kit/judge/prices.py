"""Model names, prices and shutdown dates, from one dated data file (models.json); what a call cost.

The tokens are those that the reply names, where they can be, else a marked estimate. Caps on what a
run may spend are checked before it is spent.
"""

from __future__ import annotations

import asyncio
import datetime
import functools
import json
import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import BudgetError, KitError
from ..records import is_number
from .records import Forecast

FIX = "give two finite numbers from 0 on: dollars per million tokens, input and output"
FILE = Path(__file__).with_name("models.json")


@dataclass(frozen=True, kw_only=True)
class Price:
    """US dollars per million tokens: input, input read from the provider's cache, output."""

    input: float
    output: float
    cached: float | None = None

    def __post_init__(self) -> None:
        for name in ("input", "output", "cached"):
            value = getattr(self, name)
            amount = is_number(value) and 0 <= value < math.inf  # NaN would switch off every cap
            if not amount and not (value is None and name == "cached"):
                raise KitError(f"{name} is {value!r}", where="price", fix=FIX)

    @classmethod
    def of(cls, given: Any) -> Price | None:
        """A price as users give it: None, a Price, or (input, output); KitError for anything else.

        >>> Price.of([1, 5]).output
        5
        """
        if given is None or isinstance(given, Price):
            return given
        if isinstance(given, (tuple, list)) and len(given) == 2:
            return cls(input=given[0], output=given[1])
        raise KitError(f"{given!r} is no price", where="price", fix=FIX)

    def cost(self, tokens_in: int, tokens_out: int, tokens_cached: int = 0) -> float:
        """US dollars of one call; `tokens_in` includes the cached ones.

        >>> Price(input=1.0, output=2.0, cached=0.1).cost(1_000_000, 500_000, 500_000)
        1.55
        """
        cached = min(tokens_cached, tokens_in)
        rate = self.input if self.cached is None else self.cached
        return ((tokens_in - cached) * self.input + cached * rate + tokens_out * self.output) / 1e6


FREE = Price(input=0.0, output=0.0, cached=0.0)


@functools.cache
def models() -> dict[str, Any]:
    """The data file: `as_of`, `default`, `models` by name."""
    return json.loads(FILE.read_text(encoding="utf-8"))


def default_model() -> str:
    """The judge model that is used when none is named.

    >>> shutdown(default_model()) is None
    True
    """
    return models()["default"]


def entry(model: str) -> dict[str, Any]:
    """What is known of a model; a dated snapshot ("gpt-4o-2024-08-06") is its family; {} when
    unknown.

    >>> entry("gpt-5-mini-2025-08-07")["shutdown"]
    '2026-12-11'
    >>> entry("my-own-model")
    {}
    """
    table = models()["models"]
    return table.get(model) or table.get(re.sub(r"-\d{4}-\d\d-\d\d$", "", model)) or {}


def price(model: str) -> Price | None:
    """The price of a model, or None where it is not known (then a cap in dollars cannot be
    kept, and is refused).
    """
    row = entry(model)
    return (
        Price(input=row["input"], output=row["output"], cached=row.get("cached"))
        if "input" in row
        else None
    )


def shutdown(model: str) -> datetime.date | None:
    """When the provider turns the model off, or None where nothing is announced."""
    day = entry(model).get("shutdown")
    return datetime.date.fromisoformat(day) if day else None


def warning(model: str, today: datetime.date | None = None, within: int = 120) -> str | None:
    """A sentence for users when a model dies within so many days or is dead, else None.

    >>> warning("gpt-5-mini", datetime.date(2026, 11, 21))
    'gpt-5-mini is shut down on 2026-12-11 (in 20 days); gpt-6-luna is the default now'
    """
    day = shutdown(model)
    today = today or datetime.date.today()
    if day is None or (day - today).days > within:
        return None
    when = (
        f"is shut down on {day} (in {(day - today).days} days)"
        if day > today
        else f"was shut down on {day}"
    )
    return f"{model} {when}; {default_model()} is the default now"


def is_reasoning(model: str) -> bool:
    """True for models that reason first: no temperature, room for reasoning tokens, no logprobs
    (unless effort is "none").

    >>> is_reasoning("gpt-6-luna"), is_reasoning("gpt-4o"), is_reasoning("llama-3")
    (True, False, False)
    """
    row = entry(model)
    return bool(row.get("reasoning")) if row else bool(re.match(r"(gpt-[5-9]|o\d)", model))


PER_TOKEN = 4  # characters, about
FRAME = 250  # tokens' worth of JSON around a reply
ROOM = 10_000  # tokens of a server's own frame around a prompt
THOUGHT = 1_000_000  # tokens that a model may have thought in without saying so


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Tokens in, out, and in from the provider's cache; estimated: not all named by the reply."""

    tokens_in: int = 0
    tokens_out: int = 0
    cached: int = 0
    estimated: bool = False

    def forecast(self, price: Price | None) -> Forecast:
        """The same as what a budget counts; `cost` is None without a price."""
        return Forecast(
            calls=1,
            tokens_in=self.tokens_in,
            tokens_out=self.tokens_out,
            cost=price.cost(self.tokens_in, self.tokens_out, self.cached) if price else None,
        )


def tokens(characters: int) -> int:
    """About how many tokens so many characters are.

    >>> tokens(4000)
    1016
    """
    return 16 + characters // PER_TOKEN


def usage(data: Mapping[str, Any], sent: int, got: int, room: int | None = None) -> Usage:
    """The usage of a reply. sent, got : characters of the request and of the reply; room : tokens
    that it was allowed, beyond which an estimate goes only where the reply clearly did.

    A number that cannot be (negative, text, infinite, more tokens than the request has bytes, none
    for a chat's text, far more than were allowed) counts as not given: the estimate takes its
    place, so that no reply can fill a budget or empty it.

    >>> usage({"usage": {"prompt_tokens": 12, "completion_tokens": 3}}, 400, 40)
    Usage(tokens_in=12, tokens_out=3, cached=0, estimated=False)
    >>> usage({"usage": {"prompt_tokens": -9, "completion_tokens": 3}}, 400, 40)
    Usage(tokens_in=116, tokens_out=3, cached=0, estimated=True)
    """
    said = data.get("usage")
    said = said if isinstance(said, dict) else {}
    tin = _count(said, ("prompt_tokens", "input_tokens"), 2 * sent + ROOM)
    most = 2 * got + THOUGHT if room is None else 4 * max(room, tokens(got))
    tout = _count(said, ("completion_tokens", "output_tokens"), most)
    tout = None if tout == 0 and data.get("choices") else tout
    details = said.get("prompt_tokens_details") or said.get("input_tokens_details")
    details = details if isinstance(details, dict) else {}
    cached = _count(details, ("cached_tokens",), 2 * sent + ROOM) or 0
    tin_known, tout_known = bool(tin), tout is not None
    tin, out = tin or tokens(sent), tokens(got)
    if room is not None and out <= room + FRAME:
        out = min(out, room)
    return Usage(
        tokens_in=tin,
        tokens_out=tout if tout is not None else out,
        cached=min(cached, tin),
        estimated=not (tin_known and tout_known),
    )


def _count(row: Mapping[str, Any], names: tuple[str, ...], most: int) -> int | None:
    """The first of these fields that is a whole number in [0, most]."""
    given = map(row.get, names)
    whole = (int(n) for n in given if is_number(n) and 0 <= n <= most and n == int(n))
    return next(whole, None)


@dataclass
class Budget:
    """Caps in calls, tokens, US dollars and seconds; None = no cap. One budget may serve several
    runs and judges. A call is every request that was sent, also one that was answered 429 or 500;
    dollars spent are None where a judge had no price.

    Every call first reserves what it may cost at most (`reserve`) and afterwards settles what it
    did cost (`settle`), so that calls in flight cannot break a cap together. Time counts from the
    first reservation.

    >>> b = Budget(calls=1)
    >>> ticket = b.reserve(Forecast(calls=1, tokens_in=10))
    >>> b.settle(ticket, Forecast(calls=1, tokens_in=12))
    >>> b.reserve(Forecast(calls=1))
    Traceback (most recent call last):
    kit.errors.BudgetError: the budget of 1 calls is used up (1 spent)
      to do: raise the cap; what was answered is in the ledger and is not paid again
    """

    calls: int | None = None
    tokens: int | None = None
    usd: float | None = None
    seconds: float | None = None
    spent: Forecast = field(default_factory=Forecast)
    reserved: Forecast = field(default_factory=Forecast)
    started: float | None = None
    waiting: list[asyncio.Future[None]] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        for name in ("calls", "tokens", "usd", "seconds"):
            cap = getattr(self, name)
            if cap is not None and not (is_number(cap) and cap >= 0):
                raise KitError(
                    f"a cap must be a number >= 0, got {cap!r}", where=f"Budget({name}=...)"
                )

    def reserve(self, cost: Forecast) -> Forecast:
        """Set aside what one call may cost; BudgetError when a cap would break. The ticket goes
        back to `settle`.
        """
        broken = self._broken(cost, self.reserved)
        if broken:
            raise broken
        self.reserved = self.reserved + cost
        return cost

    async def take(self, cost: Forecast) -> Forecast:
        """Like `reserve`, but where only calls in flight stand in the way, wait for what they
        really cost.
        """
        while (
            self._broken(cost, self.reserved)
            and self.reserved.calls > 0
            and not self._broken(cost, Forecast())
        ):
            waiter = asyncio.get_running_loop().create_future()
            self.waiting.append(waiter)
            await waiter
        return self.reserve(cost)

    def settle(self, ticket: Forecast, cost: Forecast) -> None:
        """Give a reservation back and book what was really spent."""
        back = Forecast(
            calls=-ticket.calls,
            tokens_in=-ticket.tokens_in,
            tokens_out=-ticket.tokens_out,
            cost=-(ticket.cost or 0.0),
        )
        self.reserved, self.spent = self.reserved + back, self.spent + cost
        waiting, self.waiting = self.waiting, []
        for w in waiting:
            if not w.done():
                w.set_result(None)

    def _broken(self, cost: Forecast, reserved: Forecast) -> BudgetError | None:
        now = time.monotonic()
        self.started = self.started or now
        if self.usd is not None and cost.cost is None:
            return BudgetError(
                "the price of this model is not known, so a cap in dollars cannot be kept",
                where="Budget(usd=...)",
                fix="give the judge its price (price=(input, output) in dollars per million "
                "tokens), or cap tokens or calls",
            )
        after = self.spent + reserved + cost
        gone = self.spent
        for name, cap, value, spent in (
            ("calls", self.calls, after.calls, f"{gone.calls}"),
            (
                "tokens",
                self.tokens,
                after.tokens_in + after.tokens_out,
                f"{gone.tokens_in + gone.tokens_out}",
            ),
            ("dollars", self.usd, after.cost or 0.0, f"{gone.cost or 0:.4f}"),
            ("seconds", self.seconds, now - self.started, f"{now - self.started:.0f}"),
        ):
            if cap is not None and value > cap + 1e-12:
                full = float(spent) >= cap
                why = "is used up" if full else "does not cover what the next call may take"
                return BudgetError(
                    f"the budget of {cap:g} {name} {why} ({spent} spent)",
                    fix="raise the cap; what was answered is in the ledger and is not paid again",
                )
        return None
