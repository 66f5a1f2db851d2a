"""Generators of clustered rows for coverage tables: clusters of 2 to 16 rows, correlation within a
cluster, any margin.

Every row has a standard normal score, correlated `icc` with the others of its cluster (a Gaussian
copula); what is derived from it keeps its margin exactly, so the truth of every statistic is known
or found once from a huge sample of independent rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from scipy import special

from kit import calibration, stats
from kit.stats.estimate import Estimate

HUGE = 400_000


@dataclass(frozen=True)
class Rows:
    """One draw: cluster numbers (n,), and a way to draw a correlated uniform column (n,) on them."""

    rng: np.random.Generator
    cluster: np.ndarray
    clusters: int
    icc: float
    whole: bool = False  # a cluster is all alike, with chance `icc`, or rows are independent

    def uniform(self) -> np.ndarray:
        """A column of uniforms, correlated within clusters."""
        if self.whole:
            alike = (self.rng.random(self.clusters) < self.icc)[self.cluster]
            common = self.rng.random(self.clusters)[self.cluster]
            return np.where(alike, common, self.rng.random(len(self.cluster)))
        common = self.rng.normal(size=self.clusters)[self.cluster]
        own = self.rng.normal(size=len(self.cluster))
        return special.ndtr(np.sqrt(self.icc) * common + np.sqrt(1 - self.icc) * own)


def rows(
    rng: np.random.Generator,
    clusters: int,
    icc: float,
    *,
    giant: bool = False,
    one: bool = False,
    whole: bool = False,
) -> Rows:
    """Clusters of 2 to 16 rows each; giant : the first of 60; one : a row each; whole : of 1 or of
    16, and all alike or not at all."""
    size = np.ones(clusters, int) if one else rng.integers(2, 17, clusters)
    if whole:
        size = np.where(np.arange(clusters) % 2, 16, 1)
    if giant:
        size[0] = 60
    return Rows(rng, np.repeat(np.arange(clusters), size), clusters, icc, whole)


def alone(seed: int = 0, n: int = HUGE) -> Rows:
    """Very many independent rows, for a truth."""
    return Rows(np.random.default_rng(seed), np.arange(n), n, 0.0)


Case = Callable[[Rows], Estimate]


def judged(r: Rows, human: float, right: float) -> tuple[np.ndarray, np.ndarray]:
    """Judge and human, 0 / 1; the judge is right in `right` of the rows, whatever the human says."""
    y, good = r.uniform() < human, r.uniform() < right
    return np.where(good, y, ~y).astype(int), y.astype(int)


def accuracy(human: float, right: float) -> tuple[Case, float]:
    """Raw agreement."""
    return lambda r: stats.accuracy(*judged(r, human, right), cluster=r.cluster), right


def kappa(human: float, right: float) -> tuple[Case, float]:
    """Cohen's kappa."""
    met = human * right + (1 - human) * (1 - right)
    chance = met * human + (1 - met) * (1 - human)
    truth = (right - chance) / (1 - chance)
    return lambda r: stats.kappa(*judged(r, human, right), cluster=r.cluster), truth


def rates(new: float, old: float) -> tuple[Case, float]:
    """Paired difference of two rates."""

    def one(r: Rows) -> Estimate:
        return stats.difference(r.uniform() < new, r.uniform() < old, cluster=r.cluster)

    return one, new - old


def mean(rate: float) -> tuple[Case, float]:
    """A share."""
    return lambda r: stats.mean(r.uniform() < rate, cluster=r.cluster), rate


def stated(r: Rows, gap: float = 0.1, values: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Confidences from .5 to 1 (or that many values) and outcomes that are right `gap` less often
    than said.
    """
    u = r.uniform()
    conf = 0.5 + 0.5 * (np.floor(u * values) / max(values - 1, 1) if values else u)
    return conf, (r.uniform() < conf - gap).astype(int)


def aurc(gap: float = 0.1) -> tuple[Case, float]:
    """Area under the risk-coverage curve."""
    truth = calibration.risk_coverage(*stated(alone(), gap), interval=False).aurc.value
    return lambda r: calibration.risk_coverage(*stated(r, gap), cluster=r.cluster).aurc, truth


def brier_change(shrink: float = 0.5) -> tuple[Case, float]:
    """Brier score after recalibration minus before, on the same rows."""

    def both(r: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        conf, y = stated(r, 0.15)
        return conf, 0.6 + shrink * (conf - 0.75), y

    conf, other, y = both(alone())
    truth = float(((other - y) ** 2 - (conf - y) ** 2).mean())

    def one(r: Rows) -> Estimate:
        conf, other, y = both(r)
        return calibration.compare(
            (conf, y), (other, y), paired=True, cluster=r.cluster, n_boot=0
        ).brier

    return one, truth


def ppi(rate: float, labelled: int) -> tuple[Case, float]:
    """A rate from 100 judged clusters, the first `labelled` of them labelled."""

    def one(r: Rows) -> Estimate:
        f, y = judged(r, rate, 0.9)
        return stats.ppi(f, np.where(r.cluster < labelled, y, np.nan), cluster=r.cluster)

    return one, rate


@cache
def _ece_truth(gap: float, values: int, convention: int) -> float:
    conf, y = stated(alone(1), gap, values)
    bins: int | str = convention if convention else "distinct"
    return calibration.ece(conf, y, bins=bins, n_boot=0).value


def ece_error(gap: float, values: int = 0) -> tuple[Case, float]:
    """Debiased error less the truth of the binning that "auto" chose: the truth of the case is 0."""

    def one(r: Rows) -> Estimate:
        conf, y = stated(r, gap, values)
        e = calibration.ece(conf, y, cluster=r.cluster, n_boot=200)
        per_value = e.convention.startswith("one bin per")
        truth = _ece_truth(gap, values, 0 if per_value else int(e.convention.split()[0]))
        d = e.debiased
        return Estimate(d.value - truth, d.low - truth, d.high - truth, d.n)

    return one, 0.0


def known(case: Case, n: int = HUGE) -> tuple[Case, float]:
    """A statistic whose truth is that of very many rows."""
    return case, case(alone(n=n)).value


def rare(r: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Judge and human of a human class of 3 %."""
    return judged(r, 0.03, 0.85)


def of_raters(r: Rows) -> Estimate:
    """Krippendorff's alpha of the two."""
    return stats.alpha(np.column_stack(rare(r)), cluster=r.cluster)


def unsure(r: Rows) -> Estimate:
    """P(right | confidence < .6), a fifth of the rows."""
    return calibration.underconfidence(*stated(r), cluster=r.cluster, below=0.6)


def sure(r: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Confidences that say nothing of errors of 3 %."""
    return 0.5 + 0.5 * r.uniform(), (r.uniform() < 0.97).astype(int)


def rare_errors() -> tuple[Case, float]:
    """AURC where 3 % are wrong."""
    return lambda r: calibration.risk_coverage(*sure(r), cluster=r.cluster).aurc, 0.03


def knowing(r: Rows, rate: float = 0.97) -> tuple[np.ndarray, np.ndarray]:
    """Confidences of two digits that know a little of the errors, which are rare."""
    z, own = special.ndtri(r.uniform()), special.ndtri(r.uniform())
    conf = np.clip(np.round(special.ndtr(0.5 * z + 1.1 * special.ndtri(rate)), 2), 0.01, 0.99)
    return conf, (own < 0.3 * z + special.ndtri(rate)).astype(int)


def brier(r: Rows) -> Estimate:
    """Brier score where few are wrong."""
    return calibration.brier(*knowing(r), cluster=r.cluster).value


def less_constant(r: Rows) -> Estimate:
    """Brier score less that of the best constant where few are wrong."""
    return calibration.against_constant(*knowing(r), cluster=r.cluster)


def brier_paired(r: Rows) -> Estimate:
    """Brier difference, paired, where few are wrong."""
    conf, y = knowing(r)
    both = (conf, y), (0.8 * conf, y)
    return calibration.compare(*both, paired=True, cluster=r.cluster, n_boot=0).brier


def three(r: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A human who says yes in 90 %, a judge right in 88 %, another in 80 %."""
    y, good, other = r.uniform() < 0.9, r.uniform() < 0.88, r.uniform() < 0.8
    return tuple((y == w).astype(int) for w in (True, good, other))  # type: ignore[return-value]


def kappa_change(r: Rows) -> Estimate:
    """Kappa of one judge less that of another."""
    y, new, old = three(r)
    return stats.agreement_difference(new, old, y, cluster=r.cluster)


def levels(r: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Judge and human on five levels; the judge is wrong in 5 %, by any other level."""
    y, off = np.floor(5 * r.uniform()).astype(int), 1 + np.floor(4 * r.uniform()).astype(int)
    return np.where(r.uniform() < 0.95, y, (y + off) % 5), y


def gross(r: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Judge and human on five levels; the judge is a level off in a tenth, and at the other end of
    the scale in 2 %.
    """
    y, fault = np.floor(5 * r.uniform()).astype(int), r.uniform()
    far = np.where(y == 2, 0, 4 - y)
    near = np.clip(y + np.where(r.uniform() < 0.5, -1, 1), 0, 4)
    return np.where(fault < 0.02, far, np.where(fault < 0.12, near, y)), y


FIVE = {"weights": "quadratic", "categories": range(5)}


def of_gross(name: str, r: Rows) -> Estimate:
    """A measure of it with quadratic weights."""
    return getattr(stats, name)(*gross(r), cluster=r.cluster, **FIVE)


GIANT = ", one of 60"  # ends the name of a case with one giant cluster
WHOLE = ", all alike"  # ends the name of a case of prompts of 1 or 16 rows, alike as a whole
ALONE = ", rows alone"  # ends the name of a case of independent rows
RARE: dict[str, Case] = {
    "Brier, 3 % wrong": brier,
    "less a constant, 3 % wrong": less_constant,
    "Brier diff., 3 % wrong": brier_paired,
    "alpha of three": lambda r: stats.alpha(np.column_stack(three(r)), cluster=r.cluster),
    "kappa of 90 %": lambda r: stats.kappa(*three(r)[:2], cluster=r.cluster),
    "difference of kappas": kappa_change,
    **{
        f"quadratic {name}, gross errors": partial(of_gross, name) for name in ("kappa", "accuracy")
    },
}
HARD: dict[str, Callable[[], tuple[Case, float]]] = {
    "alpha, a class of 3 %": lambda: known(of_raters),
    "kappa, a class of 3 %": lambda: known(lambda r: stats.kappa(*rare(r), cluster=r.cluster)),
    "balanced, a class of 3 %": lambda: known(
        lambda r: stats.balanced_accuracy(*rare(r), cluster=r.cluster)
    ),
    "AURC, 3 % wrong": rare_errors,
    "P(right | unsure)": lambda: known(unsure),
    "macro mean .03": lambda: (
        lambda r: stats.macro_mean(r.uniform() < 0.03, cluster=r.cluster),
        0.03,
    ),
}


ALIKE: dict[str, Case] = {
    "accuracy .95": lambda r: stats.accuracy(*judged(r, 0.05, 0.95), cluster=r.cluster),
    "kappa, labels of 50 %": lambda r: stats.kappa(*judged(r, 0.5, 0.95), cluster=r.cluster),
    "kappa, labels of 5 %": lambda r: stats.kappa(*judged(r, 0.05, 0.95), cluster=r.cluster),
    "AC1, labels of 5 %": lambda r: stats.ac1(*judged(r, 0.05, 0.95), cluster=r.cluster),
    "MCC, labels of 50 %": lambda r: stats.mcc(*judged(r, 0.5, 0.95), cluster=r.cluster),
    "quadratic accuracy": lambda r: stats.accuracy(*levels(r), cluster=r.cluster, **FIVE),
    "AC2": lambda r: stats.ac1(*levels(r), cluster=r.cluster, **FIVE),
    "mean .05": lambda r: stats.mean(r.uniform() < 0.05, cluster=r.cluster),
}


def tenth(r: Rows) -> np.ndarray:
    """The rows (n,) of the tenth of the prompts that carries an effect."""
    return (r.rng.random(r.clusters) < 0.1)[r.cluster]


def follow(r: Rows, solved: np.ndarray) -> np.ndarray:
    """Rows as their prompt is, but for a twentieth."""
    return np.where(r.rng.random(len(solved)) < 0.95, solved, ~solved).astype(float)


def gaining(r: Rows) -> tuple[np.ndarray, np.ndarray]:
    """New and old, 0 / 1: both solve most prompts, the new one alone a tenth; .09 in the mean."""
    both = (r.rng.random(r.clusters) < 2 / 3)[r.cluster]
    new = tenth(r)
    return follow(r, both | new), follow(r, both & ~new)


def policies(r: Rows) -> Estimate:
    """The two corrected by labels of half of the prompts."""
    y, group = np.concatenate(gaining(r)), np.tile(r.cluster, 2)
    f = np.where(r.rng.random(len(y)) < 0.9, y, 1 - y)
    human = np.where(group % 2, y, np.nan)
    names = np.repeat(["new", "old"], len(r.cluster))
    return stats.policy_difference(f, human, names, new="new", old="old", cluster=group)


def scored(r: Rows) -> Estimate:
    """Scores between -.1 and .9, by .3 higher in a tenth of the prompts."""
    old, noise = r.uniform() / 2, r.rng.uniform(-0.1, 0.1, len(r.cluster))
    new = old + noise + 0.3 * tenth(r)
    return stats.difference(new, old, cluster=r.cluster, bounds=(-0.1, 0.9))


def stars(r: Rows) -> Estimate:
    """Stars of 0 to 1, at 1 but for a tenth of the prompts; half of the prompts labelled."""
    u, v = r.rng.random((2, len(r.cluster)))
    y = np.where(tenth(r), np.floor(3 * u), 4 - np.floor(1.3 * u)) / 4
    f = np.clip(y + 0.25 * np.sign(v - 0.5) * (abs(v - 0.5) > 0.35), 0, 1)
    return stats.ppi(f, np.where(r.cluster % 2, y, np.nan), cluster=r.cluster)


def versions(r: Rows) -> Estimate:
    """Two versions of a judge, right in .9 and alike but for a tenth of the rows; on a tenth of the
    prompts the old one is right in .4.
    """
    y, new = r.uniform() < 0.6, r.rng.random(len(r.cluster)) < 0.9
    old = np.where(tenth(r), r.rng.random(len(y)) < 0.4, new)
    old = np.where(r.rng.random(len(y)) < 0.1, r.rng.random(len(y)) < 0.9, old)
    said = (np.where(right, y, ~y).astype(int) for right in (new, old))
    return stats.agreement_difference(*said, y.astype(int), cluster=r.cluster, measure="accuracy")


def learning(r: Rows) -> Estimate:
    """Four steps, at the last two of which a tenth of the prompts is solved; per 2 steps."""
    step, learns = np.tile(np.arange(4.0), len(r.cluster)), np.repeat(tenth(r), 4)
    value = follow(r, learns & (step > 1))
    return stats.trend(step, value, cluster=np.repeat(r.cluster, 4), per=2.0)


def mended(r: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A new confidence, an old one and the outcome: alike, but the new one knows all of a tenth."""
    y, old = (r.uniform() < 0.8).astype(int), 0.4 + 0.6 * r.uniform()
    return np.where(tenth(r), 0.1 + 0.8 * y, old + 0.02 * r.uniform() - 0.02), old, y


def score_mended(r: Rows) -> Estimate:
    """Its Brier score less that of the old one, where a prompt of the tenth was drawn: a kind that
    no prompt shows has room where the range of scores is given, and losses have no such argument.
    """
    new, old, y = mended(r)
    while not (abs(new - old) > 0.02).any():
        new, old, y = mended(r)
    return calibration.against_score(new, y, old, cluster=r.cluster)


def failing(r: Rows) -> np.ndarray:
    """0 / 1: rows pass in .95, on a tenth of the prompts in .1; .865 in the mean."""
    return (r.rng.random(len(r.cluster)) < np.where(tenth(r), 0.1, 0.95)).astype(float)


def longest(r: Rows) -> np.ndarray:
    """0 / 1: rows pass in .98, on prompts of 15 or 16 rows in half; .8698 in the mean."""
    long = np.bincount(r.cluster)[r.cluster] > 14
    return (r.uniform() < np.where(long, 0.5, 0.98)).astype(float)


def of_labels(measure: Callable[..., Estimate], r: Rows, **how: str) -> Estimate:
    """The rate of it from a judge who is right in .9, half of the prompts labelled."""
    y = failing(r)
    f = np.where(r.rng.random(len(y)) < 0.9, y, 1 - y)
    return measure(f, np.where(r.cluster % 2, y, np.nan), cluster=r.cluster, **how)


def right(measure: Callable[..., Estimate], r: Rows) -> Estimate:
    """Agreement of a judge who is right where it passes; the human says either as often."""
    human = r.rng.random(len(r.cluster)) < 0.5
    judge = np.where(failing(r) == 1, human, ~human)
    if measure is stats.alpha:
        return measure(np.column_stack([judge, human]).astype(int), cluster=r.cluster)
    return measure(judge.astype(int), human.astype(int), cluster=r.cluster)


def rubric(r: Rows) -> Estimate:
    """The mean score of an answer a prompt, all weights alike."""
    y = failing(r)
    return stats.rubric_score(y, np.ones(len(y)), answer=r.cluster).estimate


TENTH = ", a tenth of prompts"  # ends the name of a case whose effect they carry
FAILING: dict[str, tuple[Case, float]] = {
    "mean": (lambda r: stats.mean(failing(r), cluster=r.cluster), 0.865),
    "ppi of 0/1": (partial(of_labels, stats.ppi), 0.865),
    "rate by labels": (partial(of_labels, stats.pass_rate, design="random"), 0.865),
    "rubric score": (rubric, 0.865),
    "kappa": (partial(right, stats.kappa), 0.73),
    "alpha": (partial(right, stats.alpha), 0.73),
}
CARRIED: dict[str, Callable[[], tuple[Case, float]]] = {
    "difference of 0/1": lambda: (
        lambda r: stats.difference(*gaining(r), cluster=r.cluster),
        0.09,
    ),
    "difference of scores": lambda: (scored, 0.03),
    "difference by labels": lambda: (policies, 0.09),
    "ppi of stars": lambda: known(stars),
    "difference in accuracy": lambda: (versions, 0.045),
    "trend": lambda: (learning, 0.072),
    "change in AUROC": lambda: known(lambda r: stats.auroc_change(*mended(r), cluster=r.cluster)),
    "less a score": lambda: known(score_mended),
    **{name: partial(FAILING.get, name) for name in ("ppi of 0/1", "rubric score", "alpha")},
    "mean, the longest": lambda: (
        lambda r: stats.mean(longest(r), cluster=r.cluster),
        0.8698,
    ),
    "difference, the longest": lambda: (
        lambda r: stats.difference(longest(r), np.zeros(len(r.cluster)), cluster=r.cluster),
        0.8698,
    ),
}
TABLE: dict[str, tuple[Callable[[], tuple[Case, float]], float]] = {
    "accuracy .80": (lambda: accuracy(0.6, 0.8), 0.92),
    "accuracy .95": (lambda: accuracy(0.6, 0.95), 0.92),
    "kappa .57": (lambda: kappa(0.7, 0.8), 0.92),
    "kappa .77, human 70 %": (lambda: kappa(0.7, 0.9), 0.92),
    "difference .05 - .02": (lambda: rates(0.05, 0.02), 0.92),
    "difference .60 - .50": (lambda: rates(0.6, 0.5), 0.92),
    "mean .02": (lambda: mean(0.02), 0.93),
    "mean .98": (lambda: mean(0.98), 0.93),
    "AURC": (aurc, 0.92),
    "Brier difference": (brier_change, 0.92),
    "ECE, default bins, gap 0": (lambda: ece_error(0.0), 0.92),
    "ECE, default bins, gap .1": (lambda: ece_error(0.1), 0.92),
    "ECE, 40 values, gap .1": (lambda: ece_error(0.1, 40), 0.92),
    **{name: (make, 0.92) for name, make in HARD.items()},
    **{f"{name}{GIANT}": (make, 0.92) for name, make in HARD.items()},
    **{name: (partial(known, case, 100_000), 0.92) for name, case in RARE.items()},
    **{f"{name}{WHOLE}": (partial(known, case, 100_000), 0.92) for name, case in ALIKE.items()},
    **{f"{name}{ALONE}": (partial(known, case, 100_000), 0.92) for name, case in RARE.items()},
    **{f"{name}{TENTH}": (make, 0.92) for name, make in CARRIED.items()},
}
LABELLED = {
    "ppi .70": (lambda labelled: ppi(0.7, labelled), 0.92),
    "ppi .97": (lambda labelled: ppi(0.97, labelled), 0.92),
}


@dataclass(frozen=True)
class Coverage:
    """Of the simulations: share with an interval, coverage of those, mean half width, and the
    coverage that must be.
    """

    name: str
    clusters: int
    icc: float
    given: float
    covered: float
    half_width: float
    must: float

    @property
    def holds(self) -> bool:
        """Coverage as it must be; no interval at all holds, too."""
        return self.given == 0 or self.covered >= self.must


def measure(
    name: str,
    case: Case,
    truth: float,
    clusters: int,
    icc: float,
    runs: int,
    must: float,
    seed: int,
) -> Coverage:
    """Coverage over `runs` draws; an unknown interval is no interval, and is counted."""
    rng = np.random.default_rng(seed)
    total = 100 if name in LABELLED else clusters
    ends = {"giant": GIANT, "one": ALONE, "whole": WHOLE}
    odd = {key: name.endswith(end) for key, end in ends.items()}
    found = [case(rows(rng, total, icc, **odd)) for _ in range(runs)]
    given = [e for e in found if not (np.isnan(e.low) or np.isnan(e.high))]
    hit = [e.low - 1e-12 <= truth <= e.high + 1e-12 for e in given]
    half = float(np.mean([e.half_width for e in given])) if given else float("nan")
    covered = float(np.mean(hit)) if given else float("nan")
    return Coverage(name, clusters, icc, len(given) / runs, covered, half, must)


def table(
    runs: int,
    *,
    sizes: tuple[int, ...] = (8, 20, 40),
    iccs: tuple[float, ...] = (0.1, 0.4, 0.8),
    only: str = "",
) -> Iterator[Coverage]:
    """Every line of the table, made when asked for."""
    for name in [*TABLE, *LABELLED]:
        if only not in name:
            continue
        if name in TABLE:
            make, must = TABLE[name]
            case, truth = make()
        alone, whole = name.endswith(ALONE), name.endswith((WHOLE, TENTH))
        for clusters in (30,) if alone else (20, 40, 100) if whole else sizes:
            if name in LABELLED:
                if clusters > 20:
                    continue
                build, must = LABELLED[name]
                case, truth = build(clusters)
            for icc in (0.0,) if alone else iccs:
                yield measure(name, case, truth, clusters, icc, runs, must, seed=clusters)
