"""Where a sentence gives the number of a fact: in any notation, with its sign and its unit."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from ..checks import units
from ..checks.quantities import Quantity, agrees, quantities, readable
from . import lexicon as lx

Wanted = tuple[float, float, str]  # value, tolerance, unit


def wanted(fact: Mapping[str, Any]) -> Wanted:
    """The number of a fact, its tolerance and its unit; a scale in the unit is multiplied in.

    A fact without a unit has the one that follows its number in its text ("71%").

    >>> wanted({"text": "4.5 billion years", "number": 4.5, "unit": "billion years"})
    (4500000000.0, 0.0, 'years')
    >>> wanted({"text": "71% of it", "number": 71})
    (71.0, 0.0, '%')
    """
    return _wanted(
        float(fact["number"]),
        float(fact.get("tolerance") or 0.0),
        str(fact.get("unit") or ""),
        str(fact["text"]),
    )


@lru_cache(maxsize=4_096)
def _wanted(number: float, tolerance: float, unit: str, text: str) -> Wanted:
    if unit:
        scale = quantities(readable(f"1 {unit}"))
        by, unit = (scale[0].value, scale[0].tail.strip()) if len(scale) == 1 else (1.0, unit)
        return number * by, tolerance * by, unit
    own = (q for q in quantities(readable(text)) if agrees(q, number, percent=True))
    return number, tolerance, next((units.said(q.tail) for q in own), "")


def given(sentence: str, fact: Mapping[str, Any], words: Sequence[str]) -> list[Quantity]:
    """The quantities of a sentence that are the number of a fact.

    words : its lower tokens, for "a 5% decrease", which is -5%.
    """
    value, tolerance, unit = wanted(fact)
    found = quantities(sentence)
    out = [q for q in found if agrees(q, value, tolerance, unit)]
    if value < 0 and any(w in lx.DOWN for w in words):
        out += [q for q in found if agrees(q, -value, tolerance, unit)]
    return out


def as_named(sentence: str, start: int, end: int, name: str) -> bool:
    """True where the numbers of sentence[start:end] read as those of the name that stands there.

    >>> as_named("It is twice 343 m/s.", 12, 19, "343 m/s"), as_named("3 m", 0, 3, "3 m")
    (False, True)
    """
    own = quantities(readable(name))
    said = [q for q in quantities(sentence) if start <= q.start < end or start < q.end <= end]
    return all(any(_same(q, n) for n in own) for q in said)


def _same(q: Quantity, n: Quantity) -> bool:
    if n.part or n.far != n.value:
        return (q.value, q.far, q.part) == (n.value, n.far, n.part)
    return agrees(q, n.value, unit=units.said(n.tail))


def place(starts: Sequence[int], q: Quantity) -> int:
    """The index of the token in which a quantity starts."""
    return min(bisect_left(starts, q.start), len(starts) - 1)
