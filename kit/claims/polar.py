"""Yes or no: what an answer says, in words of its own, to a question whether something is so.

A statement has the question's words in their order (inflected, in the passive, a phrase in front)
and none that could change what it says; one that shares some and has others is not read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from . import lexicon as lx
from .confidence import without_confidence
from .text import affirmed, clean, norm, sentences, tokens, whole

POLES = ("no", "yes")
UNREAD = "unread"
_ASKS = re.compile(
    r"(?:^|[.!?:,;]\s)\W*(?P<verb>is|are|was|were|do|does|did|can|could|has|have|had|will|would)\s"
    r"(?P<rest>[^.?!;]+)\?",
    re.I,
)
_SHORT = re.compile(  # "That is correct", "Not so", "Wrong", "No"
    r"(?:(?:that|this|it) (?:(?:is|was|(?P<no>isn't|wasn't)) )?)?(?P<not>not )?(?:indeed |quite )?"
    r"(?:correct|right|true|so|indeed|the case|(?P<false>incorrect|wrong|false|untrue))"
    r"|yes|(?P<nay>no)"
)
_TOLD = {"yes", "no", "not", "so", "also", "and", "then"}  # "certainly yes" is yes
CUT = re.compile(
    r"[()]|\s[–—-]\s|[,;:.!](?=\s|$)|\b(?:but|because|since|while|whereas|although|though|which|as)\b",
    re.I,
)
HOLDS = re.compile(  # "I think that it does" states it; "I think whether" and "I know if" do not
    r"\b(?:i|we) (?:firmly |strongly |also |now )?"
    r"(?:think|believe|know|expect|conclude|(?:am|are) (?:\w+ly )?(?:sure|confident|certain)"
    r"|would (?:say|expect|think)) (?:that )?(?!that\b|of\b|about\b)",
    re.I,
)


@lru_cache(maxsize=2_048)
def said(prompt: str, text: str) -> str:
    """ "yes", "no", UNREAD; "" where both or nothing is said, or nothing is asked so.

    >>> asked = "Does KMP rescue OXPHOS in the heart?"
    >>> said(asked, "KMP rescues OXPHOS."), said(asked, "It doesn't."), said(asked, asked)
    ('yes', 'no', '')
    >>> said(asked, "KMP restores OXPHOS.")
    'unread'
    """
    verb, question = [("", "or"), *(m.groups() for m in _ASKS.finditer(whole(prompt)))][-1]
    words = _words(clean(question))
    # a word that the question has twice tells nothing of the order: "male mice, female mice"
    asked = tuple(w for w in words if w not in lx.POLAR_FREE and words.count(w) == 1)
    if not asked or {"or", *lx.NEGATORS, *lx.DOUBTS}.intersection(words):
        return ""
    free = lx.POLAR_FREE.union(_words(prompt)).difference(asked)
    told = {
        _says(
            affirmed(_words(HOLDS.sub("", part, count=1))),
            asked,
            free,
            passive=verb.lower() not in lx.BE,
        )
        for s in sentences(whole(without_confidence(text)))
        for part in CUT.split(s)
        if not s.endswith("?")
    }
    poles = told.intersection(POLES) or told - {""}
    every = {*_words(clean(without_confidence(text)))}
    if not poles and every and every <= lx.ASSENTS and not every >= {"not", "sure"}:
        return UNREAD  # "Certainly."
    return poles.pop() if len(poles) == 1 else ""


def _words(text: str) -> list[str]:
    return [w.lower().removesuffix("'s") for w in tokens(text) if w[0].isalnum()]


def _says(words: Sequence[str], asked: Sequence[str], free: frozenset[str], passive: bool) -> str:
    """What a clause says: a pole, UNREAD where it speaks of what is asked, else "".

    free : words that change nothing; passive : the question may be said again in the passive.
    """
    plain = [w for w in words if w not in lx.POLAR_FRONT or w in _TOLD]
    if m := _SHORT.fullmatch(" ".join(plain or words)):
        return POLES[sum(map(bool, m.groups())) % 2 == 0]
    first = next((w for w in words if w not in lx.POLAR_FRONT), "")
    if first in lx.ASKS or lx.POLAR_OPEN.difference(asked).intersection(words):
        return ""  # a question, or open itself: "it may be"
    turns = [w for w in words if (w in lx.POLAR_TURNS or w.endswith("n't")) and w not in asked]
    at = [_place(w, asked) for w in words if w not in free and w not in turns]
    ordered = at == sorted(at)
    verbal = passive and bool(turns or lx.BE.intersection(words))
    turned = verbal and 0 not in at[:-1] and (at[-1:] != [0] or "by" in words)
    half = {*range((len(asked) + 1) // 2)}
    short = len(words) > 1 and first in lx.POLAR_SUBJECTS
    says = len(at) >= min(2, len(asked)) or bool(lx.POLAR_VERBS.intersection(words))
    states = short or (says and ((ordered and half <= {*at}) or (turned and half <= {0, *at})))
    if -1 not in at and states and (turns or ordered or lx.POLAR_VERBS.intersection(words)):
        return POLES[len(turns) % 2 == 0]
    known = {*at} - {-1}
    twice = len(at) - at.count(-1) > len(known) + 1  # "it does and it does not" speaks of it twice
    return UNREAD if len(known) + sum(w in lx.PRONOUNS for w in words) > 1 and not twice else ""


def _place(word: str, asked: Sequence[str]) -> int:
    """Where the question has a form of the word ("rescued", "rescues"); -1 where it has none."""
    sizes = (max(4, min(len(word), len(w)) - 2) for w in asked)
    forms = (norm(word) == norm(w) or word[:n] == w[:n] for w, n in zip(asked, sizes, strict=True))
    return next((i for i, same in enumerate(forms) if same), -1)
