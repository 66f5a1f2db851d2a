"""What `kit judge` wrote, read back as grades."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..data.schemas import readable
from ..data.tables import read_rows
from ..errors import DataError, MissingError
from ..records import Grade, Verdict, grade_from_json

NEEDED = ("task_id", "response_id", "verdicts")


def read_grades(path: str | os.PathLike[str]) -> list[Grade]:
    """The grades of a file that `kit judge` wrote, in its order.

    DataError names file, line and field: a line that is no grade, one answer graded twice, a form
    newer than this kit reads.
    """
    if not Path(path).is_file():
        raise MissingError(
            "there is no such file of grades",
            where=str(path),
            fix="give the file that `kit judge --out` wrote",
        )
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
    ends = {"score": None, "score_low": float("nan"), "score_high": float("nan")}
    return grade_from_json(
        {**ends, **row, "verdicts": [{**ids, **v} for v in verdicts]}, where=where
    )


def verdicts_of(grades: Any) -> list[Verdict]:
    """Verdicts out of a file of grades, of grades, or of verdicts (what `kit.judge` gave)."""
    if isinstance(grades, (str, os.PathLike)):
        grades = read_grades(grades)
    rows: Iterable[Any] = list(grades)
    return [v for g in rows for v in (g.verdicts if isinstance(g, Grade) else (g,))]
