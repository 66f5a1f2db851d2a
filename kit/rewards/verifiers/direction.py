"""Directed claims: which named things does a text say go up, down, or stay; and how well that fits the truth.

A sentence is split into clauses; in each, words of direction are bound to the subjects that they speak of, negation and comparison
are applied, and what is only asked, supposed or reported is left out. Everything is matched by whole words, so "enrichment" has no
direction and "UPR" is not in "upregulated". Scores follow BioRLHF's pathway verifier.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...records import Response, Task
from ..parts import Part
from . import lexicon as lx
from .confidence import without_confidence
from .text import Match, asserted, clean, find, norm, sentences, tokens

DIRECTIONS = ("up", "down", "none", "not_up", "not_down", "unstated")
_SIGNED = re.compile(r"(?:NES|enrichment scores?|log2? ?fold[- ]change|logFC|log2FC)\b[^.;\d+\-]{0,25}([+-]?)\s*(\d+(?:\.\d+)?)", re.I)
_DENIALS = tuple(tuple(p.split()) for p in lx.DENIALS)
_NO_CLAIM = tuple(tuple(p.split()) for p in lx.NO_CLAIM)
_LIKEWISE = tuple(tuple(p.split()) for p in lx.LIKEWISE)
_NOT_NEGATIONS = tuple(tuple(p.split()) for p in lx.NOT_NEGATIONS)
_PRONOUNS = ("it", "they", "both", "this", "these")


@dataclass(frozen=True)
class Claim:
    """One statement: subject, direction (one of DIRECTIONS), hedged, and the sentence that makes it."""

    subject: str
    direction: str
    hedged: bool = False
    sentence: str = ""


@dataclass
class _Cue:
    start: int
    end: int
    kind: str  # up, down, none, change
    negations: int = 0


def _lower(words: Sequence[str]) -> list[str]:
    return [w.lower() for w in words]


def _has(words: Sequence[str], phrases: Sequence[tuple[str, ...]]) -> int:
    """Index after the first occurrence of any phrase, or -1."""
    for p in phrases:
        for i in range(len(words) - len(p) + 1):
            if tuple(words[i:i + len(p)]) == p:
                return i + len(p)
    return -1


def _cues(words: list[str], subjects: Sequence[Match]) -> list[_Cue]:
    """Words of direction outside the subjects' names, with compounds merged ("reduced inhibition" is one, upward)."""
    taken = {i for m in subjects for i in range(m.start, m.end)}
    cues: list[_Cue] = []
    for i, w in enumerate(words):
        if i in taken:
            continue
        kind = "up" if w in lx.UP else "down" if w in lx.DOWN else "change" if w in lx.CHANGE else "none" if w in lx.NONE else ""
        before = words[i - 1] if i else ""
        after = words[i + 1] if i + 1 < len(words) else ""
        if w in ("positive", "positively", "negative", "negatively") and any(x.startswith("enrich") for x in words[i + 1:i + 3]):
            kind = "up" if w.startswith("pos") else "down"
        if w in ("more", "less") and (after in ("than", "or", "likely", "and", "importantly") or before == "or" or _adverbial(words, i, taken)):
            kind = ""
        if w in ("up", "down") and (after in ("to", "with") or before in ("build", "builds", "make", "makes", "made", "set", "sets", "take", "taken",
                                                                           "taking", "break", "breaks", "broken", "turn", "turns", "looking", "look", "shut", "end", "follow")):
            kind = "up" if w == "up" and before in ("build", "builds") else ""
        if w == "same" and before == "the" and words[max(0, i - 3):i - 1] and words[i - 2] in ("at", "in", "on", "of", "by", "does", "do", "did", "from", "to"):
            kind = ""
        if w in ("be", "is") or (w == "equal" and after == "to"):
            kind = ""
        if w in ("effect", "effects", "difference", "influence") and not any(x in lx.NEGATORS or x in ("little", "unaffected") for x in words[max(0, i - 4):i]):
            kind = ""
        if w in ("faster", "slower", "longer", "no") and before == "no":
            kind = ""
        if tuple(words[max(0, i - 2):i]) in (("rather", "than"), ("instead", "of")):
            kind = ""
        if kind:
            cues.append(_Cue(i, i + 1, kind))
    return _compounds(words, cues)


def _adverbial(words: Sequence[str], i: int, taken: set[int]) -> bool:
    """"more upregulated", "rose less": the word grades another one and has no direction of its own."""
    after = words[i + 1] if i + 1 < len(words) else ""
    before = words[i - 1] if i else ""
    graded = after in lx.UP | lx.DOWN | lx.CHANGE | lx.NONE or after.endswith("ly") or before in lx.UP | lx.DOWN | lx.CHANGE or before in ("much", "even", "far") and (
        words[i - 2] if i > 1 else "") in lx.UP | lx.DOWN | lx.CHANGE
    return graded or (i + 1 not in taken and after not in lx.DETERMINERS and after not in ("", "active", "abundant", "expressed", "frequent", "common", ",", "."))


def _compounds(words: list[str], cues: list[_Cue]) -> list[_Cue]:
    out: list[_Cue] = []
    for c in cues:
        word = words[c.start]
        previous = out[-1] if out else None
        if previous is not None and word in lx.NOUNS and c.start - previous.end <= 2 and all(
                w in ("in", "of", "the", "a", "an", "in", "any") or w in lx.DETERMINERS or w.endswith("ly") for w in words[previous.end:c.start]):
            first = words[previous.start]
            if c.kind == "change" or (first in lx.SIZES or word not in lx.PROCESS) and c.kind != "change":
                kind = previous.kind if c.kind == "change" else c.kind
            else:
                kind = c.kind if previous.kind == "up" else {"up": "down", "down": "up"}.get(c.kind, c.kind) if previous.kind == "down" else previous.kind
            out[-1] = _Cue(previous.start, c.end, kind)
        elif previous is not None and previous.end == c.start and c.kind in ("up", "down") and word in ("up", "down", "upward", "upwards", "downward", "downwards"):
            out[-1] = _Cue(previous.start, c.end, c.kind if previous.kind in ("change",) or words[previous.start] in ("cut",) else previous.kind)
        elif previous is not None and previous.kind == "change" and c.start - previous.end <= 1 and c.kind in ("up", "down"):
            out[-1] = _Cue(previous.start, c.end, c.kind)
        else:
            out.append(c)
    return out


def _negations(words: Sequence[str], cue: _Cue, start: int, mute: frozenset[int] = frozenset()) -> int:
    """How often the cue is negated by the words before it in its clause (a window of six words; `mute` indexes do not count)."""
    text = ["_" if i in mute else words[i] for i in range(max(start, cue.start - 6), cue.start)]
    for p in _NOT_NEGATIONS:
        at = _has(text, (p,))
        if at > 0:
            text[at - len(p):at] = ["_"] * len(p)
    n = 0
    for i, w in enumerate(text):
        if w in lx.NEGATORS or w in lx.FAILURES or w.endswith("n't"):
            n += not (w == "nor" and "neither" in words[start:max(start, cue.start - 6) + i])
        elif w in lx.PREVENTERS and words[cue.start] in lx.NOUNS:
            n += 1
        elif w == "far" and text[i + 1:i + 2] == ["from"]:
            n += 1
        elif w in ("anything",) and text[i + 1:i + 2] == ["but"]:
            n += 1
        elif w in ("little", "scant") and cue.kind == "change":
            n += 1
    after = list(words[cue.end:cue.end + 2])
    if cue.kind == "change" and after[:1] and after[0] in ("little", "nothing", "not"):
        n += 1
    return n


def _direction(cue: _Cue, negations: int) -> str:
    odd = negations % 2 == 1
    if cue.kind == "change":
        return "none" if odd else "unstated"
    if cue.kind == "none":
        return "unstated" if odd else "none"
    return ("not_" if odd else "") + cue.kind


def _split(words: Sequence[str], subjects: Sequence[Match], cues: Sequence[_Cue]) -> list[tuple[int, int]]:
    """Clauses as token ranges: cut at conjunctions and punctuation, but only where both sides carry a word of direction."""
    inside = {i for m in subjects for i in range(m.start, m.end)} | {i for c in cues for i in range(c.start, c.end)}
    cuts = [i for i, w in enumerate(words) if w in lx.HARD and i not in inside]
    pieces, start = [], 0
    for i in cuts:
        if i > start:
            pieces.append((start, i))
        start = i
    if start < len(words):
        pieces.append((start, len(words)))
    return pieces


def _in(items: Sequence, start: int, end: int) -> list:
    return [x for x in items if start <= x.start < end]


def _excluded(words: Sequence[str], m: Match) -> bool:
    """True for a subject that is only compared with, excepted, or the agent."""
    i = m.start
    while i > 0 and words[i - 1] in lx.DETERMINERS and words[i - 1] not in ("in", "on", "for", "to", "of", "both", "all"):
        i -= 1
    for p in lx.EXCLUDERS:
        if i >= len(p) and tuple(words[i - len(p):i]) == p:
            return True
    return False


def _usable(words: Sequence[str], subjects: Sequence[Match]) -> list[Match]:
    out = []
    for m in subjects:
        after = norm(words[m.end]) if m.end < len(words) else ""
        if after not in lx.OTHER_HEAD:
            out.append(m)
    return out


class _Reader:
    """Reads the claims of one text, remembering the last subject for "it" and the last direction for "so does"."""

    def __init__(self, subjects: Mapping[str, Sequence[str]]) -> None:
        self.names = [(name, alias) for name, aliases in subjects.items() for alias in (name, *aliases)]
        self.last: list[str] = []
        self.mute: frozenset[int] = frozenset()

    def sentence(self, text: str) -> list[Claim]:
        raw = tokens(text)
        words = [w for w in _lower(raw)]
        subjects = _usable(words, find([norm(w) for w in raw], self.names))
        cues = _cues(words, subjects)
        signed = self._signed(text, subjects)
        if signed:
            return signed
        denied = 0
        after_denial = _has(words, _DENIALS)
        if after_denial > 0:
            denied, cues = 1, [c for c in cues if c.start >= after_denial]
        self.mute = frozenset(i for m in subjects if _excluded(words, m) for i in range(max(0, m.start - 3), m.start) if words[i] == "not")
        if "respectively" in words and len(subjects) == len(cues) > 1:
            return [Claim(m.of, _direction(c, 0), False, text) for m, c in zip(subjects, cues, strict=True)]
        claims = self._clauses(text, words, subjects, cues, denied, after_denial if after_denial > 0 else 0)
        return claims

    def _signed(self, text: str, subjects: Sequence[Match]) -> list[Claim]:
        """"NES of -2.1" gives the direction of the one subject of its sentence."""
        m = _SIGNED.search(text)
        names = {s.of for s in subjects} or set(self.last[-1:])
        if not m or len(names) != 1:
            return []
        value = float(m.group(2)) * (-1 if m.group(1) == "-" else 1)
        if value == 0:
            return []
        return [Claim(next(iter(names)), "up" if value > 0 else "down", False, text)]

    def _clauses(self, text: str, words: list[str], subjects: list[Match], cues: list[_Cue], denied: int, skip: int) -> list[Claim]:
        pieces = self._merge(words, [p for p in _split(words, subjects, cues) if p[1] > skip], subjects, cues)
        claims: list[Claim] = []
        previous: tuple[list[str], str, bool] | None = None  # subjects, direction, bound after the cue
        for piece_start, end in pieces:
            start = max(piece_start, skip)
            inner_s = [m for m in _in(subjects, start, end) if not _excluded(words, m)]
            inner_c = _in(cues, start, end)
            clause = words[start:end]
            hedged = any(w in ("may", "might", "could", "perhaps", "possibly", "probably", "likely", "maybe", "seems", "appears", "suggests") for w in clause)
            if inner_s:
                self.last = [m.of for m in inner_s]
            if _has(clause, _NO_CLAIM) >= 0 or self._condition(clause):
                previous = None
                continue
            if not inner_c and inner_s and previous is not None and previous[1] in ("up", "down") and _ellipsis(words, inner_s[-1].end, end):
                claims += [Claim(m.of, "not_" + previous[1], hedged, text) for m in inner_s]
                continue
            if not inner_c:
                if inner_s and previous is not None and self._joins(clause, previous[2], inner_s, start):
                    direction = previous[1]
                    claims += [Claim(m.of, direction, hedged, text) for m in inner_s]
                continue
            bound = self._bind(words, start, end, inner_s, inner_c, denied)
            if not inner_s and previous is not None and not bound:
                if self._own_subject(clause, inner_c[0].start - start):
                    continue
                bound = [(name, _direction(c, _negations(words, c, start, self.mute) + denied), False) for c in inner_c[-1:] for name in previous[0]]
            elif not inner_s and not bound and self._pronoun(clause):
                who = self.last if clause and any(w in ("they", "both", "these") for w in clause[:4]) else self.last[-1:]
                bound = [(name, _direction(c, _negations(words, c, start, self.mute) + denied), False) for c in inner_c[-1:] for name in who]
            for name, direction, _ in bound:
                claims.append(Claim(name, direction, hedged, text))
            if bound:
                previous = ([b[0] for b in bound], bound[-1][1], bound[-1][2])
        return claims

    @staticmethod
    def _condition(clause: Sequence[str]) -> bool:
        first = [w for w in clause[:3] if w not in (",", "and", "but", "so", "even", "only", "or", ";", ":")]
        return bool(first) and first[0] in lx.CONDITIONS

    @staticmethod
    def _pronoun(clause: Sequence[str]) -> bool:
        return any(w in _PRONOUNS for w in clause[:4])

    @staticmethod
    def _own_subject(clause: Sequence[str], cue: int) -> bool:
        """True when an unlisted noun stands before the cue: the clause speaks of something else."""
        light = lx.DETERMINERS | lx.HARD | lx.NEGATORS | lx.STAY | lx.FAILURES | set(
            "it they this these does do did has have had will would may might could can then even only also just rather slightly still later again first "
            "finally now been being further back eventually soon subsequently quickly slowly sharply strongly markedly significantly actually really "
            "clearly and or but far from either at least if anything goes go went going gone an increase decrease there who which that show shows showed "
            "as expected much very in fact indeed probably possibly perhaps instead truth reality to no longer not".split())
        words = [w for w in clause[:cue] if w not in light and not w.endswith("ly")]
        return bool(words)

    @staticmethod
    def _joins(clause: Sequence[str], after: bool, subjects: Sequence[Match], start: int) -> bool:
        """"and T4" after "lowers TSH", or "and so does T4": the clause shares the direction of the one before."""
        if _has(clause, _LIKEWISE) >= 0:
            return True
        lead = [w for w in clause[:subjects[0].start - start] if w not in lx.DETERMINERS]
        return after and all(w in ("and", "or", ",", "both") for w in lead)

    def _merge(self, words: Sequence[str], pieces: list[tuple[int, int]], subjects: Sequence[Match], cues: Sequence[_Cue]) -> list[tuple[int, int]]:
        """Join a piece without a direction to the next one, when it ends in a subject or an aside ("X, Y and Z rise")."""
        out: list[tuple[int, int]] = []
        for i, piece in enumerate(pieces):
            if out and not _in(cues, *out[-1]) and self._may_join(words, out[-1], piece, subjects):
                out[-1] = (out[-1][0], piece[1])
            else:
                out.append(piece)
        return out

    @staticmethod
    def _may_join(words: Sequence[str], left: tuple[int, int], right: tuple[int, int], subjects: Sequence[Match]) -> bool:
        link = words[right[0]]
        has = bool(_in(subjects, *left))
        likewise = _has(words[left[0]:left[1]], _LIKEWISE) >= 0 and left[0] > 0
        if likewise:
            return False
        if link in (",", "and", "or", "nor", "(", ")", "which", "–", "—"):
            return has or left[0] == 0
        if link in ("but",) and _has(words[left[0]:left[1]], (("not",),)) >= 0:
            return has and not _in(subjects, *right)
        return False

    def _bind(self, words: Sequence[str], start: int, end: int, subjects: list[Match], cues: list[_Cue], denied: int) -> list[tuple[str, str, bool]]:
        """(subject, direction, bound after the cue) for the subjects of a clause."""
        if not subjects or not cues:
            return []
        out: list[tuple[str, str, bool]] = []
        done: dict[str, str] = {}
        process = noun = ""
        for c in cues:
            n = _negations(words, c, start, self.mute) + denied
            direction = _direction(c, n)
            before = [m for m in subjects if m.end <= c.start]
            following = [m for m in subjects if m.start >= c.end]
            target, after = self._target(words, c, before, following)
            for m in target:
                if m.of in done and process == m.of and not after:  # "inhibition of X was reduced": a change of a change
                    product = _product(done[m.of], direction) if noun in lx.PROCESS else done[m.of]
                    out = [(a, b, x) for a, b, x in out if a != m.of] + [(m.of, product, after)]
                    done[m.of] = product
                    continue
                if m.of in done and done[m.of] != direction:
                    direction_now = _both(done[m.of], direction)
                    out = [(a, b, x) for a, b, x in out if a != m.of] + [(m.of, direction_now, after)]
                    done[m.of] = direction_now
                elif m.of not in done:
                    out.append((m.of, direction, after))
                    done[m.of] = direction
            process = target[0].of if after and len(target) == 1 and words[c.end - 1] in lx.NOUNS else ""
            noun = words[c.end - 1]
        return out

    @staticmethod
    def _target(words: Sequence[str], c: _Cue, before: list[Match], following: list[Match]) -> tuple[list[Match], bool]:
        word = words[c.start]
        gap = [w for w in words[c.end:following[0].start] if w not in lx.DETERMINERS and not w.endswith("ly")] if following else None
        adjacent = gap is not None and all(w in ("level", "levels", "activity", "expression", "amount", "concentration", "rate", "production", "number", "both",
                                                 "resting", "blood", "serum", "plasma", "human", "mouse", "free", "of", "in") for w in gap)
        passive = c.start > 0 and any(w in ("is", "are", "was", "were", "be", "been", "being", "gets", "got", "becomes", "became") for w in words[max(0, c.start - 4):c.start])
        noun_of = words[c.end - 1] in lx.NOUNS and c.end < len(words) and words[c.end] in ("in", "of", "for", "on", "to")
        if following and noun_of and len(gap or []) <= 3 and not any(w in lx.UP | lx.DOWN | lx.NONE for w in gap or []):
            return _list(words, following), True
        attributive = word in lx.ATTRIBUTIVE and c.end < len(words) and following and following[0].start == c.end
        if following and adjacent and (attributive or (word in lx.TRANSITIVE and not passive) or not before):
            return _list(words, following), True
        if before:
            last = before[-1]
            group = [m for m in before]
            return (group if _one_list(words, group) else [last] if not _of_chain(words, before) else [before[0]]), False
        return (_list(words, following), True) if following and len(gap or []) <= 4 else ([], False)


def _product(inner: str, outer: str) -> str:
    """The direction when `outer` happens to a process that moves a thing `inner`."""
    if inner not in ("up", "down") or outer not in ("up", "down"):
        return "unstated"
    return inner if outer == "up" else {"up": "down", "down": "up"}[inner]


def _ellipsis(words: Sequence[str], start: int, end: int) -> bool:
    """"... does not": the verb of the clause before is denied of this subject."""
    rest = [w for w in words[start:end] if w not in (",", ".", "!", ";")]
    return " ".join(rest) in ("does not", "do not", "did not", "doesn't", "don't", "didn't", "is not", "are not", "was not", "were not", "has not", "have not",
                              "isn't", "aren't", "wasn't", "weren't")


def _of_chain(words: Sequence[str], before: Sequence[Match]) -> bool:
    """"the level of A in B rises": the first is the head."""
    return len(before) >= 2 and any(w in ("in", "of", "inside", "within", "from") for w in words[before[-2].end:before[-1].start])


def _one_list(words: Sequence[str], group: Sequence[Match]) -> bool:
    fill = lx.DETERMINERS | {",", "and", "or", "nor", "as", "well", "with", "along", "together", "but", "not", "also", "then", "activity", "levels", "level", "pathway",
                             "pathways", "expression", "signaling", "signalling", "neither", "just", "only"}
    return all(all(w in fill - {"in", "of", "on", "for"} for w in words[a.end:b.start]) for a, b in zip(group, group[1:], strict=False))


def _list(words: Sequence[str], following: list[Match]) -> list[Match]:
    out = [following[0]]
    for m in following[1:]:
        if not _one_list(words, [out[-1], m]):
            break
        out.append(m)
    return out


def _both(a: str, b: str) -> str:
    """Two statements on one subject in one clause: the more exact one, or unstated when they clash."""
    if a == b:
        return a
    exact = {x for x in (a, b) if x in ("up", "down", "none")}
    if len(exact) == 1:
        only = next(iter(exact))
        other = b if a == only else a
        return "unstated" if other == "not_" + only else only
    if {a, b} == {"not_up", "not_down"}:
        return "none"
    return "unstated"


def claims(text: str, subjects: Mapping[str, Sequence[str]], *, prompt: str = "") -> list[Claim]:
    """The directed claims that a text makes about the given subjects (name -> aliases).

    Questions, echoes of `prompt`, repeated sentences and statements of confidence are left out.

    >>> [(c.subject, c.direction) for c in claims("TSH rises, whereas T4 does not.", {"TSH": [], "T4": []})]
    [('TSH', 'up'), ('T4', 'not_up')]
    >>> [(c.subject, c.direction) for c in claims("Gene set enrichment of UPR was computed.", {"UPR": []})]
    []
    """
    reader = _Reader(subjects)
    out: list[Claim] = []
    for s in asserted(text, prompt):
        out += reader.sentence(without_confidence(s))
    return out


def settle(found: Sequence[Claim]) -> dict[str, str]:
    """One direction per subject: what its claims agree on, "unstated" where they clash."""
    out: dict[str, str] = {}
    for c in found:
        if c.direction == "unstated":
            continue
        out[c.subject] = c.direction if c.subject not in out else _both(out[c.subject], c.direction)
    return out


def classify(sentence: str, subject: str, aliases: Sequence[str] = (), others: Sequence[str] = ()) -> str:
    """What one sentence says of one subject: one of DIRECTIONS.

    >>> classify("It is not true that TSH did not rise.", "TSH")
    'up'
    """
    return settle(claims(sentence, {subject: aliases, **{o: () for o in others}})).get(subject, "unstated")


def score(task: Task, response: Response, *, name: str = "direction") -> Part:
    """How well the answer's directed claims fit truth["claims"] = [{subject, direction, aliases}].

    n matching, m of m + c matching, or only contradicting, over the subjects of the truth:
    all match: .8 + .2 n/(n+1), times the share of subjects covered; mixed: .4 + .2 m/(m+c), likewise; only contradicting, or nothing: 0.
    (BioRLHF gives .3 to silence and does not ask for coverage, which is why empty answers and single guesses earned there.)
    """
    wanted = [c for c in task.truth.get("claims", ()) if c.get("direction") in ("up", "down", "none")]
    if not wanted:
        return Part.known(name, 0.0, note="the task names no directed claims")
    said = settle(claims(response.text, {c["subject"]: c.get("aliases", ()) for c in wanted}, prompt=task.prompt))
    match, contra, silent = [], [], []
    for c in wanted:
        got, want = said.get(c["subject"], "unstated"), c["direction"]
        if got == want:
            match.append(c["subject"])
        elif got == "unstated" or got.startswith("not_") and got != "not_" + want:
            silent.append(c["subject"])
        else:
            contra.append(c["subject"])
    return Part.known(name, pathway_score(len(match), len(contra), len(wanted)), said=said, matching=match, contradicting=contra, silent=silent)


def pathway_score(matching: int, contradicting: int, wanted: int) -> float:
    """The direction score in [0, 1] from counts.

    >>> pathway_score(0, 0, 2), round(pathway_score(2, 0, 2), 4), round(pathway_score(1, 1, 2), 4)
    (0.0, 0.9333, 0.25)
    """
    if matching == 0:
        return 0.0
    base = 0.8 + 0.2 * matching / (matching + 1) if contradicting == 0 else 0.4 + 0.2 * matching / (matching + contradicting)
    return base * matching / wanted


def stated_sentences(text: str) -> list[str]:
    """All sentences, cleaned (for tables that show where a claim comes from)."""
    return sentences(clean(text))
