"""Comparisons: which of two things does an answer call the greater?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, chain, pairwise
from typing import Any

from . import lexicon as lx
from .text import find, norm, phrase, spans, tokens


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


_SCALES = [
    (re.compile(rf"(?:{stems})(?:\w?i?e(?:r|st)|e|y|ly|ily|ity|ive|ively|e?s|ed)?"), n, 1 - 2 * k)
    for n, line in enumerate(lx.SCALES)
    for k, stems in enumerate(line.replace(" ", "|").split("|||"))
]
_COUNTS = re.compile(  # "less than 5%", "at least", "in the first flight"
    rf"\bthan \d|^(?:\w+ )?(?:{'|'.join(lx.PREPOSITIONS)}) (?:the )?(?:first|last|most|least)\b"
)
_ALONE = re.compile(  # "after" compares where the other one stands behind it
    rf"(?<!\S)(?:{'|'.join(lx.COMPARES_TWO)})(?!\S)(?!(?: (?:the|that|those|of|in|an?))* _)"
)
_BEHIND_THAN = re.compile(  # "less than in the eye"
    rf"^[^_]*\b(?:than|as|{'|'.join(lx.COMPARES_TWO)})\b[^_]*_"
)
Pole = tuple[int | str, int]  # a scale (a line of SCALES, else a stem), and which end of it: 1, -1


@lru_cache(maxsize=20_000)
def _pole(word: str) -> Pole:
    """The scale that a word stands on.

    >>> _pole("lighter"), _pole("earliest"), _pole("milder")
    ((0, -1), (1, 1), ('milder', 0))
    """
    return next(((n, end) for stem, n, end in _SCALES if stem.fullmatch(word)), (word, 0))


def _denied(words: Sequence[str], i: int) -> bool:
    return any(w in lx.NEGATORS or w.endswith("n't") for w in words[max(0, i - 4) : i])


def _compared(words: Sequence[str], i: int) -> Pole:
    """What a comparative ("lighter", "more robust", "not as large as") compares by; end 0: none."""
    w, (scale, end) = words[i], _pole(words[i])
    formed = comparative(w) and (end or "than" in words or words[i - 1] in lx.BE)
    formed = formed or (
        w in ("as", "so") and {"as", "much", "many"} & {*words[i + 1 :]} and _denied(words, i)
    )
    word = next(
        (w for w in words[i + 1 : i + 3] if w[-2:] != "ly" or _pole(w)[1]),
        "than",
    )
    of, sign = _pole(word)
    if (
        not (formed or w in lx.COMPARES)  # nor is "at least" one
        or _COUNTS.search(" ".join(words[max(0, i - 2) : i + 3]))
    ):
        return scale, 0
    if w not in lx.GRADES or word in lx.NOT_GRADED or not (sign or words[i - 1] in lx.GRADED_BY):
        return (scale, end) if end else (w[:4], 1)
    return (of, end * sign) if sign else (norm(word)[:5], end)


def _sign(words: Sequence[str], i: int, asked: Pole, prompt: str) -> int:
    """What a comparative says in the sense of the question: 1, -1; 0 where it is not known."""
    (scale, end), stem = _compared(words, i), str(asked[0])
    poles = (  # of what is compared: "lower sensitivity"
        (stem, 1) if w.startswith(stem) else _pole(w) for w in (*words[:i], *words[i + 1 :])
    )
    beside = next((sign for of, sign in poles if of in (stem, asked[0])), 0)
    same = scale == asked[0] or (asked[0] == 0 and f" {scale}" in prompt)
    sign = asked[1] * end * (same or (scale == 0) * beside)
    return min(0, -sign) if _denied(words, i) else sign


def _clauses(
    text: str, sides: Sequence[tuple[str, str]]
) -> Iterator[tuple[int, int, list[str], list[str], bool]]:
    """The clauses that name an option and do not set it aside, ask, or tell why: text[start:end],
    the names, the words with "_" for each of them, whether the only one stands behind "than".
    """
    raw = spans(re.sub(r"\bhalf (?=as\b)", "not  ", text.replace("\n", ";")))
    words = [w.lower() for w, _ in raw]
    named = find([norm(w) for w, _ in raw], sides)
    taken = {i for m in named for i in range(m.start, m.end)}
    stops = [  # none in "2-fold, less than the eye", "the eye and the skin"
        i
        for i in (i for i, w in enumerate(words) if w in lx.SIDES_APART)
        if "than" not in words[i + 2 : i + 3]
        and not (words[i] == "and" and i - 1 in taken and {i + 1, i + 2} & taken)
    ]
    for a, b in pairwise([-1, *stops, len(words)]):
        names = [*dict.fromkeys(m.of for m in named if a < m.start < b)]
        said = ["_" if i in taken else words[i] for i in range(a + 1, b)]
        front = said[: min(2, said.index("_"))] if names else ["than"]  # of "compared with the eye"
        silent = (
            words[b : b + 1] == ["?"]  # it asks, or tells why
            or not lx.WHY.isdisjoint(words[max(a, 0) : a + 1])
        )
        if not silent and lx.ASIDES.isdisjoint(front):
            plain, end = _ALONE.sub("_", " ".join(said)), raw[b - 1]
            behind = len(names) == 1 and bool(_BEHIND_THAN.search(plain))
            yield raw[a + 1][1], end[1] + len(end[0]), names, plain.split(), behind


def turned(prompt: str, text: str, sides: Sequence[tuple[str, str]]) -> tuple[str, bool]:
    """The text, with the option that a comparison in words opposite to the question's says, in its
    place; and whether no clause compares the options on a scale known to be the question's.

    sides : each option with every text that names it.

    >>> asked, sides = "Which lost more, the eye or the skin?", [("eye", "eye"), ("skin", "skin")]
    >>> turned(asked, "The eye lost less.", sides), turned(asked, "The eye is more robust.", sides)
    (('skin.', False), ('The eye is more robust.', True))
    """
    told, every = set(), [*dict.fromkeys(s for s, _ in sides)]
    words, options = (
        [t.lower() for t in tokens(s)] for s in (prompt, " ".join(n for _, n in sides))
    )
    poles = (_compared(words, i) for i, w in enumerate(words) if w not in options)
    asked, plain = (
        next((p for p in poles if p[1]), ("", 0)),
        " ".join(["", *map(norm, words)]),
    )
    for start, end, names, clause, behind in reversed([*_clauses(text, sides)] if asked[1] else []):
        signs = {
            _sign(clause, i, asked, plain) for i, _ in enumerate(clause) if _compared(clause, i)[1]
        }
        told.add(sum(signs) != 0 or not signs)
        pair = [*names, *(s for s in every if s not in names and len(every) == 2), "another"]
        other = sum(signs) < 0 or (sum(signs) and (behind or lx.COMPARES_TWO & {*clause}))
        if other and len(names) < 3:
            text = text[:start] + pair[(sum(signs) < 0) != behind] + text[end:]
    return text, told == {False} and len(every) > 1


def relation(
    sentences: Sequence[str], comparison: Mapping[str, Any], facts: Sequence[Mapping[str, Any]] = ()
) -> str | None:
    """ "right", "wrong", or None where the answer does not compare; the last comparison counts.

    comparison : {"quantity", "more", "less"}. Without any comparative word, the one thing
    that is named first, and alone in its clause, is taken as the choice.

    >>> relation(["S waves are slower than P waves."], {"more": "P waves", "less": "S waves"})
    'right'
    """
    names = [(k, n) for k in ("more", "less") for n in _names(comparison[k], facts)]
    picked = None
    for _, _, named, words, behind in reversed([c for s in sentences for c in _clauses(s, names)]):
        signs = (comparative(w) * (1 - 2 * _denied(words, i)) for i, w in enumerate(words))
        if sign := next(filter(None, signs), 0):
            return "right" if (named[0] == "more") == ((sign > 0) != behind) else "wrong"
        picked = named[0] if len(named) == 1 or "than" in words else picked
    return {"more": "right", "less": "wrong"}.get(picked or "")


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
