"""What a reader gives: tasks, responses, recorded verdicts, and what it noticed on the way."""

from __future__ import annotations

import html
import logging
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from ..errors import DataError
from ..records import Response, Task, Verdict, grouped
from . import joining
from .findings import Finding
from .words import held_out

LOSSES = (  # what is said before money or hours are spent on the rest
    "unread-field",
    "numbers-in-text",
    "points-in-text",
    "unread-turns",
    "field-type",
    "mixed-formats",
    "encoding",
    "quoted-lines",
    "label-scale",
)


@dataclass(frozen=True, kw_only=True)
class Parsed:
    """What one row of a file became. `task` is None for rows that hold only responses or verdicts,
    or could not be read.

    judged : how many criteria these responses' task has, where it is an earlier row's. again :
    how grave it is that another row has its id.
    """

    row: int
    where: str
    task: Task | None = None
    responses: tuple[Response, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    findings: tuple[Finding, ...] = ()
    judged: int = 0
    again: str = "error"

    @property
    def empty(self) -> bool:
        """True when nothing but findings came of the row."""
        return self.task is None and not self.responses and not self.verdicts


@dataclass(frozen=True, kw_only=True, repr=False)
class TaskSet:
    """A rubric data set in memory.

    verdicts : recorded ones, of humans (judge "human:<rater>") and of recorded judges.
    rows : rows of the file; skipped : rows of which nothing could be read (each has an error among
        the findings).
    """

    tasks: list[Task]
    responses: list[Response] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    format: str = "kit"
    path: Path | None = None
    rows: int = 0
    skipped: int = 0
    rows_of: dict[str, int] = field(default_factory=dict)  # task id -> row number

    def __len__(self) -> int:
        return len(self.tasks)

    def __iter__(self) -> Iterator[Task]:
        return iter(self.tasks)

    def __getitem__(self, i: int) -> Task:
        """A task by its place; DataError where there is none at all."""
        if not self.tasks:
            raise DataError(
                "there is no task in it",
                where=str(self.path or "task set"),
                fix="`kit inspect FILE` says what was read",
            )
        return self.tasks[i]

    def halves(self) -> tuple[list[Task], list[Task]]:
        """Tasks to train on and those held out, by their split; one that asks what a held-out one
        asks is held out too. DataError where one is empty."""
        ids = held_out(self.tasks)
        held = [t for t in self.tasks if t.id in ids]
        train = [t for t in self.tasks if t.id not in ids]
        place = str(self.path or "task set")
        fix = 'write "split": "train" or "heldout" into each row (kit.split draws)'
        why = ": all ask what a held-out one asks" * (
            len(ids) > sum(t.held_out for t in self.tasks)
        )
        DataError.first(
            (not train, f"there is no task to train on{why}", place, fix),
            (not held, "there is no task held out", place, fix),
        )
        return train, held

    @cached_property
    def by_id(self) -> dict[str, Task]:
        """Tasks by id."""
        return {t.id: t for t in self.tasks}

    @property
    def criteria(self) -> int:
        """How many criteria all tasks have."""
        return sum(len(t.criteria) for t in self.tasks)

    def answers(self, task_id: str) -> list[Response]:
        """The responses to one task."""
        return self._responses.get(task_id, [])

    def labels(self, task_id: str) -> list[Verdict]:
        """The recorded verdicts on one task's responses."""
        return self._verdicts.get(task_id, [])

    @cached_property
    def _responses(self) -> dict[str, list[Response]]:
        return grouped((r.task_id, r) for r in self.responses)

    @cached_property
    def _verdicts(self) -> dict[str, list[Verdict]]:
        return grouped((v.task_id, v) for v in self.verdicts)

    def sound(self, *, skip_bad: bool = False, warn: bool = False) -> TaskSet:
        """This set, or DataError (with `warn` a warning) at its first finding of severity "error":
        money is not spent on a file half read.

        A task without criteria is no error here: files of prompts and of answers have none.
        skip_bad : go on with what could be read. Warnings of what is not read are logged first.
        """
        warned = (f for f in self.findings if f.severity == "warning" and f.code in LOSSES)
        for first, *more in grouped(((f.code, f.field), f) for f in warned).values():
            logging.getLogger(__name__).warning(
                "%s%s", first, f" and {len(more)} more" * bool(more)
            )
        bad = [f for f in self.findings if f.severity == "error" and f.code != "no-criteria"]
        if bad and not skip_bad:
            first, more = (
                bad[0],
                f" (and {len(bad) - 1} more findings like this)" if len(bad) > 1 else "",
            )
            place = ", ".join(
                str(x) for x in (first.where, first.task_id, first.criterion_id, first.field) if x
            )
            fault = DataError(
                first.message + more,
                where=place or str(self.path),
                fix=first.suggestion or "correct it; `kit inspect FILE --lint` lists all",
            )
            if not warn:
                raise fault
            warnings.warn(f"what could not be read is left out: {fault}", stacklevel=3)
        return self

    def joined(self, other: TaskSet) -> TaskSet:
        """This set with another one's tasks, responses and verdicts (answers or labels that lie in
        a file of their own); findings, rows and skipped rows of both are kept.

        Tasks are the same by their id; those without one, and bare prompts, by what they ask, of
        the same system and sources, with equal criteria or none; criteria that the kit named by
        their texts. What one of them says is filled in (held out wins), what both say must be
        equal, or DataError. Answers are the same by their name and text; where the kit named one,
        by their text, of the same model and sample. What is in both counts once, and what hangs on
        nothing becomes a finding.
        """
        return replace(self, **joining.joined(self, other))

    def parsed(self) -> Iterator[Parsed]:
        """The set again as a stream of one item per task, for lint and summary."""
        known = set(self.by_id)
        for i, t in enumerate(self.tasks, 1):
            row = self.rows_of.get(t.id, i)
            yield Parsed(
                row=row,
                where=f"{self.path.name if self.path else 'task set'}, row {row}",
                task=t,
                responses=tuple(self.answers(t.id)),
                verdicts=tuple(self.labels(t.id)),
            )
        lost = [r for r in self.responses if r.task_id not in known]
        if lost or self.findings or any(v.task_id not in known for v in self.verdicts):
            yield Parsed(
                row=0,
                where=str(self.path or "task set"),
                responses=tuple(lost),
                findings=tuple(self.findings),
                verdicts=tuple(v for v in self.verdicts if v.task_id not in known),
            )

    def __repr__(self) -> str:
        """In words: a notebook keeps it beside the table, and the whole set would be its text."""
        held = f"{len(self.tasks)} tasks, {len(self.responses)} responses"
        return f"TaskSet({self.format}: {held}, {len(self.verdicts)} verdicts)"

    def _repr_html_(self) -> str:
        name = html.escape(self.path.name if self.path else "task set")
        kinds = Counter(f.severity for f in self.findings)
        notes = ", ".join(f"{n} {k}" for k, n in sorted(kinds.items())) or "none"
        return (
            f"<b>{name}</b> ({html.escape(self.format)}): {len(self.tasks)} tasks, "
            f"{self.criteria} criteria, "
            f"{len(self.responses)} responses, {len(self.verdicts)} labels and recorded verdicts; "
            f"findings: {notes}"
        )
