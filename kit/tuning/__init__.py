"""Judge tuning that can be believed: candidates on train, selection on dev, one sealed test,
optimism reported.
"""

from .bench import Workbench, workbench
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
from .trials import Doubt, Flip, Flips, Trial

__all__ = [
    "Aligned",
    "Candidate",
    "Curse",
    "Doubt",
    "Flip",
    "Flips",
    "Scored",
    "SealedError",
    "Seals",
    "Selection",
    "Slice",
    "Study",
    "TestRead",
    "Trial",
    "Workbench",
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
    "workbench",
]
