"""Comparisons: which of two things does an answer call the greater?"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from . import lexicon as lx
from .text import Match, find, norm, tokens


def comparative(word: str) -> int:
    """+1 for "larger", -1 for "smaller", 0 for another word.

    >>> comparative("denser"), comparative("fewer"), comparative("water")
    (1, -1, 0)
    """
    if word in lx.LESS:
        return -1
    if word in lx.MORE or (
        re.fullmatch(r"[a-z]{2,}(er|est)", word)
        and word not in lx.NOT_COMPARATIVE
        and len(word) > 4
    ):
        return 1
    return 0


def _names(entity: str, facts: Sequence[Mapping[str, Any]]) -> list[str]:
    key = [norm(t) for t in tokens(entity)]
    out = [entity]
    for f in facts:
        texts = [f["text"], *f.get("aliases", ())]
        if any([norm(t) for t in tokens(t0)] == key for t0 in texts) and f.get("number") is None:
            out += texts
    return out


def _superlative(word: str) -> int:
    """comparative() for the words that name an extreme: "largest", "most", "least"."""
    extreme = word in ("most", "least", "fewest", "top", "bottom") or word.endswith("est")
    return {"top": 1, "bottom": -1}.get(word, comparative(word)) * extreme


def against(prompt: str, raw: Sequence[str], start: int, end: int) -> bool:
    """True when the prompt asks for one extreme and the clause around raw[start:end] names the
    other.

    >>> said = "The liver is the least sensitive one .".split()
    >>> against("Which organ is most sensitive?", said, 1, 2)
    True
    """
    asked = {_superlative(t.lower()) for t in tokens(prompt)} - {0}
    if len(asked) != 1:
        return False
    stops = [i for i, w in enumerate(raw) if w.lower() in lx.HARD]
    low = max((i + 1 for i in stops if i < start), default=0)
    high = min((i for i in stops if i >= end), default=len(raw))
    said = {_superlative(w.lower()) for w in (*raw[low:start], *raw[end:high])} - {0}
    denied = any(w.lower() in lx.NEGATORS for w in raw[low:high])
    return bool(said) and said != asked and not denied


def _choice(raw: Sequence[str], entities: Sequence[Match]) -> str | None:
    """The one thing that the first clause with any of them names; a clause with both chooses none.

    "Graphite, because diamond has no free electrons." and "Graphite, not diamond." choose graphite;
    "and" parts clauses that give numbers: "9.8 on Earth and 1.6 on the Moon".
    """
    first = next((i for i, w in enumerate(raw) if w[0].isdigit()), len(raw))
    stops = [i for i, w in enumerate(raw) if w in lx.COMPARED_APART or (w == "and" and i > first)]
    end = next((i for i in stops if i >= entities[0].end), len(raw))
    named = {m.of for m in entities if m.start < end}
    return named.pop() if len(named) == 1 else None


def relation(
    sentences: Sequence[str], comparison: Mapping[str, Any], facts: Sequence[Mapping[str, Any]] = ()
) -> str | None:
    """ "right", "wrong", or None where the answer does not compare; the last comparison counts.

    comparison : {"quantity", "more", "less"}. Without any comparative word, the one thing
    that is named first, and alone in its clause, is taken as the choice.

    >>> relation(["S waves are slower than P waves."], {"more": "P waves", "less": "S waves"})
    'right'
    """
    names = [("more", n) for n in _names(comparison["more"], facts)] + [
        ("less", n) for n in _names(comparison["less"], facts)
    ]
    result: str | None = None
    picked: str | None = None
    for s in sentences:
        words = [norm(t) for t in tokens(s)]
        raw = [t.lower() for t in tokens(s)]
        entities = find(words, names)
        if entities and picked is None:
            picked = _choice(raw, entities)
        for i, w in enumerate(raw):
            sign = comparative(w)
            if not sign or any(m.start <= i < m.end for m in entities):
                continue
            before = [m for m in entities if m.end <= i]
            after = [m for m in entities if m.start > i and "than" not in raw[i : m.start]]
            than = [m for m in entities if m.start > i and "than" in raw[i : m.start]]
            if before or after:
                who = before[-1].of if before else after[0].of
            elif than:
                who = {"more": "less", "less": "more"}[than[0].of]
            else:
                continue
            denied = any(x in lx.NEGATORS or x.endswith("n't") for x in raw[max(0, i - 4) : i])
            says_more = (sign > 0) != denied
            result = "right" if (who == "more") == says_more else "wrong"
            break
    if result is None and picked is not None:
        result = "right" if picked == "more" else "wrong"
    return result
