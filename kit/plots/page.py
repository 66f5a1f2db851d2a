"""One self-contained HTML page from cards, tables, figures and text. It needs no network."""

from __future__ import annotations

import html
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..system import paths
from .figures import COLORS, safe

TEMPLATE = Path(__file__).with_suffix(".html")
GRID_LINE = "rgba(128,128,128,.6)"


@dataclass(frozen=True)
class Card:
    """A number with its sentence: title, value (shown as text), sentence, and a small figure."""

    title: str
    value: Any = None
    sentence: str = ""
    figure: Any = None


@dataclass(frozen=True)
class Html:
    """HTML that the caller wrote and vouches for: it is not escaped."""

    text: str

    def _repr_html_(self) -> str:
        return self.text


@dataclass(frozen=True)
class Svg:
    """A small static figure as SVG text."""

    text: str

    def _repr_html_(self) -> str:
        return self.text


@dataclass(frozen=True)
class _Block:
    body: str = ""
    card: Card | None = None
    text: str | None = None


def page(title: str, blocks: Iterable[Any], *, path: str | Path) -> Path:
    """Write a page for dark and light, phone and desk; returns its path.

    blocks : Card, Html, Svg, DataFrames, plotly figures, other objects that a notebook shows, and
    plain strings (paragraphs). All text is escaped, apart from Html. plotly.js is embedded once,
    and only if a figure needs it.
    """
    import jinja2

    items = [_block(block) for block in blocks]
    # plotly.js is 4.5 MB: a page of cards does without
    script = ""
    if any("plotly-graph-div" in item.body for item in items):
        from plotly.offline import get_plotlyjs

        script = get_plotlyjs()
    # neighbouring cards share a grid, which is one column on a phone
    runs = itertools.groupby(items, key=lambda b: b.card is not None)
    groups = [list(run) for _, run in runs]
    # escaping is on for all that the template prints; only bodies built here are marked safe
    environment = jinja2.Environment(autoescape=True, trim_blocks=True)
    template = environment.from_string(TEMPLATE.read_text("utf-8"))
    return paths.write(
        path, template.render(title=title, groups=groups, script=script)
    )


def _block(block: Any) -> _Block:
    if isinstance(block, Card):
        return _Block(
            "" if block.figure is None else _html(block.figure), card=block
        )
    if isinstance(block, str):
        return _Block(text=block)
    return _Block(_html(block))


def _html(thing: Any) -> str:
    """HTML of a figure with its numbers, of a DataFrame, or of what a notebook would show."""
    import pandas as pd

    if isinstance(thing, pd.DataFrame):
        # pandas escapes every cell by default, so a model's text stays text.
        return thing.to_html(
            border=0,
            na_rep="",
            float_format="%.3f",
            index=thing.index.name is not None,
        )
    if hasattr(thing, "to_plotly_json"):
        # a tool bar covers the title on a phone
        options = {
            "responsive": True,
            "displaylogo": False,
            "displayModeBar": False,
        }
        figure = thing.to_html(
            include_plotlyjs=False, full_html=False, config=options
        )
        # screen readers and printers get the numbers
        rows = (thing.layout.meta or {}).get("rows")
        if not rows:
            return figure
        return f"{figure}<details><summary>Numbers</summary>{_html(pd.DataFrame(rows))}</details>"
    # Results escape their own texts; whatever has no HTML is escaped here.
    markup = getattr(thing, "_repr_html_", lambda: None)()
    return f"<pre>{html.escape(str(thing))}</pre>" if markup is None else markup


def small_forest(rows: Mapping[str, Any], *, zero: float | None = None) -> Svg:
    """Estimates with intervals as a static SVG of 320 points' width.

    rows : name -> estimate (value, low, high), or something with `.estimate`.
    """
    items = [(str(name), getattr(e, "estimate", e)) for name, e in rows.items()]
    # With NaN among them, min and max would depend on the order of the rows.
    points = [] if zero is None else [zero]
    for _, e in items:
        points += _numbers(e.value, e.low, e.high)
    low, high = min(points, default=0.0), max(points, default=1.0)
    place = _scale(low, high, 8, 312)
    parts = []
    if zero is not None:
        x = place(zero)
        parts.append(_stroke([(x, 0), (x, 40 * len(items))], GRID_LINE))
    for i, (name, e) in enumerate(items):
        y, limits = 40 * i + 30, _numbers(e.low, e.high)
        text = f"{safe(name, 20)}: {safe(e)}"
        parts.append(
            f'<text x="8" y="{y - 12}" font-size="12" fill="currentColor">{text}</text>'
        )
        parts.append(_stroke([(place(v), y) for v in limits], COLORS[0]))
        if not math.isnan(e.value):
            parts.append(
                f'<circle cx="{place(e.value):.1f}" cy="{y}" r="4" fill="{COLORS[0]}"/>'
            )
    return _svg(parts, 40 * len(items) + 4)


def _numbers(*values: float) -> list[float]:
    return [v for v in values if not math.isnan(v)]


def _scale(low: float, high: float, start: float, end: float) -> Any:
    step = (end - start) / ((high - low) or 1)
    return lambda v: start + (v - low) * step


def _stroke(points: Sequence[tuple[float, float]], color: str) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return (
        f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>'
    )


def _svg(parts: Sequence[str], height: int) -> Svg:
    body = "".join(parts)
    return Svg(
        f'<svg viewBox="0 0 320 {height}" width="320" role="img">{body}</svg>'
    )
