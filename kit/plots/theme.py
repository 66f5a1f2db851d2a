"""One plotly template: readable for colour-blind eyes (Okabe-Ito), in print, and in plotly 5.24 and
later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..page import escape

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
MARKERS = ("circle", "square", "diamond", "triangle-up", "x", "star", "cross", "hexagon")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
GREY = "#6b6b6b"
TOP, BOTTOM = 84, 56  # pixels of margin: a title of two lines above, ticks and the axis title below


def figure(
    *traces: Mapping[str, Any],
    title: str = "",
    x: str = "",
    y: str = "",
    height: int = 420,
    width: int | None = None,
    **layout: Any,
) -> Any:
    """A figure in the kit's style.

    traces : as plotly takes them, each with its `type` where it is no "scatter". title : may hold a
    second line in <br><sub>...</sub>. layout : what is not as in the style, for `update_layout`.
    """
    import plotly.graph_objects as go

    fig = go.Figure(list(traces))
    axis = dict(
        showgrid=True,
        gridcolor="#e6e6e6",
        zeroline=False,
        linecolor="#444",
        ticks="outside",
        automargin=True,
    )
    fig.update_layout(
        template="plotly_white",
        colorway=list(COLORS),
        height=height,
        width=width,
        title=dict(text=title, x=0.0, xanchor="left", font=dict(size=16)),
        font=dict(family="Helvetica, Arial, DejaVu Sans, sans-serif", size=13, color="#222"),
        margin=dict(l=64, r=24, t=TOP, b=BOTTOM),
        hoverlabel=dict(align="left"),
        legend=dict(orientation="h", yanchor="top", y=below(height), xanchor="left", x=0.0),
        paper_bgcolor="white",
        plot_bgcolor="white",
        xaxis=dict(axis, title_text=x or None),
        yaxis=dict(axis, title_text=y or None),
    )
    return fig.update_layout(**layout)


def upright(x: float | None, dash: str = "dash") -> list[dict[str, Any]]:
    """A vertical line through the whole figure, as `shapes`; none where x is None."""
    ends = dict(x0=x, x1=x, xref="x", y0=0, y1=1, yref="y domain")
    return [] if x is None else [dict(ends, type="line", line=dict(color=GREY, dash=dash))]


def safe(text: Any, limit: int = 400) -> str:
    """Text from outside for a label, cut: plotly renders some HTML, and knows no &quot;."""
    text = str(text)
    return escape(text if len(text) <= limit else text[: limit - 1] + "\u2026", quote=False)


def below(height: int) -> float:
    """Where a legend begins so that it clears the axis title, as plotly counts: in heights of the
    plotting area.

    A share that is right for a tall figure puts the legend on the axis title of a flat one.

    >>> below(440), round(below(240), 2)
    (-0.24, -0.72)
    """
    return -72 / max(height - TOP - BOTTOM, 60)


def band(
    x: Sequence[Any],
    low: Sequence[Any],
    high: Sequence[Any],
    color: str,
    name: str,
    alpha: float = 0.18,
) -> list[dict[str, Any]]:
    """The trace that fills between two curves, where both are known; none where they never are."""
    both = (r for r in zip(x, low, high, strict=True) if None not in r)
    rows = [r for r in both if r[1] == r[1] and r[2] == r[2]]
    if not rows:
        return []
    xs, lo, hi = zip(*rows, strict=True)
    area = dict(
        x=[*xs, *xs[::-1]],
        y=[*hi, *lo[::-1]],
        fill="toself",
        fillcolor=rgba(color, alpha),
        line=dict(width=0),
        mode="lines",
        name=name,
        hoverinfo="skip",
    )
    return [area]


def whiskers(rows: Iterable[tuple[Any, Any, Any]], **more: Any) -> dict[str, Any]:
    """Error bars from (value, low, high) each; none to an end that is not known.

    >>> whiskers([(0.5, 0.25, 1.0), (1.0, None, float("nan"))])["arrayminus"]
    [0.25, None]
    """
    ends = [[None if e is None or e != e else abs(e - v) for e in (a, b)] for v, a, b in rows]
    low, high = ([e[side] for e in ends] for side in (0, 1))
    return dict(type="data", symmetric=False, array=high, arrayminus=low, **more)


def rgba(color: str, alpha: float) -> str:
    """A hex colour with an alpha, for bands.

    >>> rgba("#0072B2", 0.2)
    'rgba(0,114,178,0.2)'
    """
    r, g, b = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({r},{g},{b},{alpha})"
