"""A number with its interval, the rows and clusters behind it, and how it was computed."""

from __future__ import annotations

import html
import math
from dataclasses import asdict, dataclass, replace
from typing import Any


def number(value: float | None, digits: int = 3) -> str:
    """A number as all reports print it.

    >>> number(0.5254), number(-0.25, 2), number(float("nan"))
    ('.525', '-.25', 'unknown')
    """
    if value is None or math.isnan(value):
        return "unknown"
    text = f"{value:z.{digits}f}"
    return text.replace("0.", ".", 1) if abs(value) < 1 else text


def band(low: float, high: float, digits: int = 2) -> str:
    """The limits of an interval, rounded outwards: an interval without 0 is printed without 0.

    >>> band(0.054, 0.1963), band(0.0003, 0.2)
    ('[.05, .20]', '[.0003, .2000]')
    """
    if math.isnan(low) or math.isnan(high):
        return "[no interval]"
    while digits < 6 and low * high > 0 and min(abs(low), abs(high)) < 10**-digits:
        digits += 1
    scale = 10**digits
    # 1e-9: a limit such as .29 * 100 = 28.999999999999996 is not pushed one digit out
    down, up = math.floor(low * scale + 1e-9) / scale, math.ceil(high * scale - 1e-9) / scale
    return f"[{number(down, digits)}, {number(up, digits)}]"


@dataclass(frozen=True)
class Estimate:
    """A value with its interval [low, high]; NaN where there is none, and `note` says why.

    n : known rows. n_clusters : their clusters, None when every row is its own. missing : unknown
    rows, left out. level : confidence level. se : standard error. noun : what is measured, for
    sentences. scale : of a difference, how much a single row can change it (1 for rewards in [0,
    1]); NaN: no difference.

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

    def __str__(self) -> str:
        text = f"{number(self.value)} {band(self.low, self.high)}, n={self.n}"
        if self.n_clusters not in (None, self.n):
            text += f" in {self.n_clusters} clusters"
        return text + (f", {self.missing} unknown" if self.missing else "")

    __repr__ = __str__

    def __float__(self) -> float:
        return float(self.value)

    def _repr_html_(self) -> str:
        small = "; ".join(filter(None, (self.method, self.note)))
        return f"{html.escape(str(self))}<br><small>{html.escape(small)}</small>"

    @property
    def sentence(self) -> str:
        """One sentence that claims no more than the interval."""
        from .claims import claim

        return claim(self)

    def excludes(self, value: float) -> bool:
        """True when there is an interval and `value` lies outside it."""
        return self.low > value or self.high < value

    def scaled(self, by: float) -> Estimate:
        """The estimate in other units, for example percentage points: `e.scaled(100)`."""
        low, high = sorted((by * self.low, by * self.high))
        size = abs(by)
        return replace(
            self,
            value=by * self.value,
            low=low,
            high=high,
            se=size * self.se,
            scale=size * self.scale,
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain values; `Estimate(**d)` reads them back."""
        return asdict(self)

    def plot(self, **options: Any) -> Any:
        """The estimate as a forest of one line (plotly)."""
        from ..plots import forest

        return forest({self.noun or self.method: self}, **options)
