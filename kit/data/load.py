"""A rubric set in memory, read out of a file or rows, and written in the kit's own form."""

from __future__ import annotations

import contextlib
import gzip
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import filterfalse
from pathlib import Path
from typing import Any, Literal

import msgspec

from .. import checks
from ..errors import DataError
from ..records import (
    Finding,
    Response,
    Task,
    Verdict,
    check_labels,
    count_of,
    fingerprint,
    group,
)
from ..system import paths
from ..system.settings import nearest, require_name
from .files import (
    CELL_ENDINGS,
    Fields,
    Source,
    filled_fields,
    no_rows,
    parse_chats,
    row_fields,
    rows_of,
    typed_cells,
)
from .formats import (
    FORMATS,
    KNOWN_FIELDS,
    READ_BY_A_FORM,
    format_of_rows,
    no_form,
)
from .rows import ID, Row, near_names, rename_fields

# Different faults in one message.
MAX_FAULTS = 20
# A field that nothing reads is a slip where it is so like one of ours, or has its letters in another order ("wieght").
# "level", "height" and "content" are words of their own.
SLIP = 0.87


@dataclass(frozen=True, kw_only=True, repr=False)
class TaskSet:
    """Tasks with answers and verdicts.

    verdicts : labels of people (judge "human" or "human:NAME") and recorded verdicts of judges.
    findings : what `load` noticed. format : the form of the file. path : the file, if there is one.

    >>> TaskSet(tasks=[Task(id="t", prompt="p")])
    TaskSet(kit: 1 task, 0 answers, 0 verdicts, 0 findings)
    """

    tasks: list[Task] = field(default_factory=list)
    responses: list[Response] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    format: str = "kit"
    path: Path | None = None

    def __len__(self) -> int:
        return len(self.tasks)

    def __iter__(self) -> Iterator[Task]:
        return iter(self.tasks)

    def __getitem__(self, i: int) -> Task:
        return self.tasks[i]

    @cached_property
    def by_id(self) -> dict[str, Task]:
        """Tasks by id."""
        return {t.id: t for t in self.tasks}

    @cached_property
    def _answers(self) -> dict[str, list[Response]]:
        return group((r.task_id, r) for r in self.responses)

    def answers(self, task_id: str) -> list[Response]:
        """The answers to one task."""
        return self._answers.get(task_id, [])

    def labels(self, task_id: str) -> list[Verdict]:
        """The labels and recorded verdicts on one task's answers."""
        return [v for v in self.verdicts if v.task_id == task_id]

    def halves(self) -> tuple[list[Task], list[Task]]:
        """(tasks to train on, tasks that are held out), by their field `split`.

        >>> tasks = [Task(id="a", prompt="p"), Task(id="b", prompt="p", split="test")]
        >>> [len(half) for half in TaskSet(tasks=tasks).halves()]
        [1, 1]
        """
        return (
            [t for t in self.tasks if not t.held_out],
            [t for t in self.tasks if t.held_out],
        )

    def joined(self, other: TaskSet) -> TaskSet:
        """This set with the tasks, answers and verdicts of another one, joined by their ids.

        A record that both sets hold must be the same in both. DataError names the first id of an answer or label
        whose task, answer or criterion is missing.

        >>> answers = TaskSet(responses=[Response(task_id="tt", id="r", text="x")])
        >>> TaskSet(tasks=[Task(id="t", prompt="p")]).joined(answers)
        Traceback (most recent call last):
        ...
        kit.errors.DataError: answers or labels without their task, answer or criterion: 1; first the answer tt / r
          where: the other set
          to do: make the ids equal: task_id, response_id, criterion_id
        """
        name = other.path.name if other.path else "the other set"
        both = replace(
            self,
            tasks=_merge_records(self.tasks, other.tasks, lambda t: (t.id,), name),
            responses=_merge_records(
                self.responses, other.responses, lambda r: r.ids, name
            ),
            verdicts=_merge_records(
                self.verdicts, other.verdicts, lambda v: (*v.ids, v.judge), name
            ),
            findings=[*self.findings, *other.findings],
        )
        both.check(name)
        return both

    def check(self, where: str = "") -> None:
        """DataError for an answer or label without its task, answer or criterion, or a label on another scale."""
        criteria = {(t.id, c.id) for t in self.tasks for c in t.criteria}
        answers = {r.ids for r in self.responses}
        lost = [
            f"answer {' / '.join(r.ids)}"
            for r in self.responses
            if r.task_id not in self.by_id
        ] + [
            f"label {' / '.join(v.ids)}"
            for v in self.verdicts
            if v.answer_ids not in answers or v.ids[::2] not in criteria
        ]
        if lost:
            raise DataError(
                f"answers or labels without their task, answer or criterion: {len(lost)}; first the {lost[0]}",
                where=where,
                fix="make the ids equal: task_id, response_id, criterion_id",
            )
        check_labels(self.tasks, self.verdicts, where)

    def __repr__(self) -> str:
        return (
            f"TaskSet({self.format}: {count_of(len(self.tasks), 'task')}, {count_of(len(self.responses), 'answer')}, "
            f"{count_of(len(self.verdicts), 'verdict')}, {count_of(len(self.findings), 'finding')})"
        )


def _merge_records(
    mine: Sequence[Any],
    theirs: Sequence[Any],
    key: Callable[[Any], tuple[str, ...]],
    name: str,
) -> list[Any]:
    merged = {key(x): x for x in mine}
    for x in theirs:
        if merged.setdefault(key(x), x) != x:
            raise DataError(
                f"{' / '.join(key(x))} differs between the two sets",
                where=name,
                fix="correct one of them, or rename its id",
            )
    return list(merged.values())


def load(
    source: Source,
    *,
    format: str = "auto",
    fields: Mapping[str, str] | None = None,
    on_error: Literal["raise", "skip"] = "raise",
) -> TaskSet:
    """Load a rubric set: tasks with criteria, and answers and labels where the file has them.

    source : a JSONL, JSON, CSV or Parquet file (also .gz), `hf://datasets/OWNER/NAME/FILE`, a DataFrame, a
        `datasets.Dataset`, or a list of dicts.
    format : "auto" (the form of most rows), or a form of the table in `kit/data/formats.py`.
    fields : renames fields of rows and of criteria, yours -> ours. Several may be renamed to "note": they stay in meta.
    on_error : "raise" raises all faults as one error; "skip" leaves such rows out and lists the faults in `.findings`.

    DataError names file, row and field of what is not in the form. MissingError where there is no file.

    >>> rows = [{"id": "t1", "prompt": "Say hi.", "rubrics": [{"desc": "Is kind.", "points": 2}]}]
    >>> tasks = load(rows, fields={"desc": "text"})
    >>> tasks, tasks[0].criteria[0].weight
    (TaskSet(rubric: 1 task, 0 answers, 0 verdicts, 1 finding), 2.0)
    """
    require_name("form", format, ("auto", *FORMATS), where="format")
    return _Reader(source, format, dict(fields or {})).run(source, on_error)


class _Reader:
    """Rows in, records out: errors and findings are collected on the way."""

    def __init__(self, source: Source, format: str, fields: dict[str, str]):
        self.path = Path(source) if isinstance(source, str | os.PathLike) else None
        self.file = self.path.name if self.path else "rows"
        self.chosen = self.format = format
        self.fields = fields
        # Names of fields in rows and in the objects of their lists.
        self.names: set[str] = set()
        # Number -> place, the row as it is, the row with its fields renamed.
        self.rows: dict[int, tuple[str, Fields, Fields]] = {}
        self.errors: dict[int, DataError] = {}
        self.notes: Counter[Finding] = Counter()
        self.tasks: dict[str, Task] = {}
        self.records: dict[tuple[str, ...], Response | Verdict] = {}
        # Fingerprints of the rows of a table or of answers.
        self.contents: set[str] = set()
        # The calls of `load` in an error.
        self.calls: dict[str, Fields] = {}

    def run(self, source: Source, on_error: str) -> TaskSet:
        """Read all rows, and say what is wrong with them."""
        for n, (place, parse_row) in enumerate(rows_of(source, self.fields)):
            with self._collected(n, place):
                original = row_fields(parse_row)
                renamed = self._rename(original)
                self.rows[n] = (place, original, parse_chats(renamed))
        count = len(self.rows | self.errors)
        if not count:
            raise no_rows(self.file)
        if lost := self.fields.keys() - self.names:
            # A slip in fields= would leave the criteria of every row unread.
            raise DataError(
                f"fields= (--map) renames {min(lost)!r}, which no row has",
                where=self.file,
                fix=nearest(min(lost), self.names),
            )
        if self.format == "auto":
            self.format = format_of_rows(
                filled_fields(row) for _, _, row in self.rows.values()
            )
        for n, (place, _, row) in self.rows.items():
            with self._collected(n, place):
                self.read(n + 1, Row(row))
        if self.errors and (on_error != "skip" or len(self.errors) == count):
            raise self._all_errors(count)
        return self.result(count)

    @contextlib.contextmanager
    def _collected(self, n: int, place: str) -> Iterator[None]:
        """Collect what is wrong with row n."""
        try:
            yield
        except DataError as e:
            self.errors[n] = e.at(place)
        # A value of another kind deep inside a row; asking for each would double the code.
        except (TypeError, ValueError, AttributeError) as e:
            self.errors[n] = DataError(
                f"a field is not in its form: {e}",
                where=place,
                fix="compare the row with the forms in kit/data/formats.py",
            )

    def read(self, n: int, row: Row) -> None:
        """Read row n in the form of the file."""
        if not self.format:
            raise no_form(row)
        fits, reader = FORMATS[self.format]
        if not fits(filled_fields(row.data)):
            raise DataError(
                f"the row is not in the form {self.format!r} of the file",
                fix=f"write it in that form; its fields are {', '.join(map(repr, row))}",
                # No id says the form of a row.
                renames=near_names(
                    tuple(filterfalse(ID.fullmatch, row)), READ_BY_A_FORM
                ),
            )
        reader(row)
        self._check_unread(row)
        self._add(n, row)
        self.notes.update(row.notes)

    def _rename(self, data: Mapping[str, Any]) -> Fields:
        """The row with its fields, and those of the objects in its lists, renamed."""
        self.names |= data.keys()
        out = rename_fields(data, self.fields)
        # Criteria and turns are objects in lists. Deeper ones ("meta") keep their names.
        for name, value in out.items():
            if isinstance(value, list):
                out[name] = [
                    self._rename(x) if isinstance(x, dict) else x for x in value
                ]
        return out

    def _check_unread(self, row: Row) -> None:
        """Note the fields that nothing read; DataError for one that would be missed later."""
        if ids := list(filter(ID.fullmatch, row)):
            raise DataError(
                f"nothing reads the id {', '.join(map(repr, ids))}",
                fix="rename the id that other files use to 'task_id' or 'response_id', every other one to 'note'",
                # Where the row has its id, it is refused again.
                renames=near_names(tuple(row), ()),
            )
        names = READ_BY_A_FORM
        # In other forms a level is a word of its own.
        if self.format in ("table", "labels"):
            names |= {"levels"}
        for name, value in row.items():
            near = near_names((name,), names)
            ours = near.get(name, "")
            if sorted(ours) != sorted(name.lower()):
                near = near_names((name,), names, cutoff=SLIP)
            if (near or name in names) and value not in ("", [], {}):
                raise DataError(
                    f"the form {self.format!r} does not read the field {name!r}; this name, or one like it, "
                    "means something in others",
                    fix="rename it to 'note' if it may be left aside, or write the row in another form",
                    renames=near,
                )
            message = f"nothing reads the field {name!r}"
            if hints := near_names((name,), KNOWN_FIELDS):
                message += f" (did you mean {hints[name]!r}?)"
            row.note("unread-field", message, field=name)

    def _add(self, n: int, row: Row) -> None:
        """Take in the records of a row: all of them, or none with a DataError."""
        if row.task:
            self._fit_task(n, row, row.task)
        if self.format in ("table", "answers"):
            # Ids that are made of the content are the same for an equal row, which would be lost.
            same = fingerprint(row.data)
            if same in self.contents:
                raise DataError(
                    "the row is equal to an earlier one",
                    fix="remove it, or give it an id of its own: response_id, criterion_id",
                )
            self.contents.add(same)
        new: dict[tuple[str, ...], Response | Verdict] = {}
        for record in row.records:
            key = (*record.ids, getattr(record, "judge", ""))
            if new.setdefault(key, self.records.get(key, record)) != record:
                raise DataError(
                    f"there are two different answers or labels {' / '.join(key)}",
                    fix="correct one, or give it an id (a label: a rater) of its own",
                )
        # A table repeats an answer in the row of each criterion.
        if new and self.format != "table" and new.keys() <= self.records.keys():
            row.note(
                "equal-rows",
                "the row is equal to an earlier one; one of them counts",
            )
        self.records |= new
        if row.task:
            self.tasks[row.task.id] = row.task

    def _fit_task(self, n: int, row: Row, task: Task) -> None:
        """Check the task of row n, and fit it to an earlier one that has its id."""
        is_table, old = self.format == "table", self.tasks.get(task.id)
        for c in task.criteria:
            # A slip in a check's arguments must not surface in the middle of a training.
            if c.check:
                checks.validate_check(c, None if is_table else task)
        if old and is_table:
            row.task = _joined_task(old, task)
        elif old and old != task:
            raise DataError(
                f"two different tasks have the id {old.id!r}",
                fix="give each an id of its own",
            )
        # Rows of one task with answers of their own are that task with several answers.
        elif old and "response_id" not in row.data:
            # An equal row of training data counts again, under an id of its own.
            name = f"{task.id}#{n}"
            row.task = msgspec.structs.replace(task, id=name)
            row.records = [
                msgspec.structs.replace(r, task_id=name) for r in row.records
            ]
            row.note(
                "equal-rows", "the row is equal to an earlier one; both are kept"
            )

    def result(self, count: int) -> TaskSet:
        """The rubric set of `count` rows."""
        findings = [
            Finding(
                code="skipped-rows",
                severity="error",
                message=f"{len(equal)} of {count_of(count, 'row')} left out; {equal[0].what}",
                where=equal[0].where,
                rows=len(equal),
                suggestion=equal[0].fix,
            )
            for equal in self._equal_errors()
        ]
        # What a user should know of the rows, although they could be read.
        findings += [
            msgspec.structs.replace(
                note,
                message=f"{note.message}: {n} in {count_of(count, 'row')}",
                where=self.file,
                rows=n,
            )
            for note, n in self.notes.most_common()
        ]
        made = TaskSet(
            tasks=list(self.tasks.values()),
            responses=[r for r in self.records.values() if isinstance(r, Response)],
            verdicts=[v for v in self.records.values() if isinstance(v, Verdict)],
            findings=findings,
            format=self.format,
            path=self.path,
        )
        # A file of answers or labels alone is checked when it is joined.
        if made.tasks:
            made.check(self.file)
        return made

    def _equal_errors(self) -> list[list[DataError]]:
        """The errors in the order of the rows, equal ones together."""
        errors = sorted(self.errors.items())
        return list(group(((e.what, e.fix), e) for _, e in errors).values())

    def _all_errors(self, count: int) -> DataError:
        """One error out of many: each fault once, with its first place and its number."""
        first, *others = self._equal_errors()[:MAX_FAULTS]
        remedies = [first[0].fix or "correct these rows"]
        if renames := self._certain_renames(min(self.errors)):
            remedies.insert(0, self._call(renames))
        if len(self.errors) < count:
            remedies.append(
                f"leave such rows out: {self._call(self.fields, on_error='skip')}"
            )
        lines = [f"  and {_places(errors)}: {errors[0].what}" for errors in others]
        return DataError(
            first[0].what,
            where=_places(first),
            fix="\n".join(["\n  or: ".join(remedies), *lines]),
            renames=renames,
            calls=self.calls,
        )

    def _certain_renames(self, n: int) -> dict[str, str]:
        """All renames with which row n is read; none where one of them is not certain."""
        # `answers` holds several of what `answer` holds one of.
        fields = self.fields | {
            yours: ours
            for yours, ours in self.errors[n].renames.items()
            if yours.lower() != f"{ours}s"
        }
        if fields == self.fields:
            return {}
        # Rows that could be read say the form of the file.
        format = self.format if self.tasks or self.records else self.chosen
        _, row, _ = self.rows[n]
        try:
            if self.file.lower().removesuffix(".gz").endswith(CELL_ENDINGS):
                row = typed_cells(row, fields)
            load([row], format=format, fields=fields)
        except DataError as e:
            return e.renames
        return fields

    def _call(self, fields: dict[str, str], on_error: str = "") -> str:
        """The call of `load` that reads this file with these options, and with the form that was chosen."""
        options = {
            "format": self.chosen.removeprefix("auto"),
            "fields": fields,
            "on_error": on_error,
        }
        source = repr(str(self.path)) if self.path else "rows"
        words = [f"{name}={value!r}" for name, value in options.items() if value]
        call = f"load({', '.join([source, *words])})"
        self.calls[call] = {"file": str(self.path), **options}
        return call


def _places(errors: list[DataError]) -> str:
    """Where the first of equal errors is, and how many more there are."""
    more = f" and {len(errors) - 1} more" if len(errors) > 1 else ""
    return f"{errors[0].where}{more}"


def _joined_task(old: Task, part: Task) -> Task:
    """A task of a flat table with the criterion of one more row; DataError where the rows disagree."""
    for name in ("prompt", "history", "group", "kind", "split", "system"):
        if getattr(old, name) != getattr(part, name):
            raise DataError(
                f"the rows of task {old.id!r} differ in {name!r}",
                fix="give each prompt a task_id of its own; what is said of a criterion (also category or type) "
                "can be renamed to 'note'",
            )
    (new,) = part.criteria
    criteria = {c.id: c for c in old.criteria}
    if criteria.setdefault(new.id, new) != new:
        raise DataError(
            f"criterion {new.id!r} differs between the rows of task {old.id!r}",
            fix="write it in the same way in each row, or give it a criterion_id of its own",
        )
    return msgspec.structs.replace(old, criteria=tuple(criteria.values()))


# What every function with a parameter `tasks` reads.
TaskSource = (
    TaskSet | Task | Sequence[Task] | Sequence[Mapping[str, Any]] | str | Path
)


def tasks_of(thing: TaskSource) -> list[Task]:
    """Tasks out of a file, a TaskSet, Task records, or rows that `load` reads.

    >>> tasks_of([{"id": "t", "prompt": "p"}])[0].id
    't'
    """
    rows: Any = getattr(thing, "tasks", thing)
    if isinstance(rows, list | tuple) and all(isinstance(t, Task) for t in rows):
        return list(rows)
    return [rows] if isinstance(rows, Task) else load(rows).tasks


def save(path: str | os.PathLike[str], taskset: TaskSet) -> int:
    """Write a rubric set as the kit's own JSONL, one record a line; `load` gives the same back.

    Returns the number of rows. A name that ends with .gz is compressed.
    """
    path = Path(path)
    records = [*taskset.tasks, *taskset.responses, *taskset.verdicts]
    text = msgspec.json.Encoder().encode_lines(records)
    # Without a time in its header, the same records give the same bytes.
    paths.write(
        path, gzip.compress(text, mtime=0) if path.suffix == ".gz" else text
    )
    return len(records)
