"""Read a judge's reply strictly: one verdict per criterion, or unknown with the cause.

    {"call": "4821", "c1": {"reason": "...", "verdict": "met"}, "c2": {...}}

Verdicts are found by their ids. One closed <think> block in front and one code fence
around the whole object are taken off. Anything else that was not requested makes the
whole reply unknown ("parse"). Nothing is repaired, because a repaired reply can turn
into the opposite verdict.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..records import Criterion

CANNOT = "cannot_tell"
ALONE = ("",)  # the id of an answer that is alone in its call
_THOUGHT = re.compile(r"<think>.*?</think>", re.S)
_FENCE = re.compile(r"```(?:json)?[ \t]*\n(.*)\n```", re.S)
Criteria = Sequence[Criterion]
Reading = dict[str, Any]  # fields of a Verdict: status, value, p, reason, failure


def allowed(criterion: Criterion) -> list[str]:
    """The verdicts that a reply may give for a criterion."""
    if criterion.scale == "points":
        return [f"a number from 0 to {criterion.points:g}", CANNOT]
    return [*(criterion.levels or ("met", "unmet")), CANNOT]


def read(
    text: str,
    criteria: Mapping[str, Criterion],
    *,
    call: str,
    answers: Iterable[str] = ALONE,
    confidence: bool = False,
) -> dict[tuple[str, str], Reading]:
    """The readings by the ids of answer and criterion.

    criteria : by the ids of this call. call : the mark that the reply must repeat.
    answers : the ids of a group, whose reply has one object for each.
    confidence : a confidence in percent was requested; it may be absent.

    >>> criteria = {"c1": Criterion(id="a", text=""), "c2": Criterion(id="b", text="")}
    >>> met, unmet = [f'{{"reason": "x", "verdict": "{v}"}}' for v in ("met", "unmet")]
    >>> reply = '{"call": "4821", "c2": ' + unmet + ', "c1": ' + met + "}"
    >>> [r["status"] for r in read(reply, criteria, call="4821").values()]
    ['met', 'unmet']
    >>> [r["failure"] for r in read(reply, criteria, call="1111").values()]
    ['parse', 'parse']
    """
    names = tuple(answers)
    readings = {}
    try:
        rows = _parse(text, call)
        if names == ALONE:
            rows = {"": rows}
        _only(names, rows)
        for answer in names:
            row = rows.get(answer, {})
            _only(criteria, row)
            for name, c in criteria.items():
                readings[answer, name] = _reading(row, name, c, confidence)
    except ValueError as e:
        reading = refuse(f"the reply is not in the requested form: {e}")
        return {(answer, name): reading for answer in names for name in criteria}
    return readings


def refuse(reason: str, failure: str = "parse") -> Reading:
    """An unknown reading."""
    return {"status": "unknown", "failure": failure, "reason": reason[:200]}


def is_number(x: Any) -> bool:
    """True for a finite int or float; False for a bool.

    >>> is_number(2), is_number(True), is_number(float("inf"))
    (True, False, False)
    """
    return type(x) in (int, float) and abs(x) < float("inf")


def _parse(text: str, call: str) -> dict[str, Any]:
    """The JSON object of a reply without its mark; ValueError for another form."""
    body = text.strip()
    # Only a closed thought in front: an open one may hold a draft with other verdicts.
    if body.startswith("<think>"):
        body = _THOUGHT.sub("", body, count=1).strip()
    if fenced := _FENCE.fullmatch(body):
        body = fenced[1]
    try:
        rows = json.loads(
            body, object_pairs_hook=_unique, parse_constant=_no_constant
        )
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    # Another mark answers another question: a late reply on a kept connection.
    if not isinstance(rows, dict) or rows.pop("call", None) != call:
        raise ValueError("it is no object with the mark of this call")
    return rows


def _only(names: Iterable[str], rows: Any) -> None:
    if not isinstance(rows, dict) or not set(rows) <= set(names):
        raise ValueError("it has an id that was not requested")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # JSON keeps the last of two equal names, an attacker's choice.
    row = dict(pairs)
    if len(row) < len(pairs):
        raise ValueError("a name stands twice")
    return row


def _no_constant(name: str) -> float:
    # Python's json reads NaN and Infinity, which compare as no number should.
    raise ValueError(f"{name} is not JSON")


def _reading(
    rows: Mapping[str, Any], name: str, c: Criterion, confidence: bool
) -> Reading:
    if name not in rows:
        return refuse("the reply leaves this criterion out", "missing")
    row = rows[name]
    least = {"reason", "verdict"}
    most = least | {"confidence"} if confidence else least
    if not isinstance(row, dict) or not least <= set(row) <= most:
        raise ValueError("the fields of a verdict are not the requested ones")
    verdict, reason = row["verdict"], row["reason"]
    if not isinstance(reason, str):
        raise ValueError("a reason is no text")
    # Half of a surrogate pair is valid JSON, but no text that can be stored.
    reason = reason.encode("utf-8", "replace").decode()
    if verdict == CANNOT:
        return refuse(reason, "abstain")
    reading = _meaning(verdict, c)
    if not reading:
        return refuse(f"not an allowed verdict: {verdict!a:.60}")
    percent = row.get("confidence")
    # A confidence belongs to the verdict, P(met) to the criterion.
    if is_number(percent) and 0 <= percent <= 100 and verdict in ("met", "unmet"):
        reading["p"] = percent / 100 if verdict == "met" else 1 - percent / 100
    return {**reading, "reason": reason}


def _meaning(verdict: Any, c: Criterion) -> Reading:
    """status and value, {} for a word or number that the scale does not allow."""
    if c.scale == "points":
        valid = is_number(verdict) and 0 <= verdict <= c.top
        return {"status": "level", "value": verdict / c.top} if valid else {}
    # No synonyms, no other case: what is nearly a verdict may mean the opposite.
    if verdict not in (c.levels or ("met", "unmet")):
        return {}
    if c.levels:
        return {"status": "level", "value": c.levels.index(verdict) / c.top}
    return {"status": verdict}
