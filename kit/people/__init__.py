"""People and judges: agreement, corrected rates, rows to label and labels, a page of judgments."""

from .agreement import AgreementReport, agreement_report, rate
from .labels import LabelFile, Labeller, label, label_rows, save_labels
from .view import view

__all__ = [
    "AgreementReport",
    "LabelFile",
    "Labeller",
    "agreement_report",
    "label",
    "label_rows",
    "rate",
    "save_labels",
    "view",
]
