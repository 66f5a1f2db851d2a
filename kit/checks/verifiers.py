"""Four verifiers over the stated form: direction, factual, consistency, uncertainty.

The task alone decides which of them apply. An answer without the form earns the least of the range,
and its outcome is None: it counts in no accuracy and in no calibration. Formulas: BioRLHF.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

from ..records import ComponentScore, Task
from ..system.settings import check_names
from .stated_form import (
    AnswerForm,
    StatedAnswer,
    claims_of,
    is_open,
    matches_fact,
    stated_directions,
)

VerifierName = Literal["direction", "factual", "consistency", "uncertainty"]
VERIFIER_NAMES: tuple[VerifierName, ...] = get_args(VerifierName)
# How the verifier "uncertainty" scores a confidence; see `verify_answer`.
CONFIDENCE_MODES = ("brier", "outcome", "range", "behaviour")
# Confidences that an answer should state, by the level that the truth warrants.
WARRANTED_RANGES = {"high": (0.7, 1.0), "medium": (0.35, 0.75), "low": (0.0, 0.4)}
TYPICAL_CONFIDENCES = {"high": 0.9, "medium": 0.55, "low": 0.1}

# A score in [0, 1] (uncertainty: from -1 on), and what it was made of.
ScoreWithDetails = tuple[float, dict[str, Any]]


def applicable_verifiers(task: Task) -> tuple[VerifierName, ...]:
    """The verifiers that a task names (all, where it names none) and whose truth it holds.

    >>> truth = {"claims": [{"subject": "a", "direction": "up"}]}
    >>> applicable_verifiers(Task(id="t", prompt="Up?", truth=truth))
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
    names = truth.get("verifiers") or task.meta.get("verifiers") or VERIFIER_NAMES
    return tuple(v for v in VERIFIER_NAMES if v in names and holds[v])


def verify_answer(
    task: Task,
    text: str,
    verifier: str,
    *,
    mode: str = "brier",
    form: AnswerForm = AnswerForm(),
) -> ComponentScore:
    """The score of an answer by one verifier.

    mode : how `uncertainty` scores. "brier" is proper and lies in [-1, 1]. "outcome",
        "range" and "behaviour" are published forms in [0, 1], for reproduction: they are not
        proper, so training on them teaches over-confidence.
        A right "unknown" or "it depends" is scored by "behaviour" in modes "brier" and "outcome", too:
        there 10 % earns the most (the typical confidence of `warranted`), whatever P(right) is.

    >>> task = Task(id="t", prompt="Up?", truth={"claims": [{"subject": "a", "direction": "up"}]})
    >>> verify_answer(task, "Answer: up\\nConfidence: 90%", "direction").value
    0.9
    """
    check_names([verifier], VERIFIER_NAMES, where="verify_answer, verifier")
    check_names([mode], CONFIDENCE_MODES, where="verify_answer, mode")
    if verifier not in applicable_verifiers(task):
        return ComponentScore(name=verifier, applies=False)
    stated = form.read_answer(text)
    is_uncertainty = verifier == "uncertainty"
    span = (-1.0, 1.0) if is_uncertainty and mode == "brier" else (0.0, 1.0)
    details: dict[str, Any]
    if stated.answer is None or (is_uncertainty and stated.confidence is None):
        # Without the form there is nothing to score: the least, so that leaving it out never pays.
        value, details = span[0], {"problem": stated.problem}
    elif is_uncertainty:
        value, details = _uncertainty_score(task, stated, mode)
    else:
        value, details = ANSWER_SCORES[verifier](task, stated.answer)
    return ComponentScore(
        name=verifier, low=value, high=value, range=span, details=details
    )


def answer_outcome(task: Task, stated: StatedAnswer) -> float | None:
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
        scores.append(_compare_directions(task, stated.answer)["share"])
    if task.truth.get("facts"):
        scores.append(_factual_score(task, stated.answer)[0])
    return sum(scores) / len(scores) if scores else None


def _compare_directions(task: Task, answer: str) -> dict[str, Any]:
    """Subjects that match and that contradict; a name that is not a subject contradicts, too."""
    claims = claims_of(task)
    stated = {} if is_open(answer) else stated_directions(answer, claims)
    truth = {claim["subject"]: claim["direction"] for claim in claims}
    matching = [s for s in truth if stated.get(s) == truth[s]]
    return {
        "matching": matching,
        "contradicting": [s for s in stated if s not in matching],
        "share": len(matching) / max(len(truth), len(stated)),
    }


def _direction_score(task: Task, answer: str) -> ScoreWithDetails:
    """BioRLHF's bands, times the share of subjects that match."""
    result = _compare_directions(task, answer)
    right, wrong = len(result["matching"]), len(result["contradicting"])
    # One subject in the wrong direction moves the answer to the lower band.
    band = (0.4 if wrong else 0.8) + 0.2 * right / (right + max(wrong, 1))
    return band * right / len(claims_of(task)), result


def _factual_score(task: Task, answer: str) -> ScoreWithDetails:
    """Recall times precision: what is stated beside the facts costs, so a list of guesses loses."""
    facts = task.truth["facts"]
    # "unknown" is not a guess: it is not counted against the answer.
    parts = "" if is_open(answer) else answer
    matching: set[int] = set()
    beside = []
    for part in filter(str.strip, parts.split(";")):
        hits = {i for i, fact in enumerate(facts) if matches_fact(part, fact)}
        matching |= hits
        if not hits:
            beside.append(part)
    recall = len(matching) / len(facts)
    precision = len(matching) / max(len(matching) + len(beside), 1)
    return recall * precision, {"matching": sorted(matching), "beside": beside}


def _consistency_score(task: Task, answer: str) -> ScoreWithDetails:
    """.5 coverage + .5 [the relation between the subjects is right], times what is right."""
    if task.truth.get("depends"):
        return float(is_open(answer)), {}
    claims = claims_of(task)
    directions = stated_directions(answer, claims)
    stated = [s for claim in claims if (s := directions.get(claim["subject"]))]
    are_alike = len({claim["direction"] for claim in claims}) == 1
    is_right_relation = len(stated) > 1 and (len(set(stated)) == 1) == are_alike
    score = 0.5 * len(stated) / len(claims) + 0.5 * is_right_relation
    # Times what is right: two wrong directions with the right relation would earn 1.
    score *= _compare_directions(task, answer)["share"]
    return score, {"relation": is_right_relation}


def _uncertainty_score(
    task: Task, stated: StatedAnswer, mode: str
) -> ScoreWithDetails:
    """Is the stated confidence c warranted by the outcome t?

    brier : t - (c - t)^2. outcome : 1 - 2 |c - t|. range : 1 inside the warranted range,
    outside 1 - 2.5 x distance. behaviour : .6 t + .4 (1 - 2 |c - typical|), nothing for a
    wrong answer. All but brier end at 0, as published.
    """
    # `verify_answer` has seen to it that there is a truth and a confidence.
    outcome, confidence = (
        answer_outcome(task, stated) or 0.0,
        stated.confidence or 0.0,
    )
    details = {"confidence": confidence, "outcome": outcome}
    is_unanswerable = task.truth.get("answerable") is False
    level = task.truth.get("warranted") or ("low" if is_unanswerable else "high")
    if mode == "range":
        low, high = WARRANTED_RANGES[level]
        score = 1 - 2.5 * max(low - confidence, confidence - high, 0.0)
    # A low confidence goes with "unknown" (in any one figure), so brier would punish it.
    elif mode == "behaviour" or (is_unanswerable and outcome):
        distance = abs(confidence - TYPICAL_CONFIDENCES[level])
        score = 0.6 * outcome + 0.4 * max(0.0, 1 - 2 * distance) if outcome else 0.0
    elif mode == "outcome":
        score = 1 - 2 * abs(confidence - outcome)
    else:
        # Proper: best at c = P(right) (Damani et al. 2025, RLCR). Below 0 where c is high and wrong.
        return outcome - (confidence - outcome) ** 2, details
    return max(0.0, score), details


ANSWER_SCORES: Mapping[str, Callable[[Task, str], ScoreWithDetails]] = {
    "direction": _direction_score,
    "factual": _factual_score,
    "consistency": _consistency_score,
}
