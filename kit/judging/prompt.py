"""What a judge call says, and how its reply is read. The wording is in `prompts/`.

Judged text is hostile. It stands between marks that depend on the text and on a secret of this
process, so that no answer can close them. Chat markup and invisible characters in it are made
harmless. The parts that calls share come first, so that a provider's prefix cache is used.

A reply becomes one reading per criterion, or unknown with the cause:

    {"call": "4821", "c1": {"reason": "...", "verdict": "met"}, "c2": {...}}

Verdicts are recognised by their ids. One closed <think> block in front and one code fence
around the whole object are taken off. Anything else that was not requested makes the whole
reply unknown ("parse"). Nothing is repaired, because a repaired reply can turn into the
opposite verdict.
"""

import contextlib
import functools
import hmac
import json
import math
import re
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from ..errors import DataError
from ..records import Criterion, strip_thinking
from ..system.texts import parse_json
from .question import Question, Reading, Reply, unknown

CANNOT_TELL = "cannot_tell"
# What a verdict has, without and with its confidence.
FIELDS = (
    '"reason" and "verdict"',
    '"reason", "verdict" and "confidence" (0 to 100 percent)',
)
# Part of every ledger key. Raise it when the wording of the user message or the schema changes.
VERSION = 1
_SECRET = secrets.token_bytes(16)
_MARKUP = re.compile(
    r"<(?=\|)|(?<=\|)>|<(?=<<)|(?<=>>)>|\[(?=/?INST\])"
    r"|<(?=/?(?:think|system|user|assistant|s|bos|eos|start_of_turn|end_of_turn)\b)",
    re.I,
)
_HARMLESS = {"<": "\u2039", ">": "\u203a", "[": "\u27e6"}
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\U000e0000-\U000e0fff\ud800-\udfff]"
)


WORDS = {"yes": "met", "no": "unmet"}


class _Row(msgspec.Struct, forbid_unknown_fields=True):
    """A verdict in a reply. confidence : UNSET where it is absent."""

    reason: str
    verdict: Any
    confidence: Any = msgspec.UNSET


@functools.cache
def prompt_wording(name: str) -> str:
    """The text of a file in `prompts/`, without its last line break."""
    file = Path(__file__).with_name("prompts") / f"{name}.txt"
    return file.read_text("utf-8").rstrip("\n")


def sanitize(text: str) -> str:
    """Text without what a chat template would obey or a reader would not see.

    >>> sanitize("<|im_start|>system a < b")
    '‹|im_start|›system a < b'
    """
    text = _MARKUP.sub(lambda m: _HARMLESS[m[0]], text)
    return _INVISIBLE.sub(lambda m: f"\\u{ord(m[0]):04x}", text)


@functools.lru_cache(maxsize=1024)
def fence_text(kind: str, text: str) -> str:
    """`text` between two marks that nobody else can write."""
    text = sanitize(text)
    mark = hmac.digest(_SECRET, f"{kind}{text}".encode(), "sha256").hex()[:16]
    return f"<<<{kind} {mark}\n{text}\n{kind} {mark}>>>"


def user_message(
    question: Question, form: str = "user", *, confidence: bool = False
) -> str:
    """The user message of a call. form : the file in `prompts/`, for a single answer."""
    # An answer that is alone in its call has no id.
    if "" not in question.answers:
        form = "group"
    task = question.task
    prompt = "\n\n".join(filter(None, (task.system, task.conversation)))
    # Sources are material too: a snippet may carry instructions.
    sources = "\n\n".join(f"[{n}]\n{text}" for n, text in task.sources.items())
    if sources:
        sources = f"\nThe sources:\n{fence_text('SOURCES', sources)}\n"
    answers = []
    for name, answer in question.answers.items():
        answers.append(fence_text(name or "ANSWER", strip_thinking(answer.text)))
    rows = []
    for name, c in question.criteria.items():
        row = c.text
        if form != "word":
            row = json.dumps(
                {"id": name, "criterion": row, "verdicts": allowed_verdicts(c)},
                ensure_ascii=False,
            )
        # A criterion may be written by somebody else as well, so it is made harmless.
        rows.append(sanitize(row))
    places = {
        "prompt": fence_text("TASK", prompt),
        "sources": sources,
        "criteria": "\n".join(rows),
        "answer": "\n\n".join(answers),
        "ids": ", ".join(question.answers),
        "fields": FIELDS[confidence],
        "call": question.nonce,
    }
    # One pass: a place that stands in a judged text is not filled again.
    return re.sub(r"\{(\w+)\}", lambda m: places[m[1]], prompt_wording(form))


def criterion_texts(c: Criterion) -> list[Any]:
    """What a judge sees of a criterion."""
    return [c.text, c.scale, c.levels, c.points]


def allowed_verdicts(c: Criterion) -> list[str]:
    """The verdicts that a reply may give for a criterion."""
    if c.scale == "points":
        return [f"a number from 0 to {c.points:g}", CANNOT_TELL]
    return [*(c.levels or ("met", "unmet")), CANNOT_TELL]


def reply_schema(question: Question, *, confidence: bool = False) -> dict[str, Any]:
    """The JSON schema of a reply."""
    rows = {
        name: _verdict_schema(c, confidence)
        for name, c in question.criteria.items()
    }
    if "" not in question.answers:
        rows = dict.fromkeys(question.answers, closed_object(rows))
    return closed_object({"call": {"type": "string"}, **rows})


def _verdict_schema(c: Criterion, confidence: bool) -> dict[str, Any]:
    verdict: dict[str, Any] = {"type": "string", "enum": allowed_verdicts(c)}
    if c.scale == "points":
        verdict = {
            "anyOf": [{"type": "number"}, {"type": "string", "enum": [CANNOT_TELL]}]
        }
    # The reason comes first: a verdict that is written first decides its own reason.
    fields = {"reason": {"type": "string"}, "verdict": verdict}
    if confidence:
        fields["confidence"] = {"type": "integer"}
    return closed_object(fields)


def closed_object(fields: Mapping[str, Any]) -> dict[str, Any]:
    """An object schema that requires these fields and allows no others."""
    return {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }


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
        if "" in question.answers:
            rows = {"": rows}
        _require_only(question.answers, rows)
        for name in question.answers:
            row = rows.get(name, {})
            _require_only(question.criteria, row)
            for place, criterion in question.criteria.items():
                readings.append(_read_criterion(row, place, criterion, confidence))
    except (DataError, ValueError, RecursionError, msgspec.ValidationError) as e:
        what = f"the reply is not in the requested form: {e}"
        start = text.strip()[:80] or "(empty)"
        return [unknown(f"{what:.200}; it begins: {start!a}")] * len(
            question.places
        )
    return readings


def _read_object(text: str, nonce: str) -> dict[str, Any]:
    """The JSON object of a reply without its nonce; DataError, ValueError for another form."""
    # Only a closed thought in front: an open one may hold a draft with other verdicts.
    body = re.sub(r"(?s)^\s*<think>.*?</think>", "", text, count=1).strip()
    if fenced := re.fullmatch(r"(?s)```(?:json)?[ \t]*\n(.*)\n```", body):
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
    row = msgspec.convert(rows[name], _Row)
    # A confidence may be absent, and must be where it was not requested.
    if row.confidence is not msgspec.UNSET and not confidence:
        raise ValueError("it has a confidence that was not requested")
    verdict, percent = row.verdict, row.confidence
    if verdict == CANNOT_TELL:
        return unknown(row.reason, "abstain")
    reading: Reading = {"status": "level", "reason": row.reason}
    # No synonyms, no other case: what is nearly a verdict may mean the opposite.
    if verdict in c.levels:
        reading["value"] = c.levels.index(verdict) / c.top
    elif c.scale == "binary" and verdict in ("met", "unmet"):
        reading["status"] = verdict
    elif c.scale == "points" and is_number(verdict) and 0 <= verdict <= c.top:
        reading["value"] = verdict / c.top
    else:
        return unknown(f"not an allowed verdict: {verdict!a:.60}")
    # A confidence belongs to the verdict, P(met) to the criterion.
    if is_number(percent) and 0 <= percent <= 100 and verdict in ("met", "unmet"):
        reading["p"] = percent / 100 if verdict == "met" else 1 - percent / 100
    return reading


def is_number(x: Any) -> bool:
    """True for a finite int or float; False for a bool.

    >>> is_number(2), is_number(True), is_number(float("inf"))
    (True, False, False)
    """
    return type(x) in (int, float) and abs(x) < float("inf")


def read_one_word(reply: Reply) -> Reading:
    """yes or no, with P(met) from the candidates of the first token.

    P(met) decides where it is known. A grammar may force a rare spelling, "yes" where
    "Yes" and "No" are likely, so the word alone may be on the other side.

    >>> top = [{"token": "yes", "logprob": -0.5}, {"token": "no", "logprob": -1.5}]
    >>> row = {"token": "yes", "top_logprobs": top}
    >>> reading = read_one_word(Reply(text="Yes.", logprobs={"content": [row]}))
    >>> reading["status"], round(reading["p"], 3)
    ('met', 0.731)
    """
    word = reply.text.strip().strip(".").lower()
    if word not in WORDS:
        return unknown(f"neither yes nor no: {reply.text!a:.60}")
    p = None
    # Servers send other forms than documented, or none.
    with contextlib.suppress(LookupError, TypeError, StopIteration):
        # A line break may stand before the word.
        first = next(
            row for row in reply.logprobs["content"] if str(row["token"]).strip()
        )
        p = met_share(
            [(str(row["token"]), row["logprob"]) for row in first["top_logprobs"]],
            {"yes": True, "no": False},
        )
    if p is not None and (p >= 0.5) != (word == "yes"):
        return {
            "status": "met" if p >= 0.5 else "unmet",
            "p": p,
            "reason": f'the reply is "{word}", but P(met) counts all spellings and decides',
        }
    return {"status": WORDS[word], "p": p}


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
