"""Reading what the caller gave: confidences, outcomes, weights, clusters. Nothing is clipped; what
is wrong is named by its row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import DataError
from ..stats.clusters import codes as numbered
from ..stats.clusters import numbers, one_column

MOST_ROWS = 1e15  # above it a count is no longer exact, and its square may overflow
CHUNK = 1 << 15  # rows per step: the buffers of a step stay in the L2 cache


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
    def size(self) -> float:
        """Sum of the weights (= n without weights)."""
        return float(len(self.conf) if self.weights is None else self.weights.sum())


def _as_float(values: Any, name: str) -> np.ndarray:
    """A 1-d numeric array; None becomes NaN; text is refused with its row."""
    try:
        a = one_column(values, name)
    except DataError as e:
        fix = "pass one number per row; class probabilities: calibration.top_label(probs, labels)"
        raise DataError(e.what, where=f"argument {name}", fix=fix) from None
    if a.dtype.kind in "fiub":
        return a
    try:
        return numbers(values, name)
    except DataError as e:
        row = int(e.where.rsplit(" ", 1)[1])
        value = list(values)[row]
        words = f"the text {str(value)[:60]!r}" if isinstance(value, (str, bytes)) else repr(value)
        raise DataError(
            f"{name} is {words[:80]}, not a number",
            where=f"row {row} (the first row is 0), {name}",
            fix=_mend(name),
        ) from None


def _mend(name: str) -> str:
    if name == "conf":
        return "use kit.confidence.extract for text replies, float(...) for digits in quotes"
    return "write True / False or 1 / 0"


def _in_range(a: np.ndarray) -> bool:
    """True when every value is in [0, 1]; chunked, and NaN fails."""
    if a.dtype == bool:
        return True
    for i in range(0, len(a), CHUNK):
        part = a[i : i + CHUNK]
        if not (part.min() >= 0 and part.max() <= 1):
            return False
    return True


def _binary(a: np.ndarray) -> bool:
    """True when every value is 0 or 1."""
    if a.dtype.kind in "bui":
        return _in_range(a)
    return all(
        bool(((p == 0) | (p == 1)).all())
        for p in (a[i : i + CHUNK] for i in range(0, len(a), CHUNK))
    )


def _bad_conf(conf: np.ndarray, row: int) -> DataError:
    v = conf[row]
    if np.isnan(v):
        what, fix = (
            "confidence is NaN",
            'parse it, drop the row, or pass missing="count" to leave such rows out and count them',
        )
    else:
        what = f"confidence is {v:g}, outside [0, 1]"
        finite = conf[np.isfinite(conf)]
        top = float(finite.max(initial=0.0))
        percent = v > 1 and finite.min() >= 0 and 10 <= top <= 100 and (finite > 1).mean() >= 0.5
        fix = (
            "these look like percents: divide by 100"
            if percent
            else 'mend the row, or pass missing="count" to leave such rows out and count them; '
            "nothing is clipped"
        )
    return DataError(what, where=f"row {row} (the first row is 0), conf", fix=fix)


def _bad_correct(correct: np.ndarray, row: int) -> DataError:
    v = correct[row]
    what = "correct is NaN" if np.isnan(v) else f"correct is {v:g}, neither 0 nor 1"
    fix = (
        'drop the row, or pass missing="count"'
        if np.isnan(v)
        else "decide what counts as correct first, for example correct = score > 0.5"
    )
    return DataError(what, where=f"row {row} (the first row is 0), correct", fix=fix)


def codes(cluster: Any, n: int) -> tuple[np.ndarray, int]:
    """Cluster labels of any hashable kind as codes 0..C-1, and C; DataError where a label is
    missing.

    >>> codes(["b", "a", "b"], 3)[1]
    2
    """
    try:
        return numbered(cluster, n)
    except DataError as e:
        _, _, row = e.where.rpartition("row ")
        where = f"row {row} (the first row is 0), cluster" if row.isdigit() else "argument cluster"
        raise DataError(e.what, where=where, fix=e.fix) from None


def _weights(weights: Any, n: int) -> np.ndarray | None:
    if weights is None:
        return None
    w = _as_float(weights, "weights").astype(float)
    if len(w) != n:
        raise DataError(
            f"weights has {len(w)} rows, conf has {n}",
            where="argument weights",
            fix="pass one weight per row",
        )
    bad = np.flatnonzero(~(np.isfinite(w) & (w >= 0)))
    if len(bad):
        raise DataError(
            f"weight is {w[bad[0]]:g}",
            where=f"row {bad[0]} (the first row is 0), weights",
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
) -> Inputs:
    """Check rows and return them as arrays, without copying where nothing had to be left out.

    conf : (n,) in [0, 1]. correct : (n,) of True / False / 1 / 0. weights : (n,) >= 0. cluster :
        (n,) labels.
    missing : "raise" names the first bad row; "count" leaves rows out whose confidence or outcome
        is None, NaN or impossible, and counts them. Raises DataError.

    >>> check([0.2, None], [1, 0], missing="count").missing
    1
    """
    if missing not in ("raise", "count"):
        raise DataError(
            f"missing is {missing!r}", where="argument missing", fix='use "raise" or "count"'
        )
    p, y = _as_float(conf, "conf"), _as_float(correct, "correct")
    if len(p) != len(y):
        raise DataError(
            f"conf has {len(p)} rows, correct has {len(y)}",
            where="arguments conf, correct",
            fix="pass one outcome per confidence",
        )
    if len(p) == 0 and not allow_empty:
        raise DataError(
            "there are no rows", where="arguments conf, correct", fix="pass at least one row"
        )
    if p.dtype == bool:
        raise DataError(
            "confidence is True / False, not a probability",
            where="argument conf",
            fix="were conf and correct swapped?",
        )
    if p.dtype.kind in "iu" or p.dtype not in (np.float32, np.float64):
        p = p.astype(float)
    w = _weights(weights, len(p))
    group, n_groups = codes(cluster, len(p)) if cluster is not None else (None, None)
    lost = 0
    if not (_in_range(p) and _binary(y)):
        p, y, w, group, n_groups, lost = _leave_out(p, y, w, group, n_groups, missing)
    return Inputs(p, y, w, group, n_groups, lost)


def _leave_out(
    p: np.ndarray, y: np.ndarray, w: Any, group: Any, n_groups: Any, missing: str
) -> tuple[Any, ...]:
    good_p, good_y = (p >= 0) & (p <= 1), (y == 0) | (y == 1)
    keep = good_p & good_y
    row = int(np.argmin(keep))
    if missing == "raise" or not keep.any():
        raise _bad_conf(p, row) if not good_p[row] else _bad_correct(y, row)
    if group is not None:
        left, group = np.unique(group[keep], return_inverse=True)
        n_groups = len(left)
    return p[keep], y[keep], None if w is None else w[keep], group, n_groups, int((~keep).sum())
