"""The JSON of a judge's reply: decoded, also where it breaks off, and its parts by criterion id.

Ids, never positions. A criterion that is named twice, or whose part says two things, is none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..records import Criterion
from .prose import taken_back
from .words import Reading, cleaned, reading, word

BROKEN = "(breaks off)"
VERDICTS = ("verdict", "status", "rating", "answer")
REASONS = ("reason", "rationale", "explanation")
IDS = ("id", "criterion_id", "criterion")
WRAPPERS = frozenset(
    "verdict verdicts result results criteria criterion evaluation evaluations judgment judgments "
    "judgement judgements rating ratings score scores grade grades assessment assessments "
    "output response answer answers data rubric".split()
)
DECIDES = re.compile(r"verdict|final|correct|actual|status|rating|decision|^met$", re.I)
RETRACTS = re.compile(
    r"negat|overrul|retract|withdr|void|invalid|supersed|revok|ignor|quot|inject|example|draft",
    re.I,
)
SCORES = ("score", "points", "value", "grade", "mark", "marks")
MOST = ("max", "maximum", "out_of", "of", "max_score", "max_points", "total")
_BLANK = re.compile(r"\s*")


class _Twice(list[Any]):
    """All values of a key that a JSON object names more than once."""


def _hook(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for k, v in pairs:
        if k in out:
            out[k] = _Twice([*(out[k] if isinstance(out[k], _Twice) else [out[k]]), v])
        else:
            out[k] = v
    return out


_DECODER = json.JSONDecoder(object_pairs_hook=_hook, parse_constant=str, strict=False)


def asked_form(
    text: str, ids: Sequence[str], criteria: Sequence[Criterion]
) -> list[Reading] | None:
    """The readings of a reply that has the asked form to the letter, as nearly all have; else None.

    Half of the work of reading is to look for what such a reply does not hold.
    """
    n = len(ids)
    if text[:1] != "{" or "\\u00" in text or any(text.count(f'"{i}"') != 1 for i in ids):
        return None
    if text.count('"verdict"') != n or text.count('"reason"') != n:  # none is named twice
        return None
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        return None
    out = []
    for i, c in zip(ids, criteria, strict=True):
        item = whole.get(i)
        if type(item) is not dict or len(item) != 2 or c.scale != "binary":
            return None
        verdict, reason = item.get("verdict"), item.get("reason")
        if verdict not in ("met", "unmet") or type(reason) is not str:
            return None
        value = 1.0 if verdict == "met" else 0.0
        out.append(Reading(status=verdict, value=value, reason=cleaned(reason)))
    return out if len(whole) == n else None


def decoded(text: str) -> Any:
    """The object or list that the whole text is, else None."""
    text = text.strip()
    got = raw_value(text, 0) if text[:1] in ("{", "[") else None
    return got[0] if got and got[1] == len(text) else None


def raw_value(text: str, at: int) -> tuple[Any, int] | None:
    """(value, its end) of the JSON that begins at a place; None where it is not whole."""
    value, end = attempt(text, at)
    return None if value is None else (value, end)


def attempt(text: str, at: int) -> tuple[Any, int]:
    """(value, its end), or (None, the place where it breaks)."""
    try:
        return _DECODER.raw_decode(text, at)
    except json.JSONDecodeError as e:
        return None, max(e.pos, at)
    except (ValueError, RecursionError):  # a number of 5,000 digits, 1,000 brackets
        return None, len(text)


def partial(text: str, at: int, asked: set[str], depth: int = 0) -> tuple[int, list[Any]]:
    """(where it breaks, finished parts) of an object or list that is not whole.

    An asked criterion's own object must be closed; a wrapper ({"verdicts": [...) need not.
    """
    out: list[Any] = []
    listed, at = text[at] == "[", at + 1
    while True:
        name, at = None, _blank(text, at)
        if not listed:
            key, at = attempt(text, at)
            at = _blank(text, at)
            if not isinstance(key, str) or text[at : at + 1] != ":":
                return at, out
            name, at = key, _blank(text, at + 1)
        value, end = attempt(text, at)
        if value is None and text[at : at + 4] != "null":
            ours = (name or "").casefold() in asked
            if ours or depth > 2 or text[at : at + 1] not in ("{["[listed:], "["):
                return end, [*out, {name: BROKEN}] if ours else out
            end, inner = partial(text, at, asked, depth + 1)
            return end, out + inner
        out.append([value] if listed else {name: value})
        at = _blank(text, end)
        if text[at : at + 1] != ",":
            return at, out
        at += 1


def _blank(text: str, at: int) -> int:
    return _BLANK.match(text, at).end()  # type: ignore[union-attr]


def alone(text: str, at: int, end: int) -> bool:
    """Whether nothing but marks of a code block stands before a JSON value on its line."""
    before = text[text.rfind("\n", 0, at) + 1 : at]
    return not before.strip(" \t`*") or before.strip(" \t`*").casefold() == "json"


def occurrences(
    value: Any, ids: Sequence[str]
) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    """Mentions of asked ids in a decoded reply, by id: (as answers, aside); others are left out.

    Accepts the asked form (an object keyed by id) and a list of objects with an "id" each; never
    positions. Known wrappers ({"verdicts": ...}) are looked into; what stands under any other key
    ({"draft": ...}, {"the_answer_claims": ...}) is aside: it can contradict, never decide.
    """
    fold = {i.casefold(): i for i in ids}
    said: dict[str, list[Any]] = {}
    aside: dict[str, list[Any]] = {}
    if len(ids) == 1 and isinstance(value, dict) and "verdict" in value:
        if any(k.strip().casefold() in fold for k in value):
            aside[ids[0]] = [value["verdict"]]
        else:  # one question, one answer: nothing to mix up
            name = value.get("id", ids[0])
            own = fold.get(name.strip().casefold()) if isinstance(name, str) else None
            return ({own: [value]} if own else {}), {}
    _mentions(value, fold, said, aside, 0)
    return said, aside


def _mentions(
    value: Any,
    fold: Mapping[str, str],
    out: dict[str, list[Any]],
    aside: dict[str, list[Any]],
    depth: int,
) -> None:
    if depth > 3:
        return
    if isinstance(value, dict):
        for k, v in value.items():
            name = k.strip().casefold()
            if name in fold:
                out.setdefault(fold[name], []).extend(v if isinstance(v, _Twice) else [v])
            elif isinstance(v, (dict, list)):
                into = out if name in WRAPPERS else aside
                _mentions(v, fold, into, aside, depth + 1)
    elif isinstance(value, list):
        for item in value:
            name = next((item[k] for k in IDS if k in item), None) if _is_item(item) else None
            own = fold.get(name.strip().casefold()) if isinstance(name, str) else None
            if own is not None:
                out.setdefault(own, []).append(item)
            elif isinstance(item, (dict, list)):
                _mentions(item, fold, out, aside, depth + 1)


def _is_item(item: Any) -> bool:
    return isinstance(item, dict) and any(k.strip().casefold() in VERDICTS for k in item)


def one(c: Criterion, name: str, items: Sequence[Any], how: str) -> Reading:
    """One reading from all mentions in one JSON value; named twice is not an answer."""
    got = [_item(c, name, x, how) for x in items]
    if len(got) == 1:
        return got[0]
    differ = len({(r.status, r.value) for r in got}) > 1
    failure = "contradiction" if differ else "missing"
    return Reading(failure=failure, how=how, reason="named twice in one reply")


def _item(c: Criterion, name: str, item: Any, how: str) -> Reading:
    """One criterion's part of a JSON reply; all that it says of the verdict must agree."""
    if not isinstance(item, dict):
        return reading(c, item, None, None, how)
    low = [(k.strip().casefold(), v) for k, v in item.items()]
    raws = [v for want in VERDICTS for k, v in low if k == want]
    reason = next((item[k] for k in REASONS if isinstance(item.get(k), str)), None)
    states = {state for r in raws if (state := word(c, r)) is not None}
    states |= _further(c, low) if raws else set()
    twice = any(isinstance(r, _Twice) for r in raws)
    if len(states) > 1 or twice or _elsewhere(c, name, low):
        return Reading(failure="contradiction", reason=reason, how=how)
    return reading(c, raws[0] if raws else None, reason, item.get("confidence"), how)


def _further(c: Criterion, fields: Sequence[tuple[str, Any]]) -> set[tuple[str, float | None]]:
    """What other fields say of the verdict: {"verdict": "met", "corrected_verdict": "unmet"}."""
    out = set()
    for k, v in fields:
        if k in (*VERDICTS, *REASONS, *IDS, "confidence"):
            continue
        out.add(_flag(c, k, v))
        back = taken_back(v) if isinstance(v, str) and c.scale == "binary" else None
        out.add(word(c, back))
        inner = (
            [x for n, x in v.items() if n.casefold() in VERDICTS] if isinstance(v, dict) else [v]
        )
        sure = isinstance(v, (str, dict)) or DECIDES.search(k)
        out |= {word(c, x) for x in inner if sure}
    return {state for state in out if state is not None and state[0] != "unknown"}


def _flag(c: Criterion, k: str, v: Any) -> tuple[str, float | None] | None:
    """What a field that is a switch or a number says: {"unmet": true}, {"score": 0}."""
    if isinstance(v, bool):
        return _switch(c, k, v)
    if not isinstance(v, (int, float)):
        return None
    if k in SCORES and c.scale == "binary":
        return {0: ("unmet", 0.0), 1: ("met", 1.0)}.get(v)
    if k in SCORES and c.scale == "points":
        return word(c, v) or (k, None)
    return (k, None) if k in MOST and c.scale == "points" and v != (c.points or 1.0) else None


def _switch(c: Criterion, k: str, on: bool) -> tuple[str, float | None] | None:
    state = word(c, k) if c.scale == "binary" else None
    if state is not None and state[1] is not None:
        return word(c, on == (state[0] == "met"))
    back = on if RETRACTS.search(k) else not on and k in ("valid", "final")
    return (k, None) if back else None


def _elsewhere(c: Criterion, name: str, fields: Sequence[tuple[str, Any]]) -> bool:
    """True for a part that bears the id of another criterion."""
    mine = {name.casefold(), c.id.casefold()}
    ids = [v for k, v in fields if k in IDS[:2] and isinstance(v, str)]
    return any(v.strip().casefold() not in mine for v in ids)
