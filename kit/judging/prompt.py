"""What a judge call says: its messages, and the schema of its reply. The wording is in `prompts/`.

Judged text is hostile. It stands between marks that depend on the text and on a secret of this
process, so that no answer can close them. Chat markup and invisible characters in it are made
harmless. The parts that calls share come first, so that a provider's prefix cache is used.
"""

import functools
import hmac
import json
import re
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..records import Criterion, strip_thinking
from .question import Question

CANNOT_TELL = "cannot_tell"
SINGLE_ANSWER = ("",)  # the ids of an answer that is alone in its call
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


@functools.cache
def prompt_wording(name: str) -> str:
    """The text of a file in `prompts/`, without its last line break."""
    folder = Path(__file__).with_name("prompts")
    return (folder / f"{name}.txt").read_text("utf-8").rstrip("\n")


def system_message(file: str | None, text: str | None, default: str) -> str:
    """A judge's system message: a file as `kit tune` writes it, a text, or a wording."""
    if file:
        text = Path(file).read_text("utf-8")
    return (text or prompt_wording(default)).strip()


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


def new_nonce() -> str:
    """Four digits that one call carries and its reply must repeat."""
    return str(1000 + secrets.randbelow(9000))


def user_message(
    question: Question, form: str = "user", *, confidence: bool = False
) -> str:
    """The user message of a call. form : the file in `prompts/`."""
    task = question.task
    prompt = task.conversation
    if task.system:
        prompt = f"{task.system}\n\n{prompt}"
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


def reply_schema(
    criteria: Mapping[str, Criterion],
    *,
    answers: Iterable[str] = SINGLE_ANSWER,
    confidence: bool = False,
) -> dict[str, Any]:
    """The JSON schema of a reply. answers : the ids of a group."""
    rows = {name: _verdict_schema(c, confidence) for name, c in criteria.items()}
    if tuple(answers) != SINGLE_ANSWER:
        rows = dict.fromkeys(answers, closed_object(rows))
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
        "properties": dict(fields),
        "required": list(fields),
        "additionalProperties": False,
    }
