"""People and judges: agreement, corrected rates, rows to label, a page of judgments."""

from .agreement import AgreementReport, agreement_report, rate
from .draw import label, save_labels
from .view import view

__all__ = [
    "AgreementReport",
    "agreement_report",
    "label",
    "rate",
    "save_labels",
    "view",
]
