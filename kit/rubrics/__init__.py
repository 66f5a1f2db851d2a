"""What a rubric data set contains and what is wrong with it: lint, summary, splits, tables for
exploring.

>>> from kit import rubrics as inspect, data as sources
>>> row = {"prompt": "Name a river.", "rubrics": ["Gemini missed this."]}
>>> report = inspect.lint(sources.load_tasks([row]))
>>> report.counts["annotator-note"]
1
"""

from . import splits
from .explore import read, table
from .lint import Linter, LintReport, lint
from .summary import Scan, Spread, Summary, scan, summarize

__all__ = [
    "LintReport",
    "Linter",
    "Scan",
    "Spread",
    "Summary",
    "lint",
    "read",
    "scan",
    "splits",
    "summarize",
    "table",
]
