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
from typing import TYPE_CHECKING, Any, NamedTuple

from ..records import Task, strip_thinking
from .biorlhf import direction_of
from .text_measures import fold_case, lines_of

if TYPE_CHECKING:
    import numpy as np

    from ..stats import Estimate

# Answers that say that no answer can be given.
OPEN_ANSWERS = ("unknown", "it depends")
# A last line, or the last words of one.
CONFIDENCE_LINE = r"(?:^|[\s.;,]){}:\s*(\d{{1,3}}(?:\.\d+)?)\s?%\.?\s*\Z"
NUMBER_AND_UNIT = re.compile(r"([-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?)\s*(.*)")
INNER_HYPHEN = re.compile(r"(?<=\w)[-_](?=\w)")


@dataclass(frozen=True)
class StatedAnswer:
    """What an answer states. `problem` says why a value is None; no value is ever a default.

    answer : the text behind `Answer:`. confidence : in [0, 1].
    """

    answer: str | None = None
    confidence: float | None = None
    problem: str = ""


@dataclass(frozen=True)
class AnswerForm:
    """The labels of the two lines. confidence "" : no confidence is asked for."""

    answer: str = "Answer"
    confidence: str = "Confidence"

    def instructions(self, task: Task) -> str:
        """The lines that are put behind a prompt, with the words that this task allows.

        >>> print(AnswerForm().instructions(Task(id="t", prompt="Why?")))
        End with these lines and nothing behind them:
        Answer: the answer in a few words, its parts separated by ";", or "unknown"
        Confidence: 0% to 100%
        """
        lines = [f"{self.answer}: {_answer_choices(task)}"]
        if self.confidence:
            lines.append(f"{self.confidence}: 0% to 100%")
        return "\n".join(["End with these lines and nothing behind them:", *lines])

    def read_answer(self, text: str) -> StatedAnswer:
        """What the last two lines of an answer state.

        >>> AnswerForm().read_answer("It falls.\\nAnswer: down\\nConfidence: 80%")
        StatedAnswer(answer='down', confidence=0.8, problem='')
        >>> AnswerForm().read_answer("Answer: up\\nAnswer: down\\nConfidence: 80%").problem
        'no single line "Answer:" at the end'
        >>> AnswerForm().read_answer("Answer: up\\nConfidence: 250%")
        StatedAnswer(answer='up', confidence=None, problem='no single last line "Confidence: NN%"')
        """
        # Models set the labels in bold, and that changes nothing.
        text = strip_thinking(text).replace("*", "")
        answer = _labelled_text(text, self.answer, -2 if self.confidence else -1)
        confidence = _stated_share(text, self.confidence)
        problem = ""
        if answer is None:
            problem = f'no single line "{self.answer}:" at the end'
        elif self.confidence and confidence is None:
            problem = f'no single last line "{self.confidence}: NN%"'
        return StatedAnswer(answer, confidence, problem)


def _labelled_text(text: str, label: str, place: int) -> str | None:
    """The text behind a label, where it stands in this line and in no other."""
    pattern = re.compile(rf"{re.escape(label)}\s*:\s*(.+)", re.I)
    matches = list(map(pattern.fullmatch, map(str.strip, lines_of(text))))
    # A second line with the label would let an answer try several values.
    if sum(map(bool, matches)) != 1 or len(matches) < -place:
        return None
    match = matches[place]
    return match[1] if match else None


def _stated_share(text: str, label: str) -> float | None:
    """The percentage that a text ends with, as a share. Anything else (250%, 7/10, "high") is None."""
    label = re.escape(label)
    # Who states two confidences states none: else the last one could undo the first.
    if not label or len(re.findall(rf"\b{label}:", text, re.I)) != 1:
        return None
    match = re.search(CONFIDENCE_LINE.format(label), text, re.I)
    if not match or float(match[1]) > 100:
        return None
    return float(match[1]) / 100


def claims_of(task: Task) -> list[dict[str, Any]]:
    """The claims of a task's truth, each with its direction: up, down or unchanged.

    A claim whose direction is missing, or is not a word of the table, claims nothing: it is left out.
    """
    return [
        {**claim, "direction": direction}
        for claim in task.truth.get("claims", ())
        if (direction := direction_of(claim.get("direction")))
    ]


def _answer_choices(task: Task) -> str:
    claims = claims_of(task)
    if len(claims) > 1:
        choices = [f"{c['subject']}: up, down or unchanged" for c in claims]
        return f'{", ".join(choices)}; or "it depends"'
    if claims or task.truth.get("depends"):
        return 'one of up, down, unchanged, or "it depends"'
    return 'the answer in a few words, its parts separated by ";", or "unknown"'


class StatedConfidences(NamedTuple):
    """values : (n,) in [0, 1] or NaN. parse_rate : the share read, an Estimate."""

    values: np.ndarray
    parse_rate: Estimate


def stated_confidence(
    texts: Sequence[str], *, cluster: Sequence[object] | None = None
) -> StatedConfidences:
    """The confidences that answers end with ("Confidence: 80%"), and the share of answers that do.

    Nothing else is read: no level in words, no 7/10, no two confidences. cluster : (n,) tasks.

    >>> values, rate = stated_confidence(["12. Confidence: 75%", "Confidence: 250%", "Sure!"])
    >>> values
    array([0.75,  nan,  nan])
    """
    import numpy as np

    from ..stats import mean

    values = np.array(
        [AnswerForm().read_answer(text).confidence for text in texts], dtype=float
    )
    return StatedConfidences(values, mean(~np.isnan(values), cluster=cluster))


def plain_name(text: object) -> str:
    """A name for comparison: small letters, no article, no marks at its ends.

    >>> plain_name("The **X-ray**."), plain_name("-5")
    ('x ray', '-5')
    """
    text = INNER_HYPHEN.sub(" ", fold_case(str(text)).replace("*", ""))
    return re.sub(r"^(?:the|an?) ", "", text).strip(" .,;:'\"()`")


def is_open(answer: str) -> bool:
    """True where an answer says that it cannot be told."""
    return plain_name(answer) in OPEN_ANSWERS


def stated_directions(
    answer: str, claims: Sequence[Mapping[str, Any]]
) -> dict[str, str | None]:
    """Subject -> direction as stated; what names no subject stands under its own words.

    None : stated in two ways, or no direction.

    >>> rows = [{"subject": "liver"}, {"subject": "eye"}]
    >>> stated_directions("liver: up, eye: down, spleen: up, eye: up", rows)
    {'liver': 'up', 'eye': None, 'spleen': 'up'}
    """
    # One subject need not be named: "Answer: up" says enough.
    if len(claims) == 1 and (direction := direction_of(plain_name(answer))):
        return {claims[0]["subject"]: direction}
    subjects = {
        plain_name(name): claim["subject"]
        for claim in claims
        for name in (claim["subject"], *claim.get("aliases", ()))
    }
    directions: dict[str, str | None] = {}
    # A name that is not a subject stays in the result, so that guesses beside the answer cost.
    for part in re.split(r"[,;]", answer):
        name, _, word = part.rpartition(":")
        subject = plain_name(name or word)
        subject = subjects.get(subject, subject)
        stated = direction_of(plain_name(word)) if name else None
        # Who states two directions states none.
        if directions.setdefault(subject, stated) != stated:
            directions[subject] = None
    return directions


def matches_fact(part: str, fact: Mapping[str, Any]) -> bool:
    """True where a part of an answer is this fact: its name, an alias, or its number in its unit.

    >>> matches_fact("the mitochondria", {"text": "mitochondrion", "aliases": ["mitochondria"]})
    True
    >>> fact = {"text": "46 chromosomes", "number": 46}
    >>> matches_fact("46", fact), matches_fact("46 or 48", fact), matches_fact("46 genes", fact)
    (True, False, False)
    """
    if plain_name(part) in map(
        plain_name, (fact["text"], *fact.get("aliases", ()))
    ):
        return True
    number = fact.get("number")
    match = NUMBER_AND_UNIT.fullmatch(part.replace(",", "").strip())
    if number is None or not match:
        return False
    slack = fact.get("tolerance", 0) + 1e-9 * abs(number)
    if abs(float(match[1]) - number) > slack:
        return False
    quantity = NUMBER_AND_UNIT.fullmatch(str(fact["text"]).replace(",", ""))
    unit = plain_name(fact.get("unit") or (quantity[2] if quantity else ""))
    stated_unit = plain_name(match[2])
    # A bare number is taken as meant, but 12 is not 12 %.
    return stated_unit == unit or (not stated_unit and unit != "%")
