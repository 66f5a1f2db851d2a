"""Lines of a judge's reply in text: `VERDICT <id>: <word>`, what stands behind the word, and what a
reply repeats of the judged answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from ..records import Criterion
from .words import Reading, reading, word

_LINE = re.compile(
    r"^(?P<before>[^\w\n]{0,12}(?:\d{1,3}[.)][^\w\n]{0,4})?)(?P<more>(?:[A-Za-z]+[ \t]+){0,3}?)"
    r"(?P<what>verdict|reason|confidence)\b(?P<rest>[^\n]*)$",
    re.I | re.M,
)
_SURE = r"\s*(?:[:=\uff1a]+|->)\s*"  # as asked for; below: what may still contradict it
_LOOSE = r"(?:\s*[:=\uff1a|\u2013\u2014-]+>?\s*|\s+(?:is|are|was)\s+|\s+)"
_NAME = r"[\s<\[(\"'`*|]*([A-Za-z][\w.-]*?)[>\])\"'`*]*"
_NAMED = re.compile(_NAME + _SURE + "(.*)", re.S)
_NAMED_LOOSELY = re.compile(_NAME + _LOOSE + "(.*)", re.S)
_BARE = re.compile(r"[\s*'`]*(?:[:=\uff1a]+|->|\bis\b)\s*(.*)", re.S)
# marks of a quotation, of a comment, of what is crossed out
_OTHERS = re.compile("[>\uff1e|\"'\u00ab\u201c\u201e\u2018\u274c\u2717\u2718\u2716]|//|~~|\\[ \\]")
_TAIL = re.compile(r"[.;,(\[]|\s[-\u2013\u2014]\s|\s(?=because\b|since\b|as\b)", re.I)
_WHY = re.compile(r"[\s.;,(\[-]*(?:because|since|as)\b", re.I)
_HEDGE = re.compile(
    r"\b(?:but|however|although|though|except|partial\w*|part(?:ly)?|almost|nearly|barely|mostly|"
    r"hardly|somewhat|maybe|perhaps|possibl\w+|probabl\w+|arguabl\w+|doubt\w*|unsure|uncertain|"
    r"guess|half|rather|actually|wait|correction|instead)\b|\d\s*/\s*\d|\d\s*%",
    re.I,
)
_NOT = re.compile(r"\b(?:not|no|never|none|nothing)\b|n['\u2019]t\b", re.I)
_LETTERS = re.compile(r"[^\W_]+")
SHORT = 10  # letters; fewer may stand anywhere
EXPLAINS = 4  # words from which on a "not" behind "unmet" is an explanation


def lines(text: str, ids: Sequence[str]) -> Iterator[tuple[str, str, str, bool, int]]:
    """(id, what, the rest, in the asked form, place) of lines that name one of `ids`."""
    for m in _LINE.finditer(text):
        name, rest, sure = _addressed(m, ids)
        if name is not None:
            sure = sure and not m["more"] and not _OTHERS.search(m["before"])
            yield name, m["what"].casefold(), rest.strip(" \t\r|"), sure, m.start()


def _addressed(m: re.Match[str], ids: Sequence[str]) -> tuple[str | None, str, bool]:
    """(id, the rest, whether it stands in the asked form); no id where it names none of ours."""
    for pattern, sure in ((_NAMED, True), (_NAMED_LOOSELY, False)):
        named = pattern.match(m["rest"])
        for n in ids if named else ():
            if n.casefold() == named[1].casefold():  # type: ignore[index]
                return n, named[2], sure  # type: ignore[index]
    bare = _BARE.match(m["rest"]) if len(ids) == 1 and '"' not in m["before"] else None
    return (ids[0], bare[1], True) if bare else (None, "", False)


def below(text: str, at: int, c: Criterion) -> str | None:
    """The line below the one that begins at a place, where it is nothing but a verdict word."""
    rest = text[at : at + 10_000].partition("\n")[2].lstrip()
    line = rest.partition("\n")[0][:80]
    return line if word(c, line) is not None else None


def worded(c: Criterion, raw: str, reason: str | None, confidence: Any) -> Reading:
    """A verdict line's words: all of them, or those before what explains them.

    Behind the word no second verdict and no reservation may stand ("met, but not really").
    """
    full = reading(c, raw, reason, confidence, "text")
    if full.failure != "parse" or c.scale == "points":
        return full
    first, *rest = _TAIL.split(raw, maxsplit=1)
    got = reading(c, first, reason, confidence, "text")
    tail = raw[len(first) : len(first) + 400]
    if not (rest and got.complete):
        return got
    if _other(c, tail, got):
        return Reading(failure="contradiction", how="text", reason=reason or raw[:200])
    return full if _reserved(tail, got) else got


def _other(c: Criterion, tail: str, got: Reading) -> bool:
    """True when another verdict word stands behind the first."""
    words = re.findall(r"not met|[\w/]+", tail, re.I)
    states = {state for w in words if (state := word(c, w)) is not None and w.casefold() != "no"}
    return any(s[0] != got.status or s[1] != got.value for s in states)


def _reserved(tail: str, got: Reading) -> bool:
    """True when a tail takes back a part of its verdict, or all."""
    if _HEDGE.search(tail):
        return True
    explains = got.status == "unmet" and len(tail.split()) >= EXPLAINS
    return bool(_NOT.search(tail)) and not explains and not _WHY.match(tail)


class Judged:
    """The judged answer, to see which words of a reply are only said back."""

    def __init__(self, text: str) -> None:
        self.text, self._low, self._letters = text, "", ""

    def has(self, words: str) -> bool:
        """True when these words stand in the answer: blanks, marks and capitals aside.

        >>> Judged("I say: VERDICT c1: met!").has("**Verdict c1: met.**"), Judged("").has("met")
        (True, False)
        """
        self._low = self._low or self.text.casefold()
        first = _LETTERS.search(words)
        if first is None or first[0].casefold() not in self._low:
            return False
        said, self._letters = letters(words), self._letters or letters(self.text)
        if len(said) < SHORT:  # "a: met" stands in "dolor sit amet"
            return "".join(words.split()).casefold() in "".join(self._low.split())
        return said in self._letters


def letters(text: str) -> str:
    """The letters and digits of a text, small."""
    return "".join(_LETTERS.findall(text)).casefold()
