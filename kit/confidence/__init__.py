"""Where a confidence comes from: stated in words, from token probabilities, from agreement between
answers. No defaults anywhere.

The one reader of stated confidence: calibration, training and the uncertainty verifier all read
through it.
"""

from .grammar import ASK, LEVELS, STATUSES, Stated
from .reader import (
    Extraction,
    extract,
    extract_all,
    extract_each,
    fit_levels,
    judge_score,
    without,
)

__all__ = [
    "ASK",
    "LEVELS",
    "STATUSES",
    "Extraction",
    "Stated",
    "extract",
    "extract_all",
    "extract_each",
    "fit_levels",
    "judge_score",
    "without",
]
