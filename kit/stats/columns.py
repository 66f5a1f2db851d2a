"""Columns as statistics read them: numbers, categories, clusters; or names of table columns."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, ParamSpec, Protocol, TypeVar, cast, overload

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..errors import DataError
from ..records import count_of
from ..records.tables import table_column

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
# (n,) values: a list, an array or a Series; or the name of a table's column
Column = Iterable[object]
# a category; True and False are the levels 1 and 0
Level = str | float
P = ParamSpec("P")
R = TypeVar("R", covariant=True)


class TableFunction(Protocol[P, R]):
    """A statistic that takes columns, or a table and the names of its columns."""

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    def __call__(
        self, table: pd.DataFrame, /, *args: P.args, **kwargs: P.kwargs
    ) -> R: ...


def takes_table(
    *arguments: str,
) -> Callable[[Callable[P, R]], TableFunction[P, R]]:
    """Let a function's first argument be a DataFrame; the named arguments are then column names."""

    def wrap(function: Callable[P, R]) -> TableFunction[P, R]:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> R:
            if not args or not isinstance(args[0], pd.DataFrame):
                return function(*args, **kwargs)
            bound = inspect.signature(function).bind_partial(*args[1:], **kwargs)
            for name, column in bound.arguments.items():
                if name in arguments and isinstance(column, str):
                    bound.arguments[name] = table_column(args[0], column, name)
            return function(*bound.args, **bound.kwargs)

        return cast("TableFunction[P, R]", call)

    return wrap


def check_choice(name: str, value: object, choices: Sequence[object]) -> None:
    """DataError unless an argument is one of its choices."""
    if value not in choices:
        raise DataError(
            f"{name} is {value!r}",
            where=name,
            fix=" or ".join(map(repr, choices)),
        )


def read_numbers(
    values: Column,
    name: str = "values",
    low: float = -np.inf,
    high: float = np.inf,
) -> Floats:
    """Floats (n,), NaN where unknown; DataError names the first row out of range."""
    column = pd.Series(cast(Any, values))
    if not pd.api.types.is_numeric_dtype(column):
        # A text such as "1" is not read as a number: whoever wrote it may mean a category.
        for row, value in enumerate(column):
            if isinstance(value, str):
                raise DataError(
                    f"{value!r} is not a number",
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


def read_clusters(cluster: Column | None, rows: NDArray[np.bool_]) -> Ints | None:
    """Cluster numbers from 0 of the rows that are True in (n,), or None.

    DataError where a cluster is unknown, also that of a row that is not asked for.
    """
    if cluster is None:
        return None
    # by position: a Series keeps its order, whatever its index
    code, _ = pd.factorize(pd.Series(cast(Any, cluster)))
    if len(code) != len(rows):
        raise DataError(
            f"{count_of(len(code), 'cluster')} for {count_of(len(rows), 'row')}",
            where="cluster",
        )
    # Rows of unknown clusters are neither one cluster nor one each.
    if (code < 0).any():
        raise DataError(
            "a cluster is unknown",
            where=f"cluster, row {np.argmin(code)}",
            fix="name it",
        )
    # without gaps: an emptied number would count as a cluster that was drawn
    return pd.factorize(code[rows], sort=True)[0]


def complete_rows(
    columns: Mapping[str, Floats],
    cluster: Column | None,
    needed: Sequence[str] | None = None,
) -> tuple[Floats, Ints | None, int]:
    """Of k columns (n,) the rows (k, m) that are known in all, their clusters, and how many are not.

    needed : the columns in which a row must be known, where not in all.
    """
    sizes = {name: len(x) for name, x in columns.items()}
    if len(set(sizes.values())) > 1:
        raise DataError(
            f"columns differ in length: {sizes}", where=", ".join(sizes)
        )
    values = np.stack(list(columns.values()))
    rows = [name in (columns if needed is None else needed) for name in columns]
    is_known = ~np.asarray(np.isnan(values[rows]).any(axis=0))
    group, left_out = read_clusters(cluster, is_known), int((~is_known).sum())
    return np.compress(is_known, values, axis=1), group, left_out


def level_numbers(
    columns: Mapping[str, Column], levels: Sequence[Level] | None = None
) -> tuple[list[Level], dict[str, Floats]]:
    """The levels that columns share, and each column as level numbers, NaN where unknown.

    Without `levels` one column must hold every level that the others hold: "yes" and "Yes" are an
    error.
    """
    codes = {
        name: pd.factorize(pd.Series(cast(Any, values), dtype=object))
        for name, values in columns.items()
    }
    names = {
        name: [_level_key(level) for level in uniques]
        for name, (_, uniques) in codes.items()
    }
    every: set[Level] = set().union(*names.values())
    if levels is None:
        levels = _common_levels(names, every)
    elif strange := every - set(levels):
        raise DataError(
            f"{strange} are not among the categories {list(levels)}", where="values"
        )
    return list(levels), {
        # the code of an unknown value is -1, which picks the last entry
        name: np.array([*map(levels.index, names[name]), np.nan])[code]
        for name, (code, _) in codes.items()
    }


def _common_levels(
    names: Mapping[str, Sequence[Level]], every: set[Level]
) -> list[Level]:
    """The sorted levels of columns that use one set of categories; DataError where they do not."""
    if every <= {0, 1}:
        return [0, 1]
    # The text "1" beside the number 1 is a slip in one of the files.
    is_mixed = len({isinstance(v, str) for v in every}) > 1
    if is_mixed or every not in map(set, names.values()):
        text = "; ".join(f"{k}: {v[:8]}" for k, v in names.items())
        raise DataError(
            f"the columns use different categories ({text})",
            where=", ".join(names),
            fix="write the same values, or pass categories=[worst, ..., best]",
        )
    return sorted(every)


def _level_key(level: Level) -> Level:
    """True and 1.0 are the level 1."""
    if isinstance(level, str) or level != int(level):
        return level
    return int(level)
