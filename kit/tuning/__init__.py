"""Tuning a judge: prompts as trials against labels, a search for better ones, a sealed test, audits."""

from .audit import CHANGES, AuditReport, audit, estimate_audit
from .bench import Flips, Reading, Trial, Workbench, split

workbench = Workbench
__all__ = [
    "CHANGES", "AuditReport", "Flips", "Reading", "Trial", "Workbench", "audit", "estimate_audit",
    "split", "workbench",
]  # fmt: skip
