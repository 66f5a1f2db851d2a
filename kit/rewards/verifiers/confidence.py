"""The confidence that an answer states: no default, and a number out of range or of unsaid scale is no confidence at all.

kit.confidence reads confidences for calibration and is stricter (an anchor word is needed, levels stay levels). A reward must give
every phrasing that a policy learns a number, so this reader also takes "so 70%", "(9/10)" and levels by a fixed table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from .text import clean

WORDS = {"very low": 0.1, "low": 0.2, "medium": 0.55, "moderate": 0.55, "high": 0.85, "very high": 0.95}
_LEVEL = r"(very low|very high|low|medium|moderate|high)"
_NUMBER = r"(-?\d+(?:[.,]\d+)?)"
_CUE = r"(?:confiden\w*|certain\w*|sure|probab\w*|likel\w*)"
_SENTENCE = re.compile(r"[^.!?\n]*(?:[.](?=\d)[^.!?\n]*)*[.!?\n]?")
_AFTER = re.compile(
    rf"\bconfidence\b[^.\d!?;]{{0,60}}?{_NUMBER}\s*(%|percent|per cent|/\s*10\b|/\s*100\b|out of 10\b|of 10\b|out of ten\b)?", re.I
)
_BEFORE = re.compile(rf"{_NUMBER}\s*(%|percent|per cent)[\s,]*(?:\w+\s+){{0,2}}?(?:{_CUE})", re.I)
_CALLED = re.compile(
    rf"\b(?:{_CUE}|say|call it|put it at|above|doubt|it is|be)\b[^.\d!?;]{{0,40}}?{_NUMBER}\s*(%|percent|per cent|/\s*10\b|of 10\b|out of 10\b)",
    re.I,
)
_ALONE = re.compile(rf"(?:^|\bso\b|\bsay\b)\W*{_NUMBER}\s*(%)\W*$", re.I)
_TEN = re.compile(rf"\(?{_NUMBER}\s*(/\s*10\b|out of 10\b|of 10\b)", re.I)
_WORD_AFTER = re.compile(rf"\bconfidence\b[^.!?;\d]{{0,60}}?\b{_LEVEL}\b", re.I)
_WORD_BEFORE = re.compile(rf"\b{_LEVEL}\s+confidence\b", re.I)
_ADVERB = re.compile(
    r"\b(moderately|fairly|highly|very|extremely|absolutely|completely|not(?: at all| very)?)?\s*(confident|certain|sure)\b", re.I
)
_ZERO = re.compile(r"\bconfidence\b[^.!?;\d]{0,60}?\b(?:zero|none)\b", re.I)
_ADVERBS = {"moderately": 0.55, "fairly": 0.7, "highly": 0.9, "very": 0.9, "extremely": 0.97, "absolutely": 0.99, "completely": 0.99}


@dataclass(frozen=True)
class Stated:
    """value in [0, 1], or None when nothing valid was stated; `problem` says why; `spans` are the statements' places."""

    value: float | None
    problem: str | None = None
    text: str = ""


def _scaled(number: str, unit: str | None) -> tuple[float | None, str | None]:
    """The value in [0, 1] and the problem: a bare 1 to 10, or 0.95%, could mean two things."""
    x = float(number.replace(",", "."))
    unit = (unit or "").lower().replace(" ", "")
    said = f"{number}{unit}"
    if unit in ("%", "percent", "/100"):
        if 0 < x < 1:
            return None, f"{said} is ambiguous"
        x /= 100
    elif unit:
        x /= 10
    elif 1 <= x <= 10:
        return None, f"{said} is ambiguous: its scale is not said"
    elif x > 1:  # "confidence 85" can only mean a percentage
        x /= 100
    return (x, None) if 0 <= x <= 1 else (None, f"{said} is out of range")


@lru_cache(maxsize=4_096)
def stated(text: str) -> Stated:
    """The last confidence that a text states.

    Percentages, fractions, x/10, and levels in words (a fixed table, WORDS). A number outside its range is a problem, not a value.

    >>> stated("The confidence level is **high**.").value, stated("Confidence: 250%").value, stated("It is W.").value
    (0.85, None, None)
    """
    last = Stated(None, "nothing stated")
    for sentence in _SENTENCE.findall(clean(text)):
        for pattern in (_AFTER, _BEFORE, _TEN, _CALLED, _ALONE):
            if m := pattern.search(sentence):
                value, problem = _scaled(m.group(1), m.group(2))
                last = Stated(value, problem, m.group(0))
                break
        else:
            last = _in_words(sentence) or last
    return last


def _in_words(sentence: str) -> Stated | None:
    if m := _ZERO.search(sentence):
        return Stated(0.0, None, m.group(0))
    if m := _WORD_AFTER.search(sentence) or _WORD_BEFORE.search(sentence):
        return Stated(WORDS[m.group(1).lower()], None, m.group(0))
    if (m := _ADVERB.search(sentence)) and m.group(1) and m.group(1).lower() in _ADVERBS and re.search(r"\bI\b|\bI'm\b", sentence):
        return Stated(_ADVERBS[m.group(1).lower()], None, m.group(0))
    return None


@lru_cache(maxsize=4_096)
def without_confidence(sentence: str) -> str:
    """A sentence without its statement of confidence, so that its numbers are not read as facts.

    >>> without_confidence("Confidence: 91%").strip(" .:")
    ''
    """
    for pattern in (_AFTER, _BEFORE, _TEN, _CALLED, _ALONE):
        sentence = pattern.sub(" ", sentence)
    return sentence
