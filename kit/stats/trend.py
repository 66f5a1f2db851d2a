"""A trend over training steps with a clustered slope, and one line for many headline claims read
together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import DataError
from .arguments import in_bounds, is_estimate, share
from .clusters import estimate, floats, jackknife, known, sums
from .columns import takes_table
from .estimate import Estimate, number, unknown
from .paired import fragile
from .shares import are_shares
from .tails import t_quantile, t_two_sided


@takes_table("step", "value", "cluster")
def trend(
    step: Sequence[Any],
    value: Sequence[Any],
    *,
    cluster: Sequence[Any] | None = None,
    per: float = 100.0,
    level: float = 0.95,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> Estimate:
    """Least-squares slope of a value over steps, per `per` steps.

    step, value : (n,), one evaluation or one prompt's score a row; unknown rows are left out and
        counted. cluster : (n,), what was measured again and again: the prompt, or the run.
        Interval: cluster jackknife-t (of rows: HC3, which asks for no equal variances), with room
        for prompts that were not drawn and pull the slope as far as the most extreme drawn. A kind
        that no drawn prompt shows is in no interval, and what makes up fewer than 3 / n of the
        prompts may not have been drawn (rule of three). bounds : the range that values can have,
        (0, 1) where all are 0 or 1 and it is not given; there is then room for prompts that rise,
        or fall, by all of it.

    >>> e = trend([0, 10, 20, 30, 40], [0.60, 0.61, 0.60, 0.62, 0.62])
    >>> round(e.value, 4), e.low < e.value < e.high
    (0.05, True)
    """
    if not (isinstance(per, (int, float)) and 0 < per < math.inf):
        raise DataError(f"per is {per!r}", where="per", fix="a number of steps above 0")
    (x, y), group, c, missing = known({"step": step, "value": value}, cluster)
    x = x / per
    if len(x) < 3 or np.ptp(x) == 0:
        return unknown(
            len(x),
            method="slope",
            note="three rows at two steps or more are needed",
            missing=missing,
            level=level,
        )
    in_bounds(y, bounds)
    most = 1.0 if are_shares(y, bounds) else bounds[1] - bounds[0]
    x, y = x - x.mean(), y - y.mean()
    columns = np.column_stack([np.ones(len(x)), x, y, x * x, x * y])
    by = sums(columns, group, c)

    def slope(t: np.ndarray) -> np.ndarray:
        size, sx, sy, sxx, sxy = np.moveaxis(t, -1, 0)
        spread = sxx - sx * sx / size
        # of one step there is none; sums leave round-off of it
        return (sxy - sx * sy / size) / np.where(spread.real > 1e-12 * (x @ x), spread, math.nan)

    pull = (by[:, 4] - (x @ y) / (x @ x) * by[:, 3]) / by[:, 0]  # of each prompt on the slope
    rise = (most if most < math.inf else math.nan) / 2 * np.abs(x).mean()
    kinds = np.vstack(
        [
            (by / by[:, :1])[[pull.argmin(), pull.argmax()]],
            [1.0, 0.0, 0.0, x @ x / len(x), -rise],
            [1.0, 0.0, 0.0, x @ x / len(x), rise],
        ]
    )
    out = estimate(
        slope,
        by,
        size=by[:, 0],
        kinds=kinds,
        n=len(x),
        method=f"slope per {per:g} steps",
        bounds=(-math.inf, math.inf),
        missing=missing,
        level=level,
        leans=True,
    )
    if c > 1 and np.isnan(jackknife(slope, by)[1]).any():
        return replace(
            out,
            low=math.nan,
            high=math.nan,
            se=math.nan,
            note="without one cluster all rows are of one step: no interval",
        )
    return out


def holm(claims: Mapping[str, Estimate], *, null: float = 0.0) -> dict[str, float]:
    """Holm-adjusted p-values of several estimates against one value, each from its interval (Holm
    1979). One without a p of its own stays NaN and counts in the family as 1 does.

    >>> a, b = Estimate(0.3, 0.1, 0.5, 100, se=0.1), Estimate(0.1, -0.1, 0.3, 100, se=0.1)
    >>> {k: round(v, 3) for k, v in holm({"a": a, "b": b}).items()}
    {'a': 0.007, 'b': 0.324}
    """
    if not isinstance(claims, Mapping):
        raise DataError(
            f"claims is {claims!r:.60}",
            where="argument claims",
            fix='give name -> estimate, as {"gain": kit.difference(new, old)}',
        )
    for name, e in claims.items():
        is_estimate(f"claims[{name!r}]", e)
    if not isinstance(null, (int, float)):
        raise DataError(f"null is {null!r}", where="argument null", fix="give a number")
    out = {k: _p(e, null) for k, e in claims.items()}
    worst = 0.0
    for i, name in enumerate(sorted((k for k, p in out.items() if not math.isnan(p)), key=out.get)):
        worst = max(worst, min((len(out) - i) * out[name], 1.0))
        out[name] = worst
    return out


def _p(e: Estimate, null: float) -> float:
    """Two-sided p of a value from the half of the interval that points at it; NaN where that ends
    at the value: it may be cut off there."""
    reach = e.value - e.low if e.value > null else e.high - e.value
    if math.isnan(reach) or reach <= 0 or null in (e.low, e.high):
        return math.nan
    df = max((e.n if e.n_clusters is None else e.n_clusters) - 1, 1)
    return t_two_sided((e.value - null) / (reach / t_quantile(e.level, df)), df)


def standing(
    claims: Mapping[str, Estimate], *, null: float = 0.0, alpha: float = 0.05
) -> dict[str, Estimate]:
    """Those of several claims that stand when they are read together (Holm); none that `claim`
    finds too few units for.

    >>> list(standing({"a": Estimate(0.3, 0.1, 0.5, 100), "b": Estimate(0.3, 0.1, 0.5, 10)}))
    ['a']
    """
    return {
        k: claims[k] for k, (word, _) in _placed(claims, null, alpha).items() if word == "stand"
    }


def _placed(
    claims: Mapping[str, Estimate], null: float, alpha: float
) -> dict[str, tuple[str, float]]:
    """Of each claim "stand", "too few to tell" or "not shown", and its p among the others."""
    adjusted, alpha = holm(claims, null=null), share("alpha", alpha)
    clear = {k: replace(e, low=e.low - null, high=e.high - null) for k, e in claims.items()}
    words = {k: "too few to tell" if fragile(e) else "stand" for k, e in clear.items()}
    return {k: (words[k] if p <= alpha else "not shown", p) for k, p in adjusted.items()}


def together(claims: Mapping[str, Estimate], *, null: float = 0.0, alpha: float = 0.05) -> str:
    """One line: which of several headline claims stand when they are read together.

    >>> a, b = Estimate(0.3, 0.1, 0.5, 100), Estimate(0.21, 0.01, 0.41, 100)
    >>> together({"gain": a, "calibration": b})
    'Of 2 headline claims read together (Holm), 2 stand: gain (p=.007), calibration (p=.040).'
    >>> together({"gain": Estimate(0.3, -0.1, 0.7, 100)})
    'Of 1 headline claims read together (Holm), 0 stand; not shown: gain (p=.140).'
    """
    placed = _placed(claims, null, alpha)
    count = [word for word, _ in placed.values()].count("stand")
    said = f"Of {len(placed)} headline claims read together (Holm), {count} stand"
    for word, before in (
        ("stand", ""),
        ("too few to tell", "; too few to tell"),
        ("not shown", "; not shown"),
    ):
        names = [f"{k} (p={number(p)})" for k, (place, p) in placed.items() if place == word]
        said += f"{before}: {', '.join(names)}" if names else ""
    return said + "."


def mean_over_seeds(
    values: Sequence[float], *, bounds: tuple[float, float] = (-math.inf, math.inf)
) -> Estimate:
    """Mean over seeds with a t interval, inside the bounds of the values; without one where there
    is one seed or all gave the same: their spread is then unknown, not 0. It is for seeds like
    these: a collapse of one seed in ten is seldom among five, and then not in the interval.

    >>> str(mean_over_seeds([0.5, 0.6, 0.7])), mean_over_seeds([0.5]).note
    ('.600 [.35, .85], n=3', 'one seed')
    """
    x = floats(values)
    known = x[~np.isnan(x)]
    n, missing, words = len(known), len(x) - len(known), "mean over seeds"
    if not n or np.ptp(known) <= 1e-9 * max(1.0, abs(float(known[0]))):
        note = ("no seed is known", "one seed", "all seeds gave the same")[min(n, 2)]
        value = float(known[0]) if n else math.nan
        return Estimate(value, math.nan, math.nan, n, None, words, note, missing)
    value, se = float(known.mean()), float(known.std(ddof=1)) / math.sqrt(n)
    half = t_quantile(0.95, n - 1) * se
    return Estimate(
        value,
        max(value - half, bounds[0]),
        min(value + half, bounds[1]),
        n,
        None,
        "t over seeds",
        "",
        missing,
        0.95,
        se,
    )
