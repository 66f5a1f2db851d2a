"""A judge's reply in JSON: one value, an object by criterion id with the asked fields, no more."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..records import Criterion
from .words import Foreign, Said

VERDICTS = ("verdict", "level", "rating")
REASONS = ("reason", "rationale", "explanation", "justification", "evidence", "quote")
IDS = ("id", "criterion_id", "criterion")
WRAPPERS = frozenset(
    "verdicts criteria results evaluations judgments judgements ratings assessments".split()
)
DEEPEST = 3  # wrappers in wrappers


class Fields(list[tuple[str, Any]]):
    """A JSON object as its pairs, so that a key that stands twice is seen twice."""


_DECODER = json.JSONDecoder(object_pairs_hook=Fields, parse_constant=str, strict=False)


def objects(text: str, ids: Sequence[str], criteria: Sequence[Criterion]) -> dict[str, Said]:
    """What one JSON value says, by id; Foreign for anything in it or behind it that was not asked.

    The asked form is {id: {"reason": ..., "verdict": ...}}; {id: verdict}, a list of such parts
    with their ids, one known wrapper around either, and one part alone for a single question are
    the same thing in another dress.
    """
    try:
        value, end = _DECODER.raw_decode(text)
    except json.JSONDecodeError as e:
        raise Foreign(text[e.pos :] or text[-60:]) from None
    except (ValueError, RecursionError):  # a number of 5,000 digits, 1,000 brackets
        raise Foreign(text) from None
    if text[end:].strip():
        raise Foreign(text[end:])
    said = {n: Said() for n in ids}
    by_name = dict(zip(ids, criteria, strict=True))
    for name, part in _parts(value, {n.casefold(): n for n in ids}, 0):
        _hear(said[name], part, {name.casefold(), by_name[name].id.casefold()}, by_name[name])
    return said


def _parts(value: Any, fold: Mapping[str, str], depth: int) -> Iterator[tuple[str, Any]]:
    """(id, its part) of each criterion that a decoded reply speaks of."""
    if isinstance(value, Fields):
        keys = [_key(k) for k, _ in value]
        if all(k in fold for k in keys):
            yield from ((fold[k], v) for k, (_, v) in zip(keys, value, strict=True))
        elif len(value) == 1 and keys[0] in WRAPPERS and depth < DEEPEST:
            yield from _parts(value[0][1], fold, depth + 1)
        elif any(k in VERDICTS for k in keys):
            yield _owner(value, fold), value
        else:
            raise Foreign(
                next(k for (k, _), key in zip(value, keys, strict=True) if key not in fold)
            )
    elif isinstance(value, list) and depth < DEEPEST:
        for part in value:
            yield from _parts(part, fold, depth + 1)
    else:
        raise Foreign(value)


def _owner(part: Fields, fold: Mapping[str, str]) -> str:
    """The asked id that a part bears; the only one there is where it bears none."""
    named = [v for k, v in part if _key(k) in IDS[:2]] or [
        v for k, v in part if _key(k) == IDS[2] and _key(v) in fold
    ]
    if not named and len(fold) == 1:
        return next(iter(fold.values()))
    if not named or _key(named[0]) not in fold:
        raise Foreign(named[0] if named else "a verdict without an id")
    return fold[_key(named[0])]


def _hear(said: Said, part: Any, mine: set[str], c: Criterion) -> None:
    """Note one criterion's part: its verdict alone, or an object with the asked fields."""
    if not isinstance(part, Fields):
        said.verdicts.append(part)
        return
    keys = [_key(k) for k, _ in part]
    given = any(k in VERDICTS for k in keys)
    for key, (k, v) in zip(keys, part, strict=True):
        if keys.count(key) > 1 and key not in VERDICTS:
            raise Foreign(k)
        if key in VERDICTS:
            said.verdicts.append(v)
        elif key in REASONS and isinstance(v, (str, type(None))):
            if said.verdicts and (said.reasons or not given):  # it may take the verdict back
                raise Foreign(v or k)
            said.reasons.append(v or "")
        elif key == "confidence":
            said.confidences.append(v)
        elif key not in IDS or _key(v) not in mine | {_key(c.text)}:
            raise Foreign(k if key not in IDS else v)


def _key(name: Any) -> str:
    return name.strip().casefold() if isinstance(name, str) else ""
