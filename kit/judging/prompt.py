"""The messages of a judge call and the JSON schema of its reply. The wording stands in `prompts/`.

Judged text is hostile. It stands between marks that depend on the text and on a secret
of this process, so that no answer can close them. Chat markup and invisible characters
in it are made harmless. The parts that calls share come first, so that a provider's
prefix cache is used.
"""

import functools
import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import MissingError
from ..records import Criterion, Response, Task, canonical
from .reader import CANNOT, allowed

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
_THOUGHT = re.compile(r"\s*<think>.*?(?:</think>|\Z)\s*", re.S)


@functools.cache
def wording(name: str) -> str:
    """The text of a file in `prompts/`, without its last line break."""
    return FOLDER.joinpath(f"{name}.txt").read_text("utf-8").rstrip("\n")


def from_file(path: str | Path) -> str:
    """A judge's system message from a text file, as `kit tune` writes it."""
    if not Path(path).is_file():
        raise MissingError(
            "there is no such prompt file",
            where=str(path),
            fix="give a text file that holds the judge's system message",
        )
    return Path(path).read_text("utf-8").strip()


def judged(text: str) -> str:
    """The part of an answer that is judged: the answer without its leading <think> part.

    >>> judged("<think>is it 4?</think> It is 4.")
    'It is 4.'
    """
    # An open <think> counts too: an answer that was cut while thinking says nothing.
    starts = text.lstrip().startswith("<think>")
    return _THOUGHT.sub("", text, count=1) if starts else text


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


def number(criteria: Sequence[Criterion]) -> dict[str, Criterion]:
    """The criteria by the short ids of one call: c1, c2, ..."""
    return {f"c{n}": c for n, c in enumerate(criteria, 1)}


def messages(
    system: str,
    task: Task,
    answer: str,
    criteria: Mapping[str, Criterion],
    *,
    form: str = "user",
    confidence: bool = False,
    **places: str,
) -> list[dict[str, str]]:
    """The chat of one call.

    answer : fenced text. form : the file in `prompts/` with the user message. places :
    more texts for it.
    """
    rows = []
    for name, c in criteria.items():
        row = {"id": name, "criterion": c.text, "verdicts": allowed(c)}
        # A criterion may be written by somebody else as well, so it is made harmless.
        text = c.text if form == "word" else json.dumps(row, ensure_ascii=False)
        rows.append(neutral(text))
    # Sources are material too: a snippet may carry instructions.
    sources = "\n\n".join(
        f"[{name}]\n{text}" for name, text in task.sources.items()
    )
    question = task.conversation
    if task.system:
        question = f"{task.system}\n\n{question}"
    fields = '"reason" and "verdict"'
    if confidence:
        fields = '"reason", "verdict" and "confidence" (0 to 100 percent)'
    places |= {
        "prompt": fence("TASK", question),
        "sources": f"\nThe sources:\n{fence('SOURCES', sources)}\n"
        if sources
        else "",
        "criteria": "\n".join(rows),
        "answer": answer,
        "fields": fields,
    }
    # One pass: a place that stands in a judged text is not filled again.
    user = re.sub(r"\{(\w+)\}", lambda m: places[m[1]], wording(form))
    return [
        {"role": "system", "content": system},
        {"role": "user", "content": user},
    ]


def answer_of(response: Response) -> str:
    """The judged part of an answer between its marks."""
    return fence("ANSWER", judged(response.text))


def schema(
    criteria: Mapping[str, Criterion],
    *,
    confidence: bool = False,
    answers: Sequence[str] = (),
) -> dict[str, Any]:
    """The JSON schema of a reply. answers : the ids of a group."""
    rows = {name: _fields(c, confidence) for name, c in criteria.items()}
    if answers:
        rows = dict.fromkeys(answers, closed(rows))
    return closed({"call": {"type": "string"}, **rows})


def _fields(c: Criterion, confidence: bool) -> dict[str, Any]:
    verdict: dict[str, Any] = {"type": "string", "enum": allowed(c)}
    if c.scale == "points":
        verdict = {
            "anyOf": [{"type": "number"}, {"type": "string", "enum": [CANNOT]}]
        }
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


# -- ledger keys ---------------------------------------------------------------
def short(value: Any) -> str:
    """The first 16 hex digits of the sha256 of the canonical JSON of `value`."""
    data = canonical(value).encode("utf-8", "replace")
    return hashlib.sha256(data).hexdigest()[:SIZE]


def keys(
    settings: Any,
    task: Task,
    response: Response,
    criteria: Sequence[Criterion],
    *,
    together: Any = None,
) -> list[str]:
    """One key per criterion, in order. Ids do not count: equal texts share a verdict.

    settings : what the judge is, as JSON. together : what else is in the same call, such
    as the other criteria.
    """
    first, last = short(settings), short(together)
    middle = _subject(task, response)
    return [f"{first}-{middle}-{short(texts(c))}-{last}" for c in criteria]


def about(task: Task, response: Response, criterion: Criterion) -> str:
    """The middle of a key: task, answer and criterion, whoever the judge is."""
    return f"{_subject(task, response)}-{short(texts(criterion))}"


def _subject(task: Task, response: Response) -> str:
    # A lone surrogate is no text that JSON can carry.
    answer = judged(response.text).encode("utf-8", "replace").decode()
    question = [task.conversation, task.system, task.sources]
    return f"{short(question)}-{short(answer)}"


def texts(c: Criterion) -> list[Any]:
    """What a judge sees of a criterion."""
    return [c.text, c.scale, c.levels, c.points]
