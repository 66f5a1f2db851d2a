"""Rewards: from verdicts and answers to scores. Unknown stays unknown, from judge to gradient.

composer = Composer.from_config("refiner")     # a preset, a mapping, or a YAML file
composer.grade(task, response, verdicts).score  # None: leave this answer out of training
"""

from .aggregate import aggregate
from .citations import Claim, citation_part, claim_criteria, parse
from .composer import Composer, Format, Gate, presets, static_criteria
from .grades import Grades, grade, trivial
from .policies import policies

__all__ = [
    "Claim",
    "Composer",
    "Format",
    "Gate",
    "Grades",
    "aggregate",
    "citation_part",
    "claim_criteria",
    "grade",
    "parse",
    "policies",
    "presets",
    "static_criteria",
    "trivial",
]
