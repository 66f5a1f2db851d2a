"""Verdicts of a judge beside labels of people: columns that every statistic takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from ..data import tasks_of
from ..errors import DataError
from ..records import Criterion, Task, Verdict, grouped
from ..settings.read import closest
from .labels import Key, Labels, read_labels, strays, verdicts_of

HALF = 0.5  # values from here on are on the side of "met"


def sign(value: float | None, cut: float = HALF) -> int | None:
    """The side of a value: 1 from the cut on, 0 below, None where it is unknown.

    >>> sign(1.0), sign(0.25), sign(None)
    (1, 0, None)
    """
    return None if value is None else int(value >= cut)


@dataclass
class Beside:
    """One entry a verdict in every list, in the order of the grades.

    cluster : the task's group, or the task. weight : turned round under a parent that is a fault.
    tree : the criterion has a parent. gate : it must be met. verdict, label : values in [0, 1],
    None unknown.
    labelled : somebody looked at the row (its label may be "unknown"). code : decided by code.
    orphans : what is said of labels on what was not graded. blank : rows of the label file that are
    not filled in yet.
    """

    task: list[str] = field(default_factory=list)
    response: list[str] = field(default_factory=list)
    criterion: list[str] = field(default_factory=list)
    cluster: list[str] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    weight: list[float] = field(default_factory=list)
    tree: list[bool] = field(default_factory=list)
    gate: list[bool] = field(default_factory=list)
    verdict: list[float | None] = field(default_factory=list)
    p: list[float | None] = field(default_factory=list)
    status: list[str] = field(default_factory=list)
    reason: list[str] = field(default_factory=list)
    failure: list[str | None] = field(default_factory=list)
    code: list[bool] = field(default_factory=list)
    label: list[float | None] = field(default_factory=list)
    labelled: list[bool] = field(default_factory=list)
    inclusion: list[float | None] = field(default_factory=list)
    design: str | None = None
    orphans: str = ""
    blank: int = 0
    ties: int = 0
    unread: str = ""

    def __len__(self) -> int:
        return len(self.task)

    def rows(self, keep: Iterable[int]) -> Beside:
        """The same columns with only some rows, by their numbers."""
        at = list(keep)
        lists = {f.name: getattr(self, f.name) for f in fields(self)}
        return Beside(
            **{k: [v[i] for i in at] if isinstance(v, list) else v for k, v in lists.items()}
        )

    def criteria(self) -> dict[tuple[str, str], Beside]:
        """The rows of each criterion, by its id and text."""
        return {
            key: self.rows(at)
            for key, at in grouped(
                (key, i) for i, key in enumerate(zip(self.criterion, self.text, strict=True))
            ).items()
        }

    def judged(self) -> Beside:
        """Without the rows that code decided: they say nothing of the judge."""
        return self.rows(i for i, by_code in enumerate(self.code) if not by_code)

    def sides(self, cut: float = HALF) -> tuple[list[int | None], list[int | None]]:
        """Judge and people as 1, 0 or None."""
        return [sign(v, cut) for v in self.verdict], [sign(v, cut) for v in self.label]

    def favourable(self, values: Sequence[float | None]) -> list[float | None]:
        """The values as credit: turned round where the weight is negative."""
        return [
            1.0 - v if v is not None and w < 0 else v
            for v, w in zip(values, self.weight, strict=True)
        ]

    def notes(self) -> list[str]:
        """What became of labels that are on no row, or are none."""
        said = {
            self.orphans: self.orphans,
            f"{self.blank} rows of the label file are not filled in": self.blank,
            f"{self.ties} rows have no label: the raters are split evenly": self.ties,
        }
        return [*(text for text, there in said.items() if there), *filter(None, [self.unread])]

    def weights(self) -> list[float] | None:
        """Inverse probabilities to be drawn; None where all labelled rows are alike. DataError
        where rows of a stratified draw, or some beside it, do not say theirs."""
        seen = [i for i, looked in enumerate(self.labelled) if looked]
        unsaid = [i for i in seen if self.inclusion[i] is None]
        drawn = {self.inclusion[i] for i in seen} - {None}
        if unsaid and (self.design == "stratified" or len(drawn) > 1):
            raise DataError(
                "a stratified draw, and labels that do not say their probability to be drawn",
                where=f"labels, response {self.response[unsaid[0]]!r} to task "
                f"{self.task[unsaid[0]]!r}, field inclusion",
                fix="give the file with the column `inclusion` that `kit label` wrote, and leave "
                "out labels that were not drawn",
            )
        if len(drawn) < 2:
            return None
        return [1 / x if x else 0.0 for x in self.inclusion]


def beside(tasks: Any, labels: Any, grades: Any) -> Beside:
    """Grades beside labels, a row for every verdict, labelled or not.

    tasks : a file or a TaskSet; labels : a file, a TaskSet with labels, verdicts by people, or
    None; grades : what `kit judge` wrote, grades, or verdicts.
    DataError where no label meets a verdict: ids that differ are the usual cause.
    """
    by_id = {t.id: t for t in tasks_of(tasks)}
    given = read_labels(labels, by_id.values())
    out = Beside(design=given.design, blank=len(given.blank), unread=given.unread)
    criteria: dict[tuple[str, str], Criterion] = {
        (t.id, c.id): c for t in by_id.values() for c in _turned(t.criteria)
    }
    verdicts = verdicts_of(grades)
    for v in verdicts:
        task = by_id.get(v.task_id)
        if task is None:
            near = closest(v.task_id, by_id)
            raise DataError(
                f"there is no task {v.task_id!r}, which was graded",
                where="TASKS",
                fix="give the tasks that were judged"
                + (f"; the nearest is {near!r}" if near else ""),
            )
        _add(out, v, task, criteria.get((v.task_id, v.criterion_id)), given)
    out.orphans = "".join(strays(given, (v.ids for v in verdicts)))
    if given.values and not any(out.labelled):
        raise DataError(
            "no label is on anything that was graded",
            where=out.orphans,
            fix="give labels of the same answers: task_id (or prompt), response_id and criterion "
            "ids must be equal",
        )
    out.ties = len(given.ties.intersection(v.ids for v in verdicts))
    return out


def _add(out: Beside, v: Verdict, task: Task, c: Criterion | None, given: Labels) -> None:
    key: Key = v.ids
    row: Mapping[str, Any] = {
        "task": v.task_id,
        "response": v.response_id,
        "criterion": v.criterion_id,
        "cluster": task.group or task.id,
        "text": "" if c is None else c.text,
        "weight": 1.0 if c is None else c.weight,
        "tree": c is not None and c.parent is not None,
        "gate": c is not None and c.required,
        "verdict": v.value,
        "p": v.p,
        "status": v.status,
        "reason": v.reason or "",
        "failure": v.failure,
        "code": v.judge == "code",
        "label": given.values.get(key),
        "labelled": key in given.values,
        "inclusion": given.inclusion.get(key),
    }
    for name, value in row.items():
        getattr(out, name).append(value)


def _turned(criteria: Sequence[Criterion]) -> Iterator[Criterion]:
    """Criteria with the weights that `_signed` gives; those of a flat rubric are as they were."""
    by_id = {c.id: c for c in criteria}
    for c in criteria:
        yield replace(c, weight=_signed(c, by_id)) if c.parent else c


def _signed(c: Criterion, by_id: Mapping[str, Criterion]) -> float:
    """A weight, negative where what the criterion says counts against the answer."""
    weight = c.weight
    above = by_id.get(c.parent or "")
    for _ in by_id:  # a cycle is refused elsewhere
        if above is None:
            break
        weight *= -1.0 if above.weight < 0 else 1.0
        above = by_id.get(above.parent or "")
    return weight
