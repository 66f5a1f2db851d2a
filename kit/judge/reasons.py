"""Verdicts that a judge's reason states in so many words.

A reason that says "VERDICT c1: unmet", "hence unmet" or "the answer does not meet this criterion"
beside "met" is no reason for it: both are not believed. Two rules, for the reason without its
longer quotations: words against a criterion ("unmet", "not fulfilled") that end a phrase speak
against "met" wherever they stand; and a clause which, but for the words that announce a verdict
(LABELS) and ids, is nothing else than a verdict's word is that verdict. Whether a reason argues for
its verdict is not checked.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping

from ..records import Criterion
from .words import REASON, word

State = tuple[str, float | None]
_LONG = re.compile(r"\"(?:[^\"\s]+\s+){2}[^\"]*\"|\u201c(?:\S+\s+){2}[^\u201d]*\u201d")
_AGAINST = re.compile(
    r"(?:\bunmet|(?:\bnot|n't)\s+(?:\w+\s+){0,2}(?:met|satisfied|fulfilled))\b(?!\s+\w)"
    r"|(?:(?:\bnot|n't)\s+(?:\w+\s+){0,2}|\bfails\s+to\s+)(?:meet|satisfy|fulfill?)\s+(?:the|this)\b",
    re.I,
)
_CLAUSES = re.compile(  # a colon before a whole sentence, too; a verdict begins one of its own
    r"[;!?()\n,]|\.(?!\d)|:(?=(?:\s+\w+){3})|\b(?:because|since|as)\b|(?=\bverdict\b)", re.I
)
_TOKENS = re.compile(r"[^\W_]+")
_HINT = re.compile(r"met\b|verdict|rating|level|status|decision|judge?ment|criterion", re.I)
LONGEST = 160  # characters of a clause
TITLES = frozenset("verdict rating level status decision judgement judgment criterion".split())
LABELS = TITLES | frozenset(
    "the this my own its itself it is was are be being should must final for on of and so hence "
    "thus therefore then overall accordingly consequently also still indeed clearly fully "
    "completely answer response text submission".split()
)
FOR = frozenset("met meets satisfies satisfied fulfills fulfils fulfilled".split())
AGAINST: State = ("unmet", 0.0)


def stated(
    reason: str, name: str, criteria: Mapping[str, Criterion]
) -> Iterator[tuple[str, State, str]]:
    """(id, (status, value), its words) of each verdict that the reason of `name` states.

    >>> c = {"c1": Criterion(id="c1", text="names Paris")}
    >>> {s for _, (s, _), _ in stated("No capital, hence unmet. VERDICT c1: not met", "c1", c)}
    {'unmet'}
    >>> list(stated("Although the first part is met, the date is missing.", "c1", c))
    []
    """
    if len(reason) > 2 * REASON:  # its begin and its end
        reason = f"{reason[:REASON]}\n{reason[-REASON:]}"
    levels = [v for c in criteria.values() for v in c.levels]
    if not levels and not _HINT.search(unicodedata.normalize("NFKC", reason)):  # as most
        return
    text = _LONG.sub(" ", unicodedata.normalize("NFKC", reason).replace("\u2019", "'"))
    against = _AGAINST.search(text) if criteria[name].scale == "binary" else None
    if against:
        yield name, AGAINST, against[0]
    for clause in _CLAUSES.split(text):
        found = _clause(clause, name, criteria) if len(clause) < LONGEST else None
        if found:
            yield *found, clause


def _clause(clause: str, name: str, criteria: Mapping[str, Criterion]) -> tuple[str, State] | None:
    """The id and the verdict that a clause is, if it is one.

    Without an id or a title only the very words that were asked for are one: "No" may answer
    another thing, and a number may count the lines.
    """
    words = _TOKENS.findall(clause.casefold())
    fold = {n.casefold(): n for n in criteria}
    own = next((fold[w] for w in words if w in fold), name)
    left = ["met" if w in FOR else w for w in words if w not in fold and w not in LABELS]
    said, levels = " ".join(left), [v.casefold() for v in criteria[own].levels]
    titled = any(w in fold or w in TITLES for w in words)
    if not said or (not titled and (said.isdigit() or said not in ("met", "unmet", *levels))):
        return None
    state = word(criteria[own], said)
    return (own, state) if state is not None and state[1] is not None else None
