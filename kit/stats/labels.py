"""A judge beside people's labels: agreement, and what people would say of all rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import DataError
from .columns import codes, complete, level_numbers, numbers, takes_table
from .estimate import RARE, Estimate, Result, format_number, interval, too_rare
from .means import BOTH, UNIT, binary, mean


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
        cell = self.judge * q + self.human
        return np.bincount(cell, minlength=q * q).reshape(q, q).astype(float)


def _pairs(
    judge: Any,
    human: Any,
    cluster: Any,
    levels: Sequence[Any] | None = None,
    threshold: float | None = None,
) -> Pairs:
    columns = {"judge": judge, "human": human}
    if threshold is not None:
        for name, values in columns.items():
            x = numbers(values, name)
            # NaN >= threshold is False, which would turn unknown into unmet.
            columns[name] = np.where(np.isnan(x), None, x >= threshold)
    names, (a, b) = level_numbers(columns, levels)
    (a, b), group, missing = complete({"judge": a, "human": b}, cluster)
    return Pairs(names, a.astype(int), b.astype(int), group, missing)


def _weights(kind: str | None, levels: list[Any], has_order: bool) -> np.ndarray:
    """How far each two levels agree (q, q): 1 or 0, or falling with their distance."""
    if kind is None:
        return np.eye(len(levels))
    if kind not in ("linear", "quadratic"):
        raise DataError(
            f"weights is {kind!r}",
            where="weights",
            fix='None, "linear" or "quadratic"',
        )
    words = any(isinstance(v, str) for v in levels)
    # The alphabet puts "good" between "bad" and "poor".
    if words and not has_order:
        raise DataError(
            "the order of the levels is unknown",
            where="categories",
            fix="pass categories=[worst, ..., best]",
        )
    at = np.arange(len(levels)) if words else np.array(levels, float)
    gap = np.abs(at[:, None] - at) / max(float(np.ptp(at)), 1e-300)
    return 1 - gap ** (1 if kind == "linear" else 2)


def _kappa(table: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Kappa of counts (..., q, q); NaN where both sides always give one level."""
    p = table / table.sum((-1, -2), keepdims=True)
    chance = np.einsum("...i,ij,...j->...", p.sum(-1), w, p.sum(-2))
    with np.errstate(all="ignore"):
        value = ((p * w).sum((-1, -2)) - chance) / (1 - chance)
    # One level on both sides makes 0/0: no agreement beyond chance is shown.
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
    alike = (share * w).sum()
    by_judge = w @ share.sum(0)
    by_human = share.sum(1) @ w
    chance = float(share.sum(1) @ by_judge)
    marginal = by_judge[p.judge] + by_human[p.human] - 2 * chance
    row = (w[p.judge, p.human] - alike) * (1 - chance) - marginal * (1 - alike)
    # derivative of (alike - chance) / (1 - chance) by a row's weight
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


def _kappa_of(p: Pairs, weights: str | None, has_order: bool) -> Estimate:
    value, psi = _influence(p, _weights(weights, p.levels, has_order))
    return interval(
        value,
        psi,
        p.cluster,
        noun="kappa",
        bounds=BOTH,
        ends=BOTH,
        outcome=p.human,
        missing=p.missing,
        method="Cohen's kappa" + (f" ({weights} weights)" if weights else ""),
    )


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
    return _same(_pairs(judge, human, cluster))


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
) -> Estimate:
    """The kappa of `new` with the human less that of `old`, on rows where all three are known.

    >>> y = [1, 0, 1, 0, 1, 0, 1, 0, 1, 0]
    >>> agreement_difference(y, [1] * 10, y).value
    1.0
    """
    levels, (a, b, y) = level_numbers({"new": new, "old": old, "human": human})
    (a, b, y), group, missing = complete({"new": a, "old": b, "human": y}, cluster)
    w = np.eye(len(levels))
    pairs = [
        Pairs(levels, x.astype(int), y.astype(int), group, missing) for x in (a, b)
    ]
    # On the same rows, what moves both kappas cancels (Miller 2024).
    (value, psi), (second, less) = (_influence(p, w) for p in pairs)
    # a kappa has no range per row, so the rule of three asks for nothing more: scale 0
    return interval(
        value - second,
        psi - less,
        group,
        noun="kappa",
        method="difference in kappa",
        bounds=(-2.0, 2.0),
        ends=BOTH,
        outcome=y,
        scale=0.0,
        missing=missing,
    )


@dataclass(frozen=True, repr=False)
class Agreement(Result):
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
        rates = {
            f"right where the human gives {k}": e for k, e in self.rates.items()
        }
        return {"kappa": self.kappa, "raw agreement": self.raw} | rates

    def __str__(self) -> str:
        import pandas as pd

        counts = pd.DataFrame(
            self.confusion.astype(int), self.categories, self.categories
        )
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
            self.confusion,
            self.categories,
            title=title,
            subtitle=subtitle,
            x="human",
            y="judge",
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
    # by the human's level: a judge that always says met is right on all that are met
    places = {i: np.flatnonzero(p.human == i) for i in np.unique(p.human)}
    rates = {
        p.levels[i]: mean(
            p.judge[rows] == i,
            cluster=None if p.cluster is None else p.cluster[rows],
        )
        for i, rows in places.items()
    }
    raw, share = _same(p), p.table.sum(0) / max(len(p.human), 1)
    top, note = float(share.max(initial=0.0)), ""
    if raw.n and not raw.low > top:
        # chance agreement is high when one level is common
        common = p.levels[int(share.argmax())]
        note = (
            f"Always answering {common!r} would agree in {format_number(top)}: "
            "raw agreement is not shown to be better."
        )
    return Agreement(
        p.levels,
        p.table,
        _kappa_of(p, weights, categories is not None),
        raw,
        rates,
        top,
        note,
    )


def _by_regression(f: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray]:
    """The mean label of all rows by regression on the verdict, and the influence (n,) of each row.

    For pass and fail this is post-stratification, for scores PPI++ (Angelopoulos et al. 2023). An
    unknown verdict is a level of its own.
    """
    has, silent, n = ~np.isnan(y), np.isnan(f), len(f)
    columns = [np.ones(n), np.nan_to_num(f)]
    # an unknown verdict is no "unmet": it has a mean label of its own
    if silent.any():
        columns.append(silent * 1.0)
    design = np.column_stack(columns)
    # a verdict without labels has no rate: the least squares of least norm would make one up
    if np.linalg.matrix_rank(design[has]) < np.linalg.matrix_rank(design):
        return math.nan, np.zeros(n)
    fit = design @ np.linalg.lstsq(design[has], y[has], rcond=None)[0]
    # each labelled row stands for n / m rows
    m = int(has.sum())
    rest = np.where(has, np.nan_to_num(y) - fit, 0.0) * n / m
    value = float((fit.sum() + rest.sum()) / n)
    # a fit passes nearer to its own rows than to new ones
    stretch = math.sqrt(m / max(m - design.shape[1], 1))
    drift = rest.sum() / m
    psi = fit - fit.mean() + stretch * np.where(has, rest - drift, 0.0)
    return value, psi / n


def _rogan_gladen(f: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray]:
    """The judge's rate on rows without labels, its errors from the labels (Rogan & Gladen 1978)."""
    bare, one, two = np.isnan(y), y == 1, y == 0
    p = f[bare].mean()
    q1 = f[one].mean()
    q0 = 1 - f[two].mean()
    gain = q1 + q0 - 1
    if not gain > 0:  # no better than chance
        return math.nan, f
    value = (p + q0 - 1) / gain
    psi = np.where(bare, f - p, 0) / bare.sum()
    psi -= value * np.where(one, f - q1, 0) / one.sum()
    psi += (1 - value) * np.where(two, 1 - f - q0, 0) / two.sum()
    # Sampling errors can carry the rate past 0 or 1.
    return float(np.clip(value, 0, 1)), psi / gain


@takes_table("judge", "human", "cluster")
def label_mean(
    judge: Any, human: Any, *, design: str, cluster: Any = None
) -> Estimate:
    """The mean label that people would give to all rows, from many verdicts and a few labels.

    judge : (n,) verdicts or scores in [0, 1], None where unknown. human : (n,) labels in [0, 1],
    None where there is none. design : "random" when the labels are a random sample of these rows or
    clusters; "shifted" when the labelled rows come from elsewhere (pass and fail only). With fewer
    than five labelled clusters of an outcome, the labels are used alone ("random"), or there is no
    estimate ("shifted").

    >>> judge = [1] * 400 + [0] * 600 + [1] * 180 + [0] * 20 + [0] * 140 + [1] * 60
    >>> human = [None] * 1000 + [1] * 200 + [0] * 200
    >>> print(label_mean(judge, human, design="shifted"))
    .167 [.08, .30], n=1400
    """
    f, y = numbers(judge, "judge", 0, 1), numbers(human, "human", 0, 1)
    if len(f) != len(y) or design not in ("random", "shifted"):
        raise DataError(
            f"{len(f)} verdicts, {len(y)} labels, design {design!r}",
            where="judge, human, design",
            fix='"random": a random sample of these rows; "shifted": from elsewhere',
        )
    missing = 0
    if design == "shifted":
        # here a row without a verdict says nothing; a row without a label is what is estimated
        columns = {"judge": f, "human": np.nan_to_num(y, nan=2)}
        (f, y), cluster, missing = complete(columns, cluster)
        y[y == 2] = np.nan
    group, has = codes(cluster, len(f)), ~np.isnan(y)
    labels = y[has]
    is_rate = binary(labels)
    if design == "shifted" and (has.all() or not is_rate):
        raise DataError(
            "the shifted design corrects a pass rate",
            where="human",
            fix='pass and fail, and rows without labels; or design="random"',
        )
    of_labels = None if group is None else group[has]
    clusters = len(labels) if of_labels is None else len(np.unique(of_labels))
    rare = too_rare(labels, of_labels) if is_rate else ""
    # five labels of one outcome cannot say how often the judge errs on it
    if rare and design == "random":
        alone = mean(labels, cluster=of_labels)
        return replace(alone, method="labels alone", note=f"labels alone: {rare}")
    method = f"corrected by {len(labels)} labels"
    if rare or clusters < RARE:
        note = rare or f"labels lie in {clusters} clusters, {RARE} are needed"
        return Estimate(
            math.nan, n=len(f), method=method, note=note, missing=missing
        )
    rate_of = _by_regression if design == "random" else _rogan_gladen
    value, psi = rate_of(f, y)
    e = interval(
        value, psi, group, method=method, bounds=UNIT, ends=UNIT, missing=missing
    )
    if math.isnan(value) and design == "random":
        return replace(
            e,
            note="a verdict (or no verdict) occurs of which no row has a label: label some",
        )
    return e


@takes_table("judge", "human", "policy", "cluster")
def policy_difference(
    judge: Any, human: Any, policy: Any, *, new: Any, old: Any, cluster: Any
) -> Estimate:
    """The mean label of policy `new` less that of `old`, each corrected by its own labels.

    policy : (n,) who wrote the row's answer. cluster : (n,) the prompt: policies are paired by it.
    Labels are a random sample of the rows of each policy, at least five. Other arguments as in
    `label_mean`.

    >>> y, policy, prompt = [1, 0] * 20, ["new"] * 20 + ["old"] * 20, list(range(20)) * 2
    >>> policy_difference(y, y, policy, new="new", old="old", cluster=prompt).value
    0.0
    """
    f, y = numbers(judge, "judge", 0, 1), numbers(human, "human", 0, 1)
    names = np.asarray(policy, dtype=object)
    if not len(f) == len(y) == len(names):
        raise DataError("columns differ in length", where="judge, human, policy")
    group, value, psi = codes(cluster, len(f)), 0.0, np.zeros(len(f))
    for name, sign in ((new, 1), (old, -1)):
        here = names == name
        if np.isfinite(y[here]).sum() < RARE:
            raise DataError(
                f"policy {name!r} has fewer than {RARE} labels", where="human"
            )
        # Each policy by its own labels: a judge may be kinder to one of them.
        rate, moves = _by_regression(f[here], y[here])
        value += sign * rate
        psi[here] = sign * moves
    rows = (names == new) | (names == old)
    group = np.unique(group[rows], return_inverse=True)[1]
    return interval(
        value,
        psi[rows],
        group,
        bounds=BOTH,
        ends=BOTH,
        method="difference corrected by labels",
        scale=1.0,
    )
