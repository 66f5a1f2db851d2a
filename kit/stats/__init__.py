"""Numbers with intervals: agreement, rates, weighted rubric scores, paired comparisons, planning. numpy and scipy only."""

from .estimate import Estimate, estimate_from_json, number

__all__ = ["Estimate", "estimate_from_json", "number"]
