"""Does a stated confidence mean what it says? Numbers first; their `.plot()` draws them.

All functions take (conf, correct): arrays (n,) of confidences in [0, 1] and of 0 or 1, or a table
and two names.
"""

from .changes import Comparison, compare, fit, recalibrate
from .reliability import (
    ECE,
    Reliability,
    ece,
    logistic_test,
    overconfidence,
    reliability,
    sensitivity,
)
from .scores import (
    RiskCoverage,
    abstain_below,
    beyond_constant,
    brier,
    risk_coverage,
    smece,
)

__all__ = [
    "ECE",
    "Comparison",
    "Reliability",
    "RiskCoverage",
    "abstain_below",
    "beyond_constant",
    "brier",
    "compare",
    "ece",
    "fit",
    "logistic_test",
    "overconfidence",
    "recalibrate",
    "reliability",
    "risk_coverage",
    "sensitivity",
    "smece",
]
