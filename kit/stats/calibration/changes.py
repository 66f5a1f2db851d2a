"""Before against after a recalibration: is it better calibrated, and at what price?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...errors import DataError
from ..columns import takes_table
from ..estimate import SAME, Estimate, Result
from ..means import UNIT, auroc, difference
from .reliability import ECE, ece_of
from .rows import check, put_in_bins
from .scores import beyond_constant

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
        raise DataError(
            f"method is {method!r}", where="method", fix=", ".join(METHODS)
        )
    if len(np.unique(correct)) < 2:
        raise DataError("right and wrong rows are needed", where="correct")
    if method == "isotonic":
        # By default sklearn gives NaN beyond the confidences that it was fitted on.
        return (
            IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
            .fit(conf, correct)
            .predict
        )

    def columns(p: np.ndarray) -> np.ndarray:
        p = np.clip(np.asarray(p, float), EDGE, 1 - EDGE)
        both = np.column_stack([np.log(p), -np.log1p(-p)])
        return both if method == "beta" else both.sum(1, keepdims=True)

    # C so large that the map is fitted, not drawn to .5
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
    clusters = int(group.max()) + 1
    if not 2 <= folds <= clusters:
        raise DataError(
            f"{clusters} clusters for {folds} folds",
            where="cluster, folds",
            fix="two folds or more, and no more than clusters",
        )
    splits = GroupKFold(folds, shuffle=True, random_state=seed)
    out = np.empty(len(x.conf))
    # A map that has seen other answers to a prompt would flatter itself on it.
    for train, test in splits.split(x.conf, groups=group):
        out[test] = fit(x.conf[train], x.correct[train], method)(x.conf[test])
    return np.clip(out, 0, 1)


@dataclass(frozen=True, repr=False)
class Comparison(Result):
    """Two sets of confidences.

    changes : after less before, by measure: "ECE" (debiased), "Brier", "accuracy", "AUROC".
    constant : the Brier score after, less that of the best constant. sentence : claims no more than
    these.
    """

    before: ECE
    after: ECE
    changes: dict[str, Estimate]
    constant: Estimate
    sentence: str

    def __str__(self) -> str:
        rows = [f"{k:<10}{e}" for k, e in self.changes.items()]
        return "\n".join(
            [
                self.sentence,
                *rows,
                f"Brier less the best constant's {self.constant}",
            ]
        )

    def plot(self, *, title: str = "After less before") -> Any:
        """The changes with their intervals; 0 is dashed (plotly)."""
        from ...plots import forest

        return forest(
            self.changes | {"Brier less a constant's": self.constant},
            title=title,
            subtitle=self.sentence,
            zero=0,
        )


def _change(one: Estimate, two: Estimate) -> Estimate:
    """Two less one, from the limits of both.

    A shift of accuracy that raises the error of an over-confident model lowers that of a timid one:
    both errors can be wrong in the direction that hurts. So the limits add up, and pairing is not
    used: it would hold the change in .72 to .95 of samples.
    """
    return replace(
        two,
        value=two.value - one.value,
        low=two.low - one.high,
        high=two.high - one.low,
        method="change in debiased ECE",
    )


def compare(
    before: tuple[Any, Any],
    after: tuple[Any, Any],
    *,
    cluster: Any = None,
    margin: float = 0.02,
    seed: int = 0,
    **binning: Any,
) -> Comparison:
    """Calibration before and after, with its price: accuracy, Brier score, AUROC.

    before, after : each (conf, correct), row by row of the same prompts. margin : how much accuracy
    may fall and still count as preserved. The default is 15 right-closed bins on both sides.

    >>> y = [1, 0] * 50
    >>> compare(([0.9] * 100, y), ([0.5] * 100, y)).sentence[:44]
    'A lower calibration error (-.400 [-.50, -.20'
    """
    x, y = check(*before, cluster=cluster), check(*after, cluster=cluster)
    if len(x.conf) != len(y.conf):
        raise DataError(
            f"{len(x.conf)} rows before, {len(y.conf)} after",
            where="before, after",
            fix="pass the same prompts in the same order",
        )
    # Fixed bins: automatic ones could differ, and change the ECE by themselves.
    one, two = (
        ece_of(v, put_in_bins(v.conf, **{"bins": 15, **binning}), seed=seed)[0]
        for v in (x, y)
    )
    changes = {
        "ECE": _change(one.debiased, two.debiased),
        "Brier": difference(y.gap**2, x.gap**2, cluster=x.cluster, bounds=UNIT),
        "accuracy": difference(y.correct, x.correct, cluster=x.cluster),
    }
    # paired areas need one truth: other answers have other right rows
    if np.array_equal(x.correct, y.correct):
        changes["AUROC"] = auroc(
            y.conf, y.correct, against=x.conf, cluster=x.cluster
        )
    constant = beyond_constant(y)
    return Comparison(
        one, two, changes, constant, _sentence(changes, constant, margin)
    )


def _sentence(
    changes: dict[str, Estimate], constant: Estimate, margin: float
) -> str:
    e, accuracy, brier, area = map(
        changes.get, ("ECE", "accuracy", "Brier", "AUROC")
    )
    if not e.excludes(0):
        return (
            f"No change in calibration is shown: the debiased ECE changed by {e}."
        )
    if e.low > 0:
        return f"Worse calibrated: the debiased ECE changed by {e}."
    # an ECE falls as easily by saying less: each of these would show it
    is_preserved = accuracy.low > -margin or accuracy.note == SAME
    # NaN fails a comparison, so a doubt is what is not shown
    doubts = {
        f"accuracy is not shown to be preserved ({accuracy})": not is_preserved,
        f"a constant may do as well (Brier differs by {constant})": not constant.high
        < 0,
        f"the Brier score got worse ({brier})": brier.low > 0,
        f"AUROC got worse ({area})": area is not None and area.high < 0,
    }
    if text := "; ".join(text for text, applies in doubts.items() if applies):
        return f"A lower calibration error ({e}), but {text}."
    return f"Better calibrated: the debiased ECE changed by {e}."
