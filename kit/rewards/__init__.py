"""Rewards: pure functions over verdict records and text. Unknown stays unknown, from the judge to the gradient.

composer = Composer.from_config("default")            # or a dict, or a YAML file
composer.score(task, response, verdicts).score        # None = exclude from training
report(responses, grades(tasks, responses, verdicts, composer=composer))
"""

from .aggregate import grade
from .ask import agrades, grades
from .composer import Composer
from .report import report, trivial_responses
from .rerank import rerank
from .trivial import policies

__all__ = [
    "Composer",
    "agrades",
    "grade",
    "grades",
    "policies",
    "report",
    "rerank",
    "trivial_responses",
]
