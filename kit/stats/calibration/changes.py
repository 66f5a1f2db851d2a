"""Before against after a recalibration: is it better calibrated, and at what price?"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any, cast

import numpy as np

from ...errors import DataError
from ...plots import Figure, forest
from ...records import count_of
from ..columns import Column, Floats, check_choice, takes_table
from ..estimate import NO_DIFFERENCE, UNIT_RANGE, Estimate, PrintedResult
from ..means import auroc, difference
from .reliability import ECE, ece
from .rows import read_rows
from .scores import beyond_constant

# logit of 0 and 1 is infinite
LOGIT_MARGIN = 1e-6


def fit(
    conf: Floats, correct: Floats, method: str = "isotonic"
) -> Callable[[Floats], Floats]:
    """A function from confidences (n,) to recalibrated ones.

    method : "isotonic"; "platt" (logistic on the logit); "beta" (logistic on log p and log(1 - p),
    Kull et al. 2017).
    """
    from sklearn.isotonic import IsotonicRegression
    from sklearn.linear_model import LogisticRegression

    check_choice("method", method, ("isotonic", "platt", "beta"))
    if len(np.unique(correct)) < 2:
        raise DataError("right and wrong rows are needed", where="correct")
    if method == "isotonic":
        # By default sklearn gives NaN beyond the confidences that it was fitted on.
        line = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
        return cast("Callable[[Floats], Floats]", line.fit(conf, correct).predict)

    def columns(p: Floats) -> Floats:
        p = np.clip(p, LOGIT_MARGIN, 1 - LOGIT_MARGIN)
        both = np.column_stack([np.log(p), -np.log1p(-p)])
        return both if method == "beta" else both.sum(1, keepdims=True)

    # C so large that the map is fitted, not drawn to .5
    model = LogisticRegression(C=1e6, max_iter=1000).fit(columns(conf), correct)
    return lambda p: np.asarray(model.predict_proba(columns(p)))[:, 1]


@takes_table("conf", "correct", "cluster")
def recalibrate(
    conf: Column,
    correct: Column,
    *,
    method: str = "isotonic",
    cluster: Column | None = None,
    folds: int = 5,
    seed: int = 0,
) -> Floats:
    """Recalibrated confidences (n,), each by a map that was fitted on other clusters.

    method : as in `fit`.

    >>> float(recalibrate([0.9] * 400, [1, 0] * 200).round(1).max())
    0.5
    """
    from sklearn.model_selection import GroupKFold

    x = read_rows(conf, correct, cluster=cluster)
    clusters = int(x.clusters.max()) + 1
    if not 2 <= folds <= clusters:
        raise DataError(
            f"{count_of(clusters, 'cluster')} for {count_of(folds, 'fold')}",
            where="cluster, folds",
            fix="two folds or more, and no more than clusters",
        )
    splits = GroupKFold(folds, shuffle=True, random_state=seed)
    out = np.empty(len(x.conf))
    # A map that has seen other answers to a prompt would flatter itself on it.
    for train, test in splits.split(x.conf, groups=x.clusters):
        out[test] = fit(x.conf[train], x.correct[train], method)(x.conf[test])
    return np.clip(out, 0, 1)


@dataclass(frozen=True, repr=False)
class Comparison(PrintedResult):
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
        changes = "\n".join(f"{k:<10}{e}" for k, e in self.changes.items())
        return f"{self.sentence}\n{changes}\nBrier less the best constant's {self.constant}"

    def plot(self, *, title: str = "") -> Figure:
        """The changes with their intervals (plotly); 0 is dashed, the title is the conclusion."""
        conclusion, _, detail = self.sentence.partition(": ")
        return forest(
            {**self.changes, "Brier less a constant's": self.constant},
            title=title or conclusion,
            subtitle=detail,
            x="after less before",
            zero=0,
        )


def compare(
    before: tuple[Column, Column],
    after: tuple[Column, Column],
    *,
    cluster: Column | None = None,
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
    x, y = read_rows(*before, cluster=cluster), read_rows(*after, cluster=cluster)
    if len(x.conf) != len(y.conf):
        raise DataError(
            f"{count_of(len(x.conf), 'row')} before, {len(y.conf)} after",
            where="before, after",
            fix="pass the same prompts in the same order",
        )
    # Fixed bins: automatic ones could differ, and change the ECE by themselves.
    binning = {"bins": 15, **binning}
    old, new = (ece(rows, seed=seed, **binning) for rows in (x, y))
    # A shift of accuracy that raises the error of an over-confident model lowers that of a timid
    # one: both errors can be wrong in the direction that hurts. So the limits add up, and pairing
    # is not used: it would hold the change in .72 to .95 of samples.
    changes = {
        "ECE": replace(
            new.debiased,
            value=new.debiased.value - old.debiased.value,
            low=new.debiased.low - old.debiased.high,
            high=new.debiased.high - old.debiased.low,
            method="change in debiased ECE",
        ),
        # what a lower calibration error may cost
        "Brier": difference(
            y.gap**2, x.gap**2, cluster=x.cluster, bounds=UNIT_RANGE
        ),
        "accuracy": difference(y.correct, x.correct, cluster=x.cluster),
    }
    # paired areas need one truth: other answers have other right rows
    if np.array_equal(x.correct, y.correct):
        changes["AUROC"] = auroc(
            y.conf, y.correct, against=x.conf, cluster=x.cluster
        )
    constant = beyond_constant(y)
    return Comparison(
        before=old,
        after=new,
        changes=changes,
        constant=constant,
        sentence=_comparison_sentence(changes, constant, margin),
    )


def _comparison_sentence(
    changes: Mapping[str, Estimate], constant: Estimate, margin: float
) -> str:
    e, accuracy = changes["ECE"], changes["accuracy"]
    if not e.excludes(0):
        return (
            f"No change in calibration is shown: the debiased ECE changed by {e}."
        )
    if e.low > 0:
        return f"Worse calibrated: the debiased ECE changed by {e}."
    brier, area = changes["Brier"], changes.get("AUROC")
    # An ECE falls as easily by saying less: each of these would show it. NaN fails a comparison, so
    # a doubt is what is not shown.
    doubts = {
        f"accuracy is not shown to be preserved ({accuracy})": (
            not accuracy.low > -margin and accuracy.note != NO_DIFFERENCE
        ),
        f"a constant may do as well (Brier differs by {constant})": (
            not constant.high < 0
        ),
        f"the Brier score got worse ({brier})": brier.low > 0,
        f"AUROC got worse ({area})": area is not None and area.high < 0,
    }
    if texts := "; ".join(compress(doubts, doubts.values())):
        return f"A lower calibration error ({e}), but {texts}."
    return f"Better calibrated: the debiased ECE changed by {e}."
