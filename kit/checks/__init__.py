"""Criteria that code decides (`{"name": "words", "max": 50}`), and the stated answer form.

A negative criterion names the bad thing, and its check is met when the bad thing is there.
`"not": true` turns any check round. The checks are in `rules.py`; `register` adds one of your own.
"""

from .biorlhf import truth_of, verifiers_of
from .engine import check, register, validate
from .form import Form, claims_of, stated_confidence
from .verifiers import MODES, VERIFIERS, applicable, outcome, verify

__all__ = [
    "MODES",
    "VERIFIERS",
    "Form",
    "applicable",
    "check",
    "claims_of",
    "outcome",
    "register",
    "stated_confidence",
    "truth_of",
    "validate",
    "verifiers_of",
    "verify",
]
