"""A rubric set in memory: tasks, answers, labels and recorded verdicts, and findings on the file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from ..errors import DataError
from ..records import Response, Task, Verdict, group


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One fault, or one fact worth knowing, of a rubric set.

    code : the rule. severity : "error", "warning" or "info". where : file and row. field : the field's name.
    rows : the number of rows that it concerns. text : the text in question. suggestion : what to do.
    """

    code: str
    severity: str
    message: str
    where: str = ""
    rows: int = 1
    field: str | None = None
    task_id: str | None = None
    criterion_id: str | None = None
    text: str | None = None
    suggestion: str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class TaskSet:
    """Tasks with answers and verdicts.

    verdicts : labels of people (judge "human" or "human:NAME") and recorded verdicts of judges.
    findings : what `load` noticed. format : the form of the file. path : the file, if there is one.

    >>> TaskSet(tasks=[Task(id="t", prompt="p")])
    TaskSet(kit: 1 tasks, 0 answers, 0 verdicts, 0 findings)
    """

    tasks: list[Task]
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

    @cached_property
    def _labels(self) -> dict[str, list[Verdict]]:
        return group((v.task_id, v) for v in self.verdicts)

    def answers(self, task_id: str) -> list[Response]:
        """The answers to one task."""
        return self._answers.get(task_id, [])

    def labels(self, task_id: str) -> list[Verdict]:
        """The labels and recorded verdicts on one task's answers."""
        return self._labels.get(task_id, [])

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

        >>> answers = TaskSet(tasks=[], responses=[Response(task_id="tt", id="r", text="x")])
        >>> TaskSet(tasks=[Task(id="t", prompt="p")]).joined(answers)
        Traceback (most recent call last):
        ...
        kit.errors.DataError: 1 answers or labels have no task, answer or criterion; first the answer tt / r
          where: the other set
          to do: make the ids equal: task_id, response_id, criterion_id
        """
        name = other.path.name if other.path else "the other set"
        both = replace(
            self,
            tasks=_merge(self.tasks, other.tasks, lambda t: (t.id,), name),
            responses=_merge(self.responses, other.responses, lambda r: r.ids, name),
            verdicts=_merge(
                self.verdicts, other.verdicts, lambda v: (*v.ids, v.judge), name
            ),
            findings=[*self.findings, *other.findings],
        )
        both.check(name)
        return both

    def check(self, where: str = "") -> None:
        """DataError for an answer without its task, and a label without its answer or criterion."""
        criteria = {(t.id, c.id) for t in self.tasks for c in t.criteria}
        answers = {r.ids for r in self.responses}
        lost: list[tuple[str, ...]] = [
            ("answer", *r.ids) for r in self.responses if r.task_id not in self.by_id
        ]
        lost += [
            ("label", *v.ids)
            for v in self.verdicts
            if v.ids[:2] not in answers or v.ids[::2] not in criteria
        ]
        if lost:
            raise DataError(
                f"{len(lost)} answers or labels have no task, answer or criterion; "
                f"first the {lost[0][0]} {' / '.join(lost[0][1:])}",
                where=where,
                fix="make the ids equal: task_id, response_id, criterion_id",
            )

    def __repr__(self) -> str:
        counts = f"{len(self.tasks)} tasks, {len(self.responses)} answers"
        return (
            f"TaskSet({self.format}: {counts}, {len(self.verdicts)} verdicts, "
            f"{len(self.findings)} findings)"
        )


def _merge(
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
