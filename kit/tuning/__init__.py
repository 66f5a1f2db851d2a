"""Tuning a judge: prompts as trials against labels, a search for better ones, a sealed test, audits."""

from __future__ import annotations

from typing import Any

from .audit import CHANGES, AuditReport, audit
from .bench import Flips, Reading, Trial, Workbench
from .labels import Row, split

__all__ = [
    "CHANGES", "AuditReport", "Flips", "Reading", "Row", "Trial", "Workbench", "audit",
    "split", "workbench",
]  # fmt: skip


def workbench(labels: Any, *, judge: Any, **options: Any) -> Workbench:
    """A workbench on labelled answers, to change a judge's prompt and see what that changed.

    labels : a file or TaskSet with labels of people (met or unmet), or several sources that are
        joined by their ids: [tasks, answers, labels].
    judge : "endpoint:MODEL", "small", "replay:small", a mapping with options, or a function
        prompt, **settings -> judge.
    options : ledger (a file or Ledger, in which verdicts are stored), prompt (where to begin; the
        judge's own), seals (the folder of test readings; beside the runs), budget.

    >>> from kit.system import paths
    >>> bench = workbench(paths.data("judge_labels.jsonl"), judge="replay:small")
    >>> _ = bench.try_("strict", paths.data("judge_prompts", "strict.txt").read_text("utf-8"))
    >>> bench.flips("baseline", "strict")
    31 verdicts changed: 10 broken, 17 mended, 0 lost, 4 recovered
    """
    return Workbench(labels, judge=judge, **options)
