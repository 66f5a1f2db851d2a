"""A judge beside people's labels: agreement, and what people would say of all rows."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..errors import DataError
from ..plots import Figure, heatmap
from ..records import count_of
from .columns import (
    Column,
    Floats,
    Ints,
    Level,
    check_choice,
    complete_rows,
    level_numbers,
    read_clusters,
    read_numbers,
    takes_table,
)
from .estimate import (
    MIN_RARE_CLUSTERS,
    SIGNED_RANGE,
    UNIT_RANGE,
    Estimate,
    PrintedResult,
    estimate_from_influence,
    format_number,
    rare_outcome_note,
)
from .means import is_binary, mean


@dataclass(frozen=True)
class LabelPairs:
    """Two columns as level numbers (n,), their clusters, and how many rows are unknown."""

    levels: list[Level]
    judge: Ints
    human: Ints
    cluster: Ints | None
    missing: int

    @property
    def table(self) -> Floats:
        """Counts (q, q): rows the judge, columns the human."""
        q, cell = len(self.levels), self.judge * len(self.levels) + self.human
        return np.bincount(cell, minlength=q * q).reshape(q, q).astype(float)


def _read_pairs(
    columns: Mapping[str, Column],
    cluster: Column | None,
    categories: Sequence[Level] | None = None,
) -> list[LabelPairs]:
    """Each column but the last paired with the last, the human's, on rows where all are known."""
    levels, numbers = level_numbers(columns, categories)
    complete, group, missing = complete_rows(numbers, cluster)
    *judges, human = complete.astype(int)
    return [LabelPairs(levels, judge, human, group, missing) for judge in judges]


def _at_least(values: Column, threshold: float, name: str) -> NDArray[np.object_]:
    """1 where a number reaches the threshold, 0 where it does not, None where unknown."""
    x = read_numbers(values, name)
    # NaN >= threshold is False, which would turn unknown into unmet.
    return np.where(np.isnan(x), np.array(None), x >= threshold)


def _agreement_weights(
    kind: str | None, levels: list[Level], has_order: bool
) -> Floats:
    """How far each two levels agree (q, q): 1 or 0, or falling with their distance."""
    check_choice("weights", kind, (None, "linear", "quadratic"))
    if kind is None:
        return np.eye(len(levels))
    at = np.arange(len(levels), dtype=float)
    if not any(isinstance(v, str) for v in levels):
        at = np.array(levels, float)
    # The alphabet puts "good" between "bad" and "poor".
    elif not has_order:
        raise DataError(
            "the order of the levels is unknown",
            where="categories",
            fix="pass categories=[worst, ..., best]",
        )
    gap = np.abs(at[:, None] - at) / max(float(np.ptp(at)), 1e-300)
    return 1 - gap ** {"linear": 1, "quadratic": 2}[kind]


def _kappa_of_counts(table: Floats, w: Floats) -> Floats:
    """Kappa of counts (..., q, q); NaN where both sides always give one level."""
    with np.errstate(all="ignore"):
        p = table / table.sum((-1, -2), keepdims=True)
        chance = np.einsum("...i,ij,...j->...", p.sum(-1), w, p.sum(-2))
        value = ((p * w).sum((-1, -2)) - chance) / (1 - chance)
    # One level on both sides makes 0/0: no agreement beyond chance is shown.
    return np.where(chance < 1 - 1e-12, value, math.nan)


def _kappa_influence(p: LabelPairs, w: Floats) -> tuple[float, Floats]:
    """Kappa, and the influence (n,) of each row on it (Fleiss, Cohen & Everitt 1969)."""
    value, n = float(_kappa_of_counts(p.table, w)), max(len(p.judge), 1)
    share = p.table / n
    agreement = (share * w).sum()
    by_judge = w @ share.sum(0)
    by_human = share.sum(1) @ w
    chance = float(share.sum(1) @ by_judge)
    marginal = by_judge[p.judge] + by_human[p.human] - 2 * chance
    row = (w[p.judge, p.human] - agreement) * (1 - chance)
    # derivative of (agreement - chance) / (1 - chance) by a row's weight
    psi = (row - marginal * (1 - agreement)) / max(1 - chance, 1e-12) ** 2 / n
    if p.cluster is None or math.isnan(value):
        return value, psi
    return value, psi * _jackknife_stretch(p, p.cluster, w, psi)


def _jackknife_stretch(
    p: LabelPairs, cluster: Ints, w: Floats, psi: Floats
) -> float:
    """How much more it does to leave out a cluster than the influences say; at least 1.

    With few clusters the first-order influence is too small.
    """
    q, c = len(w), int(cluster.max()) + 1
    cell = (cluster * q + p.judge) * q + p.human
    by_cluster = np.bincount(cell, minlength=c * q * q).reshape(c, q, q)
    left_out = _kappa_of_counts(p.table - by_cluster, w)
    total = np.bincount(cluster, psi)
    if not np.isfinite(left_out).all() or total @ total == 0:
        return 1.0
    moves = (left_out - left_out.mean()) * (c - 1) / c
    return max(1.0, math.sqrt(float(moves @ moves) / float(total @ total)))


@takes_table("judge", "human", "cluster")
def kappa(
    judge: Column,
    human: Column,
    *,
    cluster: Column | None = None,
    weights: str | None = None,
    categories: Sequence[Level] | None = None,
) -> Estimate:
    """Cohen's kappa: (agreement - chance agreement) / (1 - chance agreement).

    judge, human : (n,) verdicts or levels. weights : "linear" or "quadratic" for levels with an
    order. There is no interval when a level of the human lies in fewer than five clusters. Source:
    Cohen 1960, 1968.

    >>> round(kappa([1, 1, 0, 0, 1, 0], [1, 1, 0, 0, 0, 0]).value, 3)
    0.667
    """
    (p,) = _read_pairs({"judge": judge, "human": human}, cluster, categories)
    w = _agreement_weights(weights, p.levels, categories is not None)
    value, psi = _kappa_influence(p, w)
    method = "Cohen's kappa"
    if weights:
        method += f" ({weights} weights)"
    return estimate_from_influence(
        value,
        psi,
        p.cluster,
        noun="kappa",
        bounds=SIGNED_RANGE,
        ends=SIGNED_RANGE,
        outcome=p.human,
        missing=p.missing,
        method=method,
    )


@takes_table("judge", "human", "cluster")
def accuracy(
    judge: Column, human: Column, *, cluster: Column | None = None
) -> Estimate:
    """The share of rows in which judge and human give the same verdict.

    >>> accuracy(["yes", "no", "no"], ["yes", "no", "yes"]).value
    0.6666666666666666
    """
    return agree(judge, human, cluster=cluster).raw


@takes_table("new", "old", "human", "cluster")
def agreement_difference(
    new: Column, old: Column, human: Column, *, cluster: Column | None = None
) -> Estimate:
    """The kappa of `new` with the human less that of `old`, on rows where all three are known.

    >>> y = [1, 0, 1, 0, 1, 0, 1, 0, 1, 0]
    >>> agreement_difference(y, [1] * 10, y).value
    1.0
    """
    # On the same rows, what moves both kappas cancels (Miller 2024).
    p, q = _read_pairs({"new": new, "old": old, "human": human}, cluster)
    value, psi = _kappa_influence(p, np.eye(len(p.levels)))
    second, less = _kappa_influence(q, np.eye(len(p.levels)))
    # a kappa has no range per row, so the rule of three asks for nothing more: scale 0
    return estimate_from_influence(
        value - second,
        psi - less,
        p.cluster,
        noun="kappa",
        method="difference in kappa",
        bounds=(-2.0, 2.0),
        ends=SIGNED_RANGE,
        outcome=p.human,
        scale=0.0,
        missing=p.missing,
    )


@dataclass(frozen=True, repr=False)
class Agreement(PrintedResult):
    """A judge against people.

    confusion : counts (q, q), rows the judge. kappa, raw : estimates. rates : for each level of the
    human, the share on which the judge gives the same. majority : raw agreement of always giving
    the commonest level.
    """

    categories: list[Level]
    confusion: Floats
    kappa: Estimate
    raw: Estimate
    rates: dict[Level, Estimate]
    majority: float
    note: str

    @property
    def estimate(self) -> Estimate:
        """Kappa: what a forest of several judges shows."""
        return self.kappa

    @property
    def sentence(self) -> str:
        """Whether the judge agrees with people more than chance would; the interval of kappa decides."""
        if self.kappa.low > 0:
            return (
                f"The judge agrees with people beyond chance: kappa {self.kappa}."
            )
        return (
            f"Agreement beyond chance is not shown: kappa {self.kappa}"
            f"{self.kappa.note and f' ({self.kappa.note})'}."
        )

    def measures(self) -> dict[str, Estimate]:
        """Each measure by its name."""
        return {
            "kappa": self.kappa,
            "raw agreement": self.raw,
            **{
                f"right where the human gives {k}": e for k, e in self.rates.items()
            },
        }

    def __str__(self) -> str:
        table = (
            pd.DataFrame(
                self.confusion.astype(int), self.categories, self.categories
            )
            .rename_axis("judge \\ human")
            .to_string()
        )
        lines = [f"{k:<32}{e}" for k, e in self.measures().items()]
        return "\n".join([*lines, "", table, self.note]).rstrip()

    def plot(self, *, title: str = "") -> Figure:
        """The confusion table as a heat map (plotly); its title is the sentence."""
        return heatmap(
            self.confusion,
            self.categories,
            title=title or self.sentence,
            subtitle=self.note,
            x="human",
            y="judge",
        )


@takes_table("judge", "human", "cluster")
def agree(
    judge: Column,
    human: Column,
    *,
    cluster: Column | None = None,
    categories: Sequence[Level] | None = None,
    weights: str | None = None,
    threshold: float | None = None,
) -> Agreement:
    """The agreement of a judge with people in full; unknown rows are left out and counted.

    threshold : numbers at least this large are 1, others 0. Other arguments as in `kappa`.

    >>> agree([1, 1, 0, 0, 1, 0], [1, 1, 0, 0, 0, 0]).majority
    0.6666666666666666
    """
    if threshold is not None:
        judge = _at_least(judge, threshold, "judge")
        human = _at_least(human, threshold, "human")
    (p,) = _read_pairs({"judge": judge, "human": human}, cluster, categories)
    # by the human's level: a judge that always says met is right on all that are met
    rates = {
        p.levels[i]: mean(p.judge == i, cluster=p.cluster, weights=p.human == i)
        for i in np.unique(p.human)
    }
    raw = replace(
        mean(p.judge == p.human, cluster=p.cluster),
        missing=p.missing,
        method="raw agreement",
        noun="agreement",
    )
    share = p.table.sum(0) / max(len(p.human), 1)
    majority, note = float(share.max(initial=0.0)), ""
    if raw.n and not raw.low > majority:
        # chance agreement is high when one level is common
        note = (
            f"Always answering {p.levels[int(share.argmax())]!r} would agree in "
            f"{format_number(majority)}: raw agreement is not shown to be better."
        )
    return Agreement(
        p.levels,
        p.table,
        kappa(
            judge, human, cluster=cluster, weights=weights, categories=categories
        ),
        raw,
        rates,
        majority,
        note,
    )


def _regress_on_verdict(f: Floats, y: Floats) -> tuple[float, Floats]:
    """The mean label of all rows by regression on the verdict, and the influence (n,) of each row.

    For pass and fail this is post-stratification, for scores PPI++ (Angelopoulos et al. 2023). An
    unknown verdict is a level of its own.
    """
    has_label, n = ~np.isnan(y), len(f)
    columns = [np.ones(n), np.nan_to_num(f)]
    # an unknown verdict is not an "unmet": it has a mean label of its own
    if np.isnan(f).any():
        columns.append(np.isnan(f).astype(float))
    design = np.column_stack(columns)
    x, labels = design[has_label], y[has_label]
    # a verdict without labels has no rate: the least squares of least norm would make one up
    if np.linalg.matrix_rank(x) < np.linalg.matrix_rank(design):
        return math.nan, np.zeros(n)
    fit = design @ np.linalg.lstsq(x, labels, rcond=None)[0]
    rest, m = np.zeros(n), len(labels)
    # each labelled row stands for n / m rows
    rest[has_label] = (labels - fit[has_label]) * n / m
    value = float((fit + rest).mean())
    # a fit passes nearer to its own rows than to new ones
    stretch = math.sqrt(m / max(m - design.shape[1], 1))
    rest[has_label] -= rest.sum() / m
    return value, (fit - fit.mean() + stretch * rest) / n


def _rogan_gladen(f: Floats, y: Floats) -> tuple[float, Floats]:
    """The judge's rate on rows without labels, its errors from the labels (Rogan & Gladen 1978)."""
    bare, one, two = np.isnan(y), y == 1, y == 0
    p, q1, q0 = f[bare].mean(), f[one].mean(), 1 - f[two].mean()
    gain = q1 + q0 - 1
    # such a judge is not better than chance
    if not gain > 0:
        return math.nan, f
    value = (p + q0 - 1) / gain
    psi = (
        np.where(bare, f - p, 0) / bare.sum()
        - value * np.where(one, f - q1, 0) / one.sum()
        + (1 - value) * np.where(two, 1 - f - q0, 0) / two.sum()
    )
    # Sampling errors can carry the rate past 0 or 1.
    return float(np.clip(value, 0, 1)), psi / gain


# design of the labels -> the corrected mean of (verdicts, labels), and the influence of each row
CORRECTIONS = {"random": _regress_on_verdict, "shifted": _rogan_gladen}


@takes_table("judge", "human", "cluster")
def label_mean(
    judge: Column, human: Column, *, design: str, cluster: Column | None = None
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
    check_choice("design", design, tuple(CORRECTIONS))
    (f, y), group, missing = _read_labels(judge, human, design, cluster)
    has_label = ~np.isnan(y)
    labels, of_labels = y[has_label], read_clusters(group, has_label)
    alone, is_rate = mean(labels, cluster=of_labels), is_binary(labels)
    if design == "shifted" and (has_label.all() or not is_rate):
        raise DataError(
            "the shifted design corrects a pass rate",
            where="human",
            fix='pass and fail, and rows without labels; or design="random" (--design random)',
        )
    note = ""
    if is_rate:
        note = rare_outcome_note(labels, of_labels)
    elif alone.units < MIN_RARE_CLUSTERS:
        note = f"labels lie in {count_of(alone.units, 'cluster')}, {MIN_RARE_CLUSTERS} are needed"
    # five labels of one outcome cannot say how often the judge errs on it
    if note and is_rate and design == "random":
        return replace(alone, method="labels alone", note=f"labels alone: {note}")
    method = f"corrected by {count_of(len(labels), 'label')}"
    if note:
        return Estimate(
            math.nan, n=len(f), method=method, note=note, missing=missing
        )
    value, psi = CORRECTIONS[design](f, y)
    e = estimate_from_influence(
        value,
        psi,
        group,
        method=method,
        bounds=UNIT_RANGE,
        ends=UNIT_RANGE,
        missing=missing,
    )
    if math.isnan(value) and design == "random":
        return replace(
            e,
            note="a verdict (or no verdict) occurs of which no row has a label: label some",
        )
    return e


def _read_labels(
    judge: Column, human: Column, design: str, cluster: Column | None
) -> tuple[Floats, Ints | None, int]:
    """Verdicts and labels (2, n), NaN where unknown, their clusters, and how many rows are left out."""
    columns = {
        "judge": read_numbers(judge, "judge", 0, 1),
        "human": read_numbers(human, "human", 0, 1),
    }
    # A row without a label is what is estimated, so it stays. With labels from elsewhere, a row
    # without a verdict says nothing.
    needed: dict[str, list[str]] = {"random": [], "shifted": ["judge"]}
    return complete_rows(columns, cluster, needed[design])


@takes_table("judge", "human", "policy", "cluster")
def policy_difference(
    judge: Column,
    human: Column,
    policy: Column,
    *,
    new: object,
    old: object,
    cluster: Column,
) -> Estimate:
    """The mean label of policy `new` less that of `old`, each corrected by its own labels.

    policy : (n,) who wrote the row's answer. cluster : (n,) the prompt: policies are paired by it.
    Labels are a random sample of the rows of each policy, at least five. Other arguments as in
    `label_mean`.

    >>> y, policy, prompt = [1, 0] * 20, ["new"] * 20 + ["old"] * 20, list(range(20)) * 2
    >>> policy_difference(y, y, policy, new="new", old="old", cluster=prompt).value
    0.0
    """
    f, y = read_numbers(judge, "judge", 0, 1), read_numbers(human, "human", 0, 1)
    names = np.asarray(policy, dtype=object)
    if not len(f) == len(y) == len(names):
        raise DataError("columns differ in length", where="judge, human, policy")
    value, psi = 0.0, np.zeros(len(f))
    for name, sign in ((new, 1), (old, -1)):
        rows = names == name
        if np.isfinite(y[rows]).sum() < MIN_RARE_CLUSTERS:
            raise DataError(
                f"policy {name!r} has fewer than {MIN_RARE_CLUSTERS} labels",
                where="human",
            )
        # Each policy by its own labels: a judge may be kinder to one of them.
        rate, influence = _regress_on_verdict(f[rows], y[rows])
        value += sign * rate
        psi[rows] = sign * influence
    rows = (names == new) | (names == old)
    return estimate_from_influence(
        value,
        psi[rows],
        read_clusters(cluster, rows),
        bounds=SIGNED_RANGE,
        ends=SIGNED_RANGE,
        method="difference corrected by labels",
        scale=1.0,
    )
