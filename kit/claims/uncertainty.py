"""Uncertainty: is the stated confidence warranted? No confidence stated is no calibration shown, and earns nothing.

Three forms (BioRLHF): against the outcome, max(floor, 1 - 2|c - t|) with t the share of facts and directions that are right;
behaviour, .6 x behaved + .4 x max(0, 1 - 2|c - e|) with e the warranted confidence; range, 1 inside the warranted range and
max(0, 1 - 2.5 x distance) outside. This t comes from facts and directions alone, never from a score that contains the confidence.
"""

from __future__ import annotations

from ..errors import KitError
from ..parts import Part
from ..records import Response, Task
from .base import applicable
from .confidence import stated
from .consistency import acknowledges, contradictions, coverage

EXPECTED = {"high": 0.9, "medium": 0.55, "low": 0.1}
RANGES = {"high": (0.7, 1.0), "medium": (0.35, 0.75), "low": (0.0, 0.4)}
MODES = ("auto", "outcome", "behaviour", "range")
ABSTAIN = 0.25  # for saying "I do not know" with a low confidence where the question has an answer: better than being wrong and sure


def against_outcome(c: float, t: float, *, floor: float = 0.0) -> float:
    """max(floor, 1 - 2|c - t|); BioRLHF's floor of .2 paid every answer, so the default is 0.

    >>> round(against_outcome(.9, 1.0), 3), against_outcome(.99, 0.0)
    (0.8, 0.0)
    """
    return max(floor, 1 - 2 * abs(c - t))


def behaviour(c: float, behaved: float, expected: float) -> float:
    """.6 behaved + .4 max(0, 1 - 2|c - expected|).

    >>> round(behaviour(.1, 1.0, .1), 3)
    1.0
    """
    return 0.6 * behaved + 0.4 * max(0.0, 1 - 2 * abs(c - expected))


def in_range(c: float, warranted: str) -> float:
    """1 inside the range of high [.7, 1], medium [.35, .75] or low [0, .4]; outside max(0, 1 - 2.5 x distance).

    >>> in_range(.8, "high"), round(in_range(.5, "high"), 3)
    (1.0, 0.5)
    """
    low, high = RANGES[warranted]
    return max(0.0, 1 - 2.5 * max(low - c, c - high, 0.0))


def outcome(task: Task, response: Response) -> float:
    """How right the answer is, in [0, 1], by its facts and directions only."""
    from . import direction, factual

    scores = []
    if "factual" in applicable(task):
        scores.append(factual.score(task, response).low)
    if "direction" in applicable(task):
        d = direction.score(task, response).details
        n = len(task.truth.get("claims", ()))
        scores.append(len(d.get("matching", ())) / n if n else 0.0)
    return sum(scores) / len(scores) if scores else 0.0


def score(task: Task, response: Response, *, name: str = "uncertainty", mode: str = "auto") -> Part:
    """The confidence score in [0, 1]; "auto" takes behaviour for a question without an answer, else outcome."""
    if mode not in MODES:
        raise KitError(
            f"mode is {mode!r}",
            where="verifier uncertainty, option mode",
            fix=f"use one of {', '.join(MODES)}",
        )
    said = stated(response.text)
    c = (
        response.confidence
        if said.value is None and response.confidence is not None
        else said.value
    )
    warranted = task.truth.get("warranted") if task.truth.get("warranted") in RANGES else "high"
    unanswerable = task.truth.get("answerable") is False
    if c is None:
        return Part.known(name, 0.0, confidence=None, note=said.problem)
    if mode == "behaviour" or (mode == "auto" and unanswerable):
        behaved = (
            (acknowledges(task, response.text) if not contradictions(task, response.text) else 0.0)
            if unanswerable
            else float(coverage(task, response.text) > 0)
        )
        value = behaviour(c, behaved, EXPECTED[warranted]) if behaved else 0.0
        return Part.known(name, value, confidence=c, behaved=behaved)
    addressed = acknowledges(task, response.text) if unanswerable else coverage(task, response.text)
    if not addressed:  # nothing was claimed, so there is nothing to be confident of
        return Part.known(name, ABSTAIN * max(0.0, 1 - 2 * c), confidence=c, note="nothing claimed")
    if mode == "range":
        return Part.known(name, in_range(c, warranted), confidence=c)
    t = outcome(task, response)
    return Part.known(name, against_outcome(c, t), confidence=c, outcome=t)
