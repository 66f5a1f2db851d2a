"""A chat completion as readings; and stored replies read again when the reader has changed.

One rule for the envelope: whatever a field holds beside the reply's one text must be harmless, at
the reply, its choices, their messages and their parts, however deep. Harmless is nothing (null, 0,
false, empty), a word for a good end (FINE), what repeats the text, and what a name tells to be an
id, a count, a time or a thought (_ASIDE). So are a number and a text under a name that tells of no
end, state, verdict or other reply (_TELLS), where the text has no word for such a thing (_ILL):
servers add fields of their own. Anything else makes the reply cut, refused, or unread.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from ..records import Criterion, Response, Verdict
from . import parse
from .keys import redact, said
from .logprobs import token_p
from .parse import CUT
from .records import READER, Call
from .templates import BINARY, line
from .words import Reading

FINE = frozenset(
    "stop eos eos_token end end_turn endturn stop_sequence complete completed done finished normal "
    "finishreason.stop eosfound stopstringfound 200 succeeded success ok final none null safe "
    "disabled auto assistant model url_citation file_citation message text output_text noul "
    "predicate decision chat.completion chat.completion.chunk text_completion "
    "以上内容为ai生成\uff0c不代表开发者立场\uff0c请勿删除或修改本标记 "
    "以上内容为ai生成,不代表开发者立场,请勿删除或修改本标记".split()  # Hunyuan's mark
)
LIMITS = frozenset("length max_tokens max_output_tokens model_length incomplete truncated".split())
FILTERED = frozenset(
    "content_filter safety refusal recitation prohibited_content blocklist spii "
    "guardrail_intervened".split()
)
MOST = 128  # choices that are read
EMPTY = "the reply is empty"
BESIDE = "the reply holds, beside its text, "
REFUSED = "the model refused, or was filtered"
_ASIDE = re.compile(  # names under which nothing speaks of the reply; a gateway's own begin with _
    r"_.*|.*(?:reasoning|think|thought).*|(?:.*_)?(?:ids?|created|models?|provider|tier|fingerprint|"
    r"version|hash|seed|index|n|tokens?|at|time|ms|seconds?|duration|latency|cost|usage|"
    r"timings|metrics|stats|logprobs|citations?|metadata|prompt|offsets?|params|categor(?:y|ies)|"
    r"(?:probability|severity)(?:_?score)?)|search_results|web_search|source_type",
    re.I,
)
_THOUGHT = re.compile("reasoning|think|thought|prompt", re.I)
_TELLS = re.compile(  # of an end, a state, a verdict, another reply
    r"finish|done|end(?!point)|stop|stat(?:us|e)|complet|truncat|cut|part(?!y)|limit|exceed|error|fail|"
    r"refus|reject|filter|moderat|safe|harm|toxic|violat|block|flag|warn(?!ings$)|valid|success|cancel|"
    r"abort|interrupt|expire|withdr|retract|revis|correct|overrid|supersed|draft|final|verdict|score|"
    r"rating|grade|label(?!_mass$)|judg|result|met$|object|type|role|delta|content|text(?!_)|output|answer|reply|"
    r"response|completion|message|choice|tool|function|call|_reason|comment|note(?!_)|channel|"
    r"^err|exception|traceback|stale|review|stage|phase|^ok$|^reason$|(?:^|_)code$|^msg$|^info$|notice|"
    r"remark",
    re.I,
)
_ENDED = re.compile(
    r"(?:^|_)(?:status|error|truncated|verdict|(?:finish|stop)_?reason)$", re.I
)  # anywhere
_ILL = re.compile(
    r"^\W*(?:yes|no|true|false)\W*$|"
    r"\b(?:(?:un)?met|pass(?:ed)?|satisfied|fulfilled|verdict|unclear|unknown)\b|"
    r"cannot|n't\b|\bnot\b|fail|error|refus|reject|filter|block|flag|violat|unsafe|harm|truncat|"
    r"incomplete|\bcut\b|partial|limit|length|exceed|max_|cancel|abort|interrupt|expire|withdr|retract|"
    r"revis|overrid|supersed|draft|invalid|wrong|instead|sorry|interven|[{}]",
    re.I,
)
# names of which only these words speak of the reply: the rest is licences, prices, checks
_ALOUD = {
    "warnings": _ILL,
    "hook_results": re.compile(r'"(?:verdict": false|deny": true|error": ")'),
}
_SET = re.compile(  # a warning that a parameter was left out, and which value it has (watsonx)
    r"[{}]|value of '\w+' for this model was set|\"(?:unspecified_\w+\"|limit\": "
    r"0\b|parameter\": \"\w+)"
)
EITHER = frozenset("cached cache_hit is_cached stream streamed stopped_eos stopped_word".split())
PLAIN = 200  # characters of a text that servers add
_WELL = re.compile(  # names whose harmless value is true
    r"finish|done|end_turn|(?<!in)complete|^(?:stop|stopped|eos|status|role)$|(?:^|_)(?:ok|valid|final|success)$",
    re.I,
)
_FILTER = re.compile(r"filter|moderat|block|flag|refus", re.I)
_TOKEN = re.compile(r"<[^<>\s]{1,40}>|\W+")  # at which a server stopped
_ASKED = re.compile(r'^\{"id": .*\}$', re.M)
_FENCED = re.compile(r"<<<(TASK|SOURCES|ANSWER) (\w{1,64})\n.*?\n\1 \2>>>", re.S)
_POINTS = re.compile(r"a number from 0 to (\S+)")


def heard(
    data: Mapping[str, Any], criteria: Sequence[Criterion], answer: str
) -> tuple[list[Reading], list[Any]]:
    """Readings and (P, mass) per criterion of a decoded reply to a question on this answer."""
    rows = data.get("choices")
    whole = isinstance(rows, list) and 0 < len(rows) <= MOST
    choices = [c if isinstance(c, dict) else {} for c in rows] if whole else [{}]
    readings = parse.agreed([_choice(data, c, criteria, answer) for c in choices])
    logprobs = choices[0].get("logprobs")
    tokens = logprobs.get("content") if isinstance(logprobs, dict) else None
    if tokens and len(choices) == 1:
        return readings, token_p(tokens, criteria, readings)
    return readings, [None] * len(criteria)


def _choice(
    data: Mapping[str, Any], choice: Mapping[str, Any], criteria: Sequence[Criterion], answer: str
) -> list[Reading]:
    """The readings of one choice of a reply; a refusal beside a verdict is a refusal."""
    message = choice.get("message")
    message = message if isinstance(message, dict) else {}
    parts = _parts(message.get("content"))
    words = [p.get("text") for p in parts]
    text = "".join(t for t in words if isinstance(t, str))
    beside = {
        *_beside(text, data, "choices"),
        *_beside(text, choice, "message"),
        *_beside(text, message, "content"),
        *(name for p in parts for name in _beside(text, p, "text")),
    }
    found, bare = fault(beside), not text.strip()
    if found is None or found.failure == "parse":
        if any(not isinstance(t, str) for t in words):
            found = _unread("a part of its content is no text")
        elif bare:
            found = found or _unread(EMPTY)
    if found is not None and (bare or found.reason != CUT):
        return [found] * len(criteria)
    return parse.read(text, criteria, cut=found is not None, answer=answer)


def fault(words: Collection[str]) -> Reading | None:
    """Why a reply with these words or names beside its text is not believed."""
    if any(w in FILTERED or _FILTER.search(w) for w in words):
        return Reading(failure="refusal", how="none", reason=REFUSED)
    other = set(words) - LIMITS
    if other:
        return _unread(f"{BESIDE}{redact(min(other))[:40]!r}")
    return _unread(CUT) if words else None


def _unread(why: str) -> Reading:
    return Reading(failure="parse", how="none", reason=why)


def _parts(content: Any) -> list[Mapping[str, Any]]:
    """The parts of a message's content, but for thoughts."""
    if not isinstance(content, list):
        content = [] if content is None else [{"text": content}]
    parts = [p if isinstance(p, dict) else {} for p in content]
    return [p for p in parts if not _aside(str(p.get("type")))]


_aside = functools.lru_cache(maxsize=1024)(_ASIDE.fullmatch)  # of the few names of all replies


@functools.lru_cache(maxsize=1024)
def _well(name: str) -> bool:
    return bool(_WELL.search(name))


@functools.lru_cache(maxsize=1024)
def _tells(name: str) -> bool:
    return bool(_TELLS.search(name) or _well(name))


def _beside(text: str, level: Mapping[str, Any], own: str) -> Iterator[str]:
    """What the fields of one level say against the reply of this text, `own` left out."""
    for name, value in level.items():
        if name != own and (value or (value is not None and _well(name))):
            yield from _against(name, value, text)


def _against(name: str, value: Any, text: str) -> Iterator[str]:
    """The word (of LIMITS or FILTERED) or the name by which one field speaks against its reply.

    >>> [*_against("finish_reason", "STOP", ""), *_against("done", True, "")]
    []
    >>> [*_against("finish_reason", "length", ""), *_against("done", False, "")]
    ['length', 'done']
    """
    if _aside(name) and value is not True and not _ENDED.search(name):
        if not isinstance(value, dict) or _THOUGHT.search(name):
            return
        value = {k: v for k, v in value.items() if _ENDED.search(k)}
    if name in EITHER or _same(value, text):
        return
    if name in _ALOUD:
        yield from [name] if _ALOUD[name].search(_SET.sub("", json.dumps(value))) else ()
        return
    if isinstance(value, dict):
        rated = isinstance(value.get("level"), int)  # and whose words they were (Zhipu)
        yield from _beside(text, value, "role" if rated else "")
    elif isinstance(value, list):
        for part in value:
            yield from _against(name, part, text) if part else ()
    elif isinstance(value, str):
        word = value.strip().casefold().removeprefix("finish_reason_")
        fine = word in FINE or _token(name, word) or (word == "true" and _well(name))
        fine = fine or not (_tells(name) or len(word) > PLAIN or _ILL.search(word))
        if not fine:
            yield word if word in LIMITS | FILTERED else name
    elif (isinstance(value, bool) or _tells(name)) and not _token(name, value):
        good = 200 if "status" in name else _well(name)
        yield from [name] * (value != good)


def _token(name: str, value: Any) -> bool:
    """True for what tells at which token, or text without a word, a server stopped."""
    if not re.search("stop|finish", name):
        return False
    if isinstance(value, str):
        return bool(_TOKEN.fullmatch(value)) and value.strip("</|>") not in LIMITS | FILTERED
    return type(value) is int and value > 1 and "stop" in name


def _same(value: Any, text: str) -> bool:
    """True for no text, the reply's own once more, or its decoded form."""
    if isinstance(value, str):
        return value.strip() in ("", text.strip())
    try:
        return isinstance(value, dict) and bool(value) and value == json.loads(text)
    except (ValueError, RecursionError):
        return False


# -- no answer at all ----------------------------------------------------------
def unusable(data: Any, path: str) -> tuple[str, int]:
    """(why a decoded reply is no answer, what the fault counts); ("", 0) when it is one."""
    if not isinstance(data, dict):
        return "HTTP 200 with a body that is no object", 2
    choices = data.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    for level in (data, first, message):
        if isinstance(level, dict) and _failed(level):
            return f"HTTP 200 with an error: {said(json.dumps(level))}", 1
    if not path.endswith("/chat/completions"):
        return ("", 0) if data.get("answers") else ("HTTP 200 without answers", 2)
    if not isinstance(message, dict):
        return "HTTP 200 without a choice that has a message", 2
    return "", 0


def _failed(level: Mapping[str, Any]) -> bool:
    """True for a reply, or a part of one, that calls itself an error."""
    ends = {str(level.get(k)).casefold() for k in ("object", "status", "finish_reason")}
    named = level.get("error") or level.get("errors") or level.get("success") is False
    return bool(named) or bool(ends & {"error", "failed", "cancelled"})


# -- what an earlier reader took from a reply -----------------------------------------------------
def again(v: Verdict, call: Call | None, c: Criterion, response: Response) -> Verdict:
    """A stored verdict as today's reader reads the reply that it was made from.

    As it is where that reply is not kept, or the call does not show that it asked for `c`.
    """
    meta = {**v.meta, "reader": READER}
    try:
        r, prob = _again(v, call, c, response) if call is not None else (None, None)
    except Exception:  # whatever an imported line holds in the place of request and reply
        r = prob = None
    p = v.p
    if r is not None and "mass" in meta:  # P came from the reply's tokens
        p = prob[0] if prob else None
    if r is None or (r.status, r.value, r.failure) == (v.status, v.value, v.failure):
        return dataclasses.replace(v, p=p, meta=meta)
    return dataclasses.replace(
        v,
        status=r.status,
        value=r.value,
        failure=r.failure,
        reason=r.reason or "its reply, read again, holds no verdict",
        p=None,
        meta={**meta, "was": v.status},
    )


def _again(v: Verdict, call: Call, c: Criterion, response: Response) -> tuple[Any, Any]:
    data = json.loads(call.reply)
    request = json.loads(call.request)
    prompt = _FENCED.sub("", request["messages"][-1]["content"])  # not the task, the answer
    rows = [(json.loads(text), text) for text in _ASKED.findall(prompt)]
    others = [_shown(row) for row, _ in rows]
    mine = [o.id for o, (_, text) in zip(others, rows, strict=True) if text == line(o.id, c)]
    name = c.id if c.id in mine else (mine or [None])[0]
    if name is None or (len(mine) > 1 and name != c.id):
        return None, None
    asked = [dataclasses.replace(c, id=name) if o.id == name else o for o in others]
    readings, probs = heard(data, asked, response.text)
    at = [o.id for o in asked].index(name)
    return readings[at], probs[at]


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
