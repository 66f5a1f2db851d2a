"""kit: experiment with rubric rewards, from the rubric to the gradient. `kit.guide()` lists the names.

A name loads its module at its first use, so `import kit` is cheap. Editors read `__init__.pyi`.
"""

import pkgutil
from typing import Any

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
    "rewards": "grade Composer trivial explain",
    "evaluation": "answer compare",
    "training": "train reward_function",
    "stats.calibration": "reliability ece sensitivity recalibrate risk_coverage",
    "checks": "stated_confidence",
    "stats": "agree kappa mean Estimate",
    "plots": "plot",
    "runs": "start",
    "errors": "BudgetError DataError JudgeDownError KitError MissingError",
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names.split()}
# where a name is; `kit.calibration` is the folder `stats/calibration`
_PLACES = {
    **{room.rpartition(".")[2]: f"kit.{room}" for room in _ROOMS},
    **{name: f"kit.{room}:{name}" for name, room in _ROOM_OF.items()},
}
__all__ = ["__version__", "guide", *_ROOM_OF]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(
            f"module 'kit' has no attribute {name!r}; kit.guide() lists its names"
        )
    return pkgutil.resolve_name(_PLACES[name])


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PLACES})


def guide() -> Any:
    """The names of `kit` with the first line of each docstring, as a table; `print` writes them as lines."""
    from .records.tables import Results

    return Results(
        (f"kit.{name}", f"{__getattr__(name).__doc__.splitlines()[0]} ({room})")
        for name, room in _ROOM_OF.items()
    )
