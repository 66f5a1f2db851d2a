"""Judge tuning that can be believed: candidates on train, selection on dev, one sealed test,
optimism reported.
"""

from .bench import Workbench, workbench
from .candidates import (
    Candidate,
    split,
)
from .seal import SealedError, Seals
from .stability import paraphrase_flips
from .study import Scored, Selection, Study, TestRead
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
    "workbench",
]
