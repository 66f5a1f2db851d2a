"""Binds the words of direction in each clause to the subjects that they speak of."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from ..checks.quantities import quantities
from . import lexicon as lx
from .cues import (
    CLASH,
    OPPOSITE,
    Cue,
    after_phrase,
    count_negations,
    direction_of,
    excluded,
    find_cues,
    in_one_list,
    listed,
    of_chain,
    phrases,
    settle_two,
    understood,
    usable,
    within,
)
from .text import Match, affirmed, find, norm, tokens

_SIGNED = re.compile(
    r"\b(?:NES|enrichment scores?|log2? ?fold[- ]change|logFC|log2FC)\b[^.;\d+\-]{0,25}", re.I
)
_LABELLED = re.compile(r"[^:;?]{1,80}:[^:;?]+")
_AMOUNT = re.compile(  # how much: it has no direction
    r"(?:\b(?:an? )?(?:about |roughly )?(?=[1-9t])(?:\d+(?:[.,]\d+)?|two|three|ten|twenty)"
    r"(?:[\s-]?(?:fold|times|percent|per cent)\b|\s?%))(?= (?!of\b)\w)"
    r"|(?<=\bdirection) of (?:the )?change\b",
    re.I,
)
_OTHER_SIDE = re.compile(
    r"(?:(?:the )?(?:\w+ )?|.*\b(?:in|of|for|among) (?:the )?(?:\w+ ){0,2}?)controls?\b"
    r".*\b(?:than|compared (?:to|with)|relative to|versus|vs)\b(?!.*\bcontrols?\b)",
    re.I,
)
_MARK = re.compile(r"(?<=\w)(\s*[:=(]\s*|\s+)(\+{1,3}|-{1,3})(?=\s*(?:[,;.)]|$))")
_NONE = re.compile(r"(?<=\w)(\s*[:=]\s*)(?:none|n\.s\.|ns)(?=\s*(?:[,;.)]|$))", re.I)
_OWN = re.compile(  # "I would expect it to rise" says that it rises
    r"\b(I|we) would (?=(?:expect|think|assume)\b(?!.*\b(?:but|yet|however|(?:al)?though)\b))", re.I
)
_THE_PATHWAY = re.compile(  # "In flight, the pathway is up" speaks of "this pathway"
    r"^(\W*(?:in|on|at|with|during|after|under|upon|within|across|compared|relative|versus|vs|yes|no"
    r"|based|according|from|given|using|per|considering)\b[^,]*, "
    r"|\W*(?:i|we) (?:think|believe|expect|conclude|found|find) (?:that )?"
    r"|\W*(?!no|hardly|neither)(?:\w+ ){1,4}(?:shows?|showed|indicates?|indicated|reveals?"
    r"|revealed|confirms?) (?:that )?)"
    r"the(?= (?:pathway|gene set)\b)",
    re.I,
)
_NO_SIGN = re.compile(  # "No data show that it is up"
    r"^\W*no (?:\w+ ){1,3}(?:show|indicat|suggest|reveal|confirm|support)\w* (?:that )?", re.I
)
_DENIALS, NO_CLAIM = phrases(lx.DENIALS), phrases(lx.NO_CLAIM)
_TAKES_BACK, _CAUSES = phrases(lx.TAKES_BACK), phrases(lx.CAUSES)
_UNDONE = re.compile(  # what was to happen did not: "the rise was expected but did not occur"
    r"(?:\b(?:not|never)|n't) (?:actually |really )?(?:occur\w*|happen\w*|materiali[sz]e\w*"
    r"|take place|appear|(?:be(?:en)? )?(?:seen|observed|found|detected|confirmed))\b"
    r"|\bfail(?:s|ed)? to (?:occur|happen|materiali[sz]e|appear|take place)\b"
)
UNREAD = "unread"  # two directions of one thing, or words between that are not known


Piece = tuple[int, int]  # token range


@dataclass(frozen=True)
class Claim:
    """One statement: subject, direction (up, down, none, not_up, not_down, unstated or UNREAD),
    hedged, and the sentence that makes it.
    """

    subject: str
    direction: str
    hedged: bool = False
    sentence: str = ""


@dataclass(frozen=True)
class _Bound:
    """A direction bound to a subject; behind = the subject stands after the word ("raises X")."""

    subject: str
    direction: str
    behind: bool = False


def together(claims: Iterable[Claim]) -> dict[str, str]:
    """What the claims on each subject say together: a direction, or CLASH."""
    out: dict[str, str] = {}
    for c in (c for c in claims if c.direction not in ("unstated", UNREAD)):
        out[c.subject] = settle_two(out.get(c.subject, c.direction), c.direction)
    return out


class Reader:
    """Reads the claims of one text, sentence by sentence, remembering the last subjects for "it"
    and "they".

    subjects : name -> aliases.
    """

    def __init__(self, subjects: Mapping[str, Sequence[str]]) -> None:
        self.names = [
            (name, alias) for name, aliases in subjects.items() for alias in (name, *aliases)
        ]
        self.only = list(subjects) if len(subjects) == 1 else []  # "Upregulated." speaks of it
        self.last = self.only

    def sentence(self, text: str) -> list[Claim]:
        """The claims of one sentence; in "X: up; Y: down" each part is one."""
        text = _NO_SIGN.sub("no evidence that ", text)
        parts = re.split(r"\s*;\s*", text.rstrip(" ;"))
        if len(parts) > 1 and all(_LABELLED.fullmatch(p) for p in parts):
            return [c for p in parts for c in self.sentence(p)]
        text = _MARK.sub(
            lambda m: m[1] + ("up" if "+" in m[2] else "down"), _THE_PATHWAY.sub(r"\1this", text)
        )
        text = _OWN.sub(r"\1 ", _AMOUNT.sub("", _NONE.sub(r"\1unchanged", text)))
        raw = tokens(text)
        words = affirmed([w.lower() for w in raw])
        subjects = usable(words, find([norm(w) for w in raw], self.names))
        cues = find_cues(words, subjects)
        if not cues and (signed := _SIGNED.search(text)):
            return self._signed(text, signed, subjects)
        if "respectively" in words and len(subjects) == len(cues) > 1:
            return [
                Claim(m.of, direction_of(c, 0), False, text)
                for m, c in zip(subjects, cues, strict=True)
            ]
        found = _Sentence(text, words, subjects, cues, self).claims()
        return (
            [replace(c, direction=OPPOSITE.get(c.direction, c.direction)) for c in found]
            if _OTHER_SIDE.match(text)
            else found
        )  # "controls have lower X than the treated"

    def _signed(self, text: str, found: re.Match[str], subjects: Sequence[Match]) -> list[Claim]:
        """The sign of "NES of -2.1", as a claim on the one subject of its sentence."""
        names = {m.of for m in subjects} or set(self.last[-1:])
        inside = (q for q in quantities(text) if found.start() < q.start <= found.end())
        score = next(inside, None)
        direction = UNREAD
        if len(names) == 1 and score and not score.part and score.value * score.far > 0:
            direction = "down" if score.value < 0 else "up"
        return [Claim(name, direction, sentence=text) for name in sorted(names)]


class _Sentence:
    """One sentence cut into clauses; a clause may take its subject or its direction from the one
    before.
    """

    def __init__(
        self,
        text: str,
        words: list[str],
        subjects: list[Match],
        cues: list[Cue],
        reader: Reader,
    ) -> None:
        self.text, self.words, self.subjects, self.reader = text, words, subjects, reader
        self.skip = max(0, after_phrase(words, _DENIALS))
        self.denied = int(self.skip > 0)  # "it is not true that ..." negates what follows
        self.named = {i for m in subjects for i in range(m.start, m.end)}
        causes = _causes(words, cues, self.named)
        self.cues = [c for c in cues if c.start >= self.skip and c not in causes]
        self.mute = frozenset(
            i
            for m in subjects
            if excluded(words, m)
            for i in range(max(0, m.start - 3), m.start)
            if words[i] == "not"
        )

    def claims(self) -> list[Claim]:
        """The claims of the sentence, in order."""
        if doubts(self.words[self.skip :]) or after_phrase(self.words, _TAKES_BACK) >= 0:
            return []
        out: list[Claim] = []
        previous: list[_Bound] = []
        for piece_start, end in self._clauses():
            start = max(piece_start, self.skip)
            clause = self.words[start:end]
            subjects = [m for m in within(self.subjects, start, end) if not excluded(self.words, m)]
            if subjects:
                self.reader.last = [m.of for m in subjects]
            undone = bool(_UNDONE.search(" ".join(clause)))
            if undone and not (subjects and previous):
                out = [c for c in out if c.subject not in {b.subject for b in previous}]
            if undone or after_phrase(clause, NO_CLAIM) >= 0 or _condition(clause):
                previous = []
                continue
            bound = self._clause(start, end, clause, subjects, previous)
            if not bound and clause[0] == "," and clause[1:2] and clause[1].endswith("ing"):
                previous = []  # ", suggesting a lower demand and a higher yield": of other things
            hedged = any(w in lx.HEDGES for w in clause)
            out += [Claim(b.subject, b.direction, hedged, self.text) for b in bound]
            if bound and within(self.cues, start, end):
                previous = bound
        return self._torn([*out, *self._silent(out)])

    def _silent(self, said: Sequence[Claim]) -> list[Claim]:
        """What a sentence names beside its claims and gives no direction in a form known ("and so
        does T4", "Insulin goes up and glucagon does not") is not read.
        """
        told = {c.subject for c in said}
        named = (m.of for m in self.subjects if said and not excluded(self.words, m))
        return [Claim(name, UNREAD, sentence=self.text) for name in named if name not in told]

    def _clause(
        self,
        start: int,
        end: int,
        clause: Sequence[str],
        subjects: list[Match],
        previous: list[_Bound],
    ) -> list[_Bound]:
        if not (cues := within(self.cues, start, end)):
            return self._listed_on(start, clause, subjects, previous)
        if subjects:
            return self._bind(start, subjects, cues)
        verb = cues[0].start + 1 < end and self.words[cues[0].start] in lx.TRANSITIVE
        if verb and clause[0] == "and" and previous and previous[-1].behind:
            return []  # "lowers X and raises sensitivity" raises something else
        if previous:
            who = (
                [] if _own_subject(clause, cues[0].start - start) else [b.subject for b in previous]
            )
        elif not lx.PRONOUNS.isdisjoint(clause[: max(4, cues[0].start - start)]):
            plural = not lx.PLURAL_PRONOUNS.isdisjoint(clause[:4])
            who = self.reader.last if plural else self.reader.last[-1:]
        else:
            lead = [w for w in clause[: cues[0].start - start] if w not in lx.HEADS]
            who = [] if _own_subject(lead, len(lead)) or self.subjects else self.reader.only
        return [_Bound(name, self._direction(cues[-1], start)) for name in who]

    def _direction(self, cue: Cue, start: int, behind: bool = False) -> str:
        if not understood(self.words, cue, start, self.named, behind=behind):
            return "unstated" if "unlikely" in self.words[cue.end :] else UNREAD
        return direction_of(cue, count_negations(self.words, cue, start, self.mute) + self.denied)

    def _listed_on(
        self,
        start: int,
        clause: Sequence[str],
        subjects: list[Match],
        previous: list[_Bound],
    ) -> list[_Bound]:
        """ "... and T4" after "lowers TSH"."""
        if not (previous and subjects and previous[-1].behind):
            return []
        lead = {*clause[: subjects[0].start - start]} - lx.DETERMINERS
        goes_on = lead <= {"and", "or", ",", "both"}
        return [replace(previous[-1], subject=m.of) for m in subjects if goes_on]

    def _clauses(self) -> list[tuple[int, int]]:
        """Token ranges: cut at conjunctions and punctuation, then joined again where a piece lacks
        a word of direction.
        """
        inside = {i for x in (*self.subjects, *self.cues) for i in range(x.start, x.end)}
        cuts = [i for i, w in enumerate(self.words) if w in lx.HARD and i not in inside and i > 0]
        out: list[tuple[int, int]] = []
        for piece in zip([0, *cuts], [*cuts, len(self.words)], strict=True):
            if piece[1] <= self.skip:
                continue
            if len(out) > 1 and self._belongs_behind(*out[-2:], piece):
                out[-2:] = [(out[-2][0], out[-1][1]), piece]
            elif out and (
                self._introduced(out[-1], piece)
                if within(self.cues, *out[-1])
                else self._may_join(out[-1], piece)
            ):
                out[-1] = (out[-1][0], piece[1])
            else:
                out.append(piece)
        return out

    def _belongs_behind(self, left: Piece, names: Piece, right: Piece) -> bool:
        """True for "and eye" in "up in liver and eye, down in kidney": names after a name, and what
        follows begins with a word of direction of its own.
        """
        listing = self._only_named(*names) and left[1] - 1 in self.named
        own = within(self.cues, right[0], right[0] + 2)
        return bool(listing and own and within(self.cues, *left))

    def _introduced(self, left: Piece, right: Piece) -> bool:
        """True for ": liver", "(liver" and for the rest of the list behind "down in all three"."""
        if not self._only_named(right[0] + 1, right[1]) or not within(self.subjects, *right):
            return False
        if not within(self.subjects, *left):
            return self.words[right[0]] in (":", "(")
        first = within(self.subjects, *left)[0].start
        since = next((i for i in range(left[0], first) if self.words[i] in (":", "(")), first)
        return bool(within(self.cues, left[0], since)) and since < first

    def _may_join(self, left: tuple[int, int], right: tuple[int, int]) -> bool:
        """True in lists and asides: "X, Y and Z rise", "X, a hormone, rises", "not X but Y"."""
        words, link = self.words[left[0] : left[1]], self.words[right[0]]
        named = bool(within(self.subjects, *left))
        own = _condition(words) and link == "," and within(self.subjects, *right)
        if own and (within(self.cues, *right) or (len(words) > 3 and not named)):
            return False  # "When light enters the glass, the speed falls"
        if link in lx.CLAUSE_LINKS:
            return named or left[0] == 0
        if link == ":":  # "TSH: rises" says what "TSH rises" does
            return named and self._only_named(*left)
        denies = self.words[right[0] + 1 : right[0] + 2] == ["not"]
        corrects = "not" in words and not within(self.subjects, *right)
        return link == "but" and named and (denies or corrects)

    def _only_named(self, start: int, end: int) -> bool:
        """True when the piece is nothing but names of subjects."""
        inside = {i for m in within(self.subjects, start, end) for i in range(m.start, m.end)}
        free = lx.LIST_WORDS | lx.PREPOSITIONS | {".", "!"}
        return all(i in inside or self.words[i] in free for i in range(start, end))

    def _bind(self, start: int, subjects: list[Match], cues: Sequence[Cue]) -> list[_Bound]:
        """Each word of direction with the subjects that it speaks of; several on one subject are
        settled.
        """
        found: dict[str, _Bound] = {}
        # the subject and the word of "inhibition of X", for "inhibition of X was reduced"
        process = noun = ""
        for c in cues:
            target, behind = self._target(c, subjects)
            direction = self._direction(c, start, behind)
            for m in target:
                old = found.get(m.of)
                if old is not None and process == m.of and not behind:
                    settled = UNREAD if noun in lx.PROCESS else old.direction
                else:
                    settled = direction if old is None else settle_two(old.direction, direction)
                found[m.of] = _Bound(m.of, settled, behind)
            noun = self.words[c.end - 1]
            process = target[0].of if behind and len(target) == 1 and noun in lx.NOUNS else ""
        return list(found.values())

    def _torn(self, claims: list[Claim]) -> list[Claim]:
        """The claims, one that is not read in place of those that say two directions of one thing
        in words of their own: "up in rest and down under stress"; "up or down" says neither.
        """
        gaps = [self.words[a.end : b.start] for a, b in pairwise(self.cues)]
        apart = any({*gap} - (lx.LEAD_WORDS - lx.CONTRASTS) and "or" not in gap for gap in gaps)
        torn = [k for k, way in together(claims).items() if way == CLASH]
        if apart and not all(c.hedged for c in claims):
            claims = [c for c in claims if c.subject not in torn]
            claims += [Claim(k, UNREAD, sentence=self.text) for k in torn]
        return claims

    def _target(self, c: Cue, subjects: Sequence[Match]) -> tuple[list[Match], bool]:
        """The subjects of a word of direction, and whether they stand behind it ("raises X", "a
        rise in X", "higher X").
        """
        words = self.words
        before, behind = (
            subjects[: bisect_right(subjects, c.start, key=lambda m: m.end)],
            subjects[bisect_left(subjects, c.end, key=lambda m: m.start) :],
        )
        if behind:
            gap = [
                w
                for w in words[c.end : behind[0].start]
                if w not in lx.DETERMINERS and not w.endswith("ly")
            ]
            noun_of = (
                words[c.end - 1] in lx.NOUNS
                and c.end < len(words)
                and words[c.end] in ("in", "of", "for", "on", "to")
            )
            if noun_of and len(gap) <= 3 and not any(w in lx.SIGNED for w in gap):
                return listed(words, behind), True
            passive = any(w in lx.BE for w in words[max(0, c.start - 4) : c.start])
            attributive = words[c.start] in lx.ATTRIBUTIVE and behind[0].start == c.end
            takes = attributive or (words[c.start] in lx.TRANSITIVE and not passive) or not before
            # "raising the rate lowers X"
            loose = not before and len(gap) <= 4 and not any(w in lx.EVERY for w in gap)
            if (takes and all(w in lx.BETWEEN for w in gap)) or loose:
                return listed(words, behind), True
        one = before[:1] if of_chain(words, before) else before[-1:]
        return before if in_one_list(words, before) else one, False


def _causes(words: Sequence[str], cues: Sequence[Cue], named: Container[int]) -> list[Cue]:
    """The words of direction that tell why: "it falls because of increased stress"."""
    out: list[Cue] = []
    starts = {c.start for c in cues if words[c.start] in lx.ATTRIBUTIVE}
    for i in range(len(words)):
        since = i + after_phrase(words[i : i + 4], _CAUSES)
        if since <= i or not any(c.end <= i for c in cues):
            continue
        goes_on = (
            k
            for k in range(since, len(words))
            if words[k] not in lx.CLAUSE_LINKS or k + 1 not in starts
        )
        ends = lx.HARD | lx.PRONOUNS
        end = next((k for k in goes_on if k in named or words[k] in ends), len(words))
        if end not in named:
            out += within(cues, since, end)
    return out


def doubts(words: Iterable[str]) -> bool:
    """True where words speak about the truth of something."""
    return any(w in lx.DOUBTS for w in words)


def _condition(clause: Sequence[str]) -> bool:
    """True for a clause that supposes: "if", "when", "unless"."""
    first = [
        w for w in clause[:3] if w not in (",", "and", "but", "so", "even", "only", "or", ";", ":")
    ]
    return (
        bool(first) and first[0] in lx.CONDITIONS and "anything" not in clause[:3]
    )  # "if anything" supposes nothing


def _own_subject(clause: Sequence[str], cue: int) -> bool:
    """True when an unlisted noun stands before the word of direction: the clause speaks of
    something else.
    """
    since = max((i for i, w in enumerate(clause[:cue]) if w in ("it", "they")), default=0)
    return any(w not in lx.LEAD_WORDS and not w.endswith("ly") for w in clause[since:cue])
