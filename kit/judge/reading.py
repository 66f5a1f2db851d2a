"""A chat completion as readings; and stored replies read again when the reader has changed."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..records import Criterion, Response, Verdict
from . import parse
from .parse import CUT
from .payload import unusable
from .records import READER, Call
from .templates import BINARY, line
from .words import Foreign, Reading

# A closed list again: what says that a reply is whole. Any other word is a draft, or worse.
FINISHED = frozenset("stop eos eos_token end_turn stop_sequence complete completed".split()) | {""}
WHOLE = frozenset("completed complete succeeded success ok 200".split()) | {""}  # of a status
_TOKEN = re.compile(r"<[^<>\s]{1,40}>")  # at which it stopped, as vLLM tells
LIMITS = frozenset("length max_tokens max_output_tokens model_length incomplete".split())
FILTERED = frozenset(
    "content_filter safety refusal recitation prohibited_content blocklist spii "
    "guardrail_intervened".split()
)
PART = frozenset({"type", "text", "annotations", "citations", "logprobs", "id"})
MOST = 128  # choices that are read
THOUGHTS = frozenset(
    "reasoning reasoning_content reasoning_details thinking thinking_blocks redacted_thinking "
    "provider_specific_fields".split()
)
TEXTS = frozenset(  # where else than in its content a reply can speak
    "text texts output outputs output_text candidates completion generated_text response result "
    "messages delta content parsed refusal tool_calls function_call audio".split()
)
_SPEAKS = re.compile(r'verdict|\bunmet\b|"(?:not )?met\.?"', re.I)
_ASKED = re.compile(r'^\{"id": .*\}$', re.M)
_FENCED = re.compile(r"<<<(TASK|SOURCES|ANSWER) (\w{1,64})\n.*?\n\1 \2>>>", re.S)
_POINTS = re.compile(r"a number from 0 to (\S+)")


def heard(
    data: Mapping[str, Any], criteria: Sequence[Criterion], answer: str
) -> tuple[list[Reading], list[Any]]:
    """Readings and (P, mass) per criterion of a decoded reply to a question on this answer."""
    choices = _choices(data)
    readings = parse.agreed([_choice(data, c, criteria, answer) for c in choices])
    logprobs = choices[0].get("logprobs")
    tokens = logprobs.get("content") if isinstance(logprobs, Mapping) else None
    probs: list[Any] = [None] * len(criteria)
    if tokens and len(choices) == 1:
        probs = parse.token_p(tokens, criteria, readings)
    return readings, probs


def _choice(
    data: Mapping[str, Any], choice: Mapping[str, Any], criteria: Sequence[Criterion], answer: str
) -> list[Reading]:
    """The readings of one choice of a reply; a refusal beside a verdict is a refusal."""
    try:
        text = _text(choice)
        odd = _odd(data, choice, text)
    except Foreign as e:
        return [Reading(failure="parse", how="none", reason=str(e))] * len(criteria)
    refused = _refused(choice)
    if not text.strip():
        why = CUT if _unfinished(choice) else "the reply is empty"
        empty = Reading(failure="refusal" if refused else "parse", how="none", reason=why)
        return [empty] * len(criteria)
    if odd and not refused:
        return [Reading(failure="parse", how="none", reason=odd)] * len(criteria)
    cut = _unfinished(choice)
    readings = parse.read(text, criteria, cut=bool(cut), answer=answer)
    if refused:
        return parse.refused(readings)
    if cut and cut not in LIMITS:
        why = f"the reply ended with {cut[:40]!r}"
        return [dataclasses.replace(r, reason=why) if r.reason == CUT else r for r in readings]
    return readings


def finished(data: Mapping[str, Any]) -> bool:
    """True for a reply that says something and was not cut."""
    try:
        return all(_text(c).strip() and not _unfinished(c) for c in _choices(data))
    except Foreign:
        return True


def is_cut(data: Mapping[str, Any]) -> bool:
    """True when a reply ended at the limit of its tokens."""
    return _word(_choices(data)[0].get("finish_reason")) in LIMITS


def _choices(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The choices of a reply, at least one (which may say nothing)."""
    rows = data.get("choices")
    rows = rows[:MOST] if isinstance(rows, list) else []
    return [c for c in rows if isinstance(c, Mapping)] or [{}]


def _message(choice: Mapping[str, Any]) -> Mapping[str, Any]:
    message = choice.get("message")
    return message if isinstance(message, Mapping) else {}


def _word(value: Any) -> str:
    """A field's word in small letters; where it should hold a word and does not, what it is."""
    if value is None or isinstance(value, str):
        return (value or "").casefold()
    return type(value).__name__


def _unfinished(choice: Mapping[str, Any]) -> str:
    """Why a choice is a draft: cut, filtered, or ended in a way that nobody knows; else ""."""
    stop = choice.get("stop_reason")  # a token or its number in vLLM
    ends = [choice.get("finish_reason"), choice.get("native_finish_reason")]
    ends += [] if isinstance(stop, int) or _TOKEN.fullmatch(str(stop)) else [stop]
    found = next((word for word in map(_word, ends) if word not in FINISHED), "")
    return found or ("truncated" if choice.get("truncated") else "")


def _refused(choice: Mapping[str, Any]) -> bool:
    """True for a reply that the judge refused, or that its server filtered."""
    ends = {_word(choice.get(k)) for k in ("finish_reason", "native_finish_reason", "stop_reason")}
    filtered = '"filtered": true' in json.dumps(choice.get("content_filter_results"))
    refusal = _message(choice).get("refusal") or any(
        p.get("type") == "refusal" for p in _parts(choice)
    )
    return bool(ends & FILTERED or filtered or refusal)


def _odd(data: Mapping[str, Any], choice: Mapping[str, Any], text: str) -> str:
    """Why an envelope is not believed: a sign of failure, or a second text; "" where all is well."""
    why, _ = unusable(data, "/chat/completions")
    if why:
        return why
    for level in (data, choice, _message(choice)):
        if _draft(level) or (level is not choice and _unfinished(level)):
            return "the reply's status says that it is not complete"
    message = {k: v for k, v in _message(choice).items() if k != "content"}
    for level in (data, choice, message):
        for k in TEXTS & level.keys():
            said = json.dumps(level[k]).replace(json.dumps(text), "")
            if _SPEAKS.search(said) and not _same(level[k], text):
                return f"a second text beside its content: {k!r}"
    return ""


def _draft(level: Mapping[str, Any]) -> bool:
    """True where a level of an envelope says that it is not whole, or refused."""
    status = level.get("status")
    whole = (str(status) if type(status) is int else _word(status)) in WHOLE
    return not whole or bool(level.get("incomplete_details") or level.get("refusal"))


def _same(value: Any, text: str) -> bool:
    """True for the decoded form of a reply's own text."""
    try:
        return bool(value == json.loads(text))
    except (ValueError, RecursionError):
        return False


def _text(choice: Mapping[str, Any]) -> str:
    """What the judge says: its content, or its parts (thoughts are none); not the prompt's."""
    message = _message(choice)
    if message.get("role") not in (None, "", "assistant", "model"):
        return ""
    content = message.get("content")
    if isinstance(content, str):
        return content
    said = []
    for p in _parts(choice):
        if p.get("type") in THOUGHTS or p.get("type") == "refusal":
            continue
        text = p.get("text")
        if (
            p.get("type") not in (None, "text", "output_text")
            or {k for k, v in p.items() if v} - PART
        ):
            raise Foreign(f"a part of type {p.get('type')!r} with {sorted(p)}")
        said.append(text if isinstance(text, str) else "")
    return "".join(said)


def _parts(choice: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    content = _message(choice).get("content")
    return [p for p in content if isinstance(p, Mapping)] if isinstance(content, list) else []


# -- what an earlier reader took from a reply -----------------------------------------------------
def again(v: Verdict, call: Call | None, c: Criterion, response: Response) -> Verdict:
    """A stored verdict as today's reader reads the reply that it was made from.

    As it is where that reply is not kept, or the call does not show that it asked for `c`.
    """
    meta = {**v.meta, "reader": READER}
    r = _again(v, call, c, response) if call is not None else None
    if r is None or (r.status, r.value, r.failure) == (v.status, v.value, v.failure):
        return dataclasses.replace(v, meta=meta)
    reason = r.reason or "its reply, read again, holds no verdict"
    fields = dict(status=r.status, value=r.value, failure=r.failure, reason=reason)
    return dataclasses.replace(v, **fields, p=None, meta={**meta, "was": v.status})


def _again(v: Verdict, call: Call, c: Criterion, response: Response) -> Reading | None:
    try:
        data, request = json.loads(call.reply), json.loads(call.request)
        prompt = _FENCED.sub("", request["messages"][-1]["content"])  # not the task, the answer
        rows = [(json.loads(text), text) for text in _ASKED.findall(prompt)]
        others = [_shown(row) for row, _ in rows]
    except (ValueError, KeyError, TypeError, IndexError):
        return None
    mine = [o.id for o, (_, text) in zip(others, rows, strict=True) if text == line(o.id, c)]
    name = c.id if c.id in mine else (mine or [None])[0]
    if name is None or (len(mine) > 1 and name != c.id):
        return None
    asked = [dataclasses.replace(c, id=name) if o.id == name else o for o in others]
    readings, _ = heard(data, asked, response.text)
    return readings[[o.id for o in asked].index(name)]


def _shown(row: Mapping[str, Any]) -> Criterion:
    """A criterion as far as the judge was shown it."""
    words = row["verdicts"]
    points = _POINTS.fullmatch(words[0])
    if points:
        return Criterion(
            id=row["id"], text=row["criterion"], scale="points", points=float(points[1])
        )
    if words == list(BINARY):
        return Criterion(id=row["id"], text=row["criterion"])
    return Criterion(id=row["id"], text=row["criterion"], scale="ordinal", levels=tuple(words[:-1]))
