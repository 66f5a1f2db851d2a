"""Plotly figures over results: `plot(result)` draws whatever the kit computed.

Nothing is computed here; one module per room, one template for all. A result is known by its room
and class, so that drawing imports only the module that draws it.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from functools import singledispatch
from typing import Any

from ..errors import KitError

ONE = {
    "calibration.Reliability": "calibration.reliability",
    "calibration.RiskCoverage": "calibration.risk_coverage",
    "calibration.Sensitivity": "calibration.sensitivity",
    "calibration.Comparison": "calibration.comparison",
    "stats.Agreement": "agreement.confusion",
    "judge.AuditReport": "judging.audit",
    "rubrics.Summary": "data.overview",
    "rubrics.LintReport": "data.findings",
    "rewards.Composer": "rewards.weights",
    "train.Gain": "training.gain",
}
NAMED = {
    "stats.Estimate": "agreement.forest",
    "stats.Agreement": "agreement.trap",
    "calibration.Reliability": "calibration.side_by_side",
    "calibration.ECE": "calibration.eces",
}
SEVERAL = {
    "judge.AuditReport": "judging.audits",
    "records.Grade": "rewards.contributions",
    "runs.Seeds": "compare.over_seeds",
}


@singledispatch
def plot(result: Any, **options: Any) -> Any:
    """A plotly figure of a result: reliability, agreement, an audit, a lint, a gain, a run's steps
    ...

    result : one result; a mapping of names to estimates, agreements or curves (side by side); a
        list of audits, of a training's steps, of grades.
    options : of the function that draws it (`kit.plots.calibration.reliability` for a
        Reliability, and so on).
    A class of your own: `kit.plot.register(MyResult)(my_function)`.
    KitError names what can be drawn.
    """
    return _draw(ONE, type(result))(result, **options)


@plot.register(Mapping)
def _named(result: Mapping[str, Any], **options: Any) -> Any:
    """Results by name, side by side."""
    return _draw(NAMED, type(next(iter(result.values()), None)))(result, **options)


@plot.register(list)
@plot.register(tuple)
def _several(result: Sequence[Any], **options: Any) -> Any:
    """Several results of one kind, or the steps of a training."""
    if result and isinstance(result[0], Mapping):
        return _function("training.reward")(result, **options)
    return _draw(SEVERAL, type(result[0]) if result else object)(result, **options)


def _draw(known: Mapping[str, str], kind: type) -> Any:
    """The function that draws results of this class, or of one it is made from."""
    for cls in kind.__mro__:
        # a class by its room: kit.stats.estimate.Estimate is stats.Estimate
        name = ".".join([*cls.__module__.split(".")[1:2], cls.__name__])
        if name in known:
            return _function(known[name])
    drawn = sorted({*ONE, *NAMED, *SEVERAL})
    raise KitError(
        f"there is no picture of {kind.__name__}",
        where="kit.plot",
        fix=f"it draws {', '.join(drawn)}, and the steps of a training",
    )


def _function(name: str) -> Any:
    module, function = name.split(".")
    return getattr(importlib.import_module(f".{module}", __name__), function)
