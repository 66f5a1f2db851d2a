"""Verdict words, numbers and stated confidences: what one cell of a judge's reply means for its
criterion."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ..records import Criterion, is_number
from .keys import redact
from .templates import neutral

MET = frozenset("met|yes|true|pass|passed|satisfied|fulfilled|is met".split("|"))
UNMET = frozenset(
    "unmet|not met|no|false|fail|failed|not satisfied|unsatisfied|not fulfilled|is not met".split(
        "|"
    )
)
ABSTAIN = frozenset(
    "cannot tell|can't tell|cannot assess|unclear|unknown|undecidable|n/a|not applicable".split("|")
) | {"none", "null"}
BRACKETS = ("<>", "[]", "()", "**", "__", "``", '""', "''")  # around a word: no change
PAIRS = 4  # of them, at most
LONGEST = 64  # characters of a number in text: more is none (and would keep a pattern busy)
REASON = 4000  # characters of a reason that are kept
SHORT = 2  # words in the place of a verdict that may be a slip; more are a text of their own
_WORDS = re.compile(r"[\w.-]*\w")
_POINTS = re.compile(
    r"(\d+(?:\.\d+)?)(?:\s*(?:/|(?:out )?of)\s*(\d+(?:\.\d+)?))?(?:\s*(?:points?|pts))?"
)
_PERCENT = re.compile(r"(\d{1,3}(?:\.\d+)?)\s*(?:%|percent|(?:/|out of)\s*(100))?")


class Foreign(ValueError):
    """What stands in a reply beside the form that was asked for; its text quotes the beginning."""

    def __init__(self, what: Any):
        text = redact(what[:2000].strip()) if isinstance(what, str) else type(what).__name__
        super().__init__(f"not the form that was asked for: {text[:60]!r}")


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What a reply says of one criterion.

    failure : None, or "parse", "missing", "contradiction", "abstain", "refusal".
    confidence : stated, in [0, 1], or None when none (or none that can be read) was given.
    """

    status: str = "unknown"
    value: float | None = None
    reason: str | None = None
    confidence: float | None = None
    failure: str | None = None
    how: str = "json"

    @property
    def complete(self) -> bool:
        """True for a verdict that was given, also for "cannot tell"."""
        return self.failure in (None, "abstain")


@dataclass
class Said:
    """All that one reply says in the places of one criterion."""

    verdicts: list[Any] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    confidences: list[Any] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)  # in text: the whole verdict lines

    @functools.cached_property
    def reason(self) -> str:
        """All reasons, once everything is said."""
        return "\n".join(self.reasons).strip()


def word(c: Criterion, raw: Any) -> tuple[str, float | None] | None:
    """(status, value) of a verdict word, ("unknown", None) to abstain, None when not allowed.

    >>> c = Criterion(id="c", text="t")
    >>> word(c, "YES."), word(c, "Partially"), word(c, "cannot_tell")
    (('met', 1.0), None, ('unknown', None))
    """
    if c.scale == "binary" and raw in ("met", "unmet"):  # what nearly all replies say
        return raw, float(raw == "met")
    text = _plain(raw)
    if c.scale == "ordinal":
        return _level(c, raw, text)
    if c.scale == "points":
        number = _number(raw, c.points or 1.0)
        if number is not None:
            return "level", number / (c.points or 1.0)
    elif text in MET:
        return "met", 1.0
    elif text in UNMET:
        return "unmet", 0.0
    return ("unknown", None) if text in ABSTAIN else None


def against(raw: Any) -> bool:
    """True for a word that says that a criterion is not met."""
    return _plain(raw) in UNMET


def _level(c: Criterion, raw: Any, text: str) -> tuple[str, float | None] | None:
    """The level whose name this is: exactly, else but for capitals and marks around it."""
    exact = str(raw).strip() if isinstance(raw, int) and _short(raw) else raw
    shown = [neutral(v).strip() for v in c.levels]  # chat markup in it without its brackets
    for names, name in ((list(c.levels), exact), (shown, raw), ([_plain(v) for v in shown], text)):
        if names.count(name) == 1 and shown.count(name) < 2:  # one that cannot be told is none
            return "level", names.index(name) / (len(names) - 1)
    return ("unknown", None) if text in ABSTAIN else None


def _plain(raw: Any) -> str:
    """A word without capitals, the marks around it and one full stop; NUL for what is no word."""
    if not isinstance(raw, (str, bool)):
        return "\0"
    return " ".join(_bare(str(raw)).replace("_", " ").split()).casefold().replace("\u2019", "'")


def _bare(text: str) -> str:
    """A word without a full stop and the pairs of marks or brackets around it.

    >>> _bare("**Met.**"), _bare("[3]."), _bare("A*")
    ('Met', '3', 'A*')
    """
    text = text.strip().removesuffix(".").strip()
    for _ in range(PAIRS):
        if len(text) < 3 or text[0] + text[-1] not in BRACKETS:
            break
        text = text[1:-1].strip().removesuffix(".").strip()
    return text


def _number(raw: Any, top: float, form: re.Pattern[str] = _POINTS) -> float | None:
    """A number in [0, top], as one or in a short text; anything outside is none (never clamped)."""
    if isinstance(raw, str):
        text = _bare(raw)
        m = form.fullmatch(text) if len(text) <= LONGEST else None
        if not m or (m[2] and float(m[2]) != top):
            return None
        raw = float(m[1])
    return float(raw) if _plausible(raw, top) else None


def _plausible(raw: Any, top: float) -> bool:
    """True for a number in [0, top]; a whole number may have any size (10**400 has no float)."""
    return is_number(raw) and 0 <= raw <= top


def percent(raw: Any) -> float | None:
    """A stated confidence in percent as [0, 1]; None when not readable (never a made-up .5).

    Up to 10 nobody knows whether it is a share of 1, of 10 or of 100: None.

    >>> percent("85%"), percent(90), percent(250), percent(None), percent(1), percent(10**400)
    (0.85, 0.9, None, None, None, None)
    """
    number = _number(raw, 100, _PERCENT)
    return None if number is None or 0 < number <= 10 else number / 100


def _sure(raw: Any) -> bool:
    """True for what may stand in the place of a confidence: a number, true, nothing."""
    empty = raw is None or raw is True or (isinstance(raw, str) and not raw.strip())
    return empty or _plausible(raw, math.inf) or _number(raw, 100, _PERCENT) is not None


def slip(raw: Any, ids: Iterable[str]) -> bool:
    """True for what may be a slip in the place of one cell: nothing, a number, a word or two.

    Anything longer is a text of its own, and may speak of any criterion; as does another's id.

    >>> slip("Partially", ["c1"]), slip("met, but I take that back", ["c1"]), slip("c1 too", ["c1"])
    (True, False, False)
    """
    if not isinstance(raw, str):
        return not isinstance(raw, list) or not raw
    raw = raw.strip()
    words = _WORDS.findall(raw[:LONGEST].casefold())
    return len(raw) < LONGEST and len(words) <= SHORT and not set(words) & {*map(str.casefold, ids)}


def settled(c: Criterion, said: Said, how: str) -> Reading:
    """One reading from all that was said of one criterion; a contradiction where that disagrees."""
    if not said.verdicts:
        return Reading(failure="missing", how=how)
    words = [word(c, raw) for raw in said.verdicts]
    reason = cleaned(said.reason)
    states = {w for w in words if w is not None}
    if c.scale == "binary":  # a confidence that says "unmet" is a verdict, too; true is "sure"
        told = [word(c, raw) for raw in said.confidences if raw is not True]
        states |= {w for w in told if w and w[1] is not None}
    if len(states) > 1:
        return at_odds(states, how)
    if None in words:
        raw = said.verdicts[words.index(None)]
        text = redact(str(raw)) if _short(raw) else "a number without end"
        return Reading(
            failure="parse",
            reason=reason or cleaned(f"not an allowed verdict: {text[:60]!r}"),
            how=how,
        )
    odd = [raw for raw in said.confidences if not _sure(raw)]
    if odd:
        shown = cleaned(f"not a confidence: {str(odd[0])[:60]!r}" if _short(odd[0]) else "a number")
        return Reading(failure="parse", reason=shown, how=how)
    ((status, value),) = states
    stated = {percent(raw) for raw in said.confidences}
    return Reading(
        status=status,
        value=value,
        reason=reason,
        confidence=stated.pop() if len(stated) == 1 else None,
        how=how,
        failure="abstain" if status == "unknown" else None,
    )


def at_odds(states: Iterable[tuple[str, float | None]], how: str) -> Reading:
    """The reading of a reply that says more than one thing of a criterion."""
    both = " and ".join(sorted(_shown(s) for s in states))
    return Reading(failure="contradiction", how=how, reason=f"it says {both}")


def _shown(state: tuple[str, float | None]) -> str:
    status, value = state
    return f"{value:.3g} of 1" if status == "level" else status.replace("unknown", "cannot tell")


def _short(raw: Any) -> bool:
    """False for whole numbers too long to be written out (Python refuses over 4,300 digits)."""
    return not isinstance(raw, int) or raw.bit_length() < 1000


def cleaned(reason: str) -> str | None:
    """A reason without keys and halves of surrogate pairs, cut at REASON characters."""
    reason = redact(reason)
    reason = reason if len(reason) <= REASON else reason[:REASON] + " ..."
    text = reason if reason.isascii() else reason.encode("utf-8", "replace").decode("utf-8")
    return text or None
