"""Criteria that code decides (`{"name": "words", "max": 50}`), and the stated answer form.

A negative criterion names the bad thing, and its check is met when the bad thing is there.
`"not": true` turns any check round. The checks are in `builtin_checks.py`; `register` adds one of your own.
"""

from .biorlhf import truth_of, verifiers_of
from .code_verdicts import check_answer, register, validate_check
from .stated_form import AnswerForm, StatedAnswer, claims_of, stated_confidence
from .verifiers import (
    CONFIDENCE_MODES,
    VERIFIER_NAMES,
    VerifierName,
    answer_outcome,
    applicable_verifiers,
    verify_answer,
)

__all__ = [
    "CONFIDENCE_MODES",
    "VERIFIER_NAMES",
    "AnswerForm",
    "StatedAnswer",
    "VerifierName",
    "answer_outcome",
    "applicable_verifiers",
    "check_answer",
    "claims_of",
    "register",
    "stated_confidence",
    "truth_of",
    "validate_check",
    "verifiers_of",
    "verify_answer",
]
