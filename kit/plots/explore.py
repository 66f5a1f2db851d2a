"""Explorers: controls (ipywidgets 7.7 or 8) over plain functions; headless, the first result."""

import html
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..errors import DataError, MissingError
from ..records import count_of
from ..system import paths, progress
from .figures import Figure, lines
from .page import Html
from .side_by_side import side_by_side

# argument of the drawing function -> {"options": [...]} (a menu), {"value": "..."} (a text),
# {"interval": milliseconds} (a clock)
Controls = Mapping[str, Mapping[str, Any]]


def explore(thing: object, **options: Any) -> Any:
    """Controls that show another part of a thing when they move; headless, its first part.

    thing : a TaskSet (browse tasks, answers, verdicts); a Reliability (number of bins); anything
    with `views()` -> {name: function}, such as a Workbench; the folder of a training (its
    steps.jsonl, read again while it plays).
    """
    if isinstance(thing, str | Path):
        return _explore_training(Path(thing), **options)
    for part, explorer in EXPLORERS.items():
        if hasattr(thing, part):
            return explorer(thing, **options)
    raise DataError(
        f"there is no explorer of a {type(thing).__name__}",
        where="explore",
        fix="kit.plot draws results; explore takes a TaskSet, a Reliability, a Workbench or a training's folder",
    )


def _interact(draw: Callable[..., object], controls: Controls) -> Any:
    """Show `draw(**values)` under its controls, anew whenever one moves."""
    if progress.headless():
        # an Output widget without a front end can make a runner wait for ever
        first = {}
        for name, c in controls.items():
            options = list(c.get("options", [0]))
            first[name] = c.get("value", options[0])
        return draw(**first)
    import ipywidgets as w
    from IPython import display

    widgets = {name: _make_widget(name, c) for name, c in controls.items()}
    # IPython's own function has no types
    show_output: Callable[[object], object] = display.display
    out = w.interactive_output(
        lambda **values: show_output(draw(**values)), widgets
    )
    # controls wrap onto new lines on a phone
    row = w.HBox(list(widgets.values()), layout=w.Layout(flex_flow="row wrap"))
    return w.VBox([row, out])


def _make_widget(name: str, control: Mapping[str, Any]) -> Any:
    import ipywidgets as w

    if "interval" in control:
        # Play stops at its maximum; a million ticks outlast a training.
        return w.Play(max=10**6, **control)
    if "options" in control:
        return w.Dropdown(description=name[:16], **control)
    # Only when the text is entered: each key would draw anew.
    return w.Text(description=name[:16], continuous_update=False, **control)


def _explore_tasks(tasks: Any) -> Any:
    """Tasks whose text holds the words; the chosen one with answers and verdicts."""
    names = [t.id for t in tasks.tasks]

    def draw(task: str, words: str) -> Html:
        hits = []
        for t in tasks.tasks:
            text = " ".join([t.prompt, *(c.text for c in t.criteria)])
            if words.lower() in text.lower():
                hits.append(t.id)
        count = (
            f"<p>The words stand in {len(hits)} of {count_of(len(names), 'task')}: "
            f"{html.escape(', '.join(hits[:12]))}</p>"
        )
        # The page never shows another task than the menu.
        if task not in hits:
            return Html(count + "<p>The task in the menu is not one of them.</p>")
        answers = [r for r in tasks.responses if r.task_id == task]
        table = side_by_side(
            tasks.tasks[names.index(task)], answers, tasks.verdicts
        )
        return Html(count + table.text)

    return _interact(draw, {"task": {"options": names}, "words": {"value": ""}})


def _explore_bins(report: Any) -> Any:
    """A reliability diagram with another number of bins."""
    return _interact(
        lambda bins: report.in_bins(bins=bins).plot(),
        {"bins": {"options": [5, 8, 10, 15, 20, 30, "auto"]}},
    )


def _explore_views(thing: Any) -> Any:
    """The views that a thing offers."""
    return _interact(
        lambda view: thing.views()[view](),
        {"view": {"options": list(thing.views())}},
    )


def _explore_training(folder: Path, *, seconds: float = 5) -> Any:
    """A column of a training's steps; the clock reads the file again."""
    path = folder / "steps.jsonl"
    if not path.is_file():
        raise MissingError(
            "there are no steps yet", where=str(path), fix="wait for the first step"
        )
    last = (paths.read_log(path) or [{"reward": 0.0}])[-1]
    numeric = {k for k, v in last.items() if isinstance(v, int | float)} - {"step"}
    # the reward first, because it is what a training is about
    names = sorted(numeric, key=lambda k: (k != "reward", k))

    # The clock's value is not used: its tick alone asks for a new drawing.
    def draw(column: str, clock: int) -> Figure:
        rows = paths.read_log(path)
        series = {k: [r.get(k) for r in rows] for k in ("step", column)}
        return lines(
            series,
            "step",
            title=f"{column}, {count_of(len(rows), 'step')}",
            smooth=5,
        )

    return _interact(
        draw,
        {
            "column": {"options": names},
            "clock": {"interval": int(1000 * seconds)},
        },
    )


EXPLORERS: dict[str, Callable[..., Any]] = {
    "views": _explore_views,
    "in_bins": _explore_bins,
    "tasks": _explore_tasks,
}
