"""Labels by people: a file of `kit label` filled in, answers with labels, or any set that has them.

A file of `kit label` says how its rows were drawn; every other file leaves that to its reader.
Beside them what `kit judge` wrote, read back as grades.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..checks.text import answered
from ..data import TaskSet, load_tasks
from ..data.levels import UNREAD
from ..data.meant import OTHER
from ..data.schemas import readable
from ..data.tables import read_rows
from ..errors import DataError
from ..records import Grade, Verdict, grade_from_json, grouped
from ..tables import averaged, ratings_of

WORDS = re.compile(r"\w+")
Key = tuple[str, str, str]  # task, answer, criterion
SAID = (UNREAD, "unknown-task", "unknown-answer", "unknown-criterion")  # beside what was graded


@dataclass(frozen=True)
class Labels:
    """Labels by (task, answer, criterion), in [0, 1]; None where people said "unknown".

    design : how the labelled rows came to be labelled ("random", "stratified"), None: not said.
    inclusion : the probability of a row to be drawn, where the file says it.
    ties : rows on which raters are split evenly (their label is None).
    blank : rows that nobody has filled in yet. said : what each rater said, or is still to say.
    unread : what is said of labels that were not understood, and are None.
    """

    values: dict[Key, float | None]
    design: str | None = None
    inclusion: dict[Key, float] = field(default_factory=dict)
    ties: frozenset[Key] = frozenset()
    blank: tuple[Key, ...] = ()
    said: dict[Key, list[Verdict]] = field(default_factory=dict)
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
        return _given(
            there.joined(
                source if isinstance(source, TaskSet) else TaskSet(tasks=[], verdicts=list(source))
            )
        )
    read = load_tasks(source)
    if read.format == "answers":
        read = _of_known(read, there)
    both = there.joined(read)
    replace(both, findings=[f for f in both.findings if f.code not in SAID]).sound()
    found = _given(replace(both, path=Path(source)))
    if not found.values and not found.blank:
        raise DataError(
            "there are no labels in the file",
            where=str(source),
            fix="give answers with `labels`, or what `kit label` wrote, filled in",
        )
    return found


def _of_known(read: TaskSet, there: TaskSet) -> TaskSet:
    """The labels of a table without the answers that are known; DataError where one of them says
    another thing by now: a spreadsheet changes blanks and quotes, not words.
    """
    said = {r.ids: WORDS.findall(answered(r.text)) for r in there.responses}
    for r in read.responses:
        labelled = WORDS.findall(answered(r.text))
        if labelled and said.get(r.ids, labelled) != labelled:
            raise DataError(
                "another text was labelled than this answer has now",
                where=f"{read.path}, task {r.task_id!r}, answer {r.id!r}",
                fix="give the answers that were labelled, or new ids to the new ones",
            )
    return replace(read, responses=[r for r in read.responses if r.ids not in said])


def _given(found: TaskSet) -> Labels:
    """Verdicts by people (judges named "human..."; all of them where none is) as labels; DataError
    for one on a criterion that says another thing by now."""
    people = [v for v in found.verdicts if v.judge.startswith("human")] or found.verdicts
    designs = {v.meta.get("design") for v in people}
    named = sorted(designs - {None})
    odd = [f for f in found.findings if f.code == UNREAD]
    first = next((f"{f.message}; {f.suggestion}" for f in odd), "")
    place = next((f.where for f in odd if f.where), found.path)
    replace(found, findings=[f for f in found.findings if f.code == OTHER]).sound()
    DataError.first(
        (
            len(named) > 1,
            f"the rows have several designs: {', '.join(named)}",
            str(found.path),
            "keep one file per design",
        ),
        (
            bool(odd and named),
            first,
            f"{place}, field label",
            None,
        ),
    )
    given = ratings_of(people)
    said = grouped((v.ids, v) for v in people)
    filled = {v.ids for v in people if not v.meta.get("blank")}
    values = {key: averaged(given.get(key, [])) for key in said if key in filled}
    return Labels(
        values,
        design=named[0] if len(designs) == len(named) == 1 else None,
        inclusion={v.ids: v.meta["inclusion"] for v in people if "inclusion" in v.meta},
        ties=frozenset(key for key in given if values[key] is None),
        blank=tuple(key for key in said if key not in filled),
        said=said,
        unread=f"labels that are not understood are left out: {len(odd)}, as: {first}" * bool(odd),
    )


def strays(given: Labels, verdicts: Iterable[Key]) -> list[str]:
    """What is to be said of labels that are on none of these; nothing where there are none."""
    ids = dict.fromkeys(verdicts)
    lost = [" / ".join(key) for key in given.values if key not in ids]
    here = next((f"a verdict is on {' / '.join(key)}" for key in ids), "there is no verdict")
    return [
        f"{len(lost)} of {len(given.values)} labels are on no verdict here: "
        f"labelled is {name}, {here}"
        for name in lost[:1]
    ]


NEEDED = ("task_id", "response_id", "verdicts")


def read_grades(path: str | os.PathLike[str]) -> list[Grade]:
    """The grades of a file that `kit judge` wrote, in its order.

    DataError names file, line and field: a line that is no grade, one answer graded twice, a form
    newer than this kit reads.
    """
    out: dict[tuple[str, str], Grade] = {}
    for where, row in read_rows(path):
        grade = grade_of(row, where)
        if grade.ids in out:
            raise DataError(
                f"the answer {grade.response_id!r} to task {grade.task_id!r} is graded twice",
                where=where,
                fix="take one of the lines out, or judge again into a new file",
            )
        out[grade.ids] = grade
    return list(out.values())


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
