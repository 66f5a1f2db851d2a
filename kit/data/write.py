"""Writers: tasks in the formats of other systems. What a format cannot hold is a DataError, unless
`lossy` is set."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from ..errors import DataError
from ..records import Criterion, Task, to_json
from .formats.rubric import RUBRIC_KEY, rlvr
from .jsonl import dumps, write_jsonl
from .rows import SHARED, Context, Row
from .values import absent, says_nothing

WRITERS = ("rlvr", "rlvr-list", "open-instruct", "refiner", "flat")


def rlvr_row(task: Task) -> dict[str, Any]:
    """A task as an RLVR row: `rubric - N. criterion`, weight when it is not 1, check, required."""
    row: dict[str, Any] = {"task_id": task.id, "prompt": task.prompt}
    for name in ("kind", "group", "split", "system"):
        if getattr(task, name) is not None:
            row[name] = getattr(task, name)
    for n, c in enumerate(task.criteria, 1):
        number = int(c.id[1:]) if c.id[:1] == "c" and c.id[1:].isdecimal() and len(c.id) < 8 else n
        key = f"rubric - {number}. "
        if key + "criterion" in row:
            raise DataError(
                f"two criteria would have the number {number}", where=f"task {task.id!r}"
            )
        row[key + "criterion"] = c.text
        extra = {
            "weight": c.weight if c.weight != 1 else None,
            "check": dict(c.check) if c.check else None,
            "required": c.required or None,
            "title": c.title,
            "tags": list(c.tags) or None,
        }
        row |= {key + k: v for k, v in extra.items() if v is not None}
        row |= {key + k: v for k, v in c.meta.items()}
    return (
        row
        | {
            k: v
            for k, v in (
                ("sources", dict(task.sources)),
                ("truth", dict(task.truth)),
                ("tags", list(task.tags)),
            )
            if v
        }
        | {_free(k, row): v for k, v in task.meta.items()}
    )


READ = ("task_id", "id", "prompt", "input", "tags", "truth", "sources", *chain(*SHARED.values()))


def _free(name: str, row: Mapping[str, Any]) -> str:
    """The column for a field of meta: "meta.NAME" where a reader would take it for another."""
    taken = name in READ or name in row or RUBRIC_KEY.match(name)
    return f"meta.{name}" if taken else name


def _open_instruct(task: Task) -> dict[str, Any]:
    turns = [{"role": "system", "content": task.system}] if task.system else []
    turns += [*map(dict, task.history), {"role": "user", "content": task.prompt}]
    rubrics = [
        {"description": c.text, "title": c.title or c.id, "weight": c.weight} for c in task.criteria
    ]
    return {
        "id": task.id,
        "messages": turns,
        "dataset": task.meta.get("verifier", "rubric"),
        "ground_truth": json.dumps({"query": task.prompt, "rubrics": rubrics}, ensure_ascii=False),
    }


def _refiner(task: Task) -> dict[str, Any]:
    def items(negative: bool) -> list[dict[str, Any]]:
        return [
            {"id": c.id, "title": c.title or c.id, "description": c.text, "weight": abs(c.weight)}
            for c in task.criteria
            if (c.weight < 0) == negative
        ]

    return {
        "task_id": task.id,
        "prompt": task.prompt,
        "sources": dict(task.sources),
        "positive_rubrics": items(False),
        "negative_rubrics": items(True),
    }


def _flat(task: Task) -> Iterator[dict[str, Any]]:
    for c in task.criteria:
        yield {
            "task_id": task.id,
            "prompt": task.prompt,
            "criterion_id": c.id,
            "criterion": c.text,
            "weight": c.weight,
        }


def _losses(task: Task, kind: str) -> list[str]:
    """Names of what this format cannot hold."""

    def full(c: Criterion) -> set[str]:
        plain = to_json(Criterion(id=c.id, text=c.text))
        return {k for k, v in to_json(c).items() if v != plain[k]}

    holds = {
        "rlvr": {"weight", "check", "required", "title", "tags", "meta"},
        "rlvr-list": set(),
        "open-instruct": {"weight", "title"},
        "refiner": {"weight", "title"},
        "flat": {"weight"},
    }[kind]
    lost = set().union(*(full(c) for c in task.criteria), set()) - holds
    texts = [task.prompt, *(c.text for c in task.criteria)]
    lost |= {f"a text that is {t!r}, which reads as nothing" for t in texts if says_nothing(t)}
    if kind == "rlvr" and any(absent(v) for c in task.criteria for v in c.meta.values()):
        lost.add("a null in the meta of a criterion")
    if not task.criteria:  # its row, if there is one, would be read as another format
        lost.add("a task without criteria")
    own = {
        k
        for k in ("truth", "sources", "system", "group", "split", "kind", "tags", "meta", "history")
        if getattr(task, k)
    }
    if kind == "rlvr":  # read back, it must be the same
        back = rlvr(Row(rlvr_row(task), 1, "row 1", Context())).task
        own &= {"history"} | ({"meta"} if back.meta.keys() != task.meta.keys() else set())
        own |= (
            {"criterion ids"}
            if {c.id for c in back.criteria} != {c.id for c in task.criteria}
            else set()
        )
    own -= {
        "open-instruct": {"system", "history"},
        "refiner": {"sources"},
    }.get(kind, set())
    return sorted(lost | own)


def write_tasks(
    path: str | os.PathLike[str],
    tasks: Iterable[Task],
    *,
    format: str = "rlvr",
    lossy: bool = False,
) -> int:
    """Write tasks in another system's format; the number of rows.

    format : "rlvr" (JSON array), or as JSONL "rlvr-list", "open-instruct", "refiner", "flat".
    lossy : write even where the format cannot hold something (weights, checks, truth ...);
        otherwise DataError names it.
    """
    if format not in WRITERS:
        raise DataError(
            f"there is no writer for {format!r}",
            where="format",
            fix=f"use one of {', '.join(WRITERS)}",
        )
    tasks = list(tasks)
    for t in tasks:
        if not lossy and (lost := _losses(t, format)):
            raise DataError(
                f"{format} cannot hold {', '.join(lost)}",
                where=f"task {t.id!r}",
                fix="use save_tasks (our own JSONL), or lossy=True",
            )
    if format == "rlvr":
        rows = [rlvr_row(t) for t in tasks]
        Path(path).write_bytes(b"[\n" + b",\n".join(dumps(r) for r in rows) + b"\n]\n")
        return len(rows)
    if format == "rlvr-list":
        return write_jsonl(
            path,
            (
                {"task_id": t.id, "prompt": t.prompt, "rubrics": [c.text for c in t.criteria]}
                for t in tasks
            ),
        )
    if format == "flat":
        return write_jsonl(path, (row for t in tasks for row in _flat(t)))
    return write_jsonl(
        path, ((_open_instruct if format == "open-instruct" else _refiner)(t) for t in tasks)
    )
