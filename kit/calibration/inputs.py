"""Reading what the caller gave: confidences, outcomes, weights, clusters. Nothing is clipped; what
is wrong is named by its row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from ..errors import DataError
from ..stats.clusters import codes, numbers, one_column, same_length

MOST_ROWS = 1e15  # above it a count is no longer exact, and its square may overflow
CHUNK = 1 << 15  # rows per step: the buffers of a step stay in the L2 cache


class Columns:
    """A dataclass some of whose fields are arrays of one length, the columns of its table."""

    def table(self: Any) -> list[dict[str, float]]:
        """One dict per row."""
        columns = {f.name: getattr(self, f.name) for f in fields(self)}
        columns = {k: v for k, v in columns.items() if isinstance(v, np.ndarray)}
        rows = zip(*columns.values(), strict=True)
        return [dict(zip(columns, map(float, row), strict=True)) for row in rows]


@dataclass(frozen=True)
class Inputs:
    """Checked rows.

    conf : (n,) float32 or float64 in [0, 1]. correct : (n,) of 0 / 1, any numeric dtype.
    weights : (n,) float64 >= 0, how many rows each row stands for, or None.
    cluster : (n,) codes 0..n_clusters-1, or None. missing : rows left out because a value was
        unknown or impossible.
    """

    conf: np.ndarray
    correct: np.ndarray
    weights: np.ndarray | None = None
    cluster: np.ndarray | None = None
    n_clusters: int | None = None
    missing: int = 0

    @property
    def n(self) -> int:
        """Rows used."""
        return len(self.conf)

    @property
    def group(self) -> np.ndarray:
        """The cluster of each row (n,), its own where there are none."""
        return np.arange(self.n) if self.cluster is None else self.cluster

    @property
    def size(self) -> float:
        """Sum of the weights (= n without weights)."""
        return float(len(self.conf) if self.weights is None else self.weights.sum())


def _column(values: Any, name: str) -> np.ndarray:
    """A 1-d numeric array; None becomes NaN; text is refused with its row."""
    try:
        a = one_column(values, name)
        return a if a.dtype.kind in "fiub" else numbers(values, name)
    except DataError as e:
        grid = f"argument {name}" if "shape" in e.what else e.where
        raise DataError(e.what, where=grid, fix=FIXES.get(name, e.fix)) from None


LEFT_OUT = 'leave such rows out: missing="count" (--missing count)'
FIXES = {
    "conf": "one number per row; text replies: kit.confidence.extract, digits in quotes: float(), "
    "class probabilities: calibration.classwise(probs, labels)",
    "correct": "write True / False or 1 / 0",
}


def _in_range(a: np.ndarray) -> bool:
    """True when every value is in [0, 1]; chunked, and NaN fails."""
    return a.dtype == bool or all(p.min() >= 0 and p.max() <= 1 for p in _parts(a))


def _binary(a: np.ndarray) -> bool:
    """True when every value is 0 or 1."""
    whole = a.dtype.kind in "bui"
    return _in_range(a) if whole else all(((p == 0) | (p == 1)).all() for p in _parts(a))


def _parts(a: np.ndarray) -> Iterator[np.ndarray]:
    return (a[i : i + CHUNK] for i in range(0, len(a), CHUNK))


def _bad(conf: np.ndarray, correct: np.ndarray, row: int, name: str) -> DataError:
    """What is wrong with a row."""
    p = float(conf[row])
    y = float(correct[row])
    if 0 <= p <= 1:
        what = "correct is NaN" if np.isnan(y) else f"correct is {y:g}, neither 0 nor 1"
        fix = "decide what counts as correct first, for example correct = score > 0.5"
        fix += f", or {LEFT_OUT}"
        return DataError(what, where=f"correct, row {row}", fix=fix)
    called = "confidence" if name == "conf" else name
    what = f"{called} is NaN" if np.isnan(p) else f"{called} is {p:.15g}, outside [0, 1]"
    fix = f"mend the row, or {LEFT_OUT}; nothing is clipped"
    fix = fix if name == "conf" else "mend the row, or leave it out of every column"
    known = conf[np.isfinite(conf)]
    if p > 1 and 10 <= known.max() <= 100 and known.min() >= 0 and (known > 1).mean() >= 0.5:
        fix = "these look like percents: divide by 100"
    return DataError(what, where=f"{name}, row {row}", fix=fix)


def _weights(weights: Any, n: int) -> np.ndarray | None:
    if weights is None:
        return None
    w = _column(weights, "weights").astype(float)
    same_length(conf=range(n), weights=w)
    bad = np.flatnonzero(~(np.isfinite(w) & (w >= 0)))
    if len(bad):
        raise DataError(
            f"weight is {w[bad[0]]:g}",
            where=f"weights, row {bad[0]}",
            fix="weights are finite and >= 0",
        )
    if not 0 < w.sum() < MOST_ROWS:
        raise DataError(
            "all weights are 0" if w.sum() <= 0 else f"the weights sum to {w.sum():g}",
            where="argument weights",
            fix=f"a weight is how many rows one stands for: together above 0, below {MOST_ROWS:g}",
        )
    return w


def check(
    conf: Any,
    correct: Any,
    *,
    weights: Any = None,
    cluster: Any = None,
    missing: str = "raise",
    allow_empty: bool = False,
    name: str = "conf",
) -> Inputs:
    """Check rows and return them as arrays, without copying where nothing had to be left out.

    conf : (n,) in [0, 1]. correct : (n,) of True / False / 1 / 0. weights : (n,) >= 0. cluster :
        (n,) labels.
    missing : "raise" names the first bad row; "count" leaves rows out whose confidence or outcome
        is None, NaN or impossible, and counts them. name : what errors call the confidences.
        Raises DataError.

    >>> check([0.2, None], [1, 0], missing="count").missing
    1
    """
    DataError.other("missing", missing, ("raise", "count"), "argument missing")
    p, y = _column(conf, name), _column(correct, "correct")
    DataError.first(
        (
            len(p) != len(y),
            f"{name} has {len(p)} rows, correct has {len(y)}",
            f"arguments {name}, correct",
            "pass one outcome per confidence",
        ),
        (
            len(p) == 0 and not allow_empty,
            "there are no rows",
            "arguments conf, correct",
            "pass at least one row",
        ),
        (
            p.dtype == bool,
            "confidence is True / False, not a probability",
            "argument conf",
            "were conf and correct swapped?",
        ),
    )
    if p.dtype.kind in "iu" or p.dtype not in (np.float32, np.float64):
        p = p.astype(float)
    w = _weights(weights, len(p))
    group, n_groups = codes(cluster, len(p)) if cluster is not None else (None, None)
    x = Inputs(p, y, w, group, n_groups)
    if not (_in_range(p) and _binary(y)):
        keep = (p >= 0) & (p <= 1) & ((y == 0) | (y == 1))
        if missing == "raise" or not (allow_empty or keep.any()):
            raise _bad(p, y, int(np.argmin(keep)), name)
        x = _only(replace(x, missing=int((~keep).sum())), keep)
    return x if w is None or w.all() else _only(x, x.weights > 0)  # weight 0 is no row


def _only(x: Inputs, keep: np.ndarray) -> Inputs:
    w, group, n_groups = x.weights, x.cluster, x.n_clusters
    if group is not None:
        left, group = np.unique(group[keep], return_inverse=True)
        n_groups = len(left)
    w = None if w is None else w[keep]
    return replace(
        x, conf=x.conf[keep], correct=x.correct[keep], weights=w, cluster=group, n_clusters=n_groups
    )
