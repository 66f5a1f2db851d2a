"""Several raters, several vocabularies: met / unmet against yes / no against 1 / 0 are mapped and
said; what cannot be mapped is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import product
from typing import Any

from ..errors import DataError
from ..records import NO_ANSWER
from .clusters import is_unknown

YES = "met|yes|y|ja|wahr|true|t|pass|passed|correct|right|1|1.0|satisfied|good|ok|positive".split(
    "|"
)
NO = (
    "unmet|not met|no|n|nein|falsch|false|f|fail|failed|incorrect|wrong|0|0.0|unsatisfied|not "
    "satisfied|bad|negative"
).split("|")


def side(value: Any) -> int | None:
    """1 for a word of yes, 0 for one of no, None for any other.

    >>> side("Met"), side("not met"), side(0), side("mid")
    (1, 0, 0, None)
    """
    word = str(value).strip().lower().replace("_", " ")
    if word in YES:
        return 1
    return 0 if word in NO else None


def unsaid(value: Any, categories: Collection[Any] | None = None) -> bool:
    """No answer: None, NaN, or a word such as unknown or n/a, unless it is one of the categories.

    >>> [unsaid(v) for v in (None, " N/A ", "", "unmet", 0)], unsaid("none", ["none", "all"])
    ([True, True, True, False, False], False)
    """
    if not isinstance(value, str):
        return is_unknown(value)
    return value.strip().casefold() in NO_ANSWER and (categories is None or value not in categories)


def number(value: Any) -> float | None:
    """The number that a value is or spells, or None."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def shared(columns: Mapping[str, Collection[Any]]) -> tuple[Mapping[Any, Any], str]:
    """How values are rewritten so that all columns speak one vocabulary, and what to say of it;
    ({}, "") where they do.

    columns : name -> its distinct known values. DataError where they cannot be brought together.

    >>> shared({"judge": {"met", "unmet"}, "human": {"yes", "no"}})
    ({'met': 1, 'no': 0, 'unmet': 0, 'yes': 1}, 'met and yes are read as 1, no and unmet as 0')
    >>> shared({"judge": {1, 2}, "human": {2, 3}})
    ({}, '')
    """
    each = {name: set(c) for name, c in columns.items() if c}
    whole = set().union(*each.values())
    if "+" in whole:
        raise DataError(
            "'+' is a value, and '-' is what tables write into an empty cell",
            where=", ".join(each),
            fix="write met and unmet, or say that these are the categories=['-', '+'] (kit agree: "
            "--order=-,+)",
        )
    text = {v for v in whole if isinstance(v, str)}
    if not text or any(0 < len(text & c) < len(c) for c in each.values()) or len(each) < 2:
        return {}, ""
    if whole in each.values():
        return _spelled(whole)
    low = {v: v.casefold() for v in text}
    folded = [{low.get(v, v) for v in c} for c in each.values()]
    if len(every := set().union(*folded)) > 2 and every in folded:
        return low, "words are one in upper and lower case"
    sides = {v: side(v) for v in sorted(whole, key=str)}
    if None not in sides.values():
        met, unmet = (
            " and ".join(str(v) for v, s in sides.items() if s == k and v != k) for k in (1, 0)
        )
        return sides, f"{met} are read as 1, {unmet} as 0"
    if all(number(v) is not None for v in whole):
        return _spelled(whole)
    alone = (all(c.isdisjoint(o) for o in each.values() if o is not c) for c in each.values())
    if len(text) < len(whole) or any(alone):
        said = ", ".join(f"{name} {sorted(c, key=repr)[:5]}" for name, c in each.items())
        raise DataError(
            f"the columns share no vocabulary: {said}",
            where=", ".join(each),
            fix="give all the same values, such as met / unmet, or say that these are the "
            "categories=[...]; leave cells empty that are unknown, or name their word to `kit "
            "agree` (--unknown)",
        )
    return {}, ""


def _spelled(values: Collection[Any]) -> tuple[Mapping[Any, Any], str]:
    """Numbers in quotes as numbers, so that 10 comes after 9; text that is no number stays."""
    found = {v: number(v) for v in values if isinstance(v, str)}
    if not found or None in found.values():
        return {}, ""
    return {v: int(x) if x == int(x) else x for v, x in found.items() if x is not None}, ""


def refuse_levels(columns: Mapping[str, Collection[Any]]) -> None:
    """A five-level score beside labels of 0 and 1 agrees with nothing: cut it first."""
    for (name, levels), labels in product(columns.items(), columns.values()):
        known = [x for x in map(number, levels) if x is not None]
        if len(known) < len(levels) or {number(v) for v in labels} != {0.0, 1.0}:
            continue
        outside = [x for x in known if x not in (0.0, 1.0)]
        if outside:
            raise DataError(
                f"the {name} gives levels such as {sorted(outside)[0]:g}, the other column 0 and 1",
                where=", ".join(columns),
                fix="cut the levels with threshold=, or say that both use one scale with "
                "categories=[...]",
            )


def ordered(categories: Sequence[Any], given: bool) -> None:
    """DataError when the weights need an order of levels that only the user knows.

    >>> ordered(["low", "high"], False)
    """
    if given or len(categories) < 3 or all(isinstance(c, (int, float)) for c in categories):
        return
    raise DataError(
        f"the order of {list(categories)[:8]} is not known",
        where="categories",
        fix="give categories=[worst, ..., best]; alphabetical order means nothing",
    )
