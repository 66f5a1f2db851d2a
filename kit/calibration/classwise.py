"""Calibration of every class or level of a judge that gives a distribution, not only of the one it favours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import DataError
from .compare import top_label
from .ece import ECE, ece


@dataclass(frozen=True)
class Classwise:
    """ECE of each class, its probability read as the confidence that the class is right; mean over classes (plug-in)."""

    classes: tuple[int, ...]
    eces: tuple[ECE, ...]

    @property
    def mean(self) -> float:
        """Classwise ECE (Kull et al. 2019), the plain mean over classes."""
        return float(np.mean([e.value for e in self.eces]))

    def table(self) -> list[dict[str, Any]]:
        """One dict per class."""
        return [{"class": k, **e.as_dict()} for k, e in zip(self.classes, self.eces, strict=True)]

    def __str__(self) -> str:
        return "\n".join(f"class {k}: {e}" for k, e in zip(self.classes, self.eces, strict=True))


def classwise(
    probs: Any, labels: Any, *, cluster: Any = None, n_boot: int = 1000, **binning: Any
) -> Classwise:
    """ECE of each class against "it is this class", with intervals that rest on clusters.

    probs : (n, k), rows sum to 1; labels : (n,) class numbers. A model can be calibrated at its favourite class and far off at
    the others; top-label calibration does not see that. Binning as in `ece`.

    >>> r = classwise([[0.8, 0.2]] * 10, [0] * 8 + [1] * 2, n_boot=0)
    >>> round(r.mean, 6)
    0.0
    """
    top_label(probs, labels)  # names a row that is no distribution, or no class
    p, y = np.asarray(probs, dtype=float), np.asarray(labels)
    if p.shape[1] > 200:
        raise DataError(
            f"{p.shape[1]} classes", where="probs", fix="merge classes, or use top_label"
        )
    eces = tuple(
        ece(np.clip(p[:, k], 0, 1), y == k, cluster=cluster, n_boot=n_boot, **binning)
        for k in range(p.shape[1])
    )
    return Classwise(tuple(range(p.shape[1])), eces)
