"""Static drawings of plotly figures: here their axes, in drawing.html their lines, points and bars as SVG."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from .figures import BAND_COLOR, NEUTRAL_COLOR, SERIES_COLORS

# types of traces, with their orientation
DRAWN = {("scatter", None), ("scatter", "v"), ("bar", "h")}
GREY = SERIES_COLORS.index(NEUTRAL_COLOR)
STYLE_NUMBERS = {color: n for n, color in enumerate(SERIES_COLORS)} | {
    BAND_COLOR: GREY
}


class Axis(NamedTuple):
    """An axis from `low` to `high` with round ticks."""

    low: float
    high: float
    ticks: list[float]

    def place(self, value: float) -> float:
        """The share of the axis that lies before a value."""
        return (value - self.low) / (self.high - self.low)


def axis_of(values: Iterable[float]) -> Axis:
    """An axis from the least to the greatest value; unknown ones (NaN) are passed over."""
    inside = [*filter(math.isfinite, values)] or [0.0]
    low, span = min(inside), max(inside) - min(inside) or 1.0
    unit = 10.0 ** math.floor(math.log10(span))
    step = unit * next(k for k in (0.5, 1, 2) if span <= 5 * k * unit)
    # a hair more, because 3 * .1 is .30000000000000004; + 0 makes -0 a 0
    first, last = (
        math.ceil(low / step - 1e-9),
        math.floor((low + span) / step + 1e-9),
    )
    ticks = [round(n * step, 10) + 0 for n in range(first, last + 1)]
    return Axis(low, low + span, ticks)


def draw(figure: Mapping[str, Any]) -> dict[str, Any] | None:
    """What drawing.html needs of a plotly figure; None where it holds more than rows, lines and points."""
    layout, traces = figure["layout"], figure["data"]
    kinds = {(t.get("type", "scatter"), t.get("orientation")) for t in traces}
    if not traces or not kinds <= DRAWN:
        return None
    series = [_unpack(t, n) for n, t in enumerate(traces)]
    xs, ys = ([v for s in series for v in s[axis]] for axis in "xy")
    # dates, and names along x
    if not all(isinstance(v, int | float) for v in xs):
        return None
    limits = [v for s in series for v in (*s["low"], *s["high"])]
    if isinstance(ys[0], str):
        axis = axis_of([0, *limits, *_bar_ends(series)])
        return {"layout": layout, "rows": series, "x": axis}
    for shape in layout.get("shapes", ()):
        xs += [shape["x0"], shape["x1"]]
    return {
        "layout": layout,
        "series": series,
        "x": axis_of(xs),
        "y": axis_of([*ys, *limits]),
    }


def _bar_ends(series: Iterable[Mapping[str, Any]]) -> list[float]:
    """The ends of all bars. Their parts stand on each other, and the first one on 0."""
    lengths = np.nan_to_num([s["x"] for s in series])
    return [*lengths.clip(min=0).sum(0), *lengths.clip(max=0).sum(0)]


def _unpack(trace: Mapping[str, Any], number: int) -> dict[str, Any]:
    """A trace with its numbers as lists, the ends of its error bars, and the number of its style."""
    y = _listed(trace["y"])
    x = _listed(trace.get("x", range(len(y))))
    is_named = any(isinstance(v, str) for v in y)
    error = trace.get("error_x" if is_named else "error_y") or {}
    values = pd.to_numeric(pd.Series(x if is_named else y), errors="coerce")
    unknown = np.full(len(values), math.nan)
    marker, line = trace.get("marker", {}), trace.get("line", {})
    color, size = str(marker.get("color", line.get("color"))), marker.get("size", 6)
    # one size for all points, or one for each
    sizes = [size] * len(x) if isinstance(size, int | float) else _listed(size)
    return {
        **trace,
        "type": trace.get("type", "scatter"),
        "mode": trace.get("mode", "lines+markers"),
        "x": x,
        "y": y,
        "low": (values - _listed(error.get("arrayminus", unknown))).tolist(),
        "high": (values + _listed(error.get("array", unknown))).tolist(),
        "sizes": sizes,
        "number": STYLE_NUMBERS.get(color, number % len(SERIES_COLORS)),
    }


def _listed(values: Any) -> list[Any]:
    """The values of a trace, NaN where one is unknown. Plotly packs some in base64."""
    if isinstance(values, Mapping):
        values = np.frombuffer(base64.b64decode(values["bdata"]), values["dtype"])
    return [math.nan if v is None else v for v in np.asarray(values).tolist()]
