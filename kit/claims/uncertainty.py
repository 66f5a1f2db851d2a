"""Uncertainty: is the stated confidence warranted? No confidence stated earns nothing.

Against the outcome, t in [0, 1] the share of facts and directions that are right, c the confidence:
"brier" t - (c - t)^2 and "log" t + (t ln c + (1 - t) ln(1 - c)) / |ln floor|. Both are proper
(Gneiting & Raftery
2007, sections 3.1 and 4.1): the expected reward is largest at c = P(right), an honest wrong answer
earns 0 at c = 0,
a sure wrong one -1. The first is Damani et al. 2025 (RLCR, section 3).
"outcome" is BioRLHF's max(floor, 1 - 2|c - t|), kept for reproduction alone: it is not proper, its
optimum is 0 or 1,
so that training on it teaches over-confidence. So is "range": 1 inside the warranted range, max(0,
1 - 2.5 x distance)
outside. "behaviour" is .6 x behaved + .4 x max(0, 1 - 2|c - e|) with e the warranted confidence;
it also serves
questions that nobody can answer.
This t comes from facts and directions alone, never from a score that contains the confidence.
"""

from __future__ import annotations

import math
from typing import Any

from ..errors import KitError
from ..records import Part, Response, Task
from .base import decisive
from .confidence import stated
from .consistency import acknowledges, contradictions, coverage

EXPECTED = {"high": 0.9, "medium": 0.55, "low": 0.1}
RANGES = {"high": (0.7, 1.0), "medium": (0.35, 0.75), "low": (0.0, 0.4)}
MODES = ("auto", "brier", "log", "outcome", "behaviour", "range")  # auto: brier, or behaviour
LOG_FLOOR = 0.01  # "log" takes confidences from here to 1 - LOG_FLOOR


def brier(c: float, t: float) -> float:
    """t - (c - t)^2, in [-1, 1]; proper.

    >>> brier(1.0, 1.0), brier(0.0, 0.0), brier(1.0, 0.0)
    (1.0, 0.0, -1.0)
    """
    return t - (c - t) ** 2


def log_score(c: float, t: float, *, floor: float = LOG_FLOOR) -> float:
    """t + (log score of c for t, scaled to [-1, 0]), in [-1, 1]; proper for P(right) in [floor, 1
    - floor].

    >>> log_score(1.0, 1.0), log_score(0.0, 0.0), log_score(1.0, 0.0)
    (1.0, 0.0, -1.0)
    """
    c = min(max(c, floor), 1 - floor)
    best, worst = math.log(1 - floor), math.log(floor)
    return t + (t * math.log(c) + (1 - t) * math.log(1 - c) - best) / (best - worst)


def against_outcome(c: float, t: float, *, floor: float = 0.0) -> float:
    """BioRLHF's max(floor, 1 - 2|c - t|), not proper; its floor of .2 paid every answer, so it is
    0 here.

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
    """1 inside the range of high [.7, 1], medium [.35, .75] or low [0, .4]; outside max(0, 1 - 2.5
    x distance).

    >>> in_range(.8, "high"), round(in_range(.5, "high"), 3)
    (1.0, 0.5)
    """
    low, high = RANGES[warranted]
    return max(0.0, 1 - 2.5 * max(low - c, c - high, 0.0))


def outcome(task: Task, response: Response) -> float:
    """How right the answer is, in [0, 1], by its facts and directions; by its comparison alone
    where the truth has no others.
    """
    from . import compare, direction, factual

    names, comparison = decisive(task), task.truth.get("comparison")
    scores = [factual.score(task, response).low] if "factual" in names else []
    if "direction" in names:
        n = len(task.truth.get("claims", ())) or 1
        scores.append(len(direction.held(task, response.text)["matching"]) / n)
    if comparison and not scores:
        said = factual.statements(response.text, task.prompt)
        scores.append(float(compare.relation(said, comparison, ()) == "right"))
    return sum(scores) / len(scores) if scores else 0.0


_OUTCOME = {"auto": brier, "brier": brier, "log": log_score, "outcome": against_outcome}


def score(task: Task, response: Response, *, name: str = "uncertainty", mode: str = "auto") -> Part:
    """The confidence score, in [-1, 1] for the proper modes, else in [0, 1].

    mode : see MODES; "auto" takes "behaviour" for a question without an answer, else "brier".
    """
    KitError.other("mode", mode, MODES, "verifier uncertainty, option mode")
    said = stated(response.text)
    c = response.confidence if said.value is None else said.value
    value, details = (0.0, {"note": said.problem}) if c is None else _value(task, response, mode, c)
    low = -1.0 if _OUTCOME.get(mode) in (brier, log_score) else 0.0
    details = {"confidence": c, **details}
    return Part(name=name, low=value, high=value, range=(low, 1.0), details=details)


def _value(task: Task, response: Response, mode: str, c: float) -> tuple[float, dict[str, Any]]:
    if mode == "behaviour" or task.truth.get("answerable") is False:
        return _behaviour(task, response, c)
    # a wrong name is no claim about the truth's names: a proper score must cost it its confidence
    # all the same
    if mode in ("outcome", "range") and not coverage(task, response.text):
        return 0.0, {"note": "nothing claimed"}
    if mode == "range":
        return in_range(c, _warranted(task)), {}
    t = outcome(task, response)
    return _OUTCOME[mode](c, t), {"outcome": t}


def _warranted(task: Task) -> str:
    """The level that the truth says; else high, and low for a question without an answer."""
    unsaid = "low" if task.truth.get("answerable") is False else "high"
    warranted = task.truth.get("warranted")
    return warranted if warranted in RANGES else unsaid


def _behaviour(task: Task, response: Response, c: float) -> tuple[float, dict[str, Any]]:
    """Without an answer to be had: it is said to be unknown, nothing is asserted, the confidence
    is low.
    """
    if task.truth.get("answerable") is False:
        behaved = 0.0 if contradictions(task, response.text) else acknowledges(task, response.text)
    else:
        behaved = float(coverage(task, response.text) > 0)
    value = behaviour(c, behaved, EXPECTED[_warranted(task)]) if behaved else 0.0
    return value, {"behaved": behaved}
