"""Calibration: does a stated confidence mean what it says? Numbers only; plots are in
kit.plots.calibration.

Every result says by which convention it was computed (`.convention`), at which n, and with which
interval.
"""

from .compare import Comparison, compare
from .ece import ECE, classwise, ece, mce, null_ece
from .files import parquet_blocks, sketch_file
from .recalibrate import METHODS, Recalibrated, Recalibrator, fit, recalibrate
from .reliability import (
    Bins,
    Reliability,
    Sensitivity,
    reliability,
    sensitivity,
)
from .scores import (
    Brier,
    against_constant,
    against_lookup,
    against_score,
    brier,
    overconfidence,
    underconfidence,
)
from .selective import RiskCoverage, risk_coverage
from .significance import Cox, cox
from .sketch import Sketch
from .smooth import Curve, SmECE, smece

__all__ = [
    "ECE",
    "METHODS",
    "Bins",
    "Brier",
    "Comparison",
    "Cox",
    "Curve",
    "Recalibrated",
    "Recalibrator",
    "Reliability",
    "RiskCoverage",
    "Sensitivity",
    "Sketch",
    "SmECE",
    "against_constant",
    "against_lookup",
    "against_score",
    "brier",
    "classwise",
    "compare",
    "cox",
    "ece",
    "fit",
    "mce",
    "null_ece",
    "overconfidence",
    "parquet_blocks",
    "recalibrate",
    "reliability",
    "risk_coverage",
    "sensitivity",
    "sketch_file",
    "smece",
    "underconfidence",
]
