"""Comparisons: which of two things does an answer call the greater?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, chain, pairwise
from typing import Any

from . import lexicon as lx
from .text import find, norm, phrase, tokens


def comparative(word: str) -> int:
    """+1 for "larger", -1 for "smaller", 0 for another word.

    >>> comparative("denser"), comparative("fewer"), comparative("water")
    (1, -1, 0)
    """
    formed = re.fullmatch(r"[a-z]{2,}(er|est)", word) and word not in lx.NOT_COMPARATIVE
    return -1 if word in lx.LESS else int(word in lx.MORE or bool(formed and len(word) > 4))


def _names(entity: str, facts: Sequence[Mapping[str, Any]]) -> list[str]:
    named = ([f["text"], *f.get("aliases", ())] for f in facts if f.get("number") is None)
    own = (texts for texts in named if any(phrase(t) == phrase(entity) for t in texts))
    return [entity, *chain.from_iterable(own)]


def _extremes(prompt: str) -> set[int]:
    """comparative() of the words that name an extreme: "largest", "most", "least"."""
    ends = ("est", "most", "top", "bottom")
    words = [w for t in tokens(prompt) if (w := t.lower()).endswith(ends) and w != "almost"]
    return {{"top": 1, "bottom": -1}.get(w, comparative(w)) for w in words} - {0}


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


def _base(word: str) -> str:
    """ "fast" for "faster" and "fastest", "more" for "most", which compare by the same."""
    return {"most": "more", "least": "less"}.get(word) or re.sub(r"i?e(?:r|st)$", "", word)


def _compares(word: str) -> bool:
    return bool(comparative(word)) or word in lx.COMPARES


def _denied(words: Sequence[str], i: int) -> bool:
    return any(w in lx.NEGATORS or w.endswith("n't") for w in words[max(0, i - 4) : i])


def clauses(
    sentence: str,
    sides: Sequence[tuple[str, str]],
) -> Iterator[tuple[list[str], list[str], bool]]:
    """The clauses that do not set an option aside, ask, or tell why: the options that they name,
    their words with "_" for each of them, whether the only one stands behind "than".
    """
    raw = tokens(sentence)
    words = [w.lower() for w in raw]
    named = find(list(map(norm, raw)), sides)
    taken = {i for m in named for i in range(m.start, m.end)}
    stops = [  # none in "2-fold, less than the eye", "the eye and the skin", "more with the eye"
        i
        for i in (i for i, w in enumerate(words) if w in lx.SIDES_APART and i not in taken)
        if "than" not in words[i + 2 : i + 3]
        and (
            taken.isdisjoint((i + 1, i + 2))
            or not (words[i] == "with" or (words[i] == "and" and i - 1 in taken))
        )
    ]
    ends = [-1, *stops, len(words)]
    fronts = {  # of "in the eye, it was less"
        b
        for a, b, c in zip(ends, ends[1:], ends[2:], strict=False)
        if words[b] == ","
        and lx.PREPOSITIONS.intersection(words[a + 1 : b])
        and taken.intersection(range(a, b))
        and taken.isdisjoint(range(b, c))
        and all(i in taken or words[i] in lx.LEADS for i in range(a + 1, b))
    }
    for a, b in pairwise(i for i in ends if i not in fronts):
        names = [*dict.fromkeys(m.of for m in named if a < m.start < b)]
        said = ["_" if i in taken else words[i] for i in range(a + 1, b)]
        front = said[: min(2, said.index("_"))] if names else ["than"]  # of "compared with the eye"
        silent = (
            words[b : b + 1] == ["?"]  # it asks, or tells why
            or not lx.WHY.isdisjoint(words[max(a, 0) : a + 1])
        )
        if not silent and lx.ASIDES.isdisjoint(front):
            yield names, said, len(names) == 1 and "than" in said[: said.index("_")]


def opaque(prompt: str, sentences: Sequence[str], sides: Sequence[tuple[str, str]]) -> str:
    """The clause that compares the options in other words than the question's: which of them it
    says is not plain; "" where there is none.

    sides : each option with every text that names it.

    >>> asked, sides = "Which lost more, the eye or the skin?", [("eye", "eye"), ("skin", "skin")]
    >>> opaque(asked, ["The eye lost more than the skin."], sides)
    ''
    >>> opaque(asked, ["The eye lost less."], sides)
    'the _ lost less'
    """
    options = {w.lower() for _, name in sides for w in phrase(name)}
    words = [w.lower() for w in phrase(prompt)]
    asked = {_base(w) for w in words if _compares(w) and w not in options}
    if asked and all(comparative(w) >= 0 for w in words):
        asked |= {"more", "great", *(lx.FIRST if "more" in asked else ())}
    offered = "or" in words
    for names, clause, behind in (c for s in sentences if asked for c in clauses(s, sides)):
        signs = {_base(w) for w in clause if _compares(w)}
        told = [w for w in clause if w.isalpha() and w not in lx.FRAME_WORDS]
        denied = told and not lx.NEGATORS.isdisjoint(clause)
        compared = (offered and signs) or len(names) > 1
        graded = clause if compared else [w for w in clause if w[-2:] == "ly"]  # "more weakly"
        known = all(_compares(w) or _known(w, words) for w in graded)
        if names and (behind or denied or not known or not signs <= asked):
            return " ".join(clause)
    return ""


def ungraded(prompt: str, sentences: Sequence[str], comparison: Mapping[str, str]) -> str:
    """ "more faintly" of a side: which way it goes is not known where the question lacks the word;
    "" where there is none.

    comparison : as of `relation`.

    >>> ungraded("Which is louder?", ["A is more quiet."], {"more": "A", "less": "B"})
    'more quiet'
    """
    asked = [w.lower() for w in phrase(prompt)]
    sides = [(side, side) for key, side in comparison.items() if key in ("more", "less")]
    said = (words for s in sentences for names, words, _ in clauses(s, sides) if names)
    pairs = ((a, b) for words in said for a, b in pairwise(words) if a in lx.GRADES)
    return next((f"{a} {b}" for a, b in pairs if b != "_" and not _known(b, asked)), "")


def _known(word: str, asked: Sequence[str]) -> bool:
    """True for a form of a word of the question, and for one that says nothing by itself."""
    sizes = (max(3, min(len(word), len(w)) - 2) for w in asked)
    forms = any(word[:n] == w[:n] for w, n in zip(asked, sizes, strict=True))
    return forms or not word.isalpha() or word in lx.PLAIN


def relation(
    sentences: Sequence[str],
    comparison: Mapping[str, Any],
    facts: Sequence[Mapping[str, Any]] = (),
) -> str | None:
    """ "right", "wrong", or None where the answer does not compare; the last comparison counts.

    comparison : {"quantity", "more", "less"}. Without any comparative word, the one thing
    that is named first, and alone in its clause, is taken as the choice.

    >>> relation(["S waves are slower than P waves."], {"more": "P waves", "less": "S waves"})
    'right'
    """
    names = [(k, n) for k in ("more", "less") for n in _names(comparison[k], facts)]
    picked = None
    said = [c for s in sentences for c in clauses(s, names) if c[0]]
    for named, words, behind in reversed(said):
        signs = (comparative(w) * (1 - 2 * _denied(words, i)) for i, w in enumerate(words))
        if sign := next(filter(None, signs), 0):
            return "right" if (named[0] == "more") == ((sign > 0) != behind) else "wrong"
        picked = named[0] if len(named) == 1 or "than" in words else picked
    return {"more": "right", "less": "wrong"}.get(picked or "")


Places = Mapping[int, Sequence[int]]  # fact -> where a sentence asserts it (token indices)


def misplaced(
    sentences: Sequence[tuple[Sequence[str], Places]],
    facts: Sequence[Mapping[str, Any]],
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
    slots_first = slots[-1][0] < events[0][1]
    events_first = events[-1][1] < slots[0][0]
    if (slots_first or events_first) and order is not None:
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
