"""The workbench as controls: edit the prompt, run it, see what flipped and why.

The static twin is `kit.tuning.pages.bench_html`. Only widgets and arguments that ipywidgets 7.7
and 8 both have; what needs no call is drawn at once, into HTML widgets.
"""

from __future__ import annotations

from html import escape
from typing import Any

from ..errors import KitError
from ..tables import dicts_html
from ..tuning.bench import BASELINE, Workbench
from ..tuning.pages import SHOWN, VIEWS, bench_html, diff_html, flips_html, picked
from ..tuning.trials import Trial
from . import live
from .data import error_html


def explorer(bench: Workbench) -> Any:
    """Edit the prompt, try it, filter what changed, judge one again, doubt a label, export.

    Headless: `bench_html`. The widget's attribute `bench` holds the bench.
    """
    if BASELINE not in bench.trials:
        bench.try_(BASELINE, bench.prompt)
    if not live():
        from IPython.display import HTML

        return HTML(bench_html(bench))
    return _Controls(bench).box


class _Controls:
    """The widget's parts and what they do."""

    def __init__(self, bench: Workbench):
        import ipywidgets as w

        self.bench, wide = bench, w.Layout(width="95%")
        self.name = w.Text(value="mine", description="name")
        self.base = w.Dropdown(description="edit from")
        self.text = w.Textarea(layout=w.Layout(width="95%", height="150px"))
        self.run = w.Button(description="try it", icon="play")
        self.diff, self.said, self.trials = w.HTML(), w.HTML(), w.HTML()
        self.new, self.old = w.Dropdown(description="now"), w.Dropdown(description="before")
        self.view = w.Dropdown(options=VIEWS, description="show")
        kinds = sorted({r.task.kind or "" for r in bench.rows} - {""})
        self.slice = w.Dropdown(
            options=[("any", ""), *((k, k) for k in kinds)], description="slice"
        )
        self.flips = w.HTML(layout=wide)
        self.row = w.Dropdown(description="row")
        self.again = w.Button(description="judge again", icon="refresh")
        self.who = w.Text(description="who", placeholder="your name")
        self.why = w.Text(description="why", placeholder="why is the label doubtful?")
        self.doubt = w.Button(description="doubt label", icon="question")
        self.path = w.Text(value="workbench.html", description="file")
        self.save = w.Button(description="export", icon="save")
        rows = [
            w.HBox([self.name, self.base, self.run]),
            self.text,
            self.diff,
            self.said,
            self.trials,
            w.HBox([self.old, self.new, self.view, self.slice]),
            self.flips,
            w.HBox([self.row, self.again]),
            w.HBox([self.who, self.why, self.doubt]),
            w.HBox([self.path, self.save]),
        ]
        self.box = w.VBox(rows)
        self.box.bench = bench
        self._wire()

    def _wire(self) -> None:
        self.busy = False
        self._names(BASELINE)
        self.text.value = self.bench.prompt
        self.base.observe(self._begin, "value")
        self.text.observe(self._draw_diff, "value")
        for control in (self.new, self.old, self.view, self.slice):
            control.observe(self._draw, "value")
        for button, work in (
            (self.run, self._try),
            (self.again, self._ask_again),
            (self.doubt, self._doubt),
            (self.save, self._export),
        ):
            button.on_click(self._guarded(button, work))
        self._draw()

    def _guarded(self, button: Any, work: Any) -> Any:
        """A click that cannot be doubled, and whose errors are shown."""

        def click(_: Any) -> None:
            button.disabled = True
            try:
                work()
            except KitError as e:
                self.said.value = error_html(e)
            finally:
                button.disabled = False

        return click

    def _names(self, now: str) -> None:
        names = list(self.bench.trials)
        self.busy = True
        for control in (self.base, self.new, self.old):
            control.options = names
        self.new.value = self.base.value = now
        self.old.value = self.bench.trials[now].parent or now
        self.busy = False

    def _begin(self, _: Any = None) -> None:
        if not self.busy:
            self.text.value = self.bench.trials[self.base.value].prompt

    def _draw_diff(self, _: Any = None) -> None:
        old = self.bench.trials[self.base.value]
        self.diff.value = diff_html(Trial("", self.text.value), old)

    def _draw(self, _: Any = None) -> None:
        if self.busy:
            return
        self.trials.value = dicts_html(self.bench.data())
        found = picked(
            self.bench, self.new.value, self.old.value, self.view.value, self.slice.value
        )
        self.flips.value = flips_html(found)
        self.row.options = [(f"row {f.row}: {f.criterion[:60]}", f.row) for f in found[:SHOWN]]

    def _try(self) -> None:
        self.said.value = "<p>asking ...</p>"
        trial = self.bench.try_(self.name.value, self.text.value, parent=self.base.value)
        self.said.value = (
            f"<p>{escape(trial.name)}: {trial.asked} rows. {escape(trial.stopped)}</p>"
        )
        self._names(trial.name)
        self._draw()

    def _chosen(self) -> int:
        if self.row.value is None:
            raise KitError("no row is chosen", where="row", fix="choose one of the rows shown")
        return self.row.value

    def _ask_again(self) -> None:
        v = self.bench.again(self._chosen(), self.new.value)
        self.said.value = f"<p>asked again: {v.status}. {escape(v.reason or v.failure or '')}</p>"

    def _doubt(self) -> None:
        d = self.bench.doubt(self._chosen(), self.who.value, self.why.value)
        self.said.value = f"<p>row {d.row} is left out of the statistics: {escape(d.why)}</p>"
        self._draw()

    def _export(self) -> None:
        path = self.bench.export(self.path.value)
        self.said.value = f"<p>written: {escape(str(path))}</p>"
