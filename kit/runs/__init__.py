"""Runs: a folder for each execution of a notebook, headless runs, sweeps, comparison, one report."""

from .compare import compare, over_seeds, overview
from .folders import find, load
from .headless import run
from .report import report
from .session import Session, start
from .sweep import cells_of, sweep

__all__ = [
    "Session", "cells_of", "compare", "find", "load", "over_seeds", "overview", "report", "run",
    "start", "sweep",
]  # fmt: skip
