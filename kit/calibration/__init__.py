"""Calibration: does a stated confidence mean what it says? Numbers only; plots are in kit.plots.calibration."""

from .circular import Circularity, check_circular, score_without
from .ece import ECE, MCE, ece, mce, null_ece
from .sketch import Sketch

__all__ = ["Circularity", "check_circular", "score_without", "ECE", "MCE", "ece", "mce", "null_ece", "Sketch"]
