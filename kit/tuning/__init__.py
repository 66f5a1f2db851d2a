"""Judge tuning that can be believed: candidates on train, selection on dev, one sealed test, optimism reported."""

from .candidates import Candidate, Slice, disagreements, escalate, from_verdicts, panel, slices, split, thresholds
from .seal import SealedError, Seals
from .simulate import Curse, winners_curse
from .study import Scored, Selection, Study, TestRead

__all__ = [
    "Candidate", "Curse", "Scored", "SealedError", "Seals", "Selection", "Slice", "Study", "TestRead", "disagreements", "escalate",
    "from_verdicts", "panel", "slices", "split", "thresholds", "winners_curse",
]
