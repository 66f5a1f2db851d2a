"""A chat completion as readings; and stored replies read again when the reader has changed.

The envelope is a closed world, too, where it tells how a reply ended: a field whose name speaks of
that (finish_reason, status, done, truncated, refusal, channel, ...), at the reply, its choices and
their messages, must hold a word that is known to be harmless. Any other word makes the reply a
draft, a refusal, or cut. Other fields are the server's own affair, but for a second text.
"""

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

FINE = frozenset(
    "stop eos eos_token end_turn stop_sequence complete completed finished succeeded success ok "
    "final none null 200".split()
) | {""}
LIMITS = frozenset("length max_tokens max_output_tokens model_length incomplete truncated".split())
FILTERED = frozenset(
    "content_filter safety refusal recitation prohibited_content blocklist spii "
    "guardrail_intervened".split()
)
PART = frozenset({"type", "text", "logprobs", "id"})
MOST = 128  # choices that are read
THOUGHTS = frozenset(
    "reasoning reasoning_content reasoning_details thinking thinking_blocks redacted_thinking "
    "provider_specific_fields".split()
)
TEXTS = frozenset(  # where else than in its content a reply can speak
    "text texts output outputs output_text candidates completion generated_text response result "
    "messages delta content parsed tool_calls function_call audio".split()
)
# fields of every reply that say nothing of its end, or are looked at by themselves
USUAL = {*TEXTS, *THOUGHTS, "id", "object", "created", "model", "choices", "usage", "role", "index"}
USUAL |= {"system_fingerprint", "service_tier", "logprobs", "message"}
_ENDS = re.compile(
    r"(?!.*_(?:at|time|id)$|truncation$)(?:.*(?:finish|stop|(?:^|_)done|end_turn|complete|truncat|"
    r"partial|draft|status|channel|abort|cancel|refus|filter|flagged|block|error|interrupt|fail|"
    r"timed_?out|exception|moderat|retract|supersed|invalid|exceeded|reached|feedback)|"
    r".*(?:^|_)(?:cut|ok|valid|final|success|state|type)$)",
    re.I,
)
_WELL = re.compile(  # where True is harmless
    r"finish|stop|done|end_turn|(?<!in)complete|(?:^|_)(?:ok|valid|final|success)$", re.I
)
_FILTER = re.compile(r"filter|moderat|blocked", re.I)
_FILTERED = re.compile(r'true|"(?:filtered|blocked|flagged)": (?:true|1\b|"true")', re.I)
_TOKEN = re.compile(r"<[^<>\s]{1,40}>")  # at which it stopped, as vLLM tells
_SPEAKS = re.compile(r'verdict|\bunmet\b|"(?:not )?met\.?"', re.I)
_STATES = re.compile(r'\bunmet\b|\\?"(?:not )?met\.?\\?"|verdict\\?"?\s*(?:\w+\s*)?:', re.I)
_BESIDE = re.compile(r"_|.*(?:prompt|request|input|reason|think|thought)", re.I)  # the judge's none
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
    ends = _ends(data, choice)
    cut = bool(ends & LIMITS)
    refused, other = bool(ends & FILTERED), ends - LIMITS - FILTERED
    try:
        text = _text(choice)
        why = "" if refused else _odd(data, choice, text, other)
    except Foreign as e:
        text, why = "", str(e)
    if why or not text.strip():
        why = why or (CUT if cut else "the reply is empty")
        failure = "refusal" if refused else "parse"
        return [Reading(failure=failure, how="none", reason=why)] * len(criteria)
    readings = parse.read(text, criteria, cut=cut, answer=answer)
    return parse.refused(readings) if refused else readings


def finished(data: Mapping[str, Any]) -> bool:
    """True for a reply that says something and was not cut."""
    try:
        return all(_text(c).strip() and not _ends(data, c) for c in _choices(data))
    except Foreign:
        return True


def _choices(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The choices of a reply, at least one; what is none says nothing, as do too many."""
    rows = data.get("choices")
    if not isinstance(rows, list) or not 0 < len(rows) <= MOST:
        return [{}]
    return [c if isinstance(c, Mapping) else {} for c in rows]


def _message(choice: Mapping[str, Any]) -> Mapping[str, Any]:
    message = choice.get("message")
    return message if isinstance(message, Mapping) else {}


def _ends(data: Mapping[str, Any], choice: Mapping[str, Any]) -> set[str]:
    """The words by which a reply says that it is cut, a draft or a refusal; none is well."""
    levels = (data, choice, _message(choice))
    found = {
        _end(k.casefold(), level[k])
        for level in levels
        for k in level.keys() - USUAL
        if _ENDS.match(k)
    }
    if any(p.get("type") == "refusal" for p in _parts(choice)):
        found.add("refusal")
    return found - {""}


def _end(name: str, value: Any) -> str:
    """What one field says against its reply, in small letters; "" where it is harmless.

    >>> _end("finish_reason", "STOP"), _end("finish_reason", "length"), _end("done", False)
    ('', 'length', 'done')
    """
    if _FILTER.search(name) and not isinstance(value, str):
        said = json.dumps(value)
        bad = _FILTERED.match(said) or _FILTERED.search(said, 1) if value else None
        return "content_filter" if bad else ""
    if isinstance(value, (int, float)) and value in (0, 1) and "status" not in name:
        return "" if value == bool(_WELL.search(name)) else name
    if isinstance(value, (bool, int, float)):
        fine = value is not False and ("stop" in name or "token" in name or value == 200)
        return "" if fine else name  # a token's number
    inner = value.values() if isinstance(value, Mapping) else [str(value or "")]
    words = [v.casefold() for v in inner if isinstance(v, str)] or ([name] if value else [])
    words = [w.removeprefix("finish_reason_") for w in words]
    if name == "type":  # of an object
        return next((w for w in words if w in ("error", "refusal")), "")
    bad = [w for w in words if w not in FINE and not ("stop" in name and _stopped(w))]
    if bad and "refus" in name:
        return "refusal"
    return bad[0] if bad else ""


def _stopped(w: str) -> bool:
    """True for what a server stopped at: a token, or a text without a word in it."""
    token = bool(_TOKEN.fullmatch(w)) and w.strip("</|>") not in LIMITS | FILTERED
    return token or not re.search(r"\w", w)


def _odd(data: Mapping[str, Any], choice: Mapping[str, Any], text: str, ends: set[str]) -> str:
    """Why an envelope is not believed: not whole, or a second text; "" where all is well."""
    why, _ = unusable(data, "/chat/completions")
    if why or ends:
        return why or f"the reply ended with {min(ends)[:40]!r}"
    for level in (data, choice, {**_message(choice), "content": ""}):
        for k, v in level.items():
            other = k not in USUAL and not _BESIDE.match(k) and _STATES.search(json.dumps(v))
            if (k in TEXTS or other) and _second(v, text):
                return f"a second text beside its content: {k!r}"
    return ""


def _second(value: Any, text: str) -> bool:
    """True for words beside the content of a reply that are not the same once more."""
    said = (value.get("content") or value.get("text")) if isinstance(value, Mapping) else value
    if isinstance(said, str):
        return said.strip() != text.strip() and said.casefold() not in FINE
    if not _SPEAKS.search(json.dumps(value).replace(json.dumps(text), "")):
        return False
    try:
        return bool(value != json.loads(text))  # its decoded form
    except (ValueError, RecursionError):
        return True


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
        odd = p.get("type") not in (None, "text", "output_text")
        if odd or {k for k, v in p.items() if v} - PART or not isinstance(p.get("text"), str):
            raise Foreign(f"a part of type {p.get('type')!r} with {sorted(p)}")
        said.append(p["text"])
    return "".join(said)


def _parts(choice: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    content = _message(choice).get("content")
    parts = content if isinstance(content, list) else []
    return [p if isinstance(p, Mapping) else {"type": type(p).__name__} for p in parts]


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
