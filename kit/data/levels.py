"""Criteria with levels: in the forms that files have, and labels of people by them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from ..errors import DataError
from ..records import Criterion, Task, Verdict
from .findings import Finding
from .values import absent, as_text, number, parsed_json

KEY = re.compile(r"\s*(-?\d+(?:\.\d+)?)\s*(?:[-–]\s*(\d+))?\s*\Z")  # "2", or "1-2"
SCORED = ("score", "value", "points", "rating", "level")
WORDED = ("description", "text", "label", "name", "criteria", "definition", "level")
UNREAD = "unreadable-label"
TEXTS = "write levels as a list of texts, worst first"


def levels_of(value: Any, scores: Any = None) -> tuple[str, ...]:
    """The levels' texts, worst first; () for none. DataError where they cannot be read, or are not
    evenly spaced: the kit pays them in equal steps. Levels that are numbers are put in order.

    value : a list of texts, an object number -> text, or a list of objects with a text and, if they
    like, a number. scores : a list of numbers beside a list of texts.

    >>> levels_of({"1": "bad", "0": "none", "2": "good"})
    ('0: none', '1: bad', '2: good')
    >>> levels_of([5, 3, 1])
    ('1', '3', '5')
    """
    value = parsed_json(value)
    if absent(value) or value in ([], {}, ""):
        return ()
    if isinstance(value, Mapping):
        pairs = list(value.items())
    elif isinstance(value, (list, tuple)):
        given = scores if isinstance(scores, list) and len(scores) == len(value) else [None]
        pairs = [_pair(x, s) for x, s in zip(value, [*given, *[None] * len(value)], strict=False)]
    else:
        pairs = []
    texts = [t for _, t in pairs]
    if len(pairs) < 2 or not all(isinstance(t, (str, int, float)) for t in texts):
        raise DataError("the levels cannot be read", fix=TEXTS)
    if any(k is not None for k, _ in pairs):
        return _scored(pairs)
    if all(number(t) is not None for t in texts):
        return _scored([(t, None) for t in texts])
    return tuple(as_text(t) for t in texts)


def _pair(item: Any, score: Any) -> tuple[Any, Any]:
    """(number or None, text or None) of one level."""
    if not isinstance(item, Mapping):
        return score, item
    key = next((item[k] for k in SCORED if number(item.get(k)) is not None), score)
    return key, next((item[k] for k in WORDED if isinstance(item.get(k), str)), None)


def _scored(pairs: Sequence[tuple[Any, Any]]) -> tuple[str, ...]:
    found = [KEY.match(as_text(k)) for k, _ in pairs]
    if not all(found):
        raise DataError("the levels have no order: their keys are no numbers", fix=TEXTS)
    order = sorted(
        (float(m[1]), as_text(k) if t is None else f"{as_text(k)}: {as_text(t)}")
        for m, (k, t) in zip(found, pairs, strict=True)
    )
    steps = [b[0] - a[0] for a, b in pairwise(order)]
    if max(steps) - min(steps) > 1e-9 * max(steps):
        said = f"the levels {', '.join(f'{x:g}' for x, _ in order)} are not evenly spaced"
        fix = "give the levels that lie between, or a criterion for each step"
        raise DataError(f"{said}, and are paid in equal steps", fix=fix)
    return tuple(text for _, text in order)


def by_levels(
    verdicts: Iterable[Verdict], findings: Iterable[Finding], tasks: Iterable[Task]
) -> tuple[list[Verdict], list[Finding]]:
    """Verdicts and findings, those of people on a criterion with levels read by its own: by a
    level's words or number, or by its place, from 0 or from 1 as the labels of the set show.

    A label that is none of them, or that may be counted from either, is unknown and an error.
    """
    known = {(t.id, c.id): c for t in tasks for c in t.criteria if c.levels}
    out, told = list(verdicts), list(findings)
    if not known:
        return out, told
    told = [f for f in told if (f.task_id, f.criterion_id) not in known or f.code != UNREAD]
    mine = [i for i, v in enumerate(out) if (v.task_id, v.criterion_id) in known and _told(v)]
    at = {i: known[out[i].task_id, out[i].criterion_id] for i in mine}
    places = {i: x for i, c in at.items() if (x := _place(out[i], c)) is not None}
    first = {x == 0 for i, x in places.items() if x in (0, len(at[i].levels))}
    for i, c in at.items():
        place = _named(out[i].meta["label"], c)
        if place is None and i in places and len(first) == 1:
            place = places[i] - (True not in first)
        inside = place is not None and place in range(len(c.levels))
        if inside:
            value, meta = int(place) / (len(c.levels) - 1), {**out[i].meta, "level": int(place)}
            out[i] = replace(out[i], status="level", value=value, failure=None, meta=meta)
        elif i in places or out[i].failure == "parse":
            out[i] = replace(out[i], status="unknown", failure="parse", value=None)
            told.append(_finding(out[i], c))
    return out, told


def _told(v: Verdict) -> bool:
    return v.judge.startswith("human") and "label" in v.meta and "level" not in v.meta


def _place(v: Verdict, c: Criterion) -> float | None:
    """The number that a label is, where it is none of the levels' own."""
    label = v.meta["label"]
    return None if _named(label, c) is not None or isinstance(label, bool) else number(label)


def _named(label: Any, c: Criterion) -> int | None:
    """The level that a label names by its words or by the number before them."""
    said, x = as_text(label).strip().casefold(), number(label)
    for i, level in enumerate(c.levels):
        head, _, words = level.casefold().partition(": ")
        ends = KEY.match(head) if words else None
        if said == level.casefold() or (ends and said in (head, words)):
            return i
        if ends and ends[2] and x is not None and float(ends[1]) <= x <= float(ends[2]):
            return i
    return None


def _finding(v: Verdict, c: Criterion) -> Finding:
    return Finding(
        code=UNREAD,
        severity="error",
        message=f"the label {as_text(v.meta['label'])[:40]!r} is none of {len(c.levels)} levels "
        "of its criterion, or it is not clear from which number they are counted",
        task_id=v.task_id,
        criterion_id=v.criterion_id,
        suggestion=f"write a level's words: {', '.join(map(repr, c.levels))[:120]}",
    )
