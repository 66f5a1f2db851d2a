"""Planning: how many labels are needed, and what a given number can show. Independent rows unless a
design effect is given.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..errors import DataError
from .anytime import MANY
from .arguments import of_numbers, whole
from .paired import clearance
from .shares import UNSEEN
from .tails import t_below, t_quantile

WORSE = "correcting by sensitivity and specificity needs more labels than using no judge at all"


@of_numbers
def design_effect(rows_per_cluster: float, correlation: float) -> float:
    """1 + (rows - 1) * correlation: by how much clusters of equal size blow up a variance (Kish
    1965).

    >>> design_effect(9, 0.5)
    5.0
    """
    if rows_per_cluster < 1 or not -1 <= correlation <= 1:
        raise DataError(
            f"{rows_per_cluster} rows, correlation {correlation}",
            where="design_effect",
            fix="rows >= 1, correlation in [-1, 1]",
        )
    return 1 + (rows_per_cluster - 1) * correlation


@of_numbers
def prompts_for(
    gain: float,
    *,
    spread: float,
    samples: int = 1,
    noise: float = 0.0,
    power: float = 0.8,
    alpha: float = 0.05,
) -> int:
    """Prompts needed to show a paired gain: how many held-out prompts for a gain of .05?

    gain : difference to show (two-sided alpha). spread : standard deviation over prompts of the
        true gain of a prompt.
    samples : answers of each policy to a prompt; noise : standard deviation of one answer's score
        within a prompt. The variance of a prompt's difference is spread^2 + 2 noise^2 / samples;
        Student's t, so it holds for few. The gain is to be claimed (`claim`): never
        below 20, and below 100 with room for prompts that collapse and were not drawn.

    >>> prompts_for(0.05, spread=0.15), prompts_for(0.05, spread=0.1, noise=0.4, samples=4)
    (100, 291)
    """
    if not (
        0 < abs(gain) < math.inf
        and spread >= 0
        and noise >= 0
        and samples >= 1
        and spread + noise > 0
        and 0.5 < power < 1
        and 0 < alpha < 1
    ):
        raise DataError(
            f"gain {gain}, spread {spread}, noise {noise}, samples {samples}, power {power}, "
            f"alpha {alpha}",
            where="prompts_for",
            fix="a gain other than 0, a spread or noise above 0, samples >= 1 (from a pilot), "
            "power in (.5, 1), alpha in (0, 1)",
        )
    variance = spread**2 + 2 * noise**2 / samples
    z = t_quantile(1 - alpha, math.inf) + t_quantile(2 * power - 1, math.inf)
    n = max(math.ceil(variance * (z / gain) ** 2), MANY)  # of known deviations: at most too few
    more = {"spread": spread, "samples": samples, "noise": noise, "alpha": alpha}
    while power_of(n, gain, **more) < power - 1e-9:
        n += 1
    return n


@of_numbers
def power_of(
    prompts: int,
    gain: float,
    *,
    spread: float,
    samples: int = 1,
    noise: float = 0.0,
    alpha: float = 0.05,
) -> float:
    """The chance that this many prompts show a paired gain that `claim` claims; arguments as in
    `prompts_for`.

    >>> round(power_of(73, 0.05, spread=0.15), 2), round(power_of(110, 0.05, spread=0.15), 2)
    (0.06, 0.92)
    """
    prompts = whole("prompts", prompts, 1)
    if min(spread, noise) < 0 or spread + noise <= 0 or samples < 1:
        raise DataError(
            f"spread {spread}, noise {noise}, samples {samples}",
            where="power_of",
            fix="a spread or noise above 0, samples >= 1",
        )
    own = math.sqrt(spread**2 + 2 * noise**2 / samples)
    se, df = own / math.sqrt(prompts), max(prompts - 1, 1)
    room = (
        3 * own * UNSEEN / (prompts + UNSEEN)
    )  # as for the most extreme prompt drawn (`farthest`)
    half = math.hypot(t_quantile(1 - alpha, df) * se, room)
    return t_below((abs(gain) - clearance(prompts, own) - half) / se, df)


@dataclass(frozen=True)
class LabelPlan:
    """Labels needed for a pass rate within +- half_width, by three ways of using them."""

    human_only: int
    post_stratified: int
    rogan_gladen: int | None
    half_width: float
    note: str


@of_numbers
def labels_needed(
    half_width: float,
    rate: float,
    *,
    q1: float,
    q0: float,
    level: float = 0.95,
    effect: float = 1.0,
) -> LabelPlan:
    """How many labelled rows give a pass rate of +- half_width, when the judge has seen many more
    rows.

    rate : expected true pass rate; q1, q0 : the judge's sensitivity and specificity; effect :
        design effect of the clusters.

    >>> plan = labels_needed(0.05, 0.8, q1=0.9, q0=0.8)
    >>> plan.human_only, plan.post_stratified, plan.rogan_gladen
    (246, 141, 327)
    """
    if not (0 < rate < 1 and 0 <= q1 <= 1 and 0 <= q0 <= 1 and half_width > 0 and effect > 0):
        raise DataError(
            f"rate {rate}, q1 {q1}, q0 {q0}, half width {half_width}, effect {effect}",
            where="labels_needed",
            fix="rates in (0, 1), half_width > 0, effect > 0",
        )
    scale = effect * (t_quantile(level, math.inf) / half_width) ** 2
    p = rate * q1 + (1 - rate) * (1 - q0)
    left = sum(
        share * mu * (1 - mu)
        for share, mu in (
            (p, rate * q1 / p if p else 0.0),
            (1 - p, rate * (1 - q1) / (1 - p) if p < 1 else 0.0),
        )
    )
    human, post = math.ceil(scale * rate * (1 - rate) - 1e-9), math.ceil(scale * left - 1e-9)
    gain = q1 + q0 - 1
    errors = (1 - rate) * q0 * (1 - q0) + rate * q1 * (1 - q1)
    rogan = math.ceil(scale * errors / gain**2 - 1e-9) if gain > 0 else None
    return LabelPlan(human, post, rogan, half_width, WORSE * (rogan is None or rogan > human))


@of_numbers
def half_width(n: int, rate: float, *, level: float = 0.95, effect: float = 1.0) -> float:
    """Half width of a rate's interval with n labelled rows.

    >>> round(half_width(246, 0.8), 3)
    0.05
    """
    if n <= 0 or effect <= 0 or not 0 <= rate <= 1:
        said, fix = f"n {n}, rate {rate}, effect {effect}", "n, effect > 0 and rate in [0, 1]"
        raise DataError(said, where="half_width", fix=fix)
    return t_quantile(level, math.inf) * math.sqrt(effect * rate * (1 - rate) / n)
