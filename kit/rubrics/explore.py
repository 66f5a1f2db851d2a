"""Plain functions behind the explorers: filter, read one task, compare two answers, edit a
criterion with its history."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..data.load import save_tasks
from ..data.tables import nearest, read_rows
from ..data.taskset import TaskSet
from ..errors import DataError
from ..records import Criterion, Task, Verdict, to_json
from ..system import processes, progress
from .lint import LintReport
from .words import tokens_of

EDITABLE = ("text", "weight", "title", "tags", "required", "check", "scale", "levels")


def table(
    tasks: TaskSet,
    *,
    text: str = "",
    kind: str | None = None,
    split: str | None = None,
    polarity: str | None = None,
    code: str | None = None,
    lint: LintReport | None = None,
    tokens: tuple[int, int] | None = None,
    agreement: tuple[float, float] | None = None,
    by_code: bool | None = None,
) -> list[dict[str, Any]]:
    """One row per task that passes every filter given.

    text : in prompt or criteria, case does not matter. polarity : "positive" or "negative" (has
        such a criterion).
    code : a lint rule that found something on the task (needs `lint`). tokens : (lowest, highest)
        of the prompt, about.
    agreement : (lowest, highest) share of raters' label pairs that agree; tasks without pairs do
        not pass.
    by_code : has (True) or lacks (False) a criterion that code decides.
    """
    found: dict[str, list[str]] = {}
    for f in lint.findings if lint else ():
        if f.task_id is not None:
            found.setdefault(f.task_id, []).append(f.code)
    out = []
    for t in tasks.tasks:
        agree = rater_agreement(tasks.labels(t.id))
        n = tokens_of(t.asked)
        keep = (
            (
                not text
                or text.casefold() in "\n".join([t.asked, *(c.text for c in t.criteria)]).casefold()
            )
            and kind in (None, t.kind)
            and split in (None, t.split)
            and (polarity is None or any(c.polarity == polarity for c in t.criteria))
            and (code is None or code in found.get(t.id, ()))
            and (tokens is None or tokens[0] <= n <= tokens[1])
            and (agreement is None or (agree is not None and agreement[0] <= agree <= agreement[1]))
            and (by_code is None or any(c.by_code for c in t.criteria) == by_code)
        )
        if keep:
            out.append(
                {
                    "task_id": t.id,
                    "row": tasks.rows_of.get(t.id),
                    "kind": t.kind,
                    "split": t.split,
                    "criteria": len(t.criteria),
                    "negative": sum(c.weight < 0 for c in t.criteria),
                    "by_code": sum(c.by_code for c in t.criteria),
                    "tokens": n,
                    "answers": len(tasks.answers(t.id)),
                    "labels": len(tasks.labels(t.id)),
                    "agreement": agree,
                    "lint": sorted(set(found.get(t.id, ()))),
                    "prompt": t.asked,
                }
            )
    return out


def rater_agreement(verdicts: list[Verdict]) -> float | None:
    """Share of pairs of human labels on one cell that fall on the same side of .5; None without a
    pair."""
    cells: dict[tuple[str, str], list[float]] = {}
    for v in verdicts:
        if v.judge.startswith("human") and v.value is not None:
            cells.setdefault((v.response_id, v.criterion_id), []).append(v.value)
    pairs = [
        (a > 0.5) == (b > 0.5)
        for values in cells.values()
        for i, a in enumerate(values)
        for b in values[:i]
    ]
    return sum(pairs) / len(pairs) if pairs else None


def task_of(tasks: TaskSet, task_id: str) -> Task:
    """The task with this id; DataError names the nearest."""
    if task_id not in tasks.by_id:
        near = nearest(task_id, list(tasks.by_id)[:5000])
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
        cells: dict[str, dict[str, str]] = {a: {} for a in answers}
        for v in told:
            if v.criterion_id == c.id:
                cells.setdefault(v.response_id, {})[v.judge or "?"] = mark(v)
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


def compare(
    tasks: TaskSet,
    task_id: str,
    first: str,
    second: str,
    *,
    verdicts: list[Verdict] | None = None,
    judge: str | None = None,
) -> list[dict[str, Any]]:
    """Two answers criterion by criterion: the mean value each got (of the judges, or of one
    `judge`), and which did better.

    better : "first", "second", "same", or "unknown" where one of them has no known verdict. A
        negative criterion is better unmet.
    """
    t = task_of(tasks, task_id)
    have = {r.id for r in tasks.answers(t.id)}
    for name in (first, second):
        if name not in have:
            raise DataError(
                f"task {task_id!r} has no answer {name!r}",
                where="compare",
                fix=f"answers: {', '.join(sorted(have)) or 'none'}",
            )
    told = [
        v
        for v in (*tasks.labels(t.id), *(verdicts or ()))
        if v.task_id == t.id and judge in (None, v.judge)
    ]

    def value(response: str, criterion: str) -> float | None:
        values = [
            v.value
            for v in told
            if v.response_id == response and v.criterion_id == criterion and v.value is not None
        ]
        return sum(values) / len(values) if values else None

    out = []
    for c in t.criteria:
        a, b = value(first, c.id), value(second, c.id)
        lead = None if a is None or b is None else (a - b) * (-1 if c.weight < 0 else 1)
        better = "unknown"
        if lead is not None:
            better = ("same", "first", "second")[(lead > 0) - (lead < 0)]
        out.append(
            {
                "id": c.id,
                "text": c.text,
                "weight": c.weight,
                "first": a,
                "second": b,
                "better": better,
            }
        )
    return out


def edit(
    tasks: TaskSet,
    task_id: str,
    criterion_id: str,
    changes: Mapping[str, Any],
    *,
    path: str | os.PathLike[str],
    why: str = "",
    author: str = "",
) -> TaskSet:
    """Change fields of one criterion and save the set as a new version; the old version and the
    change stay on record.

    changes : any of text, weight, title, tags, required, check, scale, levels; {"remove": True}
        takes the criterion out.
    path : our own JSONL to write; beside it `<path>.history.jsonl` gets one line per change
        (before, after, why, when, hashes), and
        a file already at `path` is kept as `<name>.v<N>.jsonl`. Returns the new set; recorded
        verdicts on a changed text are dropped
        from it and counted in the history, since they judged another text.
    """
    t = task_of(tasks, task_id)
    old = next((c for c in t.criteria if c.id == criterion_id), None)
    if old is None:
        raise DataError(
            f"task {task_id!r} has no criterion {criterion_id!r}",
            where="edit",
            fix=f"criteria: {', '.join(c.id for c in t.criteria)}",
        )
    new = _changed(old, changes)
    if new == old:
        raise DataError(
            "the change leaves the criterion as it is",
            where=f"task {task_id!r}, criterion {criterion_id!r}",
        )
    criteria = tuple(
        x for x in (new if c.id == criterion_id else c for c in t.criteria) if x is not None
    )
    task = replace(t, criteria=criteria)
    stale = (
        [v for v in tasks.verdicts if (v.task_id, v.criterion_id) == (task_id, criterion_id)]
        if new is None
        or (new.text, new.check, new.scale, new.levels)
        != (old.text, old.check, old.scale, old.levels)
        else []
    )
    gone = {id(v) for v in stale}
    out = replace(
        tasks,
        tasks=[task if x.id == t.id else x for x in tasks.tasks],
        verdicts=[v for v in tasks.verdicts if id(v) not in gone],
        path=Path(path),
        format="kit",
    )
    _save(
        out,
        Path(path),
        {
            "task_id": task_id,
            "criterion_id": criterion_id,
            "why": why,
            "author": author,
            "before": to_json(old),
            "after": None if new is None else to_json(new),
            "verdicts_dropped": len(stale),
        },
    )
    return out


def _changed(old: Criterion, changes: Mapping[str, Any]) -> Criterion | None:
    if changes.get("remove") is True:
        return None
    if unknown := [k for k in changes if k not in EDITABLE]:
        raise DataError(
            f"a criterion's {unknown[0]!r} cannot be edited",
            where="edit",
            fix=f"use any of {', '.join(EDITABLE)}, or remove=True",
        )
    given = {k: tuple(v) if isinstance(v, list) else v for k, v in changes.items()}
    if "text" in given and (not isinstance(given["text"], str) or not given["text"].strip()):
        raise DataError(
            "the new text is empty",
            where="edit",
            fix="write a criterion, or remove it with {'remove': True}",
        )
    return replace(old, **given)


def _save(tasks: TaskSet, path: Path, change: dict[str, Any]) -> None:
    log = path.with_name(path.name + ".history.jsonl")
    with processes.alone(path.parent, path.name, progress.say):
        version = len(history(path)) + 1
        before = None
        if path.is_file():
            kept = path.with_name(f"{path.stem}.v{version - 1}{path.suffix}")
            while kept.exists():
                kept = kept.with_name(f"{kept.stem}x{kept.suffix}")
            before = hashlib.sha256(path.read_bytes()).hexdigest()
            kept.write_bytes(path.read_bytes())
        save_tasks(path, tasks)
        line = {
            "version": version,
            "when": datetime.now(UTC).isoformat(timespec="seconds"),
            **change,
            "sha256_before": before,
            "sha256_after": hashlib.sha256(path.read_bytes()).hexdigest(),
        }
        with log.open("a", encoding="utf-8") as f:
            f.write(json.dumps(line, ensure_ascii=True, default=str) + "\n")


def history(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The changes recorded for a file that `edit` wrote, oldest first; empty when there are
    none."""
    log = Path(f"{os.fspath(path)}.history.jsonl")
    return [row for _, row in read_rows(log)] if log.is_file() and log.stat().st_size else []
