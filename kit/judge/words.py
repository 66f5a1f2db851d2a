"""Verdict words, numbers and stated confidences: what one cell of a judge's reply means for its
criterion."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ..records import Criterion
from .keys import redact

MET = frozenset("met|yes|true|pass|passed|satisfied|fulfilled|is met".split("|"))
UNMET = frozenset(
    "unmet|not met|no|false|fail|failed|not satisfied|unsatisfied|not fulfilled|is not met".split(
        "|"
    )
)
ABSTAIN = frozenset(
    "cannot tell|can't tell|cannot assess|unclear|unknown|undecidable|n a|not applicable".split("|")
) | {"none", "null"}
_NEGATED = re.compile(r"[\s*`\"'(\[{<#]*(?:!|\u00ac|\[ \]|[-~\u2212](?=\w))")  # "!met", "[ ] met"
LONGEST = 64  # characters of a number in text: more is none (and would keep a pattern busy)
REASON = 4000  # characters of a reason that are kept


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


def word(c: Criterion, raw: Any) -> tuple[str, float | None] | None:
    """(status, value) of a verdict word, ("unknown", None) to abstain, None when not allowed.

    >>> c = Criterion(id="c", text="t")
    >>> word(c, "YES."), word(c, "Partially"), word(c, "cannot_tell")
    (('met', 1.0), None, ('unknown', None))
    """
    if raw is None:
        return None
    if c.scale == "binary" and raw in ("met", "unmet"):  # what nearly all replies say
        return raw, float(raw == "met")
    text = _plain(raw)
    if c.scale == "ordinal":
        plain = [_plain(v) for v in c.levels]
        if plain.count(text) == 1:
            return "level", plain.index(text) / (len(plain) - 1)
    elif c.scale == "points":
        number = _number(raw, c.points or 1.0)
        if number is not None:
            return "level", number / (c.points or 1.0)
    elif text in MET:
        return "met", 1.0
    elif text in UNMET:
        return "unmet", 0.0
    return ("unknown", None) if text in ABSTAIN else None


def _plain(raw: Any) -> str:
    if not isinstance(raw, (str, bool)) or _NEGATED.match(str(raw)):
        return "\0"
    text = re.sub(r"[\s_/-]+", " ", str(raw)).strip(" \t\n*`\"'.!:;,()[]{}<>#").casefold()
    return text.replace("\u2019", "'")


def _number(raw: Any, top: float) -> float | None:
    """Points in [0, top]; anything outside is not a verdict (never clamped)."""
    if isinstance(raw, str):
        m = re.fullmatch(
            r"\**\s*([+-]?\d+(?:\.\d+)?)\s*(?:/\s*(\d+(?:\.\d+)?))?\s*(?:points?|pts)?\s*\**\s*\.?",
            raw.strip()[:LONGEST],
        )
        if not m or (m[2] and float(m[2]) != top):
            return None
        raw = float(m[1])
    return float(raw) if _plausible(raw, top) else None


def _plausible(raw: Any, top: float) -> bool:
    """True for a number in [0, top]; a whole number may have any size (10**400 has no float)."""
    return isinstance(raw, (int, float)) and not isinstance(raw, bool) and 0 <= raw <= top


def percent(raw: Any) -> float | None:
    """A stated confidence in percent as [0, 1]; None when not readable (never a made-up .5).

    >>> percent("85%"), percent(90), percent(250), percent(None), percent(0.9), percent(10**400)
    (0.85, 0.9, None, None, None, None)
    """
    if isinstance(raw, str):
        m = re.fullmatch(r"(\d{1,3}(?:\.\d+)?)\s*%?\s*\.?", raw.strip()[:LONGEST])
        raw = float(m[1]) if m else None
    if not _plausible(raw, 100) or 0 < raw < 1:  # .9 could be nine tenths or under one percent
        return None
    return raw / 100


def reading(c: Criterion, raw: Any, reason: Any, confidence: Any, how: str) -> Reading:
    """One criterion's verdict word, reason and confidence as a Reading."""
    got = word(c, raw)
    reason = cleaned(reason)
    if got is None:
        shown = cleaned(f"not an allowed verdict: {str(raw)[:60]!r}" if _short(raw) else "no word")
        return Reading(failure="parse", reason=reason or shown, how=how)
    status, value = got
    return Reading(
        status=status,
        value=value,
        reason=reason,
        confidence=percent(confidence),
        how=how,
        failure="abstain" if status == "unknown" else None,
    )


def _short(raw: Any) -> bool:
    """False for whole numbers too long to be written out (Python refuses over 4,300 digits)."""
    return not isinstance(raw, int) or raw.bit_length() < 1000


def cleaned(reason: Any) -> str | None:
    """A reason without keys and halves of surrogate pairs, cut at REASON characters."""
    if not isinstance(reason, str):
        return None
    reason = redact(reason)
    reason = reason if len(reason) <= REASON else reason[:REASON] + " ..."
    text = reason if reason.isascii() else reason.encode("utf-8", "replace").decode("utf-8")
    return text or None


__all__ = ["Reading", "cleaned", "percent", "reading", "word"]
