"""From task, answer and criteria to the messages of one call: wording, fences, the reply's schema.

Judged text is data. It stands between marks with an unguessable number, control characters and
imitations of chat markup are made harmless, and nothing that it contains can close the mark. The
fixed parts come first and the answer last (or the criterion last, when each is asked alone), so
that a provider's prefix cache and a local server's shared prefix are hit.
"""

from __future__ import annotations

import functools
import hashlib
import hmac
import json
import re
import secrets
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import KitError
from ..records import Criterion, Response, Task, fingerprint, grouped, leaves

FOLDER = Path(__file__).with_name("prompts")
SECTIONS = ("system", "user", "schema", "text")
# part of every ledger key: raise it when the messages or the reply's form change, and all is asked
# anew; how a reply is read has a number of its own, records.READER
SCHEMA_VERSION = 1
BINARY = ("met", "unmet", "cannot_tell")
_SECRET = secrets.token_bytes(16)  # where there is no ledger
_SECRETS: weakref.WeakKeyDictionary[Any, bytes] = weakref.WeakKeyDictionary()
# chat markup of common models, which a server may turn into real control tokens, and imitations of
# our own frame
_MARKUP = re.compile(
    r"<(?=\|)|(?<=\|)>|<(?=/?(?:s|bos|eos|start_of_turn|end_of_turn|think|SYS|system|assistant|user|answer|task|criteria|"
    r"submission|response|instructions?|tool_call|function_calls?)\b[^<>\n]{0,40}>)|\[(?=/?INST\])|<(?=<SYS)|<(?=/SYS)|"
    r"<(?=<<)|(?<=>>)>",
    re.I,
)
_SWAP = {"<": "\u2039", ">": "\u203a", "[": "\u27e6"}
# zero-width, bidirectional, tag and control characters: shown as what they are instead of working
# unseen
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e0fff\ud800-\udfff]"
)


@dataclass(frozen=True, kw_only=True)
class Template:
    """The wording of a judge call. `user` has the places {prompt} {sources} {criteria} {answer}
    {form}; the others are plain.

    `schema` and `text` are what stands at {form} when the reply is JSON under a schema, or lines
    of text.
    """

    system: str
    user: str
    schema: str
    text: str
    name: str = "own"

    def __post_init__(self) -> None:
        missing = [
            p for p in ("prompt", "criteria", "answer", "form") if "{" + p + "}" not in self.user
        ]
        if missing:
            raise KitError(
                f"the template's user text lacks {', '.join('{' + m + '}' for m in missing)}",
                where=f"template {self.name!r}",
                fix="put each of these places into the text once",
            )

    @functools.cached_property
    def id(self) -> str:
        """Fingerprint of the wording, part of every ledger key."""
        return fingerprint([self.system, self.user, self.schema, self.text])


@functools.cache
def load(name: str = "rubric") -> Template:
    """A template that ships with the kit ("rubric", "single"), or a file of the same form.

    >>> load("rubric").user.index("{criteria}") < load("rubric").user.index("{answer}")
    True
    """
    path = FOLDER / f"{name}.txt" if "/" not in name and not name.endswith(".txt") else Path(name)
    if not path.exists():
        raise KitError(
            f"there is no template {name!r}",
            where=str(path),
            fix="use rubric or single, or give the path of a .txt file",
        )
    parts = re.split(r"^\[(\w+)\]\n", path.read_text(encoding="utf-8"), flags=re.M)
    found = dict(zip(parts[1::2], (p.strip("\n") for p in parts[2::2]), strict=True))
    if set(SECTIONS) - set(found):
        raise KitError(
            f"sections are missing: {sorted(set(SECTIONS) - set(found))}",
            where=str(path),
            fix="see kit/judge/prompts/rubric.txt",
        )
    return Template(name=path.stem, **{s: found[s] for s in SECTIONS})


def neutral(text: str) -> str:
    r"""Judged text made harmless: chat markup loses its brackets, unseen characters are spelled
    out, line ends are unified.

    >>> neutral("ok</answer><|im_end|>\u200b")
    'ok‹/answer>‹|im_end|›\\u200b'
    """
    if not (
        text.isascii() and text.replace("\n", "").isprintable()
    ):  # the quick way for plain text
        text = _HIDDEN.sub(lambda m: f"\\u{ord(m[0]):04x}", text.replace("\r\n", "\n"))
    if "<" in text or ">" in text or "[" in text:
        text = _MARKUP.sub(lambda m: _SWAP[m[0]], text)
    return text


def secret_of(ledger: Any) -> bytes:
    """The secret behind the numbers of the fences, kept in the ledger.

    So that the same answer has the same fence in every process, and a server can share the prefix.
    """
    if ledger is None:
        return _SECRET
    if ledger not in _SECRETS:
        known = ledger.note("fence")
        if known is None and not ledger.readonly:
            with ledger.transaction() as db:  # the first one counts, whoever writes it
                row = ("fence", json.dumps(secrets.token_hex(16)), time.time())
                db.execute("INSERT OR IGNORE INTO notes VALUES(?,?,?)", row)
            known = ledger.note("fence")
        _SECRETS[ledger] = str(known).encode() if known else _SECRET
    return _SECRETS[ledger]


@functools.lru_cache(maxsize=1024)
def fence(kind: str, text: str, secret: bytes = _SECRET) -> str:
    """`text` between two marks that nobody without the secret can guess, and that are not in it.

    The number depends on the text alone, so that all calls about one answer share a prefix.
    """
    text, salt = neutral(text), 0
    while True:
        said = f"{kind}{salt}{text}".encode("utf-8", "surrogatepass")
        number = hmac.digest(secret, said, "sha256").hex()[:16]
        if number not in text:
            return f"<<<{kind} {number}\n{text}\n{kind} {number}>>>"
        salt += 1


def allowed(c: Criterion) -> list[str]:
    """The verdict words that a criterion allows; for points, a range in words."""
    if c.scale == "ordinal":
        return [*c.levels, "cannot_tell"]
    if c.scale == "points":
        top = c.points or 1
        short = f"{top:g}"
        shown = short if float(short) == top else repr(top)  # two that differ are two questions
        return [f"a number from 0 to {shown}", "cannot_tell"]
    return list(BINARY)


def names(criteria: Sequence[Criterion]) -> list[str]:
    """The ids by which a call names its criteria: their own where short and plain, else k1, k2, ...

    >>> names([Criterion(id="c1", text=""), Criterion(id="a b", text="")])
    ['c1', 'k2']
    """
    return list(_names(tuple([c.id for c in criteria])))


@functools.lru_cache(maxsize=4096)
def _names(ids: tuple[str, ...]) -> tuple[str, ...]:
    plain = [bool(re.fullmatch(r"[A-Za-z][A-Za-z0-9_.-]{0,39}", i)) for i in ids]
    taken = {i.casefold() for i, ok in zip(ids, plain, strict=True) if ok}
    if len(taken) < sum(plain):  # ids that differ by case only
        plain = [False] * len(ids)
    out = []
    for n, (i, ok) in enumerate(zip(ids, plain, strict=True), 1):
        alias = f"k{n}"
        while not ok and alias in taken:
            alias += "x"
        out.append(i if ok else alias)
    return tuple(out)


def spec(c: Criterion) -> dict[str, Any]:
    """What the judge is shown of a criterion (no weight: it must not depend on what is at
    stake).
    """
    row: dict[str, Any] = {"criterion": c.text, "verdicts": allowed(c)}
    return {"title": c.title, **row} if c.title and c.title != c.text else row


def messages(
    template: Template,
    task: Task,
    response: Response,
    criteria: Sequence[Criterion],
    *,
    mode: str = "schema",
    stated: bool = False,
    lines: str | None = None,
    secret: bytes = _SECRET,
) -> list[dict[str, str]]:
    """The chat messages of one call. mode : "schema" (JSON) or "text". stated : also ask for a
    confidence in percent.

    lines : `listed(criteria)`, where the caller has it already.
    """
    form = template.schema if mode == "schema" else template.text
    if stated:
        form += (
            '\nGive "confidence" third: how sure you are of this verdict, in percent, from 0 '
            "to 100."
            if mode == "schema"
            else "\nThen a third line for each: CONFIDENCE <id>: <how sure you are of this "
            "verdict, 0 to 100>"
        )
    prompt, sources = head(task, secret)
    places: Mapping[str, str] = {
        "prompt": prompt,
        "sources": sources,
        "criteria": lines or listed(criteria),
        "answer": fence("ANSWER", response.text, secret),
        "form": form,
    }
    user = re.sub(
        r"\{(prompt|sources|criteria|answer|form)\}", lambda m: places[m[1]], template.user
    )  # one pass: data is not read again
    return [{"role": "system", "content": template.system}, {"role": "user", "content": user}]


def listed(criteria: Sequence[Criterion]) -> str:
    """The criteria as the judge sees them, one JSON object a line; made harmless too, since they
    may come from data.
    """
    return "\n".join(line(n, c) for n, c in zip(names(criteria), criteria, strict=True))


def line(name: str, c: Criterion) -> str:
    """One criterion as it is listed."""
    return neutral(json.dumps({"id": name, **spec(c)}, ensure_ascii=False))


def head(task: Task, secret: bytes = _SECRET) -> tuple[str, str]:
    """The fenced prompt (with the task's system text) and the fenced sources ("" where there are
    none).
    """
    prompt = f"{task.system}\n\n{task.asked}" if task.system else task.asked
    sources = ""
    if task.sources:
        listed = "\n\n".join(f"[{k}]\n{v}" for k, v in task.sources.items())
        sources = f"\nThe sources that the answer could use:\n{fence('SOURCES', listed, secret)}\n"
    return fence("TASK", prompt, secret), sources


def schema(criteria: Sequence[Criterion], *, stated: bool = False) -> dict[str, Any]:
    """The nested `response_format`: an object keyed by criterion id (each required), reason before
    verdict.

    The un-nested form is silently ignored by llama.cpp; a list of ratings could be short, shuffled
    or doubled.
    """
    ids = names(criteria)
    items = {n: _item(c, stated) for n, c in zip(ids, criteria, strict=True)}
    return {
        "type": "json_schema",
        "json_schema": {
            "name": "verdicts",
            "strict": True,
            "schema": {
                "type": "object",
                "properties": items,
                "required": ids,
                "additionalProperties": False,
            },
        },
    }


def _item(c: Criterion, stated: bool) -> dict[str, Any]:
    verdict: dict[str, Any] = {"type": "string", "enum": allowed(c)}
    if c.scale == "points":
        verdict = {
            "anyOf": [
                {"type": "number", "minimum": 0, "maximum": c.points or 1},
                {"type": "string", "enum": ["cannot_tell"]},
            ]
        }
    fields: dict[str, Any] = {"reason": {"type": "string"}, "verdict": verdict}
    if stated:
        fields["confidence"] = {"type": "integer", "minimum": 0, "maximum": 100}
    return {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }


class Raw(str):
    """JSON text that is ready: `encode` takes it as it is (a schema is the same for many calls)."""


def encode(body: Mapping[str, Any]) -> str:
    """A request body as JSON text.

    >>> encode({"a": Raw("[1,2]"), "b": None})
    '{"a":[1,2],"b":null}'
    """
    parts = (f'"{k}":{v if isinstance(v, Raw) else json.dumps(v)}' for k, v in body.items())
    return "{" + ",".join(parts) + "}"


class Layout:
    """How the criteria of a task are spread over calls, and what each call's context is (part
    of the key).
    """

    def __init__(self, task: Task, how: str | int, own: str):
        asked = [c for c in leaves(task.criteria) if not c.by_code]
        sizes = {"all": len(asked) or 1, "one": 1}
        size = sizes[how] if how in sizes else int(how)
        rows = list(task.sources.items())  # they are shown in order: one of their own counts
        sources = dict(rows) if rows == sorted(rows) else rows
        self.base = fingerprint([own, size == 1, task.asked, task.system, sources])
        self._group: dict[str, int] = {}
        self._mark: dict[str, str] = {}
        self._texts: dict[Any, tuple[list[Criterion], str, Raw]] = {}
        self._known: dict[str, Criterion] = {c.id: c for c in asked}
        for start in range(0, len(asked), size):
            part = asked[start : start + size]
            context = fingerprint(
                [[n, c.scale, spec(c)] for n, c in zip(names(part), part, strict=True)]
            )
            for c in part:
                self._group[c.id] = start
                self._mark[c.id] = fingerprint([self.base, context, c.id])

    def of(self, c: Criterion) -> str:
        """Fingerprint of a criterion with its context."""
        if self._same(c):
            return self._mark[c.id]
        return fingerprint([self.base, [[names([c])[0], c.scale, spec(c)]], c.id])

    def _same(self, c: Criterion) -> bool:
        """Whether the task has this criterion, as far as a judge can see (a weight is not seen)."""
        own = self._known.get(c.id)
        return own is c or (own is not None and own.scale == c.scale and spec(own) == spec(c))

    def texts(self, criteria: Sequence[Criterion], stated: bool) -> tuple[str, Raw]:
        """The listed criteria and the schema as JSON text, made once per group."""
        name = (stated, *(id(c) for c in criteria))
        if name not in self._texts:
            if len(self._texts) > 64:
                self._texts.clear()
            form = Raw(json.dumps(schema(criteria, stated=stated)))
            self._texts[name] = (list(criteria), listed(criteria), form)
        return self._texts[name][1:]

    def split(self, criteria: Sequence[Criterion]) -> list[list[Criterion]]:
        """These criteria grouped as they are asked; one that the task does not have is asked
        alone.
        """
        at = ((self._group[c.id] if self._same(c) else ("alone", c.id), c) for c in criteria)
        return list(grouped(at).values())


@functools.lru_cache(maxsize=4096)
def digest(text: str) -> str:
    """SHA-256 of a text in hex; lone surrogates are allowed."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
