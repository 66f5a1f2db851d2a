"""The explorer of a rubric data set: browse and filter, read one task.

Each wraps a plain function of `kit.rubrics.explore`; the `*_html` functions are the static twins.
All text is escaped. ipywidgets 7.7 and 8: only widgets and arguments that both have; results go
into HTML widgets, not Output widgets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..data.taskset import TaskSet
from ..page import escape
from ..records import Verdict
from ..rubrics import explore
from ..rubrics.lint import LintReport
from ..tables import STYLE, rows_html
from . import twinned, watch

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
        f"<div {STYLE}><b>Prompt</b><br>{escape(task['prompt'])}</div>",
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


def _first(
    tasks: TaskSet, lint: LintReport | None = None, *, verdicts: list[Verdict] | None = None
) -> str:
    """The table of all tasks, and the first of them."""
    rows = explore.table(tasks, lint=lint)
    read = [explore.read(tasks, r["task_id"], verdicts=verdicts) for r in rows[:1]]
    return tasks_html(rows) + "".join(map(task_html, read))


@twinned(_first)
def browse(
    tasks: TaskSet, lint: LintReport | None = None, *, verdicts: list[Verdict] | None = None
) -> Any:
    """Filter tasks (text, kind, lint rule) and read one; headless, the unfiltered table and the
    first task.
    """
    import ipywidgets as w

    text = w.Text(
        placeholder="words in prompt or criteria", description="text", continuous_update=False
    )
    kind = w.Dropdown(
        options=[("any", None), *((k, k) for k in sorted({t.kind for t in tasks.tasks if t.kind}))],
        description="kind",
    )
    rule = w.Dropdown(
        options=[
            ("any", None),
            *((f"{k} ({n})", k) for k, n in sorted((lint.counts if lint else {}).items())),
        ],
        description="lint",
    )
    chosen = w.Select(
        options=[],
        rows=8,
        description="task",
        layout=w.Layout(width="95%"),
    )
    count, shown = w.HTML(), w.HTML()

    def refilter(_: Any = None) -> None:
        rows = explore.table(
            tasks,
            text=text.value,
            kind=kind.value,
            code=rule.value,
            lint=lint,
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

    chosen.observe(draw, "value")
    watch(refilter, text, kind, rule)
    return w.VBox([w.HBox([text, kind, rule]), count, chosen, shown])
