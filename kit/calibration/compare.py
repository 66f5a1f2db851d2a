"""Before against after: is one set of confidences better calibrated than another."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import special

from ..errors import DataError
from ..stats.arguments import share
from ..stats.clusters import ends, farthest
from ..stats.columns import takes_table
from ..stats.estimate import Estimate
from ..stats.paired import difference
from ..stats.ranking import auroc, auroc_change
from ..stats.rates import mean
from ..stats.shares import allow_unseen
from ..tables import rows_html
from . import resample
from .cells import Cells, locator, tally
from .ece import ECE, ece_of, gap_errors, spread
from .inputs import Inputs, check
from .scores import (
    against_constant,
    against_lookup,
    against_score,
    brier_score,
    overconfidence,
    resolution,
    squares,
    underconfidence,
)

SAME = "the same in every row on both sides"
UNTOLD = "no row differs: where these are the same answers, give one column of outcomes twice"


@dataclass(frozen=True)
class Comparison:
    """Two calibrations. difference : debiased ECE after minus before (below 0 = better). brier,
    accuracy : after minus before.

    auroc : before and after; auroc_change : after minus before. constant : Brier after, less that
        of the best constant (below 0 = the confidences say something). resolution : before and
        after, bias-corrected; resolution_change : after minus before, in the bins of the ECE.
    lookup, token : Brier after, less that of each family's rate, and of the token probability;
    token_auroc : AUROC after, less the token's (None where not given). paired : rows are pairs.
    verdict : a sentence that claims no more than all these.
    """

    before: ECE
    after: ECE
    difference: Estimate
    brier: Estimate
    accuracy: Estimate
    auroc: tuple[Estimate, Estimate]
    auroc_change: Estimate
    constant: Estimate
    over: tuple[Estimate, Estimate]
    under: tuple[Estimate, Estimate]
    resolution: tuple[float, float]
    resolution_change: Estimate
    paired: bool
    verdict: str
    lookup: Estimate | None = None
    token: Estimate | None = None
    token_auroc: Estimate | None = None

    def table(self) -> list[dict[str, Any]]:
        """One dict per measure; what was not asked for is left out."""
        change = _limits("change", self.difference)
        rivals = {
            "Brier less the best constant's": self.constant,
            "Brier less the family look-up's": self.lookup,
            "Brier less the token probability's": self.token,
            "AUROC less the token probability's": self.token_auroc,
        }
        against = [
            {"measure": k, **_limits("after", e)} for k, e in rivals.items() if e is not None
        ]
        return [
            {"measure": "ECE (plug-in)", "before": self.before.value, "after": self.after.value},
            _pair("ECE (debiased)", self.before.debiased, self.after.debiased) | change,
            {"measure": "ECE if calibrated", "before": self.before.null, "after": self.after.null},
            {"measure": "Brier", **_limits("change", self.brier)},
            {"measure": "accuracy", **_limits("change", self.accuracy)},
            _pair("resolution", *self.resolution) | _limits("change", self.resolution_change),
            *against,
            _pair("AUROC", *self.auroc) | _limits("change", self.auroc_change),
            _pair("P(wrong | confidence > .8)", *self.over),
            _pair("P(right | confidence < .3)", *self.under),
        ]

    def __str__(self) -> str:
        return f"{self.verdict} | before: {self.before}; after: {self.after}"

    def _repr_html_(self) -> str:
        head = ("measure", "before", "after", "change", "low", "high")
        rows = [[r.get(k) for k in head] for r in self.table()]
        return html.escape(self.verdict) + rows_html(head, rows)


def _pair(measure: str, one: Any, two: Any) -> dict[str, Any]:
    return {"measure": measure, "before": float(one), "after": float(two)}


def _limits(column: str, e: Estimate) -> dict[str, float]:
    return {column: e.value, "low": e.low, "high": e.high}


def _mover(
    one: tuple[float, float, float], two: tuple[float, float, float], rho: float
) -> tuple[float, float]:
    """Limits of two - one from (value, low, high) of each, correlated by rho (Zou, Donner 2008)."""

    def reach(a: float, b: float) -> float:
        return math.sqrt(max(a * a + b * b - 2 * rho * a * b, 0.0))

    (down1, up1), (down2, up2) = ((v - low, high - v) for v, low, high in (one, two))
    change = two[0] - one[0]
    return change - reach(down2, up1), change + reach(up2, down1)


def _apart(one: Estimate, two: Estimate, name: str) -> Estimate:
    """Change between two independent estimates."""
    low, high = _mover(*((e.value, e.low, e.high) for e in (one, two)), 0.0)
    units = (one.n_clusters or one.n) + (two.n_clusters or two.n)
    return Estimate(
        two.value - one.value,
        low,
        high,
        one.n + two.n,
        units,
        f"change in {name}, unpaired, from both intervals",
        level=one.level,
    )


def _mean_change(old: np.ndarray, new: np.ndarray, x: Inputs, y: Inputs, how: _How) -> Estimate:
    """Change of the mean of a row's value; none where it is of the same answers and outcomes."""
    alike = how.paired and np.array_equal(old, new)
    if alike and how.same:
        return Estimate(0.0, 0.0, 0.0, x.n, x.n_clusters, SAME, level=how.level)
    if how.paired:
        out = difference(new, old, cluster=x.cluster, level=how.level)
        return replace(out, note=UNTOLD) if alike else out
    both = (old, x.cluster), (new, y.cluster)
    return _apart(*(mean(v, cluster=c, level=how.level) for v, c in both), "mean")


def _brier_change(x: Inputs, y: Inputs, how: _How) -> Estimate:
    """Change in the Brier score, with room for clusters of the rarer outcome not drawn."""
    if not how.paired:
        return _apart(*(brier_score(v, how.level) for v in (x, y)), "mean")
    change = squares(y) - squares(x)
    out = mean(change, cluster=x.cluster, level=how.level, bounds=(-1.0, 1.0))
    outcomes = [(a, b) for a in (0.0, 1.0) for b in (0.0, 1.0) if a == b or not how.same]
    old, new = (np.asarray(v.conf, float) for v in (x, y))
    changes = (((new - b) ** 2 - (old - a) ** 2, a, b) for a, b in outcomes)
    kinds = [
        ends(d, (x.correct == a) & (y.correct == b), x.group, (-1.0, 1.0)) for d, a, b in changes
    ]
    return allow_unseen(out, np.ravel([*kinds, farthest(change, x.group)]), (-1.0, 1.0))


@dataclass(frozen=True)
class _How:
    paired: bool
    level: float
    same: bool  # one column of outcomes stands for both sides


def _rows_bin(x: Inputs, binning: dict[str, Any]) -> np.ndarray:
    """The bin of each row (n,)."""
    where = locator(x, **binning)
    return where.bin[where.find(np.asarray(x.conf, dtype=float))]


def _resolved(x: Inputs, cells: Cells, binning: dict[str, Any]) -> np.ndarray:
    """By how much the rate of its bin is nearer to each row's outcome than the rate of all, in
    squares (n,): their mean is the plug-in resolution, and what they spread its error.
    """
    size, hits, _ = cells.bins()
    rate = np.divide(hits, size, out=np.zeros_like(size), where=size > 0)
    y = np.asarray(x.correct, dtype=float)
    return (y - y.mean()) ** 2 - (y - rate[_rows_bin(x, binning)]) ** 2


def _resolution_change(
    sides: list[Inputs],
    cells: list[Cells],
    binning: dict[str, Any],
    how: _How,
) -> Estimate:
    """Change of the bias-corrected resolution; limits as wide as those of the plug-in: they held
    .93 to .99 of the changes from 200 rows on, .87 to .96 at 60 (150 runs each).
    """
    old, new = (_resolved(x, c, binning) for x, c in zip(sides, cells, strict=True))
    out = _mean_change(old, new, *sides, how)
    value = resolution(cells[1]) - resolution(cells[0])
    move = value - out.value
    return replace(out, value=value, low=out.low + move, high=out.high + move)


def _scores(x: Inputs, cells: Cells, binning: dict[str, Any]) -> np.ndarray:
    """What every unit, a cluster or a row, adds to the binned error, over its standard error.

    By the slope of each bin's expected |gap|: where noise folds it at 0 it does not follow the rows
    (signs alone made changes look shared, and their intervals hold .79).
    """
    (size, gap), s = resample.bin_sums(cells, cells.n), gap_errors(cells)
    slope = special.erf(gap / np.maximum(size * s, 1e-12) / math.sqrt(2))
    total = (slope * gap).sum() / cells.size
    se = max(spread(cells, s), 1e-12) * cells.size
    each = (slope[_rows_bin(x, binning)] * (x.correct - x.conf) - total) / se
    return each if x.cluster is None else np.bincount(x.cluster, each)


def _error_change(
    one: ECE,
    two: ECE,
    sides: list[Inputs],
    cells: list[Cells],
    binning: Any,
    how: _How,
) -> Estimate:
    """Change in the debiased error; with pairs, correlated as the units' scores are."""
    rho = 0.0
    if how.paired:
        a, b = (_scores(x, c, binning) for x, c in zip(sides, cells, strict=True))
        rho = float(np.clip(a @ b, -1, 1))
    low, high = _mover(*((e.debiased.value, e.low, e.high) for e in (one, two)), rho)
    if one.low == 0 and two.low == 0:  # neither is told apart from a calibrated model
        low, high = min(low, 0.0), max(high, 0.0)
    n = one.n if how.paired else one.n + two.n
    words = f"change in debiased ECE, {'paired' if how.paired else 'unpaired'}, from both intervals"
    value = two.debiased.value - one.debiased.value
    return Estimate(value, low, high, n, sides[0].n_clusters, words, level=how.level)


def _ranking(x: Inputs, y: Inputs, how: _How) -> tuple[Estimate, Estimate, Estimate]:
    """AUROC before and after, and its change."""
    one, two = (auroc(v.conf, v.correct, cluster=v.cluster, level=how.level) for v in (x, y))
    if not how.paired:
        return one, two, _apart(one, two, "AUROC")
    change = auroc_change(
        y.conf,
        x.conf,
        y.correct,
        correct_old=x.correct,
        cluster=x.cluster,
        level=how.level,
    )
    return one, two, change


@takes_table("before", "after", "cluster", "cluster_after", "family", "token")
def compare(
    before: tuple[Any, Any],
    after: tuple[Any, Any],
    *,
    paired: bool = False,
    cluster: Any = None,
    cluster_after: Any = None,
    family: Any = None,
    token: Any = None,
    margin: float = 0.02,
    n_boot: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    missing: str = "raise",
    **binning: Any,
) -> Comparison:
    """Calibration before and after (a recalibration, a training), each given as (conf, correct).

    paired : row i of both is the same question; changes are then of pairs, by `cluster` where given
        (paired rows with missing values are refused, since the pairs would shift). Unpaired:
        `cluster` and `cluster_after` label each side.
    family : (n,) labels of the rows after, for a look-up of each family's rate. token : (n,) token
    probabilities of the answers after, which need no training. margin : loss of accuracy in [0, 1]
    that still counts as accuracy kept; only where one column of outcomes is given on both sides
    are these taken to be the same answers, and accuracy the same by construction. n_boot :
    resamples of the test of each side. Binning as in `ece`; 15 equal-width bins by default for
    both, so that they compare. The verdict asks for more than a lower error: accuracy kept, a Brier
    score better than that of the best constant, and no measure of `table` clearly worse, nor than a
    look-up by family or the token probability. It says which of these may do as well, and what is
    not decided, since it has no interval.

    >>> p, y = [0.1, 0.9] * 40, [0, 1, 0, 1, 0, 1, 1, 0, 0, 1] * 8
    >>> c = compare(([0.5] * 80, y), ([0.2, 0.8] * 40, y), paired=True)
    >>> round(c.brier.value, 2), round(c.auroc[1].value, 2), c.constant.high < 0
    (-0.09, 0.8, True)
    """
    if binning.get("edges") is None:
        binning.setdefault("bins", 15)
    sides = _sides(before, after, cluster, cluster if paired else cluster_after, paired, missing)
    outcomes = before[1], after[1]
    margin = share("margin", margin)
    same = outcomes[0] is outcomes[1] or np.shares_memory(*outcomes)
    x, y = sides
    how = _How(paired, level, same and np.array_equal(x.correct, y.correct))
    cells = [tally([v], locator(v, **binning)) for v in sides]
    one, two = (ece_of(c, n_boot=n_boot, level=level, seed=seed) for c in cells)
    rank_one, rank_two, rank = _ranking(x, y, how)
    out = Comparison(
        before=one,
        after=two,
        difference=_error_change(one, two, sides, cells, binning, how),
        brier=_brier_change(x, y, how),
        accuracy=_mean_change(x.correct, y.correct, x, y, how),
        auroc=(rank_one, rank_two),
        auroc_change=rank,
        constant=against_constant(y.conf, y.correct, cluster=y.cluster, level=level),
        over=tuple(
            overconfidence(v.conf, v.correct, cluster=v.cluster, level=level) for v in sides
        ),  # type: ignore[arg-type]
        under=tuple(
            underconfidence(v.conf, v.correct, cluster=v.cluster, level=level) for v in sides
        ),  # type: ignore[arg-type]
        resolution=tuple(resolution(c) for c in cells),  # type: ignore[arg-type]
        resolution_change=_resolution_change(sides, cells, binning, how),
        paired=paired,
        verdict="",
        **_beside(y, family, token, level),
    )
    return replace(out, verdict=_verdict(out, margin))


def _beside(y: Inputs, family: Any, token: Any, level: float) -> dict[str, Estimate]:
    """The comparisons after training that were asked for."""
    out = {}
    if family is not None:
        out["lookup"] = against_lookup(y.conf, y.correct, family, cluster=y.cluster, level=level)
    if token is not None:
        token = check(token, y.correct, name="token").conf
        out["token"] = against_score(y.conf, y.correct, token, cluster=y.cluster, level=level)
        out["token_auroc"] = auroc_change(y.conf, token, y.correct, cluster=y.cluster, level=level)
    return out


def _sides(
    before: Any,
    after: Any,
    cluster: Any,
    cluster_after: Any,
    paired: bool,
    missing: str,
) -> list[Inputs]:
    DataError.first(
        (
            paired and missing != "raise",
            "paired rows cannot be dropped one side at a time",
            "argument missing",
            "drop incomplete pairs first",
        ),
        (
            not isinstance(paired, (bool, np.bool_)),
            f"paired is {paired!r}",
            "argument paired",
            "use True or False",
        ),
    )
    for name, side in (("before", before), ("after", after)):
        if not hasattr(side, "__len__") or len(side) != 2:
            raise DataError(
                f"{name} is no pair of columns",
                where=f"argument {name}",
                fix="pass (conf, correct)",
            )
    both = ((before, cluster), (after, cluster_after))
    x, y = (check(*rows, cluster=c, missing=missing) for rows, c in both)
    if paired and x.n != y.n:
        raise DataError(
            f"{x.n} rows before, {y.n} after",
            where="arguments before, after",
            fix="pass the same rows in the same order, or paired=False",
        )
    return [x, y]


CHANGED = {
    "worse": "{} got worse",
    "even": "{} is not shown to be kept",
    "unknown": "not decided whether {} was kept",
}
RIVAL = {
    "worse": "{} does better",
    "even": "{} may do as well",
    "unknown": "not decided whether {} does as well",
    "better": "{} does worse",
}
# Field: what it is about, what its number is, which way is better, and the words for its standing.
MEASURES = {
    "accuracy": ("accuracy", "margin {:g}, change", 1, CHANGED),
    "brier": ("the Brier score", "change", -1, CHANGED),
    "resolution_change": ("resolution", "change", 1, CHANGED),
    "auroc_change": ("telling right from wrong", "change of AUROC", 1, CHANGED),
    "constant": ("the best constant", "Brier differs by", -1, RIVAL),
    "lookup": ("a look-up of each family's rate", "Brier differs by", -1, RIVAL),
    "token": ("the token probability", "Brier differs by", -1, RIVAL),
    "token_auroc": ("ranking by the token probability", "AUROC differs by", 1, RIVAL),
}
HEADS = {  # the constant's standing: with nothing clearly worse, and with something
    "better": (
        " and more than a constant can say, at an open price",
        " and more than a constant can say, at a price",
    ),
    "even": (", but no better confidence is shown", ", but no better confidence"),
    "unknown": (", and not decided whether a better confidence", ", but no better confidence"),
    "worse": ("", ", but no better confidence"),
}


def _standing(e: Estimate, way: int, least: float) -> str:
    """Where the interval lies from `least`; without an interval a change of exactly 0 is "even":
    nothing moved.
    """
    low, high = sorted((way * e.low, way * e.high))
    if math.isnan(low + high):
        return "even" if e.value == 0 else "unknown"
    return ("even", "better", "worse")[(low > least) + 2 * (high < least)]


def _standings(c: Comparison, margin: float) -> dict[str, tuple[str, str]]:
    """Each measure's standing, and the words for it."""
    out = {}
    for name, (who, what, way, words) in MEASURES.items():
        if (e := getattr(c, name)) is not None:
            place = _standing(e, way, -margin if name == "accuracy" else 0.0)
            said = words.get(place, "").format(who)
            out[name] = place, f"{said} ({what.format(margin)} {e.span()})"
    return out


def _verdict(c: Comparison, margin: float) -> str:
    d = c.difference
    tail = f"debiased ECE changed by {d.span()} (n={c.before.n} and {c.after.n})"
    if d.low > 0:
        return f"worse calibrated: {tail}"
    if not d.high < 0:
        return f"no change can be claimed: {tail}"
    found = _standings(c, margin)
    even = [k for k, (place, _) in found.items() if place == "even"]
    wrong = [
        *(k for k in found if found[k][0] in ("worse", "unknown")),
        *(k for k in ("accuracy", "constant") if k in even),
    ]
    free = [found[k][1] for k in ("lookup", "token", "token_auroc") if k in even]
    same = c.accuracy.method == SAME
    kept = "is the same by construction" if same else f"kept within {margin:g}"
    parts = [
        tail,
        *([] if "accuracy" in wrong else [f"accuracy {kept}"]),
        *(found[k][1] for k in wrong),
        *([] if wrong else [found["constant"][1], f"AUROC {c.auroc[1]}"]),
        *([f"but without training {' and '.join(free)}"] if free else []),
    ]
    lower = HEADS[found["constant"][0]][any(found[k][0] == "worse" for k in wrong)]
    head = f"a lower calibration error{lower}" if wrong else "better calibrated"
    return f"{head}: {'; '.join(parts)}"
