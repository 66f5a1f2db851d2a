"""Before against after: is one set of confidences better calibrated than another."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import special

from ..errors import DataError
from ..stats.clusters import allow_unseen
from ..stats.columns import takes_table
from ..stats.estimate import Estimate, number
from ..stats.paired import difference
from ..stats.ranking import auroc, auroc_change
from ..stats.rates import mean
from ..tables import rows_html
from . import resample
from .baselines import against_constant, against_lookup, against_score, squares
from .cells import Cells, locator, tally
from .ece import ECE, ece_of, gap_errors, spread
from .inputs import Inputs, check
from .scores import brier_score, overconfidence, resolution, underconfidence


@dataclass(frozen=True)
class Comparison:
    """Two calibrations. difference : debiased ECE after minus before (below 0 = better). brier,
    accuracy : after minus before.

    auroc : before and after; auroc_change : after minus before. constant : Brier after, less that
        of the best constant (below 0 = the confidences say something). resolution : before and
        after, bias-corrected.
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
    paired: bool
    verdict: str
    lookup: Estimate | None = None
    token: Estimate | None = None
    token_auroc: Estimate | None = None

    def table(self) -> list[dict[str, Any]]:
        """One dict per measure."""
        rows: list[dict[str, Any]] = [
            {"measure": "ECE (plug-in)", "before": self.before.value, "after": self.after.value},
            {
                "measure": "ECE (debiased)",
                "before": self.before.debiased.value,
                "after": self.after.debiased.value,
                "change": self.difference.value,
                "low": self.difference.low,
                "high": self.difference.high,
            },
            {"measure": "ECE if calibrated", "before": self.before.null, "after": self.after.null},
            {
                "measure": "Brier",
                "change": self.brier.value,
                "low": self.brier.low,
                "high": self.brier.high,
            },
            {
                "measure": "accuracy",
                "change": self.accuracy.value,
                "low": self.accuracy.low,
                "high": self.accuracy.high,
            },
            {"measure": "resolution", "before": self.resolution[0], "after": self.resolution[1]},
            *self._against(),
            {
                "measure": "AUROC",
                "before": self.auroc[0].value,
                "after": self.auroc[1].value,
                "change": self.auroc_change.value,
                "low": self.auroc_change.low,
                "high": self.auroc_change.high,
            },
            {
                "measure": "P(wrong | confidence > .8)",
                "before": self.over[0].value,
                "after": self.over[1].value,
            },
            {
                "measure": "P(right | confidence < .3)",
                "before": self.under[0].value,
                "after": self.under[1].value,
            },
        ]
        return rows

    def _against(self) -> list[dict[str, Any]]:
        """What stands against a constant, a table, and the token probability; rows that were not
        asked for are left out.
        """
        known = {
            "Brier less the best constant's": self.constant,
            "Brier less the family look-up's": self.lookup,
            "Brier less the token probability's": self.token,
            "AUROC less the token probability's": self.token_auroc,
        }
        return [
            {"measure": k, "after": e.value, "low": e.low, "high": e.high}
            for k, e in known.items()
            if e is not None
        ]

    def __str__(self) -> str:
        return f"{self.verdict} | before: {self.before}; after: {self.after}"

    def _repr_html_(self) -> str:
        head = ("measure", "before", "after", "change", "low", "high")
        rows = [[r.get(k) for k in head] for r in self.table()]
        return html.escape(self.verdict) + rows_html(head, rows)


def _mover(
    one: tuple[float, float, float], two: tuple[float, float, float], rho: float
) -> tuple[float, float]:
    """Limits of two - one from (value, low, high) of each, correlated by rho (Zou, Donner 2008)."""

    def reach(a: float, b: float) -> float:
        return math.sqrt(max(a * a + b * b - 2 * rho * a * b, 0.0))

    down1, up1 = one[0] - one[1], one[2] - one[0]
    down2, up2 = two[0] - two[1], two[2] - two[0]
    change = two[0] - one[0]
    return change - reach(down2, up1), change + reach(up2, down1)


def _apart(one: Estimate, two: Estimate, name: str) -> Estimate:
    """Change between two independent estimates."""
    low, high = _mover(*((e.value, e.low, e.high) for e in (one, two)), 0.0)
    units = (one.n_clusters or one.n) + (two.n_clusters or two.n)
    words = f"change in {name}, unpaired, from both intervals"
    return Estimate(two.value - one.value, low, high, one.n + two.n, units, words, level=one.level)


def _accuracy_change(x: Inputs, y: Inputs, how: _How) -> Estimate:
    if how.paired:
        return difference(y.correct, x.correct, cluster=x.cluster, level=how.level)
    return _apart(*(mean(v.correct, cluster=v.cluster, level=how.level) for v in (x, y)), "mean")


def _brier_change(x: Inputs, y: Inputs, how: _How) -> Estimate:
    """Change in the Brier score, with room for clusters of the rarer outcome not drawn."""
    if not how.paired:
        return _apart(*(brier_score(v, how.level) for v in (x, y)), "mean")
    out = difference(squares(y), squares(x), cluster=x.cluster, level=how.level)
    same = np.array_equal(x.correct, y.correct)
    outcomes = [(a, b) for a in (0.0, 1.0) for b in (0.0, 1.0) if a == b or not same]
    kinds = [
        float(np.mean((np.asarray(y.conf, float) - b) ** 2 - (np.asarray(x.conf, float) - a) ** 2))
        for a, b in outcomes
    ]
    return allow_unseen(out, kinds, (-1.0, 1.0))


@dataclass(frozen=True)
class _How:
    paired: bool
    level: float
    margin: float


def _scores(x: Inputs, cells: Cells, binning: dict[str, Any]) -> np.ndarray:
    """What every unit, a cluster or a row, adds to the binned error, over its standard error.

    By the slope of each bin's expected |gap|: where noise folds it at 0 it does not follow the rows
    (signs alone made changes look shared, and their intervals hold .79).
    """
    (size, gap), s = resample.bin_sums(cells, cells.n), gap_errors(cells)
    slope = special.erf(gap / np.maximum(size * s, 1e-12) / math.sqrt(2))
    total, se = (slope * gap).sum() / cells.size, max(spread(cells, s), 1e-12) * cells.size
    if cells.units is not None:
        each = slope[cells.bin, None] * (np.array([0.0, 1.0]) - cells.mean) - total
        return np.concatenate([u @ each.reshape(-1) for u in cells.unit_blocks()]) / se
    where = locator(x, **binning)
    bins = where.bin[where.find(np.asarray(x.conf, dtype=float))]
    return (slope[bins] * (x.correct - x.conf) - total) / se


def _error_change(
    one: ECE, two: ECE, sides: list[Inputs], cells: list[Cells], binning: Any, how: _How
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
    probabilities of the answers after, which need no training. margin : loss of accuracy that still
    counts as accuracy kept. n_boot : resamples of the test of each side. Binning as in `ece`; 15
    equal-width bins by default for both, so that they compare. The verdict asks for more than a
    lower error: accuracy kept, a Brier score better than that of the best constant, and no loss in
    telling right from wrong (AUROC). It says where a look-up by family, or the token probability,
    does as well.

    >>> p, y = [0.1, 0.9] * 40, [0, 1, 0, 1, 0, 1, 1, 0, 0, 1] * 8
    >>> c = compare(([0.5] * 80, y), ([0.2, 0.8] * 40, y), paired=True)
    >>> round(c.brier.value, 2), round(c.auroc[1].value, 2), c.constant.high < 0
    (-0.09, 0.8, True)
    """
    if binning.get("edges") is None:
        binning.setdefault("bins", 15)
    sides = _sides(before, after, cluster, cluster if paired else cluster_after, paired, missing)
    how = _How(paired, level, margin)
    x, y = sides
    cells = [tally([v], locator(v, **binning)) for v in sides]
    one, two = (ece_of(c, n_boot=n_boot, level=level, seed=seed) for c in cells)
    rank_one, rank_two, rank = _ranking(x, y, how)
    out = Comparison(
        before=one,
        after=two,
        difference=_error_change(one, two, sides, cells, binning, how),
        brier=_brier_change(x, y, how),
        accuracy=_accuracy_change(x, y, how),
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
        pair = (y.conf, y.correct, token)
        out["token"] = against_score(*pair, cluster=y.cluster, level=level)
        out["token_auroc"] = auroc_change(y.conf, token, y.correct, cluster=y.cluster, level=level)
    return out


def _sides(
    before: Any, after: Any, cluster: Any, cluster_after: Any, paired: bool, missing: str
) -> list[Inputs]:
    if paired and missing != "raise":
        raise DataError(
            "paired rows cannot be dropped one side at a time",
            where="argument missing",
            fix="drop incomplete pairs first",
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


def _verdict(c: Comparison, margin: float) -> str:
    d = c.difference
    tail = (
        f"debiased ECE changed by {number(d.value)} [{number(d.low, 2)}, {number(d.high, 2)}] "
        f"(n={c.before.n} and {c.after.n})"
    )
    if d.low > 0:
        return f"worse calibrated: {tail}"
    if not d.high < 0:
        return f"no change can be claimed: {tail}"
    wrong = _objections(c, margin)
    if not wrong:
        return (
            f"better calibrated: {tail}; accuracy kept within {margin:g}, Brier better than "
            f"that of the "
            f"best constant by {number(-c.constant.value)} [{number(-c.constant.high, 2)}, "
            f"{number(-c.constant.low, 2)}], "
            f"AUROC {c.auroc[1].text(2)}{_as_well(c)}"
        )
    head = "a lower calibration error, but no better confidence"
    if c.constant.high < 0:
        head = "a lower calibration error and more than a constant can say, at an open price"
    return f"{head}: {tail}; {'; '.join(wrong)}{_as_well(c)}"


def _as_well(c: Comparison) -> str:
    """What needs no training and is not shown to be worse, as the end of a sentence."""
    out = []
    for name, e in (
        ("a look-up of each family's rate", c.lookup),
        ("the token probability", c.token),
    ):
        if e is not None and not e.high < 0:
            verb = "does better" if e.low > 0 else "does as well"
            out.append(
                f"{name} {verb} (Brier {number(e.value)} [{number(e.low, 2)}, "
                f"{number(e.high, 2)}] from it)"
            )
    return f"; but without training {' and '.join(out)}" if out else ""


def _objections(c: Comparison, margin: float) -> list[str]:
    """Why a lower calibration error is no better confidence here."""
    out = []
    if not c.accuracy.low > -margin:
        out.append(
            f"accuracy changed by {number(c.accuracy.value)} [{number(c.accuracy.low, 2)}, "
            f"{number(c.accuracy.high, 2)}], "
            f"not shown to be kept within {margin:g}"
        )
    if not c.constant.high < 0:
        out.append(
            f"the best constant does as well (Brier {number(c.constant.value)} "
            f"[{number(c.constant.low, 2)}, "
            f"{number(c.constant.high, 2)}] from it)"
        )
    if c.auroc_change.high < 0:
        out.append(f"it tells right from wrong less well (AUROC {number(c.auroc_change.value)})")
    return out
