"""Questions whose answer depends on the case: does an answer say so, and gives it one direction
for all cases nevertheless?
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from . import lexicon as lx
from .clauses import Reader
from .cues import count_negations, direction_of, find_cues
from .direction import settle
from .text import tokens

_VARIES = re.compile(
    r"\b(?:depend\w*|var(?:y|ies|ied|iable)|differ(?:s|ed|ent|ently)?|inconsisten\w*|mixed"
    r"|conflict\w*|contradict\w*|disagree\w*|heterogen\w*"
    r"|(?!non )\w+ specific(?! \w)|specific to"
    r"|no (?:general|single|one|consistent|clear|uniform|common) \w+"
    r"|change\w* (?:between|across|from)"
    r"|(?:not|neither|nor|isn't|aren't)(?: \w+){0,2} (?:consistent(?:ly)?|uniform(?:ly)?|same"
    r"|always|alike|agree|all|every))\b"
)
_ALL = re.compile(
    r"\b(?:consistent(?:ly)?|always|uniform(?:ly)?|throughout|every|each|all|whatever|regardless"
    r"|everywhere|invariably|agree|same)\b"
)
_SIZE = re.compile(r"\b(?:size|magnitude|strength|extent|degree|amount|mechanism|cause|timing)\b")
_CASE = r"missions?|stud(?:y|ies)|experiments?|flights?|datasets?|cases?"
ACROSS = re.compile(r"\b(?:across|between|among) (?:\w+ )*?(\w+)(?=[?.,]|$)")
_SOME = r"\b(?:some|other|two|three|one|another|most)\b"
_GOES_ON = r"(?:up|down|\w+ed|it|is|are|of|in|and|or|but|while|whereas|that|show|find|report)\b"
_CUTS = (lx.HARD - {"or"}) | {"why", "that"}  # "not up or down" denies both


def _kind(prompt: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """What speaks of the cases that a question asks for, and of some of another kind."""
    stems = (re.escape(w[: max(3, len(w) - 3)]) for w in ACROSS.findall(prompt.lower()))
    asked = "|".join([_CASE, *(rf"{stem}\w*" for stem in stems)])
    case = rf"(?:{asked})\b"
    other = rf"{_SOME}(?= \w)(?! (?:\w+ ){{0,2}}{case})(?! {_GOES_ON})"
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
        if len(signs) == 1 and (not (left_open or cases_) or _holds(_ALL, words)):
            return 0.0
        ways |= signs
        parted |= cases_ and len(signs) == 1  # "It is up in some. In others it is down."
        depends |= (
            (len(signs) != 1 or left_open) and _holds(_VARIES, words) and not _SIZE.search(joined)
        )
        depends |= len(signs) == 2 and (named or cases_)
    return 1.0 if depends or (len(ways) == 2 and parted) else {0: None, 1: 0.0, 2: 0.5}[len(ways)]


def _holds(wanted: re.Pattern[str], words: Sequence[str]) -> bool:
    """True where one of the words is there and the three before it do not deny it."""
    text = " ".join(words)
    before = (text[: m.start()].split()[-3:] for m in wanted.finditer(text))
    return any(not any(w in lx.NEGATORS or w[-3:] == "n't" for w in words_) for words_ in before)
