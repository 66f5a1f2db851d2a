"""Rubric sets: load and save files, labels, downloads, recorded judges. The forms of rows: `formats.py`."""

from .labels import read_label, verdict_of
from .load import load, save, tasks_of
from .taskset import Finding, TaskSet

__all__ = ["Finding", "TaskSet", "load", "read_label", "save", "tasks_of", "verdict_of"]
