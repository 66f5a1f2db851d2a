"""A number with its interval, and the way in which nearly all intervals are computed: `interval`.

A statistic is a value and the influence of each row on it. How alike the influences of one cluster
are gives the design effect, and that the variance and Student's degrees of freedom. In a bounded
range the limits have Wilson's form. Clusters of a kind that was not drawn are allowed for as
Agresti & Coull (1998) do: two more at either end.

Some limits come after it: those of a difference of equal columns (rule of three), of several looks
(`simultaneous_intervals`), of the ECE and of its change.
"""

from __future__ import annotations

import html
import math
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from ..errors import DataError

LEAST = 2.0  # clusters of equal size (Kish) below which there is no interval
RARE = 5  # clusters that must hold the rarest outcome of a statistic that conditions on outcomes
NOISE = 0.5  # standard errors by which likeness within clusters is drawn up
PULL = 0.25  # clusters' worth of likeness 1 that is mixed in, for where few clusters tell it
UNSEEN = 2.0  # clusters that may not have been drawn
UNDRAWN = 3  # prompts in which a collapse may not have been drawn (rule of three)
SAME = "no row differs"
Range = tuple[float, float]
OPEN = (-math.inf, math.inf)


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


class Result:
    """Base of results: `str(result)` is what a prompt and a notebook show."""

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        # Names of levels come from files: a notebook would run markup in them.
        return f"<pre>{html.escape(str(self))}</pre>"

    def as_dict(self) -> dict[str, Any]:
        """Plain values by name; `Estimate(**d)` reads them back."""
        return asdict(self)  # type: ignore[call-overload]


@dataclass(frozen=True, repr=False)
class Estimate(Result):
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
    bounds: Range = OPEN

    def __str__(self) -> str:
        text = f"{format_number(self.value)} {format_interval(self.low, self.high)}, n={self.n}"
        if self.n_clusters not in (None, self.n):
            text += f" in {self.n_clusters} clusters"
        return text + (f", {self.missing} unknown" if self.missing else "")

    def __float__(self) -> float:
        return float(self.value)

    def _repr_html_(self) -> str:
        small = "; ".join(filter(None, (self.method, self.note)))
        return f"{html.escape(str(self))}<br><small>{html.escape(small)}</small>"

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

    def plot(self, **options: Any) -> Any:
        """The estimate as a forest of one line (plotly)."""
        from ..plots import forest

        return forest({self.noun or self.method: self}, **options)


@lru_cache(4096)
def t_quantile(level: float, df: float) -> float:
    """Two-sided Student quantile; infinite df gives the normal one."""
    from scipy import special

    tail = (1 + level) / 2
    return float(
        special.ndtri(tail) if math.isinf(df) else special.stdtrit(df, tail)
    )


def wilson(share: float, n: float, quantile: float = 1.959964) -> Range:
    """Wilson's limits (1927) of a share of n rows; n may be effective rows.

    >>> [round(x, 4) for x in wilson(1.0, 10)]
    [0.7225, 1.0]
    """
    square = quantile * quantile
    middle = share + square / (2 * n)
    half = quantile * math.sqrt(share * (1 - share) / n + square / (2 * n) ** 2)
    divisor = 1 + square / n
    # At the ends the formula gives exactly 0 and 1, but for rounding.
    low = (middle - half) / divisor if share > 0 else 0.0
    high = (middle + half) / divisor if share < 1 else 1.0
    return low, high


def spread(
    psi: np.ndarray, group: np.ndarray | None, weights: np.ndarray | None = None
) -> tuple[float, float, float]:
    """Variance of a statistic, its degrees of freedom, and how many clusters the rows are worth.

    psi : (n,) influences. weights : (n,) above 0; rows then count as many as they are worth.

    The worth is the number of clusters of equal size that tell as much (Kish 1965).
    """
    w = (
        np.ones(len(psi))
        if weights is None
        else weights * weights.sum() / (weights @ weights)
    )
    n, square = float(w.sum()), float(psi @ psi)
    if group is None:
        return square * n / max(n - 1, 1), math.inf, n
    rows, squares, total = (np.bincount(group, v) for v in (w, w * w, psi))
    c, same = len(rows), float(rows @ rows)
    worth, pairs, size = n**2 / same, same - n, rows**2 / squares
    # A few clusters lie nearer to their own mean than to the true one.
    robust = float(total @ total) * c / max(c - 1, 1)
    # clusters of one row, or rows without spread, say nothing of likeness
    if pairs < 1e-9 or square < 1e-24:
        return robust, max(worth - 1, 1.0), worth
    alike = min(max((robust - square) / (square / n * pairs), 0.0), 1.0)
    # The moment estimate is noisy: too small a likeness costs coverage, too large a one only width.
    alike += NOISE * (1 - alike) * math.sqrt(2 / pairs)
    each = np.bincount(group, psi * psi)
    # one cluster with most of the spread tells likeness as poorly as a single cluster
    tell = square**2 / float(each @ each)
    alike = (tell * alike + PULL) / (tell + PULL)
    effect = 1 + alike * (size - 1)
    # the model is steady where clusters are few, the robust one right where the model is wrong
    model = square / max(n - 1, 1) * float(squares @ effect)
    part = effect * squares / rows
    df = part.sum() ** 2 / float(part @ part) - 1
    return max(model, robust), max(df, 1.0), worth


def too_rare(outcome: np.ndarray, group: np.ndarray | None) -> str:
    """Why there is no interval: the rarest outcome lies in too few clusters. Else empty."""
    unit = np.arange(len(outcome)) if group is None else group
    clusters_of = [
        np.count_nonzero(np.bincount(unit[outcome == v]))
        for v in np.unique(outcome)
    ]
    # one level only: the other lies in no cluster
    fewest = min(clusters_of) if len(clusters_of) > 1 else 0
    if fewest >= RARE:
        return ""
    return f"the rarest outcome lies in {fewest} clusters, {RARE} are needed"


def interval(
    value: float,
    psi: np.ndarray,
    group: np.ndarray | None,
    *,
    method: str,
    bounds: Range = OPEN,
    ends: Range | None = None,
    outcome: np.ndarray | None = None,
    missing: int = 0,
    level: float = 0.95,
    scale: float = math.nan,
    weights: np.ndarray | None = None,
    noun: str = "",
) -> Estimate:
    """The estimate with its interval, or with a note that says why there is none.

    psi : (n,), what each row adds to `value` beyond what was expected; they sum to about 0. group :
    (n,) cluster numbers from 0, or None. bounds : the range that the value can have. ends : what a
    cluster that was not drawn may be worth. outcome : (n,) levels that each need five clusters.
    weights : (n,) of rows, above 0. The rest is passed on to the estimate.
    """
    if not 0 < level < 1:
        raise DataError(f"level is {level!r}", where="level", fix="in (0, 1)")
    n, c = len(psi), None if group is None else int(group.max(initial=-1)) + 1
    out = Estimate(
        value,
        n=n,
        n_clusters=c,
        method=method,
        missing=missing,
        level=level,
        scale=scale,
        bounds=bounds,
        noun=noun,
    )
    if n == 0 or math.isnan(value):
        return replace(
            out, note="it is undefined here" if n else "there are no known rows"
        )
    variance, df, worth = spread(psi, group, weights)
    # one large cluster among small ones is one observation, whatever their number
    if worth < LEAST:
        return replace(
            out,
            note=f"too few clusters: the rows are worth {worth:.1f} of equal size, {LEAST:g} are needed",
        )
    if outcome is not None and (note := too_rare(outcome, group)):
        return replace(out, note=note)
    se = math.sqrt(variance)
    form = "t" if math.isinf(bounds[1] - bounds[0]) else "Wilson"
    # Symmetric limits would leave the range, and cover too little near its ends.
    if form == "Wilson":
        low, high = _in_range(value, se, t_quantile(level, df), worth, bounds)
    elif se < 1e-12:
        return replace(out, note="all rows are equal: no interval without a range")
    else:
        half = t_quantile(level, worth - 1 if math.isinf(df) else df) * se
        low, high = value - half, value + half
    # added in quadrature: it matters where the interval is narrow, and vanishes with clusters
    if ends is not None:
        down, up = (UNSEEN / (worth + UNSEEN) * (end - value) for end in ends)
        low = value - math.hypot(value - low, min(down, 0.0))
        high = value + math.hypot(high - value, max(up, 0.0))
    # The allowance for undrawn clusters may have passed the end of the range.
    return replace(
        out,
        low=max(low, bounds[0]),
        high=min(high, bounds[1]),
        se=se,
        method=f"{method}, {form}",
    )


def _in_range(
    value: float, se: float, quantile: float, worth: float, bounds: Range
) -> Range:
    """Wilson's limits on as many rows as would give this standard error."""
    wide = bounds[1] - bounds[0]
    share = min(max((value - bounds[0]) / wide, 0.0), 1.0)
    # Rows that are all equal show no error: their worth in clusters stands in.
    rows = (
        worth if se < 1e-12 else max(share * (1 - share), 1e-12) / (se / wide) ** 2
    )
    low, high = wilson(share, rows, quantile)
    return bounds[0] + wide * low, bounds[0] + wide * high


def claim(e: Estimate, noun: str = "", *, new: str = "", old: str = "") -> str:
    """One sentence. Of a difference it says "gain" or "loss" only where the data show one.

    The interval must exclude 0 and clear 3 / prompts of the range: a collapse in that share of the
    prompts may not have been drawn (rule of three). In simulations a collapse in 1 to 8 % of the
    prompts then gives at most 3 % false gains. noun : what is measured (default: `e.noun`).
    new, old : names of the two sides; one alone is not named.

    >>> claim(Estimate(0.107, 0.054, 0.196, n=184, scale=1.0), "held-out reward")
    'A gain in held-out reward: +.107 [.05, .20], n=184.'
    """
    noun, text = noun or e.noun or "score", f"{'+' if e.value > 0 else ''}{e}"
    units = max(e.units, 1)
    if math.isnan(e.low):
        return f"No statement on {noun} is possible: {e.note or 'there is no interval'} ({e})."
    if math.isnan(e.scale):
        return f"{noun[0].upper()}{noun[1:]} is {e}."
    if e.note == SAME:
        return f"No difference in {noun}: {e.note} (n={e.n})."
    if not e.excludes(0):
        return f"No difference in {noun} is shown{f' between {new} and {old}' if new and old else ''}: {text}."
    side = "gain" if e.value > 0 else "loss"
    # the interval knows nothing of a kind of prompt that was not drawn
    if min(abs(e.low), abs(e.high)) <= UNDRAWN / units * e.scale:
        few = f"a collapse in {UNDRAWN} of {units} prompts may not have been drawn"
        return f"Too few prompts to show a {side} in {noun}: {text}; {few}."
    return f"A {side} in {noun}{f' of {new} over {old}' if new and old else ''}: {text}."
