"""Agreement of one judge with humans in full: kappa, AC1, raw agreement, the confusion, and the
trap in raw agreement.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import DataError
from .agreement import Weights, ac1, accuracy, balanced_accuracy, kappa, mcc, pairs, weighted
from .clusters import floats
from .columns import takes_table
from .estimate import Estimate, number


@dataclass(frozen=True)
class Agreement:
    """A judge against humans.

    confusion : (q, q) counts, rows the judge, columns the human. majority : share of the human's
        commonest category, which a judge that always says it would reach in raw agreement.
        missing_judge, missing_human : rows unknown to each. weights : of kappa and ac1 (then AC2).
    """

    categories: tuple[Any, ...]
    confusion: np.ndarray
    kappa: Estimate
    ac1: Estimate
    raw: Estimate
    balanced: Estimate
    mcc: Estimate
    majority: float
    missing_judge: int
    missing_human: int
    note: str
    weights: Weights = None

    def measures(self) -> dict[str, Estimate]:
        """Each measure by the name it has with these weights."""
        words = weighted(self.weights)
        gwet = f"AC2{words}" if words else "AC1"
        return {
            f"kappa{words}": self.kappa,
            gwet: self.ac1,
            "raw agreement": self.raw,
            "balanced accuracy": self.balanced,
            "Matthews correlation": self.mcc,
        }

    def rows(self) -> list[dict[str, Any]]:
        """One row per measure, for a table."""
        return [{"measure": k, **e.as_dict()} for k, e in self.measures().items()]

    def text(self) -> str:
        """The report in lines."""
        named = self.measures()
        wide = max(map(len, named)) + 1
        lines = [f"{k:<{wide}}{e}" for k, e in named.items()]
        width = (
            max(
                [len(str(c)) for c in self.categories]
                + [len(str(self.confusion.max(initial=0))), 5]
            )
            + 2
        )
        table = zip(self.categories, self.confusion.tolist(), strict=True)
        grid = [("judge \\ human", self.categories), *table]
        lines += [
            "",
            *(
                str(k).ljust(width + 8) + "".join(str(c).rjust(width) for c in row)
                for k, row in grid
            ),
            "",
            f"unknown: judge {self.missing_judge}, human {self.missing_human}; left out, never "
            f"counted as wrong or unmet",
            *filter(None, [self.note]),
        ]
        return "\n".join(lines)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "categories": list(self.categories),
            "confusion": self.confusion.tolist(),
            "measures": self.rows(),
            "majority": self.majority,
            "missing_judge": self.missing_judge,
            "missing_human": self.missing_human,
            "note": self.note,
        }

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.text())}</pre>"


def trap(raw: Estimate, k: Estimate, majority: float, commonest: Any) -> str:
    """What raw agreement hides here; "" when nothing.

    >>> trap(Estimate(.749, .72, .77, 998), Estimate(.027, -.01, .06, 998), .75, 1)[:69]
    'Raw agreement .749 is not shown to be better than always answering 1:'
    """
    if not raw.n or np.isnan(raw.value):
        return ""
    start = f"Raw agreement {number(raw.value)}"
    if raw.low <= majority:
        return (
            f"{start} is not shown to be better than always answering {commonest}: "
            f"{number(majority)}. Kappa, {number(k.value)}, takes such luck out."
        )
    if raw.value - max(k.value, 0) > 0.25:
        return (
            f"{start} looks better than it is: always answering {commonest} would reach "
            f"{number(majority)}; "
            f"kappa, which takes chance out, is {number(k.value)}."
        )
    return ""


@takes_table("judge", "human", "cluster")
def agree(
    judge: Sequence[Any],
    human: Sequence[Any],
    *,
    cluster: Sequence[Any] | None = None,
    categories: Sequence[Any] | None = None,
    weights: Weights = None,
    threshold: float | None = None,
    level: float = 0.95,
) -> Agreement:
    """The agreement of a judge with a human in full; unknown rows are left out and counted.

    judge, human : (n,) verdicts; met / unmet, yes / no, pass / fail, true / false and 1 / 0 are one
        vocabulary. Or a table and the names of its columns: `agree(frame, "judge", "human",
        cluster="task")`.
    categories : the levels from worst to best; needed where `weights` ("linear", "quadratic") ask
        for an order of words. Ordered categoricals of pandas have their own.
    threshold : numbers at least this are 1, the others 0; a column of 0 and 1 stays as it is.
    Numbers of several levels against 0 and 1 are a DataError: a threshold makes them comparable.

    >>> agree([1, 1, 0, None], [1, 0, 0, 1]).missing_judge
    1
    >>> agree([4, 2, 5, 1], [1, 0, 1, 1], threshold=3).confusion.tolist()
    [[1, 1], [0, 2]]
    """
    said = ""
    if threshold is not None:
        if not isinstance(threshold, (int, float)) or math.isnan(threshold):
            raise DataError(
                f"threshold is {threshold!r}", where="argument threshold", fix="give a number"
            )
        (judge, one), (human, two) = (
            cut(v, threshold, n) for v, n in ((judge, "judge"), (human, "human"))
        )
        said = " and ".join(n for n, c in (("judge", one), ("human", two)) if c)
        said = said and f"{said}: at least {threshold:g} is 1"
    p = pairs(judge, human, cluster=cluster, categories=categories)
    more = {"cluster": cluster, "categories": categories, "level": level}
    table = p.table()
    plain, raw = kappa(p, p, **more), accuracy(p, p, **more)
    share = table.sum(0) / max(table.sum(), 1)
    top = float(share.max(initial=0.0))
    warned = (
        trap(raw, plain, top, p.categories[int(share.argmax())])
        if p.n
        else "no row is known to both"
    )
    return Agreement(
        p.categories,
        table,
        plain if weights is None else kappa(p, p, weights=weights, **more),
        ac1(p, p, weights=weights, **more),
        raw,
        balanced_accuracy(p, p, **more),
        mcc(p, p, **more),
        top,
        p.missing_judge,
        p.missing_reference,
        "\n".join(t for t in (p.note, said, warned) if t),
        weights,
    )


def cut(values: Sequence[Any], threshold: float, name: str) -> tuple[np.ndarray, bool]:
    """A column of numbers cut at the threshold, and True; as it is, and False, where it holds only
    0 and 1.
    """
    x = floats(values, name=name)
    known = x[~np.isnan(x)]
    if np.isin(known, (0.0, 1.0)).all() and not 0 < threshold <= 1:
        return x, False
    return np.where(np.isnan(x), np.nan, (x >= threshold).astype(float)), True
