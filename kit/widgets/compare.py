"""Controls of notebook 05: choose a notebook and a metric, see the runs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..plots import compare as plots
from ..records import Run
from ..runs import compare
from . import drawn, twinned


def show(
    found: Sequence[tuple[Path, Run]], notebook: str, contains: str = "", *, clear: bool = False
) -> Any:
    """The figure that the explorer shows: all metrics of a notebook whose name holds `contains`.

    A row a metric, a mark a run. Shares, scores and differences stand alone where there are any:
    counts and seconds would squash them. clear : only metrics with an interval. None without any.
    """
    rows = compare.metrics(found, notebook=notebook, contains=contains)
    rows = [r for r in rows if not clear or r["low"] is not None]
    rows = [r for r in rows if -1.5 <= r["value"] <= 1.5] or rows
    if not rows:
        return None
    return plots.forest_by_metric(
        rows[:60], title=f"{notebook}: {contains}" if contains else notebook
    )


def _first(found: Sequence[tuple[Path, Run]], contains: str = "") -> Any:
    """What `show` gives for the first notebook."""
    return show(found, min((r.notebook for _, r in found), default="none"), contains)


@twinned(_first)
def explorer(found: Sequence[tuple[Path, Run]], contains: str = "") -> Any:
    """A dropdown of notebooks and a filter of metrics over `show`; headless, its first figure."""
    names = sorted({r.notebook for _, r in found}) or ["none"]
    import ipywidgets as w

    book = w.Dropdown(options=names, description="notebook")
    part = w.Text(
        value=contains,
        placeholder="part of a metric's name",
        description="metric",
        continuous_update=False,
    )

    def draw() -> Any:
        return show(found, book.value, part.value) or w.Label("no metric holds this text")

    return w.VBox([w.HBox([book, part]), drawn(draw, book, part)])
