"""kit: experiment with rubric rewards, from the rubric to the gradient.

Nothing heavy is imported here; `import kit` stays under 0.3 s.
"""

__version__ = "0.1.0"

from . import moved
from .errors import BudgetError, DataError, JudgeDownError, KitError, MissingError
from .records import Criterion, Grade, Response, Run, Task, Verdict

__all__ = [
    "BudgetError",
    "Criterion",
    "DataError",
    "Grade",
    "JudgeDownError",
    "KitError",
    "MissingError",
    "Response",
    "Run",
    "Task",
    "Verdict",
    "__version__",
]

moved.install()
