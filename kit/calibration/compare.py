"""Before against after: is one set of confidences better calibrated, and at what price?"""

from __future__ import annotations

import html
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import DataError
from ..stats.estimate import Estimate
from ..stats.interval import interval
from ..stats.means import SAME, UNIT, auroc, difference, mean
from .ece import ECE, ece_of
from .rows import Rows, binned, check
from .scores import beyond_constant_of, brier_of


@dataclass(frozen=True)
class Comparison:
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

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def plot(self, *, title: str = "After less before") -> Any:
        """The changes with their intervals; 0 is dashed (plotly)."""
        from ..plots import forest

        rows = self.changes | {"Brier less a constant's": self.constant}
        return forest(rows, title=title, subtitle=self.sentence, zero=0)


def _apart(one: Estimate, two: Estimate) -> Estimate:
    """Two less one, of independent rows (MOVER: Zou & Donner 2008)."""
    value = two.value - one.value
    low = value - math.hypot(two.value - two.low, one.high - one.value)
    high = value + math.hypot(two.high - two.value, one.value - one.low)
    method = f"change, unpaired: {two.method}"
    return Estimate(value, low, high, one.n + two.n, method=method, level=one.level)


def _paired(
    x: Rows,
    y: Rows,
    one: tuple[ECE, np.ndarray],
    two: tuple[ECE, np.ndarray],
    level: float,
) -> dict[str, Estimate]:
    before, after = one[0].debiased, two[0].debiased
    more: dict[str, Any] = {"cluster": x.cluster, "level": level}
    e = interval(
        after.value - before.value,
        two[1] - one[1],
        x.cluster,
        method="change in debiased ECE",
        bounds=(-1.0, 1.0),
        level=level,
    )
    if before.low == 0 == after.low:
        # neither is told from a calibrated model, where the influence of a row on the ECE has no sign
        e = replace(e, low=min(e.low, 0.0), high=max(e.high, 0.0))
    changes = {"ECE": e, "Brier": difference(y.gap**2, x.gap**2, bounds=UNIT, **more)}
    changes["accuracy"] = difference(y.correct, x.correct, **more)
    if np.array_equal(x.correct, y.correct):
        changes["AUROC"] = auroc(y.conf, y.correct, against=x.conf, **more)
    return changes


def _unpaired(
    x: Rows, y: Rows, one: tuple[ECE, Any], two: tuple[ECE, Any], level: float
) -> dict[str, Estimate]:
    def measures(v: Rows, e: ECE) -> dict[str, Estimate]:
        more: dict[str, Any] = {"cluster": v.cluster, "level": level}
        area = auroc(v.conf, v.correct, **more)
        rate = mean(v.correct, **more)
        return {"ECE": e.debiased, "Brier": brier_of(v, level), "accuracy": rate, "AUROC": area}

    before, after = measures(x, one[0]), measures(y, two[0])
    return {name: _apart(before[name], after[name]) for name in before}


def compare(
    before: tuple[Any, Any],
    after: tuple[Any, Any],
    *,
    cluster: Any = None,
    cluster_after: Any = None,
    paired: bool = True,
    margin: float = 0.02,
    level: float = 0.95,
    seed: int = 0,
    **binning: Any,
) -> Comparison:
    """Calibration before and after, with its price: accuracy, Brier score, AUROC.

    before, after : each (conf, correct).

    paired : the rows of both are the same prompts in the same order. margin : how much accuracy may
    fall and still count as preserved. The default is 15 right-closed bins on both sides.

    >>> y = [1, 0] * 50
    >>> compare(([0.9] * 100, y), ([0.5] * 100, y)).sentence[:44]
    'A lower calibration error (-.400 [-.50, -.29'
    """
    x = check(*before, cluster=cluster)
    y = check(*after, cluster=cluster if paired else cluster_after)
    if paired and len(x.conf) != len(y.conf):
        text = f"{len(x.conf)} rows before, {len(y.conf)} after"
        raise DataError(text, where="before, after", fix="paired=False")
    how = {"bins": 15, **binning}
    one, two = (ece_of(v, binned(v.conf, **how), level=level, seed=seed)[:2] for v in (x, y))
    changes = (_paired if paired else _unpaired)(x, y, one, two, level)
    constant = beyond_constant_of(y, level)
    return Comparison(one[0], two[0], changes, constant, _sentence(changes, constant, margin))


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
