"""What is said of what: "46 in a body cell, 23 in an egg" is right, the same numbers the other way
round are not.

A fact may name the words that it belongs to (`about`). It is misplaced where the clause that
asserts it speaks of another fact's words and not of its own; where two things stand before two
facts ("quartz and diamond are 7 and 10"), order decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from . import lexicon as lx
from .text import find

Places = Mapping[int, Sequence[int]]  # fact -> where a sentence asserts it (token indices)


def misplaced(
    sentences: Sequence[tuple[Sequence[str], Places]], facts: Sequence[Mapping[str, Any]]
) -> set[int]:
    """The facts that are asserted of something else only.

    sentences : normalised tokens and the places of the facts in each; facts : of the truth, in
    order.

    >>> facts = [{"about": ["quartz"]}, {"about": ["diamond"]}]
    >>> said = "quartz is 10 and diamond is 7".split()
    >>> sorted(misplaced([(said, {0: [6], 1: [2]})], facts))
    [0, 1]
    >>> said = "quartz and diamond are 7 and 10".split()
    >>> misplaced([(said, {0: [4], 1: [6]})], facts)
    set()
    """
    owners = [(str(i), t) for i, f in enumerate(facts) for t in f.get("about", ())]
    wrong: set[int] = set()
    right: set[int] = set()
    for words, places in sentences if owners else ():
        slots = [(m.start, int(m.of)) for m in find(words, owners)]
        for i, at in _events(places, facts):
            fits = _fits(words, i, at, slots, _events(places, facts))
            wrong |= {i} if fits is False else set()
            right |= {i} if fits else set()
    return wrong - right


def _events(places: Places, facts: Sequence[Mapping[str, Any]]) -> list[tuple[int, int]]:
    """(fact, place) in the order of the sentence, of the facts that belong to something."""
    rows = [(i, at) for i, found in places.items() for at in found if facts[i].get("about")]
    return sorted(rows, key=lambda row: row[1])


def _fits(
    words: Sequence[str],
    fact: int,
    at: int,
    slots: Sequence[tuple[int, int]],
    events: Sequence[tuple[int, int]],
) -> bool | None:
    """True, False, or None where the sentence does not say what the fact belongs to."""
    if not slots:
        return None
    order = _in_order([s for _, s in slots], [f for f, _ in events])
    apart = slots[-1][0] < events[0][1] or events[-1][1] < slots[0][0]
    if apart and order is not None:
        return order
    clause = _clauses(words)
    here = {s for p, s in slots if clause[p] == clause[at]}
    free = {clause[p] for p, _ in slots} - {clause[p] for _, p in events}
    if not here and free:  # "quartz, 7": what was named before, else what is named next
        near = max((c for c in free if c < clause[at]), default=min(free))
        here = {s for p, s in slots if clause[p] == near}
        if fact not in here and any(f in here for f, _ in events):
            return None  # it speaks of another fact, which stands there too
    return fact in here if here else None


def _in_order(slots: Sequence[int], facts: Sequence[int]) -> bool | None:
    """Whether two or more things and as many facts come in the same order; None where they do not
    pair.
    """
    named, said = list(dict.fromkeys(slots)), list(dict.fromkeys(facts))
    return named == said if len(named) == len(said) > 1 else None


def _clauses(words: Sequence[str]) -> list[int]:
    """The number of the clause of each token."""
    out, n = [], 0
    for w in words:
        n += w in lx.SLOT_CUTS
        out.append(n)
    return out
