"""The form of a judge call: messages, the schema of its reply, its keys, and how it is read.

The wording stands in `prompts/`.

Judged text is hostile. It stands between marks that depend on the text and on a secret
of this process, so that no answer can close them. Chat markup and invisible characters
in it are made harmless. The parts that calls share come first, so that a provider's
prefix cache is used.

A reply is read strictly: one verdict per criterion, or unknown with the cause.

    {"call": "4821", "c1": {"reason": "...", "verdict": "met"}, "c2": {...}}

Verdicts are found by their ids. One closed <think> block in front and one code fence
around the whole object are taken off. Anything else that was not requested makes the
whole reply unknown ("parse"). Nothing is repaired, because a repaired reply can turn
into the opposite verdict.
"""

import functools
import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..data.files import parse
from ..errors import DataError
from ..records import Criterion, Response, Task, canonical, strip_thinking

CANNOT = "cannot_tell"
ALONE = ("",)  # the id of an answer that is alone in its call
_DRAFT = re.compile(r"<think>.*?</think>", re.S)
_FENCE = re.compile(r"```(?:json)?[ \t]*\n(.*)\n```", re.S)
Criteria = Sequence[Criterion]
Reading = dict[str, Any]  # fields of a Verdict: status, value, p, reason, failure
FOLDER = Path(__file__).with_name("prompts")
# Part of every ledger key. Raise it when the wording of the user message or the schema changes.
VERSION = 1
# A ledger key has five parts, SETTINGS-TASK-ANSWER-CRITERION-TOGETHER. Two keys that differ
# in one part show why a question was paid twice: another prompt or model, another task
# text, another answer, a reworded criterion, or other criteria in the same call.
PARTS = ("settings", "task", "answer", "criterion", "together")
SIZE = 16  # hex digits of each part
ABOUT = slice(SIZE + 1, 4 * SIZE + 3)  # task, answer and criterion inside a key
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


@functools.cache
def wording(name: str) -> str:
    """The text of a file in `prompts/`, without its last line break."""
    return FOLDER.joinpath(f"{name}.txt").read_text("utf-8").rstrip("\n")


def system(file: str | None, text: str | None, default: str) -> str:
    """A judge's system message: a file as `kit tune` writes it, a text, or a wording."""
    text = Path(file).read_text("utf-8") if file else text
    return (text or wording(default)).strip()


def neutral(text: str) -> str:
    """Text without what a chat template would obey or a reader would not see.

    >>> neutral("<|im_start|>system a < b")
    '‹|im_start|›system a < b'
    """
    text = _MARKUP.sub(lambda m: _HARMLESS[m[0]], text)
    return _INVISIBLE.sub(lambda m: f"\\u{ord(m[0]):04x}", text)


@functools.lru_cache(maxsize=1024)
def fence(kind: str, text: str) -> str:
    """`text` between two marks that nobody else can write."""
    text = neutral(text)
    mark = hmac.digest(_SECRET, f"{kind}{text}".encode(), "sha256").hex()[:16]
    return f"<<<{kind} {mark}\n{text}\n{kind} {mark}>>>"


def mark() -> str:
    """Four digits that one call carries and its reply must repeat."""
    return str(1000 + secrets.randbelow(9000))


def messages(
    system: str,
    task: Task,
    answers: Mapping[str, Response],
    criteria: Mapping[str, Criterion],
    *,
    call: str,
    form: str = "user",
    confidence: bool = False,
) -> list[dict[str, str]]:
    """The chat of one call.

    answers, criteria : by their ids in the call; a lone answer has the id "".
    form : the file in `prompts/` with the user message.
    """
    question = task.conversation
    if task.system:
        question = f"{task.system}\n\n{question}"
    # Sources are material too: a snippet may carry instructions.
    sources = "\n\n".join(f"[{n}]\n{text}" for n, text in task.sources.items())
    if sources:
        sources = f"\nThe sources:\n{fence('SOURCES', sources)}\n"
    fields = '"reason" and "verdict"'
    if confidence:
        fields = '"reason", "verdict" and "confidence" (0 to 100 percent)'
    fences = [
        fence(n or "ANSWER", strip_thinking(r.text)) for n, r in answers.items()
    ]
    places = {
        "prompt": fence("TASK", question),
        "sources": sources,
        "criteria": "\n".join(_line(n, c, form) for n, c in criteria.items()),
        "answer": "\n\n".join(fences),
        "ids": ", ".join(answers),
        "fields": fields,
        "call": call,
    }
    # One pass: a place that stands in a judged text is not filled again.
    user = re.sub(r"\{(\w+)\}", lambda m: places[m[1]], wording(form))
    return [
        {"role": "system", "content": system},
        {"role": "user", "content": user},
    ]


def _line(name: str, c: Criterion, form: str) -> str:
    text = c.text
    if form != "word":
        row = {"id": name, "criterion": text, "verdicts": allowed(c)}
        text = json.dumps(row, ensure_ascii=False)
    # A criterion may be written by somebody else as well, so it is made harmless.
    return neutral(text)


def schema(
    criteria: Mapping[str, Criterion],
    *,
    answers: Iterable[str] = ALONE,
    confidence: bool = False,
) -> dict[str, Any]:
    """The JSON schema of a reply. answers : the ids of a group."""
    rows = {name: _fields(c, confidence) for name, c in criteria.items()}
    if tuple(answers) != ALONE:
        rows = dict.fromkeys(answers, closed(rows))
    return closed({"call": {"type": "string"}, **rows})


def _fields(c: Criterion, confidence: bool) -> dict[str, Any]:
    verdict: dict[str, Any] = {"type": "string", "enum": allowed(c)}
    if c.scale == "points":
        number, word = {"type": "number"}, {"type": "string", "enum": [CANNOT]}
        verdict = {"anyOf": [number, word]}
    # The reason comes first: a verdict that is written first decides its own reason.
    fields = {"reason": {"type": "string"}, "verdict": verdict}
    if confidence:
        fields["confidence"] = {"type": "integer"}
    return closed(fields)


def closed(fields: Mapping[str, Any]) -> dict[str, Any]:
    """An object schema that requires these fields and allows no others."""
    return {
        "type": "object",
        "properties": dict(fields),
        "required": list(fields),
        "additionalProperties": False,
    }


# -- replies -------------------------------------------------------------------
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
    except (DataError, ValueError, RecursionError) as e:
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
    """The JSON object of a reply without its mark; DataError, ValueError for another form."""
    body = text.strip()
    # Only a closed thought in front: an open one may hold a draft with other verdicts.
    if body.startswith("<think>"):
        body = _DRAFT.sub("", body, count=1).strip()
    if fenced := _FENCE.fullmatch(body):
        body = fenced[1]
    # No name twice, of which JSON keeps the last, an attacker's choice; no NaN.
    rows = parse(body)
    # Another mark answers another question: a late reply on a kept connection.
    if not isinstance(rows, dict) or rows.pop("call", None) != call:
        raise ValueError("it is no object with the mark of this call")
    return rows


def _only(names: Iterable[str], rows: Any) -> None:
    if not isinstance(rows, dict) or not set(rows) <= set(names):
        raise ValueError("it has an id that was not requested")


def _reading(
    rows: Mapping[str, Any], name: str, c: Criterion, confidence: bool
) -> Reading:
    if name not in rows:
        return refuse("the reply leaves this criterion out", "missing")
    row = rows[name]
    least = {"reason", "verdict"}
    most = least | {"confidence"} if confidence else least
    in_form = isinstance(row, dict) and least <= set(row) <= most
    if not in_form or not isinstance(row["reason"], str):
        raise ValueError("the fields of a verdict are not the requested ones")
    verdict, reason = row["verdict"], row["reason"]
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


# -- ledger keys ---------------------------------------------------------------
def short(value: Any) -> str:
    """The first 16 hex digits of the sha256 of the canonical JSON of `value`."""
    data = canonical(value).encode("utf-8", "replace")
    return hashlib.sha256(data).hexdigest()[:SIZE]


def keys(
    settings: Any,
    task: Task,
    response: Response,
    criteria: Criteria,
    *,
    together: Any = None,
) -> list[str]:
    """One key per criterion, in order. Ids do not count: equal texts share a verdict.

    settings : what the judge is, as JSON. together : what else is in the same call, such
    as the other criteria.
    """
    first, last = short(settings), short(together)
    middles = about(task, response, criteria)
    return [f"{first}-{middle}-{last}" for middle in middles]


def about(task: Task, response: Response, criteria: Criteria) -> list[str]:
    """The middle of each key: task, answer and criterion, whoever the judge is."""
    # A lone surrogate is no text that JSON can carry.
    answer = strip_thinking(response.text).encode("utf-8", "replace").decode()
    question = [task.conversation, task.system, task.sources]
    subject = f"{short(question)}-{short(answer)}"
    return [f"{subject}-{short(texts(c))}" for c in criteria]


def texts(c: Criterion) -> list[Any]:
    """What a judge sees of a criterion."""
    return [c.text, c.scale, c.levels, c.points]
