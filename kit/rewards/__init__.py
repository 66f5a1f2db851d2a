"""Rewards: from verdicts and answers to scores. Unknown stays unknown, from judge to gradient.

composer = Composer.from_config("refiner")     # a preset, a mapping, or a YAML file
composer.grade(task, response, verdicts).score  # None: leave this answer out of training
"""

from ..records import ComponentScore
from .citations import AnswerClaim, claim_criteria, parse_citations, score_citations
from .composer import (
    Composer,
    FormatRule,
    RewardComponent,
    RewardGate,
    RewardSource,
    reward_presets,
    static_criteria,
)
from .explanation import Explanation, explain
from .grades import Grades, grade, trivial, trivial_answers
from .rubric_score import PASS_THRESHOLD, CriteriaTree, score_rubric

__all__ = [
    "PASS_THRESHOLD",
    "AnswerClaim",
    "ComponentScore",
    "Composer",
    "CriteriaTree",
    "Explanation",
    "FormatRule",
    "Grades",
    "RewardComponent",
    "RewardGate",
    "RewardSource",
    "claim_criteria",
    "explain",
    "grade",
    "parse_citations",
    "reward_presets",
    "score_citations",
    "score_rubric",
    "static_criteria",
    "trivial",
    "trivial_answers",
]
