"""Words of direction in a sentence: which there are, what negates them, and what they are compounds
of.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ..checks.quantities import NUMBER_WORDS
from . import lexicon as lx
from .text import Match, norm

CLASH = "clash"
OPPOSITE = {"up": "down", "down": "up"}


def phrases(texts: Sequence[str]) -> re.Pattern[str]:
    """A pattern for whole phrases in words that are joined by spaces."""
    return re.compile(
        "(?<= )(?:"
        + "|".join(re.escape(t) for t in sorted(texts, key=len, reverse=True))
        + ")(?= )"
    )


_NOT_NEGATIONS = phrases(lx.NOT_NEGATIONS)
_EXCLUDERS = [p.split() for p in lx.EXCLUDERS]
_IN_ALL = [["in", "all"], ["across", "all"], ["across", "tissues"]]  # alike, not unchanged
_INSTEAD = [["rather", "than"], ["instead", "of"]]
PARTED = re.compile(  # said of the cases by a sentence as a whole
    r"\b(?:most(?! likely)|some|few|half|partly|except|apart from|(?:all|every\w*|anything) but)\b",
    re.I,
)
_OTHERS = re.compile(  # some of them are meant; "the same in all tissues" gives no direction
    r"\b(?:not|never|than|of|but|only|both"
    r"|almost|nearly|virtually|practically|hardly|rarely|seldom"
    r"|same|alike|similar|identical|consistent|uniform|equal)"
    r"(?: (?:in|across|for|among))?\s*$",
    re.I,
)
_COUNTS = {w: str(n) for w, n in NUMBER_WORDS.items() if n > 1} | {"both": "2"}
_MANY = rf"(?:{'|'.join(_COUNTS)}|\d+)"
_LISTED = r"(?:(?:listed|named|given|mentioned|examined|tested|studied|measured) )?"
_KINDS = rf"(?:(?:{_MANY} )?{_LISTED}(?:tissues|organs)|{_MANY} (?:muscles|sites))"
_EVERY = re.compile(  # what stands for all of the tissues that are asked about
    r"(?:"
    rf"\b(?:all|both|each|every one|each one)(?: of)? (?:(?:the|these|those|your) )?{_KINDS}"
    rf"|\b(?:each|every(?: single)?) {_LISTED}(?:tissue|organ)"
    rf"|(?<=\bacross )(?:the )?{_KINDS}"
    rf"|(?<=\bin )the {_MANY} {_LISTED}(?:tissues|organs)"
    r"|\b(?:"
    rf"all {_MANY}"
    r"|both(?: of them)?"
    rf"|(?:all|each|every one|each one) of (?:them|the {_MANY}|these|those)"
    r")(?=\s*(?:$|[.,;:!)])| (?:are|is|ha(?:ve|s)|go(?:es)?|so"
    r"|shows?|exhibits?|displays?|falls?|rises?|\w+creases?)\b)"
    r"|(?P<where>\b(?:everywhere|throughout))"
    r")\b"
    r"(?! (?:types?|groups?|of|from|other|besides|excluding|without|minus|save|but)\b)",
    re.I,
)


@dataclass(frozen=True)
class Cue:
    """A word (or compound) of direction at tokens start..end; kind is "up", "down", "none" or
    "change".
    """

    start: int
    end: int
    kind: str


Placed = TypeVar("Placed", Cue, Match)


def within(items: Sequence[Placed], start: int, end: int) -> list[Placed]:
    """The items that start in the token range."""
    return [x for x in items if start <= x.start < end]


def after_phrase(words: Sequence[str], wanted: re.Pattern[str]) -> int:
    """Index after the first occurrence of any of the phrases, or -1.

    >>> after_phrase(["we", "do", "not", "know"], phrases(["do not"]))
    3
    """
    text = f" {' '.join(words)} "
    m = wanted.search(text)
    return text.count(" ", 0, m.end()) if m else -1


def spelled(sentence: str, names: Sequence[str]) -> str:
    """The sentence with the names in place of what stands for all of them.

    >>> spelled("Up in all three tissues.", ["liver", "eye", "skin"])
    'Up in liver, eye and skin.'
    >>> spelled("Not all tissues rise.", ["liver", "eye"]), spelled("Both rise.", ["liver", "eye"])
    ('Not all tissues rise.', 'liver and eye rise.')
    """
    if len(names) < 2 or PARTED.search(sentence):
        return sentence
    listed = f"{', '.join(names[:-1])} and {names[-1]}"

    def put(m: re.Match[str]) -> str:
        counts = {_COUNTS.get(w, w) for w in re.findall(_MANY, m[0].lower())}
        others = counts - {str(len(names))} or _OTHERS.search(sentence[: m.start()])
        return m[0] if others else "in " * bool(m["where"]) + listed

    return _EVERY.sub(put, sentence)


def find_cues(words: Sequence[str], subjects: Sequence[Match]) -> list[Cue]:
    """Words of direction outside the subjects' names, with compounds merged ("reduced inhibition"
    is one, upward).
    """
    taken = {i for m in subjects for i in range(m.start, m.end)}
    cues = [
        Cue(i, i + 1, kind)
        for i in range(len(words))
        if i not in taken and (kind := _kind(words, i, taken))
    ]
    return _compounds(words, cues)


def _kind(words: Sequence[str], i: int, taken: set[int]) -> str:
    """The kind of the word at i in its surroundings; "" for a word without direction."""
    w = words[i]
    if w not in lx.DIRECTED:
        return ""
    before = words[i - 1] if i else ""
    after = words[i + 1] if i + 1 < len(words) else ""
    near = *words[max(0, i - 1) : i], *words[i + 1 : i + 3]
    score = "nes" in words[max(0, i - 6) : i] or any(x.startswith(("enrich", "nes")) for x in near)
    if w in lx.SIGNS and score:
        return "up" if w.startswith("pos") else "down"
    lists = {"up": lx.UP, "down": lx.DOWN, "change": lx.CHANGE, "none": lx.NONE}
    kind = next((name for name, words_of in lists.items() if w in words_of), "")
    if w in lx.STATES and _stated(words[max(0, i - 2) : i]):
        kind = lx.STATES[w]
    negated = any(x in lx.NEGATORS or x == "little" for x in words[max(0, i - 4) : i])
    idle = (
        (
            w in ("more", "less")
            and (
                after in ("than", "or", "likely", "and", "importantly")
                or before == "or"
                or _adverbial(words, i, taken)
            )
        )
        or (w in ("up", "down") and (after in ("to", "with") or before in lx.IDIOM_VERBS))
        or (w == "same" and before == "the" and i > 1 and words[i - 2] in lx.AS_THE_SAME)
        or (
            w == "same"
            and i > 1
            and words[i - 2] in lx.BE
            and list(words[i + 1 : i + 3]) in _IN_ALL
        )
        or (w == "equal" and after == "to")
        or (w in ("effect", "effects", "difference", "influence") and not negated)
        or (w in ("faster", "slower", "longer") and before == "no")
        or [x for x in words[max(0, i - 3) : i] if x not in lx.BE][-2:] in _INSTEAD
    )
    return "" if idle else kind


def _stated(before: Sequence[str]) -> bool:
    """True in "is high", "is very high", ": not high"; "a high dose" states no level."""
    last = [w for w in before if w not in ("not", "very", "too", "quite") and w[-2:] != "ly"][-1:]
    return bool(last) and (last[0] in lx.BE or last[0] == ":")


def _adverbial(words: Sequence[str], i: int, taken: set[int]) -> bool:
    """True in "more upregulated" and "rose less": the word grades another one and has no direction
    of its own.
    """
    after = words[i + 1] if i + 1 < len(words) else ""
    before, earlier = (words[i - 1] if i else ""), (words[i - 2] if i > 1 else "")
    grades = (
        after in lx.EVERY
        or after.endswith("ly")
        or before in lx.MOVES
        or (before in ("much", "even", "far") and earlier in lx.MOVES)
    )
    return grades or (
        i + 1 not in taken
        and after not in lx.DETERMINERS
        and after not in lx.GRADED
        and after not in ("", ",", ".")
    )


def _compounds(words: Sequence[str], cues: Sequence[Cue]) -> list[Cue]:
    out: list[Cue] = []
    for c in cues:
        merged = _merged(words, out[-1], c) if out else None
        if merged is not None:
            out[-1] = merged
        else:
            out.append(c)
    return out


def _merged(words: Sequence[str], first: Cue, second: Cue) -> Cue | None:
    """Two neighbouring cues as one, or None: "reduced inhibition" (up), "a greater decrease"
    (down), "goes up".
    """
    gap, word = words[first.end : second.start], words[second.start]
    if (
        word in lx.NOUNS
        and len(gap) <= 2
        and all(w == "any" or w in lx.DETERMINERS or w.endswith("ly") for w in gap)
    ):
        if second.kind == "change":
            kind = first.kind
        elif words[first.start] in lx.SIZES or word not in lx.PROCESS or first.kind == "up":
            kind = second.kind  # "a smaller increase" is still an increase
        else:
            kind = OPPOSITE.get(second.kind, second.kind) if first.kind == "down" else first.kind
        return Cue(first.start, second.end, kind)
    both = OPPOSITE.get(first.kind) == second.kind and words[first.start] in lx.PARTICLES
    if not gap and word in lx.PARTICLES and second.kind in ("up", "down") and not both:
        return Cue(first.start, second.end, second.kind if first.kind == "change" else first.kind)
    return (
        Cue(first.start, second.end, second.kind)
        if first.kind == "change" and len(gap) <= 1 and second.kind in ("up", "down")
        else None
    )


def count_negations(
    words: Sequence[str],
    cue: Cue,
    start: int,
    mute: frozenset[int] = frozenset(),
) -> int:
    """How often the cue is negated by the six words before it in its clause; `mute` indexes do not
    count.
    """
    if words[start] in lx.PREPOSITIONS | {"without", "despite"} and words[start + 1] != "no":
        # "without oxygen, X rises"
        start = next((i for i in range(start, cue.start) if words[i] == ","), start)
    first = max(start, cue.start - 6)
    window = ["_" if i in mute else words[i] for i in range(first, cue.start)]
    if m := _NOT_NEGATIONS.search(text := f" {' '.join(window)} "):
        end = text.count(" ", 0, m.end())
        count = m.group(0).count(" ") + 1
        window[end - count : end] = ["_"] * count
    n = sum(_negates(words, window, i, cue, start, first) for i in range(len(window)))
    following = words[cue.end] if cue.end < len(words) else ""
    return n + (cue.kind == "change" and following in ("little", "nothing", "not"))


def _negates(
    words: Sequence[str],
    window: Sequence[str],
    i: int,
    cue: Cue,
    start: int,
    first: int,
) -> bool:
    w, following = window[i], window[i + 1] if i + 1 < len(window) else ""
    one = w == "nor" and "neither" in words[start : first + i]  # "neither X nor Y" negates once
    return not one and (
        w in lx.NEGATORS
        or (w in lx.FAILURES and (w != "failure" or following in ("to", "of", "in")))
        or w.endswith("n't")
        or (
            w in lx.PREVENTERS
            and words[cue.start] in lx.NOUNS
            and not any(x in lx.PREVENTERS for x in window[i + 1 :])
        )
        or (w, following) in (("far", "from"), ("anything", "but"))
        or (w in ("little", "scant") and (cue.kind == "change" or following == "to"))
    )


def understood(
    words: Sequence[str],
    cue: Cue,
    start: int,
    names: Container[int],
    *,
    behind: bool,
) -> bool:
    """True where the words between a subject and its word of direction are known: "X ceases to
    rise", "X resists increases" and "the rise of X is reversed" say something else than "X rises".

    behind : the subject stands after the word.
    """
    if behind or not _stands(words, cue, names):
        return _stands(words, cue, names)
    if words[cue.end - 1] in lx.NOUNS and any(w in lx.PREVENTERS for w in words[start : cue.start]):
        return True  # a negation, counted there
    i = _back(words, cue.start - 1, start)
    if i >= start and words[i] == "to":
        i -= 1
        return i < start or i in names or words[i] in lx.BEFORE_TO
    if not (i < start or i in names or words[i] in lx.KNOWN_BEFORE | lx.SUPPORTS | lx.PREPOSITIONS):
        j = _back(words, i - 1, start)  # an unnamed thing: in a list, or in "X in the blood falls"
        since = next((k for k in range(i, start - 1, -1) if k in names), start)
        placed = any(w in lx.PREPOSITIONS or w[-3:] == "ing" for w in words[since:i])
        if not placed and j >= start and words[j] not in {",", "and", "or", "nor"} | lx.SUPPORTS:
            return False
    return True


def _back(words: Sequence[str], i: int, start: int) -> int:
    """From i back over determiners and adverbs."""
    while i >= start and words[i] != "to":
        if words[i] not in lx.DETERMINERS | lx.SEEN and words[i][-2:] != "ly":
            break
        i -= 1
    return i


def _stands(words: Sequence[str], cue: Cue, names: Container[int]) -> bool:
    """False where a rise is said to be something that is not a way to be seen ("is reversed"), or
    to be by nothing."""
    if tuple(words[cue.end : cue.end + 2]) in (("by", "0"), ("by", "zero"), ("by", "nothing")):
        return False
    i = cue.end
    while i < len(words) and (i in names or words[i] in lx.DETERMINERS):
        i += 1
    if words[cue.end - 1] not in lx.NOUNS or words[i : i + 1] not in [[w] for w in lx.BE]:
        return True
    plain = (w for w in words[i + 1 :] if w not in lx.NEGATORS and w[-2:] != "ly")
    said = "no" if "unlikely" in words[i:] else next(plain, "")
    return said in lx.SEEN | lx.EVERY | lx.DETERMINERS or not said.isalpha()


def direction_of(cue: Cue, negations: int) -> str:
    """up, down, none, not_up, not_down, or unstated ("changed", "not unchanged")."""
    two = {"change": ("unstated", "none"), "none": ("none", "unstated")}
    return two.get(cue.kind, (cue.kind, f"not_{cue.kind}"))[negations % 2]


def excluded(words: Sequence[str], m: Match) -> bool:
    """True for a subject that is only compared with, excepted, or the agent."""
    i = m.start
    while (
        i > 0
        and words[i - 1] in lx.DETERMINERS
        and words[i - 1] not in ("in", "on", "for", "to", "of", "both", "all")
    ):
        i -= 1
    return any(i >= len(p) and [*words[i - len(p) : i]] == p for p in _EXCLUDERS)


def usable(words: Sequence[str], subjects: Sequence[Match]) -> list[Match]:
    """The subjects without those that are a part of another name ("mTOR inhibitor")."""
    return [m for m in subjects if m.end >= len(words) or norm(words[m.end]) not in lx.OTHER_HEAD]


def in_one_list(words: Sequence[str], group: Sequence[Match]) -> bool:
    """True when only commas, conjunctions and the like stand between the subjects ("in A and in
    B")."""
    gaps = (words[a.end : b.start] for a, b in itertools.pairwise(group))
    return all(
        lx.LIST_WORDS.issuperset(gap[:1]) and (lx.LIST_WORDS | lx.PREPOSITIONS).issuperset(gap)
        for gap in gaps
    )


def listed(words: Sequence[str], following: Sequence[Match]) -> list[Match]:
    """The first subject and those that are listed with it."""
    out = [following[0]]
    for m in following[1:]:
        if not in_one_list(words, [out[-1], m]):
            break
        out.append(m)
    return out


def of_chain(words: Sequence[str], group: Sequence[Match]) -> bool:
    """True in "the level of A in B rises": the first is the head."""
    return len(group) >= 2 and any(
        w in ("in", "of", "inside", "within", "from")
        for w in words[group[-2].end : group[-1].start]
    )


def settle_two(a: str, b: str) -> str:
    """Two statements on one subject: the more exact one, or "clash", which no third statement
    mends.

    >>> settle_two("not_up", "down"), settle_two("up", "down"), settle_two("not_up", "not_down")
    ('down', 'clash', 'none')
    """
    if a in (b, CLASH):
        return a
    exact = {x for x in (a, b) if x in ("up", "down", "none")}
    if len(exact) == 1:
        only = exact.pop()
        return CLASH if {a, b} & {CLASH, "not_" + only} else only
    return "none" if {a, b} == {"not_up", "not_down"} else CLASH
