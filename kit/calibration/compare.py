"""Before against after: is one set of confidences better calibrated, and at what price?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import DataError
from ..stats.estimate import Estimate, Shown
from ..stats.means import SAME, UNIT, auroc, difference
from .ece import ECE, ece_of
from .rows import binned, check
from .scores import beyond_constant


@dataclass(frozen=True, repr=False)
class Comparison(Shown):
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
        return "\n".join([self.sentence, *rows, f"Brier less the best constant's {self.constant}"])

    def plot(self, *, title: str = "After less before") -> Any:
        """The changes with their intervals; 0 is dashed (plotly)."""
        from ..plots import forest

        rows = self.changes | {"Brier less a constant's": self.constant}
        return forest(rows, title=title, subtitle=self.sentence, zero=0)


def _change(one: Estimate, two: Estimate) -> Estimate:
    """Two less one, from the limits of both.

    A shift of accuracy that raises the error of an over-confident model lowers that of a timid one:
    both errors can be wrong in the direction that hurts. So the limits add up, and pairing is not
    used: it would hold the change in .72 to .95 of samples.
    """
    low, high = two.low - one.high, two.high - one.low
    method = "change in debiased ECE"
    return replace(two, value=two.value - one.value, low=low, high=high, method=method)


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
    how = {"bins": 15, **binning}
    one, two = (ece_of(v, binned(v.conf, **how), seed=seed)[0] for v in (x, y))
    e = _change(one.debiased, two.debiased)
    brier = difference(y.gap**2, x.gap**2, cluster=x.cluster, bounds=UNIT)
    accuracy = difference(y.correct, x.correct, cluster=x.cluster)
    changes = {"ECE": e, "Brier": brier, "accuracy": accuracy}
    if np.array_equal(x.correct, y.correct):
        changes["AUROC"] = auroc(y.conf, y.correct, against=x.conf, cluster=x.cluster)
    constant = beyond_constant(y)
    return Comparison(one, two, changes, constant, _sentence(changes, constant, margin))


def _sentence(changes: dict[str, Estimate], constant: Estimate, margin: float) -> str:
    e, accuracy, brier = changes["ECE"], changes["accuracy"], changes["Brier"]
    if not e.excludes(0):
        return f"No change in calibration is shown: the debiased ECE changed by {e}."
    if e.low > 0:
        return f"Worse calibrated: the debiased ECE changed by {e}."
    doubts = []
    if not (accuracy.low > -margin or accuracy.note == SAME):
        doubts.append(f"accuracy is not shown to be preserved ({accuracy})")
    if not constant.high < 0:
        doubts.append(f"a constant may do as well (Brier differs by {constant})")
    if brier.low > 0:
        doubts.append(f"the Brier score got worse ({brier})")
    if "AUROC" in changes and changes["AUROC"].high < 0:
        doubts.append(f"AUROC got worse ({changes['AUROC']})")
    if doubts:
        return f"A lower calibration error ({e}), but {'; '.join(doubts)}."
    return f"Better calibrated: the debiased ECE changed by {e}."
