"""Rubric sets: load and save files, labels, downloads, recorded judges. The forms of rows: `formats.py`."""

from ..records import Finding, read_label, verdict_of
from .downloads import fetch, judge_model, small_gguf, small_model
from .files import read_table
from .load import TaskSet, TaskSource, load, save, tasks_of
from .recorded import RecordedJudges, recorded_judges

__all__ = [
    "Finding",
    "RecordedJudges",
    "TaskSet",
    "TaskSource",
    "fetch",
    "judge_model",
    "load",
    "read_label",
    "read_table",
    "recorded_judges",
    "save",
    "small_gguf",
    "small_model",
    "tasks_of",
    "verdict_of",
]
