"""What judging costs: tokens, US dollars, budgets, sums of costs."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from ..errors import BudgetError, DataError
from .form import is_number

COSTS = ("tokens_in", "tokens_out", "cost")  # what a call takes


def tokens(text: str) -> int:
    """About how many tokens a text has.

    >>> tokens("four tokens or so")
    5
    """
    return math.ceil(len(text) / 4)


def volume(messages: Iterable[Mapping[str, str]]) -> int:
    """About how many tokens a chat has, with four around each message."""
    return sum(tokens(m["content"]) + 4 for m in messages)


def dollars(rates: Sequence[float] | None, n_in: int, n_out: int) -> float | None:
    """US dollars of one call, None without rates. Cached input counts in full.

    >>> dollars((1.0, 2.0), 1_000_000, 500_000)
    2.0
    """
    return rates and (n_in * rates[0] + n_out * rates[1]) / 1e6


class Spent(msgspec.Struct, kw_only=True, frozen=True):
    """What a run took, or (from `estimate`) will take about.

    calls, tokens_in, tokens_out; cost : US dollars, None where a price is not known;
    seconds; cached : verdicts that cost nothing.

    >>> print(Spent(calls=1, cost=0.5) + Spent(calls=2, cached=3))
    3 calls, 0 + 0 tokens, $0.5000, 0.0 s, 3 verdicts from the ledger
    """

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = 0.0
    seconds: float = 0.0
    cached: int = 0

    def __add__(self, other: Spent) -> Spent:
        both = (msgspec.structs.astuple(x) for x in (self, other))
        # A sum with an unknown price is unknown, not cheaper.
        rows = [
            None if None in pair else sum(pair) for pair in zip(*both, strict=True)
        ]
        return Spent(**dict(zip(self.__struct_fields__, rows, strict=True)))

    def __str__(self) -> str:
        money = "price not known" if self.cost is None else f"${self.cost:.4f}"
        volume = f"{self.tokens_in} + {self.tokens_out} tokens"
        source = f"{self.cached} verdicts from the ledger"
        return (
            f"{self.calls} calls, {volume}, {money}, {self.seconds:.1f} s, {source}"
        )


@dataclass(kw_only=True)
class Budget:
    """Caps that are checked before each call; None means no cap. Runs may share one.

    calls : questions that are sent (a repetition after HTTP 429 or 500 does not count).
    usd : US dollars. A call first reserves the most that it may cost, so calls in flight
        cannot break the cap.
    `calls_made` and `usd_spent` count what was used.

    >>> Budget(calls=1).calls_made
    0
    """

    calls: int | None = None
    usd: float | None = None
    calls_made: int = field(default=0, init=False)
    usd_spent: float = field(default=0.0, init=False)
    # A list, because a sum of floats does not come back to 0.
    reserved: list[float] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("calls", "usd"):
            cap = getattr(self, name)
            if cap is not None and not (is_number(cap) and cap >= 0):
                raise DataError(
                    f"{name} is {cap!r}",
                    where=f"Budget({name}=...)",
                    fix="give a number >= 0",
                )

    async def reserve(
        self, most: float | None, go_on: Callable[[], None] = lambda: None
    ) -> None:
        """Count a call of at most so many dollars; BudgetError where a cap would break.

        go_on : raises when the run has stopped while this call waited.
        """
        if self.usd is not None and most is None:
            raise BudgetError(
                "a cap in dollars needs the price of the model",
                where="Budget(usd=...)",
                fix="give the judge price=[input, output] (dollars a million tokens)",
            )
        while not self._fits(most or 0.0):
            if not self.reserved:
                raise BudgetError(
                    "the budget is used up",
                    where=repr(self),
                    fix="raise the cap; stored verdicts are not paid again",
                )
            # What is in flight may turn out cheaper than its reservation.
            await asyncio.sleep(0.02)
            go_on()
        self.calls_made += 1
        self.reserved.append(most or 0.0)

    def settle(self, most: float | None, cost: float) -> None:
        """Replace a reservation by the true cost."""
        self.reserved.remove(most or 0.0)
        self.usd_spent += cost

    def _fits(self, most: float) -> bool:
        if self.calls is not None and self.calls_made >= self.calls:
            return False
        total = self.usd_spent + sum(self.reserved) + most
        return self.usd is None or total <= self.usd
