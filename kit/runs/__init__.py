"""Runs: a folder for each execution of a notebook, headless runs, sweeps, comparison, one report."""

from .compare import compare, over_seeds, overview
from .folders import find, find_folder, find_notebook, load
from .headless import cells_of, run, sweep
from .report import report
from .session import Session, start

__all__ = [
    "Session", "cells_of", "compare", "find", "find_folder", "find_notebook", "load", "over_seeds", "overview",
    "report", "run", "start", "sweep",
]  # fmt: skip
