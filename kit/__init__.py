"""kit: experiment with rubric rewards, from the rubric to the gradient. `kit.guide()` lists the
names.

tasks = kit.load("rubrics.json")
verdicts = kit.judge(tasks, judge="endpoint:my-model", ledger="ledger.sqlite")
grades = kit.grade(tasks, verdicts)
kit.plot(kit.agree(...))

A name loads its module when it is first used, so `import kit` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .errors import BudgetError, DataError, JudgeDownError, KitError, MissingError
from .front import DOORS
from .records import Criterion, Grade, Response, Run, Task, Verdict

if TYPE_CHECKING:
    from . import checks, runs
    from .calibration.ece import ece
    from .calibration.recalibrate import recalibrate
    from .calibration.reliability import reliability, sensitivity
    from .calibration.selective import risk_coverage
    from .checks import check
    from .confidence.reader import extract_all as stated
    from .data.load import load_tasks as load
    from .data.load import save_tasks as save
    from .front import guide
    from .judge.audit import audit
    from .judge.factory import judge_of
    from .judge.ledger import Ledger
    from .judge.prices import Budget
    from .judge.run import ajudge, estimate, judge
    from .people.agreement import agreement
    from .people.draw import draw
    from .people.rate import rate
    from .people.view import view
    from .plots import plot
    from .rewards.composer import Composer
    from .rubrics.lint import lint
    from .rubrics.summary import summarize
    from .runs import start
    from .stats.agreement import kappa
    from .stats.estimate import Estimate
    from .stats.rates import mean
    from .stats.report import agree
    from .tables import each, show, table
    from .train.functions import reward_function
    from .tuning.bench import Workbench as workbench
    from .tuning.study import Study
    from .verbs import grade, only, split, train, trivial

__version__ = "0.1.0"

_WHERE = {door.name: door for door in DOORS}
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
    *_WHERE,
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'kit' has no attribute {name!r}; kit.guide() lists its names")
    module, inner = _WHERE[name].target
    found = importlib.import_module(module, __name__)
    value = getattr(found, inner) if inner else found
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
