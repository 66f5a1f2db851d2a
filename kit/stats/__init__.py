"""Numbers with intervals: agreement, rates, weighted rubric scores, paired comparisons, planning. numpy and scipy only.

>>> from kit import stats
>>> print(stats.kappa([1, 1, 0, 0] * 10, [1, 0, 0, 0] * 10))
.500 [.21, .71], n=40
"""

from .agreement import ac1, accuracy, balanced_accuracy, expand, f1, kappa, mcc, pairs, scott_pi
from .correction import lang_reiczigel, ppi, rogan_gladen
from .estimate import Estimate, estimate_from_json, number
from .macro import macro_difference, macro_mean
from .paired import Comparison, McNemar, agreement_difference, claim, compare, difference, mcnemar
from .planning import (
    LabelPlan,
    connor,
    design_effect,
    detectable,
    half_width,
    labels_for,
    labels_needed,
)
from .rank import kendall, spearman
from .raters import ac1_raters, alpha, fleiss
from .rates import mean, pass_rate
from .report import Agreement, agree
from .scores import RubricScore, rubric_score
from .shares import wilson

__all__ = [
    "Agreement",
    "Comparison",
    "Estimate",
    "LabelPlan",
    "McNemar",
    "RubricScore",
    "ac1",
    "ac1_raters",
    "accuracy",
    "agree",
    "agreement_difference",
    "alpha",
    "balanced_accuracy",
    "claim",
    "compare",
    "connor",
    "design_effect",
    "detectable",
    "difference",
    "estimate_from_json",
    "expand",
    "f1",
    "fleiss",
    "half_width",
    "kappa",
    "kendall",
    "labels_for",
    "labels_needed",
    "lang_reiczigel",
    "macro_difference",
    "macro_mean",
    "mcc",
    "mcnemar",
    "mean",
    "number",
    "pairs",
    "pass_rate",
    "ppi",
    "rogan_gladen",
    "rubric_score",
    "scott_pi",
    "spearman",
    "wilson",
]
