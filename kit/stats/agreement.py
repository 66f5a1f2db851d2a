"""Agreement of a judge with a reference: kappa, pi, AC1 / AC2, accuracy, balanced accuracy, MCC,
F1, each with a clustered interval.

Conventions. The first column is the judge, the second the reference (a human). A row in which
either is unknown (None, NaN, a word such as n/a) is left out and counted in `missing`. Values that
are all 0 / 1 / True / False make the two categories 0 and 1 even when one does not occur. Interval:
cluster jackknife-t (Efron & Tibshirani 1993, ch. 11); `se="linear"` gives the cluster-robust delta
method, which without clusters is the textbook standard error (Fleiss, Cohen & Everitt 1969; Gwet
2008).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from numbers import Real
from types import NoneType
from typing import Any

import numpy as np

from ..errors import DataError
from .clusters import cell_sums, codes, estimate, is_unknown, no_surer, same_length, unmasked
from .columns import takes_table
from .estimate import Estimate
from .rates import mean
from .shares import share
from .vocabulary import ordered, refuse_levels, shared, unsaid

Weights = str | np.ndarray | None
SAME = "no disagreement seen: the lower limit is Wilson's for the raw agreement"
CATEGORY = (str, Real, Decimal, NoneType, np.bool_)


@dataclass(frozen=True)
class Pairs:
    """Two columns as category numbers: judge, reference (n,), cluster (n,), the categories, and how
    many rows were unknown.
    """

    categories: tuple[Any, ...]
    judge: np.ndarray
    reference: np.ndarray
    cluster: np.ndarray
    missing: int
    missing_judge: int
    missing_reference: int
    note: str = ""  # how two vocabularies were brought together

    @property
    def n(self) -> int:
        """Known rows."""
        return len(self.judge)

    def sums(self) -> np.ndarray:
        """Confusion counts by cluster (C, q * q), judge major."""
        q = len(self.categories)
        return cell_sums(self.judge * q + self.reference, q * q, self.cluster)

    def table(self) -> np.ndarray:
        """Confusion counts (q, q): rows the judge, columns the reference."""
        q = len(self.categories)
        return np.bincount(self.judge * q + self.reference, minlength=q * q).reshape(q, q)


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, bool):
        return int(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _categories(values: set[Any], given: Sequence[Any] | None) -> tuple[Any, ...]:
    if given is not None:
        cats = tuple(_plain(c) for c in given)
        extra = sorted((v for v in values if v not in cats), key=repr)
        if extra:
            raise DataError(
                f"values outside the categories: {extra[:5]}",
                where="categories",
                fix=f"categories given: {list(cats)[:12]}",
            )
        return cats
    if values and values <= {0, 1}:
        return (0, 1)
    if len({isinstance(v, str) for v in values}) > 1:
        raise DataError(
            "one column holds text and the other numbers",
            where="judge, human",
            fix="give both in the same values, such as met / unmet",
        )
    return tuple(sorted(values))


def pairs(
    a: Sequence[Any],
    b: Sequence[Any],
    *,
    cluster: Sequence[Any] | None = None,
    categories: Sequence[Any] | None = None,
) -> Pairs:
    """Read two columns into category numbers; unknown rows are left out and counted. What is read
    already comes back as it is: a report asks five measures of the same rows.

    >>> p = pairs(["met", "unmet", None], ["met", "met", "met"])
    >>> p.table().tolist(), p.missing
    ([[1, 0], [1, 0]], 1)
    """
    if isinstance(a, Pairs):
        return a
    n = same_length(judge=a, human=b, cluster=cluster)
    for name, column in (("judge", a), ("human", b)):
        same_length(**{name: column})
    group, columns = codes(cluster, n)[0], {"judge": a, "human": b}
    at, cats, said = numbered(columns, categories, whole_rows=True)
    keep = (at >= 0).all(1)
    gone = [int((~keep).sum()), *(at < 0).sum(0).tolist()]
    return Pairs(cats, *at[keep].T, group[keep], *gone, said)


def numbered(
    columns: Mapping[str, Sequence[Any]],
    categories: Sequence[Any] | None = None,
    *,
    whole_rows: bool = False,
) -> tuple[np.ndarray, tuple[Any, ...], str]:
    """Columns as category numbers of one vocabulary (n, columns), -1 where unknown; the
    categories; and how vocabularies were brought together.

    whole_rows : the columns are compared row by row. Categories are then those of the rows where
        all are known, and levels beside 0 and 1 are refused.

    >>> numbered({"a": ["met", None], "b": ["yes", "no"]})[:2]
    (array([[ 1,  1],
           [-1,  0]]), (0, 1))
    """
    levels, at = zip(*(coded(c, categories) for c in columns.values()), strict=True)
    rows = np.stack(at, 1)
    words, said = {}, ""
    if categories is None:
        values = dict(zip(columns, levels, strict=True))
        if whole_rows:
            refuse_levels(values)
        words, said = shared(values)
    known = rows[(rows >= 0).all(1)] if whole_rows else rows
    seen = {v[i] for v, j in zip(levels, known.T, strict=True) for i in np.unique(j[j >= 0])}
    cats = _categories({words.get(x, x) for x in seen}, categories)
    number = {c: i for i, c in enumerate(cats)}
    none = len(cats)  # the place of a value that only rows with an unknown hold
    place = (np.array([*(number.get(words.get(x, x), none) for x in v), -1]) for v in levels)
    return np.stack([p[j] for p, j in zip(place, at, strict=True)], 1), cats, said


def coded(values: Sequence[Any], categories: Sequence[Any] | None) -> tuple[list[Any], np.ndarray]:
    """The distinct known values, and each row's place among them (n,), -1 where it is unknown."""
    x = _numbers(values)
    if x is None:
        return _read(values, categories)
    known = ~np.isnan(x)
    levels, inverse = np.unique(x[known], return_inverse=True)
    at = np.full(len(x), -1)
    at[known] = inverse
    return [_plain(v) for v in levels.tolist()], at


def _numbers(values: Sequence[Any]) -> np.ndarray | None:
    """The column as floats when it holds only numbers, booleans and unknowns that floats keep
    exactly; else None.
    """
    try:
        array = np.asarray(unmasked(values))
    except ValueError:  # rows of different lengths: named where they are read one by one
        return None
    if array.dtype == object and array.ndim == 1:
        if not all(
            v is None or isinstance(v, (bool, int, float, np.bool_, np.number)) for v in array
        ):
            return None
        array = np.array([math.nan if v is None else v for v in array], dtype=float)
    if (
        array.ndim != 1
        or array.dtype.kind not in "biuf"
        or (len(array) and np.nanmax(np.abs(array.astype(float)), initial=0.0) >= 2**53)
    ):
        return None
    return array.astype(float)


def _read(values: Sequence[Any], categories: Sequence[Any] | None) -> tuple[list[Any], np.ndarray]:
    """As `coded`; a million rows hold few values, and each of these is read once."""
    raw = values.tolist() if hasattr(values, "tolist") else list(values)
    odd = {t for t in set(map(type, raw)) if not issubclass(t, CATEGORY)}
    for i, v in enumerate(raw if odd else ()):
        if type(v) in odd and not is_unknown(v):
            raise DataError(
                f"{v!r} is no category", where=f"row {i}", fix="give text, numbers or True / False"
            )
        raw[i] = None if type(v) in odd else v  # what numpy masks has no hash
    place: dict[Any, int] = {}
    at = np.array([place.setdefault(v, len(place)) for v in raw], np.int64)
    known: dict[Any, int] = {}
    code = [-1 if unsaid(v, categories) else known.setdefault(_plain(v), len(known)) for v in place]
    return list(known), np.array(code, np.int64)[at]


def weighted(weights: Weights) -> str:
    """What the name of a measure says of its weights.

    >>> weighted("linear"), weighted(None)
    (' (linear weights)', '')
    """
    if weights is None:
        return ""
    return f" ({weights if isinstance(weights, str) else 'given'} weights)"


def weight_matrix(
    weights: Weights, categories: Sequence[Any], *, in_order: bool = True
) -> np.ndarray:
    """Agreement weights (q, q) in [0, 1] with ones on the diagonal: None, "linear", "quadratic", or
    a matrix.

    Numeric categories are placed at their values, others at their position in the order that the
    user gave: a DataError where none was (in_order=False).

    >>> weight_matrix("quadratic", [1, 2, 3]).tolist()
    [[1.0, 0.75, 0.0], [0.75, 1.0, 0.75], [0.0, 0.75, 1.0]]
    """
    q = len(categories)
    if weights is None:
        return np.eye(q)
    if isinstance(weights, str):
        if weights not in ("linear", "quadratic"):
            raise DataError(
                f"weights is {weights!r}",
                where="weights",
                fix='use None, "linear", "quadratic" or a (q, q) matrix',
            )
        ordered(categories, in_order)
        numeric = all(isinstance(c, (int, float)) for c in categories)
        at = np.array(categories if numeric else range(q), float)
        gap = np.abs(at[:, None] - at[None, :]) / max(float(np.ptp(at)), 1e-300)
        return 1 - (gap if weights == "linear" else gap**2)
    w = np.asarray(weights, float)
    if w.shape != (q, q) or not np.allclose(np.diag(w), 1):
        raise DataError(
            f"weights have shape {w.shape}, or a diagonal that is not 1",
            where="weights",
            fix=f"give a ({q}, {q}) matrix with ones on it",
        )
    return w


def _share(t: np.ndarray, q: int) -> np.ndarray:
    p = t.reshape(*t.shape[:-1], q, q)
    return p / p.sum(axis=(-1, -2), keepdims=True)


def _raw(s: np.ndarray) -> np.ndarray:
    return np.trace(s, axis1=-2, axis2=-1)


def _recalls(s: np.ndarray) -> np.ndarray:
    """Mean over the categories that occur of the share that the judge gets right."""
    size = s.sum(-2)
    there = np.real(size) > 1e-12
    recall = np.diagonal(s, axis1=-2, axis2=-1) / np.where(there, size, 1)
    return (recall * there).sum(-1) / there.sum(-1)


def _beyond(chance: Callable[..., np.ndarray], s: np.ndarray, w: np.ndarray) -> np.ndarray:
    pe = chance(s, w)
    agreed = (s * w).sum(axis=(-1, -2))
    room = np.where(np.abs(1 - pe) < 1e-14, np.nan, 1 - pe)
    return (agreed - pe) / room


def table_stat(measure: str, q: int) -> Callable[[np.ndarray], np.ndarray]:
    """The measure as a function of flattened confusion sums (..., q * q) -> (...)."""
    named = {
        "accuracy": _raw,
        "balanced_accuracy": _recalls,
        "kappa": lambda s: _beyond(_cohen, s, np.eye(q)),
        "ac1": lambda s: _beyond(_gwet, s, np.eye(q)),
    }
    DataError.other("measure", measure, named, "measure")
    return lambda t: named[measure](_share(t, q))


def _cohen(p: np.ndarray, w: np.ndarray) -> np.ndarray:
    return np.einsum("...i,ij,...j->...", p.sum(-1), w, p.sum(-2))


def _gwet(p: np.ndarray, w: np.ndarray) -> np.ndarray:
    m, q = (p.sum(-1) + p.sum(-2)) / 2, p.shape[-1]
    if q < 2:
        return m.sum(-1) * np.nan
    apart = w.sum() / (q * (q - 1))
    return apart * (m * (1 - m)).sum(-1)


def _chance_corrected(
    name: str,
    chance: Callable[[np.ndarray, np.ndarray], np.ndarray],
    p: Pairs,
    weights: Weights,
    level: float,
    se: str,
    given: bool = False,
) -> Estimate:
    w = weight_matrix(weights, p.categories, in_order=given)
    out = _of_table(name + weighted(weights), lambda s: _beyond(chance, s, w), p, w, level, se)
    if p.n and math.isnan(out.value):
        return replace(out, note="undefined: both columns always give the same category")
    return out


@takes_table("a", "b", "cluster")
def kappa(
    a: Sequence[Any],
    b: Sequence[Any],
    *,
    cluster: Sequence[Any] | None = None,
    weights: Weights = None,
    categories: Sequence[Any] | None = None,
    level: float = 0.95,
    se: str = "jackknife",
) -> Estimate:
    """Cohen's kappa, (po - pe) / (1 - pe), of judge `a` with reference `b`.

    a, b : (n,) categories; cluster : (n,) prompt of each row. weights : None (nominal), "linear",
        "quadratic" or a (q, q) matrix.
    Source: Cohen 1960, 1968. Range [-1, 1]; NaN when both always give the same one category.

    >>> print(kappa([1, 1, 0, 0, 1, 0], [1, 1, 0, 0, 0, 0], cluster=["a", "a", "b", "b", "c", "c"]))
    .667 [-1.00, 1.00], n=6 in 3 clusters
    """
    return _chance_corrected(
        "Cohen's kappa",
        _cohen,
        pairs(a, b, cluster=cluster, categories=categories),
        weights,
        level,
        se,
        categories is not None,
    )


@takes_table("a", "b", "cluster")
def ac1(
    a: Sequence[Any],
    b: Sequence[Any],
    *,
    cluster: Sequence[Any] | None = None,
    weights: Weights = None,
    categories: Sequence[Any] | None = None,
    level: float = 0.95,
    se: str = "jackknife",
) -> Estimate:
    """Gwet's AC1 (AC2 with weights): chance = sum(w) / (q (q - 1)) * sum pi (1 - pi) (Gwet 2008;
    2014).

    Give `categories` when not every possible one occurs: their number enters the chance term.
    """
    return _chance_corrected(
        "Gwet's AC1" if weights is None else "Gwet's AC2",
        _gwet,
        pairs(a, b, cluster=cluster, categories=categories),
        weights,
        level,
        se,
        categories is not None,
    )


def _of_table(
    name: str,
    stat: Callable[[np.ndarray], np.ndarray],
    p: Pairs,
    w: np.ndarray,
    level: float,
    se: str,
    low: float = -1.0,
    size: np.ndarray | None = None,
) -> Estimate:
    q, sums = len(p.categories), p.sums()

    def of_sums(t: np.ndarray) -> np.ndarray:
        return stat(_share(t, q))

    out = estimate(
        of_sums,
        sums,
        n=p.n,
        method=name,
        missing=p.missing,
        level=level,
        se=se,
        bounds=(low, 1.0),
        size=sums.sum(1) if size is None else size,
        kinds=np.eye(q * q)[:: q + 1],  # both name one category
    )
    same = out.value > 1 - 1e-12
    if math.isnan(out.low) or (se == "linear" and not same):  # the textbook's
        return out
    near = replace(out, low=1.0, high=1.0, note=SAME) if same else out
    return no_surer(
        near,
        of_sums,
        np.eye(q * q),
        1 - w.ravel(),
        p.judge * q + p.reference,
        p.cluster,
        (low, 1.0),
    )


def _by_category(p: Pairs, *sides: int) -> np.ndarray:
    """Rows (k, C) of each category that occurs, by cluster; sides : 1 the judge's, 2 the
    reference's.
    """
    q = len(p.categories)
    sums = p.sums()
    table = sums.reshape(len(sums), q, q)
    kinds = np.concatenate([table.sum(3 - side).T for side in sides])
    seen = np.tile(table.sum((0, 1)) + table.sum((0, 2)) > 0, len(sides))
    return kinds[seen & (kinds.sum(1) > 0)] if sides == (2,) else kinds[seen]


@takes_table("a", "b", "cluster")
def accuracy(
    a: Sequence[Any],
    b: Sequence[Any],
    *,
    cluster: Sequence[Any] | None = None,
    weights: Weights = None,
    categories: Sequence[Any] | None = None,
    level: float = 0.95,
    se: str = "jackknife",
) -> Estimate:
    """Raw agreement: share of rows in which both say the same (weighted when asked). Range [0, 1].

    Interval: Wilson's on the effective rows (`shares.share`), never of zero width.
    """
    p = pairs(a, b, cluster=cluster, categories=categories)
    w = weight_matrix(weights, p.categories, in_order=categories is not None)
    if weights is None and se == "jackknife":
        group = None if cluster is None else p.cluster
        out = mean(p.judge == p.reference, cluster=group, level=level, bounds=(0.0, 1.0))
        return replace(out, missing=p.missing, method=f"raw agreement, {out.method}")
    return _of_table(
        "raw agreement" + weighted(weights),
        lambda s: (s * w).sum(axis=(-1, -2)),
        p,
        w,
        level,
        se,
        0.0,
    )


@takes_table("a", "b", "cluster")
def balanced_accuracy(
    a: Sequence[Any],
    b: Sequence[Any],
    *,
    cluster: Sequence[Any] | None = None,
    categories: Sequence[Any] | None = None,
    level: float = 0.95,
    se: str = "jackknife",
) -> Estimate:
    """Mean over the categories of the reference of the share that the judge gets right; absent
    categories are left out. Range [0, 1].
    """
    p = pairs(a, b, cluster=cluster, categories=categories)
    w = np.eye(len(p.categories))
    out = _of_table("balanced accuracy", _recalls, p, w, level, se, 0.0, _by_category(p, 2))
    gone = [c for c, m in zip(p.categories, p.table().sum(0), strict=True) if m == 0]
    low, high = _of_recalls(p, out, level)
    return replace(
        out,
        low=low,
        high=high,
        note="; ".join(
            t for t in (out.note, f"the reference never says {gone}" if gone else "") if t
        ),
    )


def said_of(p: Pairs, said: int, truth: int, *, clustered: bool, level: float) -> Estimate:
    """The share of the rows of one category of the reference of which the judge says another."""
    here = p.reference == truth
    group = codes(p.cluster[here], int(here.sum()))[0] if clustered else None
    return share((p.judge[here] == said).astype(float), np.ones(here.sum()), group, level=level)


def _of_recalls(p: Pairs, e: Estimate, level: float) -> tuple[float, float]:
    """Limits no narrower than those of the recalls together (Zou & Donner 2008): a rare category
    judged right each time has no spread.
    """
    occur = np.flatnonzero(p.table().sum(0))
    recalls = [said_of(p, k, k, clustered=True, level=level) for k in occur]
    q = max(len(recalls), 1)
    down = math.hypot(*(r.value - r.low for r in recalls)) / q
    up = math.hypot(*(r.high - r.value for r in recalls)) / q
    if math.isnan(e.low):
        return e.low, e.high
    return max(min(e.low, e.value - down), 0.0), min(max(e.high, e.value + up), 1.0)


@takes_table("a", "b", "cluster")
def mcc(
    a: Sequence[Any],
    b: Sequence[Any],
    *,
    cluster: Sequence[Any] | None = None,
    categories: Sequence[Any] | None = None,
    level: float = 0.95,
    se: str = "jackknife",
) -> Estimate:
    """Matthews correlation, for any number of categories (Gorodkin 2004). Range [-1, 1]; NaN when
    either column is constant.
    """

    def stat(s: np.ndarray) -> np.ndarray:
        r, c = s.sum(-1), s.sum(-2)
        top = _raw(s) - (r * c).sum(-1)
        under = (1 - (r * r).sum(-1)) * (1 - (c * c).sum(-1))
        return top / np.sqrt(np.where(np.abs(under) < 1e-14, np.nan, under))

    p = pairs(a, b, cluster=cluster, categories=categories)
    w = np.eye(len(p.categories))
    return _of_table("Matthews correlation", stat, p, w, level, se, size=_by_category(p, 1, 2))
