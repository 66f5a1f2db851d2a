"""Questions whose answer depends on the case: does an answer say so, and gives it one direction
for all cases nevertheless? And questions whether cases are alike (`alike`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from . import lexicon as lx
from . import polar
from .clauses import NO_CLAIM, Reader
from .cues import PARTED, after_phrase, count_negations, direction_of, find_cues
from .direction import settle
from .text import affirmed, tokens

_SIZE = re.compile(r"\b(?:size|magnitude|strength|extent|degree|amount|mechanism|cause|timing)\b")
_TELLS = re.compile(
    r"\b(?:(?P<same>consisten(?:t|tly|cy)|uniform(?:ly|ity)?|same|alike|similar(?:ly)?|equal(?:ly)?"
    r"|identical(?:ly)?|agree[sd]?|agreement|concordant(?:ly)?|shared|conserved|homogeneous"
    r"|everywhere|independent|(?<=no )(?:general|single|one|clear|common))"
    r"|inconsisten(?:t|tly|cy)|differ(?:s|ed|ently|ences?)?"
    r"|different(?! (?:tissue|organ|mission|stud))"
    r"|var(?:y|ies|ied|iable)|depend(?:s|ed|ent|ing)?|mixed|disagree\w*|discordant(?:ly)?"
    r"|heterogen\w*|deviates?|conflict(?:s|ing)?|contradict\w*|specific|divergent"
    r"|change\w* (?:between|across|from)|(?:other|own|opposite|various) (?:way|direction)s?)\b"
)
_OPEN = re.compile(
    r"\b(?:may|might|could|perhaps|possibly|maybe|if|whether|unless|unknown|unclear|uncertain|asked"
    r"|question|answer to)\b"
)
_YES_NO = re.compile(r"(?:^|\b(?:is|say) )(yes|no)(?= (?:it|the|they|not)\b|$)")
ACROSS = re.compile(r"\b(?:across|between|among) (?:\w+ )*?(\w+)(?=[?.,]|$)")
_SOME = r"\b(?:some|other|two|three|one|another|most)\b"
_CUTS = (lx.HARD - {"or"}) | {"why", "that"}  # "not up or down" denies both


def _kind(prompt: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """What speaks of the cases that a question asks for, and of some of another kind."""
    stems = (re.escape(w[: max(3, len(w) - 3)]) for w in ACROSS.findall(prompt.lower()))
    cases = r"missions?|stud(?:y|ies)|experiments?|flights?|datasets?|cases?"
    asked = "|".join([cases, *(rf"{stem}\w*" for stem in stems)])
    case = rf"(?:{asked})\b"
    goes_on = r"(?:up|down|\w+ed|it|is|are|of|in|and|or|but|while|whereas|that|show|find|report)\b"
    other = rf"{_SOME}(?= \w)(?! (?:\w+ ){{0,2}}{case})(?! {goes_on})"
    return re.compile(rf"{_SOME}|\bothers\b|\b{case}"), re.compile(other)


def varying(sentences: Sequence[str], cases: Mapping[str, str], prompt: str = "") -> float | None:
    """1 where sentences say that it depends, .5 where they leave it open between up and down, 0
    where they give one direction or a wrong one for a case; None where they say nothing of it.

    cases : name -> up or down; prompt : it says what they are ("across trials").

    >>> varying(["It is up in M1 but down in M2."], {"M1": "up", "M2": "down"})
    1.0
    >>> varying(["It is consistently up; why is unknown."], {})
    0.0
    """
    of_cases, of_others = _kind(prompt)
    reader = Reader(dict.fromkeys(cases, ()))
    said = settle([claim for s in sentences for claim in reader.sentence(s)])
    if any(d in ("up", "down") and d != cases[c] for c, d in said.items()):
        return 0.0
    named = any(cases[c] == d for c, d in said.items())
    depends, parted, ways = False, named, set[str]()
    for part in (p for s in sentences for p in s.split(";")):
        words = [w.lower() for w in tokens(part)]
        joined = " ".join(words)
        cuts = [0, *(i for i, w in enumerate(words) if w in _CUTS)]
        cues = [(c, max(i for i in cuts if i <= c.start)) for c in find_cues(words, ())]
        signs = {direction_of(c, count_negations(words, c, i)) for c, i in cues} & {"up", "down"}
        cases_ = bool(of_cases.search(joined)) and not of_others.search(joined)
        left_open = named or not lx.HEDGES.isdisjoint(words)
        if len(signs) == 1 and (not (left_open or cases_) or True in _signs(joined)):
            return 0.0
        ways |= signs
        parted |= cases_ and len(signs) == 1  # "It is up in some. In others it is down."
        open_ = (len(signs) != 1 or left_open) and not _SIZE.search(joined)
        depends |= (open_ and False in _signs(joined)) or (len(signs) == 2 and (named or cases_))
    return 1.0 if depends or (len(ways) == 2 and parted) else {0: None, 1: 0.0, 2: 0.5}[len(ways)]


def alike(prompt: str, sentences: Sequence[str], ways: Iterable[str] = ()) -> str:
    """ "yes" where the sentences call all cases alike, "no" where they tell them apart, UNREAD
    where they speak of them in other words; "" where they say both, or nothing.

    ways : the direction that they give for each case, which counts where they call them neither.

    >>> asked = "Is the response consistent across tissues?"
    >>> alike(asked, ["Not all tissues agree."]), alike(asked, ["Yes."]), alike(asked, ["Perhaps."])
    ('no', 'yes', '')
    >>> alike(asked, ["It is, in all four."])
    'unread'
    """
    clauses = [c for s in sentences for c in _clauses(s)]
    asked = _signs(" ".join(tokens(prompt.lower())))
    short = {m[1] == "yes" for c in clauses for m in _YES_NO.finditer(c) if len(asked) == 1}
    said = set().union({yes in asked for yes in short}, *map(_signs, clauses))
    said = {False} if any(map(PARTED.search, sentences)) else said
    if ways and not said and {"up", "down", "none"}.issuperset(ways):
        said = {len({*ways}) == 1}
    if said:
        return polar.POLES[said.pop()] if len(said) == 1 else ""
    return polar.UNREAD if polar.said(prompt, " ".join(sentences)) else ""


def _clauses(sentence: str) -> Iterable[str]:
    """The clauses, in lower case, that neither ask nor leave open nor speak of the size only."""
    for part in polar.CUT.split(sentence):
        words = affirmed([w.lower() for w in tokens(polar.HOLDS.sub("", part, count=1))])
        clause = " ".join(words)
        told = _OPEN.search(clause) or _SIZE.search(clause) or after_phrase(words, NO_CLAIM) >= 0
        if not (told or {*words[:1]} & lx.ASKS or lx.DOUBTS.intersection(words)):
            yield clause


def _signs(clause: str) -> set[bool]:
    """Whether a clause says that cases are the same: a negation before the word turns it round."""
    said = (
        (m, clause[: m.start()].replace("far from", "not").split()) for m in _TELLS.finditer(clause)
    )
    turns = ((m, sum(w in lx.POLAR_TURNS or w[-3:] == "n't" for w in before)) for m, before in said)
    return {(m["same"] is None) == bool(n % 2) for m, n in turns}
