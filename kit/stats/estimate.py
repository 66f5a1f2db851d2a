"""A number that never stands alone: value, interval, how many, how computed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ..errors import DataError


def number(value: float | None, digits: int = 3) -> str:
    """A number as statistics are printed: no zero before the point, "unknown" for NaN or None.

    >>> number(0.52513), number(-0.0234, 4), number(12.5, 1), number(float("nan")), number(1)
    ('.525', '-.0234', '12.5', 'unknown', '1.000')
    """
    if value is None or math.isnan(value):
        return "unknown"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    text = f"{value:z.{digits}f}"  # -.000 is .000
    return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text


def band(low: float | None, high: float | None, digits: int = 2) -> str:
    """Limits as every interval is printed: rounded outwards, so that it holds what it held. A limit
    that excludes 0 keeps its first digit.

    >>> band(0.7731, 0.8652), band(0.0031, 0.2), band(-0.004, 0.3), band(0.1, float("nan"))
    ('[.77, .87]', '[.003, .20]', '[-.01, .30]', '[no interval]')
    """
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return "[no interval]"
    return f"[{_outwards(low, digits, -1)}, {_outwards(high, digits, 1)}]"


def _outwards(limit: float, digits: int, way: int) -> str:
    if math.isinf(limit):
        return number(limit)
    if limit * way < -1e-6:
        digits = max(digits, math.ceil(-math.log10(abs(limit)) - 1e-9))
    scaled = way * limit * 10**digits
    return number(way * math.ceil(scaled - 1e-6) / 10**digits, digits)  # .07 in floats is no .06


@dataclass(frozen=True)
class Estimate:
    """An estimate with its interval.

    value, low, high : the estimate and its confidence limits; NaN where the data do not say.
    n : rows used; unknown rows are left out of it and counted in `missing`.
    n_clusters : independent units that the interval rests on (= n when rows are independent), None
        when not applicable.
    method : how value and interval were computed, in words.
    note : what a reader must know beside it ("" = nothing).
    missing : rows left out because a value was unknown.
    level : confidence level of [low, high], in (0, 1).
    se : standard error, NaN where the method has none.
    worth : how many clusters of equal size these are worth (Kish 1965), NaN where they were not
        weighed.

    >>> print(Estimate(0.525, 0.478, 0.572, 998, 499, "kappa, cluster jackknife-t"))
    .525 [.47, .58], n=998 in 499 clusters
    >>> Estimate(0.1, 0.02, 0.2, 50).excludes(0)
    True
    """

    value: float
    low: float
    high: float
    n: int
    n_clusters: int | None = None
    method: str = ""
    note: str = ""
    missing: int = 0
    level: float = 0.95
    se: float = math.nan
    worth: float = math.nan

    @property
    def units(self) -> float:
        """Independent units that it rests on: what its clusters are worth, or how many."""
        count = self.n if self.n_clusters is None else self.n_clusters
        return count if math.isnan(self.worth) else self.worth

    def __str__(self) -> str:
        return self.text()

    def __float__(self) -> float:
        return float(self.value)

    def text(self, digits: int = 3) -> str:
        """The estimate in one line.

        >>> Estimate(0.5, float("nan"), float("nan"), 3, missing=2).text()
        '.500 [no interval], n=3, 2 unknown'
        """
        out = f"{self.span(digits)}, n={self.n}"
        if self.n_clusters is not None and self.n_clusters != self.n:
            out += f" in {self.n_clusters} clusters"
        if self.missing:
            out += f", {self.missing} unknown"
        return out

    def span(self, digits: int = 3) -> str:
        """Value and interval without the counts, "unknown" without a value; limits with one digit
        fewer than the value.

        >>> Estimate(0.525, 0.478, 0.572, 998).span()
        '.525 [.47, .58]'
        """
        limits = "" if math.isnan(self.value) else band(self.low, self.high, max(digits - 1, 0))
        return f"{number(self.value, digits)} {limits}".rstrip()

    def _repr_html_(self) -> str:
        import html

        tail = (
            f"<br><small>{html.escape('; '.join(t for t in (self.method, self.note) if t))}</small>"
        )
        return f"<span>{html.escape(str(self))}</span>{tail}"

    @property
    def half_width(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2

    def excludes(self, value: float) -> bool:
        """True when the interval is known and does not contain `value`."""
        return bool(
            self.low > value or self.high < value
        )  # NaN compares False: an unknown interval excludes nothing

    def as_dict(self) -> dict[str, Any]:
        """Plain dict, for tables and JSON."""
        return asdict(self)


def estimate_from_json(row: Mapping[str, Any]) -> Estimate:
    """An Estimate from `as_dict()`, with None read as NaN.

    >>> estimate_from_json({"value": 0.5, "low": None, "high": None, "n": 4}).n
    4
    """
    try:
        data = {k: row[k] for k in Estimate.__dataclass_fields__ if k in row}
        for k in ("value", "low", "high", "se", "worth"):
            if k in data or k not in ("se", "worth"):
                data[k] = math.nan if data.get(k) is None else float(data[k])
        return Estimate(**data)
    except (KeyError, TypeError, ValueError) as e:
        raise DataError(
            f"not an estimate: {e}", where="estimate", fix="give value, low, high and n"
        ) from None


def unknown(
    n: int,
    *,
    n_clusters: int | None = None,
    method: str = "",
    note: str = "",
    missing: int = 0,
    level: float = 0.95,
) -> Estimate:
    """An estimate that the data cannot give; `note` says why.

    >>> unknown(0, note="no rows").excludes(0)
    False
    """
    return Estimate(math.nan, math.nan, math.nan, n, n_clusters, method, note, missing, level)
