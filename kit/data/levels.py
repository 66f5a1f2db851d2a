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
from .labels import extent, human, scale_of
from .values import absent, as_text, number, parsed_json

KEY = re.compile(r"\s*(-?\d+(?:\.\d+)?)\s*(?:[-–]\s*(\d+))?\s*\Z")  # "2", or "1-2"
SCORED = ("score", "value", "points", "rating", "level")
WORDED = ("description", "text", "label", "name", "criteria", "definition", "level")
UNREAD, SCALE = "unreadable-label", "label-scale"
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
    """Verdicts and findings, those of people on a criterion with levels or points read by its own:
    by a level's words or number, by its place, from 0 or from 1 as the labels of the set show, or
    by points, from 0.

    A label that is none of them, or that may be counted from either, is unknown and an error. The
    numbers on other criteria then have a scale without these.
    """
    out, told = list(verdicts), list(findings)
    every = {(t.id, c.id): c for t in tasks for c in t.criteria}
    known = {key: c for key, c in every.items() if c.levels or (c.points or 0) > 1}
    mine = [i for i, v in enumerate(out) if _told(v)] if known else []
    at = {i: every[k] for i in mine if (k := (out[i].task_id, out[i].criterion_id)) in every}
    own = {i: c for i, c in at.items() if (out[i].task_id, out[i].criterion_id) in known}
    if not own:
        return out, told
    told = [f for f in told if (f.task_id, f.criterion_id) not in known or f.code != UNREAD]
    numbers = {i: x for i in at if (x := _number(out[i])) is not None}
    read = {
        **_on_levels(out, {i: c for i, c in own.items() if c.levels}, numbers),
        **_on_points(out, {i: c for i, c in own.items() if not c.levels}, numbers),
    }
    for i, place in read.items():
        c, v = own[i], out[i]
        if place is None:
            out[i] = replace(v, status="unknown", failure="parse", value=None)
            told.append(_finding(v, c))
        else:
            value, meta = place / _top(c), {**v.meta, "level": place}
            out[i] = replace(v, status="level", value=value, failure=None, meta=meta)
    if numbers.keys() & own.keys():
        flat = {i: x for i, x in numbers.items() if i not in own}
        told = _again(out, told, flat)
    return out, told


def labelled(value: float | None, c: Criterion) -> str:
    """A value as the label that is read as it on this criterion.

    >>> c = Criterion(id="c", text="", scale="points", points=5)
    >>> labelled(0.6, c), labelled(0.0, c), labelled(None, c)
    ('3/5', 'unmet', 'unknown')
    """
    if value is None or value in (0, 1):
        return {1.0: "met", 0.0: "unmet", None: "unknown"}[value]
    place = value * _top(c)
    if c.levels and abs(place - round(place)) < 1e-9:
        return c.levels[round(place)]
    return f"{place:g}/{c.points:g}" if (c.points or 0) > 1 else f"{value}"


def _top(c: Criterion) -> float:
    return len(c.levels) - 1 if c.levels else c.points or 1.0


def _told(v: Verdict) -> bool:
    return v.judge.startswith("human") and "label" in v.meta and "level" not in v.meta


def _number(v: Verdict) -> float | None:
    label = v.meta["label"]
    return None if isinstance(label, bool) else number(label)


def _on_levels(
    out: Sequence[Verdict], at: Mapping[int, Criterion], numbers: Mapping[int, float]
) -> dict[int, float | None]:
    """The level of each label that names one, or lies between two; None of those that cannot be read."""
    named: dict[int, float | None] = {}
    named |= {i: _named(out[i].meta["label"], c) for i, c in at.items()}
    places = {i: numbers[i] for i, level in named.items() if level is None and i in numbers}
    named |= {i: x * _top(at[i]) for i, x in places.items() if 0 < x < 1}  # of several raters
    first = {x == 0 for i, x in places.items() if x in (0, len(at[i].levels))}
    if len(first) == 1:
        counted = {i: x - (True not in first) for i, x in places.items()}
        named |= {i: int(x) for i, x in counted.items() if x in range(len(at[i].levels))}
    return {
        i: level
        for i, level in named.items()
        if level is not None or i in places or out[i].failure == "parse"
    }


def _on_points(
    out: Sequence[Verdict], at: Mapping[int, Criterion], numbers: Mapping[int, float]
) -> dict[int, float | None]:
    """The points of each label that gives some; shares of them where no number exceeds 1, and
    nothing where 0 and 1 alone occur: a 1 may be one point, or all."""
    given = {i: numbers[i] for i in at if i in numbers}
    top = max(given.values(), default=0.0)
    shares = top <= 1 and any(0 < x < 1 for x in given.values())
    read: dict[int, float | None] = {i: None for i in at if out[i].failure == "parse"}
    for i, x in given.items():
        points = x * _top(at[i]) if shares else x
        clear = 0 <= points <= _top(at[i]) and (shares or top > 1 or not x)
        read[i] = points if clear else None
    for i, c in at.items():
        head, _, tail = as_text(out[i].meta["label"]).partition("/")
        x = number(head)
        if x is not None and number(tail) == c.points and 0 <= x <= _top(c):
            read[i] = x
    return read


def _again(out: list[Verdict], told: Sequence[Finding], flat: Mapping[int, float]) -> list[Finding]:
    """Numbers on criteria without a scale of their own, read as if those with one were not there:
    beside levels 1 to 3 a 1 for "met" was the worst of 1 to 5. What is left of the findings."""
    scale = scale_of(*extent(flat.values()))
    for i, x in flat.items():
        v = out[i]
        made, _ = human(v.task_id, v.response_id, v.criterion_id, x, scale=scale, judge=v.judge)
        out[i] = replace(v, status=made.status, value=made.value, failure=made.failure)
    odd = {(v.task_id, v.criterion_id) for v in out if v.failure == "parse"}
    good = {(out[i].task_id, out[i].criterion_id) for i in flat} - odd
    said = [f for f in told if f.code != SCALE or scale]
    return [f for f in said if f.code != UNREAD or (f.task_id, f.criterion_id) not in good]


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
    scale, fix = f"0 to {_top(c):g} points", f"write points as 3/{_top(c):g}, or met or unmet"
    if c.levels:
        scale = f"{len(c.levels)} levels"
        fix = f"write a level's words: {', '.join(map(repr, c.levels))[:120]}"
    return Finding(
        code=UNREAD,
        severity="error",
        message=f"the label {as_text(v.meta['label'])[:40]!r} is none of {scale} "
        "of its criterion, or it is not clear from which number they are counted",
        task_id=v.task_id,
        criterion_id=v.criterion_id,
        suggestion=fix,
    )
