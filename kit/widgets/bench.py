"""The workbench as controls: edit the prompt, run it, see what flipped and why.

The static twin is `kit.tuning.pages.bench_html`. Only widgets and arguments that ipywidgets 7.7
and 8 both have; what needs no call is drawn at once, into HTML widgets.
"""

from __future__ import annotations

from typing import Any

from ..errors import KitError
from ..page import escape
from ..tables import dicts_html
from ..tuning.bench import BASELINE, Workbench
from ..tuning.pages import SHOWN, VIEWS, bench_html, diff_html, flips_html, picked
from ..tuning.trials import Trial
from . import twinned, watch


def _begun(bench: Workbench) -> str:
    bench._trial(BASELINE)
    return bench_html(bench)


@twinned(_begun)
def explorer(bench: Workbench) -> Any:
    """Edit the prompt, try it, filter what changed, judge one again, doubt a label, export.

    Headless: `bench_html`. The widget's attribute `bench` holds the bench.
    """
    bench._trial(BASELINE)
    return _Controls(bench).box


class _Controls:
    """The widget's parts and what they do."""

    def __init__(self, bench: Workbench):
        import ipywidgets as w

        self.bench, self.busy = bench, False
        kinds = sorted({r.task.kind or "" for r in bench.rows} - {""})
        wide = w.Layout(width="95%")
        self.name, self.base = (
            w.Text(value="mine", description="name"),
            w.Dropdown(description="from"),
        )
        self.text = w.Textarea(layout=w.Layout(width="95%", height="150px"))
        self.diff, self.said, self.trials, self.flips = (w.HTML(layout=wide) for _ in range(4))
        self.new, self.old = w.Dropdown(description="now"), w.Dropdown(description="before")
        self.view = w.Dropdown(options=VIEWS, description="show")
        self.slice = w.Dropdown(
            options=[("any", ""), *((k, k) for k in kinds)], description="slice"
        )
        self.row, self.who = w.Dropdown(description="row"), w.Text(description="who")
        self.why = w.Text(description="why", placeholder="why is the label doubtful?")
        self.path = w.Text(value="workbench.html", description="file")
        works = ("try it", self._try), ("judge again", self._again), ("doubt label", self._doubt)
        run, again, doubt, save = (
            self._button(w.Button(description=name), work)
            for name, work in (*works, ("export", self._export))
        )
        rows = (
            [self.name, self.base, run],
            [self.text],
            [self.diff],
            [self.said],
            [self.trials],
            [self.old, self.new, self.view, self.slice],
            [self.flips],
            [self.row, again],
            [self.who, self.why, doubt],
            [self.path, save],
        )
        self.box = w.VBox([w.HBox(row) if len(row) > 1 else row[0] for row in rows])
        self.box.bench = bench
        self._wire()

    def _wire(self) -> None:
        self._names(BASELINE)
        self.text.value = self.bench.prompt
        self.base.observe(self._begin, "value")
        self.text.observe(self._draw_diff, "value")
        watch(self._draw, self.new, self.old, self.view, self.slice)

    def _button(self, button: Any, work: Any) -> Any:
        """A button that cannot be pressed twice at once, and whose errors are shown."""

        def click(_: Any) -> None:
            button.disabled = True
            try:
                self.said.value = f"<p>{escape(work())}</p>"
            except KitError as e:
                self.said.value = f"<pre style='color:#a00'>{escape(str(e))}</pre>"
            finally:
                button.disabled = False

        button.on_click(click)
        return button

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
        self.diff.value = diff_html(Trial("", self.text.value), self.bench.trials[self.base.value])

    def _draw(self, _: Any = None) -> None:
        if self.busy:
            return
        self.trials.value = dicts_html(self.bench.data())
        found = picked(
            self.bench, self.new.value, self.old.value, self.view.value, self.slice.value
        )
        self.flips.value = flips_html(found)
        rows = [(f"row {f['row']}: {f['criterion'][:60]}", f["row"]) for f in found]
        self.row.options = rows[:SHOWN]
        self.row.value = rows[0][1] if rows else None  # an empty one starts with nothing chosen

    def _try(self) -> str:
        self.said.value = "<p>asking ...</p>"
        trial = self.bench.try_(self.name.value, self.text.value, parent=self.base.value)
        self._names(trial.name)
        self._draw()
        return f"{trial.name}: {trial.asked} rows. {trial.stopped}"

    def _chosen(self) -> int:
        if self.row.value is None:
            raise KitError("no row is chosen", where="row", fix="choose one of the rows shown")
        return self.row.value

    def _again(self) -> str:
        v = self.bench.again(self._chosen(), self.new.value)
        return f"asked again: {v.status}. {v.reason or v.failure or ''}"

    def _doubt(self) -> str:
        self.bench.doubt(self._chosen(), self.who.value, self.why.value)
        self._draw()
        return "the label is left out of the statistics"

    def _export(self) -> str:
        return f"written: {self.bench.export(self.path.value)}"
