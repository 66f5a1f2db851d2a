"""How many labelled prompts a better judge prompt needs, to be found and to be believed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import DataError
from ..stats.estimate import Estimate
from ..stats.planning import power_of, prompts_for
from ..stats.tails import t_below
from .candidates import FRACTIONS, PARTS
from .study import Study


def chance(prompts: int, gain: float, *, spread: float, trials: int = 1) -> float:
    """The chance (a lower bound, down to -trials) that a trial better by `gain` is chosen on
    `prompts` of dev among `trials`, and its gain then claimed on as many of the test.

    spread : standard deviation over prompts of the paired difference, as `Estimate.se` times the
    root of its clusters. A prompt chosen wrongly on dev is a gain not found. Under 100 prompts a
    claim has to clear a margin (`kit.stats.claim`), too.

    >>> round(chance(508, 0.05, spread=0.4), 3), round(chance(508, 0.05, spread=0.4, trials=10), 3)
    (0.779, 0.568)
    """
    apart = spread * math.sqrt(2)  # two trials differ from each other by what each has of its own
    lost = trials * t_below(-gain * math.sqrt(prompts) / apart, prompts - 1)
    return power_of(prompts, gain, spread=spread) - lost


def prompts_to_find(gain: float, *, power: float = 0.8, **more: Any) -> int:
    """Prompts of the test, and as many of dev, for which `chance` reaches `power`; arguments as
    there.

    >>> prompts_to_find(0.05, spread=0.4), prompts_to_find(0.3, spread=0.4)
    (535, 35)
    """
    n = prompts_for(gain, spread=more["spread"], power=power)
    while chance(n, gain, **more) < power:
        n = math.ceil(1.005 * n)
    return n


def plan(
    gap: Estimate | None, trials: int, study: Study, gain: float, power: float, room: float = 2.0
) -> dict[str, Any]:
    """What a gain needs: labelled prompts in all ("needed"), and the smallest gain that those at
    hand ("prompts") find as often (NaN where none is; "finds": in words).

    gap : the difference of a trial to the baseline, which tells the spread over prompts; None:
        there is none with a spread (DataError). Its 80 % upper limit is planned with: half of all
        pilots understate it (Browne 1995). room : what the baseline lacks to the best value.
    """
    if not 0 < gain <= 1:
        raise DataError(f"a gain of {gain}", where="--gain", fix="give a number in (0, 1]")
    if gap is None:
        raise DataError(
            "no trial differs here and there from the baseline",
            where="plan",
            fix="try a prompt that changes some verdicts first: its spread over prompts tells",
        )
    units = gap.n_clusters or gap.n
    sure = 1 + 0.84 / math.sqrt(2 * units)
    more = {"spread": sure * gap.se * math.sqrt(units), "trials": trials}
    size = {p: len(set(study.cluster[study.part == p])) for p in PARTS}
    here = min(size["dev"], size["test"])
    shown = (g for g in np.arange(0.01, room, 0.01) if chance(here, g, **more) >= power)
    smallest = float(next(shown, math.nan))
    none = f"none, whatever its size: the baseline lacks {room:.2f}"
    return {
        "gain": gain,
        "measure": study.measure,
        "found in": power,
        "needed": math.ceil(prompts_to_find(gain, power=power, **more) / min(FRACTIONS[1:])),
        "prompts": sum(size.values()),
        "smallest": smallest,
        "finds": none if math.isnan(smallest) else f"one of {smallest:.2f}",
    }
