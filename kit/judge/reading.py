"""A chat completion as readings; and stored replies read again when the reader has changed."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..records import Criterion, Response, Verdict
from . import parse
from .drafts import spoken
from .parse import CUT
from .records import READER, Call
from .templates import line
from .words import Reading

FILTERED = (
    "content_filter",
    "safety",
    "refusal",
    "recitation",
    "prohibited_content",
    "blocklist",
    "spii",
    "guardrail_intervened",
)
LIMITS = (  # the ways in which servers say that a reply is not finished
    "length",
    "max_tokens",
    "max_output_tokens",
    "model_length",
    "incomplete",
    "abort",
    "cancelled",
    "timeout",
)
FINISHED = frozenset(  # and that it is; any other word is a reply that ended in an unknown way
    "stop eos eos_token end end_turn end_of_turn stop_sequence stop_token stop_word complete "
    "completed done finished success tool_calls tool_use function_call".split()
) | {""}
_ASKED = re.compile(r'^\{"id": .*\}$', re.M)


def heard(
    data: Mapping[str, Any], criteria: Sequence[Criterion], answer: str, mode: str
) -> tuple[list[Reading], list[Any]]:
    """Readings and (P, mass) per criterion of a decoded reply to a question on this answer."""
    choices = _choices(data)
    readings = parse.agreed([_choice(c, criteria, answer, mode) for c in choices])
    logprobs = choices[0].get("logprobs")
    tokens = logprobs.get("content") if isinstance(logprobs, Mapping) else None
    probs: list[Any] = [None] * len(criteria)
    if tokens and len(choices) == 1:
        probs = parse.token_p(tokens, criteria, readings)
    return readings, probs


def _choice(
    choice: Mapping[str, Any], criteria: Sequence[Criterion], answer: str, mode: str
) -> list[Reading]:
    """The readings of one choice of a reply; a refusal beside a verdict is a refusal."""
    text, end, cut = _text(choice), _ended(choice), _unfinished(choice)
    refusal = _message(choice).get("refusal") or any(
        p.get("type") == "refusal" for p in _parts(choice)
    )
    if not text.strip():
        refusal = refusal or end in FILTERED
        why = CUT if cut else "the reply is empty"
        empty = Reading(failure="refusal" if refusal else "parse", how="none", reason=why)
        return [empty] * len(criteria)
    readings = parse.read(text, criteria, mode=mode, cut=cut, answer=answer)
    if refusal or end in FILTERED:
        return parse.refused(readings)
    if cut and end not in LIMITS:
        why = f"the reply ended with {end[:40]!r}"
        return [dataclasses.replace(r, reason=why) if r.reason == CUT else r for r in readings]
    calls = _arguments(choice)
    return parse.beside(readings, parse.read(calls, criteria, mode=mode)) if calls else readings


def _arguments(choice: Mapping[str, Any]) -> str:
    """What a tool call beside the reply says."""
    message = _message(choice)
    calls = message.get("tool_calls") or [{"function": message.get("function_call")}]
    first = calls[0] if isinstance(calls, list) else None
    call = first.get("function") if isinstance(first, Mapping) else None
    said = call.get("arguments") if isinstance(call, Mapping) else None
    return said if isinstance(said, str) else ""


def finished(data: Mapping[str, Any]) -> bool:
    """True for a reply that says something and was not cut."""
    return all(_text(c).strip() and not _unfinished(c) for c in _choices(data))


def is_cut(data: Mapping[str, Any]) -> bool:
    """True when a reply ended at the limit of its tokens."""
    return _ended(_choices(data)[0]) in LIMITS


def _choices(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The choices of a reply, at least one (which may say nothing)."""
    rows = data.get("choices")
    rows = rows[:8] if isinstance(rows, list) else []
    return [c for c in rows if isinstance(c, Mapping)] or [{}]


def _message(choice: Mapping[str, Any]) -> Mapping[str, Any]:
    message = choice.get("message")
    return message if isinstance(message, Mapping) else {}


def _ended(choice: Mapping[str, Any]) -> str:
    """Why a choice ended, in small letters."""
    end = choice.get("finish_reason")
    return end.casefold() if isinstance(end, str) else ""


def _unfinished(choice: Mapping[str, Any]) -> bool:
    """True for a reply that is a draft: cut, filtered, or ended in a way that nobody knows."""
    more = (choice.get("stop_reason"), choice.get("native_finish_reason"))
    cut = any(isinstance(m, str) and m.casefold() in LIMITS for m in more)
    return cut or choice.get("truncated") is True or _ended(choice) not in FINISHED


def _text(choice: Mapping[str, Any]) -> str:
    """What the judge says: its content, or its parts (thoughts are none); not the prompt's."""
    message = _message(choice)
    if message.get("role") not in (None, "", "assistant", "model"):
        return ""
    content = message.get("content")
    if isinstance(content, str):
        return content
    said = [p.get("text") for p in _parts(choice) if p.get("type") in (None, "text", "output_text")]
    return "".join(t for t in said if isinstance(t, str))


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
        prompt = spoken(request["messages"][-1]["content"])  # without the task and the answer
        rows = [(json.loads(text)["id"], text) for text in _ASKED.findall(prompt)]
    except (ValueError, KeyError, TypeError, IndexError):
        return None
    mine = [n for n, text in rows if text == line(n, c)]
    name = c.id if c.id in mine else (mine or [None])[0]
    if name is None or (len(mine) > 1 and name != c.id):
        return None
    asked = [
        dataclasses.replace(c, id=n) if n == name else Criterion(id=n, text="") for n, _ in rows
    ]
    readings, _ = heard(data, asked, response.text, v.meta["mode"])
    return readings[[n for n, _ in rows].index(name)]
