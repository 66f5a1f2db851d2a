"""Plain functions behind the explorers: filter the tasks, read one."""

from __future__ import annotations

from typing import Any

from ..data.taskset import TaskSet
from ..data.words import tokens_of
from ..errors import DataError
from ..records import Task, Verdict, grouped
from ..settings.read import closest
from .lint import LintReport


def table(
    tasks: TaskSet,
    *,
    text: str = "",
    kind: str | None = None,
    code: str | None = None,
    lint: LintReport | None = None,
) -> list[dict[str, Any]]:
    """One row per task that passes every filter given.

    text : in prompt or criteria, case does not matter. code : a lint rule that found something on
        the task (needs `lint`).
    """
    found = grouped(
        (f.task_id, f.code) for f in (lint.findings if lint else ()) if f.task_id is not None
    )
    return [
        {
            "task_id": t.id,
            "row": tasks.rows_of.get(t.id),
            "kind": t.kind,
            "split": t.split,
            "criteria": len(t.criteria),
            "negative": sum(c.weight < 0 for c in t.criteria),
            "by_code": sum(c.by_code for c in t.criteria),
            "tokens": tokens_of(t.asked),
            "answers": len(tasks.answers(t.id)),
            "labels": len(tasks.labels(t.id)),
            "lint": sorted(set(found.get(t.id, ()))),
            "prompt": t.asked,
        }
        for t in tasks.tasks
        if kind in (None, t.kind)
        and (code is None or code in found.get(t.id, ()))
        and any(text.casefold() in x.casefold() for x in (t.asked, *(c.text for c in t.criteria)))
    ]


def task_of(tasks: TaskSet, task_id: str) -> Task:
    """The task with this id; DataError names the nearest."""
    if task_id not in tasks.by_id:
        near = closest(task_id, list(tasks.by_id)[:5000])
        raise DataError(
            f"there is no task {task_id!r}",
            where=str(tasks.path or "task set"),
            fix=f"did you mean {near!r}?" if near else None,
        )
    return tasks.by_id[task_id]


def mark(v: Verdict) -> str:
    """A verdict as a short word: met, unmet, "level 0.50", "unknown (parse)"."""
    if v.status in ("met", "unmet"):
        return v.status
    return f"level {v.value:.2f}" if v.status == "level" else f"unknown ({v.failure})"


def read(tasks: TaskSet, task_id: str, *, verdicts: list[Verdict] | None = None) -> dict[str, Any]:
    """One task side by side: `prompt`, `answers` (id -> text), `criteria`: rows with one cell per
    answer, every judge's verdict in it.

    verdicts : further verdicts (of a judge) to show beside the recorded ones.
    """
    t = task_of(tasks, task_id)
    answers = {r.id: r for r in tasks.answers(t.id)}
    told = [*tasks.labels(t.id), *(v for v in verdicts or () if v.task_id == t.id)]
    rows = []
    for c in t.criteria:
        own = grouped((v.response_id, v) for v in told if v.criterion_id == c.id)
        cells = {a: {v.judge or "?": mark(v) for v in own.get(a, ())} for a in (answers | own)}
        rows.append(
            {
                "id": c.id,
                "text": c.text,
                "weight": c.weight,
                "polarity": c.polarity,
                "check": dict(c.check) if c.check else None,
                "required": c.required,
                "title": c.title,
                "verdicts": cells,
            }
        )
    return {
        "task_id": t.id,
        "row": tasks.rows_of.get(t.id),
        "prompt": t.asked,
        "system": t.system,
        "kind": t.kind,
        "group": t.group,
        "split": t.split,
        "sources": dict(t.sources),
        "truth": dict(t.truth),
        "meta": dict(t.meta),
        "answers": {a: {"text": r.text, "source": r.source} for a, r in answers.items()},
        "criteria": rows,
    }
