"""Tuning a judge: prompts as trials against labels, a search for better ones, a sealed test, audits."""

from .audit import AUDIT_CHANGES, AuditChange, AuditReport, audit, estimate_audit
from .playground import Playground
from .workbench import PromptTrial, SealedReading, VerdictFlips, Workbench

workbench = Workbench
__all__ = [
    "AUDIT_CHANGES", "AuditChange", "AuditReport", "Playground", "PromptTrial", "SealedReading", "VerdictFlips",
    "Workbench", "audit", "estimate_audit", "workbench",
]  # fmt: skip
