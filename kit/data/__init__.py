"""Rubric sets: load and save files, labels, downloads, recorded judges. The forms of rows: `formats.py`."""

from .downloads import fetch, judge_model, small_gguf, small_model
from .files import read_table
from .load import Finding, TaskSet, TaskSource, load, save, tasks_of
from .recorded import RecordedJudges, recorded_judges
from .rows import read_label, verdict_of

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
