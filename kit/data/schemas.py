"""The numbers of the kit's written forms, and the rule for readers: a newer form is refused.

A form without a number is of the time before numbers, which is form 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import DataError

SCHEMAS = {
    "record": 1,  # a task, answer or verdict of our JSONL
    "grades": 1,  # a line of what `kit judge` writes
    "labels": 1,  # a row of what `kit label` writes
    "run": 1,  # metrics.json and config.json of a run
    "sweep": 1,  # a cell of sweep.json, a row of table.json and table.csv of a sweep
    "judgments": 1,  # judgments.json of a run
}
FIELD = "schema"


def stamped(kind: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """The row with the number of its form.

    >>> stamped("grades", {"score": 1.0})
    {'score': 1.0, 'schema': 1}
    """
    return {**row, FIELD: SCHEMAS[kind]}


def readable(kind: str, row: Mapping[str, Any], *, where: str) -> dict[str, Any]:
    """The row without its number; DataError where a newer kit wrote it, or the number is none.

    >>> readable("grades", {"schema": 1, "score": 0.5}, where="g.jsonl, line 1")
    {'score': 0.5}
    """
    number = row.get(FIELD, 1)
    if isinstance(number, str) and number.isdigit():  # a table of texts: CSV
        number = int(number)
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise DataError(
            f"the schema is {number!r}",
            where=f"{where}, field {FIELD}",
            fix=f"write {SCHEMAS[kind]}, or leave the field out",
        )
    if number > SCHEMAS[kind]:
        raise DataError(
            f"this is form {number} of {kind}, and this kit reads up to {SCHEMAS[kind]}",
            where=f"{where}, field {FIELD}",
            fix="read it with the kit that wrote it, or a newer one",
        )
    return {k: v for k, v in row.items() if k != FIELD}
