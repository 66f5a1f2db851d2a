"""Recalibration: a map from stated to true probability, fitted on other clusters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import DataError
from ..stats.columns import takes_table
from .rows import check

EDGE = 1e-6  # logit of 0 and 1 is infinite
METHODS = ("isotonic", "platt", "beta")


def fit(
    conf: np.ndarray, correct: np.ndarray, method: str = "isotonic"
) -> Callable[[np.ndarray], np.ndarray]:
    """A function from confidences (n,) to recalibrated ones.

    method : "isotonic"; "platt" (logistic on the logit); "beta" (logistic on log p and log(1 - p),
    Kull et al. 2017).
    """
    from sklearn.isotonic import IsotonicRegression
    from sklearn.linear_model import LogisticRegression

    if method not in METHODS:
        raise DataError(f"method is {method!r}", where="method", fix=", ".join(METHODS))
    if len(np.unique(correct)) < 2:
        raise DataError("right and wrong rows are needed", where="correct")
    if method == "isotonic":
        return IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(conf, correct).predict

    def columns(p: np.ndarray) -> np.ndarray:
        p = np.clip(np.asarray(p, float), EDGE, 1 - EDGE)
        both = np.column_stack([np.log(p), -np.log1p(-p)])
        return both if method == "beta" else both.sum(1, keepdims=True)

    model = LogisticRegression(C=1e6, max_iter=1000).fit(columns(conf), correct)
    return lambda p: model.predict_proba(columns(p))[:, 1]


@takes_table("conf", "correct", "cluster")
def recalibrate(
    conf: Any,
    correct: Any,
    *,
    method: str = "isotonic",
    cluster: Any = None,
    folds: int = 5,
    seed: int = 0,
) -> np.ndarray:
    """Recalibrated confidences (n,), each by a map that was fitted on other clusters.

    method : as in `fit`.

    >>> float(recalibrate([0.9] * 400, [1, 0] * 200).round(1).max())
    0.5
    """
    from sklearn.model_selection import GroupKFold

    x = check(conf, correct, cluster=cluster)
    group = np.arange(len(x.conf)) if x.cluster is None else x.cluster
    if int(group.max()) + 1 < folds:
        raise DataError(
            f"{int(group.max()) + 1} clusters for {folds} folds",
            where="cluster, folds",
            fix="fewer folds, or more clusters",
        )
    out, splits = np.empty(len(x.conf)), GroupKFold(folds, shuffle=True, random_state=seed)
    for train, test in splits.split(x.conf, groups=group):
        out[test] = fit(x.conf[train], x.correct[train], method)(x.conf[test])
    return np.clip(out, 0, 1)
