"""Comparing two or more things on the same rows: clustered differences, max-T tables, and
sentences that claim no more than the data.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import DataError
from .agreement import numbered, table_stat
from .anytime import CLEAR, FIRM, HOLDS, MANY
from .arguments import generator, in_bounds, is_estimate, whole
from .clusters import (
    cell_sums,
    codes,
    effective_df,
    estimate,
    farthest,
    floats,
    jackknife,
    known,
    same_length,
    sums,
    worth,
)
from .columns import column, columns_of, takes_table
from .estimate import Estimate, number
from .shares import are_shares, signed_share
from .tails import t_quantile, t_two_sided

CLEARED = "max-T adjusted"  # ends the method of an interval that has its clearance


@takes_table("new", "old", "cluster")
def difference(
    new: Sequence[Any],
    old: Sequence[Any],
    *,
    cluster: Sequence[Any] | None = None,
    level: float = 0.95,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> Estimate:
    """Mean of new - old over the rows where both are known, with a clustered interval.

    It has room for UNSEEN prompts that were not drawn, of the kind that differs most among those
    that were (`farthest`): a tenth of the prompts may carry the difference. A kind that no drawn
    prompt shows is in no interval, and what makes up fewer than 3 / n of the prompts may not have
    been drawn (rule of three); bounds : the range that scores can have, with which there is room
    for prompts that differ by all of it (with 100 prompts and a spread of .1 that is 1.4 times as
    wide). Columns of 0s and 1s, with no other `bounds`, have it as they are. Without it the limit
    on the side of the longer tail leans farther: 4 to 8 prompts that fall by amounts of their own
    are held in .93 to .97 of samples.

    >>> difference([1, 1, 1, 0], [0, 1, 0, 0]).value
    0.5
    """
    (x, y), inverse, c, missing = known({"new": new, "old": old}, cluster)
    in_bounds(np.append(x, y), bounds)
    columns = sums(np.column_stack([x - y, np.ones(len(x))]), inverse, c)
    most = bounds[1] - bounds[0]
    far = farthest(x - y, inverse, (-most, most))
    out = estimate(
        lambda t: t[..., 0] / t[..., 1],
        columns,
        n=len(x),
        method="paired difference",
        missing=missing,
        level=level,
        size=columns[:, 1],
        bounds=(-most, most),
        kinds=np.column_stack([far, [1.0, 1.0]]),
        leans=not math.isfinite(most),
    )
    if c < 2 or out.note.startswith("too few") or not are_shares(np.append(x, y), bounds):
        return out
    e = signed_share(x - y, None if cluster is None else inverse, level=level)
    return replace(out, low=e.low, high=e.high, se=e.se, method=e.method, note="")


@dataclass(frozen=True)
class Comparison:
    """One row of a comparison table: estimate holds the unadjusted interval; low, high and p are
    adjusted for all rows together.
    """

    name: str
    baseline: str
    estimate: Estimate
    low: float
    high: float
    p: float
    p_adjusted: float

    @property
    def adjusted(self) -> Estimate:
        """The estimate with its adjusted interval."""
        words = f"{self.estimate.method}, {CLEARED}"
        return replace(self.estimate, low=self.low, high=self.high, method=words)


def compare(
    scores: Mapping[str, Sequence[Any]],
    baseline: str,
    *,
    cluster: Sequence[Any] | str | None = None,
    level: float = 0.95,
    draws: int = 4000,
    seed: int = 0,
) -> list[Comparison]:
    """Every column against the baseline, paired, with intervals and p-values adjusted by the
    bootstrap of the largest |t|.

    scores : name -> (n,) numbers, or a table; cluster : (n,), or the name of one of them. Each
        difference has a p-value by its own degrees of freedom (`effective_df`); the least is read
        against draws that keep how the columns hang together (max-T on the scale of p, Westfall &
        Young 1993, single step). With fewer than 100 clusters both have the room that `claim` wants
        (`clearance`), so that table and sentence agree: a tenth of prompts that collapse gave a
        false row in .19 to 1 of the tables. Of 8 columns that each lose 4 / n of the prompts, one
        shows a false gain in .14 of the tables, however many the prompts: none of its were drawn.

    >>> rows = compare({"a": [0, 1, 0, 1, 0, 1], "b": [1, 1, 0, 1, 1, 1]}, "a")
    >>> rows[0].name, round(rows[0].estimate.value, 3)
    ('b', 0.333)
    """
    scores = columns_of(scores)
    if baseline not in scores:
        raise DataError(
            f"no column {baseline!r}", where="baseline", fix=f"columns: {list(scores)[:12]}"
        )
    draws = whole("draws", draws, 1)
    if isinstance(cluster, str):  # a column's name
        cluster, scores = (
            column(scores, cluster, "cluster"),
            {k: scores[k] for k in scores if k != cluster},
        )
    n = same_length(**{str(k): v for k, v in scores.items()})
    same_length(scores=range(n), cluster=cluster)
    group = None if cluster is None else codes(cluster, n)[0]
    old, names = floats(scores[baseline], name=baseline), [k for k in scores if k != baseline]
    estimates = [difference(scores[k], old, cluster=group, level=level) for k in names]
    at = np.arange(n) if group is None else group
    gaps = [floats(scores[k], name=k) - old for k in names]
    columns = [_cluster_influence(d, at) for d in gaps]
    clusters = [worth(np.bincount(at[~np.isnan(d)])) for d in gaps]
    psi = np.column_stack(columns) if columns else np.zeros((n, 0))
    rows = _adjust(names, baseline, estimates, psi, clusters, level, draws, seed)
    shares = np.isin(np.nan_to_num([old, *(old + d for d in gaps)]), (0, 1)).all()
    most = 1.0 if shares else math.inf
    return [replace(r, low=max(r.low, -most), high=min(r.high, most)) for r in rows]


def _cluster_influence(d: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Jackknife influence of each cluster (C,) on the mean of the known differences; its sum of
    squares is the variance.
    """
    known = ~np.isnan(d)
    c = int(group.max(initial=-1)) + 1
    both = sums(np.column_stack([d, np.ones(len(d))])[known], group[known], c)
    used, psi = both[:, 1] > 0, np.zeros(c)
    if used.sum() > 1:
        _, left = jackknife(lambda t: t[..., 0] / t[..., 1], both[used])
        psi[used] = math.sqrt((used.sum() - 1) / used.sum()) * (left - left.mean())
    return psi


def _adjust(
    names: list[str],
    baseline: str,
    estimates: list[Estimate],
    psi: np.ndarray,
    clusters: list[float],
    level: float,
    draws: int,
    seed: int,
) -> list[Comparison]:
    se = np.sqrt((psi**2).sum(axis=0))
    usable = se > 1e-12
    least = _smallest_p(psi[:, usable] / se[usable], draws, seed)
    rank = max(int((1 - level) * (draws + 1) + 1e-9), 1)  # p_adjusted is above 1 - level from there
    cut = float(np.sort(least)[rank - 1]) if len(least) else 1 - level
    out = []
    for j, (name, e) in enumerate(zip(names, estimates, strict=True)):
        if not usable[j] or math.isnan(e.low):
            p = 1.0 if e.value == 0 and not usable[j] else math.nan
            out.append(Comparison(name, baseline, e, e.low, e.high, p, p))
            continue
        df = min(effective_df(psi[:, j]), max(clusters[j] - 1, 1.0))
        reach = e.value - e.low if e.value > 0 else e.high - e.value
        wide = max(float(se[j]), reach / t_quantile(level, df))  # p says what the interval says
        units = min(float(np.count_nonzero(psi[:, j])), clusters[j])
        clear = clearance(units, float(se[j]) * math.sqrt(units))
        p = t_two_sided(max(abs(e.value) - clear, 0.0) / wide, df)
        adjusted = max((1 + float((least <= p).sum())) / (draws + 1), p)
        half = t_quantile(1 - min(cut, 1 - level), df) * wide + clear
        low, high = min(e.value - half, e.low), max(e.value + half, e.high)
        out.append(Comparison(name, baseline, e, low, high, p, adjusted))
    return out


def _smallest_p(scaled: np.ndarray, draws: int, seed: int) -> np.ndarray:
    """Smallest p-value of correlated columns when nothing differs (draws,); scaled (C, K) with
    columns of length 1.
    """
    if not scaled.shape[1]:
        return np.zeros(0)
    rng = generator(seed)
    top = np.empty(draws)
    step = max(1, 4_000_000 // max(len(scaled), 1))
    for i in range(0, draws, step):
        b = min(step, draws - i)
        top[i : i + b] = np.abs(rng.standard_normal((b, len(scaled))) @ scaled).max(axis=1)
    return np.array([t_two_sided(x, math.inf) for x in top])


@takes_table("new", "old", "human", "cluster")
def agreement_difference(
    new: Sequence[Any],
    old: Sequence[Any],
    human: Sequence[Any],
    *,
    cluster: Sequence[Any] | None = None,
    measure: str = "kappa",
    level: float = 0.95,
) -> Estimate:
    """How much better `new` agrees with the human than `old`, on the rows where all three are
    known.

    new, old, human : (n,) categories; vocabularies are brought together as `agree` does. measure :
        "kappa", "accuracy", "balanced_accuracy" or "ac1". Cluster jackknife-t of the difference, so
        the pairing counts.

    >>> agreement_difference([1, 0, 1, 0], [1, 1, 1, 0], [1, 0, 1, 0], measure="accuracy").value
    0.25
    """
    group, _ = codes(cluster, same_length(new=new, old=old, human=human, cluster=cluster))
    at, cats, said = numbered({"new": new, "old": old, "human": human}, whole_rows=True)
    keep = (at >= 0).all(1)
    q, stat = len(cats), table_stat(measure, len(cats))
    most = 2.0 if measure in ("kappa", "ac1") else 1.0
    sides = (at[keep, k] * q + at[keep, 2] for k in (0, 1))
    both = np.column_stack([cell_sums(cell, q * q, group[keep]) for cell in sides])
    return estimate(
        lambda t: stat(t[..., : q * q]) - stat(t[..., q * q :]),
        both,
        n=int(keep.sum()),
        method=f"difference in {measure}",
        missing=int((~keep).sum()),
        level=level,
        note=said,
        size=both.sum(1) / 2,
        bounds=(-most, most),
        kinds=np.vstack([np.tile(np.eye(q * q)[:: q + 1], 2), _one_right(at[keep, 2], q)]),
    )


def _one_right(human: np.ndarray, q: int) -> np.ndarray:
    """Cells (2, 2 q q) of a prompt on which one of two judges is right throughout and the other
    in a third of its rows, where the human says what is usual, (n,) of q categories.
    """
    usual = np.bincount(human, minlength=q) / max(len(human), 1)
    right, wrong = np.diag(usual).ravel(), (1 - np.eye(q)) * usual / max(q - 1, 1)
    seldom = (right + 2 * wrong.ravel()) / 3
    return np.array([[*right, *seldom], [*seldom, *right]])


def claim(
    result: Estimate | Comparison,
    *,
    new: str = "the new one",
    old: str = "the baseline",
    what: str = "score",
    points: bool = False,
) -> str:
    """One sentence on a difference (new - old); it claims a gain or a loss only when the interval
    excludes 0.

    Fewer than 20 prompts show nothing unless the interval holds under skew (`betting`,
    `macro_difference(bounds=)`): with a tenth of prompts that collapse, t intervals "show" a gain
    that is not there in .62, .43 and .17 of samples of 4, 8 and 16. Fewer than 100 show only what
    is left when 3 in as many, the share that may go unseen (rule of three), collapse.
    points : speak in percentage points (value * 100).

    >>> claim(Estimate(0.05, 0.01, 0.09, 200, 100), what="kappa")
    'the new one beats the baseline in kappa: +.050 [.01, .09], n=200 in 100 clusters.'
    >>> claim(Estimate(0.05, -0.01, 0.11, 200), what="kappa", old="B")[:73]
    'No gain shown: the difference in kappa of the new one to B is +.050 [-.01'
    """
    if isinstance(result, Comparison):
        result = result.adjusted
    is_estimate("result", result)
    e = result
    if points:
        e = Estimate(
            e.value * 100,
            e.low * 100,
            e.high * 100,
            e.n,
            e.n_clusters,
            missing=e.missing,
            level=e.level,
        )
    text = ("+" if e.value > 0 else "") + (e.text(2) + " (in points)" if points else e.text())
    if math.isnan(e.value) or math.isnan(e.low) or math.isnan(e.high):
        return (
            f"Nothing can be said of {new} against {old} in {what}: "
            f"{result.note or 'no interval'} ({number(e.value)}, n={e.n})."
        )
    if e.high - e.low <= 1e-9 * max(
        1.0, abs(e.value)
    ):  # an interval of no width is a sign of too few clusters, not of certainty
        return (
            f"Nothing can be said of {new} against {old} in {what}: the difference is "
            f"{number(e.value)} in every cluster alike (n={e.n})."
        )
    if not e.low <= 0 <= e.high and fragile(result):
        return (
            f"Too few to tell {new} from {old} in {what}: {text}. With {result.units:.0f} "
            f"independent units, fewer than {CLEAR}, a few that collapse and were not drawn would "
            f"turn it."
        )
    if not e.low <= 0 <= e.high:
        return f"{new} {'beats' if e.low > 0 else 'is worse than'} {old} in {what}: {text}."
    return (
        f"No gain shown: the difference in {what} of {new} to {old} is {text}, and the "
        f"interval holds 0."
    )


def fragile(result: Estimate) -> bool:
    """Whether prompts that collapse and were not drawn could turn the sign of a difference.

    Never of a betting interval. Always under 20 units of equal size, never from 100 on; between
    them the interval must clear `clearance`, which a row of `compare` has in it. (At 100, 1 in 50
    prompts that collapse are still not drawn in .13 of samples.)

    >>> [fragile(Estimate(0.3, low, 0.4, 40, se=0.05)) for low in (0.2, 0.02)]
    [False, True]
    """
    units = result.units
    if result.method.startswith(HOLDS):
        return False
    if units < MANY or units >= CLEAR or result.method.endswith(CLEARED):
        return units < MANY
    spread = 0.0 if math.isnan(result.se) else result.se * math.sqrt(units)
    return min(abs(result.low), abs(result.high)) <= clearance(units, spread)


def clearance(units: float, spread: float) -> float:
    """How far from 0 the interval of a difference must end to be claimed; 0 from 100 units on.

    A share of 3 / units may be unseen (rule of three, Hanley & Lippman-Hand 1983), each worth 1, or
    three standard deviations (one from 60 units on). For several columns it is no wider: that took
    a gain of .3 of 60 prompts in 8 columns from .68 to .33 of the tables.

    >>> clearance(60, 0.5), clearance(100, 0.5)
    (0.05, 0.0)
    """
    if units >= CLEAR:
        return 0.0
    return 3 / units * max(1.0, (3.0 if units < FIRM else 1.0) * spread)
