"""Four verifiers over the stated form: direction, factual, consistency, uncertainty.

The task alone decides which of them apply. An answer without the form earns the least of the range,
and its outcome is None: it counts in no accuracy and in no calibration. Formulas: BioRLHF.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..records import ComponentScore, Task
from ..system.settings import check_names
from .form import Form, Stated, claims_of, directions, is_open, same

VERIFIERS = ("direction", "factual", "consistency", "uncertainty")
MODES = ("brier", "outcome", "range", "behaviour")
RANGES = {"high": (0.7, 1.0), "medium": (0.35, 0.75), "low": (0.0, 0.4)}
TYPICAL = {"high": 0.9, "medium": 0.55, "low": 0.1}

Score = tuple[float, dict[str, Any]]


def applicable(task: Task) -> tuple[str, ...]:
    """The verifiers that a task names (all, where it names none) and whose truth it holds.

    >>> truth = {"claims": [{"subject": "a", "direction": "up"}]}
    >>> applicable(Task(id="t", prompt="Up?", truth=truth))
    ('direction', 'uncertainty')
    """
    truth = task.truth
    claims, facts = claims_of(task), truth.get("facts")
    holds = {
        "direction": claims,
        "factual": facts,
        # One direction alone cannot contradict itself.
        "consistency": len(claims) > 1 or truth.get("depends"),
        "uncertainty": claims or facts or truth.get("answerable") is False,
    }
    names = truth.get("verifiers") or task.meta.get("verifiers") or VERIFIERS
    return tuple(v for v in VERIFIERS if v in names and holds[v])


def verify(
    task: Task,
    text: str,
    verifier: str,
    *,
    mode: str = "brier",
    form: Form = Form(),
) -> ComponentScore:
    """The score of an answer by one verifier.

    mode : how `uncertainty` scores. "brier" is proper and lies in [-1, 1]. "outcome",
        "range" and "behaviour" are published forms in [0, 1], for reproduction: they are not
        proper, so training on them teaches over-confidence.
        A right "unknown" or "it depends" is scored by "behaviour" in modes "brier" and "outcome", too:
        there 10 % earns the most (the typical confidence of `warranted`), whatever P(right) is.

    >>> task = Task(id="t", prompt="Up?", truth={"claims": [{"subject": "a", "direction": "up"}]})
    >>> verify(task, "Answer: up\\nConfidence: 90%", "direction").value
    0.9
    """
    check_names([verifier], VERIFIERS, where="verify, verifier")
    check_names([mode], MODES, where="verify, mode")
    if verifier not in applicable(task):
        return ComponentScore(name=verifier, applies=False)
    stated = form.read(text)
    is_uncertainty = verifier == "uncertainty"
    span = (-1.0, 1.0) if is_uncertainty and mode == "brier" else (0.0, 1.0)
    # Without the form there is nothing to score: the least, so that leaving it out never pays.
    value, details = span[0], {}
    if stated.answer is None or (is_uncertainty and stated.confidence is None):
        details = {"problem": stated.problem}
    elif is_uncertainty:
        value, details = _uncertainty(task, stated, mode)
    else:
        value, details = SCORES[verifier](task, stated.answer)
    return ComponentScore(
        name=verifier, low=value, high=value, range=span, details=details
    )


def outcome(task: Task, stated: Stated) -> float | None:
    """How right an answer is, in [0, 1], by facts and directions alone, never by its confidence.

    None where the form is missing, or where the task has no truth.
    """
    if stated.answer is None:
        return None
    if task.truth.get("answerable") is False:
        return float(is_open(stated.answer))
    # Confidence plays no part: an outcome that holds it would make calibration circular.
    scores = []
    if claims_of(task):
        scores.append(_directions(task, stated.answer)["share"])
    if task.truth.get("facts"):
        scores.append(_factual(task, stated.answer)[0])
    return sum(scores) / len(scores) if scores else None


def _directions(task: Task, answer: str) -> dict[str, Any]:
    """Subjects that match and that contradict; a name that is no subject contradicts, too."""
    claims = claims_of(task)
    truth = {c["subject"]: c["direction"] for c in claims}
    stated = {} if is_open(answer) else directions(answer, claims)
    matching = [s for s, way in truth.items() if stated.get(s) == way]
    return {
        "matching": matching,
        "contradicting": [s for s in stated if s not in matching],
        "share": len(matching) / max(len(truth), len(stated)),
    }


def _direction(task: Task, answer: str) -> Score:
    """BioRLHF's bands, times the share of subjects that match."""
    result, n = _directions(task, answer), len(claims_of(task))
    m, c = len(result["matching"]), len(result["contradicting"])
    # One subject in the wrong direction moves the answer to the lower band.
    band = 0.4 + 0.2 * m / (m + c) if c else 0.8 + 0.2 * m / (m + 1)
    return band * m / n, result


def _factual(task: Task, answer: str) -> Score:
    """Recall times precision: what is stated beside the facts costs, so a list of guesses loses."""
    facts = task.truth["facts"]
    # "unknown" is no guess: it is not counted against the answer.
    parts = [] if is_open(answer) else [p for p in answer.split(";") if p.strip()]
    hits = [i for i, fact in enumerate(facts) if any(same(p, fact) for p in parts)]
    beside = [p for p in parts if not any(same(p, fact) for fact in facts)]
    recall = len(hits) / len(facts)
    precision = len(hits) / max(len(hits) + len(beside), 1)
    return recall * precision, {"matching": hits, "beside": beside}


def _consistency(task: Task, answer: str) -> Score:
    """.5 coverage + .5 [the relation between the subjects is right], times what is right."""
    if task.truth.get("depends"):
        return float(is_open(answer)), {}
    claims = claims_of(task)
    stated = directions(answer, claims)
    ways = [stated[c["subject"]] for c in claims if stated.get(c["subject"])]
    alike = len({c["direction"] for c in claims}) == 1
    relation = len(ways) > 1 and (len(set(ways)) == 1) == alike
    share = _directions(task, answer)["share"]
    # Times what is right: two wrong directions with the right relation would earn 1.
    score = 0.5 * len(ways) / len(claims) + 0.5 * relation
    return score * share, {"relation": relation}


def _uncertainty(task: Task, stated: Stated, mode: str) -> Score:
    """Is the stated confidence c warranted by the outcome t?

    brier : t - (c - t)^2. outcome : 1 - 2 |c - t|. range : 1 inside the warranted range,
    outside 1 - 2.5 x distance. behaviour : .6 t + .4 (1 - 2 |c - typical|), nothing for a
    wrong answer. All but brier end at 0, as published.
    """
    # `verify` has seen to it that there is a truth and a confidence.
    t, c = outcome(task, stated) or 0.0, stated.confidence or 0.0
    details = {"confidence": c, "outcome": t}
    nobody_knows = task.truth.get("answerable") is False
    level = task.truth.get("warranted") or ("low" if nobody_knows else "high")
    if mode == "range":
        low, high = RANGES[level]
        score = 1 - 2.5 * max(low - c, c - high, 0.0)
    elif mode == "behaviour" or (nobody_knows and t):
        # A low confidence goes with "unknown" (in any one figure), so brier would punish it.
        score = (
            0.6 * t + 0.4 * max(0.0, 1 - 2 * abs(c - TYPICAL[level])) if t else 0.0
        )
    elif mode == "outcome":
        score = 1 - 2 * abs(c - t)
    else:
        # Proper: best at c = P(right) (Damani et al. 2025, RLCR). Below 0 where c is high and wrong.
        return t - (c - t) ** 2, details
    return max(0.0, score), details


SCORES: Mapping[str, Callable[[Task, str], Score]] = {
    "direction": _direction,
    "factual": _factual,
    "consistency": _consistency,
}
