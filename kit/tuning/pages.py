"""A workbench as HTML: trials, the diff of a prompt, what flipped and why; as a page with a filter.

All text is escaped: what is judged may be hostile.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..page import escape
from ..system.paths import write_text
from ..tables import dicts_html, rows_html
from .study import jsonable

if TYPE_CHECKING:
    from .bench import Workbench
    from .trials import Trial

VIEWS = ("flips", "wrong now", "wrong before", "unknown", "trials disagree", "all")
MARKS = {"same": "", "gone": "&minus; ", "new": "+ "}
STYLES = {
    "same": "",
    "gone": " style='background:#fde8e6;color:#1b1f24;text-decoration:line-through'",
    "new": " style='background:#dff3ea;color:#1b1f24'",
}
HEAD = ("row", "part", "what changed", "people", "before", "now", "criterion", "answer", "reasons")
SHOWN, LISTED = 40, 200  # of each kind of flip, in a notebook and on a page
PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none';
style-src 'unsafe-inline'; script-src 'unsafe-inline'"><title>Workbench</title>
<style>body{font:15px/1.5 Helvetica,Arial,sans-serif;margin:16px auto;max-width:1200px;
padding:0 12px}:root{color-scheme:light dark}
table{border-collapse:collapse;display:block;overflow-x:auto}td,th{border-top:1px solid #8888}
table.flips td:nth-child(8){overflow-wrap:anywhere;min-width:20em}
@media (max-width:900px){table.flips tr,table.flips td{display:block;overflow-wrap:anywhere}
table.flips th,table.flips tr[hidden]{display:none}}</style></head>
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

    >>> from kit.tuning import Trial
    >>> diff_html(Trial("b", "Be strict."), Trial("a", "Be kind.")).count("<span")
    2
    """
    parts = [
        f"<span{STYLES[kind]}>{MARKS[kind]}{escape(text)}</span><br>"
        for kind, text in new.diff(old)
    ]
    return f"<div style='white-space:pre-wrap'>{''.join(parts)}</div>"


def flips_html(flips: Iterable[Mapping[str, Any]], *, top: int = SHOWN) -> str:
    """Answers under two trials as a table, the first `top` of each effect; all text is escaped."""
    keys = ("row", "part", "effect", "human", "before", "now", "criterion")
    body: list[list[Any]] = []
    count: Counter[str] = Counter()
    for f in flips:
        count[f["effect"]] += 1
        if count[f["effect"]] <= top:
            body.append([*(f[k] for k in keys), _answer(f), _reasons(f)])
    table = rows_html(HEAD, body, raw={7, 8}).replace("<table", "<table class='flips'", 1)
    if len(body) == count.total():
        return table
    n = f"{len(body)} of {count.total()}"
    return f"{table}<p>{n} are listed, the first {top} of each kind.</p>"


def _answer(f: Mapping[str, Any]) -> str:
    return f"<small>{escape(f['prompt'][:300])}</small><br>{escape(f['answer'][:1200])}"


def _reasons(f: Mapping[str, Any]) -> str:
    lines = []
    for when in ("before", "now"):
        p = f[f"P {when}"]
        sure = "" if p is None else f" (P {p:.2f})"
        reason = escape(f[f"reason {when}"][:400])
        lines.append(f"<b>{when}</b>{sure}: {reason}")
    return "<br>".join(lines)


def picked(
    bench: Workbench, new: str, old: str, view: str = "flips", slice: str = ""
) -> list[dict[str, Any]]:
    """The answers of train and dev that a view shows, what broke first.

    view : one of VIEWS; "trials disagree": some two trials say different things. slice : a kind of
    task, "" for all.
    """
    values = [t.values for t in bench.trials.values()]
    keep = {
        "flips": lambda f: f["effect"] != "same",
        "wrong now": lambda f: f["now"] not in (f["human"], "unknown"),
        "wrong before": lambda f: f["before"] not in (f["human"], "unknown"),
        "unknown": lambda f: "unknown" in (f["now"], f["before"]),
        "trials disagree": lambda f: len({v[f["row"]] for v in values if v[f["row"]] >= 0}) > 1,
    }.get(view, bool)
    return [f for f in bench.answers(new, old) if keep(f) and slice in ("", f["slice"])]


def bench_html(
    bench: Workbench, new: str | None = None, old: str | None = None, top: int = SHOWN
) -> str:
    """Trials, the newest one's diff to its parent, and its flips: what a headless run shows."""
    if not bench.trials:
        return f"<p>{escape(repr(bench))}</p>"
    b = bench.trials[new or list(bench.trials)[-1]]
    a = bench.trials[old or b.parent or b.name]
    parts = [*(f"<p>{escape(n)}</p>" for n in bench.notes), dicts_html(bench.data())]
    if a is not b:
        changed = bench.flips(a, b)
        parts += [
            f"<h4>{escape(a.name)} &rarr; {escape(b.name)}: {changed.words}</h4>",
            diff_html(b, a),
            flips_html(changed, top=top),
        ]
    if bench.doubts:
        parts.append(dicts_html(bench.doubts, caption="labels in doubt"))
    if bench.read is not None:
        parts.append(f"<p><b>Sealed test:</b> {escape(bench.read.sentence)}</p>")
    return "".join(parts)


def page(bench: Workbench) -> str:
    """The bench as one offline page: flips of every trial against its parent, with a filter."""
    tried = [(name, t) for name, t in list(bench.trials.items())[:-1] if t.parent]
    parts = [
        f"<h4>{escape(t.parent)} &rarr; {escape(name)}</h4>"
        + diff_html(t, bench.trials[t.parent])
        + flips_html(bench.flips(t.parent, name), top=LISTED)
        for name, t in tried
    ]
    return "".join([PAGE, bench_html(bench, top=LISTED), *parts, SCRIPT])


def exported(bench: Workbench) -> dict[str, Any]:
    """The same as plain values: trials, flips against the baseline, doubts, the test's reading."""
    first = next(iter(bench.trials), "")
    return {
        "trials": [{**bench.trials[r["trial"]].kept(), **r} for r in bench.data()],
        "flips": {n: list(bench.flips(first, n)) for n in bench.trials},
        "doubts": bench.doubts,
        "notes": bench.notes,
        "test": None if bench.read is None else bench.read.as_dict(),
    }


def write(bench: Workbench, path: Path) -> Path:
    """The bench in a file: a page (.html), or JSON."""
    write_text(
        path,
        page(bench)
        if path.suffix.lower() in (".html", ".htm")
        else json.dumps(jsonable(exported(bench)), indent=1, ensure_ascii=False),
    )
    return path
