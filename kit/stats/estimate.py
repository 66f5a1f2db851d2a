"""A number with its interval, and how nearly all intervals are made: `estimate_from_influence`.

A statistic is a value and the influence of each row on it. How alike the influences of one cluster
are (the intraclass correlation, ICC) gives the design effect. That gives the variance and Student's
degrees of freedom. In a bounded range the limits have Wilson's form. Clusters of a kind that was not
drawn are allowed for as Agresti & Coull (1998) do: two more at either end.

Some limits come after it: those of a difference of equal columns (rule of three), of several looks
(`simultaneous_intervals`), of the ECE and of its change.
"""

import html
import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from ..errors import DataError
from ..plots import Figure, forest
from ..records import count_of
from .columns import Floats, Ints

# clusters of equal size (Kish) below which there is no interval
MIN_CLUSTERS = 2.0
# clusters that must hold the rarest outcome of a statistic that conditions on outcomes
MIN_RARE_CLUSTERS = 5
# standard errors by which the ICC is raised, to be cautious
ICC_MARGIN = 0.5
# the weight, in clusters, of a prior of ICC = 1; it matters where clusters are few
ICC_PRIOR_CLUSTERS = 0.25
# clusters that may not have been drawn
UNSEEN_CLUSTERS = 2.0
# prompts in which a collapse may not have been drawn
RULE_OF_THREE = 3
# a standard error below this is a rounding error of 0
ZERO_ERROR = 1e-12
NO_DIFFERENCE = "no row differs"
ValueRange = tuple[float, float]
UNBOUNDED: ValueRange = (-math.inf, math.inf)
UNIT_RANGE: ValueRange = (0.0, 1.0)
SIGNED_RANGE: ValueRange = (-1.0, 1.0)


def format_number(value: float | None, digits: int = 3) -> str:
    """A number as all reports print it.

    >>> format_number(0.5254), format_number(-0.25, 2), format_number(float("nan"))
    ('.525', '-.25', 'unknown')
    """
    if value is None or math.isnan(value):
        return "unknown"
    # The option z prints -0.0001 as 0, not as -0.
    text = f"{value:z.{digits}f}"
    return text.replace("0.", ".", 1) if abs(value) < 1 else text


def format_p(p: float) -> str:
    """A p-value as all reports print it; it is never printed as 0.

    >>> format_p(0.0421), format_p(1e-9)
    ('p=.042', 'p<.001')
    """
    return "p<.001" if p < 0.0005 else f"p={format_number(p)}"


def format_interval(low: float, high: float, digits: int = 2) -> str:
    """The limits of an interval, rounded outwards: an interval without 0 is printed without 0.

    >>> format_interval(0.054, 0.1963), format_interval(0.0003, 0.2)
    ('[.05, .20]', '[.0003, .2000]')
    """
    if math.isnan(low) or math.isnan(high):
        return "[no interval]"
    while digits < 6 and low * high > 0 and min(abs(low), abs(high)) < 10**-digits:
        digits += 1
    scale = 10**digits
    # 1e-9: a limit such as .29 * 100 = 28.999999999999996 is not pushed one digit out
    down = math.floor(low * scale + 1e-9) / scale
    up = math.ceil(high * scale - 1e-9) / scale
    return f"[{format_number(down, digits)}, {format_number(up, digits)}]"


class PrintedResult:
    """Base of results: `str(result)` is what a prompt and a notebook show."""

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        # Names of levels come from files: a notebook would run markup in them.
        return f"<pre>{html.escape(str(self))}</pre>"


@dataclass(frozen=True, repr=False)
class Estimate(PrintedResult):
    """A value with its interval [low, high]; NaN where there is none, and `note` says why.

    n : known rows. n_clusters : their clusters, None when every row is its own. missing : unknown
    rows, left out. method : the statistic, and the form of its limits (Wilson's in a range, else
    Student's t). level : confidence level. se : standard error. noun : what is measured, for
    sentences. scale : of a difference, how much a single row can change it (1 for rewards in [0,
    1]); NaN: no difference. bounds : the range that the value can have.

    >>> print(Estimate(0.107, 0.054, 0.196, n=84))
    .107 [.05, .20], n=84
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    n: int = 0
    n_clusters: int | None = None
    method: str = ""
    note: str = ""
    missing: int = 0
    level: float = 0.95
    se: float = math.nan
    noun: str = ""
    scale: float = math.nan
    bounds: ValueRange = UNBOUNDED

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise DataError(
                f"level is {self.level!r}", where="level", fix="in (0, 1)"
            )

    def __str__(self) -> str:
        return f"{format_number(self.value)} {format_interval(self.low, self.high)}, {self.counts}"

    @property
    def counts(self) -> str:
        """The known rows, their clusters, and the unknown rows, as text."""
        text = f"n={self.n}"
        if self.n_clusters is not None and self.n_clusters != self.n:
            text += f" in {count_of(self.n_clusters, 'cluster')}"
        if self.missing:
            text += f", {self.missing} unknown"
        return text

    def __float__(self) -> float:
        return float(self.value)

    def _repr_html_(self) -> str:
        notes = "; ".join(filter(None, (self.method, self.note)))
        return f"{html.escape(str(self))}<br><small>{html.escape(notes)}</small>"

    @property
    def units(self) -> int:
        """The clusters, or the rows where each is its own cluster."""
        return self.n if self.n_clusters is None else self.n_clusters

    @property
    def sentence(self) -> str:
        """One sentence that claims no more than the interval."""
        return claim(self)

    def excludes(self, value: float) -> bool:
        """True when there is an interval and `value` lies outside it."""
        # NaN fails both tests: where there is no interval, nothing is excluded.
        return self.low > value or self.high < value

    def plot(self, **options: Any) -> Figure:
        """The estimate as a forest of one line (plotly); its title is the sentence."""
        return forest(
            {self.noun or self.method: self}, **{"title": self.sentence, **options}
        )


@lru_cache(4096)
def t_quantile(level: float, df: float) -> float:
    """Two-sided Student quantile; infinite df gives the normal one."""
    return float(special.stdtrit(df, (1 + level) / 2))


def wilson_interval(
    share: float, n: float, quantile: float = 1.959964
) -> ValueRange:
    """Wilson's limits (1927) of a share of n rows; n may be effective rows.

    >>> [round(x, 4) for x in wilson_interval(1.0, 10)]
    [0.7225, 1.0]
    """
    square = quantile * quantile
    middle = share + square / (2 * n)
    half = quantile * math.sqrt(share * (1 - share) / n + square / (2 * n) ** 2)
    divisor = 1 + square / n
    # At the ends the formula gives exactly 0 and 1, but for rounding.
    return (
        (middle - half) / divisor if share > 0 else 0.0,
        (middle + half) / divisor if share < 1 else 1.0,
    )


class ClusterVariance(NamedTuple):
    """Variance of a statistic, its degrees of freedom, and its effective number of clusters.

    n_effective : clusters of equal size that tell as much as the rows (Kish 1965).
    """

    variance: float
    df: float
    n_effective: float


def cluster_variance(
    psi: Floats, group: Ints | None, weights: Floats | None = None
) -> ClusterVariance:
    """How far a statistic varies from sample to sample.

    With clusters, the larger of a model with an ICC and the robust variance.
    psi : (n,) influences. weights : (n,), how many rows each one is worth (default: one).
    """
    w = np.ones(len(psi)) if weights is None else weights
    n, square = float(w.sum()), float(psi @ psi)
    if group is None:
        return ClusterVariance(square * n / max(n - 1, 1), math.inf, n)
    rows, robust = np.bincount(group, w), _robust_variance(psi, group)
    n_effective, pairs = kish_size(rows), float(rows @ rows) - n
    # clusters of one row, or rows without spread, say nothing of likeness
    if pairs < 1e-9 or square < 1e-24:
        return ClusterVariance(robust, max(n_effective - 1, 1.0), n_effective)
    icc = (robust - square) / (square / n * pairs)
    squares = np.bincount(group, w * w)
    # Kish's design effect: 1 + ICC * (effective size of the cluster - 1)
    effect = 1 + _cautious_icc(icc, pairs, psi, group) * (rows**2 / squares - 1)
    # the model is steady where clusters are few, the robust one right where the model is wrong
    model = square / max(n - 1, 1) * float(squares @ effect)
    df = max(kish_size(effect * squares / rows) - 1, 1.0)
    return ClusterVariance(max(model, robust), df, n_effective)


def _robust_variance(psi: Floats, group: Ints) -> float:
    """The variance as the sums of influences by cluster show it, without a model."""
    total = np.bincount(group, psi)
    # a few clusters lie nearer to their own mean than to the true one
    return float(total @ total) * len(total) / max(len(total) - 1, 1)


def _cautious_icc(icc: float, pairs: float, psi: Floats, group: Ints) -> float:
    """An intraclass correlation that `pairs` of rows show, drawn up.

    One that is too small costs coverage, one too large only width.
    """
    icc = min(max(icc, 0.0), 1.0)
    icc += ICC_MARGIN * (1 - icc) * math.sqrt(2 / pairs)
    # one cluster with most of the spread tells the ICC as poorly as a single cluster
    clusters = kish_size(np.bincount(group, psi * psi))
    return (clusters * icc + ICC_PRIOR_CLUSTERS) / (clusters + ICC_PRIOR_CLUSTERS)


def kish_size(weights: Floats | Ints) -> float:
    """How many equal weights tell as much as these (Kish 1965)."""
    return float(weights.sum() ** 2) / float(weights @ weights)


def rare_outcome_note(outcome: Floats | Ints, group: Ints | None) -> str:
    """Why there is no interval: the rarest outcome lies in too few clusters. Else empty."""
    unit = np.arange(len(outcome)) if group is None else group
    rows = [np.bincount(unit[outcome == level]) for level in np.unique(outcome)]
    # one level only: the other lies in no cluster
    fewest = int(min(map(np.count_nonzero, rows))) if len(rows) > 1 else 0
    if fewest >= MIN_RARE_CLUSTERS:
        return ""
    return f"the rarest outcome lies in {count_of(fewest, 'cluster')}, {MIN_RARE_CLUSTERS} are needed"


def estimate_from_influence(
    value: float,
    psi: Floats,
    group: Ints | None,
    *,
    method: str,
    bounds: ValueRange = UNBOUNDED,
    ends: ValueRange | None = None,
    outcome: Floats | Ints | None = None,
    missing: int = 0,
    level: float = 0.95,
    scale: float = math.nan,
    weights: Floats | None = None,
    noun: str = "",
) -> Estimate:
    """The estimate with its interval, or with a note that says why there is none.

    psi : (n,), what each row adds to `value` beyond what was expected; they sum to about 0. group :
    (n,) cluster numbers from 0, or None. bounds : the range that the value can have. ends : what a
    cluster that was not drawn may be worth. outcome : (n,) levels that each need five clusters.
    weights : (n,), how many rows each one is worth. The rest is passed on to the estimate.
    """
    bare = Estimate(
        value,
        n=len(psi),
        n_clusters=None if group is None else int(group.max(initial=-1)) + 1,
        method=method,
        missing=missing,
        level=level,
        scale=scale,
        bounds=bounds,
        noun=noun,
    )
    if not len(psi):
        return replace(bare, note="there are no known rows")
    if math.isnan(value):
        return replace(bare, note="it is undefined here")
    spread = cluster_variance(psi, group, weights)
    # one large cluster among small ones is one observation, whatever their number
    if spread.n_effective < MIN_CLUSTERS:
        return replace(
            bare,
            note=f"too few clusters: the rows are worth {spread.n_effective:.1f} of "
            f"equal size, {MIN_CLUSTERS:g} are needed",
        )
    if outcome is not None and (note := rare_outcome_note(outcome, group)):
        return replace(bare, note=note)
    return _with_limits(bare, spread, ends)


def _with_limits(
    e: Estimate, spread: ClusterVariance, ends: ValueRange | None
) -> Estimate:
    """The estimate with Wilson's limits in a bounded range, else with Student's."""
    se, form = math.sqrt(spread.variance), "t"
    # Symmetric limits would leave the range, and cover too little near its ends.
    if math.isfinite(e.bounds[1] - e.bounds[0]):
        low, high = _wilson_limits(e, se, spread)
        form = "Wilson"
    elif se < ZERO_ERROR:
        return replace(e, note="all rows are equal: no interval without a range")
    else:
        # independent rows have as many degrees of freedom as they are worth, less 1
        df = spread.df if math.isfinite(spread.df) else spread.n_effective - 1
        half = t_quantile(e.level, df) * se
        low, high = e.value - half, e.value + half
    if ends is not None:
        # two clusters that were not drawn, each at one of the ends
        share = UNSEEN_CLUSTERS / (spread.n_effective + UNSEEN_CLUSTERS)
        # added in quadrature: it matters where the interval is narrow, and vanishes with clusters
        low = e.value - math.hypot(e.value - low, share * min(ends[0] - e.value, 0))
        high = e.value + math.hypot(
            high - e.value, share * max(ends[1] - e.value, 0)
        )
    # The allowance for undrawn clusters may have passed the end of the range.
    return replace(
        e,
        low=max(low, e.bounds[0]),
        high=min(high, e.bounds[1]),
        se=se,
        method=f"{e.method}, {form}",
    )


def _wilson_limits(e: Estimate, se: float, spread: ClusterVariance) -> ValueRange:
    """Wilson's limits for a value as a share of its range."""
    start, width = e.bounds[0], e.bounds[1] - e.bounds[0]
    share = min(max((e.value - start) / width, 0.0), 1.0)
    # as many rows as would give this standard error; where rows that are all equal show none,
    # their worth in clusters stands in
    rows = spread.n_effective
    if se >= ZERO_ERROR:
        rows = max(share * (1 - share), 1e-12) / (se / width) ** 2
    low, high = wilson_interval(share, rows, t_quantile(e.level, spread.df))
    return start + width * low, start + width * high


def claim(e: Estimate, noun: str = "", *, new: str = "", old: str = "") -> str:
    """One sentence. Of a difference it says "gain" or "loss" only where the data show one.

    The interval must exclude 0 and clear 3 / prompts of the range: a collapse in that share of the
    prompts may not have been drawn (rule of three). In simulations a collapse in 1 to 8 % of the
    prompts then gives at most 3 % false gains. noun : what is measured (default: `e.noun`).
    new, old : names of the two sides; one alone is not named.

    >>> claim(Estimate(0.107, 0.054, 0.196, n=184, scale=1.0), "held-out reward")
    'A gain in held-out reward: +.107 [.05, .20], n=184.'
    """
    noun = noun or e.noun or "score"
    if math.isnan(e.low):
        return f"No statement on {noun} is possible: {e.note or 'there is no interval'} ({e})."
    if math.isnan(e.scale):
        return f"{noun[0].upper()}{noun[1:]} is {e}."
    if e.note == NO_DIFFERENCE:
        return f"No difference in {noun}: {e.note} ({e.counts})."
    if new and old:
        noun += f" of {new} over {old}"
    text, side = str(e), "loss"
    if e.value > 0:
        text, side = f"+{e}", "gain"
    if not e.excludes(0):
        return f"No difference in {noun} is shown: {text}."
    units = max(e.units, 1)
    # the interval knows nothing of a kind of prompt that was not drawn
    if min(abs(e.low), abs(e.high)) <= RULE_OF_THREE / units * e.scale:
        return (
            f"Too few prompts to show a {side} in {noun}: {text}; a collapse in "
            f"{RULE_OF_THREE} of {count_of(units, 'prompt')} may not have been drawn."
        )
    return f"A {side} in {noun}: {text}."
