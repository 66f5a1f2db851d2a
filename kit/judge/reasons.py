"""Verdicts that a judge's reason states in so many words.

A reason that says "VERDICT c1: unmet", "hence unmet" or "the answer does not meet this criterion"
beside "met" is no reason for it: both are not believed. Nothing else of a reason is checked, least
of all whether it argues for its verdict.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping

from ..records import Criterion
from .words import REASON, word

_WORD = r"[*\"'`<\[]*(?P<word>[^\n.;,!()]{1,40})"
_OWN = re.compile(  # unless a quotation mark stands before it
    r"(?P<quoted>[\"'\u201c\u2018\u00ab`>][ \t]{0,2})?\bverdict"
    r"(?:[ \t]{1,4}(?:(?:for|on)[ \t]{1,4})?[<\[(\"']?(?P<name>[A-Z][\w.-]{0,39})[>\])\"']?)?"
    rf"[ \t]{{0,4}}(?:[:=\uff1a]|->|\bis\b|\bshould be\b)[ \t]{{0,4}}{_WORD}",
    re.I,
)
_HINT = re.compile(r"verdict|criterion|met\b", re.I)
_ENDS = re.compile(r"[.;:,!?()\n]|\b(?:because|since|as)\b")
_TOKENS = re.compile(r"[^\W_]+")
LINE = 80  # characters
BARE = ("met", "unmet", "not met")
LABELS = frozenset(
    "final verdict rating level status decision judgement judgment for the criterion on is".split()
)
_ID = re.compile(r"[\d_]")  # in a word that may name a criterion which was not asked for here
_FIRST = re.compile(r"(not met|unmet|met)\s*(?:[.,;!]|\bbecause\b|\bsince\b|\Z)", re.I)
_HOW = r"(?:(?:clearly|fully|completely|therefore|thus|hence|also|still|indeed)\s+)*"
_CLAUSE = re.compile(
    rf"""(?:(?:and|so|hence|thus|therefore|then|overall|accordingly|consequently)\s+)*
    (?: (?P<bare>(?<=\s)(?:it\s+is\s+)?(?:not\s+|un)?met) | it\s+is\s+(?P<un>unmet)
      | (?:the|this)\s+criterion(?:\s+(?P<name>[\w.-]+))?\s+is\s+{_HOW}(?P<is>(?:not\s+|un)?{_HOW}
        (?:met|satisfied|fulfilled))
      | (?:it|(?:the|this)\s+(?:answer|response|text|submission))\s+{_HOW}
        (?: (?:meets|satisfies|fulfill?s)
          | (?P<no>do(?:es\s+not|esn't)|fails\s+to)\s+{_HOW}(?:meet|satisfy|fulfill?))
        \s+(?:the|this)\s+criterion )""",
    re.X | re.I,
)


def stated(
    reason: str, name: str, criteria: Mapping[str, Criterion]
) -> Iterator[tuple[str, tuple[str, float | None], str]]:
    """(id, (status, value), its words) of each verdict that the reason of `name` states.

    >>> c = {"c1": Criterion(id="c1", text="names Paris")}
    >>> [s for _, (s, _), _ in stated("No capital, hence unmet. VERDICT c1: not met", "c1", c)]
    ['unmet', 'unmet']
    >>> list(stated("Although the first part is met, the date is missing.", "c1", c))
    []
    """
    if len(reason) > 2 * REASON:  # its begin and its end
        reason = f"{reason[:REASON]}\n{reason[-REASON:]}"
    for line in reason.splitlines():
        own, state = _line(line, name, criteria)
        if state is not None and state[1] is not None:
            yield own, state, line
    if not _HINT.search(reason):  # as most
        return
    fold = {n.casefold(): n for n in criteria}
    for m in _OWN.finditer(reason):
        own = fold.get((m["name"] or name).casefold(), name)
        state = word(criteria[own], m["word"])
        if state is not None and not m["quoted"]:
            yield own, state, m[0]
    if criteria[name].scale == "binary":
        for other, state, words in _clauses(reason.strip().replace("\u2019", "'")):
            own = fold.get(other.casefold(), "" if _ID.search(other) else name)
            if own and criteria[own].scale == "binary":
                yield own, state, words


def _line(
    line: str, name: str, criteria: Mapping[str, Criterion]
) -> tuple[str, tuple[str, float | None] | None]:
    """(id, state) of a line that is a verdict as a whole: labels and an id, if any, and a level.

    Without either only the very words that were asked for are one: "No." may answer another thing.
    """
    short = len(line) < LINE and not line.isspace()
    words = _TOKENS.findall(unicodedata.normalize("NFKC", line).casefold()) if short else []
    fold, titled = {n.casefold(): n for n in criteria}, "verdict" in words
    own = next((fold[w] for w in words if w in fold), name)
    left = [w for w in words if w not in fold and w not in LABELS]
    if titled:  # on an id that is written in other letters
        left = [w for w in left if w.isdigit() or not _ID.search(w)]
    said = " ".join(left)
    bare = len(left) == len(words)
    if bare and (said.isdigit() or said not in (*BARE, *map(str.casefold, criteria[own].levels))):
        return own, None
    return own, word(criteria[own], said)


def _clauses(reason: str) -> Iterator[tuple[str, tuple[str, float], str]]:
    """What whole clauses of a reason say, and the criterion that they name, "" for its own."""
    first = _FIRST.match(reason)
    if first:
        yield "", ("met", 1.0) if first[1].casefold() == "met" else ("unmet", 0.0), first[1]
    for clause in _ENDS.split(reason):
        m = _CLAUSE.fullmatch(clause.strip()) if len(clause) < 200 else None
        if m:
            said = m["bare"] or m["un"] or m["is"] or m["no"] or ""
            against = bool(m["no"]) or bool(re.match(r"(?:it is )?(?:not\b|un)", said, re.I))
            yield m["name"] or "", ("unmet", 0.0) if against else ("met", 1.0), clause
