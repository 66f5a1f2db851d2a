"""Rewards: pure functions over verdict records and text. Unknown stays unknown, from the judge to
the gradient.

composer = Composer.from_config("default")            # or a dict, or a YAML file
composer.score(task, response, verdicts).score        # None = exclude from training
grades(tasks, responses, verdicts, composer=composer)
search(composer, tasks, seconds=60)                   # what does it pay without skill?
"""

from .aggregate import grade
from .composer import Composer, grades
from .contrast import rerank
from .exploit import search, standing
from .trivial import policies

__all__ = [
    "Composer",
    "grade",
    "grades",
    "policies",
    "rerank",
    "search",
    "standing",
]
