"""Plotly figures that read on a phone, in dark and in light, each with its numbers as a table."""

from __future__ import annotations

import html
import math
import textwrap
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from plotly.graph_objects import Figure as Figure

from ..errors import DataError

# Okabe & Ito's colours, which colour-blind people tell apart
SERIES_COLORS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#7a7a7a",
)
# a grey print shows no colours: lines differ in their dashes, points in their symbols
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "solid")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star")
# text and lines that read on white and on black
NEUTRAL_COLOR = "#7a7a7a"
GRID_COLOR = "rgba(128,128,128,.25)"
BAND_COLOR = "rgba(128,128,128,.35)"
# a column's name, or (n,) values
Values = str | Iterable[object] | None
# name of a series -> (low, high), each (n,)
Bands = Mapping[str, tuple[Iterable[float], Iterable[float]]]
# name -> number, or name -> {part: number}
BarLengths = Mapping[str, float | Mapping[str, float | None] | None]


def escape_label(text: object, limit: int = 120) -> str:
    """Text for a label, cut and escaped: plotly renders some HTML.

    >>> escape_label("<b>bold</b>", 8)
    '&lt;b&gt;bold…'
    """
    short = str(text)
    # Cut before it is escaped: half an entity would be printed as it is.
    if len(short) > limit:
        short = f"{short[: limit - 1]}…"
    return html.escape(short, quote=False)


def apply_theme(
    fig: Figure,
    *,
    title: str = "",
    subtitle: str = "",
    x: str = "",
    y: str = "",
    height: int = 420,
    rows: Sequence[Mapping[Any, object]] = (),
    **layout: Any,
) -> Figure:
    """Give a plotly figure the look of the kit; all titles are escaped.

    rows : the figure's numbers, kept in `fig.layout.meta["rows"]`. `page` shows them as a table.
    """
    # so many characters of this size fit on a phone
    head = [f"<b>{escape_label(part)}</b>" for part in textwrap.wrap(title, 42)]
    head += map(escape_label, textwrap.wrap(subtitle, 48))
    fig.update_layout(
        # plotly's own templates bring a white or a dark ground
        template="none",
        colorway=SERIES_COLORS,
        font={"color": NEUTRAL_COLOR, "size": 12},
        # at the top left, whatever the height
        title={
            "text": "<br>".join(head),
            "font": {"size": 14},
            "x": 0.02,
            "y": 1,
            "yref": "container",
            "yanchor": "top",
            # plotly lifts a title of several lines by one
            "pad": {"t": 14 * min(len(head), 2)},
        },
        # transparent: the page or notebook behind decides on dark or light
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        height=height + 18 * len(head),
        margin={"l": 10, "r": 14, "t": 24 + 22 * len(head), "b": 10},
        hoverlabel={"align": "left"},
        legend={
            "orientation": "h",
            "yref": "container",
            "y": 0.01,
            "yanchor": "bottom",
        },
        # the text alternative travels with the figure, also through JSON
        meta={"rows": [dict(row) for row in rows]},
    )
    # last, so that a caller may override the look
    fig.update_layout(**layout)
    grid = {
        "gridcolor": GRID_COLOR,
        "zerolinecolor": GRID_COLOR,
        "automargin": True,
    }
    fig.update_xaxes(title=escape_label(x), **grid)
    return fig.update_yaxes(title=escape_label(y), **grid)


def error_bars(
    values: pd.Series[float], low: pd.Series[float], high: pd.Series[float]
) -> dict[str, Any]:
    """Error bars from limits; an unknown limit (NaN) has none."""
    return {
        "type": "data",
        "symmetric": False,
        "array": (high - values).tolist(),
        "arrayminus": (values - low).tolist(),
    }


def interval_table(rows: Mapping[str, object]) -> pd.DataFrame:
    """Estimates as a DataFrame: name, value, low, high, and the result as text.

    rows : name -> something with value, low and high, or with such an `estimate`.
    """
    records = []
    for name, thing in rows.items():
        e: Any = getattr(thing, "estimate", thing)
        records.append((str(name), e.value, e.low, e.high, str(e)))
    return pd.DataFrame(records, columns=["name", "value", "low", "high", "result"])


def forest(
    rows: Mapping[str, object],
    *,
    title: str = "",
    subtitle: str = "",
    x: str = "",
    zero: float | None = None,
) -> Figure:
    """Estimates with their intervals, one line each.

    rows : name -> estimate (value, low, high), or something with `.estimate`.
    zero : where to draw a dashed line, for example 0 for differences.
    """
    table = interval_table(rows)
    names, results = table["name"], table["result"]
    hover = names.map(escape_label) + "<br>" + results.map(escape_label)
    fig = Figure().add_scatter(
        x=table["value"].tolist(),
        y=_axis_labels(names),
        error_x=error_bars(table["value"], table["low"], table["high"]),
        mode="markers",
        marker={"size": 9},
        hovertext=hover.tolist(),
        hoverinfo="text",
    )
    # a reader looks first whether the interval crosses this line
    if zero is not None:
        fig.add_vline(zero, line_dash="dash", line_color=NEUTRAL_COLOR)
    return apply_theme(
        fig,
        title=title,
        subtitle=subtitle,
        x=x,
        height=90 + 30 * len(table),
        rows=table[["name", "result"]].to_dict("records"),
        # plotly counts upwards, and the first row belongs on top.
        yaxis_autorange="reversed",
        # As names: plotly would place a name such as "2024" on a scale of numbers.
        yaxis_type="category",
        showlegend=False,
    )


def _axis_labels(names: Iterable[object]) -> list[str]:
    """Short names for an axis; two that are equal when cut stay apart, else they would share a line."""
    out: list[str] = []
    for name in names:
        short = escape_label(name, 26)
        out.append(f"{short} ({len(out) + 1})" if short in out else short)
    return out


def bars(
    values: BarLengths,
    *,
    title: str = "",
    subtitle: str = "",
    x: str = "",
    order: bool = True,
) -> Figure:
    """Horizontal bars; a mapping of mappings stacks its parts, a colour each.

    values : name -> number, or name -> {part: number}. order : the longest first.
    """
    # A row for each bar, a column for each of its parts; None where one is unknown.
    parts = [v if isinstance(v, Mapping) else {"": v} for v in values.values()]
    table = pd.DataFrame(parts, index=list(values), dtype=object)
    if order:
        length = table.apply(pd.to_numeric).sum(axis=1)
        table = table.loc[length.sort_values(ascending=False, kind="stable").index]
    table = table.where(table.notna(), None)
    fig, labels = Figure(), _axis_labels(table.index)
    for part, lengths in table.items():
        name = escape_label(part, 30)
        fig.add_bar(x=lengths.tolist(), y=labels, name=name, orientation="h")
    numbers = table.rename(columns={"": "value"}).to_dict("records")
    is_stacked = len(table.columns) > 1
    return apply_theme(
        fig,
        title=title,
        subtitle=subtitle,
        x=x,
        height=90 + 24 * len(table) + 20 * is_stacked,
        rows=[
            {"name": k, **row} for k, row in zip(table.index, numbers, strict=True)
        ],
        yaxis_autorange="reversed",
        yaxis_type="category",
        # The mode "stack" would draw negative parts over the positive ones.
        barmode="relative",
        showlegend=is_stacked,
    )


def lines(
    data: pd.DataFrame | Mapping[str, Iterable[object]],
    x: Values = None,
    *,
    title: str = "",
    subtitle: str = "",
    x_title: str = "",
    y_title: str = "",
    bands: Bands | None = None,
    smooth: int = 1,
    stack: bool = False,
) -> Figure:
    """Series as lines.

    data : a DataFrame, or name -> values (n,). x : the name of a column, or (n,) values; default 0,
    1, 2, ... bands : name of a series -> (low, high), drawn as a band. smooth : width of a running
    mean, for the eye. stack : areas on top of each other, for shares.
    """
    frame = pd.DataFrame(data)
    if isinstance(x, str):
        x_title = x_title or x
        frame, x = frame.drop(columns=x), frame[x]
    places = list(range(len(frame)) if x is None else x)
    fig, is_several = Figure(), len(frame.columns) > 1
    # None and text become gaps, not zeros
    numbers = frame.apply(pd.to_numeric, errors="coerce").astype(float)
    for number, (name, y) in enumerate(numbers.items()):
        style = _series_style(number)
        if smooth > 1:
            _add_faint_points(fig, places, y, style["color"])
            y = y.rolling(smooth, min_periods=1).mean()
        if bands and str(name) in bands:
            _add_band(fig, places, bands[str(name)], style["color"])
        fig.add_scatter(
            x=places,
            y=y.tolist(),
            name=escape_label(name, 30),
            **_look_of_line(style, len(places), is_area=stack),
        )
    return apply_theme(
        fig,
        title=title,
        subtitle=subtitle,
        height=300 + 24 * is_several,
        x=x_title,
        y=y_title,
        showlegend=is_several,
        rows=frame.assign(**{x_title or "x": places}).to_dict("records"),
    )


def _add_faint_points(
    fig: Figure, x: list[object], y: pd.Series[float], color: str
) -> None:
    fig.add_scatter(
        x=x,
        y=y.tolist(),
        mode="markers",
        marker={"size": 4, "color": color, "opacity": 0.4},
        showlegend=False,
    )


def _add_band(
    fig: Figure,
    x: list[object],
    limits: tuple[Iterable[float], Iterable[float]],
    color: str,
) -> None:
    """A band between the lower and the upper limits at each x."""
    low, high = map(list, limits)
    fig.add_scatter(
        # there along the upper limits, and back along the lower ones
        x=[*x, *x[::-1]],
        y=high + low[::-1],
        fill="toself",
        line={"width": 0, "color": color},
        opacity=0.2,
        mode="lines",
        hoverinfo="skip",
        showlegend=False,
    )


def _look_of_line(
    style: Mapping[str, str], values: int, *, is_area: bool
) -> dict[str, Any]:
    """An area on top of the others, or a line, with points where the values are few."""
    look: dict[str, Any] = {
        "mode": "lines",
        "line": {"color": style["color"], "dash": style["dash"]},
    }
    if is_area:
        return {**look, "stackgroup": "one"}
    # a line alone would hide a single value between two unknown ones
    if values < 30:
        look |= {"mode": "lines+markers", "marker": {"symbol": style["symbol"]}}
    return look


def _series_style(number: int) -> dict[str, str]:
    """Colour, dash and symbol of a series; they repeat after seven."""
    place = number % len(SERIES_COLORS)
    return {
        "color": SERIES_COLORS[place],
        "dash": DASHES[place],
        "symbol": SYMBOLS[place],
    }


def heatmap(
    counts: NDArray[np.float64],
    names: Sequence[object],
    *,
    title: str = "",
    subtitle: str = "",
    x: str = "",
    y: str = "",
) -> Figure:
    """Counts (q, q) as a heat map, coloured by the share of each column."""
    labels = [escape_label(name, 16) for name in names]
    # by column, so that a common level does not outshine a rare one
    share = counts / counts.sum(0, keepdims=True).clip(min=1)
    fig = Figure().add_heatmap(
        z=share,
        x=labels,
        y=labels,
        zmin=0,
        zmax=1,
        showscale=False,
        # dark enough at 0 for white counts on it
        colorscale=[[0, "#5f8fb5"], [1, "#004a75"]],
        text=counts,
        texttemplate="%{text:.0f}",
        textfont={"size": 15, "color": "white"},
    )
    table = pd.DataFrame(counts, columns=list(map(str, names)))
    table.insert(0, y or "row", list(names), allow_duplicates=True)
    return apply_theme(
        fig,
        title=title,
        subtitle=subtitle,
        x=x,
        y=y,
        height=150 + 44 * len(labels),
        xaxis_type="category",
        yaxis_type="category",
        rows=table.to_dict("records"),
    )


def reliability_figure(
    series: Mapping[str, Any],
    *,
    title: str = "Reliability",
    subtitle: str = "",
    x: str = "stated confidence",
    y: str = "share right",
) -> Figure:
    """Reliability diagram: accuracy against confidence, a colour for each name.

    series : name -> something with `bins` (DataFrame: lower, upper, n, conf, accuracy, low, high,
    band_low, band_high) and `curve` (DataFrame: conf, accuracy). Bins inside the grey band are
    consistent with perfect calibration.
    """
    fig = Figure().add_shape(
        type="line",
        x0=0,
        y0=0,
        x1=1,
        y1=1,
        line={"dash": "dash", "color": NEUTRAL_COLOR},
    )
    # bands of several series would hide each other
    for report in series.values() if len(series) == 1 else ():
        _add_calibrated_band(fig, report.bins)
    numbers: list[dict[Hashable, object]] = []
    for number, (name, report) in enumerate(series.items()):
        _add_reliability(fig, report, escape_label(name, 20), _series_style(number))
        table = report.bins.round(3)
        table.insert(0, "series", name)
        numbers += table.to_dict("records")
    # Wider than [0, 1], so that markers at its ends are not cut.
    span = [-0.03, 1.03]
    return apply_theme(
        fig,
        title=title,
        subtitle=subtitle,
        height=480,
        x=x,
        y=y,
        xaxis_range=span,
        yaxis_range=span,
        rows=numbers,
    )


def _add_calibrated_band(fig: Figure, bins: pd.DataFrame) -> None:
    """Where the accuracy of each bin would lie if the model were calibrated, in grey."""
    middle = (bins["band_low"] + bins["band_high"]) / 2
    band = error_bars(middle, bins["band_low"], bins["band_high"])
    fig.add_scatter(
        x=bins["conf"],
        y=middle,
        mode="markers",
        marker={"size": 1, "color": NEUTRAL_COLOR},
        error_y={**band, "thickness": 9, "width": 0, "color": BAND_COLOR},
        hoverinfo="skip",
        showlegend=False,
    )
    # the legend would show a band as a dot
    fig.add_scatter(
        x=[None],
        y=[None],
        mode="markers",
        marker={"size": 12, "color": BAND_COLOR, "symbol": "square"},
        name="if calibrated (95%)",
    )


def _add_reliability(
    fig: Figure, report: Any, label: str, style: Mapping[str, str]
) -> None:
    """The isotonic line of a report, and its bins with their intervals."""
    bins, color = report.bins, style["color"]
    line = {"shape": "hv", "color": color, "dash": style["dash"], "width": 1.5}
    fig.add_scatter(
        x=report.curve["conf"],
        y=report.curve["accuracy"],
        mode="lines",
        line=line,
        # NaN marks stretches of confidence without rows
        connectgaps=False,
        name=f"{label} isotonic".strip(),
    )
    # area, not width, shows the number of rows
    size = 7 + 15 * (bins["n"] / bins["n"].max()) ** 0.5
    limits = error_bars(bins["accuracy"], bins["low"], bins["high"])
    fig.add_scatter(
        x=bins["conf"],
        y=bins["accuracy"],
        mode="markers",
        marker={"size": size, "color": color, "symbol": style["symbol"]},
        error_y={**limits, "color": color},
        hovertext=list(map(_bin_text, bins.itertuples())),
        hoverinfo="text",
        name=f"{label} bins".strip(),
    )


def _bin_text(b: Any) -> str:
    limits = "" if math.isnan(b.low) else f" [{b.low:.2f}, {b.high:.2f}]"
    return f"{b.lower:.2f} to {b.upper:.2f}: {b.accuracy:.3f}{limits}, n={b.n:.0f}"


def plot(result: object, **options: Any) -> Figure:
    """A plotly figure of a result, of results by name, or of a DataFrame's columns.

    Calls `result.plot(**options)`. Of a mapping: reliability diagrams in one figure, a forest of
    estimates, or bars.
    """
    if isinstance(result, Mapping):
        values = list(result.values())
        # The most telling first: a reliability report has an estimate, too.
        if all(hasattr(v, "bins") and hasattr(v, "curve") for v in values):
            return reliability_figure(result, **options)
        if all(hasattr(getattr(v, "estimate", v), "low") for v in values):
            return forest(result, **options)
        if all(isinstance(v, int | float | Mapping) for v in values):
            return bars(result, **options)
    # a DataFrame's own .plot needs matplotlib
    elif isinstance(result, pd.DataFrame):
        return lines(result, **options)
    elif hasattr(result, "plot"):
        return result.plot(**options)
    # verdicts and grades
    elif hasattr(result, "table"):
        return _plot_counts(result.table(), **options)
    raise DataError(
        f"there is no figure of a {type(result).__name__}",
        where="kit.plot",
        fix="give a result of the kit, a DataFrame, or a mapping of names to numbers or estimates",
    )


def _plot_counts(frame: pd.DataFrame, **options: Any) -> Figure:
    """How many verdicts of each status a criterion has, or how the scores of answers are spread."""
    if "status" in frame:
        counts = pd.crosstab(frame["criterion"], frame["status"])
        largest = counts.sum(axis=1).nlargest(20, keep="first").index
        options = {"title": "Verdicts by criterion", "x": "verdicts", **options}
        return bars(counts.loc[largest].to_dict("index"), **options)  # type: ignore[arg-type]
    spread = pd.cut(frame["score"].dropna(), 10).value_counts(sort=False)
    edges: Any = spread.index
    rows = {
        f"{i.left:.2f} to {i.right:.2f}": n
        for i, n in zip(edges, spread, strict=True)
    }
    rows["unknown"] = int(frame["score"].isna().sum())
    options = {"title": "Scores of answers", "x": "answers", **options}
    return bars(rows, order=False, **options)
