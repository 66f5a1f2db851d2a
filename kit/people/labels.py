"""Labels by people: a file of `kit label` filled in, answers with labels, or any set that has them.

A file of `kit label` says how its rows were drawn; every other file leaves that to its reader.
Beside them what `kit judge` wrote, read back as grades.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..data import TaskSet, labels, load_tasks
from ..data.levels import UNREAD, by_levels
from ..data.schemas import readable
from ..data.tables import read_rows
from ..data.values import as_text, number, unguarded
from ..errors import DataError
from ..records import Grade, Verdict, grade_from_json
from ..tables import averaged, ratings_of

Key = tuple[str, str, str]  # task, answer, criterion
KEYS = ("task_id", "response_id", "criterion_id")
SAID = (UNREAD, "unknown-task", "unknown-answer", "unknown-criterion")  # beside what was graded


@dataclass(frozen=True)
class Labels:
    """Labels by (task, answer, criterion), in [0, 1]; None where people said "unknown".

    design : how the labelled rows came to be labelled ("random", "stratified"), None: not said.
    inclusion : the probability of a row to be drawn, where the file says it.
    ties : rows on which raters are split evenly (their label is None).
    blank : rows that nobody has filled in yet.
    unread : what is said of labels that were not understood, and are None.
    """

    values: dict[Key, float | None]
    design: str | None = None
    inclusion: dict[Key, float] = field(default_factory=dict)
    ties: frozenset[Key] = frozenset()
    blank: tuple[Key, ...] = ()
    unread: str = ""


def read_labels(source: Any, tasks: Any = ()) -> Labels:
    """Labels out of a file, a TaskSet, or verdicts by people; raters of one row are averaged;
    none out of None.

    tasks : those that were judged, or a TaskSet with their answers too: labels are on what they are
    on once joined to it (`TaskSet.joined`), and read by its criteria's levels and points.
    DataError names file, line and field of what cannot be read; so does a file without any label.
    """
    if source is None or isinstance(source, Labels):
        return source or Labels({})
    there = tasks if isinstance(tasks, TaskSet) else TaskSet(tasks=list(tasks))
    if not isinstance(source, (str, os.PathLike)):
        known = isinstance(source, TaskSet)
        return _given(there.joined(source if known else TaskSet(tasks=[], verdicts=list(source))))
    if {*KEYS, "label"} <= next((row.keys() for _, row in read_rows(source)), set()):
        found = _drawn(source, there)
    else:
        both = there.joined(load_tasks(source))
        replace(both, findings=[f for f in both.findings if f.code not in SAID]).sound()
        found = _given(both)
    if not found.values and not found.blank:
        raise DataError(
            "there are no labels in the file",
            where=str(source),
            fix="give answers with `labels`, or what `kit label` wrote, filled in",
        )
    return found


def _given(found: TaskSet) -> Labels:
    """Verdicts by people (judges named "human..."; all of them where none is) as labels."""
    people = [v for v in found.verdicts if v.judge.startswith("human")] or found.verdicts
    odd = [f for f in found.findings if f.code == UNREAD]
    if not odd:
        return _averaged(people)
    first = f"{odd[0].message}; {odd[0].suggestion}"
    return _averaged(
        people, unread=f"labels that are not understood are left out: {len(odd)}, as: {first}"
    )


def strays(given: Labels, verdicts: Iterable[Key]) -> list[str]:
    """What is to be said of labels that are on none of these; nothing where there are none."""
    ids = dict.fromkeys(verdicts)
    lost = [" / ".join(key) for key in given.values if key not in ids]
    here = next((f"a verdict is on {' / '.join(key)}" for key in ids), "there is no verdict")
    count = f"{len(lost)} of {len(given.values)} labels are on no verdict here"
    return [f"{count}: labelled is {lost[0]}, {here}"] if lost else []


def _averaged(people: Sequence[Verdict], **more: Any) -> Labels:
    given = ratings_of(people)
    values: dict[Key, float | None] = dict.fromkeys(v.ids for v in people)
    values |= {key: averaged(raters) for key, raters in given.items()}
    return Labels(values, ties=frozenset(key for key in given if values[key] is None), **more)


def _drawn(path: Any, tasks: TaskSet) -> Labels:
    """A file of `kit label`: a row a verdict; an empty label is still to be given."""
    rows = [(where, _read(row, where)) for where, row in read_rows(path)]
    scale = labels.scale_of(*labels.extent(row["label"] for _, row in rows))
    made, places = [], []
    inclusion, designs, blank = {}, set(), []
    for where, row in rows:
        key = tuple(as_text(unguarded(row[k])) for k in KEYS)
        designs.add(row.get("design"))
        if (share := number(row.get("inclusion"))) is not None:
            inclusion[key] = share
            if not 1e-9 < share <= 1:
                raise DataError(
                    f"the probability to be drawn is {share:g}, not in (0, 1]",
                    where=f"{where}, field inclusion",
                )
        label = row["label"]
        if label is None or not str(label).strip():
            blank.append(key)
        else:
            label = label if number(label) is None else number(label)
            made.append(labels.human(*key, label, scale=scale)[0])
            places.append(where)
    if len(designs) > 1:
        named = ", ".join(sorted(map(str, designs)))
        raise DataError(
            f"the rows have several designs: {named}",
            where=str(path),
            fix="keep one file per design",
        )
    made, told = by_levels(made, (), tasks)
    odd = next((i for i, v in enumerate(made) if v.failure == "parse"), None)
    if odd is not None:
        on = made[odd].task_id, made[odd].criterion_id
        own = next((f"{f.suggestion}; or" for f in told if (f.task_id, f.criterion_id) == on), "")
        raise DataError(
            f"the label {str(made[odd].meta['label'])[:40]!r} is not understood",
            where=f"{places[odd]}, field label",
            fix=f"{own or 'write'} met, unmet, partly or unknown (numbers: one scale in the file)",
        )
    return _averaged(
        made, design=str(designs.pop() or "") or None, inclusion=inclusion, blank=tuple(blank)
    )


def _read(row: Mapping[str, Any], where: str) -> dict[str, Any]:
    row = readable("labels", row, where=where)
    lost = next((k for k in KEYS if row.get(k) in (None, "")), None)
    if lost:
        raise DataError(f"the row has no {lost}", where=f"{where}, field {lost}")
    return {**row, "label": row.get("label")}


NEEDED = ("task_id", "response_id", "verdicts")


def read_grades(path: str | os.PathLike[str]) -> list[Grade]:
    """The grades of a file that `kit judge` wrote, in its order.

    DataError names file, line and field: a line that is no grade, one answer graded twice, a form
    newer than this kit reads.
    """
    out: list[Grade] = []
    seen: set[tuple[str, str]] = set()
    for where, row in read_rows(path):
        grade = grade_of(row, where)
        key = grade.ids
        if key in seen:
            raise DataError(
                f"the answer {key[1]!r} to task {key[0]!r} is graded twice",
                where=where,
                fix="take one of the lines out, or judge again into a new file",
            )
        seen.add(key)
        out.append(grade)
    return out


def grade_of(row: Any, where: str) -> Grade:
    """The grade of a line; DataError where it is none, or of a form newer than this kit reads."""
    row = readable("grades", row, where=where) if isinstance(row, Mapping) else {}
    lost = [name for name in NEEDED if name not in row]
    if lost:
        raise DataError(
            f"this is no line of a grades file: there is no {lost[0]!r}",
            where=f"{where}, field {lost[0]}",
            fix="give the file that `kit judge --out` wrote",
        )
    ids = {name: row[name] for name in ("task_id", "response_id")}
    verdicts = row["verdicts"]
    if not isinstance(verdicts, list) or not all(isinstance(v, Mapping) for v in verdicts):
        raise DataError("the verdicts are no list of objects", where=f"{where}, field verdicts")
    return grade_from_json(
        {
            "score": None,
            "score_low": float("nan"),
            "score_high": float("nan"),
            **row,
            "verdicts": [{**ids, **v} for v in verdicts],
        },
        where=where,
    )


def verdicts_of(grades: Any) -> list[Verdict]:
    """Verdicts out of a file of grades, of grades, or of verdicts (what `kit.judge` gave)."""
    if isinstance(grades, (str, os.PathLike)):
        grades = read_grades(grades)
    rows: Iterable[Any] = list(grades)
    return [v for g in rows for v in (g.verdicts if isinstance(g, Grade) else (g,))]
