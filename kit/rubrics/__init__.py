"""Rubric sets: summary, lint, split and draft."""

from .draft import draft
from .lint import LintReport, lint
from .splits import Split, split, verify
from .summary import Summary, discrimination, summarize

__all__ = [
    "LintReport", "Split", "Summary", "discrimination", "draft", "lint", "split", "summarize",
    "verify",
]  # fmt: skip
