"""Numbers with intervals: means, differences, agreement, rates by labels, claims.

Columns are arrays, or a table and names: `mean(table, "correct", cluster="task")`. Unknown values
(None, NaN) are left out and counted. Rows go by position; index labels of a DataFrame play no part.
Whether a confidence means what it says: the folder `calibration`.
"""

from .estimate import (
    Estimate,
    claim,
    estimate_from_influence,
    format_interval,
    format_number,
    format_p,
    wilson_interval,
)
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
    compare_to_baseline,
    difference,
    labels_needed,
    mean,
    over_seeds,
    per_cluster,
    prompts_for,
    simultaneous_intervals,
)

__all__ = [
    "Agreement",
    "Estimate",
    "accuracy",
    "agree",
    "agreement_difference",
    "auroc",
    "claim",
    "compare_to_baseline",
    "difference",
    "estimate_from_influence",
    "format_interval",
    "format_number",
    "format_p",
    "kappa",
    "label_mean",
    "labels_needed",
    "mean",
    "over_seeds",
    "per_cluster",
    "policy_difference",
    "prompts_for",
    "simultaneous_intervals",
    "wilson_interval",
]
