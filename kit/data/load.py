"""Read a rubric data set of any known format: as a stream (`iter_tasks`) or whole (`load_tasks`);
write ours."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..claims.bags import known_names
from ..errors import DataError
from ..records import Response, Task, Verdict, is_held_out
from ..settings.read import closest
from . import detect
from .again import settled
from .encodings import HALF, mended
from .files import is_url
from .findings import Finding, Note
from .formats.benchmarks import flat
from .formats.kit import record_row
from .jsonl import plain, write_jsonl
from .labels import FIELDS, extent, odd_labels, scale_of
from .levels import SCALE, by_levels
from .rows import Context, Row
from .shelf import Ids, Shelf, Texts
from .tables import kind_of, named, read_values
from .taskset import Parsed, TaskSet

LOOK = 50  # rows that decide the format
Source = str | os.PathLike[str] | Iterable[Mapping[str, Any]]


def iter_tasks(
    source: Source, format: str = "auto", *, context: Context | None = None
) -> Iterator[Parsed]:
    """Stream `Parsed` items, one per row (one per task for flat tables, whose rows wait for each
    other on disk); memory does not grow with the file but for task ids.

    source : a file (JSONL, JSON, CSV, Parquet), its address (https://, s3://, hf://), or rows (a
        `datasets.Dataset` too).
    format : "auto", or one of `detect.FORMATS`.
    The last item holds the findings about the file as a whole. Every row gives a task, a response,
    a verdict or an error finding.
    """
    context = context if context is not None else Context()
    if format != "auto" and format not in detect.FORMATS:
        raise DataError(
            f"there is no format {format!r}",
            where="format",
            fix=(f"did you mean {n!r}? " if (n := closest(format, detect.FORMATS)) else "")
            + ", ".join(detect.FORMATS),
        )
    lost: list[Finding] = []

    def problem(where: str, message: str) -> None:
        harmless = isinstance(message, Note)
        lost.append(
            Finding(
                code=message.code if harmless else "unreadable-row",
                message=str(message),
                where=where,
                severity=message.severity if harmless else "error",
                suggestion="correct the file there",
            )
        )
        if not harmless:
            context.rows += 1
            context.skipped += 1

    stream = _values(source, context, problem)
    head = list(itertools.islice((x for x in stream if x is not None), LOOK))
    rows = [value for _, value in head if isinstance(value, Mapping)]
    if format != "auto":
        context.format = format
    elif rows:
        context.format = detect.detect(rows, where=context.name)
    elif not head and not lost:
        context.format = "empty"
    else:
        raise DataError(
            "the file has no row that can be read",
            where=lost[0].where if lost else context.name,
            fix=f"{lost[0].message}" if lost else "write one object per row",
        )
    stream = itertools.chain(head, stream)
    stream = _on_scale(source, stream, context)
    with tempfile.SpooledTemporaryFile(2**22) as file:
        for p in _read(stream, context, Shelf(file, context), auto=format == "auto"):
            p = replace(p, findings=(*lost, *p.findings))  # those of lines before it
            lost.clear()
            yield settled(p if context.whole else _levelled(p), context)
    yield Parsed(row=0, where=context.name, findings=(*lost, *_whole_file(context)))


def _levelled(p: Parsed) -> Parsed:
    """A row with its labels read by its own levels; one that the whole file would have to tell is
    unknown, and an error."""
    verdicts, findings = by_levels(p.verdicts, p.findings, filter(None, [p.task]))
    return replace(p, verdicts=tuple(verdicts), findings=tuple(findings))


def _on_scale(source: Source, stream: Iterable[Any], context: Context) -> Iterable[Any]:
    """The stream; before the first row with labels the scale of all is known, and whose their ids
    are: a file is read once more for it, of other rows the rest is held."""
    stream = iter(stream)
    for first in stream:
        if isinstance(first[1], Mapping) and _labelled(first[1], context):
            break
        yield first
    else:
        return
    rest = itertools.chain([first], stream)
    if isinstance(source, (str, os.PathLike)) and (is_url(source) or Path(source).is_file()):
        held = _values(source, Context(), lambda *_: None)
    else:
        held = rest = list(rest)
    ids = Ids(context)
    found = (detect.labels_of(ids.look(row)) for _, row in held if isinstance(row, Mapping))
    context.extent = extent(itertools.chain.from_iterable(found))
    context.scale = scale_of(*context.extent)
    if context.format in ("flat", "answers"):
        ids.say()
    yield from rest


def _labelled(row: Mapping[str, Any], context: Context) -> bool:
    # the numbers of two formats mean nothing without their scale
    rated = context.format in ("flat", "answers") or not row.keys().isdisjoint(FIELDS)
    return rated or any(isinstance(k, str) and detect.RATED.match(k) for k in row)


def _values(source: Source, context: Context, problem: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(source, Mapping) or not isinstance(source, (str, os.PathLike, Iterable)):
        fix = "put a row into a list" if isinstance(source, Mapping) else "give a file or rows"
        fix = f"give one of its parts: {list(source)[:5]}" if hasattr(source, "num_rows") else fix
        raise DataError(f"the source is a {type(source).__name__}", where="kit.load", fix=fix)
    if hasattr(source, "to_dict") and hasattr(source, "iloc"):
        raise DataError(
            "the source is a DataFrame",
            where="kit.load",
            fix='give its rows: kit.load(frame.to_dict("records"))',
        )
    if isinstance(source, (str, os.PathLike)):
        text = os.fspath(source)
        context.name = context.name or Path(text).name
        rows = read_values(text, problem=problem)
        typed = kind_of(text) == "parquet"
        return ((where, plain(row, context.changed)) for where, row in rows) if typed else rows
    context.name, context.given = context.name or "rows", True
    name, features = context.name, getattr(source, "features", None)
    features = features.to_dict() if hasattr(features, "to_dict") else {}
    split = getattr(source, "split", None)  # a whole data set may be one side
    side = {"split": str(split)} if is_held_out(split) else {}
    rows = ({**side, **named(row, features)} for row in source) if features or side else source
    return ((f"{name}, row {i}", _plain(row, context)) for i, row in enumerate(rows, 1))


def _plain(row: Any, context: Context) -> Any:
    try:
        return plain(row, context.changed)
    except RecursionError:
        return TooDeep()


class TooDeep:
    """What stands for a row that is nested too deeply to be read."""


def _read(
    stream: Iterable[tuple[str, Any]], context: Context, shelf: Shelf, *, auto: bool
) -> Iterator[Parsed]:
    reader = detect.READERS.get(context.format)
    ours = context.format == "kit"
    for where, value in stream:
        context.rows += 1
        number = context.rows
        if not isinstance(value, Mapping):
            context.skipped += 1
            yield _error(number, where, f"the row is {type(value).__name__}, not an object")
            continue
        row = _row(value, number, where, context)
        looks = detect.format_of(row.data) if auto else None
        # a prompt may lack what makes it theirs
        if not ours and looks not in (None, "kit", "prompts", context.format):
            context.count(
                "mixed-formats",
                f"look like the format {looks!r}; all are read as {context.format!r}, which no "
                f"other outnumbers among the first {LOOK}",
                "warning",
                suggestion="put them into a file of their own, or give format=",
            )
        names = context.names if reader else context.names | detect.columns(row.data)
        row.data = {names.get(k, k): v for k, v in row.data.items()}
        if reader is None:  # a flat table: it may be sorted by model, by criterion or by rater
            shelf.put(row)
            continue
        own = looks if looks == ("checklist" if ours else "kit") else context.format
        yield _one(detect.READERS[own], row, context)
    texts = Texts(context)
    for rows in shelf:
        texts.look(rows)
        yield flat(rows)
    texts.say()


def _row(value: Mapping[str, Any], number: int, where: str, context: Context) -> Row:
    row = Row(mended(value) if context.given else value, number, where, context)
    if row.data != value:
        row.find("encoding", HALF, suggestion="repair the text at its source")
    return row


def _one(reader: Any, row: Row, context: Context) -> Parsed:
    try:
        parsed = reader(row)
    except (DataError, RecursionError) as e:
        parsed = _error(row.number, row.where, str(e), row.findings)
    if parsed.empty:
        context.skipped += 1
        if not any(f.severity == "error" for f in parsed.findings):
            parsed = _error(row.number, row.where, "the row holds nothing", parsed.findings)
    return parsed


def _error(number: int, where: str, message: str, before: Iterable[Finding] = ()) -> Parsed:
    """A row of which nothing is read. before : what was found until then."""
    return Parsed(
        row=number,
        where=where,
        findings=(
            *before,
            Finding(
                code="unreadable-row",
                severity="error",
                message=message,
                where=where,
                row=number,
                suggestion="correct the row; it was left out",
            ),
        ),
    )


def _whole_file(context: Context) -> Iterator[Finding]:
    if not context.rows:
        yield Finding(
            code="no-rows",
            severity="error",
            where=context.name,
            message="there is no row in it",
            suggestion="check that the download or export finished; a table has a header and rows",
        )
    if context.scale and context.scale[1] == context.scale[1]:
        sure = context.extent[1] == context.scale[1]
        yield Finding(
            code=SCALE,
            severity="info" if sure else "warning",
            where=context.name,
            field="label",
            message="numeric labels are read on the scale {:g}-{:g}".format(*context.scale)
            + f"; the largest of the file is {context.extent[1]:g}",
            suggestion=None
            if sure
            else "where the scale ends there, write shares (50%), or give the criterion levels",
        )
    for f, n in context.counted.most_common():
        if n > 1 or context.rows > 1 or f.code != "missing-field":
            yield replace(f, message=f"{n} of {context.rows} rows {f.message}")
    for (name, kind), n in context.changed.most_common(50):
        yield Finding(
            code="value-type",
            severity="info",
            where=context.name,
            field=name,
            message=f"{n} values of the field {name!r} are of type {kind}; they became text",
        )
    if context.numbered:
        where, field, text = context.numbered.get(True) or context.numbered[False]
        yield Finding(
            code="numbers-in-text",
            severity="warning" if True in context.numbered else "info",
            where=where,
            field=field,
            message="the texts hold numbers that are not read as weights: every criterion weighs 1",
            text=text,
            suggestion="where they say what a criterion is worth, write it as its weight",
        )
    if context.alike:
        yield Finding(
            code="same-prompt",
            severity="warning",
            where=context.name,
            field="id",
            message=f"{context.alike} rows without an id have the prompt of another row and other "
            "criteria or fields: they are tasks of their own, and intervals by task are too narrow",
            suggestion="give the rows of one prompt one id or one group; a text that an answer "
            "needs stands in the prompt or in sources",
        )
    yield from context.unread.findings(context.name, context.rows)
    yield from context.astray.findings(context.name, context.rows)


def load_tasks(path: Source, format: str = "auto") -> TaskSet:
    """Read a data set whole; for files too large for memory use `iter_tasks`.

    A row that cannot be read is an error among `.findings` and counted in `.skipped`; `.sound()`
    refuses it.
    """
    context = Context(whole=True)
    held = list(iter_tasks(path, format, context=context))
    tasks = [p.task for p in held if p.task is not None]
    rows_of = {p.task.id: p.row for p in held if p.task is not None}
    said = [v for p in held for v in p.verdicts]
    verdicts, findings = by_levels(said, [f for p in held for f in p.findings], tasks)
    findings += odd_labels(
        verdicts, {t.id: {c.id for c in t.criteria} for t in tasks if t.criteria}
    )
    real = Path(os.fspath(path)) if isinstance(path, (str, os.PathLike)) else None
    return TaskSet(
        tasks=known_names(tasks),
        responses=[r for p in held for r in p.responses],
        verdicts=verdicts,
        findings=findings,
        format=context.format,
        path=real,
        rows=context.rows,
        skipped=context.skipped,
        rows_of=rows_of,
    )


def tasks_of(given: Any, where: str = "tasks") -> list[Task]:
    """Tasks out of a file, a TaskSet, Task records, or rows that `load_tasks` reads; a list.

    DataError for a file or rows with errors, and for what is no task.

    >>> [t.prompt for t in tasks_of([{"prompt": "Say hi.", "rubrics": ["It greets."]}])]
    ['Say hi.']
    """
    given = getattr(given, "tasks", given)
    records = [given] if isinstance(given, Task) else given
    if isinstance(given, (str, os.PathLike)) or hasattr(given, "iloc"):
        return load_tasks(given).sound().tasks
    rows = list(records) if isinstance(records, Iterable) else [records]
    if rows and all(isinstance(row, Mapping) for row in rows):
        return load_tasks(given).sound().tasks
    for n, row in enumerate(rows, 1):
        if not isinstance(row, Task):
            raise DataError(
                f"a {type(row).__name__} is no task",
                where=f"{where}, number {n}",
                fix="give what kit.load returned, or rows that it reads",
            )
    return rows


def save_tasks(
    path: str | os.PathLike[str],
    tasks: TaskSet | Iterable[Task],
    *,
    responses: Iterable[Response] = (),
    verdicts: Iterable[Verdict] = (),
) -> int:
    """Write our own JSONL (tasks, then responses, then verdicts); the number of records.
    `load_tasks` gives the same back."""
    if not isinstance(path, (str, os.PathLike)) or not isinstance(tasks, (TaskSet, Iterable)):
        raise DataError(
            f"the path is a {type(path).__name__}, the tasks are a {type(tasks).__name__}",
            where="kit.save(path, tasks)",
            fix="give the path first, then what kit.load gave, or a list of tasks",
        )
    if isinstance(tasks, TaskSet):
        own = set(map(id, (*tasks.responses, *tasks.verdicts)))  # given beside it, they count once
        responses = [*tasks.responses, *(r for r in responses if id(r) not in own)]
        verdicts = [*tasks.verdicts, *(v for v in verdicts if id(v) not in own)]
        tasks = tasks.tasks
    return write_jsonl(path, map(record_row, itertools.chain(tasks, responses, verdicts)))
