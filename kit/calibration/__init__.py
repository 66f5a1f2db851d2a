"""Calibration: does a stated confidence mean what it says? Numbers only; plots are in
kit.plots.calibration.

Every result says by which convention it was computed (`.convention`), at which n, and with which
interval.
"""

from .baselines import against_constant, against_lookup, against_score
from .circular import Circularity, check_circular, score_without
from .classwise import Classwise, TopLabel, classwise, top_label
from .compare import Comparison, compare
from .ece import ECE, MCE, ece, mce, null_ece
from .files import parquet_blocks, sketch_file
from .recalibrate import METHODS, Recalibrated, Recalibrator, fit, recalibrate
from .reliability import (
    Bins,
    Concentration,
    Reliability,
    Sensitivity,
    concentration,
    reliability,
    sensitivity,
)
from .scores import Brier, LogLoss, brier, log_loss, overconfidence, underconfidence
from .selective import RiskCoverage, risk_coverage
from .significance import Cox, Test, cox, resampling_test, spiegelhalter
from .sketch import Sketch
from .smooth import Curve, SmECE, smece

__all__ = [
    "ECE",
    "MCE",
    "METHODS",
    "Bins",
    "Brier",
    "Circularity",
    "Classwise",
    "Comparison",
    "Concentration",
    "Cox",
    "Curve",
    "LogLoss",
    "Recalibrated",
    "Recalibrator",
    "Reliability",
    "RiskCoverage",
    "Sensitivity",
    "Sketch",
    "SmECE",
    "Test",
    "TopLabel",
    "against_constant",
    "against_lookup",
    "against_score",
    "brier",
    "check_circular",
    "classwise",
    "compare",
    "concentration",
    "cox",
    "ece",
    "fit",
    "log_loss",
    "mce",
    "null_ece",
    "overconfidence",
    "parquet_blocks",
    "recalibrate",
    "reliability",
    "resampling_test",
    "risk_coverage",
    "score_without",
    "sensitivity",
    "sketch_file",
    "smece",
    "spiegelhalter",
    "top_label",
    "underconfidence",
]
