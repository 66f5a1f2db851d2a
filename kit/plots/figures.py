"""Plotly figures that read on a phone, in dark and in light, each with its numbers as a table."""

from __future__ import annotations

import html
import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import DataError

if TYPE_CHECKING:
    from plotly.graph_objects import Figure as Figure
else:
    # plotly is imported when the first figure is drawn
    Figure = Any

# Okabe & Ito's colours, which colour-blind people tell apart
COLORS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#7a7a7a",
)
GREY = "#7a7a7a"  # text and lines that read on white and on black
GRID = "rgba(128,128,128,.25)"


def safe(text: Any, limit: int = 120) -> str:
    """Text for a label, cut and escaped: plotly renders some HTML.

    >>> safe("<b>bold</b>", 8)
    '&lt;b&gt;bold…'
    """
    text = str(text)
    # Cut before it is escaped: half an entity would be printed as it is.
    short = text if len(text) <= limit else f"{text[: limit - 1]}…"
    return html.escape(short, quote=False)


def theme(
    fig: Any,
    *,
    title: str = "",
    subtitle: str = "",
    x: str = "",
    y: str = "",
    height: int = 420,
    rows: Sequence[Mapping[str, Any]] = (),
    **layout: Any,
) -> Any:
    """Give a plotly figure the look of the kit; all titles are escaped.

    rows : the figure's numbers, kept in `fig.layout.meta["rows"]`. `page` shows them as a table.
    """
    # 44 characters fit on a phone
    head = [f"<b>{safe(part)}</b>" for part in textwrap.wrap(title, 44)]
    head += [f"<sub>{safe(part)}</sub>" for part in textwrap.wrap(subtitle, 60)]
    # at the top left, whatever the height
    place = {"x": 0.02, "y": 1, "yref": "container"}
    fig.update_layout(
        # plotly's own templates bring a white or a dark ground
        template="none",
        colorway=COLORS,
        font={"color": GREY, "size": 12},
        title={"text": "<br>".join(head), "font": {"size": 15}, **place},
        title_yanchor="top",
        # plotly lifts a title of several lines by one
        title_pad_t=14 * min(len(head), 2),
        # transparent: the page or notebook behind decides on dark or light
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        height=height + 18 * len(head),
        margin={"l": 10, "r": 14, "t": 24 + 22 * len(head), "b": 10},
        hoverlabel={"align": "left"},
    )
    low = {"yref": "container", "y": 0.01, "yanchor": "bottom"}
    fig.update_layout(
        legend={"orientation": "h", **low},
        # the text alternative travels with the figure, also through JSON
        meta={"rows": [dict(row) for row in rows]},
    )
    # last, so that a caller may override the look
    fig.update_layout(**layout)
    grid = {"gridcolor": GRID, "zerolinecolor": GRID, "automargin": True}
    return fig.update_xaxes(title=safe(x), **grid).update_yaxes(
        title=safe(y), **grid
    )


def ends(
    values: Sequence[float], low: Sequence[float], high: Sequence[float]
) -> dict[str, Any]:
    """Error bars from limits; an unknown limit (NaN) has none."""
    up = [h - v for v, h in zip(values, high, strict=True)]
    down = [v - b for v, b in zip(values, low, strict=True)]
    return {"type": "data", "symmetric": False, "array": up, "arrayminus": down}


def forest(
    rows: Mapping[str, Any],
    *,
    title: str = "",
    subtitle: str = "",
    x: str = "",
    zero: float | None = None,
) -> Any:
    """Estimates with their intervals, one line each.

    rows : name -> estimate (value, low, high), or something with `.estimate`.
    zero : where to draw a dashed line, for example 0 for differences.
    """
    from plotly import graph_objects as go

    items = {str(k): getattr(e, "estimate", e) for k, e in rows.items()}
    values = [e.value for e in items.values()]
    low = [e.low for e in items.values()]
    high = [e.high for e in items.values()]
    # plotly puts two rows of the same name on one line
    names = _short_names(items)
    hover = [f"{safe(k)}<br>{safe(e)}" for k, e in items.items()]
    fig = go.Figure()
    fig.add_scatter(x=values, y=names, error_x=ends(values, low, high))
    fig.update_traces(mode="markers", marker={"size": 9})
    fig.update_traces(hovertext=hover, hoverinfo="text")
    # a reader looks first whether the interval crosses this line
    if zero is not None:
        fig.add_vline(zero, line_dash="dash", line_color=GREY)
    numbers = [{"name": k, "result": str(e)} for k, e in items.items()]
    return theme(
        fig,
        title=title,
        subtitle=subtitle,
        x=x,
        height=90 + 30 * len(items),
        rows=numbers,
        # plotly counts upwards, and the first row belongs on top.
        yaxis_autorange="reversed",
        # As names: plotly would place a name such as "2024" on a scale of numbers.
        yaxis_type="category",
        showlegend=False,
    )


def _short_names(
    names: Sequence[str] | Mapping[str, Any], limit: int = 26
) -> list[str]:
    """Names for an axis; two that are equal when cut stay apart."""
    out: list[str] = []
    for name in names:
        short = safe(name, limit)
        out.append(short if short not in out else f"{short} ({len(out) + 1})")
    return out


def bars(
    values: Mapping[str, Any],
    *,
    title: str = "",
    subtitle: str = "",
    x: str = "",
    order: bool = True,
) -> Any:
    """Horizontal bars; a mapping of mappings stacks its parts, a colour each.

    values : name -> number, or name -> {part: number}. order : the longest first.
    """
    from plotly import graph_objects as go

    items = {k: v if isinstance(v, Mapping) else {"": v} for k, v in values.items()}
    names = list(items)
    if order:
        names.sort(key=lambda k: -sum(v or 0 for v in items[k].values()))
    parts = list(dict.fromkeys(part for name in names for part in items[name]))
    fig, labels = go.Figure(), _short_names(names)
    for part in parts:
        lengths = [items[name].get(part) for name in names]
        fig.add_bar(x=lengths, y=labels, name=safe(part, 30), orientation="h")
    numbers = [
        {"name": name, **{p or "value": items[name].get(p) for p in parts}}
        for name in names
    ]
    more = {
        "yaxis_autorange": "reversed",
        "yaxis_type": "category",
        # The mode "stack" would draw negative parts over the positive ones.
        "barmode": "relative",
    }
    more["showlegend"] = len(parts) > 1
    return theme(
        fig,
        title=title,
        subtitle=subtitle,
        x=x,
        height=90 + 24 * len(names) + 20 * (len(parts) > 1),
        rows=numbers,
        **more,
    )


def lines(
    data: Any,
    x: Any = None,
    *,
    title: str = "",
    subtitle: str = "",
    x_title: str = "",
    y_title: str = "",
    bands: Mapping[str, tuple[Any, Any]] | None = None,
    smooth: int = 1,
    stack: bool = False,
) -> Any:
    """Series as lines.

    data : a DataFrame, or name -> values (n,). x : the name of a column, or (n,) values; default 0,
    1, 2, ... bands : name of a series -> (low, high), drawn as a band. smooth : width of a running
    mean, for the eye. stacked : areas on top of each other, for shares.
    """
    import pandas as pd
    from plotly import graph_objects as go

    frame = pd.DataFrame(data)
    if isinstance(x, str):
        x_title = x_title or x
        frame, x = frame.drop(columns=x), frame[x]
    at = list(range(len(frame)) if x is None else x)
    fig = go.Figure()
    for (name, column), color in zip(
        frame.items(), _colors(len(frame.columns)), strict=True
    ):
        # None and text become gaps, not zeros
        y = pd.to_numeric(column, errors="coerce").astype(float)
        if smooth > 1:
            fig.add_scatter(
                x=at,
                y=list(y),
                mode="markers",
                marker={"size": 4, "color": color, "opacity": 0.4},
                showlegend=False,
            )
            y = y.rolling(smooth, min_periods=1).mean()
        if bands and name in bands:
            low, high = (list(v) for v in bands[name])
            fig.add_scatter(
                x=at + at[::-1],
                y=high + low[::-1],
                fill="toself",
                line={"width": 0, "color": color},
                opacity=0.2,
                mode="lines",
                hoverinfo="skip",
                showlegend=False,
            )
        group = "one" if stack else None
        # a line alone would hide a single value between two unknown ones
        few = "lines+markers" if len(at) < 30 and not stack else "lines"
        label = safe(name, 30)
        fig.add_scatter(
            x=at,
            y=list(y),
            mode=few,
            name=label,
            stackgroup=group,
            line_color=color,
        )
    numbers = frame.assign(**{x_title or "x": at}).to_dict("records")
    several = len(frame.columns) > 1
    return theme(
        fig,
        title=title,
        subtitle=subtitle,
        height=300 + 24 * several,
        x=x_title,
        y=y_title,
        showlegend=several,
        rows=numbers,
    )


def _colors(n: int) -> list[str]:
    return [COLORS[i % len(COLORS)] for i in range(n)]


def heatmap(
    table: Any,
    names: Sequence[Any],
    *,
    title: str = "",
    subtitle: str = "",
    x: str = "",
    y: str = "",
) -> Any:
    """Counts (q, q) as a heat map, coloured by the share of each column."""
    import numpy as np
    from plotly import graph_objects as go

    counts, labels = np.asarray(table), [safe(name, 16) for name in names]
    # by column, so that a common level does not outshine a rare one
    share = counts / counts.sum(0, keepdims=True).clip(min=1)
    # dark enough at 0 for white counts on it
    look = {"colorscale": [[0, "#5f8fb5"], [1, "#004a75"]], "zmin": 0}
    fig = go.Figure().add_heatmap(
        z=share, x=labels, y=labels, zmax=1, showscale=False, **look
    )
    fig.update_traces(
        text=counts,
        texttemplate="%{text:.0f}",
        textfont={"size": 15, "color": "white"},
    )
    columns, numbers = [str(name) for name in names], []
    for name, row in zip(names, counts, strict=True):
        numbers.append({y or "row": name, **dict(zip(columns, row, strict=True))})
    return theme(
        fig,
        title=title,
        subtitle=subtitle,
        x=x,
        y=y,
        height=150 + 44 * len(labels),
        xaxis_type="category",
        yaxis_type="category",
        rows=numbers,
    )


def reliability_figure(
    series: Mapping[str, Any],
    *,
    title: str = "Reliability",
    subtitle: str = "",
    x: str = "stated confidence",
    y: str = "share right",
) -> Any:
    """Reliability diagram: accuracy against confidence, a colour for each name.

    series : name -> something with `bins` (DataFrame: lower, upper, n, conf, accuracy, low, high,
    band_low, band_high) and `curve` (DataFrame: conf, accuracy). Bins inside the grey band are
    consistent with perfect calibration.
    """
    from plotly import graph_objects as go

    diagonal = {
        "x0": 0,
        "y0": 0,
        "x1": 1,
        "y1": 1,
        "line": {"dash": "dash", "color": GREY},
    }
    fig, numbers = go.Figure().add_shape(type="line", **diagonal), []
    for (name, r), color in zip(series.items(), _colors(len(series)), strict=True):
        bins = r.bins
        # bands of several series would hide each other
        if len(series) == 1:
            middle = (bins["band_low"] + bins["band_high"]) / 2
            limits = ends(middle, bins["band_low"], bins["band_high"])
            band = {
                **limits,
                "thickness": 9,
                "width": 0,
                "color": "rgba(128,128,128,.35)",
            }
            fig.add_scatter(
                x=bins["conf"],
                y=middle,
                mode="markers",
                marker={"size": 1, "color": GREY},
                error_y=band,
                hoverinfo="skip",
                showlegend=False,
            )
            # the legend would show a band as a dot
            key = {"size": 12, "color": band["color"], "symbol": "square"}
            fig.add_scatter(
                x=[None],
                y=[None],
                mode="markers",
                marker=key,
                name="if calibrated (95%)",
            )
        label, curve = safe(name, 20), r.curve
        fig.add_scatter(
            x=curve["conf"],
            y=curve["accuracy"],
            mode="lines",
            line={"shape": "hv", "color": color, "width": 1.5},
            # NaN marks stretches of confidence without rows
            connectgaps=False,
            name=f"{label} isotonic".strip(),
        )
        # area, not width, shows the number of rows
        area = 7 + 15 * (bins["n"] / bins["n"].max()) ** 0.5
        share = bins["accuracy"]
        limits = ends(share, bins["low"], bins["high"])
        hover = [_bin_text(b) for b in bins.itertuples()]
        fig.add_scatter(
            x=bins["conf"],
            y=share,
            mode="markers",
            marker={"size": area, "color": color},
            error_y={**limits, "color": color},
            hovertext=hover,
            hoverinfo="text",
            name=f"{label} bins".strip(),
        )
        numbers += [
            {"series": name, **row} for row in bins.round(3).to_dict("records")
        ]
    # Wider than [0, 1], so that markers at its ends are not cut.
    span = [-0.03, 1.03]
    return theme(
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


def _bin_text(b: Any) -> str:
    limits = "" if math.isnan(b.low) else f" [{b.low:.2f}, {b.high:.2f}]"
    place = f"{b.lower:.2f} to {b.upper:.2f}"
    return f"{place}: {b.accuracy:.3f}{limits}, n={b.n:.0f}"


def plot(result: Any, **options: Any) -> Any:
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
        if all(isinstance(v, (int, float, Mapping)) for v in values):
            return bars(result, **options)
    elif hasattr(result, "iterrows"):  # a DataFrame's own .plot needs matplotlib
        return lines(result, **options)
    elif hasattr(result, "plot"):
        return result.plot(**options)
    raise DataError(
        f"there is no figure of a {type(result).__name__}", where="kit.plot"
    )
