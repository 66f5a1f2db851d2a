"""Read a rubric set out of a file or rows, and write it in the kit's own form."""

import gc
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from .. import checks
from ..errors import DataError
from ..records import Response, Task, Verdict, group, to_json
from ..system.settings import nearest
from .files import rows_of, write_jsonl
from .formats import FORMATS, format_of
from .rows import ID, Row
from .taskset import Finding, TaskSet

MOST = 20  # faults in one message


def load(
    source: Any,
    *,
    format: str = "auto",
    fields: Mapping[str, str] | None = None,
    on_error: Literal["raise", "skip"] = "raise",
) -> TaskSet:
    """Load a rubric set: tasks with criteria, and answers and labels where the file has them.

    source : a JSONL, JSON, CSV or Parquet file (also .gz), `hf://datasets/OWNER/NAME/FILE`, a DataFrame, a
        `datasets.Dataset`, or a list of dicts.
    format : "auto", or a form of the table in `kit/data/formats.py`. Every row must have the form of the first.
    fields : renames fields of rows and of criteria, yours -> ours.
    on_error : "raise" collects up to 20 faults and raises; "skip" leaves such rows out and counts them in `.findings`.

    DataError names file, row and field of what is not in the form. MissingError where there is no file.

    >>> rows = [{"id": "t1", "prompt": "Say hi.", "rubrics": [{"desc": "Is kind.", "points": 2}]}]
    >>> tasks = load(rows, fields={"desc": "text"})
    >>> tasks, tasks[0].criteria[0].weight
    (TaskSet(rubric: 1 tasks, 0 answers, 0 verdicts, 0 findings), 2.0)
    """
    if format not in ("auto", *FORMATS):
        raise DataError(
            f"there is no form {format!r}", where="format", fix=nearest(format, FORMATS)
        )
    reader = _Reader(source, format, dict(fields or {}))
    # Nothing that is made here is garbage; looking for it again and again takes a third of the time.
    gc.disable()
    try:
        for where, data in rows_of(source):
            reader.read(where, data)
            if on_error != "skip" and len(reader.errors) >= MOST:
                break
        return reader.result(on_error)
    finally:
        gc.enable()


class _Reader:
    """Rows in, records out: errors and findings are collected on the way."""

    def __init__(self, source: Any, format: str, fields: dict[str, str]):
        self.path = Path(source) if isinstance(source, str | os.PathLike) else None
        self.name = self.path.name if self.path else "rows"
        self.format, self.is_auto, self.fields = format, format == "auto", fields
        self.renames: set[str] = set()
        self.first: set[str] = set()  # the fields of the row that says the form
        self.rows = self.twins = 0
        self.errors: list[DataError] = []
        self.findings: list[Finding] = []
        self.unread: Counter[str] = Counter()
        self.tasks: dict[str, Task] = {}
        self.records: dict[tuple[str, ...], Response | Verdict] = {}
        self.valid: set[bytes] = set()  # checks that were validated

    def read(self, where: str, data: Any) -> None:
        """Read one row; what is wrong with it is collected."""
        self.rows += 1
        try:
            data = data() if callable(data) else data
            if not isinstance(data, dict):
                raise DataError(
                    f"the row is a {type(data).__name__}, not an object with fields"
                )
            data = self._rename(data) if self.fields else data
            self._check_form(data)
            row = Row(data, where)
            FORMATS[self.format][1](row)
            self._count_unread(row)
            self._add(row)
            self.findings += row.findings
        except DataError as e:
            place = f"{where}, {e.where}" if e.where else where
            self.errors.append(DataError(e.what, where=place, fix=e.fix))
        # A value of another kind deep inside a row; asking for each would double the code.
        except (TypeError, ValueError, AttributeError) as e:
            self.errors.append(
                DataError(f"a field is not in its form: {e}", where=where)
            )

    def _rename(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """The row with its fields, and those of the objects in its lists, renamed."""

        def inner(value: Any) -> Any:
            is_list = isinstance(value, list)
            return (
                [self._rename(x) if isinstance(x, dict) else x for x in value]
                if is_list
                else value
            )

        self.renames |= data.keys() & self.fields.keys()
        out = {self.fields.get(key, key): inner(value) for key, value in data.items()}
        if len(out) < len(data):
            raise DataError(
                f"after renaming, a field is there twice: {', '.join(data)}"
            )
        return out

    def _check_form(self, data: Mapping[str, Any]) -> None:
        """Take the form of the first row; DataError where a later row does not fit it."""
        names = {k: v for k, v in data.items() if v is not None}
        if self.format == "auto":
            self.format, self.first = format_of(names), set(names)
        elif self.is_auto and not FORMATS[self.format][0](names):
            raise DataError(
                f"the row is not in the form {self.format!r} of the first row",
                fix=f"this row lacks {', '.join(sorted(self.first - names.keys()))[:200]}",
            )

    def _count_unread(self, row: Row) -> None:
        """Count the fields that nothing read. An id among them is an error: a join would fail later."""
        if ids := [k for k in row if ID.fullmatch(k)]:
            wanted = "task_id" if row.task and self.format != "table" else "response_id"
            raise DataError(
                f"nothing reads the id field {ids[0]!r}",
                fix=f"rename it: load(..., fields={{{ids[0]!r}: {wanted!r}}}), or to 'note'",
            )
        self.unread.update(row.keys())

    def _add(self, row: Row) -> None:
        """Take in the records of a row: all of them, or none with a DataError."""
        task, old = row.task, self.tasks.get(row.task.id) if row.task else None
        new_id = {}
        if task is not None:
            self._validate(task)
        if old is not None and self.format == "table":
            task = _joined(old, task)
        elif old is not None and old != task:
            what = f"two different tasks have the id {old.id!r}"
            raise DataError(what, fix="give each an id of its own")
        elif old is not None:
            # An equal row of training data counts again, under an id of its own.
            self.twins += 1
            new_id = {"task_id": f"{old.id}#{self.twins + 1}"}
            task = msgspec.structs.replace(old, id=new_id["task_id"])
        new: dict[tuple[str, ...], Response | Verdict] = {}
        for record in row.records:
            record = msgspec.structs.replace(record, **new_id) if new_id else record
            key = (*record.ids, getattr(record, "judge", ""))
            if new.setdefault(key, self.records.get(key, record)) != record:
                kind = "labels" if isinstance(record, Verdict) else "answers"
                raise DataError(
                    f"there are two different {kind} {' / '.join(key)}",
                    fix="correct one, or give it an id (a label: a rater) of its own",
                )
        self.records |= new
        self.tasks |= {task.id: task} if task else {}

    def _validate(self, task: Task) -> None:
        for c in task.criteria:
            # `of` names other criteria of the task; all other checks are the same in each task.
            key = msgspec.json.encode(c.check) if c.check else b""
            if c.check and ("of" in c.check or key not in self.valid):
                checks.validate(c, None if self.format == "table" else task)
                self.valid.add(key)

    def result(self, on_error: str) -> TaskSet:
        """The rubric set; DataError with what was collected."""
        if self.errors and (on_error != "skip" or len(self.errors) == self.rows):
            raise _together(self.errors)
        if not self.rows:
            raise DataError("there are no rows", where=self.name)
        if lost := self.fields.keys() - self.renames:
            raise DataError(
                f"fields= renames {min(lost)!r}, which no row has", where=self.name
            )
        made = TaskSet(
            tasks=list(self.tasks.values()),
            responses=[r for r in self.records.values() if isinstance(r, Response)],
            verdicts=[v for v in self.records.values() if isinstance(v, Verdict)],
            findings=list(self._notes()),
            format=self.format,
            path=self.path,
        )
        if made.tasks:
            made.check(self.name)
        return made

    def _notes(self) -> Iterator[Finding]:
        """Findings, those with one message as one; then what was counted."""
        for alike in group(((f.message, f.task_id), f) for f in self.findings).values():
            yield msgspec.structs.replace(alike[0], rows=len(alike))
        for name, n in self.unread.most_common():
            what = f"nothing reads the field {name!r} ({n} of {self.rows} rows); it is in meta"
            yield self._note("unread-field", what, n, field=name)
        if not any(t.criteria for t in self.tasks.values()):
            lists = {
                k
                for t in self.tasks.values()
                for k, v in t.meta.items()
                if _is_texts(v)
            }
            for name in sorted(lists & self.unread.keys()):
                what = (
                    f"no criterion was found, and nothing reads the texts in {name!r}"
                )
                fix = f"load(..., fields={{{name!r}: 'rubrics'}})"
                more = {"severity": "warning", "suggestion": fix, "field": name}
                yield self._note("unread-list", what, self.unread[name], **more)
        if self.twins:
            what = f"{self.twins} of {self.rows} rows are equal to an earlier row; all are kept"
            yield self._note("equal-rows", what, self.twins)
        if self.errors:
            n, first = len(self.errors), self.errors[0]
            what = f"{n} of {self.rows} rows are left out; first: {first.where}: {first.what}"
            yield self._note("skipped-rows", what, n, severity="warning")

    def _note(
        self, code: str, message: str, rows: int, severity: str = "info", **more: Any
    ) -> Finding:
        about = {"where": self.name, "rows": rows, **more}
        return Finding(code=code, severity=severity, message=message, **about)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(x, str) for x in value)


def _joined(old: Task, part: Task) -> Task:
    """A task of a flat table with the criterion of one more row; DataError where the rows disagree."""
    for name in ("prompt", "group", "kind", "split", "system"):
        if getattr(old, name) != getattr(part, name):
            what = f"the rows of task {old.id!r} differ in {name!r}"
            raise DataError(what, fix="give each prompt a task_id of its own")
    (new,) = part.criteria
    same = [c for c in old.criteria if c.id == new.id]
    if same and same[0] != new:
        raise DataError(
            f"criterion {new.id!r} differs between the rows of task {old.id!r}"
        )
    return old if same else msgspec.structs.replace(old, criteria=(*old.criteria, new))


def _together(errors: list[DataError]) -> DataError:
    """One error out of many, each with its place."""
    first = errors[0]
    count = f" (first of {len(errors)} faults)" if len(errors) > 1 else ""
    more = "".join(f"\n  and {e.where}: {e.what}" for e in errors[1:MOST])
    return DataError(first.what + count, where=first.where, fix=first.fix + more)


def tasks_of(thing: Any) -> list[Task]:
    """Tasks out of a file, a TaskSet, Task records, or rows that `load` reads.

    >>> tasks_of([{"id": "t", "prompt": "p"}])[0].id
    't'
    """
    rows = getattr(thing, "tasks", thing)
    if isinstance(rows, list | tuple) and all(isinstance(t, Task) for t in rows):
        return list(rows)
    return [rows] if isinstance(rows, Task) else load(rows).tasks


def save(path: str | os.PathLike[str], taskset: TaskSet) -> int:
    """Write a rubric set as the kit's own JSONL, one record a line; `load` gives the same back.

    Returns the number of rows. A name that ends with .gz is compressed.
    """
    records: list[Any] = [*taskset.tasks, *taskset.responses, *taskset.verdicts]
    return write_jsonl(path, map(to_json, records))
