"""From a judge's raw reply to one reading per criterion: by id, never by position; no guessing.

What is read is what the judge says in the asked form. A draft (an unclosed <think>, a reply that
was cut off), a quotation ("> VERDICT c1: met", JSON inside a sentence) and the prompt said back are
not its verdict. Two complete verdicts on one criterion that disagree are a contradiction: neither
the first nor the last is believed, since the second may be a quoted injection as well as a change
of mind. A word that is not an allowed verdict ("Partially") is a parse failure of that criterion,
not a No. A criterion that is missing, named twice or broken harms no sibling. Nothing is ever
padded, clamped or defaulted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..records import Criterion
from .drafts import spoken
from .logprobs import token_p
from .templates import names
from .words import Reading, percent, reading, word

RUNAWAY = 8  # blanks at the end of a whole JSON reply that was cut: the model had finished
WORK = 200_000  # characters of broken JSON that are gone through before a reply is given up
BROKEN = "(breaks off)"
CUT = "the reply was cut at the token limit"
VERDICTS = ("verdict", "status", "rating", "answer")
REASONS = ("reason", "rationale", "explanation")
IDS = ("id", "criterion_id", "criterion")
_LINE = re.compile(r"^([^\w\n]{0,12})(verdict|reason|confidence)\b([^\n]*)$", re.I | re.M)
_NAMED = re.compile(r"[\s<\[\"'`*(]*([A-Za-z][\w.-]*?)[>\]\"'`*)]*\s*(?:[:=]+|->)\s*(.*)", re.S)
_BARE = re.compile(r"[\s*'`]*(?:[:=]+|->|\bis\b)\s*(.*)", re.S)
_TAIL = re.compile(r"[.;,(\[]|\s[-\u2013\u2014]\s|\s(?=because\b|since\b|as\b)", re.I)
# a second thought behind the verdict word: "met, or rather unmet"
_SECOND = re.compile(r"\b(?:actually|rather|or|wait|correction|change|instead|no)\b", re.I)
_OPEN = re.compile(r'\{\s*["}]|\[\s*[\[{"\]]')
_START = re.compile(r"\s*(?:```\w*\s*)?")
_BLANK = re.compile(r"\s*")


def read(
    text: str, criteria: Sequence[Criterion], *, mode: str = "schema", cut: bool = False
) -> list[Reading]:
    """One reading per criterion, in order, from the raw text of a reply.

    mode : how the reply was asked for, "schema" (JSON) or "text" (lines).
    cut : the reply ended at the token limit. It is a draft, and is not believed: where it stops,
        the judge had perhaps not made up its mind. (Whole JSON that runs on in blanks is none.)

    >>> a, b = Criterion(id="a", text=""), Criterion(id="b", text="")
    >>> [r.status for r in read('{"b": {"verdict": "unmet"}, "a": "met"}', [a, b])]
    ['met', 'unmet']
    >>> read('{"a": "unmet"} but the answer says: {"a": "met"}', [a])[0].failure
    'contradiction'
    """
    ids = names(criteria)
    whole = _decoded(text)
    if whole is None:
        text = spoken(text)
        whole = _decoded(text)
    if whole is not None and not (cut and len(text) - len(text.rstrip()) < RUNAWAY):
        found = occurrences(whole, ids)
        if found or isinstance(whole, dict):
            return _readings(found, ids, criteria, "json")
        return [Reading(failure="parse", how="none") for _ in criteria]
    if cut:
        return [Reading(failure="parse", how="none", reason=CUT) for _ in criteria]
    voices = _Voices(ids, criteria)
    voices.hear(text)
    return voices.readings("missing" if text.strip() and mode == "text" else "parse")


def refused(readings: Sequence[Reading]) -> list[Reading]:
    """The same readings, all refused."""
    return [replace(r, status="unknown", value=None, failure="refusal") for r in readings]


def agreed(choices: Sequence[Sequence[Reading]]) -> list[Reading]:
    """Several choices of one reply as one; a contradiction where they disagree."""
    return [r[0] if len(r) == 1 else _settle(r, r) for r in map(list, zip(*choices, strict=True))]


# -- what is said in a reply, and what is only quoted in it ---------------------------------------
@dataclass
class _Voices:
    """Readings per id: `said` in the asked form, and `heard`: quoted, or in a sentence."""

    ids: Sequence[str]
    criteria: Sequence[Criterion]
    said: dict[str, list[Reading]] = field(default_factory=dict)
    heard: dict[str, list[Reading]] = field(default_factory=dict)
    lost: bool = False  # too much broken JSON to be sure of anything

    def hear(self, text: str) -> None:
        """A reply in free form."""
        start = self._members(text)
        spans = []
        for value, at, end in self._inside(text, start):
            own = start == 0 and _alone(text, at, end)
            self._found(value, "json found in text", own)
            spans.append((at, end))
        self._lines([m for m in _LINE.finditer(text) if not _within(m.start(), spans)])

    def readings(self, otherwise: str) -> list[Reading]:
        """One reading per criterion; `otherwise` where nothing at all was found."""
        if self.lost or not (self.said or self.heard):
            return [Reading(failure=otherwise, how="none") for _ in self.ids]
        return [_settle(self.said.get(n, []), self.heard.get(n, [])) for n in self.ids]

    def _found(self, value: Any, how: str, own: bool) -> None:
        found = occurrences(value, self.ids)
        for n, c in zip(self.ids, self.criteria, strict=True):
            if n in found:
                into = self.said if own else self.heard
                into.setdefault(n, []).append(_one(c, found[n], how))

    def _members(self, text: str) -> int:
        """Hear the finished members of a JSON reply that is not whole; where it broke, else 0."""
        at = _START.match(text).end()  # type: ignore[union-attr]
        if text[at : at + 1] not in ("{", "[") or _raw(text, at) is not None:
            return 0
        end, values = _partial(text, at, {n.casefold() for n in self.ids})
        for value in values:
            self._found(value, "json begun", True)
        return end if values or text[at] == "{" else 0

    def _inside(self, text: str, at: int) -> Iterator[tuple[Any, int, int]]:
        """JSON objects and lists that stand in a text, from left to right, with their places."""
        work = 0
        while m := _OPEN.search(text, at):
            value, end = _attempt(text, m.start())
            if value is not None:
                yield value, m.start(), end
                at = end
                continue
            work += end - m.start() + 50 + len(text) // 50  # what an attempt costs
            at = m.start() + 1
            if work > WORK:
                self.lost = True
                return

    def _lines(self, marks: Sequence[re.Match[str]]) -> None:
        """`VERDICT <id>: <word>` lines; those behind a ">" are quotations."""
        notes: dict[tuple[str, str], str] = {}
        verdicts = []
        for m in marks:
            name, rest = self._line(m)
            if name is None:
                continue
            if m[2].casefold() == "verdict":
                verdicts.append((name, rest, ">" in m[1]))
            elif ">" not in m[1]:
                notes[name, m[2].casefold()] = rest
        for name, rest, quoted in verdicts:
            c = self.criteria[self.ids.index(name)]
            reason = notes.get((name, "reason"), "").strip() or None
            r = _worded(c, rest.strip(), reason, notes.get((name, "confidence")))
            (self.heard if quoted else self.said).setdefault(name, []).append(r)

    def _line(self, m: re.Match[str]) -> tuple[str | None, str]:
        """(id, the rest) of a line; no id where it names none of ours."""
        named = _NAMED.match(m[3])
        for n in self.ids if named else ():
            if n.casefold() == named[1].casefold():  # type: ignore[index]
                return n, named[2]  # type: ignore[index]
        bare = _BARE.match(m[3]) if len(self.ids) == 1 and '"' not in m[1] else None
        return (self.ids[0], bare[1]) if bare else (None, "")


def _settle(said: Sequence[Reading], heard: Sequence[Reading]) -> Reading:
    """One reading from all that a reply says of one criterion."""
    states = {(r.status, r.value) for r in (*said, *heard) if r.complete}
    if len(states) > 1 and any(r.complete for r in said):
        both = " and ".join(sorted(_shown(s) for s in states))
        return Reading(failure="contradiction", how=said[-1].how, reason=f"it says {both}")
    if not said:
        why = "its verdict stands in a quotation or a sentence only" if heard else None
        return Reading(failure="missing", how="text", reason=why)
    return next((r for r in said if not r.complete), said[-1])


def _shown(state: tuple[str, float | None]) -> str:
    status, value = state
    return f"{value:.3g} of 1" if status == "level" else status.replace("unknown", "cannot tell")


def _within(at: int, spans: Sequence[tuple[int, int]]) -> bool:
    return any(a <= at < b for a, b in spans)


# -- lines of text --------------------------------------------------------------------------------
def _worded(c: Criterion, raw: str, reason: str | None, confidence: Any) -> Reading:
    """A verdict line's words: all of them, or those before a comma, a bracket or a "because"."""
    full = reading(c, raw, reason, confidence, "text")
    if full.failure != "parse" or c.scale == "points":
        return full
    first, *rest = _TAIL.split(raw, maxsplit=1)
    got = reading(c, first, reason, confidence, "text")
    tail = raw[len(first) :]
    if rest and got.complete and _SECOND.search(tail) and _other(c, tail, got):
        return Reading(failure="contradiction", how="text", reason=reason or raw[:200])
    return got


def _other(c: Criterion, tail: str, got: Reading) -> bool:
    """True when another verdict word stands behind the first."""
    words = re.findall(r"not met|[\w/]+", tail[:400], re.I)
    states = {state for w in words if (state := word(c, w)) is not None and w.casefold() != "no"}
    return any(s[0] != got.status or s[1] != got.value for s in states)


# -- JSON -----------------------------------------------------------------------------------------
class _Twice(list[Any]):
    """All values of a key that a JSON object names more than once."""


def _hook(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for k, v in pairs:
        if k in out:
            out[k] = _Twice([*(out[k] if isinstance(out[k], _Twice) else [out[k]]), v])
        else:
            out[k] = v
    return out


_DECODER = json.JSONDecoder(object_pairs_hook=_hook, parse_constant=str, strict=False)


def _decoded(text: str) -> Any:
    """The object or list that the whole text is, else None."""
    text = text.strip()
    got = _raw(text, 0) if text[:1] in ("{", "[") else None
    return got[0] if got and got[1] == len(text) else None


def _raw(text: str, at: int) -> tuple[Any, int] | None:
    value, end = _attempt(text, at)
    return None if value is None else (value, end)


def _attempt(text: str, at: int) -> tuple[Any, int]:
    """(value, its end), or (None, the place where it breaks)."""
    try:
        return _DECODER.raw_decode(text, at)
    except json.JSONDecodeError as e:
        return None, max(e.pos, at)
    except (ValueError, RecursionError):  # a number of 5,000 digits, 1,000 brackets
        return None, len(text)


def _partial(text: str, at: int, asked: set[str], depth: int = 0) -> tuple[int, list[Any]]:
    """(where it breaks, finished parts) of an object or list that is not whole.

    An asked criterion's own object must be closed; a wrapper ({"verdicts": [...) need not.
    """
    out: list[Any] = []
    listed, at = text[at] == "[", at + 1
    while True:
        name, at = None, _blank(text, at)
        if not listed:
            key, at = _attempt(text, at)
            at = _blank(text, at)
            if not isinstance(key, str) or text[at : at + 1] != ":":
                return at, out
            name, at = key, _blank(text, at + 1)
        value, end = _attempt(text, at)
        if value is None and text[at : at + 4] != "null":
            ours = (name or "").casefold() in asked
            if ours or depth > 2 or text[at : at + 1] not in ("{["[listed:], "["):
                return end, [*out, {name: BROKEN}] if ours else out
            end, inner = _partial(text, at, asked, depth + 1)
            return end, out + inner
        out.append([value] if listed else {name: value})
        at = _blank(text, end)
        if text[at : at + 1] != ",":
            return at, out
        at += 1


def _blank(text: str, at: int) -> int:
    return _BLANK.match(text, at).end()  # type: ignore[union-attr]


def _alone(text: str, at: int, end: int) -> bool:
    """Whether nothing but marks of a code block stands before a JSON value on its line."""
    before = text[text.rfind("\n", 0, at) + 1 : at]
    return not before.strip(" \t`*") or before.strip(" \t`*").casefold() == "json"


def occurrences(value: Any, ids: Sequence[str]) -> dict[str, list[Any]]:
    """Every mention of an asked id in a decoded reply, by id; ids that were not asked are left out.

    Accepts the asked form (an object keyed by id) and a list of objects with an "id" each; never
    positions. Wrappers ({"verdicts": ...}) are looked into.
    """
    fold = {i.casefold(): i for i in ids}
    out: dict[str, list[Any]] = {}
    alone = len(ids) == 1 and isinstance(value, dict) and "verdict" in value
    if alone and not any(k.strip().casefold() in fold for k in value):
        value = {value.get("id", ids[0]): value} if _hashable(value.get("id", "")) else {}
        _mentions(value, fold, out, 2)  # one question, one answer: nothing to mix up
        return out
    _mentions(value, fold, out, 0)
    return out


def _hashable(name: Any) -> bool:
    return isinstance(name, str)


def _mentions(value: Any, fold: Mapping[str, str], out: dict[str, list[Any]], depth: int) -> None:
    if depth > 3:
        return
    if isinstance(value, dict):
        for k, v in value.items():
            own = fold.get(k.strip().casefold()) if isinstance(k, str) else None
            if own is not None:
                out.setdefault(own, []).extend(v if isinstance(v, _Twice) else [v])
            elif isinstance(v, (dict, list)):
                _mentions(v, fold, out, depth + 1)
    elif isinstance(value, list):
        for item in value:
            name = next((item[k] for k in IDS if k in item), None) if _is_item(item) else None
            own = fold.get(name.strip().casefold()) if isinstance(name, str) else None
            if own is not None:
                out.setdefault(own, []).append(item)
            elif isinstance(item, (dict, list)):
                _mentions(item, fold, out, depth + 1)


def _is_item(item: Any) -> bool:
    return isinstance(item, dict) and any(k in item for k in VERDICTS)


def _readings(
    found: Mapping[str, list[Any]], ids: Sequence[str], criteria: Sequence[Criterion], how: str
) -> list[Reading]:
    return [
        _one(c, found[n], how) if n in found else Reading(failure="missing", how=how)
        for n, c in zip(ids, criteria, strict=True)
    ]


def _one(c: Criterion, items: Sequence[Any], how: str) -> Reading:
    """One reading from all mentions in one JSON value; named twice is not an answer."""
    got = [_item(c, x, how) for x in items]
    if len(got) == 1:
        return got[0]
    differ = len({(r.status, r.value) for r in got}) > 1
    failure = "contradiction" if differ else "missing"
    return Reading(failure=failure, how=how, reason="named twice in one reply")


def _item(c: Criterion, item: Any, how: str) -> Reading:
    """One criterion's part of a JSON reply."""
    if not isinstance(item, dict):
        return reading(c, item, None, None, how)
    raws = [item[k] for k in VERDICTS if k in item]
    reason = next((item[k] for k in REASONS if isinstance(item.get(k), str)), None)
    states = {state for r in raws if (state := word(c, r)) is not None}
    if len(states) > 1 or any(isinstance(r, _Twice) for r in raws):
        return Reading(failure="contradiction", reason=reason, how=how)
    return reading(c, raws[0] if raws else None, reason, item.get("confidence"), how)


__all__ = ["Reading", "agreed", "occurrences", "percent", "read", "refused", "token_p", "word"]
