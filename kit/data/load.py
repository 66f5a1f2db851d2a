"""Read a rubric set out of a file or rows, and write it in the kit's own form."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from .. import checks
from ..errors import DataError
from ..records import Criterion, Response, Task, Verdict, group, to_json
from ..system.settings import nearest
from .files import rows_of, write_jsonl
from .formats import FORMATS, format_of
from .rows import ID, Reading, Row
from .taskset import Finding, TaskSet

Source = str | os.PathLike[str] | Iterable[Mapping[str, Any]]
MOST = 20  # errors in one message


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

    >>> tasks = load([{"id": "t1", "prompt": "Say hi.", "rubrics": [{"desc": "Is kind.", "points": 2}]}],
    ...              fields={"desc": "text"})
    >>> tasks, tasks[0].criteria[0].weight
    (TaskSet(rubric: 1 tasks, 0 answers, 0 verdicts, 0 findings), 2.0)
    """
    if format != "auto" and format not in FORMATS:
        raise DataError(
            f"there is no form {format!r}", where="format", fix=nearest(format, FORMATS)
        )
    if on_error not in ("raise", "skip"):
        raise DataError(f"on_error is {on_error!r}", fix="write raise or skip")
    path = Path(source) if isinstance(source, str | os.PathLike) else None
    reader = _Reader(format, dict(fields or {}), path)
    for where, data in rows_of(source):
        reader.read(where, data)
        if on_error == "raise" and len(reader.errors) >= MOST:
            break
    return reader.result(on_error)


class _Reader:
    """Rows in, records out: the errors and the findings are collected on the way."""

    def __init__(self, format: str, fields: dict[str, str], path: Path | None):
        self.format, self.fields, self.path = format, fields, path
        self.is_auto = format == "auto"
        self.rows = 0
        self.first: set[str] = set()
        self.uses: Counter[str] = Counter()
        self.errors: list[DataError] = []
        self.findings: list[Finding] = []
        self.unread: Counter[str] = Counter()
        self.lists: set[str] = set()  # unread fields that hold lists of texts
        self.equal = self.twins = 0
        self.tasks: dict[str, Task] = {}
        self.rows_of_task: dict[str, list[tuple[str, Criterion]]] = {}
        self.responses: dict[tuple[str, ...], Response] = {}
        self.verdicts: dict[tuple[str, ...], Verdict] = {}
        self.valid: set[bytes] = set()

    def read(self, where: str, data: Any) -> None:
        """Read one row; what is wrong with it is collected."""
        self.rows += 1
        try:
            if isinstance(data, DataError):
                raise data
            data = self._renamed(data) if self.fields else data
            self._same_form(data)
            row = Row(data, where)
            reading = FORMATS[self.format][1](row)
            self._left(row, reading)
            self._add(reading, where)
        except DataError as e:
            place = where if not e.where or e.where.startswith(where) else f"{where}, {e.where}"
            self.errors.append(DataError(e.what, where=place, fix=e.fix))
        except (TypeError, ValueError, AttributeError) as e:  # a value of another kind, deep inside
            self.errors.append(
                DataError(f"a field has another type than its form: {e}", where=where)
            )

    def _renamed(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """The row with its fields, and those of the objects in its lists, renamed."""

        def one(x: Mapping[str, Any]) -> dict[str, Any]:
            self.uses.update(k for k in x if k in self.fields)
            names = [self.fields.get(k, k) for k in x]
            if len(set(names)) < len(names):
                twice = next(n for n in names if names.count(n) > 1)
                raise DataError(f"after renaming, the field {twice!r} is there twice")
            return dict(zip(names, x.values(), strict=True))

        def inner(value: Any) -> Any:
            if not isinstance(value, list):
                return value
            return [one(x) if isinstance(x, dict) else x for x in value]

        return {k: inner(v) for k, v in one(data).items()}

    def _same_form(self, data: Mapping[str, Any]) -> None:
        filled = {k: v for k, v in data.items() if v is not None} if None in data.values() else data
        if self.is_auto and not self.first:
            self.format = format_of(filled)
        if not self.first:
            self.first = set(filled)
        elif self.is_auto and not FORMATS[self.format][0](filled):
            lost = sorted(self.first - filled.keys())
            raise DataError(
                f"the row is not in the form {self.format!r} of the first row",
                fix=f"fields that the first row has and this one lacks: {', '.join(lost)[:200]}",
            )

    def _left(self, row: Row, reading: Reading) -> None:
        """Count the fields that nothing read. A made-up id beside an unread id field is an error."""
        ids = [k for k in row if ID.fullmatch(k)]
        if ids and reading.made_id:
            is_task = reading.task is not None and self.format != "table"
            wanted = "task_id" if is_task else "response_id"
            raise DataError(
                f"nothing reads the id field {ids[0]!r}, and there is no {wanted!r}",
                fix=f"rename it: load(..., fields={{{ids[0]!r}: {wanted!r}}})",
            )
        self.unread.update(row.keys())
        for name, value in row.items():
            if isinstance(value, list) and value and all(isinstance(x, str) for x in value):
                self.lists.add(name)

    def _add(self, reading: Reading, where: str) -> None:
        for found in reading.findings:
            self.findings.append(found)
        task, responses, verdicts = reading.task, reading.responses, reading.verdicts
        if task is not None:
            self._validate(task)
            if self.format == "table":
                self._part(task)
            elif task.id in self.tasks:
                if not reading.made_id and self.tasks[task.id] != task:
                    raise DataError(
                        f"two different tasks have the id {task.id!r}",
                        fix="give each an id of its own",
                    )
                if reading.made_id:  # an equal row of training data counts again
                    self.twins += 1
                    n = 2
                    while f"{task.id}#{n}" in self.tasks:
                        n += 1
                    task = msgspec.structs.replace(task, id=f"{task.id}#{n}")
                    new = {"task_id": task.id}
                    responses = [msgspec.structs.replace(r, **new) for r in responses]
                    verdicts = [msgspec.structs.replace(v, **new) for v in verdicts]
                    self.tasks[task.id] = task
                else:
                    self.equal += 1
            else:
                self.tasks[task.id] = task
        for r in responses:
            if self.responses.setdefault(r.ids, r) != r:
                raise DataError(f"two different answers have the ids {' / '.join(r.ids)}")
        for v in verdicts:
            key = (*v.ids, v.judge)
            if self.verdicts.setdefault(key, v) != v:
                raise DataError(
                    f"there are two labels on {' / '.join(v.ids)} by {v.judge!r}",
                    fix="name the raters, or keep one label",
                )

    def _part(self, part: Task) -> None:
        """Put a row of a flat table to its task."""
        old = self.tasks.get(part.id)
        (new,) = part.criteria
        if old is None:
            self.tasks[part.id] = part
            return
        rest = {
            name: getattr(part, name) for name in ("prompt", "group", "kind", "split", "system")
        }
        if wrong := [k for k, v in rest.items() if v != getattr(old, k)]:
            raise DataError(
                f"the rows of task {part.id!r} differ in {wrong[0]!r}",
                fix="give each prompt a task_id of its own",
            )
        same = next((c for c in old.criteria if c.id == new.id), None)
        if same is None:
            self.tasks[part.id] = msgspec.structs.replace(old, criteria=(*old.criteria, new))
        elif same != new:
            raise DataError(f"criterion {new.id!r} differs between the rows of task {part.id!r}")

    def _validate(self, task: Task) -> None:
        for c in task.criteria:
            if c.check is None:
                continue
            key = msgspec.json.encode(c.check)
            # `all_met` asks for other criteria of its task; all others depend on their arguments alone
            if key not in self.valid or "of" in c.check:
                checks.validate(c, task if self.format != "table" else None)
                self.valid.add(key)

    def result(self, on_error: str) -> TaskSet:
        """The set; DataError with what was collected."""
        name = self.path.name if self.path else "rows"
        if self.errors and (on_error == "raise" or len(self.errors) == self.rows):
            raise _together(self.errors)
        if not self.rows:
            raise DataError("there are no rows", where=name)
        for key in self.fields:
            if not self.uses[key]:
                raise DataError(f"fields renames {key!r}, which no row has", where=name)
        made = TaskSet(
            tasks=list(self.tasks.values()),
            responses=list(self.responses.values()),
            verdicts=list(self.verdicts.values()),
            findings=[*self._counted(), *self._notes()],
            format=self.format,
            path=self.path,
        )
        if made.tasks:
            made.check(name)
        return made

    def _counted(self) -> Iterator[Finding]:
        """Findings of one code and message as one, with the number of rows; others as they are."""
        alike = group(((f.code, f.message, f.task_id), f) for f in self.findings)
        for found in alike.values():
            one = found[0]
            if len(found) > 1:
                one = msgspec.structs.replace(one, rows=len(found))
            yield one

    def _notes(self) -> Iterator[Finding]:
        where = self.path.name if self.path else "rows"
        none = not any(t.criteria for t in self.tasks.values())
        for name, n in self.unread.most_common():
            is_list = name in self.lists and none
            text = f"nothing reads the field {name!r} ({n} of {self.rows} rows); it is kept in meta"
            if is_list:
                text = f"no criterion was found, and nothing reads the list of texts in {name!r}"
            yield Finding(
                code="unread-list" if is_list else "unread-field",
                severity="warning" if is_list else "info",
                message=text,
                where=where,
                rows=n,
                field=name,
                suggestion=f"load(..., fields={{{name!r}: 'rubrics'}})" if is_list else None,
            )
        if self.errors:
            first = f"first: {self.errors[0].where}: {self.errors[0].what}"
            text = f"{len(self.errors)} of {self.rows} rows are left out; {first}"
            yield self._count("skipped-rows", len(self.errors), text, "warning")
        if self.twins:
            text = f"{self.twins} of {self.rows} rows are equal to an earlier row; all are kept"
            yield self._count("equal-rows", self.twins, text)
        if self.equal:
            text = f"{self.equal} of {self.rows} rows repeat a task of the same id; it counts once"
            yield self._count("equal-tasks", self.equal, text)

    def _count(self, code: str, n: int, text: str, severity: str = "info") -> Finding:
        where = self.path.name if self.path else "rows"
        return Finding(code=code, severity=severity, message=text, where=where, rows=n)


def _together(errors: list[DataError]) -> DataError:
    """One error out of many, each with its place."""
    first = errors[0]
    if len(errors) == 1:
        return first
    more = "".join(f"\n  and {e.where}: {e.what}" for e in errors[1:])
    least = "at least " * (len(errors) >= MOST)
    what = f"{first.what} (the first of {least}{len(errors)} faults)"
    return DataError(what, where=first.where, fix=first.fix + more)


def tasks_of(thing: Any) -> list[Task]:
    """Tasks out of a file, a TaskSet, Task records, or rows that `load` reads.

    >>> tasks_of([{"id": "t", "prompt": "p"}])[0].id
    't'
    """
    rows = getattr(thing, "tasks", thing)
    if isinstance(rows, str | os.PathLike) or hasattr(rows, "iloc"):
        return load(rows).tasks
    rows = [rows] if isinstance(rows, Task) else list(rows)
    if all(isinstance(t, Task) for t in rows):
        return rows
    return load(rows).tasks


def save(path: str | os.PathLike[str], taskset: TaskSet) -> int:
    """Write a rubric set as the kit's own JSONL, one record a line; `load` gives the same back.

    Returns the number of rows. A name that ends with .gz is compressed.
    """
    records: list[Any] = [*taskset.tasks, *taskset.responses, *taskset.verdicts]
    return write_jsonl(path, map(to_json, records))
