"""The tasks that a caller means: a file, a task set, records, or plain rows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import DataError
from ..records import Task
from .load import load_tasks


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
