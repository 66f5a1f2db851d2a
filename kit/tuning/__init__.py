"""Judge tuning that can be believed: candidates on train, selection on dev, one sealed test,
optimism reported.
"""

from .bench import Workbench
from .seal import SealedError, Seals
from .study import (
    Candidate,
    Scored,
    Selection,
    Study,
    TestRead,
    paraphrase_flips,
    split,
)
from .trials import Flips, Trial

__all__ = [
    "Candidate",
    "Flips",
    "Scored",
    "SealedError",
    "Seals",
    "Selection",
    "Study",
    "TestRead",
    "Trial",
    "Workbench",
    "paraphrase_flips",
    "split",
]
