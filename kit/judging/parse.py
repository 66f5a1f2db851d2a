"""How a reply is read: one reading per criterion, or unknown with the cause.

    {"call": "4821", "c1": {"reason": "...", "verdict": "met"}, "c2": {...}}

Verdicts are recognised by their ids. One closed <think> block in front and one code fence
around the whole object are taken off. Anything else that was not requested makes the whole
reply unknown ("parse"). Nothing is repaired, because a repaired reply can turn into the
opposite verdict.
"""

import contextlib
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from ..data.files import parse_json
from ..errors import DataError
from ..records import Criterion
from .prompt import CANNOT_TELL, SINGLE_ANSWER
from .question import Question, Reading, Reply, unknown

WORDS: dict[str, Literal["met", "unmet"]] = {"yes": "met", "no": "unmet"}
_THOUGHT = re.compile(r"<think>.*?</think>", re.S)
_FENCE = re.compile(r"```(?:json)?[ \t]*\n(.*)\n```", re.S)


def read_reply(
    text: str, question: Question, *, confidence: bool = False
) -> list[Reading]:
    """A reading for each place. confidence : one in percent was requested; it may be absent.

    >>> from kit.records import Response, Task
    >>> criteria = [Criterion(id="a", text=""), Criterion(id="b", text="")]
    >>> answer = Response(task_id="t", id="r", text="")
    >>> question = Question.of(Task(id="t", prompt="p"), [answer], criteria)
    >>> met, unmet = [f'{{"reason": "x", "verdict": "{v}"}}' for v in ("met", "unmet")]
    >>> reply = '{"call": "", "c2": ' + unmet + ', "c1": ' + met + "}"
    >>> [r["status"] for r in read_reply(reply, question)]
    ['met', 'unmet']
    >>> [r["failure"] for r in read_reply(reply.replace('""', '"1111"'), question)]
    ['parse', 'parse']
    """
    readings = []
    try:
        rows = _read_object(text, question.nonce)
        if tuple(question.answers) == SINGLE_ANSWER:
            rows = {"": rows}
        _require_only(question.answers, rows)
        for name in question.answers:
            row = rows.get(name, {})
            _require_only(question.criteria, row)
            for place, criterion in question.criteria.items():
                readings.append(_read_criterion(row, place, criterion, confidence))
    except (DataError, ValueError, RecursionError) as e:
        what = f"the reply is not in the requested form: {e}"
        start = text.strip()[:80] or "(empty)"
        return [unknown(f"{what:.200}; it begins: {start!a}")] * len(
            question.places
        )
    return readings


def _read_object(text: str, nonce: str) -> dict[str, Any]:
    """The JSON object of a reply without its nonce; DataError, ValueError for another form."""
    body = text.strip()
    # Only a closed thought in front: an open one may hold a draft with other verdicts.
    if body.startswith("<think>"):
        body = _THOUGHT.sub("", body, count=1).strip()
    if fenced := _FENCE.fullmatch(body):
        body = fenced[1]
    # No name twice, of which JSON keeps the last, an attacker's choice; no NaN.
    rows = parse_json(body)
    # Another nonce answers another question: a late reply on a kept connection.
    if not isinstance(rows, dict) or rows.pop("call", None) != nonce:
        raise ValueError('it is not an object with the "call" of this request')
    return rows


def _require_only(names: Iterable[str], rows: Any) -> None:
    if not isinstance(rows, dict) or not set(rows) <= set(names):
        raise ValueError("it has an id that was not requested")


def _read_criterion(
    rows: Mapping[str, Any], name: str, c: Criterion, confidence: bool
) -> Reading:
    if name not in rows:
        return unknown("the reply leaves this criterion out", "missing")
    row = rows[name]
    required = {"reason", "verdict"}
    # A confidence may be absent, and must be where it was not requested.
    allowed = {*required, "confidence"} if confidence else required
    if (
        not isinstance(row, dict)
        or not required <= set(row) <= allowed
        or not isinstance(row["reason"], str)
    ):
        raise ValueError("the fields of a verdict are not the requested ones")
    verdict, reason = row["verdict"], row["reason"]
    if verdict == CANNOT_TELL:
        return unknown(reason, "abstain")
    reading = _read_verdict(verdict, c)
    if not reading:
        return unknown(f"not an allowed verdict: {verdict!a:.60}")
    percent: Any = row.get("confidence")
    # A confidence belongs to the verdict, P(met) to the criterion.
    if is_number(percent) and 0 <= percent <= 100 and verdict in ("met", "unmet"):
        reading["p"] = percent / 100 if verdict == "met" else 1 - percent / 100
    reading["reason"] = reason
    return reading


def _read_verdict(verdict: Any, c: Criterion) -> Reading:
    """status and value, {} for a word or number that the scale does not allow."""
    if c.scale == "points":
        if not is_number(verdict) or not 0 <= verdict <= c.top:
            return {}
        return {"status": "level", "value": verdict / c.top}
    # No synonyms, no other case: what is nearly a verdict may mean the opposite.
    if verdict not in (c.levels or ("met", "unmet")):
        return {}
    if c.levels:
        return {"status": "level", "value": c.levels.index(verdict) / c.top}
    return {"status": verdict}


def is_number(x: Any) -> bool:
    """True for a finite int or float; False for a bool.

    >>> is_number(2), is_number(True), is_number(float("inf"))
    (True, False, False)
    """
    return type(x) in (int, float) and abs(x) < float("inf")


def read_one_word(reply: Reply) -> Reading:
    """yes or no, with P(met) from the candidates of the first token.

    >>> top = [{"token": "yes", "logprob": -0.5}, {"token": "no", "logprob": -1.5}]
    >>> row = {"token": "yes", "top_logprobs": top}
    >>> reading = read_one_word(Reply(text="Yes.", logprobs={"content": [row]}))
    >>> reading["status"], round(reading["p"], 3)
    ('met', 0.731)
    """
    word = reply.text.strip().strip(".").lower()
    if word not in WORDS:
        return unknown(f"neither yes nor no: {reply.text!a:.60}")
    return {
        "status": WORDS[word],
        "p": met_share(
            _first_candidates(reply.logprobs), {"yes": True, "no": False}
        ),
    }


def _first_candidates(logprobs: Any) -> list[tuple[str, Any]]:
    """The candidates of the first word; [] for another form than documented."""
    with contextlib.suppress(LookupError, TypeError):
        for first in logprobs["content"]:
            # A line break may stand before the word.
            if str(first["token"]).strip():
                return [
                    (str(row["token"]), row["logprob"])
                    for row in first["top_logprobs"]
                ]
    return []


def met_share(
    candidates: Iterable[tuple[str, Any]], words: Mapping[str, bool]
) -> float | None:
    """P(met) from the candidates of one token; None where none is one of the words.

    candidates : (token, log-probability). words : which words mean "met".
    """
    mass = {True: 0.0, False: 0.0}
    for token, logprob in candidates:
        # A model spreads a word over several tokens: "Yes", " yes", "YES".
        word = token.strip().lower()
        if word in words and is_number(logprob) and logprob <= 0:
            mass[words[word]] += math.exp(logprob)
    total = sum(mass.values())
    return mass[True] / total if total else None
