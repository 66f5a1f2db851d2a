"""Comparisons: which of two things does an answer call the greater?"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, chain
from operator import itemgetter
from typing import Any

from . import lexicon as lx
from .text import Match, find, norm, tokens


def comparative(word: str) -> int:
    """+1 for "larger", -1 for "smaller", 0 for another word.

    >>> comparative("denser"), comparative("fewer"), comparative("water")
    (1, -1, 0)
    """
    formed = re.fullmatch(r"[a-z]{2,}(er|est)", word) and word not in lx.NOT_COMPARATIVE
    return -1 if word in lx.LESS else int(word in lx.MORE or bool(formed and len(word) > 4))


def _names(entity: str, facts: Sequence[Mapping[str, Any]]) -> list[str]:
    named = ([f["text"], *f.get("aliases", ())] for f in facts if f.get("number") is None)
    own = (texts for texts in named if any(_plain(t) == _plain(entity) for t in texts))
    return [entity, *chain.from_iterable(own)]


def _plain(text: str) -> list[str]:
    return [norm(t) for t in tokens(text)]


def _superlative(word: str) -> int:
    """comparative() for the words that name an extreme: "largest", "most", "least"."""
    extreme = word in ("most", "least", "fewest", "top", "bottom") or word.endswith("est")
    return {"top": 1, "bottom": -1}.get(word, comparative(word)) * extreme


def _extremes(prompt: str) -> set[int]:
    return {_superlative(t.lower()) for t in tokens(prompt)} - {0}


def ranked(prompt: str, sentence: str) -> bool:
    """True where a sentence has the extreme that a question for the first of several asks for, or
    says by a word that something is first; True for every other question.
    """
    asked = _extremes(prompt)
    which = re.match(r"\W*(?:which|who|what)\b(?!.*\bmost of\b)", prompt, re.I)
    words = {t.lower() for t in tokens(sentence)}
    said = {comparative(w) for w in words} | ({1} if words & lx.FIRST else set())
    return len(asked) != 1 or not which or asked <= said or bool(words & lx.NEGATORS)


_RANK = r"(?:second|third|fourth|fifth|next|2nd|3rd|4th|runner-up)"
_BEHIND = re.compile(  # what a ranking puts behind the first, with what is listed there
    r"(?P<lead>\S*\s+)\(?(?:compared (?:with|to)|(?:than|followed by|ahead of|then|beats?|above"
    r"|exceeds?|outranks?|outperforms?|surpass(?:es)?)(?=\s(?!\d)))\s(?:[^.;:()–—!?]|\([^()]*\))*?"
    r"(?=$|[.;:)–—!?]|, \d|,? (?:which|but|while|whereas|because|since|so|as|with|it|they)\b)"
    r"|(?:^|(?<=[,;:(] )|(?<=\band ))(?:(?! and )[^,;:()])*?"
    rf"(?<!\bper )(?<!\b[a1] )(?<!\beach )\b{_RANK}"
    r"(?=\s*(?:$|[.,;)!]|and\b))"
    rf"|\b{_RANK}(?: one)?(?: comes| is| was| are|:) [^.;]*"
    r"|\s>\s[^.;]*|,? with\b[^.;]*?\b(?:behind|below|lower|last|place)\b[^.;]*"
    r"|^(?:out of|of|among|between)\b[^.;:]*?\band (?:\w+ ){0,2}\w+\)?,(?= (?:it|the)\b)"
    r"|(?P<order>\b(?:order|ranking|descending|most to least)\b[^:.;]*?(?:\bis|\bare|:)\s[^,;.]+)"
    r",[^.;]*",
    re.I,
)
_BELOW = re.compile(  # "the eye and the skin rank below the liver": what stands before is not first
    r"(?:^|(?<=[;,] ))(?![^.;,]*\b(?:most|first|highest|largest|top)\b)[^.;]*?\b(?:comes? close"
    r"|(?:is|are|was|were|ranks?|comes?|lies?|has|have)(?: all| far| much)? (?:second to|behind"
    r"|below|after|(?:less|fewer|lower|smaller|weaker)(?:(?: \w+)? than\b)?))\b",
    re.I,
)


@lru_cache(maxsize=2_048)
def first(prompt: str, sentence: str) -> str:
    """The sentence without what it ranks behind the first, where the prompt asks for an extreme.

    >>> first("Which organ is most sensitive?", "The eye, followed by the liver and the skin.")
    'The eye, .'
    """
    asked = _extremes(prompt)
    if len(asked) != 1:
        return sentence
    said = _BELOW.sub("", sentence) if asked == {1} else sentence
    return _BEHIND.sub(lambda m: m["order"] or _kept(said, m), said)


def _kept(sentence: str, m: re.Match[str]) -> str:
    """What stays of a match: all where nothing is named before it ("More than the eye, ...")."""
    lead = m["lead"] or ""
    before = [w for w in re.findall(r"\w+", sentence[: m.start()] + lead) if not comparative(w)]
    named = [w for w in before if w.lower() not in lx.DETERMINERS]
    return lead if named or m["lead"] is None else m[0]


_THAN = re.compile(r"\bthan\b([^.;,]*)")
_HOW = re.compile(r"\b(?:more|less) (\w+ly)\b.*?\bthan\b")


def _asked(prompt: str) -> set[int]:
    """The sides that a question with "which" asks for by a comparative."""
    which = re.search(r"\b(?:which|who|what)\b", prompt, re.I) and not _extremes(prompt)
    return {comparative(t.lower()) for t in tokens(prompt) if which} - {0}


def turned(prompt: str, sentence: str) -> str:
    """The sentence, with what stands behind its "than" alone where the question asks for that side.

    >>> turned("Which lost more?", "The eye lost less than the liver."), turned("Why?", "Less than")
    (' the liver.', 'Less than')
    """
    asked, m = _asked(prompt), _THAN.search(sentence)
    lead = re.split("[.;:]", sentence[: m.start()])[-1] if m else ""
    words = [t.lower() for t in tokens(lead)]
    said = {comparative(w) for w in words} - {0}
    plain = lx.NEGATORS.isdisjoint(words) and not any(w[0].isdigit() or "n't" in w for w in words)
    if not (m and plain and len(asked) == 1 and said == {-x for x in asked}):
        return sentence
    return sentence[: m.start() - len(lead)] + m[1] + sentence[m.end() :]


def unsure(prompt: str, text: str) -> str:
    """A comparison by a word whose side is not known: "more slowly than"."""
    m = _HOW.search(text)
    return m[0] if m and _asked(prompt) and m[1] not in prompt else ""


def against(prompt: str, raw: Sequence[str], start: int, end: int) -> bool:
    """True when the prompt asks for one extreme and the clause around raw[start:end] names the
    other.

    >>> said = "The liver is the least sensitive one .".split()
    >>> against("Which organ is most sensitive?", said, 1, 2)
    True
    """
    asked = _extremes(prompt)
    if len(asked) != 1:
        return False
    stops = [i for i, w in enumerate(raw) if w.lower() in lx.HARD]
    low = max((i + 1 for i in stops if i < start), default=0)
    high = min((i for i in stops if i >= end), default=len(raw))
    said = {_superlative(w.lower()) for w in (*raw[low:start], *raw[end:high])} - {0}
    return bool(said) and said != asked and lx.NEGATORS.isdisjoint(map(str.lower, raw[low:high]))


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
        raw = [t.lower() for t in tokens(s)]
        entities = find(_plain(s), names)
        if entities and picked is None:
            picked = _choice(raw, entities)
        for i, w in enumerate(raw):
            sign = comparative(w)
            if not sign or any(m.start <= i < m.end for m in entities):
                continue
            nearest = [(m.of, False) for m in entities if m.end <= i][-1:]
            behind = sorted(
                ((m.of, "than" in raw[i : m.start]) for m in entities if m.start > i),
                key=itemgetter(1),
            )
            denied = any(x in lx.NEGATORS or x.endswith("n't") for x in raw[max(0, i - 4) : i])
            for who, than in (nearest or behind)[:1]:
                more = (who == "more") != than
                result = "right" if more == ((sign > 0) != denied) else "wrong"
            if nearest or behind:
                break
    return result or {"more": "right", "less": "wrong"}.get(picked or "")


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
    told: dict[bool | None, set[int]] = {True: set(), False: set(), None: set()}
    for words, places in sentences if owners else ():
        slots = [(m.start, int(m.of)) for m in find(words, owners)]
        for i, at in _events(places, facts):
            told[_fits(words, i, at, slots, _events(places, facts))].add(i)
    return told[False] - told[True]


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
    if (slots[-1][0] < events[0][1] or events[-1][1] < slots[0][0]) and order is not None:
        return order
    clause = list(accumulate(w in lx.SLOT_CUTS for w in words))  # its number, of each token
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
