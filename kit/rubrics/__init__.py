"""Rubric sets: summary, lint, split and draft."""

from .draft import draft
from .lint import LintReport, lint
from .splits import Split, draw_units, split, verify_split
from .summary import Summary, discrimination, summarize

__all__ = [
    "LintReport", "Split", "Summary", "discrimination", "draft", "draw_units", "lint", "split", "summarize",
    "verify_split",
]  # fmt: skip
