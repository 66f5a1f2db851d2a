"""Criteria of one row against each other: the same twice, nearly the same, and two that cannot both
hold.

Only criteria of one sign under one parent are compared: in a tree the same words under another node
are another demand.
What a criterion is on: its words without articles, auxiliaries and verbs that only report, each as
a stem or as the
first of its synonyms. Two that are on the same things in the same way say the same.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import chain, pairwise
from itertools import combinations_with_replacement as twice
from pathlib import Path

from ..data.words import stem, words
from ..records import Criterion, grouped
from .limits import (
    ABSENT,
    EXACT,
    FAR,
    INF,
    LIMIT,
    MANNER,
    NEGATED,
    NUMBER,
    PIECES,
    PRESENT,
    WHOLE,
    limits,
    measured,
)
from .wording import NEGATION_WORDS

Found = Callable[..., None]  # (code, severity, message, **more): note a finding on the row
LIGHT = frozenset(
    "a an one the this that these those is are was were be been being am do does did has "
    "have had having can could may might will would shall "
    "should must it its they them their there he she his her of in on at to for with "
    "by as from into about and or so than then "
    "response responses answer answers text output reply assistant user users reader "
    "readers generated given provided "
    "says say said state states stating stated mention mentions mentioning mentioned note notes "
    "noted tell tells told report reports reported include includes including "
    "contain contains containing contained name names named give gives giving explain explains "
    "explaining explained describe describes describing described "
    "brings brought bring up discuss discusses discussed refer refers referred touches upon "
    "reason reasons because why make makes made cause causes caused due how much many "
    "way which who what also any some all each "
    "clearly clear explicitly explicit use uses using used "
    "provide provides providing offer offers offered let lets show shows shown present presents "
    "presented take takes taken taking put puts get gets getting go goes need needs needed require "
    "requires required apply applies applied consider considers considered regard regarded regards "
    "addresses deals deal concerns "
    "usually generally normally typically commonly often mainly main mostly really very quite "
    "throughout overall whole entire fully specific specifically list lists "
    "again further whatever whether such between within possible thing things part parts statement "
    "person people someone everyone "
    "highlights highlight emphasizes emphasises stresses indicates identifies "
    "identify outlines clarifies acknowledges recognizes recognises informs inform covers "
    "specifies specify observes raises communicates conveys notices addressed background".split()
)
# Words after which the order of what stands around them matters.
ORDERED = frozenset(
    "before after than then from to into over instead rather first second last "
    "above below if when while until since because both".split()
)
MORE = frozenset("more less fewer greater smaller higher lower".split())
COUNTS = frozenset(NUMBER)
ENOUGH = 3  # words that two share at least where one has some of its own; fewer if nobody else has
MOST = 0.55  # share of their words, where there are several such; of their wording at most
OWN = 0.35, 0.6  # the same where two words are theirs alone, and of the shorter
NOT = NEGATION_WORDS | frozenset("fails fail omits omit lacks neither nothing none".split())
_DROPPED = LIGHT | NOT
QUOTED = re.compile(r"[\"“‘`]([^\"”’`]{1,80})[\"”’`]|[$\\]\S+|\b\w*[A-Z_]\w*[A-Z_0-9]\w*\b")


# What an answer does ("Names ..."), and not how it is: a word more is a detail.
ACT = re.compile(
    r"\W*(?:(?:the\s+\w+|\w+ly)\s+)?(?!(?:is|has|does|was|fails)\b)[a-z]+s\b"
    r"|(?!.*\b(?:not|that)\b).*\b(?:is|are)\s+(?:\w+ly\s+)?(?:stated|mentioned|named|given|indicated"
    r"|listed|explained|described|noted|shown|included|cited|provided|discussed|addressed|specified"
    r"|recommended|suggested|advised|expressed|told|pointed\s+out|brought\s+up|referred\s+to)\b",
    re.I,
)


@lru_cache(maxsize=1)
def synonyms() -> dict[str, str]:
    """Word -> the first of its line in synonyms.txt."""
    path = Path(__file__).with_name("synonyms.txt")
    lines = [line.split() for line in path.read_text("utf-8").split("\n") if line[:1] not in "#"]
    roots = {stem(w).rstrip("e"): line[0] for line in lines for w in line}
    return roots | {w: line[0] for line in lines for w in line}


@lru_cache(maxsize=10_000)
def _core(word: str) -> str:
    root = stem(word).rstrip("e")
    return synonyms().get(word) or synonyms().get(root) or root


@lru_cache(maxsize=4)
def _cores(tokens: frozenset[str]) -> frozenset[str]:
    return frozenset(map(_core, tokens))


class Said:
    """What a criterion is on. core : its stems in order; key : the same as a set; literal :
    numbers, names, quotes."""

    def __init__(self, text: str, tokens: Sequence[str]):
        self.tokens = tokens
        self.core = tuple(_core(w) for w in tokens if w not in _DROPPED)
        self.key = frozenset(self.core)
        self.negated = sum(w in NOT for w in tokens) % 2 == 1
        self.ordered = not ORDERED.isdisjoint(tokens) or len(MORE.intersection(tokens)) > 1
        self.acts = ACT.match(text) is not None
        self.literal = tuple(
            (w, None if then in _DROPPED else _core(then))
            for w, then in pairwise((*tokens, "a"))
            if any(map(str.isdigit, w))
        ) + tuple(sorted(m[0] for m in QUOTED.finditer(text)))

    def same(self, other: Said, times: Mapping[str, int] | None = None) -> bool:
        """True when both ask for one thing: the same stems, in the same order where the order says
        something. Where both say what an answer does, one stem more is a detail; several are a
        paraphrase if the wording differs too: texts made alike differ where it matters.

        times : in how many criteria a stem is; two that these alone have tell more.
        """
        if self.negated != other.negated or self.literal != other.literal:
            return False
        shared = self.key & other.key
        more = self.key ^ other.key
        own = sum((times or {}).get(w, 0) <= 2 for w in shared)
        enough = (len(shared) >= ENOUGH or own > 1) and more.isdisjoint(_cores(COUNTS))
        if more and not (enough and self.acts and other.acts):
            return False
        one, two = ([w for w in x.core if w in shared] for x in (self, other))
        if len(more) > 1 or (more and len(shared) < ENOUGH):
            union = len(shared | more)  # a long text is a scheme, which shares what it grades
            least, part = OWN if own > 1 and union <= 14 else (MOST, 0.0)
            alike = len(shared) >= max(least * union, part * min(len(self.key), len(other.key)))
            alike &= len(shared) >= ENOUGH or len(more) > 1 or one == two
            return alike and SequenceMatcher(None, self.tokens, other.tokens).ratio() < MOST
        return len(shared) > 1 and (one == two or not (self.ordered and other.ordered))


def branch(c: Criterion) -> str | None:
    """The node of a tree that a criterion hangs on, in the rubric or in the file that it is from;
    None outside of trees."""
    return c.parent or c.meta.get("node")


SUBJECT = re.compile(r"\W*(?:the|its|each|every|any|all)\s+([\w-]+)", re.I)
INNER = re.compile(  # what follows is said, or belongs to a thing
    r"\b(?:that|which|who|whose|whether|if|how|what|when|where|why|while|because|against|(?:sa[yi]|"
    r"stat|explain|describ|mention|compar|list|warn|claim|suggest|recommend|advis)[a-z]*s)\b",
    re.I,
)
# "Warns against X" says what "advises not to X" says.
AGAINST = re.compile(
    r"\b(?:warns?|advises?|cautions?|recommends?)\s+(?:\w+\s+){0,2}?against|\bdiscourages?\b", re.I
)


@lru_cache(maxsize=4096)
def said(text: str) -> Said:
    """What a text is on, by its words."""
    return Said(text, words(AGAINST.sub("recommends not", text)))


def compare(criteria: Iterable[tuple[Criterion, str]], found: Found) -> None:
    """Findings on the criteria of a row, given with their folded text: one per group that says the
    same."""
    groups = grouped(((c.weight < 0, branch(c)), (c, folded)) for c, folded in criteria)
    _both_signs(groups, found)
    for members in groups.values():
        if len(members) > 1:
            _twice(_distinct(members, found), found)


def _both_signs(
    groups: Mapping[tuple[bool, str | None], Sequence[tuple[Criterion, str]]], found: Found
) -> None:
    """A text that is rewarded once and punished once."""
    for (negative, node), members in groups.items():
        rewarded = groups.get((False, node), ()) if negative else ()
        wanted = {said(c.text).key: c for c, _ in rewarded}
        for c, folded in members if wanted else ():
            other = wanted.get(said(c.text).key)
            if (other and c.check == other.check) and (
                folded == " ".join(words(other.text)) or said(c.text).same(said(other.text))
            ):
                found(
                    "contradiction",
                    "warning",
                    f"says the same as {other.id!r}: meeting it is rewarded and punished",
                    c,
                    suggestion="remove the one whose sign is wrong",
                )


def _distinct(members: list[tuple[Criterion, str]], found: Found) -> list[Criterion]:
    """The first criterion of each wording; one finding for each wording that comes again."""
    by_text = grouped((folded, c) for c, folded in members)
    for same in by_text.values():
        if len(same) > 1 and same[0].check == same[1].check:
            found(
                "duplicate-criterion",
                "warning",
                f"the same criterion as {_names(same[:-1])}",
                same[-1],
                suggestion="remove one: it counts twice",
            )
    return [same[0] for same in by_text.values()]


def _names(criteria: Sequence[Criterion]) -> str:
    more = f" and {len(criteria) - 5} more" if len(criteria) > 5 else ""
    return ", ".join(repr(c.id) for c in criteria[:5]) + more


def _twice(criteria: list[Criterion], found: Found) -> None:
    """Criteria that say the same, as one group; those that forbid what another asks for. Only
    groups that share a stem are compared."""
    heard = [said(c.text) for c in criteria]
    times = Counter(w for s in heard for w in s.key)
    groups: list[tuple[Said, list[Criterion]]] = []
    holding: dict[str, list[int]] = defaultdict(list)
    for c, s in zip(criteria, heard, strict=True):
        near = [groups[i] for i in sorted({i for w in s.key for i in holding[w]})]
        same = (g for t, g in near if s.same(t, times) and c.check == g[0].check)
        if group := next(same, None):
            group.append(c)
            continue
        for t, g in near:
            _opposed(g[0], t, c, s, found)
        for w in s.key:
            holding[w].append(len(groups))
        groups.append((s, [c]))
    for _, group in groups:
        if len(group) > 1:
            _repeated(group, found)
    if criteria[0].weight >= 0:  # too long and too short may both cost
        _limits(criteria, found)


def _repeated(same: Sequence[Criterion], found: Found) -> None:
    found(
        "near-duplicate",
        "warning",
        f"says the same as {_names(same[:-1])} in other words",
        same[-1],
        confidence=0.8,
        suggestion="merge them: they count twice",
    )


def _opposed(o: Criterion, t: Said, c: Criterion, s: Said, found: Found) -> None:
    """A criterion that forbids what another asks for; s, t : what c and o are on."""
    alike = s.core == t.core or (s.key == t.key and not (s.ordered or t.ordered))
    if alike and s.literal == t.literal and s.key and c.weight >= 0 and s.negated != t.negated:
        found(
            "contradiction",
            "warning",
            f"contradicts {o.id!r}: one asks for what the other forbids",
            c,
            confidence=0.7,
            suggestion="keep one of the two",
        )


def _limits(criteria: list[Criterion], found: Found) -> None:
    """Counted limits on one thing that no answer meets. Where code counts both, that is certain."""
    bounds = grouped((b[0], (c, *b)) for c in criteria for b in _bounds(c))
    for (o, noun, of2, low2, high2, sure2), (c, _, of, low, high, sure) in chain.from_iterable(
        twice(x, 2) for x in bounds.values()
    ):
        apart = low > high if o is c else low > high2 or low2 > high
        small, large = sorted(b if b < INF else a for a, b in ((low, high), (low2, high2)))
        alike = _one_thing(of, of2) and large <= FAR * max(small, 1.0)
        if not alike or (sure is None and not apart):
            continue
        told = o is c or sure or sure2 or said(o.text).same(said(c.text))
        if (low, high) == (low2, high2) and not told:
            _repeated([o, c], found)
        if apart:
            code = (
                ("impossible-checks", "error") if sure and sure2 else ("contradiction", "warning")
            )
            found(
                *code,
                f"contradicts {o.id!r}: they set limits for {noun} that no answer meets",
                c,
                suggestion="keep one of the two",
            )
            return
        implied = o is not c and (low2 <= low and high <= high2) != (low <= low2 and high2 <= high)
        if implied:
            found(
                "implied-limit",
                "warning",
                f"{o.id!r} sets a limit for {noun} too: one of the two is met with the other",
                c,
                suggestion="keep one, unless steps of one scale are meant",
            )


def _one_thing(a: frozenset[str], b: frozenset[str]) -> bool:
    """True where both are of one thing: of the same, or of an answer and what that answer is."""
    pieces = _cores(PIECES)
    one, two = a & pieces, b & pieces
    return a - pieces == b - pieces and (not (one and two) or one == two)


def _bounds(c: Criterion) -> list[tuple[str, frozenset[str], float, float, bool | None]]:
    """(what is counted, of what, least, most, by code?) for every limit that a criterion sets; the
    last is None for a thing that must be there, or must not."""
    if (found := measured(c)) is not None:
        name, low, high = found
        return [(name, frozenset(), low, high, True)]
    if c.check is not None:
        return []
    there = _presence(c.text)
    if not (found := limits(c.text)) or NEGATED.search(LIMIT.sub("", c.text)):
        return there
    rest = MANNER.sub(" ", EXACT.sub(r"\1", LIMIT.sub(" ", c.text)))
    # what a limit is on is told by the words that are left without it
    thing = (said(rest).key - (_cores(WHOLE) - _cores(PIECES))).union(
        _cores(PIECES.intersection(words(rest)))  # a report, not what somebody reports
    )
    return [*((noun + "s", thing, low, high, False) for noun, low, high in found), *there]


def _presence(text: str) -> list[tuple[str, frozenset[str], float, float, None]]:
    """As `_bounds` of a criterion on a thing that an answer has, or has not."""
    denied = NEGATED.search(text) is not None
    m = (ABSENT if denied else PRESENT).match(text)
    thing = tuple(map(_core, words(m["thing"]))) if m and not INNER.search(m["who"]) else ()
    if not thing:
        return []
    scope = (said(of[1]).key if (of := SUBJECT.match(text)) else frozenset()).union(
        thing[:-1] if denied else ()
    )
    return [(thing[-1], scope, float(not denied), 0.0 if denied else INF, None)]
