"""What a confidence is worth: Brier score, smooth calibration error, selective answering."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import fft, optimize

from ...errors import DataError
from ...plots import Figure, lines
from ..columns import Column, Floats, Ints, takes_table
from ..estimate import (
    UNIT_RANGE,
    Estimate,
    PrintedResult,
    estimate_from_influence,
    format_number,
)
from .rows import ConfidenceRows, read_rows

# intervals of [0, 1] on which smECE smooths
SMOOTHING_NODES = 4200


@takes_table("conf", "correct", "cluster")
def brier(
    conf: Column | ConfidenceRows,
    correct: Column = (),
    *,
    cluster: Column | None = None,
    missing: str = "raise",
) -> Estimate:
    """The Brier score: the mean square of confidence less outcome. `compare` gives its change.

    There is no interval when right or wrong rows lie in fewer than five clusters.

    >>> round(brier([0.3] * 10 + [0.6] * 10, [1] * 2 + [0] * 8 + [1] * 7 + [0] * 3).value, 3)
    0.195
    """
    x = read_rows(conf, correct, cluster=cluster, missing=missing)
    loss = x.gap**2
    value = float(loss.mean())
    return estimate_from_influence(
        value,
        (loss - value) / len(loss),
        x.cluster,
        method="Brier",
        bounds=UNIT_RANGE,
        ends=UNIT_RANGE,
        outcome=x.correct,
        missing=x.missing,
    )


@takes_table("conf", "correct", "cluster")
def beyond_constant(
    conf: Column | ConfidenceRows,
    correct: Column = (),
    *,
    cluster: Column | None = None,
    missing: str = "raise",
) -> Estimate:
    """The Brier score less that of the best constant, which is the share of right rows.

    Only an interval below 0 says that the confidences tell right from wrong. The ECE alone does
    not: a constant matches it.

    >>> round(beyond_constant([0.9, 0.9, 0.1, 0.1], [1, 1, 0, 0]).value, 3)
    -0.24
    """
    x = read_rows(conf, correct, cluster=cluster, missing=missing)
    loss, base = x.gap**2, x.correct.mean()
    value = float(loss.mean() - base * (1 - base))
    # the best constant moves with the rows too, so it is in the influence
    psi = (loss - loss.mean() - (1 - 2 * base) * (x.correct - base)) / len(loss)
    # A loss lies in [0, 1], and that of the best constant in [0, 1/4].
    span = (-0.25, 1.0)
    return estimate_from_influence(
        value,
        psi,
        x.cluster,
        method="Brier less the best constant's",
        bounds=span,
        ends=span,
        outcome=x.correct,
        missing=x.missing,
    )


@takes_table("conf", "correct")
def smece(
    conf: Column | ConfidenceRows,
    correct: Column = (),
    *,
    missing: str = "raise",
) -> float:
    """Smooth calibration error, without bins: the kernel width that equals the smoothed error.

    Source: Blasiok & Nakkiran 2023, section 4; a Gaussian kernel that is mirrored at 0 and 1. The
    package `relplot` draws its curve.

    >>> round(smece([0.7] * 10, [1] * 4 + [0] * 6), 4)
    0.3
    """
    x = read_rows(conf, correct, missing=missing)
    at = x.conf * SMOOTHING_NODES
    node = np.minimum(at.astype(int), SMOOTHING_NODES - 1)
    part = at - node
    # A row is shared by its two nearest nodes, which keeps the mean gap exact.
    gap = np.bincount(node, x.gap * (1 - part), SMOOTHING_NODES + 1)
    gap += np.bincount(node + 1, x.gap * part, SMOOTHING_NODES + 1)
    # half of a kernel at the border lies outside and is mirrored back
    gap[[0, -1]] *= 2
    # The cosine transform mirrors at both ends, and turns smoothing into a product.
    waves = fft.dct(gap / len(at), type=1)
    decay = -0.5 * (np.pi * np.arange(SMOOTHING_NODES + 1)) ** 2

    def excess(width: float) -> float:
        smooth = np.abs(fft.idct(waves * np.exp(decay * width**2), type=1))
        return float(smooth.sum() - (smooth[0] + smooth[-1]) / 2 - width)

    # the error falls as the kernel widens, so they meet once
    return float(optimize.brentq(excess, 0.0, 1.0, xtol=1e-9))


@dataclass(frozen=True, repr=False)
class RiskCoverage(PrintedResult):
    """Errors among answers, by the share answered.

    curve : DataFrame of threshold, coverage and risk, most confident first. aurc : the mean risk
    over coverages. best, random : the mean risk of a perfect order and of a random one.
    """

    curve: pd.DataFrame
    aurc: Estimate
    best: float
    random: float

    @property
    def estimate(self) -> Estimate:
        """The area under the curve."""
        return self.aurc

    def __str__(self) -> str:
        return (
            f"AURC {self.aurc}; perfect order {format_number(self.best)}, "
            f"random order {format_number(self.random)}"
        )

    def plot(self, *, title: str = "Risk and coverage") -> Figure:
        """The curve (plotly); the second line is a random order."""
        return lines(
            self.curve.drop(columns="threshold")
            .assign(random=self.random)
            .set_axis(["share answered", "by confidence", "random order"], axis=1),
            "share answered",
            title=title,
            subtitle=str(self),
            y_title="errors among them",
        )


@takes_table("conf", "correct", "cluster")
def risk_coverage(
    conf: Column | ConfidenceRows,
    correct: Column = (),
    *,
    cluster: Column | None = None,
    missing: str = "raise",
) -> RiskCoverage:
    """The share of errors among the most confident answers, by the share of answers.

    Source: Geifman & El-Yaniv 2017; Ding et al. 2020 for the area.

    >>> round(risk_coverage([0.9, 0.8, 0.7, 0.6], [1, 1, 0, 1]).aurc.value, 6)
    0.145833
    """
    x = read_rows(conf, correct, cluster=cluster, missing=missing)
    falling, at, count = np.unique(-x.conf, return_inverse=True, return_counts=True)
    errors, answered = 1 - x.correct, np.cumsum(count)
    risk, psi = _risk_and_influence(errors, at, count)
    # a threshold takes all rows of a value or none, so the curve has a point for each value
    return RiskCoverage(
        curve=pd.DataFrame(
            {
                "threshold": -falling,
                "coverage": answered / len(at),
                "risk": risk[answered - 1],
            }
        ),
        aurc=estimate_from_influence(
            float(risk.mean()),
            psi - psi.mean(),
            x.cluster,
            method="AURC",
            bounds=UNIT_RANGE,
            missing=x.missing,
        ),
        best=float((np.cumsum(np.sort(errors)) / np.arange(1, len(at) + 1)).mean()),
        random=float(errors.mean()),
    )


def _risk_and_influence(
    errors: Floats, at: Ints, count: Ints
) -> tuple[Floats, Floats]:
    """Errors among the first rows (n,), and the influence (n,) of each row on their mean.

    at : the place of each row's confidence, the highest first. count : rows of each place.
    """
    order, rank = np.sort(at), np.arange(1, len(at) + 1)
    # Tied rows take their mean: the order in the file must not matter.
    risk = np.cumsum((np.bincount(at, errors) / count)[order]) / rank
    # a row adds to the risk at its own rank and at all later ones; of tied rows, the mean counts
    weight = np.cumsum((1 / rank)[::-1])[::-1]
    less = np.cumsum((risk / rank)[::-1])[::-1]
    own_risk, weight, less = (
        (np.bincount(order, v) / count)[at] for v in (risk, weight, less)
    )
    return risk, (own_risk - risk.mean() + errors * weight - less) / len(at)


@takes_table("conf", "correct", "cluster")
def abstain_below(
    conf: Column, correct: Column, *, risk: float, cluster: Column | None = None
) -> float:
    """The lowest threshold that keeps wrong answers below `risk` of all answers, or infinity.

    It holds on average for new clusters (conformal risk control, Angelopoulos et al. 2024).

    >>> abstain_below([0.9] * 30 + [0.2] * 10, [1] * 30 + [0] * 10, risk=0.1)
    0.9
    """
    if not 0 < risk < 1:
        raise DataError(f"risk is {risk!r}", where="risk", fix="a share in (0, 1)")
    x = read_rows(conf, correct, cluster=cluster)
    # a prompt counts once, however many answers it has
    size, order = np.bincount(x.clusters), np.argsort(-x.conf, kind="stable")
    loss = np.cumsum(((1 - x.correct) / size[x.clusters])[order])
    p = x.conf[order]
    last_of_value = np.append(p[1:] != p[:-1], True)
    # The added 1 is the worst that one new cluster can do.
    good = np.flatnonzero(((loss + 1) / (len(size) + 1) <= risk) & last_of_value)
    return float(p[good[-1]]) if len(good) else np.inf
