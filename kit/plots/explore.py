"""Explorers: controls (ipywidgets 7.7 or 8) over plain functions; headless, the first result."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import DataError, MissingError
from ..system import progress
from .figures import bars, lines
from .page import Html


def explore(thing: Any, **options: Any) -> Any:
    """Controls that show another part of a thing when they move; headless, its first part.

    thing : a TaskSet (browse tasks, answers, verdicts); a Reliability (number of bins); a Task with
    `verdicts=` (weights of its criteria); anything with `views()` -> {name: function}, such as a
    Workbench; the folder of a training (its steps.jsonl, read again while it plays).
    """
    if isinstance(thing, (str, Path)):
        return _training(Path(thing), **options)
    for part, explorer in EXPLORERS.items():
        if hasattr(thing, part):
            return explorer(thing, **options)
    raise DataError(
        f"there is no explorer of a {type(thing).__name__}", where="explore"
    )


def _interact(
    draw: Callable[..., Any], controls: Mapping[str, Mapping[str, Any]]
) -> Any:
    """Show `draw(**values)` under its controls, anew whenever one moves.

    controls : argument -> {"options": [...]} (a menu), {"value": "..."} (a text), {"value": number,
    ...} (a slider), {"interval": milliseconds} (a clock).
    """
    if progress.headless():
        # an Output widget without a front end can make a runner wait for ever
        first = {}
        for name, c in controls.items():
            options = list(c.get("options", [0]))
            first[name] = c.get("value", options[0])
        return draw(**first)
    import ipywidgets as w
    from IPython.display import display

    widgets = {}
    for name, c in controls.items():
        if "options" in c:
            widgets[name] = w.Dropdown(description=name[:16], **c)
        elif "interval" in c:
            # Play stops at its maximum; a million ticks outlast a training.
            widgets[name] = w.Play(max=10**6, **c)
        elif isinstance(c["value"], str):
            widgets[name] = w.Text(
                description=name[:16], continuous_update=False, **c
            )
        else:
            # Only on release: a drag would draw a figure for each step on its way.
            widgets[name] = w.FloatSlider(
                description=name[:16], continuous_update=False, **c
            )
    out = w.interactive_output(lambda **values: display(draw(**values)), widgets)
    # controls wrap onto new lines on a phone
    row = w.HBox(list(widgets.values()), layout=w.Layout(flex_flow="row wrap"))
    return w.VBox([row, out])


def _browse(tasks: Any) -> Any:
    """Tasks whose text holds the words; the chosen one with answers and verdicts."""
    names = [t.id for t in tasks.tasks]

    def draw(task: str, words: str) -> Html:
        hits = []
        for t in tasks.tasks:
            texts = [t.prompt, *(c.text for c in t.criteria)]
            if words.lower() in " ".join(texts).lower():
                hits.append(t.id)
        if not hits:
            return Html("No task holds these words.")
        choice = task if task in hits else hits[0]
        first = html.escape(", ".join(hits[:12]))
        count = f"<p>{len(hits)} of {len(names)} tasks: {first}</p>"
        return Html(count + _task_html(tasks, names.index(choice)))

    return _interact(draw, {"task": {"options": names}, "words": {"value": ""}})


def _task_html(tasks: Any, place: int) -> str:
    """A task: its criteria as rows, a column of verdicts for each answer and judge; the answers."""
    import pandas as pd

    task = tasks.tasks[place]
    rows = {c.id: {"weight": c.weight, "criterion": c.text} for c in task.criteria}
    for v in tasks.verdicts:
        if v.task_id == task.id and v.criterion_id in rows:
            # "level" alone would not say which one
            cell = f"{v.value:g}" if v.status == "level" else v.status
            rows[v.criterion_id][f"{v.response_id} ({v.judge})"] = cell
    table = pd.DataFrame(list(rows.values())).to_html(
        index=False, na_rep="", border=0
    )
    parts = [f"<h4>{html.escape(task.id)}</h4><p>{_lines(task.prompt)}</p>", table]
    for r in tasks.responses:
        if r.task_id == task.id:
            name = html.escape(f"{r.id} {r.source or ''}")
            parts.append(
                f"<details><summary>{name}</summary><p>{_lines(r.text)}</p></details>"
            )
    return "".join(parts)


def _lines(text: str) -> str:
    return html.escape(text).replace("\n", "<br>")


def _bins(report: Any) -> Any:
    """A reliability diagram with another number of bins."""
    numbers = [5, 8, 10, 15, 20, 30, "auto"]
    return _interact(
        lambda bins: report.in_bins(bins=bins).plot(),
        {"bins": {"options": numbers}},
    )


def _weights(task: Any, *, verdicts: Sequence[Any]) -> Any:
    """The scores of answers when the weights of the criteria change; nothing is judged again."""
    names = {c.id: f"{c.id}: {c.text}" for c in task.criteria}

    def draw(**weights: float) -> Any:
        scores: dict[str, float] = {}
        for name in dict.fromkeys(v.response_id for v in verdicts):
            # an unknown verdict counts neither way
            usable = [v for v in verdicts if v.response_id == name and v.is_known]
            top = total = 0.0
            for v in usable:
                if v.task_id == task.id and v.criterion_id in weights:
                    weight = weights[v.criterion_id]
                    top += max(weight, 0)
                    total += weight * v.value
            if top:
                scores[name] = total / top
        return bars(scores, title="Score of each answer", x="score")

    limits = {
        "min": -2.0,
        "max": max(2.0, *(c.weight for c in task.criteria)),
        "step": 0.1,
    }
    controls = {c.id: {"value": c.weight, **limits} for c in task.criteria}
    return _interact(draw, controls) if names else draw()


def _views(thing: Any) -> Any:
    """The views that a thing offers."""
    return _interact(
        lambda view: thing.views()[view](),
        {"view": {"options": list(thing.views())}},
    )


def _training(folder: Path, *, seconds: float = 5) -> Any:
    """A column of a training's steps; the clock reads the file again."""
    path = folder / "steps.jsonl"

    def steps() -> list[dict[str, Any]]:
        # the last line may be half written
        whole = path.read_text("utf-8").rpartition("\n")[0]
        return [json.loads(line) for line in whole.splitlines()]

    if not path.is_file():
        raise MissingError(
            "there are no steps yet", where=str(path), fix="wait for the first step"
        )
    last = (steps() or [{}])[-1]
    columns = [k for k, v in last.items() if isinstance(v, (int, float))]
    names = sorted(set(columns) - {"step"}, key=lambda k: k != "reward") or [
        "reward"
    ]

    # The clock's value is not used: its tick alone asks for a new drawing.
    def draw(column: str, clock: int) -> Any:
        rows = steps()
        series = {
            "step": [r.get("step") for r in rows],
            column: [r.get(column) for r in rows],
        }
        return lines(series, "step", title=f"{column}, {len(rows)} steps", smooth=5)

    clock = {"interval": int(1000 * seconds)}
    return _interact(draw, {"column": {"options": names}, "clock": clock})


EXPLORERS = {
    "views": _views,
    "in_bins": _bins,
    "criteria": _weights,
    "tasks": _browse,
}
