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

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..records import Criterion
from .drafts import covered, quotations, spoken
from .lines import Judged, below, lines, worded
from .logprobs import token_p
from .objects import (
    IDS,
    REASONS,
    VERDICTS,
    alone,
    asked_form,
    attempt,
    decoded,
    occurrences,
    one,
    partial,
    raw_value,
)
from .prose import Prose, strays
from .templates import names
from .words import REASON, Reading, percent, reading, word

RUNAWAY = 8  # blanks at the end of a whole JSON reply that was cut: the model had finished
LINES = 10_000  # of a reply in free form
QUOTES = 1000  # in it that open; each may be looked through for its end
WORK = 200_000  # characters of broken JSON that are gone through before a reply is given up
CUT = "the reply was cut at the token limit"
THOUGHTS = re.compile(r"reason|rationale|expla|analy|th(?:ought|ink)|evidence|comment|quot", re.I)
_OPEN = re.compile(r'\{\s*["}]|\[\s*[\[{"\]]')
_START = re.compile(r"\s*(?:```\w*\s*)?")


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
    ids, judged = names(criteria), Judged(answer)
    quick = None if cut else asked_form(text, ids, criteria)
    if quick is not None and not judged.has(text):
        return quick
    whole = decoded(text)
    if whole is None:
        text = spoken(text)
        whole = decoded(text)
    voices = _Voices(ids, criteria, judged)
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
            own = start == 0 and alone(text, at, end) and not covered(at, quoted)
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
            if k not in self.ids:
                notes = v if isinstance(v, list) else [v]
                for x in notes[:20]:
                    self._noted(k, x)
        for into, rows in ((self.said if own else self.heard, said), (self.heard, aside)):
            for n, c in zip(self.ids, self.criteria, strict=True):
                if n in rows:
                    into.setdefault(n, []).append(one(c, n, rows[n], how))

    def _noted(self, k: str, v: Any) -> None:
        """A text beside the verdicts in a JSON reply: {"c1": "met", "correction": "c1: unmet"}."""
        known = k.casefold() in (*VERDICTS, *REASONS, *IDS, "confidence") or THOUGHTS.search(k)
        if known or not isinstance(v, (str, bool)):
            return
        by_id = dict(zip(self.ids, self.criteria, strict=True))
        only = self.ids[0] if len(self.ids) == 1 else None
        for name, words in strays(f"{k.replace('_', ' ')}: {v}", by_id, only):
            self._heard(name, reading(by_id[name], words, None, None, "json"))

    def _members(self, text: str) -> int:
        """Hear the finished members of a JSON reply that is not whole; where it broke, else 0."""
        at = _START.match(text).end()  # type: ignore[union-attr]
        if text[at : at + 1] not in ("{", "[") or raw_value(text, at) is not None:
            return 0
        end, values = partial(text, at, {n.casefold() for n in self.ids})
        own = not self.judged.has(text[at:end])
        for value in values:
            self.found(value, "json begun", own)
        return end if values or text[at] == "{" else 0

    def _inside(self, text: str, at: int) -> Iterator[tuple[Any, int, int]]:
        """JSON objects and lists that stand in a text, from left to right, with their places."""
        work = 0
        while m := _OPEN.search(text, at):
            value, end = attempt(text, m.start())
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
        if any(r.failure == "contradiction" for r in heard):
            return Reading(failure="contradiction", how=heard[-1].how, reason=heard[-1].reason)
        why = "its verdict stands in a quotation or a sentence only" if heard else None
        return Reading(failure="missing", how="text", reason=why)
    return next((r for r in said if not r.complete), said[-1])


def _shown(state: tuple[str, float | None]) -> str:
    status, value = state
    return f"{value:.3g} of 1" if status == "level" else status.replace("unknown", "cannot tell")


__all__ = ["Reading", "agreed", "occurrences", "percent", "read", "refused", "token_p", "word"]
