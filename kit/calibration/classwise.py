"""Judges that give a distribution over classes: calibration of the class they favour (top label),
and of every class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import DataError
from ..stats.ordinal import distributions
from .ece import ECE, ece


@dataclass(frozen=True)
class TopLabel:
    """The predicted class of each row (n,), its probability, and whether it was right. ties : rows
    with equal top classes.
    """

    conf: np.ndarray
    correct: np.ndarray
    predicted: np.ndarray
    ties: int


def top_label(probs: Any, labels: Any) -> TopLabel:
    """Confidence and correctness of the most probable class.

    probs : (n, k) in [0, 1], rows summing to 1 within 1e-3. labels : (n,) class numbers. Equal top
        classes: the lowest number is predicted, and counted in `ties`.

    >>> top_label([[.2, .8], [.6, .4]], [1, 1]).correct.tolist()
    [True, False]
    """
    p, y = distributions(probs), np.asarray(labels)
    if y.shape != (len(p),):
        raise DataError(
            f"probs has shape {p.shape}, labels {y.shape}",
            where="arguments probs, labels",
            fix="pass (n, k) and (n,)",
        )
    gone = np.flatnonzero(np.isnan(p).any(1))
    if len(gone):
        where = f"probs, row {gone[0]}"
        raise DataError("a probability is unknown", where=where, fix="leave such rows out")
    wrong = np.flatnonzero(~np.isin(y, np.arange(p.shape[1])))
    if len(wrong):
        raise DataError(
            f"label {y[wrong[0]]!r} is no class number below {p.shape[1]}",
            where=f"labels, row {wrong[0]}",
            fix="use 0..k-1",
        )
    top = p.argmax(1)
    conf = p[np.arange(len(p)), top]
    return TopLabel(
        np.minimum(conf, 1.0), top == y, top, int(((p == conf[:, None]).sum(1) > 1).sum())
    )


def classwise(
    probs: Any, labels: Any, *, cluster: Any = None, n_boot: int = 1000, **binning: Any
) -> tuple[ECE, ...]:
    """ECE of each class (k of them) against "it is this class", with intervals that rest on
    clusters; their plain mean is the classwise ECE of Kull et al. 2019.

    probs : (n, k), rows sum to 1; labels : (n,) class numbers. A model can be calibrated at its
        favourite class and far off at the others; top-label calibration does not see that. Binning
        as in `ece`.

    >>> r = classwise([[0.8, 0.2]] * 10, [0] * 8 + [1] * 2, n_boot=0)
    >>> [round(e.value, 6) for e in r]
    [0.0, 0.0]
    """
    top_label(probs, labels)  # names a row that is no distribution, or no class
    p, y = distributions(probs), np.asarray(labels)
    if p.shape[1] > 200:
        raise DataError(
            f"{p.shape[1]} classes", where="probs", fix="merge classes, or use top_label"
        )
    return tuple(
        ece(np.clip(p[:, k], 0, 1), y == k, cluster=cluster, n_boot=n_boot, **binning)
        for k in range(p.shape[1])
    )
