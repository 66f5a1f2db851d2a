"""Columns as statistics read them: numbers, categories, clusters; or names of table columns."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

import numpy as np

from ..errors import DataError


def takes_table(*arguments: str) -> Callable[[Any], Any]:
    """Let a function's first argument be a DataFrame; the named arguments are then column names."""

    def wrap(function: Any) -> Any:
        signature = inspect.signature(function)

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            # A check of the class would have to import pandas first.
            if not args or not hasattr(args[0], "columns"):
                return function(*args, **kwargs)
            table, bound = args[0], signature.bind_partial(*args[1:], **kwargs)
            for name, column in bound.arguments.items():
                if name not in arguments or not isinstance(column, str):
                    continue
                if column not in table.columns:
                    raise DataError(
                        f"there is no column {column!r}",
                        where=name,
                        fix=f"columns: {', '.join(map(str, table.columns))}",
                    )
                bound.arguments[name] = table[column]
            return function(*bound.args, **bound.kwargs)

        return call

    return wrap


def numbers(
    values: Any, name: str = "values", low: float = -np.inf, high: float = np.inf
) -> np.ndarray:
    """Floats (n,), NaN where unknown; DataError names the first row out of range."""
    import pandas as pd

    column = pd.Series(values)
    if not pd.api.types.is_numeric_dtype(column):
        # A text such as "1" is not read as a number: whoever wrote it may mean a category.
        wrong = column.map(lambda v: isinstance(v, str)).to_numpy(bool)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise DataError(
                f"{column.iloc[row]!r} is not a number",
                where=f"{name}, row {row}",
                fix="write None for unknown",
            )
    # Nullable columns hold pd.NA, which numpy cannot turn into a float.
    x = pd.to_numeric(column).to_numpy(float, na_value=np.nan)
    # An infinity would spoil every mean; NaN passes, because it is unknown.
    bad = np.flatnonzero((x < low) | (x > high) | np.isinf(x))
    if len(bad):
        raise DataError(
            f"{x[bad[0]]:g} is not in [{low:g}, {high:g}]",
            where=f"{name}, row {bad[0]}",
        )
    return x


def codes(cluster: Any, n: int) -> np.ndarray | None:
    """Cluster numbers (n,) from 0, or None; DataError where a cluster is unknown."""
    import pandas as pd

    if cluster is None:
        return None
    # by position: a Series keeps its order, whatever its index
    code, _ = pd.factorize(pd.Series(cluster))
    if len(code) != n:
        raise DataError(
            f"there are {len(code)} clusters for {n} rows", where="cluster"
        )
    # Rows of unknown clusters are neither one cluster nor one each.
    if (code < 0).any():
        row = int(np.argmin(code))
        raise DataError(
            "a cluster is unknown", where=f"cluster, row {row}", fix="name it"
        )
    return code


def complete(
    columns: Mapping[str, np.ndarray], cluster: Any
) -> tuple[list[np.ndarray], np.ndarray | None, int]:
    """The rows in which every column (n,) is known, their clusters, and how many are left out."""
    sizes = {name: len(x) for name, x in columns.items()}
    if len(set(sizes.values())) > 1:
        raise DataError(
            f"columns differ in length: {sizes}", where=", ".join(sizes)
        )
    n = next(iter(sizes.values()))
    group = codes(cluster, n)
    # the common case without a copy: a million known rows
    keep = ~np.any([np.isnan(x) for x in columns.values()], axis=0)
    if keep.all():
        return list(columns.values()), group, 0
    if group is not None:
        # Without gaps: an emptied number would count as a cluster that was drawn.
        group = np.unique(group[keep], return_inverse=True)[1]
    return [x[keep] for x in columns.values()], group, int(n - keep.sum())


def level_numbers(
    columns: Mapping[str, Any], levels: Sequence[Any] | None = None
) -> tuple[list[Any], list[np.ndarray]]:
    """The levels that columns share, and each column as level numbers, NaN where unknown.

    Without `levels` one column must hold every level that the others hold: "yes" and "Yes" are an
    error.
    """
    import pandas as pd

    factors = {
        k: pd.factorize(pd.Series(x, dtype=object)) for k, x in columns.items()
    }
    names = {k: [_name(v) for v in unique] for k, (_, unique) in factors.items()}
    every = set().union(*names.values())
    if levels is None:
        every |= {0, 1} if every <= {0, 1} else set()
        common = every <= {0, 1} or any(every == set(v) for v in names.values())
        # The text "1" beside the number 1 is a slip in one of the files.
        if not common or len({isinstance(v, str) for v in every}) > 1:
            text = "; ".join(f"{k}: {v[:8]}" for k, v in names.items())
            raise DataError(
                f"the columns use different categories ({text})",
                where=", ".join(columns),
                fix="write the same values, or pass categories=[worst, ..., best]",
            )
        levels = sorted(every)
    elif strange := every - set(levels):
        raise DataError(
            f"{strange} are not among the categories {list(levels)}", where="values"
        )
    order, out = list(levels), []
    for name, (code, _) in factors.items():
        # code -1 (unknown) picks the last entry
        places = [order.index(v) for v in names[name]] + [np.nan]
        out.append(np.array(places, float)[code])
    return order, out


def _name(level: Any) -> Any:
    """True and 1.0 are the level 1."""
    return (
        int(level) if not isinstance(level, str) and level == int(level) else level
    )
