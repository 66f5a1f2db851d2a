"""Correctness that was computed from the confidence says nothing about calibration: refuse it, or
flag it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import DataError

NAMES = (
    "confidence",
    "uncertainty",
    "calibration",
    "brier",
)  # words in a component's name that speak of the confidence


@dataclass(frozen=True)
class Circularity:
    """What was found. guilty : component -> why it depends on the confidence."""

    guilty: Mapping[str, str]
    clean: tuple[str, ...]

    @property
    def circular(self) -> bool:
        """True when correctness was computed from the confidence."""
        return bool(self.guilty)

    def __str__(self) -> str:
        if not self.guilty:
            return (
                f"no component depends on the confidence as far as declared or visible "
                f"({', '.join(self.clean) or 'none given'})"
            )
        return "correctness was computed from the confidence: " + "; ".join(
            f"{k} ({v})" for k, v in self.guilty.items()
        )


def check_circular(
    conf: Any, correct: Any = None, *, components: Mapping[str, Any], on: str = "raise"
) -> Circularity:
    """Find components of correctness that were computed from the confidence.

    components : what `correct` was computed from; name -> True (contains the confidence), False
        (declared free of it),
    a list of the names of its inputs, or its (n,) values. on : "raise" (DataError) or "flag"
        (return the finding). Values are guilty when the confidence determines them: equal
        confidences always come with equal values, over at least 3 confidences that occur more than
        once. A mixture that also reads the answer cannot be seen that way: declare it.

    >>> parts = {"facts": ["answer"], "V4": ["confidence", "truth"]}
    >>> check_circular([.5], [1], components=parts, on="flag").circular
    True
    """
    if on not in ("raise", "flag"):
        raise DataError(f"on is {on!r}", where="argument on", fix='use "raise" or "flag"')
    guilty = {
        str(name): why for name, part in components.items() if (why := _why(str(name), part, conf))
    }
    out = Circularity(guilty, tuple(str(c) for c in components if str(c) not in guilty))
    if out.circular and on == "raise":
        raise DataError(
            str(out),
            where="argument components",
            fix="recompute correctness without these components (calibration.score_without), or "
            'flag it: on="flag"',
        )
    return out


def _why(name: str, part: Any, conf: Any) -> str:
    if part is True:
        return "declared"
    if part is False:
        return ""
    if any(word in name.lower() for word in NAMES):
        return "its name speaks of the confidence; declare it False if it does not read it"
    values = list(part)
    if values and all(isinstance(v, str) for v in values):
        read = [v for v in values if any(word in v.lower() for word in NAMES)]
        return f"reads {', '.join(read)}" if read else ""
    return _determined(
        np.array([np.nan if v is None else v for v in values], dtype=float),
        np.asarray(conf, dtype=float),
    )


def _determined(values: np.ndarray, conf: np.ndarray) -> str:
    """A reason when the confidence alone determines the values, else ""."""
    if len(values) != len(conf):
        raise DataError(
            f"a component has {len(values)} rows, conf has {len(conf)}",
            where="argument components",
            fix="pass one value per row",
        )
    known = np.isfinite(values) & np.isfinite(conf)
    repeated, spread = 0, 0.0
    means = []
    for c in np.unique(conf[known]):
        here = values[known & (conf == c)]
        if len(here) > 1:
            repeated += 1
            spread = max(spread, float(np.ptp(here)))
            means.append(float(here.mean()))
    if repeated >= 3 and spread < 1e-9 and np.ptp(means) > 1e-9:
        return f"equal confidences always give equal values ({repeated} repeated confidences)"
    return ""


def score_without(
    scores: Sequence[Mapping[str, float | None]],
    *,
    weights: Mapping[str, float],
    drop: Sequence[str],
) -> np.ndarray:
    """Composed score sum(w s) / sum(w) over applicable components, leaving some out: (n,), NaN
    where nothing is left.

    scores : per row, component -> score in [0, 1], absent or None = not applicable.

    >>> score_without([{"V1": 1.0, "V4": 0.0}], weights={"V1": .35, "V4": .2}, drop=["V4"]).tolist()
    [1.0]
    """
    out = np.full(len(scores), np.nan)
    for i, row in enumerate(scores):
        used = {k: v for k, v in row.items() if v is not None and k not in drop}
        lost = [k for k in used if k not in weights]
        if lost:
            raise DataError(
                f"component {lost[0]!r} has no weight",
                where=f"row {i} (the first row is 0)",
                fix="add it to weights or to drop",
            )
        total = sum(weights[k] for k in used)
        if total > 0:
            out[i] = sum(weights[k] * v for k, v in used.items()) / total
    return out
