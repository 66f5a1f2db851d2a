"""The stated form: an answer ends with two lines, and nothing else of it is read.

    Answer: liver: up, kidney: down
    Confidence: 80%

The words before these lines are free. No sentence is searched for numbers, names or directions, so
there is nothing to gain by repeating the question, listing names or hedging.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..records import Task, strip_thinking
from . import text as text_of
from .biorlhf import direction_of

OPEN = ("unknown", "it depends")  # an answer that says that no answer can be given
# A last line, or the last words of one.
CONFIDENCE = r"(?:^|[\s.;,]){}:\s*(\d{{1,3}}(?:\.\d+)?)\s?%\.?\s*\Z"
_NUMBER = re.compile(r"([-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?)\s*(.*)")
_INNER_HYPHEN = re.compile(r"(?<=\w)[-_](?=\w)")


@dataclass(frozen=True)
class Stated:
    """What an answer states. `problem` says why a value is None; no value is ever a default.

    answer : the text behind `Answer:`. confidence : in [0, 1].
    """

    answer: str | None = None
    confidence: float | None = None
    problem: str = ""


@dataclass(frozen=True)
class Form:
    """The labels of the two lines. confidence "" : no confidence is asked for."""

    answer: str = "Answer"
    confidence: str = "Confidence"

    def ask(self, task: Task) -> str:
        """The lines that are put behind a prompt, with the words that this task allows.

        >>> print(Form().ask(Task(id="t", prompt="Why?")))
        End with these lines and nothing behind them:
        Answer: the answer in a few words, its parts separated by ";", or "unknown"
        Confidence: 0% to 100%
        """
        lines = [f"{self.answer}: {_choices(task)}"]
        if self.confidence:
            lines.append(f"{self.confidence}: 0% to 100%")
        return "\n".join(["End with these lines and nothing behind them:", *lines])

    def read(self, text: str) -> Stated:
        """What the last two lines of an answer state.

        >>> Form().read("It falls.\\nAnswer: down\\nConfidence: 80%")
        Stated(answer='down', confidence=0.8, problem='')
        >>> Form().read("Answer: up\\nAnswer: down\\nConfidence: 80%").problem
        'no single line "Answer:" at the end'
        >>> Form().read("Answer: up\\nConfidence: 250%")
        Stated(answer='up', confidence=None, problem='no single last line "Confidence: NN%"')
        """
        # Models set the labels in bold, and that changes nothing.
        text = strip_thinking(text).replace("*", "")
        lines = [line.strip() for line in text_of.lines(text)]
        answer = _alone(lines, self.answer, -2 if self.confidence else -1)
        confidence = _confidence(text, self.confidence) if self.confidence else None
        problem = ""
        if answer is None:
            problem = f'no single line "{self.answer}:" at the end'
        elif self.confidence and confidence is None:
            problem = f'no single last line "{self.confidence}: NN%"'
        return Stated(answer, confidence, problem)


def _alone(lines: list[str], label: str, place: int) -> str | None:
    """The text behind a label, where it stands in this place and in no other."""
    pattern = re.compile(rf"{re.escape(label)}\s*:\s*(.+)", re.I)
    # A second line with the label would let an answer try several values.
    hits = [pattern.fullmatch(line) for line in lines]
    line = hits[place] if len(hits) >= -place else None
    return line[1] if line and sum(map(bool, hits)) == 1 else None


def _confidence(text: str, label: str) -> float | None:
    """The percentage that a text ends with, as a share. Anything else (250%, 7/10, "high") is None."""
    label = re.escape(label)
    # Who states two confidences states none: else the last one could undo the first.
    if len(re.findall(rf"\b{label}:", text, re.I)) != 1:
        return None
    match = re.search(CONFIDENCE.format(label), text, re.I)
    share = float(match[1]) / 100 if match else 2.0
    return share if share <= 1 else None


def claims_of(task: Task) -> list[dict[str, Any]]:
    """The claims of a task's truth, each with its direction: up, down or unchanged.

    A claim whose direction is missing, or is no word of the table, claims nothing: it is left out.
    """
    return [
        {**claim, "direction": way}
        for claim in task.truth.get("claims", ())
        if (way := direction_of(claim.get("direction")))
    ]


def _choices(task: Task) -> str:
    claims = claims_of(task)
    if len(claims) > 1:
        ways = ", ".join(f"{c['subject']}: up, down or unchanged" for c in claims)
        return f'{ways}; or "it depends"'
    if claims or task.truth.get("depends"):
        return 'one of up, down, unchanged, or "it depends"'
    return 'the answer in a few words, its parts separated by ";", or "unknown"'


class Confidences(NamedTuple):
    """values : (n,) in [0, 1] or NaN. parse_rate : the share read, an Estimate."""

    values: Any
    parse_rate: Any


def stated_confidence(texts: Sequence[str], *, cluster: Any = None) -> Confidences:
    """The confidences that answers end with ("Confidence: 80%"), and the share of answers that do.

    Nothing else is read: no level in words, no 7/10, no two confidences. cluster : (n,) tasks.

    >>> values, rate = stated_confidence(["12. Confidence: 75%", "Confidence: 250%", "Sure!"])
    >>> values
    array([0.75,  nan,  nan])
    """
    import numpy as np

    from ..stats import mean

    values = np.array([Form().read(text).confidence for text in texts], dtype=float)
    return Confidences(values, mean(~np.isnan(values), cluster=cluster))


def plain_name(text: Any) -> str:
    """A name for comparison: small letters, no article, no marks at its ends.

    >>> plain_name("The **X-ray**."), plain_name("-5")
    ('x ray', '-5')
    """
    text = _INNER_HYPHEN.sub(" ", text_of.fold(str(text)).replace("*", ""))
    return re.sub(r"^(?:the|an?) ", "", text).strip(" .,;:'\"()`")


def is_open(answer: str) -> bool:
    """True where an answer says that it cannot be told."""
    return plain_name(answer) in OPEN


def directions(
    answer: str, claims: Sequence[Mapping[str, Any]]
) -> dict[str, str | None]:
    """Subject -> direction as stated; what names no subject stands under its own words.

    None : stated in two ways, or no direction.

    >>> rows = [{"subject": "liver"}, {"subject": "eye"}]
    >>> directions("liver: up, eye: down, spleen: up, eye: up", rows)
    {'liver': 'up', 'eye': None, 'spleen': 'up'}
    """
    names = {
        plain_name(name): c["subject"]
        for c in claims
        for name in (c["subject"], *c.get("aliases", ()))
    }
    # One subject need not be named: "Answer: up" says enough.
    if len(claims) == 1 and (way := direction_of(plain_name(answer))):
        return {claims[0]["subject"]: way}
    out: dict[str, str | None] = {}
    # A name that is no subject stays in the result, so that guesses beside the answer cost.
    for part in re.split(r"[,;]", answer):
        name, _, word = part.rpartition(":")
        subject = plain_name(name or word)
        subject = names.get(subject, subject)
        way = direction_of(plain_name(word)) if name else None
        out[subject] = way if out.get(subject, way) == way else None
    return out


def same(part: str, fact: Mapping[str, Any]) -> bool:
    """True where a part of an answer is this fact: its name, an alias, or its number in its unit.

    >>> same("the mitochondria", {"text": "mitochondrion", "aliases": ["mitochondria"]})
    True
    >>> fact = {"text": "46 chromosomes", "number": 46}
    >>> same("46", fact), same("46 or 48", fact), same("46 genes", fact)
    (True, False, False)
    """
    names = (fact["text"], *fact.get("aliases", ()))
    if plain_name(part) in map(plain_name, names):
        return True
    number = fact.get("number")
    match = _NUMBER.fullmatch(part.replace(",", "").strip())
    if number is None or not match:
        return False
    quantity = _NUMBER.fullmatch(str(fact["text"]).replace(",", ""))
    unit = plain_name(fact.get("unit") or (quantity[2] if quantity else ""))
    slack = fact.get("tolerance", 0) + 1e-9 * abs(number)
    near = abs(float(match[1]) - number) <= slack
    # A bare number is taken as meant, but 12 is not 12 %.
    return near and plain_name(match[2]) in ((unit,) if unit == "%" else (unit, ""))
