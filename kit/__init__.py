"""kit: experiment with rubric rewards, from the rubric to the gradient. `kit.guide()` lists the names.

A name loads its module at its first use, so `import kit` is cheap.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .errors import BudgetError, DataError, JudgeDownError, KitError, MissingError

if TYPE_CHECKING:  # what editors see
    from .checks import stated_confidence

    # From their modules: a room's function and its module may share a name.
    from .data.load import load, save
    from .evaluation import answer, compare
    from .judging import Budget, Ledger, judge_of
    from .judging.runner import ajudge, estimate, judge
    from .people import agreement_report, label, rate
    from .people.view import view
    from .plots import plot
    from .records import Criterion, Grade, Response, Run, Task, Verdict
    from .records.tables import per_group, show, table
    from .rewards import Composer, grade, trivial
    from .rubrics import split, summarize
    from .rubrics.draft import draft
    from .rubrics.lint import lint
    from .runs import start
    from .stats import Estimate, agree, calibration, kappa, mean
    from .stats.calibration import (
        ece,
        recalibrate,
        reliability,
        risk_coverage,
        sensitivity,
    )
    from .training import reward_function, train
    from .tuning.audit import audit
    from .tuning.workbench import Workbench as workbench

__version__ = "0.2.0"

# room -> the names that `kit` offers from it
_ROOMS = {
    "records": "Criterion Task Response Verdict Grade Run",
    "records.tables": "table per_group show",
    "data": "load save",
    "rubrics": "summarize lint split draft",
    "judging": "judge ajudge estimate judge_of Ledger Budget",
    "tuning": "workbench audit",
    "people": "agreement_report rate label view",
    "rewards": "grade Composer trivial",
    "evaluation": "answer compare",
    "training": "train reward_function",
    "stats.calibration": "reliability ece sensitivity recalibrate risk_coverage",
    "checks": "stated_confidence",
    "stats": "agree kappa mean Estimate",
    "plots": "plot",
    "runs": "start",
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names.split()}
# `kit.calibration` is the folder `stats/calibration`
_PATH_OF = {room.rpartition(".")[2]: room for room in _ROOMS}
__all__ = [
    "BudgetError", "DataError", "JudgeDownError", "KitError", "MissingError", "__version__", "guide",
    *_ROOM_OF,
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _ROOM_OF:
        value = getattr(
            importlib.import_module(f".{_ROOM_OF[name]}", __name__), name
        )
    elif name in _PATH_OF:
        value = importlib.import_module(f".{_PATH_OF[name]}", __name__)
    else:
        raise AttributeError(
            f"module 'kit' has no attribute {name!r}; kit.guide() lists its names"
        )
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def guide() -> Any:
    """The names of `kit` with the first line of each docstring, as a table; `print` writes them as lines."""
    from .records.tables import Results

    rows = Results()
    for name, room in _ROOM_OF.items():
        doc = __getattr__(name).__doc__ or ""
        rows[f"kit.{name}"] = f"{doc.splitlines()[0]} ({room})"
    return rows
