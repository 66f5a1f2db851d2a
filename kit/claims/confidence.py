"""The confidence that an answer states as a number for a reward: read by kit.confidence, levels in
words by a fixed table.

For calibration a level stays a level until its probability is fitted; a reward must give every
statement a number, or say why not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from .. import confidence as reader

LEVELS = {"low": 0.2, "medium": 0.55, "high": 0.85}
WORDS = {
    "very low": 0.1,
    "extremely low": 0.05,
    "not at all": 0.05,
    "close to zero": 0.05,
    "near zero": 0.05,
    "fairly": 0.7,
    "reasonably": 0.7,
    "very high": 0.95,
    "extremely high": 0.97,
    "highly": 0.9,
    "very": 0.9,
    "strongly": 0.9,
    "extremely": 0.97,
    "absolutely": 0.99,
    "completely": 0.99,
    "totally": 0.99,
    "entirely": 0.99,
}  # the words that say more than their level


_LABEL = re.compile(
    r"(?:(?<=[.!?\n] )|(?<=\n)|^)[*_]*confidence[*_]*\s*[:=][^.!?\n]*[%\d][^\n]{0,40}?(?:[.!?](?=\s"
    r"|$)|\n|$)",
    re.I,
)


@dataclass(frozen=True)
class Stated:
    """value in [0, 1], or None when nothing valid was stated; `problem` says why."""

    value: float | None
    problem: str | None = None


@lru_cache(maxsize=4_096)
def stated(text: str) -> Stated:
    """The last confidence that a text states. A number outside its range, or of unsaid scale, is a
    problem, not a value.

    >>> stated("The confidence level is **high**.").value
    0.85
    >>> stated("Confidence: 250%").value, stated("It is W.").value
    (None, None)
    """
    return number(reader.extract(text))


@lru_cache(maxsize=4_096)
def stated_values(text: str) -> tuple[float, ...]:
    """Every confidence that a text states, as numbers, in its order.

    >>> stated_values("I am 90% sure. On reflection, confidence: 40%")
    (0.9, 0.4)
    """
    return tuple(v for s in reader.extract_each(text) if (v := number(s).value) is not None)


def number(said: reader.Stated) -> Stated:
    """A confidence as a number; a level by its words (WORDS), else by its rank (LEVELS).

    >>> number(reader.Stated("level", level="high", text="very high")).value
    0.95
    """
    if said.status == "level" and said.level is not None:
        return Stated(WORDS.get(" ".join(said.text.lower().split()), LEVELS[said.level]))
    if said.status == "value":
        return Stated(said.value)
    problem = {
        "missing": "nothing stated",
        "invalid": f"{said.text} is out of range",
        "ambiguous": f"{said.text} is ambiguous: {said.note}",
    }
    return Stated(None, problem[said.status])


@lru_cache(maxsize=4_096)
def without_confidence(text: str) -> str:
    """An answer without its statements of confidence, so that their numbers are not read as facts.

    A label with a value that says nothing ("Confidence: between 0% and 100%") goes with them.

    >>> without_confidence("It is W. Confidence: 91%").strip()
    'It is W.'
    """
    return _LABEL.sub("", reader.without(text))
