"""Agreement of a judge with people: raw, corrected for chance (kappa), per level; of two judges."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import DataError
from .columns import categories as coded
from .columns import complete, numbers, takes_table
from .estimate import Estimate, Shown, interval, number
from .means import BOTH, difference, mean


@dataclass(frozen=True)
class Pairs:
    """Two columns as level numbers (n,), their clusters, and how many rows are unknown."""

    levels: list[Any]
    judge: np.ndarray
    human: np.ndarray
    cluster: np.ndarray | None
    missing: int

    @property
    def table(self) -> np.ndarray:
        """Counts (q, q): rows the judge, columns the human."""
        q = len(self.levels)
        return np.bincount(self.judge * q + self.human, minlength=q * q).reshape(q, q).astype(float)


def _pairs(
    judge: Any,
    human: Any,
    cluster: Any,
    levels: Sequence[Any] | None = None,
    threshold: float | None = None,
) -> Pairs:
    columns = {"judge": judge, "human": human}
    if threshold is not None:
        read = {k: numbers(v, k) for k, v in columns.items()}
        columns = {k: np.where(np.isnan(x), None, x >= threshold) for k, x in read.items()}
    names, levels_of = coded(columns, levels)
    rows, group, missing = complete(dict(zip(columns, levels_of, strict=True)), cluster)
    return Pairs(names, rows[0].astype(int), rows[1].astype(int), group, missing)


def _weights(kind: str | None, levels: list[Any], ordered: bool) -> np.ndarray:
    """How far each two levels agree (q, q): 1 or 0, or falling with their distance."""
    if kind is None:
        return np.eye(len(levels))
    if kind not in ("linear", "quadratic"):
        fix = 'None, "linear" or "quadratic"'
        raise DataError(f"weights is {kind!r}", where="weights", fix=fix)
    words = any(isinstance(v, str) for v in levels)
    if words and not ordered:
        fix = "pass categories=[worst, ..., best]"
        raise DataError("the order of the levels is unknown", where="categories", fix=fix)
    at = np.arange(len(levels)) if words else np.array(levels, float)
    gap = np.abs(at[:, None] - at) / max(float(np.ptp(at)), 1e-300)
    return 1 - gap ** (1 if kind == "linear" else 2)


def _kappa(table: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Kappa of counts (..., q, q); NaN where both sides always give one level."""
    p = table / table.sum((-1, -2), keepdims=True)
    chance = np.einsum("...i,ij,...j->...", p.sum(-1), w, p.sum(-2))
    with np.errstate(all="ignore"):
        value = ((p * w).sum((-1, -2)) - chance) / (1 - chance)
    return np.where(chance < 1 - 1e-12, value, math.nan)


def _influence(p: Pairs, w: np.ndarray) -> tuple[float, np.ndarray]:
    """Kappa, and the influence (n,) of each row on it (Fleiss, Cohen & Everitt 1969).

    With few clusters the first-order influence is too small. It is drawn up to what leaving out
    each cluster does.
    """
    table, n = p.table, max(len(p.judge), 1)
    with np.errstate(invalid="ignore"):
        value = float(_kappa(table, w))
    share = table / n
    alike, by_judge, by_human = (share * w).sum(), w @ share.sum(0), share.sum(1) @ w
    chance = float(share.sum(1) @ by_judge)
    marginal = by_judge[p.judge] + by_human[p.human] - 2 * chance
    row = (w[p.judge, p.human] - alike) * (1 - chance) - marginal * (1 - alike)
    psi = row / max(1 - chance, 1e-12) ** 2 / n
    if p.cluster is None or math.isnan(value):
        return value, psi
    q, c = len(w), int(p.cluster.max()) + 1
    cell = (p.cluster * q + p.judge) * q + p.human
    by_cluster = np.bincount(cell, minlength=c * q * q).reshape(c, q, q)
    with np.errstate(invalid="ignore"):
        left_out, total = _kappa(table - by_cluster, w), np.bincount(p.cluster, psi)
    if np.isfinite(left_out).all() and total @ total > 0:
        moves = (left_out - left_out.mean()) * (c - 1) / c
        psi = psi * max(1.0, math.sqrt(float(moves @ moves) / float(total @ total)))
    return value, psi


def _kappa_of(p: Pairs, weights: str | None, ordered: bool) -> Estimate:
    value, psi = _influence(p, _weights(weights, p.levels, ordered))
    method = "Cohen's kappa" + (f" ({weights} weights)" if weights else "")
    more: dict[str, Any] = {"missing": p.missing, "method": method}
    e = interval(value, psi, p.cluster, bounds=BOTH, ends=BOTH, outcome=p.human, **more)
    return replace(e, noun="kappa")


@takes_table("judge", "human", "cluster")
def kappa(
    judge: Any,
    human: Any,
    *,
    cluster: Any = None,
    weights: str | None = None,
    categories: Sequence[Any] | None = None,
) -> Estimate:
    """Cohen's kappa: (agreement - chance agreement) / (1 - chance agreement).

    judge, human : (n,) verdicts or levels. weights : "linear" or "quadratic" for levels with an
    order. There is no interval when a level of the human lies in fewer than five clusters. Source:
    Cohen 1960, 1968.

    >>> round(kappa([1, 1, 0, 0, 1, 0], [1, 1, 0, 0, 0, 0]).value, 3)
    0.667
    """
    p = _pairs(judge, human, cluster, categories)
    return _kappa_of(p, weights, categories is not None)


@takes_table("judge", "human", "cluster")
def accuracy(judge: Any, human: Any, *, cluster: Any = None) -> Estimate:
    """The share of rows in which judge and human give the same verdict.

    >>> accuracy(["yes", "no", "no"], ["yes", "no", "yes"]).value
    0.6666666666666666
    """
    p = _pairs(judge, human, cluster)
    return _same(p)


def _same(p: Pairs) -> Estimate:
    e = mean(p.judge == p.human, cluster=p.cluster)
    return replace(e, missing=p.missing, method="raw agreement", noun="agreement")


@takes_table("new", "old", "human", "cluster")
def agreement_difference(
    new: Any,
    old: Any,
    human: Any,
    *,
    cluster: Any = None,
    measure: str = "kappa",
) -> Estimate:
    """By how much `new` agrees better with the human than `old`, on rows where all three are known.

    measure : "kappa" or "accuracy".

    >>> y = [1, 0, 1, 0, 1, 0, 1, 0, 1, 0]
    >>> agreement_difference(y, [1] * 10, y, measure="accuracy").value
    0.5
    """
    if measure not in ("kappa", "accuracy"):
        fix = '"kappa" or "accuracy"'
        raise DataError(f"measure is {measure!r}", where="measure", fix=fix)
    levels, columns = coded({"new": new, "old": old, "human": human})
    named = dict(zip(("new", "old", "human"), columns, strict=True))
    (a, b, y), group, missing = complete(named, cluster)
    if measure == "accuracy":
        e = difference(a == y, b == y, cluster=group)
    else:
        w = np.eye(len(levels))
        pairs = [Pairs(levels, x.astype(int), y.astype(int), group, missing) for x in (a, b)]
        (value, psi), (second, less) = (_influence(p, w) for p in pairs)
        # a kappa has no range per row, so the rule of three asks for nothing more: scale 0
        more: dict[str, Any] = {"bounds": (-2.0, 2.0), "ends": BOTH, "outcome": y, "scale": 0.0}
        e = interval(value - second, psi - less, group, method="difference", **more)
    return replace(e, missing=missing, method=f"difference in {measure}", noun=measure)


@dataclass(frozen=True, repr=False)
class Agreement(Shown):
    """A judge against people.

    confusion : counts (q, q), rows the judge. kappa, raw : estimates. rates : for each level of the
    human, the share on which the judge gives the same. majority : raw agreement of always giving
    the commonest level.
    """

    categories: list[Any]
    confusion: np.ndarray
    kappa: Estimate
    raw: Estimate
    rates: dict[Any, Estimate]
    majority: float
    note: str

    @property
    def estimate(self) -> Estimate:
        """Kappa: what a forest of several judges shows."""
        return self.kappa

    def measures(self) -> dict[str, Estimate]:
        """Each measure by its name."""
        rates = {f"right where the human gives {k}": e for k, e in self.rates.items()}
        return {"kappa": self.kappa, "raw agreement": self.raw} | rates

    def __str__(self) -> str:
        import pandas as pd

        counts = pd.DataFrame(self.confusion.astype(int), self.categories, self.categories)
        lines = [f"{k:<32}{e}" for k, e in self.measures().items()]
        lines += ["", counts.rename_axis("judge \\ human").to_string()]
        return "\n".join([*lines, self.note] if self.note else lines)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "categories": self.categories,
            "confusion": self.confusion.tolist(),
            "measures": {k: e.as_dict() for k, e in self.measures().items()},
            "majority": self.majority,
            "note": self.note,
        }

    def plot(self, *, title: str = "Judge against human") -> Any:
        """The confusion table as a heat map (plotly)."""
        from ..plots import heat

        subtitle = f"kappa {self.kappa}"
        return heat(
            self.confusion, self.categories, title=title, subtitle=subtitle, x="human", y="judge"
        )


@takes_table("judge", "human", "cluster")
def agree(
    judge: Any,
    human: Any,
    *,
    cluster: Any = None,
    categories: Sequence[Any] | None = None,
    weights: str | None = None,
    threshold: float | None = None,
) -> Agreement:
    """The agreement of a judge with people in full; unknown rows are left out and counted.

    threshold : numbers at least this large are 1, others 0. Other arguments as in `kappa`.

    >>> agree([1, 1, 0, 0, 1, 0], [1, 1, 0, 0, 0, 0]).majority
    0.6666666666666666
    """
    p = _pairs(judge, human, cluster, categories, threshold)
    rates = {}
    for i in np.unique(p.human):
        here = p.human == i
        group = None if p.cluster is None else p.cluster[here]
        rates[p.levels[i]] = mean(p.judge[here] == i, cluster=group)
    raw, share = _same(p), p.table.sum(0) / max(len(p.human), 1)
    top, note = float(share.max(initial=0.0)), ""
    if raw.n and not raw.low > top:
        common = f"Always answering {p.levels[int(share.argmax())]!r} would agree in {number(top)}"
        note = f"{common}: raw agreement is not shown to be better."
    k = _kappa_of(p, weights, categories is not None)
    return Agreement(p.levels, p.table, k, raw, rates, top, note)
