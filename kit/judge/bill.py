"""What a call cost: the tokens that the reply names, where they can be, else a marked estimate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .prices import Price
from .records import Forecast

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
        cost = price.cost(self.tokens_in, self.tokens_out, self.cached) if price else None
        return Forecast(calls=1, tokens_in=self.tokens_in, tokens_out=self.tokens_out, cost=cost)


def tokens(characters: int) -> int:
    """About how many tokens so many characters are.

    >>> tokens(4000)
    1016
    """
    return 16 + characters // PER_TOKEN


def usage(data: Mapping[str, Any], sent: int, got: int, room: int | None = None) -> Usage:
    """The usage of a reply. sent, got : characters of the request and of the reply; room : tokens
    that it was allowed, beyond which an estimate goes only where the reply clearly did.

    A number that cannot be (negative, text, infinite, more tokens than the request has bytes)
    counts as not given: the estimate takes its place, so that no reply can fill a budget or empty
    it.

    >>> usage({"usage": {"prompt_tokens": 12, "completion_tokens": 3}}, 400, 40)
    Usage(tokens_in=12, tokens_out=3, cached=0, estimated=False)
    >>> usage({"usage": {"prompt_tokens": -9, "completion_tokens": 3}}, 400, 40)
    Usage(tokens_in=116, tokens_out=3, cached=0, estimated=True)
    """
    said = data.get("usage")
    said = said if isinstance(said, Mapping) else {}
    tin = _count(said, ("prompt_tokens", "input_tokens"), 2 * sent + ROOM)
    tout = _count(said, ("completion_tokens", "output_tokens"), 2 * got + THOUGHT)
    details = said.get("prompt_tokens_details") or said.get("input_tokens_details")
    details = details if isinstance(details, Mapping) else {}
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
    for name in names:
        n = row.get(name)
        if (
            isinstance(n, (int, float))
            and not isinstance(n, bool)
            and 0 <= n <= most
            and n == int(n)
        ):
            return int(n)
    return None
