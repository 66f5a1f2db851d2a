"""Explorers of a rubric data set: browse and filter, read one task, compare two answers, edit a
criterion.

Each wraps a plain function of `kit.rubrics.explore`; the `*_html` functions are the static twins.
All text is escaped. ipywidgets 7.7 and 8: only widgets and arguments that both have; results go
into HTML widgets, not Output widgets.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from ..data.taskset import TaskSet
from ..errors import KitError
from ..records import Verdict
from ..rubrics import explore
from ..rubrics.lint import LintReport
from ..tables import STYLE as CELL
from ..tables import rows_html
from . import live, twinned

MARKS = {
    "met": "&#10003;",
    "unmet": "&#10007;",
}  # with the word beside it: never colour or shape alone
SHOWN = 500  # tasks offered in a list


def tasks_html(rows: Sequence[Mapping[str, Any]], *, top: int = 20) -> str:
    """Rows of `explore.table` as an HTML table."""
    shown = [
        (
            r["row"],
            r["task_id"],
            r["kind"],
            r["criteria"],
            r["negative"],
            r["by_code"],
            r["tokens"],
            r["answers"],
            "" if r["agreement"] is None else f"{r['agreement']:.2f}",
            ", ".join(r["lint"]),
            r["prompt"][:120],
        )
        for r in rows[:top]
    ]
    head = (
        "row",
        "task",
        "kind",
        "criteria",
        "negative",
        "by code",
        "tokens",
        "answers",
        "agreement",
        "lint",
        "prompt",
    )
    return rows_html(head, shown) + f"<p>{min(top, len(rows))} of {len(rows)} tasks</p>"


def task_html(task: Mapping[str, Any]) -> str:
    """One task of `explore.read` side by side: prompt, snippets, answers, and criteria with every
    verdict.
    """
    facts = ", ".join(
        f"{k} {task[k]}" for k in ("row", "kind", "group", "split") if task[k] is not None
    )
    parts = [
        f"<h4>{escape(str(task['task_id']))}</h4><p>{escape(facts)}</p>",
        f"<div {CELL}><b>Prompt</b><br>{escape(task['prompt'])}</div>",
    ]
    if task["sources"]:
        parts.append("<b>Snippets</b>" + rows_html(("id", "text"), list(task["sources"].items())))
    answers = list(task["answers"])
    if answers:
        heads = [
            f"{a} ({task['answers'][a]['source']})" if task["answers"][a]["source"] else a
            for a in answers
        ]
        parts.append(
            "<b>Answers</b>" + rows_html(heads, [[task["answers"][a]["text"] for a in answers]])
        )
    rows = []
    for c in task["criteria"]:
        kind = (
            ("must not; " if c["weight"] < 0 else "")
            + ("required; " if c["required"] else "")
            + (f"code: {c['check']['name']}" if c["check"] else "judged")
        )
        cells = [
            "<br>".join(
                f"{escape(who)}: {MARKS.get(said, '')} {escape(said)}"
                for who, said in c["verdicts"].get(a, {}).items()
            )
            for a in answers
        ]
        rows.append([c["id"], c["text"], f"{c['weight']:g}", kind, *cells])
    parts.append(
        "<b>Criteria</b>"
        + rows_html(
            ("id", "criterion", "weight", "how", *answers),
            rows,
            raw=frozenset(range(4, 4 + len(answers))),
        )
    )
    return "".join(parts)


def compare_html(rows: Sequence[Mapping[str, Any]], first: str, second: str) -> str:
    """Rows of `explore.compare` as an HTML table."""

    def value(x: float | None) -> str:
        return "unknown" if x is None else f"{x:.2f}"

    names = {"first": first, "second": second, "same": "the same", "unknown": "unknown"}
    body = [
        (
            r["id"],
            r["text"],
            f"{r['weight']:g}",
            value(r["first"]),
            value(r["second"]),
            names[r["better"]],
        )
        for r in rows
    ]
    score = ", ".join(f"{names[k]}: {sum(r['better'] == k for r in rows)}" for k in names)
    return (
        rows_html(("id", "criterion", "weight", first, second, "better"), body)
        + f"<p>better: {escape(score)}</p>"
    )


def error_html(e: KitError) -> str:
    """A user's error inside an explorer."""
    return f"<pre style='color:#a00'>{escape(str(e))}</pre>"


@twinned
def browse(
    tasks: TaskSet, lint: LintReport | None = None, *, verdicts: list[Verdict] | None = None
) -> Any:
    """Filter tasks (text, kind, polarity, lint rule, length, agreement) and read one; headless, the
    unfiltered table and the first task.
    """
    if not live():
        from IPython.display import HTML

        rows = explore.table(tasks, lint=lint)
        return HTML(
            tasks_html(rows)
            + (
                task_html(explore.read(tasks, rows[0]["task_id"], verdicts=verdicts))
                if rows
                else ""
            )
        )
    import ipywidgets as w

    longest = max([1, *(explore.tokens_of(t.prompt) for t in tasks.tasks)])
    text = w.Text(
        placeholder="words in prompt or criteria", description="text", continuous_update=False
    )
    kind = w.Dropdown(
        options=[("any", None), *((k, k) for k in sorted({t.kind for t in tasks.tasks if t.kind}))],
        description="kind",
    )
    sign = w.Dropdown(
        options=[("any", None), ("has negative", "negative"), ("has positive", "positive")],
        description="polarity",
    )
    rule = w.Dropdown(
        options=[
            ("any", None),
            *((f"{k} ({n})", k) for k, n in sorted((lint.counts if lint else {}).items())),
        ],
        description="lint",
    )
    size = w.IntRangeSlider(
        value=(0, longest), min=0, max=longest, description="tokens", continuous_update=False
    )
    agree = w.Dropdown(
        options=[("any", None), ("raters agree", (0.999, 1.0)), ("raters disagree", (0.0, 0.999))],
        description="agreement",
    )
    chosen = w.Select(options=[], rows=8, description="task", layout=w.Layout(width="95%"))
    count, shown = w.HTML(), w.HTML()

    def refilter(_: Any = None) -> None:
        rows = explore.table(
            tasks,
            text=text.value,
            kind=kind.value,
            polarity=sign.value,
            code=rule.value,
            lint=lint,
            tokens=size.value,
            agreement=agree.value,
        )
        chosen.options = [
            (
                (f"row {r['row']}  " if r["row"] else "") + f"{r['task_id']}  {r['prompt'][:80]}",
                r["task_id"],
            )
            for r in rows[:SHOWN]
        ]
        chosen.value = rows[0]["task_id"] if rows else None  # a Select starts with nothing chosen
        count.value = (
            f"<p>{len(rows)} of {len(tasks.tasks)} tasks"
            + (f", the first {SHOWN} listed" if len(rows) > SHOWN else "")
            + "</p>"
        )
        draw()

    def draw(_: Any = None) -> None:
        shown.value = (
            ""
            if chosen.value is None
            else task_html(explore.read(tasks, chosen.value, verdicts=verdicts))
        )

    for control in (text, kind, sign, rule, size, agree):
        control.observe(refilter, "value")
    chosen.observe(draw, "value")
    refilter()
    return w.VBox([w.HBox([text, kind, sign]), w.HBox([rule, size, agree]), count, chosen, shown])


@twinned
def compare_answers(tasks: TaskSet, *, verdicts: list[Verdict] | None = None) -> Any:
    """Two answers of a task, criterion by criterion; headless, of the first task with two."""
    able = [t for t in tasks.tasks if len(tasks.answers(t.id)) >= 2]
    if not live() or not able:
        from IPython.display import HTML

        if not able:
            return HTML("<p>no task has two answers</p>")
        a, b = (r.id for r in tasks.answers(able[0].id)[:2])
        return HTML(compare_html(explore.compare(tasks, able[0].id, a, b, verdicts=verdicts), a, b))
    import ipywidgets as w

    task = w.Dropdown(
        options=[(f"{t.id}  {t.prompt[:70]}", t.id) for t in able[:SHOWN]],
        description="task",
        layout=w.Layout(width="80%"),
    )
    first, second, shown = (
        w.Dropdown(description="first"),
        w.Dropdown(description="second"),
        w.HTML(),
    )
    busy = [False]

    def choose(_: Any = None) -> None:
        names = [r.id for r in tasks.answers(task.value)]
        busy[0] = True
        first.options, second.options = names, names
        first.value, second.value = names[0], names[1]
        busy[0] = False
        draw()

    def draw(_: Any = None) -> None:
        if busy[0] or first.value is None or second.value is None:
            return
        told = explore.compare(tasks, task.value, first.value, second.value, verdicts=verdicts)
        texts = {r.id: r.text for r in tasks.answers(task.value)}
        shown.value = compare_html(told, first.value, second.value) + rows_html(
            (first.value, second.value), [[texts[first.value], texts[second.value]]]
        )

    task.observe(choose, "value")
    first.observe(draw, "value")
    second.observe(draw, "value")
    choose()
    return w.VBox([task, w.HBox([first, second]), shown])


@twinned
def edit_criterion(tasks: TaskSet, path: str | os.PathLike[str]) -> Any:
    """Edit a criterion's text and weight and save a new version to `path`, with its history;
    headless, the history so far.

    The widget's attribute `tasks` holds the newest set.
    """
    if not live() or not any(t.criteria for t in tasks.tasks):
        from IPython.display import HTML

        return HTML(history_html(path))
    import ipywidgets as w

    able = [t for t in tasks.tasks if t.criteria][:SHOWN]
    task = w.Dropdown(
        options=[(f"{t.id}  {t.prompt[:70]}", t.id) for t in able],
        description="task",
        layout=w.Layout(width="80%"),
    )
    which = w.Dropdown(description="criterion", layout=w.Layout(width="80%"))
    text = w.Textarea(description="text", layout=w.Layout(width="80%", height="70px"))
    weight, why = (
        w.FloatText(description="weight"),
        w.Text(description="why", placeholder="why the change", layout=w.Layout(width="60%")),
    )
    save, status = w.Button(description="save version", icon="save"), w.HTML(history_html(path))
    box = w.VBox([task, which, text, w.HBox([weight, why]), save, status])
    box.tasks = tasks

    def criterion() -> Any:
        return explore.task_of(box.tasks, task.value).criterion(which.value)

    def fill_criteria(_: Any = None, keep: str | None = None) -> None:
        which.options = [
            (f"{c.id}  {c.text[:80]}", c.id)
            for c in explore.task_of(box.tasks, task.value).criteria
        ]
        which.value = keep if keep is not None else which.options[0][1]
        fill()

    def fill(_: Any = None) -> None:
        if which.value is not None:
            text.value, weight.value = criterion().text, criterion().weight

    def store(_: Any) -> None:
        old = criterion()
        changes = {
            k: v
            for k, v in (("text", text.value), ("weight", float(weight.value)))
            if v != getattr(old, k)
        }
        try:
            box.tasks = explore.edit(
                box.tasks, task.value, old.id, changes, path=path, why=why.value
            )
        except KitError as e:
            status.value = error_html(e)
            return
        fill_criteria(keep=old.id)
        why.value, status.value = "", history_html(path)

    task.observe(fill_criteria, "value")
    which.observe(fill, "value")
    save.on_click(store)
    fill_criteria()
    return box


def history_html(path: str | os.PathLike[str], *, last: int = 10) -> str:
    """The last changes of a file that `explore.edit` wrote."""
    changes = explore.history(path)
    if not changes:
        return "<p>no change yet</p>"
    rows = [
        (
            c["version"],
            c["when"],
            c["task_id"],
            c["criterion_id"],
            c["before"]["text"],
            c["after"]["text"] if c["after"] else "(removed)",
            f"{c['before']['weight']:g} to {c['after']['weight']:g}" if c["after"] else "",
            c["why"],
        )
        for c in changes[-last:][::-1]
    ]
    return rows_html(
        ("version", "when", "task", "criterion", "before", "after", "weight", "why"), rows
    )
