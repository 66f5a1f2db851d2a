"""What a reader gives: tasks, responses, recorded verdicts, and what it noticed on the way."""

from __future__ import annotations

import html
import logging
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ..errors import DataError
from ..records import Response, Task, Verdict, grouped
from ..settings.read import closest
from .findings import Finding
from .labels import SAID
from .levels import by_levels
from .names import spelled
from .slips import READS
from .values import beside, unused
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
)
HEADS = (*SAID, "human", "grade", "judgment")  # before a criterion's id in a column's name


@dataclass(frozen=True, kw_only=True)
class Parsed:
    """What one row of a file became. `task` is None for rows that hold only responses or verdicts,
    or could not be read. judged : how many criteria these responses' task has, where it is an
    earlier row's."""

    row: int
    where: str
    task: Task | None = None
    responses: tuple[Response, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    findings: tuple[Finding, ...] = ()
    judged: int = 0

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
        """This set with another one's tasks, responses and verdicts (answers that lie in a file of
        their own).

        Tasks or answers of both that share an id must be equal, or DataError; what is in both
        counts once, and answers to no task become findings. Answers that the kit named (their rows
        have no id) get another name where they differ from those here in text, source, model,
        sample or confidence. Answers whose own task is a prompt alone are answers to the task here
        that asks the same, of the same system and sources.
        """
        mine, other = self.by_id, self._paired(other)
        if clash := [t.id for t in other.tasks if t.id in mine and mine[t.id] != t]:
            raise DataError(
                f"both sets have another task {clash[0]!r}",
                where=str(other.path or "task set"),
                fix="rename one of them; of answers, write the task_id of each",
            )
        other = self._apart(other)
        held = {r.ids for r in self.responses}
        again = {r.ids: r for r in other.responses if r.ids in held}
        told = set(map(_label_of, self.verdicts)) - {None}
        other = replace(
            other,
            responses=[r for r in other.responses if r.ids not in held],
            verdicts=[v for v in other.verdicts if _label_of(v) not in told],
        )
        tasks = [*self.tasks, *(t for t in other.tasks if t.id not in mine)]
        responses = [_both(r, again.get(r.ids, r)) for r in self.responses] + other.responses
        new = len(tasks) > len(self.tasks) or other.verdicts
        if not new and responses == self.responses:
            return self
        known = {t.id for t in tasks}
        lost = next(
            (x.task_id for x in (*responses, *other.verdicts) if x.task_id not in known), ""
        )
        near = lost and closest(lost, known)
        notes = [
            Finding(
                code="unknown-task",
                severity="error",
                message=f"{n} {what} name the task {i!r}, which is not there",
                task_id=i,
                where=str(other.path.name if other.path else "task set"),
                suggestion=f"the nearest is {near!r}" if near and i == lost else None,
            )
            for what in ("responses", "verdicts")
            for i, n in Counter(
                x.task_id
                for x in (*getattr(self, what), *getattr(other, what))
                if x.task_id not in known
            ).items()
        ]
        criteria = {t.id: {c.id for c in t.criteria} for t in tasks}
        each = [by_levels(part.verdicts, part.findings, tasks) for part in (self, other)]
        verdicts, findings = ([*a, *b] for a, b in zip(*each, strict=True))
        notes += odd_labels(verdicts, criteria)
        names = set().union(*criteria.values())
        findings = [
            replace(f, severity="error", suggestion=COLUMN) if _column(f, names) else f
            for f in findings
            if f.code != "unknown-task" or f.task_id not in known
        ]
        return replace(
            self,
            tasks=tasks,
            responses=responses,
            verdicts=verdicts,
            findings=list(dict.fromkeys((*findings, *notes))),
            rows=self.rows + other.rows,
            skipped=self.skipped + other.skipped,
            rows_of={**other.rows_of, **self.rows_of},
        )

    def _apart(self, other: TaskSet) -> TaskSet:
        """The other set with names of their own for answers that are others than those here of that
        name; DataError where the name is not one that the kit made."""
        mine = {r.ids: r for r in self.responses}
        theirs = {r.ids for r in other.responses}
        names = {
            r.ids: unused(r.id, lambda n, r=r: _free((r.task_id, n), r, mine, theirs))
            for r in other.responses
        }
        moved = {old: name for old, name in names.items() if name != old[1]}
        own = [i for _, i in moved if other.format in NAMED and not MADE.fullmatch(i)]
        if own:
            raise DataError(
                f"both sets have another answer {next(iter(own), None)!r}",
                where=str(other.path or "task set"),
                fix="rename one of them",
            )
        note = Finding(
            code="duplicate-id",
            severity="warning",
            message=f"{len(moved)} answers have the name of another one; they are called otherwise "
            f"({', '.join(list(moved.values())[:3])})",
            suggestion="give every answer of a task its own response_id",
            where=str(other.path.name if other.path else "task set"),
        )
        return replace(
            other,
            responses=[replace(r, id=names[r.ids]) for r in other.responses],
            verdicts=[
                replace(v, response_id=names.get(v.ids[:2], v.response_id)) for v in other.verdicts
            ],
            findings=[*other.findings, *[note] * bool(moved)],
        )

    def _paired(self, other: TaskSet) -> TaskSet:
        """The other set with its bare prompts gone that a task here asks too, and what hangs on
        them on that task; DataError where several ask it. Answers that ask what none asks are
        counted, and a row's number is no id."""
        asked = grouped((t.asked.strip(), t) for t in self.tasks if t.criteria)
        bare = {t.id: t for t in other.tasks if not t.criteria}
        bare = {
            i: [x.id for x in asked.get(t.asked.strip(), ()) if _alike(x, t)]
            for i, t in bare.items()
        }
        lost = sum(bare.get(r.task_id) == [] for r in other.responses) if asked else 0
        unasked = Finding(
            code="unknown-task",
            severity="warning",
            message=f"{lost} answers ask what no task asks: no criterion judges them",
            suggestion="write the task_id of each answer",
            where=str(other.path.name if other.path else "task set"),
        )
        made = {f"row-{n}" for n in other.rows_of.values()} if other.format != "kit" else ()
        bare = {i: [i] if i in own and i not in made else own for i, own in bare.items() if own}
        if several := next((i for i, own in bare.items() if len(own) > 1), None):
            raise DataError(
                f"the tasks {', '.join(map(repr, bare[several][:3]))} ask what {several!r} asks",
                where=str(other.path or "task set"),
                fix="write the task_id of each answer",
            )
        moved = {r.ids: (bare[r.task_id][0], r.id) for r in other.responses if r.task_id in bare}
        first = {new: old for old, new in reversed(moved.items())}
        names = {
            old: {"task_id": to, "id": name if first[to, name] == old else f"{name}#{old[0]}"}
            for old, (to, name) in moved.items()
        }
        own = {
            t.id: _unlike(t.meta, self.by_id[bare[t.id][0]].meta)
            for t in other.tasks
            if t.id in bare
        }
        on = {k: {"task_id": n["task_id"], "response_id": n["id"]} for k, n in names.items()}
        return replace(
            other,
            tasks=[t for t in other.tasks if t.id not in bare],
            findings=[*other.findings, *[unasked] * bool(lost)],
            responses=[
                replace(r, **names.get(r.ids, {}), meta={**own.get(r.task_id, {}), **r.meta})
                for r in other.responses
            ],
            verdicts=[replace(v, **on.get(v.ids[:2], {})) for v in other.verdicts],
        )

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


def _alike(task: Task, other: Task) -> bool:
    """Whether the system, the sources and what else an answer is held against are the same, where
    both tasks have them."""
    one, two = (
        {
            **{k: v for k, v in t.meta.items() if READS.fullmatch(spelled(k))},
            "": t.system,
            "sources": t.sources,
        }
        for t in (task, other)
    )
    return all(not v or not two.get(k) or two[k] == v for k, v in one.items())


NAMED = ("kit", "answers", "flat")  # formats of which answers may have ids
MADE = re.compile(r"r-[0-9a-f]{12}(?:#\d+)?")  # the kit's, of an answer without one
APART = ("model", "sample", "sample_index")


def _told(r: Response) -> tuple[Any, ...]:
    """What makes an answer another one; None where it is not said."""
    source = None if r.source == "data" else r.source
    return r.text, source, r.confidence, *map(r.meta.get, APART)


def _free(
    ids: tuple[str, str], r: Response, mine: dict[tuple[str, str], Response], theirs: set
) -> bool:
    """Whether an answer may be called so: none is, or the one here that is is the same."""
    if ids not in mine:
        return ids == r.ids or ids not in theirs
    pairs = zip(_told(mine[ids]), _told(r), strict=True)
    return all(None in (a, b) or a == b for a, b in pairs)


def _unlike(meta: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that the other one lacks or has otherwise."""
    return {k: x for k, x in meta.items() if other.get(k) != x}


def _both(a: Response, b: Response) -> Response:
    """An answer with what another set says of it, too."""
    return replace(
        a,
        source=b.source if a.source in (None, "data") else a.source,
        confidence=b.confidence if a.confidence is None else a.confidence,
        truncated=a.truncated or b.truncated,
        meta=beside(a.meta, _unlike(b.meta, a.meta)),
    )


COLUMN = "write its labels as labels: criterion's id -> label, or one row an answer and criterion"


def _column(f: Finding, criteria: set[str]) -> bool:
    """Whether a field that nothing read is called as a criterion: "label_c1", "c1"."""
    named = f.code == "unread-field" and f.severity == "info" and f.field
    head, _, tail = (named or "").partition("_")
    return named in criteria or (tail in criteria and head.casefold() in HEADS)


def _label_of(v: Verdict) -> tuple[Any, ...] | None:
    """What makes two verdicts the same label of the same person; None for a judge's."""
    return (*v.ids, v.judge, v.meta["label"]) if "label" in v.meta else None


def odd_labels(verdicts: list[Verdict], criteria: dict[str, set[str]]) -> Iterator[Finding]:
    """Labels on criteria that their task lacks, and two labels of one rater or verdicts of one
    judge that differ; a judge that was asked again after an unknown verdict says nothing odd.
    """
    told: dict[tuple[str, ...], float | None] = {}
    for v in verdicts:
        place = {"task_id": v.task_id, "criterion_id": v.criterion_id, "severity": "error"}
        if v.criterion_id not in criteria.get(v.task_id, {v.criterion_id}):
            yield Finding(
                code="unknown-criterion",
                message=f"a label names the criterion {v.criterion_id!r}, "
                "which the task does not have",
                suggestion="correct the id",
                **place,
            )
        key = (*v.ids, v.judge)
        said_so = v.value is not None or v.judge.startswith("human")
        if said_so and told.setdefault(key, v.value) != v.value:
            yield Finding(
                code="two-labels",
                message=f"{v.judge} gives response {v.response_id!r} {told[key]} and {v.value}: "
                "its score is not known",
                suggestion="keep one of the two",
                **place,
            )
