"""Judge tuning that can be believed: candidates on train, selection on dev, one sealed test,
optimism reported.
"""

from .candidates import (
    Aligned,
    Candidate,
    Slice,
    align,
    disagreements,
    escalate,
    from_verdicts,
    panel,
    slices,
    split,
    thresholds,
)
from .seal import SealedError, Seals
from .simulate import Curse, winners_curse
from .stability import paraphrase_flips
from .study import Scored, Selection, Study, TestRead

__all__ = [
    "Aligned",
    "Candidate",
    "Curse",
    "Scored",
    "SealedError",
    "Seals",
    "Selection",
    "Slice",
    "Study",
    "TestRead",
    "align",
    "disagreements",
    "escalate",
    "from_verdicts",
    "panel",
    "paraphrase_flips",
    "slices",
    "split",
    "thresholds",
    "winners_curse",
]
