"""One self-contained HTML page from cards, tables, figures and text. It needs no network."""

import html
import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ..system import paths
from .figures import SERIES_COLORS, escape_label, interval_table

PAGE_TEMPLATE = Path(__file__).with_suffix(".html")
ZERO_LINE_COLOR = "rgba(128,128,128,.6)"


@dataclass(frozen=True)
class Card:
    """A number with its sentence: title, value (shown as text), sentence, and a small figure."""

    title: str
    value: object = None
    sentence: str = ""
    figure: object = None


@dataclass(frozen=True)
class Html:
    """HTML that the caller wrote and vouches for: it is not escaped."""

    text: str

    def _repr_html_(self) -> str:
        return self.text


def page(title: str, blocks: Iterable[object], *, path: str | Path) -> Path:
    """Write a page for dark and light, phone and desk; returns its path.

    blocks : Card, Html, DataFrames, plotly figures, other objects that a notebook shows, and
    plain strings (paragraphs). All text is escaped, apart from Html. plotly.js is embedded once,
    and only if a figure needs it.
    """
    import jinja2

    items = list(map(_make_block, blocks))
    # plotly.js is 4.5 MB: a page of cards does without
    script = ""
    if any("plotly-graph-div" in item.get("body", "") for item in items):
        from plotly.offline import get_plotlyjs

        script = get_plotlyjs()
    # neighbouring cards share a grid, which is one column on a phone
    runs = itertools.groupby(items, key=lambda b: "card" in b)
    groups = [list(run) for _, run in runs]
    # escaping is on for all that the template prints; only bodies built here are marked safe
    environment = jinja2.Environment(autoescape=True, trim_blocks=True)
    template = environment.from_string(PAGE_TEMPLATE.read_text("utf-8"))
    return paths.write(
        path, template.render(title=title, groups=groups, script=script)
    )


def _make_block(block: object) -> dict[str, Any]:
    """What the template prints: a text, or HTML with or without a card around it."""
    if isinstance(block, str):
        return {"text": block}
    if isinstance(block, Card):
        return {
            "card": block,
            "body": "" if block.figure is None else _to_html(block.figure),
        }
    return {"body": _to_html(block)}


def _to_html(thing: object) -> str:
    """HTML of a figure with its numbers, of a DataFrame, or of what a notebook would show."""
    if isinstance(thing, pd.DataFrame):
        # pandas escapes every cell by default, so a model's text stays text.
        return thing.to_html(
            border=0,
            na_rep="",
            float_format="{:.3f}".format,
            index=thing.index.name is not None,
            # Without a formatter of its own, pandas writes a line break as two letters.
            formatters=dict.fromkeys(
                thing.select_dtypes(exclude="number").columns, _cell_text
            ),
        )
    if hasattr(thing, "to_plotly_json"):
        return _figure_html(thing)
    # Results escape their own texts; whatever has no HTML is escaped here.
    markup = getattr(thing, "_repr_html_", lambda: None)()
    return (
        f"<pre>{html.escape(str(thing))}</pre>" if markup is None else str(markup)
    )


def _figure_html(figure: Any) -> str:
    """A figure, and its numbers for screen readers and printers."""
    # a tool bar covers the title on a phone
    options = {"responsive": True, "displaylogo": False, "displayModeBar": False}
    body = figure.to_html(include_plotlyjs=False, full_html=False, config=options)
    rows = (figure.layout.meta or {}).get("rows")
    if rows:
        numbers = _to_html(pd.DataFrame(rows))
        body += f"<details><summary>Numbers</summary>{numbers}</details>"
    return str(body)


def _cell_text(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def small_forest(rows: Mapping[str, object], *, zero: float | None = None) -> Html:
    """Estimates with intervals as a static SVG of 320 points' width.

    rows : name -> estimate (value, low, high), or something with `.estimate`.
    """
    table = interval_table(rows)
    # With NaN among them, min and max would depend on the order of the rows.
    points = table[["value", "low", "high"]].astype(float).to_numpy().ravel()
    points = points[~pd.isna(points)].tolist()
    if zero is not None:
        points.append(zero)
    place = _linear_scale(min(points, default=0.0), max(points, default=1.0))
    parts, height = [], 40 * len(table)
    if zero is not None:
        x = place(zero)
        parts.append(_stroke(x, 0, x, height, ZERO_LINE_COLOR))
    for i, row in enumerate(table.to_dict("records")):
        y, color = 40 * i + 30, SERIES_COLORS[0]
        text = f"{escape_label(row['name'], 20)}: {escape_label(row['result'])}"
        parts.append(
            f'<text x="8" y="{y - 12}" font-size="12" fill="currentColor">{text}</text>'
        )
        if not math.isnan(row["low"]):
            parts.append(
                _stroke(place(row["low"]), y, place(row["high"]), y, color)
            )
        if not math.isnan(row["value"]):
            x = place(row["value"])
            parts.append(f'<circle cx="{x:.1f}" cy="{y}" r="4" fill="{color}"/>')
    body = "".join(parts)
    return Html(
        f'<svg viewBox="0 0 320 {height + 4}" width="320" role="img">{body}</svg>'
    )


def _linear_scale(low: float, high: float) -> Callable[[float], float]:
    """From values in [low, high] to points of a figure of 320."""
    step = (312 - 8) / ((high - low) or 1)
    return lambda v: 8 + (v - low) * step


def _stroke(x1: float, y1: float, x2: float, y2: float, color: str) -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="{color}" stroke-width="2"/>'
