"""Criteria with levels: in the forms that files have, and labels of people by them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from ..errors import DataError
from ..records import Criterion, Task, Verdict
from .findings import Finding
from .labels import extent, fraction, human, scale_of
from .values import absent, as_text, number, parsed_json

# a number or a range that names a level, and what it counts
STEP = (
    r"(-?\d+(?:\.\d+)?)(?:\s*[-–]\s*(\d+(?:\.\d+)?))?(?:\s*(?:%|points?|pts?|marks?|stars?)(?!\w))?"
)
# the number that a level begins with: "2", "1-2: weak", "3 - fair", "Score 4", "2 points", "50%"
OWN = re.compile(
    r"\s*[(\[]?(?:score|level|rating|grade)?\s*"
    rf"{STEP}\s*(?:\Z|[:=)\].]\s+|[-–—]\s+(?=\D))",
    re.IGNORECASE,
)
SCORED = (
    "score",
    "value",
    "points",
    "rating",
    "level",
    "label",
    "name",
)
NAMED = (
    "label",
    "name",
    "title",
    "level",
)
NOTHING = (
    "",
    "n/a",
    "na",
    "nan",
    "not applicable",
    "unknown",
    "cannot tell",
)
WORDED = (
    "description",
    "text",
    "label",
    "name",
    "criteria",
    "definition",
    "level",
)
UNREAD, SCALE = "unreadable-label", "label-scale"
TEXTS = "write levels as a list of texts, worst first"
BINARY = ("binary", "boolean", "bool", "yes/no", "yes_no", "met/unmet", "pass/fail", "true/false")


def levels_of(value: Any, scores: Any = None) -> tuple[str, ...]:
    """The levels' texts, worst first; () for none. DataError where they cannot be read, or are not
    evenly spaced: the kit pays them in equal steps; or where a list's numbers do not rise: 1 is the
    best of German marks.

    value : a list of texts or numbers, an object number -> text, or a list of objects with a text
    and, if they like, a number; in one text, "1. bad / 2. fair", each with its number. scores : a
    list of numbers beside a list of texts.

    >>> levels_of({"1": "bad", "0": "none", "2": "good"})
    ('0: none', '1: bad', '2: good')
    >>> levels_of([1, 3, 5])
    ('1', '3', '5')
    """
    value = parsed_json(value)
    if absent(value) or value in ([], {}, ""):
        return ()
    parts = re.split(r"\s*(?:[\n;|]|\s/\s)\s*", value.strip()) if isinstance(value, str) else []
    value = parts if all(map(ends_of, parts or [""])) else value
    if isinstance(value, Mapping):
        pairs = list(value.items())
    elif isinstance(value, (list, tuple)):
        given = scores if isinstance(scores, list) and len(scores) == len(value) else [None]
        pairs = [_pair(x, s) for x, s in zip(value, [*given, *[None] * len(value)], strict=False)]
    else:
        pairs = []
    texts = [t for _, t in pairs]
    none = [t for t in texts if as_text(t).strip().casefold() in NOTHING]
    DataError.first(
        (
            len(pairs) < 2 or not all(isinstance(t, (str, int, float)) for t in texts),
            "the levels cannot be read",
            None,
            TEXTS,
        ),
        (
            none,
            f"a level is {next(iter(none), None)!r}, which is worth nothing",
            None,
            "leave it out: a judge may always say that it cannot tell",
        ),
    )
    if any(k is not None for k, _ in pairs):
        texts = [f"{as_text(k)}: {as_text(t)}" for k, t in pairs]
        if not all(map(ends_of, texts)):
            raise DataError("the levels have no order: their keys are no numbers", fix=TEXTS)
    texts = list(map(as_text, texts))
    same = Counter(t.strip().casefold() for t in texts)
    if again := next((t for t in texts if same[t.strip().casefold()] > 1), None):
        raise DataError(
            f"the level {again[:40]!r} stands twice: a label of these words may mean either",
            fix="write each level once, worst first",
        )
    ends = list(map(ends_of, texts))
    if not all(ends):
        return tuple(texts)
    if ends != sorted(ends) and all(k is None for k, _ in pairs):
        raise DataError(
            f"the levels go from {texts[0][:30]!r} to {texts[-1][:30]!r} and do not rise: "
            "which is the best?",
            fix="write them worst first, or as an object number -> text",
        )
    return _spaced(sorted((low, text) for (low, _), text in zip(ends, texts, strict=True)))


def ends_of(level: str) -> tuple[float, float] | None:
    """The number that a level begins with, twice, or the two of a range; None in words.

    >>> ends_of("3 - fair"), ends_of("1-2: weak"), ends_of("Score 4"), ends_of("3 items")
    ((3.0, 3.0), (1.0, 2.0), (4.0, 4.0), None)
    """
    m = OWN.match(level)
    return (float(m[1]), float(m[2] or m[1])) if m else None


def _pair(item: Any, score: Any) -> tuple[Any, Any]:
    """(number or None, text or None) of one level: its name, its text, and what else it says."""
    if not isinstance(item, Mapping):
        return score, item
    number_of = _score_in(item)
    said = {k: v for k, v in item.items() if isinstance(v, str) and v.strip() and k != number_of}
    text = next((k for k in WORDED if k in said), None)
    if text is None:
        return score if number_of is None else item[number_of], None
    name = next((k for k in NAMED if k in said and k != text), None)
    words = said[text] if name is None else f"{said[name]}: {said[text]}"
    more = [f"{k}: {v}" for k, v in said.items() if k not in (text, name)]
    words = f"{words} ({'; '.join(more)})" if more else words
    return score if number_of is None else item[number_of], words


def _score_in(item: Mapping[str, Any]) -> str | None:
    """The field of a level's object that holds its number."""
    return next((k for k in SCORED if number(item.get(k)) is not None), None)


def unread_of(value: Any) -> dict[str, Any]:
    """What the objects of levels say beyond texts and a number, by name.

    >>> unread_of([{"score": 1, "text": "bad", "weight": 3}])
    {'levels: weight': 3}
    """
    each = (x for x in parsed_json(value) or () if isinstance(x, Mapping))
    return {
        f"levels: {k}": v
        for x in each
        for k, v in x.items()
        if k != _score_in(x) and not absent(v) and not isinstance(v, str)
    }


def scale_in(item: Mapping[str, Any]) -> str | None:
    """The scale that a criterion's object names; None for none.

    >>> scale_in({"scale": "Yes/No"}), scale_in({"scale": " "}), scale_in({"scale": "Points"})
    ('binary', None, 'points')
    """
    said = "" if absent(item.get("scale")) else as_text(item["scale"]).strip().casefold()
    return "binary" if said in BINARY else said or None


def scaled(item: Mapping[str, Any], levels: Sequence[str]) -> tuple[str, float | None]:
    """(scale, points) of a criterion's object with these levels; points without a scale are its
    weight. DataError where what it says does not fit.

    >>> scaled({"scale": "points", "points": 5}, ()), scaled({"points": 5}, ())
    (('points', 5.0), ('binary', None))
    """
    said, top = scale_in(item), number(item.get("points"))
    if said == "points" and not levels and (top or 0) > 0:
        return said, top
    scale = "ordinal" if levels else "binary"
    if said and said != scale:
        unsaid = said == "points" and not levels
        fits = f"does not fit a criterion with {len(levels)} levels"
        raise DataError(
            f"the scale {said[:40]!r} {'lacks its number of points, above 0' if unsaid else fits}",
            fix="scale: ordinal needs levels, scale: points a number of points",
        )
    weight = None if top is None or said else number(item.get("weight"))
    if weight not in (None, top):
        raise DataError(
            f"the criterion has the weight {weight:g} and {top:g} points",
            fix="keep one, or say scale: points",
        )
    return scale, None


def _spaced(order: Sequence[tuple[float, str]]) -> tuple[str, ...]:
    steps = [b[0] - a[0] for a, b in pairwise(order)]
    if max(steps) - min(steps) > 1e-9 * max(steps) or not min(steps):
        said = f"the levels {', '.join(f'{x:g}' for x, _ in order)} are not evenly spaced"
        raise DataError(
            f"{said}, and are paid in equal steps",
            fix="give the levels that lie between, or a criterion for each step",
        )
    return tuple(text for _, text in order)


def by_levels(
    verdicts: Iterable[Verdict], findings: Iterable[Finding], tasks: Iterable[Task]
) -> tuple[list[Verdict], list[Finding]]:
    """Verdicts and findings, labels on a criterion with levels or points read by its own:
    by a level's words or number, by its place, from 0 or from 1 as the labels of the set show, or
    by points, from 0.

    "partly" and "50%" are that part of the way from the worst to the best.
    A label that is none of them, or that may be counted from either, is unknown and an error. The
    numbers on other criteria then have a scale without these.
    """
    every = {(t.id, c.id): c for t in tasks for c in t.criteria}
    scaled = {key: c for key, c in every.items() if c.levels or (c.points or 1) != 1}
    asked = {task for task, _ in every}
    # a null on another task's criterion is no label: Parquet fills objects so
    out = [
        v
        for v in verdicts
        if v.meta.get("label", "") is not None or v.task_id not in asked or _on(v) in every
    ]
    told = [
        replace(f, severity="error") if f.code == UNREAD and _on(f) in every else f
        for f in findings
    ]
    own: dict[int, Criterion] = {}
    numbers: dict[int, float] = {}
    for i, v in enumerate(out):
        if "label" not in v.meta or "level" in v.meta:
            continue
        label = v.meta["label"]
        c = scaled.get(_on(v))
        x = None if isinstance(label, bool) else number(label)
        if c is not None:
            own[i] = c
            part = fraction(label)  # "2/4" of five levels: their number, counted from 0
            if part and part[1] == len(c.levels) - 1 and not _numbered(c):
                x = part[0]
        if x is not None:
            numbers[i] = x
    if not own:
        return out, told
    told = [f for f in told if f.code != UNREAD or _on(f) not in scaled]
    places = _places(out, own, numbers)
    for i, c in own.items():
        v = out[i]
        place = _share(v, c) if places[i] is None else places[i]
        if place is not None:
            meta = {**v.meta, "level": place}
            out[i] = replace(v, status="level", value=place / _top(c), failure=None, meta=meta)
        elif i in numbers or v.failure == "parse" or (c.levels and fraction(v.meta["label"])):
            out[i] = replace(v, status="unknown", failure="parse", value=None)
            told.append(_finding(v, c))
    flat = {i: x for i, x in numbers.items() if i not in own}
    if len(flat) < len(numbers):
        told = _again(out, told, flat)
    return out, told


def _on(x: Verdict | Finding) -> tuple[str | None, str | None]:
    return x.task_id, x.criterion_id


def _top(c: Criterion) -> float:
    return len(c.levels) - 1 if c.levels else c.points or 1.0


def _places(
    out: Sequence[Verdict], own: Mapping[int, Criterion], numbers: Mapping[int, float]
) -> dict[int, float | None]:
    """The level or points of each label; None of those that are not clear."""
    places = {i: _named(out[i].meta["label"], c) for i, c in own.items()}
    unread = (i for i, place in places.items() if place is None and not _numbered(own[i]))
    left = [i for i in unread if i in numbers]
    points = [(numbers[i], _top(own[i])) for i in left if not own[i].levels]
    # shares where no number exceeds 1, unless all are points of criteria that are worth less
    small = all(x <= 1 for x, _ in points)
    shares = small and any(top > 1 or x > top for x, top in points)
    either = all(x in (0, 1) and top > 1 for x, top in points)
    ends = ((numbers[i], len(own[i].levels)) for i in left if own[i].levels)
    starts = {x == 0 for x, n in ends if x in (0, n)}
    for i in left:
        top = 1.0 if own[i].levels else _top(own[i])
        stated = out[i].meta.get("scale") == f"0 to {top:g} points"
        unit = top if shares and not stated else 1.0
        if not (either and unit > 1 and numbers[i]):
            places[i] = _place(numbers[i] * unit, own[i], starts)
    return places


def _place(x: float, c: Criterion, starts: set[bool]) -> float | None:
    """The level or points that a number means; None where that is not clear.

    starts : whether levels are counted from 0, as the labels of the set show.
    """
    if c.levels:
        place = x - (True not in starts)
        return place if len(starts) == 1 and place in range(len(c.levels)) else None
    return x if 0 <= x <= _top(c) else None


def _again(out: list[Verdict], told: list[Finding], flat: Mapping[int, float]) -> list[Finding]:
    """Numbers on criteria without a scale of their own, read as if those with one were not there:
    beside levels 1 to 3 a 1 for "met" was the worst of 1 to 5. What is left of the findings."""
    scale = scale_of(*extent(flat.values()))
    good = {}
    for i, x in flat.items():
        v = out[i]
        made, good[_on(v)] = human(*v.ids, x, scale=scale)
        out[i] = replace(v, status=made.status, value=made.value, failure=made.failure)
    told = [f for f in told if f.code != UNREAD or not good.get(_on(f))]
    return told if scale else [f for f in told if f.code != SCALE]


def _named(label: Any, c: Criterion) -> float | None:
    """The level that a label names by its words or by the number before them; 3 points in "3/5"."""
    said = as_text(label).strip().casefold()
    x = number(label)
    head, _, tail = said.partition("/")
    place, whole = fraction(said) or (None, None)
    if c.points and whole == c.points:
        return place if 0 <= place <= c.points else None
    if whole == len(c.levels) and not _numbered(c):  # "2/3", two of three
        return int(place) - 1 if place in range(1, len(c.levels) + 1) else None
    if tail and _numbered(c) and _named(tail, c) == len(c.levels) - 1:
        return _named(head, c)
    own = [i for i, level in enumerate(c.levels) if said == level.strip().casefold()]
    fits = own or [i for i, level in enumerate(c.levels) if _calls(said, x, level)]
    return fits[0] if len(fits) == 1 else None


def _calls(said: str, x: float | None, level: str) -> bool:
    """Whether a label's words, or its number, mean a level."""
    level = level.casefold()
    ends = ends_of(level)
    if ends is None or said == level.partition(": ")[0]:
        return said == level.partition(": ")[0]
    words = level[OWN.match(level).end() :].strip()
    named = words and said in (words, level.removesuffix(words).rstrip(" :=).-–—"))
    return bool(named or (x is not None and ends[0] <= x <= ends[1]))


def _share(v: Verdict, c: Criterion) -> float | None:
    """The level or points of which a label gives the share, to the digits that it has."""
    said, sign, _ = as_text(v.meta["label"]).partition("%")
    if v.status != "level" or not sign:
        return None
    place, digits = round(v.value * _top(c)), len(said.strip().partition(".")[2])
    wide = 0.005 * 0.1**digits + 1e-9
    return place if abs(v.value - place / _top(c)) <= wide else None


def _numbered(c: Criterion) -> bool:
    """True where each level begins with its number, or is one."""
    return bool(c.levels) and all(map(ends_of, c.levels))


def _finding(v: Verdict, c: Criterion) -> Finding:
    scale = f"0 to {_top(c):g} points"
    fix = f"write points as 3/{_top(c):g}, or met or unmet"
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
