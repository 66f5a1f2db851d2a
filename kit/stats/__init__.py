"""Numbers with intervals: means, differences, agreement, rates by labels, claims.

Columns are arrays, or a table and names: `mean(table, "correct", cluster="task")`. Unknown values
(None, NaN) are left out and counted. Rows go by position; index labels of a DataFrame play no part.
"""

from .estimate import Estimate, band, claim, interval, number, wilson
from .labels import (
    Agreement,
    accuracy,
    agree,
    agreement_difference,
    kappa,
    label_mean,
    policy_difference,
)
from .means import (
    auroc,
    compare,
    difference,
    labels_needed,
    mean,
    over_seeds,
    per_cluster,
    prompts_for,
    together,
)

__all__ = [
    "Agreement",
    "Estimate",
    "accuracy",
    "agree",
    "agreement_difference",
    "auroc",
    "band",
    "claim",
    "compare",
    "difference",
    "interval",
    "kappa",
    "label_mean",
    "labels_needed",
    "mean",
    "number",
    "over_seeds",
    "per_cluster",
    "policy_difference",
    "prompts_for",
    "together",
    "wilson",
]
