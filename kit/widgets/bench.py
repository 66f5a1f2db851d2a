"""The workbench as controls: edit the prompt, run it, see what flipped and why.

Static twins: `bench_html` (trials, diff, flips) and `page` (the same as a file with filters). Only
widgets and arguments that ipywidgets 7.7 and 8 both have; what needs no call is drawn at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

from ..errors import KitError
from ..tables import dicts_html, rows_html
from ..tuning.bench import BASELINE, Workbench
from ..tuning.trials import Flip, Trial
from . import live
from .data import error_html

VIEWS = ("flips", "wrong now", "wrong before", "unknown", "trials disagree", "all")
MARKS = {"same": "", "gone": "&minus; ", "new": "+ "}
STYLES = {
    "same": "",
    "gone": " style='background:#fde8e6;text-decoration:line-through'",
    "new": " style='background:#dff3ea'",
}
HEAD = ("row", "part", "what changed", "people", "before", "now", "criterion", "answer", "reasons")
SHOWN = 40
PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none';
style-src 'unsafe-inline'; script-src 'unsafe-inline'"><title>Workbench</title>
<style>body{font:15px/1.5 Helvetica,Arial,sans-serif;margin:16px auto;max-width:1200px;
padding:0 12px}table{border-collapse:collapse}td,th{border-top:1px solid #d8dee4}</style></head>
<body><h1>Judge workbench</h1><label>show <select id="view"></select></label>
<span id="count"></span>"""
SCRIPT = """<script>
const all = [...document.querySelectorAll("table.flips tr")];
const rows = all.filter(r => r.cells[2] && r.cells[2].tagName === "TD");
const kind = r => r.cells[2].textContent.trim();
const view = document.getElementById("view"), count = document.getElementById("count");
for (const k of ["everything", ...new Set(rows.map(kind))]) {
  view.append(Object.assign(document.createElement("option"), { textContent: k }));
}
function draw() {
  for (const r of rows) r.hidden = view.value !== "everything" && kind(r) !== view.value;
  count.textContent = rows.filter(r => !r.hidden).length + " of " + rows.length + " rows";
}
view.onchange = draw;
draw();
</script></body></html>"""


def diff_html(new: Trial, old: Trial) -> str:
    """What a prompt took out of another and put in; escaped.

    >>> diff_html(Trial("b", "Be strict."), Trial("a", "Be kind.")).count("<span")
    2
    """
    parts = [
        f"<span{STYLES[kind]}>{MARKS[kind]}{escape(text)}</span><br>"
        for kind, text in new.diff(old)
    ]
    return f"<div style='white-space:pre-wrap'>{''.join(parts)}</div>"


def flips_html(flips: Iterable[Flip], *, top: int = SHOWN) -> str:
    """Answers under two trials as a table; all text is escaped."""
    flips = list(flips)
    body = [
        (f.row, f.part, f.effect, f.human, f.before, f.now, f.criterion, _answer(f), _reasons(f))
        for f in flips[:top]
    ]
    table = rows_html(HEAD, body, raw={7, 8}).replace("<table", "<table class='flips'", 1)
    return table + f"<p>{len(body)} of {len(flips)} rows</p>"


def _answer(f: Flip) -> str:
    question = f"<small>{escape(f.prompt[:300])}</small><br>" if f.prompt else ""
    return question + escape(f.answer[:1200])


def _reasons(f: Flip) -> str:
    def one(word: str, reason: str, p: float | None) -> str:
        sure = "" if p is None else f" (P(met) {p:.2f})"
        return f"<b>{word}</b>{sure}: {escape(reason[:400])}"

    lines = one("before", f.reason_before, f.p_before), one("now", f.reason_now, f.p_now)
    return "<br>".join(lines)


def picked(
    bench: Workbench, new: str, old: str, view: str = "flips", slice: str = ""
) -> list[Flip]:
    """The answers of train and dev that a view shows, what broke first.

    view : one of VIEWS; "trials disagree": some two trials say different things. slice : a kind of
    task, "" for all.
    """
    rows = bench.flips(old, new) if view == "flips" else bench.answers(new, old)
    values = [t.values for t in bench.trials.values()]
    keep = {
        "wrong now": lambda f: f.now not in (f.human, "unknown"),
        "wrong before": lambda f: f.before not in (f.human, "unknown"),
        "unknown": lambda f: "unknown" in (f.now, f.before),
        "trials disagree": lambda f: len({v[f.row] for v in values if v[f.row] == v[f.row]}) > 1,
    }.get(view, lambda f: True)
    return [f for f in rows if keep(f) and slice in ("", f.slice)]


def bench_html(bench: Workbench, new: str | None = None, old: str | None = None) -> str:
    """Trials, the newest one's diff to its parent, and its flips: what a headless run shows."""
    if not bench.trials:
        return f"<p>{escape(repr(bench))}</p>"
    b = bench.trials[new or list(bench.trials)[-1]]
    a = bench.trials[old or b.parent or b.name]
    parts = [dicts_html(bench.data())]
    if a is not b:
        changed = bench.flips(a, b)
        words = ", ".join(f"{n} {e}" for e, n in changed.counts.items())
        parts += [f"<h4>{escape(a.name)} &rarr; {escape(b.name)}: {words}</h4>", diff_html(b, a)]
        parts.append(flips_html(changed))
    if bench.doubts:
        rows = [(d.row, d.who, d.why) for d in bench.doubts]
        parts.append(rows_html(("row", "who doubts the label", "why"), rows))
    if bench.read is not None:
        parts.append(f"<p><b>Sealed test:</b> {escape(bench.read.sentence)}</p>")
    return "".join(parts)


def page(bench: Workbench) -> str:
    """The bench as one offline page: flips of every trial against its parent, with a filter."""
    parts = [PAGE, bench_html(bench)]
    for name, trial in list(bench.trials.items())[:-1]:
        if trial.parent:
            parts += [f"<h4>{escape(trial.parent)} &rarr; {escape(name)}</h4>"]
            parts += [diff_html(trial, bench.trials[trial.parent])]
            parts += [flips_html(bench.flips(trial.parent, name), top=200)]
    return "".join([*parts, SCRIPT])


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
