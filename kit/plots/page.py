"""One self-contained HTML page from sections, cards, tables, figures and text. It needs no network."""

import functools
import html
import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import msgspec
import pandas as pd
from plotly.offline import get_plotlyjs

from ..system import paths
from .drawing import axis_of, draw
from .figures import Figure, interval_table

FOLDER = Path(__file__).parent
NUMBERS = 60  # rows of a figure's table


@dataclass(frozen=True)
class Card:
    """A number with its sentence: title, value, sentence, and the anchor of the section it links to.

    value : an estimate, or several by name, which are drawn on an axis; other things are shown as text.
    """

    title: str
    value: object = None
    sentence: str = ""
    link: str = ""


@dataclass(frozen=True)
class Html:
    """HTML that the caller wrote and vouches for: it is not escaped."""

    text: str

    def _repr_html_(self) -> str:
        return self.text


@dataclass(frozen=True)
class Section:
    """A part of a page under its title. The contents link to it; inside another section it is folded."""

    title: str
    blocks: Sequence[object]

    @property
    def anchor(self) -> str:
        """The part of an address after "#"."""
        return re.sub(r"\W+", "-", self.title.lower()).strip("-")


def page(title: str, blocks: Iterable[object], *, path: str | Path) -> Path:
    """Write a page for dark and light, phone, desk and paper; returns its path.

    blocks : Section, Card, Html, DataFrames, plotly figures, other objects that a notebook shows, and
    plain strings (paragraphs). All text is escaped, apart from Html. Figures are static. Only for one
    of another form than the kit's, plotly.js (4.8 MB) is written into the page.
    """
    items = list(blocks)
    tree = [_make_block(b) for b in items if isinstance(b, Section)]
    groups = _groups([b for b in items if not isinstance(b, Section)])
    script = ""
    if "plotly-graph-div" in str((groups, tree)):
        script = get_plotlyjs()
    return paths.write(
        path,
        template(FOLDER / "page.html").render(
            title=title, groups=groups, sections=tree, plotly=script
        ),
    )


@functools.cache
def template(file: Path) -> Any:
    """A template of any room, which may extend or import those of this one. What it prints is escaped."""
    import jinja2

    loader = jinja2.FileSystemLoader([FOLDER, file.parent])
    environment = jinja2.Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        # a figure may lack any part of its layout
        undefined=jinja2.ChainableUndefined,
        loader=loader,
    )
    return environment.get_template(file.name)


def _make_block(block: object) -> dict[str, Any]:
    """What the template prints: a text, HTML, a card, or a section with groups of such blocks."""
    if isinstance(block, str):
        return {"text": block}
    if isinstance(block, Section):
        return {
            "title": block.title,
            "anchor": block.anchor,
            "groups": _groups(block.blocks),
        }
    if not isinstance(block, Card):
        return {"body": _to_html(block)}
    value: Any = {"": block.value} if hasattr(block.value, "low") else block.value
    rows = interval_table(value if isinstance(value, Mapping) else {})
    return {"card": block, "rows": rows.to_dict("records")}


def _groups(blocks: Iterable[object]) -> list[list[dict[str, Any]]]:
    """Neighbours of one kind, which share a grid; and cards in one unit, which share an axis."""
    items = list(map(_make_block, blocks))
    cards = [item for item in items if item.get("rows")]
    ends = [[0.0, *_limits(card["rows"])] for card in cards]
    # shares, agreements, and their differences
    in_one_unit = [max(map(abs, values)) <= 1 for values in ends]
    shared = axis_of(itertools.chain(*itertools.compress(ends, in_one_unit)))
    for card, values, is_shared in zip(cards, ends, in_one_unit, strict=True):
        card["axis"] = shared if is_shared else axis_of(values)
    runs = itertools.groupby(items, key=lambda b: ("card" in b, "groups" in b))
    return [list(run) for _, run in runs]


def _limits(rows: Iterable[Mapping[str, Any]]) -> list[float]:
    """The values and their limits, where they are known."""
    numbers = [row[name] for row in rows for name in ("value", "low", "high")]
    return list(filter(math.isfinite, numbers))


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
        # as a run stores it: in JSON a date is a text, and an unknown number None
        thing = msgspec.json.decode(cast(Figure, thing).to_json())
    if isinstance(thing, Mapping):
        return figure_html(thing)
    # Results escape their own texts; whatever has no HTML is escaped here.
    markup = getattr(thing, "_repr_html_", lambda: None)()
    return (
        f"<pre>{html.escape(str(thing))}</pre>" if markup is None else str(markup)
    )


def figure_html(figure: Mapping[str, Any]) -> str:
    """A plotly figure as a static drawing, with its numbers for screen readers and printers."""
    numbers, drawing = "", draw(figure)
    rows = (figure["layout"].get("meta") or {}).get("rows")
    # named rows have their numbers beside them
    if rows and "rows" not in (drawing or ()):
        table = _to_html(pd.DataFrame(rows).head(NUMBERS))
        numbers = f"<details><summary>Numbers</summary>{table}</details>"
    if drawing:
        macros = template(FOLDER / "drawing.html").module
        return str(macros.figure(drawing, numbers))
    body = Figure(figure).to_html(
        include_plotlyjs=False,
        full_html=False,
        # a tool bar covers the title on a phone
        config={"responsive": True, "displaylogo": False, "displayModeBar": False},
    )
    return f"{body}{numbers}"


def _cell_text(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)
