"""Readers per format, and pinned fetches of data and models with checksums.

>>> from kit import data as sources
>>> sources.load_tasks([{"prompt": "Say hi.", "rubrics": ["It greets."]}]).tasks[0].criteria[0].text
'It greets.'
"""

from __future__ import annotations

from .answers import answered, answers_of
from .findings import Finding
from .jsonl import write_jsonl
from .load import iter_tasks, load_tasks, save_tasks, tasks_of
from .tables import read_columns, read_rows
from .taskset import Parsed, TaskSet

__all__ = [
    "Finding",
    "Parsed",
    "TaskSet",
    "answered",
    "answers_of",
    "iter_tasks",
    "load_tasks",
    "read_columns",
    "read_rows",
    "save_tasks",
    "tasks_of",
    "write_jsonl",
]
