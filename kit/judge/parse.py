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
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..records import Criterion
from .drafts import covered, quotations, spoken
from .lines import Judged, below, lines, worded
from .logprobs import token_p
from .prose import Prose, strays
from .templates import names
from .words import REASON, Reading, percent, reading, word

RUNAWAY = 8  # blanks at the end of a whole JSON reply that was cut: the model had finished
LINES = 10_000  # of a reply in free form
QUOTES = 1000  # in it that open; each may be looked through for its end
WORK = 200_000  # characters of broken JSON that are gone through before a reply is given up
BROKEN = "(breaks off)"
CUT = "the reply was cut at the token limit"
VERDICTS = ("verdict", "status", "rating", "answer")
REASONS = ("reason", "rationale", "explanation")
IDS = ("id", "criterion_id", "criterion")
WRAPPERS = frozenset(
    "verdict verdicts result results criteria criterion evaluation evaluations judgment judgments "
    "judgement judgements rating ratings score scores grade grades assessment assessments "
    "output response answer answers data rubric".split()
)
DECIDES = re.compile(r"verdict|final|correct|actual|status|rating|decision|^met$", re.I)
RETRACTS = re.compile(
    r"negat|overrul|retract|withdr|void|invalid|supersed|revok|ignor|quot|inject|example|draft",
    re.I,
)
SCORES = ("score", "points", "value", "grade", "mark", "marks")
MOST = ("max", "maximum", "out_of", "of", "max_score", "max_points", "total")
THOUGHTS = re.compile(r"reason|rationale|expla|analy|th(?:ought|ink)|evidence|comment|quot", re.I)
_OPEN = re.compile(r'\{\s*["}]|\[\s*[\[{"\]]')
_START = re.compile(r"\s*(?:```\w*\s*)?")
_BLANK = re.compile(r"\s*")


def read(
    text: str,
    criteria: Sequence[Criterion],
    *,
    mode: str = "schema",
    cut: bool = False,
    answer: str = "",
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
    voices = _Voices(ids, criteria, Judged(answer))
    if whole is not None and not (cut and len(text) - len(text.rstrip()) < RUNAWAY):
        voices.found(whole, "json", not voices.judged.has(text))
        if voices.said or voices.heard:
            return voices.readings("missing")
        failure, how = ("missing", "json") if isinstance(whole, dict) else ("parse", "none")
        return [Reading(failure=failure, how=how) for _ in criteria]
    if cut:
        return [Reading(failure="parse", how="none", reason=CUT) for _ in criteria]
    voices.hear(text)
    return voices.readings("missing" if text.strip() and mode == "text" else "parse")


def refused(readings: Sequence[Reading]) -> list[Reading]:
    """The same readings, all refused."""
    return [replace(r, status="unknown", value=None, failure="refusal") for r in readings]


def agreed(choices: Sequence[Sequence[Reading]]) -> list[Reading]:
    """Several choices of one reply as one; a contradiction where they disagree."""
    return [r[0] if len(r) == 1 else _settle(r, r) for r in map(list, zip(*choices, strict=True))]


def beside(readings: Sequence[Reading], others: Sequence[Reading]) -> list[Reading]:
    """Readings with what stands beside them (a tool call), which can only contradict."""
    return [
        _settle([r], [o]) if o.complete and r.complete else r
        for r, o in zip(readings, others, strict=True)
    ]


# -- what is said in a reply, and what is only quoted in it ---------------------------------------
@dataclass
class _Voices:
    """Readings per id: `said` in the asked form, and `heard`: quoted, or in a sentence."""

    ids: Sequence[str]
    criteria: Sequence[Criterion]
    judged: Judged
    said: dict[str, list[Reading]] = field(default_factory=dict)
    heard: dict[str, list[Reading]] = field(default_factory=dict)
    back: str | None = None  # a line that takes all back
    lost: bool = False  # too much broken JSON to be sure of anything

    def hear(self, text: str) -> None:
        """A reply in free form."""
        if text.count("\n") > LINES or text.count("\u00ab") + text.count("\u201c") > QUOTES:
            self.lost = True
            return
        text = textwrap.dedent(text)
        start, quoted = self._members(text), quotations(text)
        values = list(self._inside(text, start))
        spans = [(a, b) for _, a, b in values]
        prose = Prose(
            "\n" * start + text[start:], dict(zip(self.ids, self.criteria, strict=True)), spans
        )
        for value, at, end in values:
            own = start == 0 and _alone(text, at, end) and not covered(at, quoted)
            own = own and text.rfind("\n", 0, at) + 1 not in prose.doubted
            self.found(value, "json found in text", own and not self.judged.has(text[at:end]))
        self._lines(text, spans, quoted, prose)
        for name, words in prose.strays:
            self._heard(name, reading(prose.criteria[name], words, None, None, "text"))
        if prose.back:
            self.back = prose.back

    def _heard(self, name: str, r: Reading) -> None:
        self.heard.setdefault(name, []).append(r)

    def readings(self, otherwise: str) -> list[Reading]:
        """One reading per criterion; `otherwise` where nothing at all was found."""
        if self.lost or not (self.said or self.heard):
            return [Reading(failure=otherwise, how="none") for _ in self.ids]
        if self.back:
            why = f"words beside its verdicts: {self.back[:100]!r}"
            return [Reading(failure="contradiction", how="text", reason=why) for _ in self.ids]
        return [_settle(self.said.get(n, []), self.heard.get(n, [])) for n in self.ids]

    def found(self, value: Any, how: str, own: bool) -> None:
        """A decoded value; `own`: it is the judge's verdict, not only quoted."""
        said, aside = occurrences(value, self.ids)
        for k, v in value.items() if isinstance(value, dict) else ():
            if isinstance(v, (str, bool)) and k.casefold() not in said and k not in self.ids:
                self._noted(k, str(v))
        for into, rows in ((self.said if own else self.heard, said), (self.heard, aside)):
            for n, c in zip(self.ids, self.criteria, strict=True):
                if n in rows:
                    into.setdefault(n, []).append(_one(c, n, rows[n], how))

    def _noted(self, k: str, v: str) -> None:
        """A text beside the verdicts in a JSON reply: {"c1": "met", "correction": "c1: unmet"}."""
        if k.casefold() in (*VERDICTS, *REASONS, *IDS, "confidence") or THOUGHTS.search(k):
            return
        by_id = dict(zip(self.ids, self.criteria, strict=True))
        only = self.ids[0] if len(self.ids) == 1 else None
        for name, words in strays(f"{k.replace('_', ' ')}: {v}", by_id, only):
            self._heard(name, reading(by_id[name], words, None, None, "json"))

    def _members(self, text: str) -> int:
        """Hear the finished members of a JSON reply that is not whole; where it broke, else 0."""
        at = _START.match(text).end()  # type: ignore[union-attr]
        if text[at : at + 1] not in ("{", "[") or _raw(text, at) is not None:
            return 0
        end, values = _partial(text, at, {n.casefold() for n in self.ids})
        own = not self.judged.has(text[at:end])
        for value in values:
            self.found(value, "json begun", own)
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

    def _lines(
        self,
        text: str,
        spans: Sequence[tuple[int, int]],
        quoted: Sequence[tuple[int, int]],
        prose: Prose,
    ) -> None:
        """`VERDICT <id>: <word>` lines; those that are quoted are only heard."""
        notes: dict[tuple[str, str], str] = {}
        verdicts = []
        for name, what, rest, sure, at in lines(text, self.ids):
            if covered(at, spans):
                continue
            own = sure and not covered(at, quoted) and at not in prose.doubted
            if what == "verdict":
                verdicts.append((name, rest, own, at))
            elif own:
                notes[name, what] = rest
        for name, rest, own, at in verdicts:
            c, reason = self.criteria[self.ids.index(name)], notes.get((name, "reason")) or ""
            r = worded(c, rest, reason or None, notes.get((name, "confidence")))
            line = text[at : at + REASON].lstrip().partition("\n")[0]
            repeats = own and self.judged.has(line) and (not reason or self.judged.has(reason))
            (self.said if own and not repeats else self.heard).setdefault(name, []).append(r)
            if rest and (second := below(text, at, c)):
                self._heard(name, worded(c, second, None, None))


def _settle(said: Sequence[Reading], heard: Sequence[Reading]) -> Reading:
    """One reading from all that a reply says of one criterion."""
    states = {(r.status, r.value) for r in (*said, *heard) if r.complete}
    if len(states) > 1:
        both = " and ".join(sorted(_shown(s) for s in states))
        how = (said or heard)[-1].how
        return Reading(failure="contradiction", how=how, reason=f"it says {both}")
    if not said:
        why = "its verdict stands in a quotation or a sentence only" if heard else None
        return Reading(failure="missing", how="text", reason=why)
    return next((r for r in said if not r.complete), said[-1])


def _shown(state: tuple[str, float | None]) -> str:
    status, value = state
    return f"{value:.3g} of 1" if status == "level" else status.replace("unknown", "cannot tell")


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


def occurrences(
    value: Any, ids: Sequence[str]
) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    """Mentions of asked ids in a decoded reply, by id: (as answers, aside); others are left out.

    Accepts the asked form (an object keyed by id) and a list of objects with an "id" each; never
    positions. Known wrappers ({"verdicts": ...}) are looked into; what stands under any other key
    ({"draft": ...}, {"the_answer_claims": ...}) is aside: it can contradict, never decide.
    """
    fold = {i.casefold(): i for i in ids}
    said: dict[str, list[Any]] = {}
    aside: dict[str, list[Any]] = {}
    if len(ids) == 1 and isinstance(value, dict) and "verdict" in value:
        if any(k.strip().casefold() in fold for k in value):
            aside[ids[0]] = [value["verdict"]]
        else:  # one question, one answer: nothing to mix up
            name = value.get("id", ids[0])
            own = fold.get(name.strip().casefold()) if isinstance(name, str) else None
            return ({own: [value]} if own else {}), {}
    _mentions(value, fold, said, aside, 0)
    return said, aside


def _mentions(
    value: Any,
    fold: Mapping[str, str],
    out: dict[str, list[Any]],
    aside: dict[str, list[Any]],
    depth: int,
) -> None:
    if depth > 3:
        return
    if isinstance(value, dict):
        for k, v in value.items():
            name = k.strip().casefold()
            if name in fold:
                out.setdefault(fold[name], []).extend(v if isinstance(v, _Twice) else [v])
            elif isinstance(v, (dict, list)):
                into = out if name in WRAPPERS else aside
                _mentions(v, fold, into, aside, depth + 1)
    elif isinstance(value, list):
        for item in value:
            name = next((item[k] for k in IDS if k in item), None) if _is_item(item) else None
            own = fold.get(name.strip().casefold()) if isinstance(name, str) else None
            if own is not None:
                out.setdefault(own, []).append(item)
            elif isinstance(item, (dict, list)):
                _mentions(item, fold, out, aside, depth + 1)


def _is_item(item: Any) -> bool:
    return isinstance(item, dict) and any(k.strip().casefold() in VERDICTS for k in item)


def _one(c: Criterion, name: str, items: Sequence[Any], how: str) -> Reading:
    """One reading from all mentions in one JSON value; named twice is not an answer."""
    got = [_item(c, name, x, how) for x in items]
    if len(got) == 1:
        return got[0]
    differ = len({(r.status, r.value) for r in got}) > 1
    failure = "contradiction" if differ else "missing"
    return Reading(failure=failure, how=how, reason="named twice in one reply")


def _item(c: Criterion, name: str, item: Any, how: str) -> Reading:
    """One criterion's part of a JSON reply; all that it says of the verdict must agree."""
    if not isinstance(item, dict):
        return reading(c, item, None, None, how)
    low = [(k.strip().casefold(), v) for k, v in item.items()]
    raws = [v for want in VERDICTS for k, v in low if k == want]
    reason = next((item[k] for k in REASONS if isinstance(item.get(k), str)), None)
    states = {state for r in raws if (state := word(c, r)) is not None}
    states |= _further(c, low) if raws else set()
    twice = any(isinstance(r, _Twice) for r in raws)
    if len(states) > 1 or twice or _elsewhere(c, name, low):
        return Reading(failure="contradiction", reason=reason, how=how)
    return reading(c, raws[0] if raws else None, reason, item.get("confidence"), how)


def _further(c: Criterion, fields: Sequence[tuple[str, Any]]) -> set[tuple[str, float | None]]:
    """What other fields say of the verdict: {"verdict": "met", "corrected_verdict": "unmet"}."""
    out = set()
    for k, v in fields:
        if k in (*VERDICTS, *REASONS, *IDS, "confidence"):
            continue
        out.add(_flag(c, k, v))
        inner = (
            [x for n, x in v.items() if n.casefold() in VERDICTS] if isinstance(v, dict) else [v]
        )
        sure = isinstance(v, (str, dict)) or DECIDES.search(k)
        out |= {word(c, x) for x in inner if sure}
    return {state for state in out if state is not None and state[0] != "unknown"}


def _flag(c: Criterion, k: str, v: Any) -> tuple[str, float | None] | None:
    """What a field that is a switch or a number says: {"unmet": true}, {"score": 0}."""
    own = word(c, k) if isinstance(v, bool) and c.scale == "binary" else None
    if own is not None and own[1] is not None:
        return own if v else (("unmet", 0.0) if own[1] else ("met", 1.0))
    if isinstance(v, bool) and v == bool(RETRACTS.search(k)) and (v or k in ("valid", "final")):
        return k, None
    if isinstance(v, bool) or not isinstance(v, (int, float)):
        return None
    if k in SCORES and c.scale == "binary":
        return {0: ("unmet", 0.0), 1: ("met", 1.0)}.get(v)
    if k in SCORES and c.scale == "points":
        return word(c, v) or (k, None)
    return (k, None) if k in MOST and c.scale == "points" and v != (c.points or 1.0) else None


def _elsewhere(c: Criterion, name: str, fields: Sequence[tuple[str, Any]]) -> bool:
    """True for a part that bears the id of another criterion."""
    mine = {name.casefold(), c.id.casefold()}
    ids = [v for k, v in fields if k in IDS[:2] and isinstance(v, str)]
    return any(v.strip().casefold() not in mine for v in ids)


__all__ = ["Reading", "agreed", "occurrences", "percent", "read", "refused", "token_p", "word"]
