"""Functions of columns also take a table and the names of its columns: `kappa(frame, "judge",
"human", cluster="task")`.

A table is anything with named columns: a pandas or polars DataFrame, a pyarrow Table, a mapping of
lists. Columns are read by position, never by index label, so a filtered or reordered frame means
what it shows.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from ..errors import DataError

F = TypeVar("F", bound=Callable[..., Any])


def names_of(table: Any) -> list[str] | None:
    """The names of a table's columns; None when it is no table.

    >>> names_of({"p": [0.1]}), names_of([0.1])
    (['p'], None)
    """
    if isinstance(table, Mapping):
        return [str(k) for k in table]
    names = getattr(table, "column_names", None)
    if names is None and hasattr(table, "__getitem__"):
        names = getattr(table, "columns", None)
    return None if names is None or callable(names) else list(names)


def columns_of(table: Any) -> dict[Any, Any]:
    """name -> column of a table.

    >>> columns_of({"p": [0.1]})
    {'p': [0.1]}
    """
    if isinstance(table, Mapping):
        return dict(table)
    return {name: column(table, name, "table") for name in names_of(table) or ()}


def grid(ratings: Any) -> list[list[Any]]:
    """Rows by raters as lists, by position: from lists, an array, or a table with a column a rater.

    >>> grid({"ann": [1, 0], "bob": [1, None]})
    [[1, 1], [0, None]]
    """
    names = names_of(ratings)
    if names is not None and not hasattr(ratings, "to_numpy"):
        return [list(r) for r in zip(*map(_listed, columns_of(ratings).values()), strict=True)]
    array = ratings.to_numpy() if names is not None else ratings
    try:
        rows = list(_listed(array))
    except TypeError:
        rows = [array]  # no rows at all: refused below
    bad = next(
        (i for i, r in enumerate(rows) if isinstance(r, (str, bytes)) or not hasattr(r, "__len__")),
        None,
    )
    if bad is not None:
        raise DataError(
            f"{rows[bad]!r} is no row of ratings",
            where=f"ratings, row {bad}",
            fix="give (items, raters): a row an item, None where not rated",
        )
    return [list(r) for r in rows]


def _listed(values: Any) -> list[Any]:
    return values.tolist() if hasattr(values, "tolist") else list(values)


def column(table: Any, name: Any, argument: str) -> Any:
    """One column as an array or a list, by position; DataError names the columns that are there."""
    names = names_of(table) or []
    if name not in names and str(name) not in names:
        raise DataError(
            f"there is no column {name!r}", where=f"argument {argument}", fix=f"columns: {names}"
        )
    values = table[name]
    others = [] if isinstance(values, np.ndarray) else ["to_numpy", "tolist"]
    to_array = next((k for k in others if hasattr(values, k)), None)
    return getattr(values, to_array)() if to_array else values


def even(table: Any, named: Iterable[Any]) -> None:
    """DataError where a function takes a table's labels, "human" or "correct", that were drawn with
    unequal probability, and not their "inclusion".

    >>> even({"human": [1, 0], "inclusion": [0.5, 0.5]}, ["human"])
    """
    names = set(filter(_is_name, named))
    labels = not names.isdisjoint(("human", "correct")) and "inclusion" not in names
    there = labels and "inclusion" in (names_of(table) or ())
    drawn = column(table, "inclusion", "inclusion") if there else ()
    DataError.first(
        (
            len({x for x in drawn if x is not None and x == x}) > 1,
            "the labels were drawn with unequal probability, and this does not weigh them",
            "column 'inclusion'",
            "kit.agreement and kit.rate (tasks, labels, grades) weigh by its inverse, as `weights` "
            "does where there is one; drop the column if rows count alike",
        )
    )


def takes_table(*arguments: str) -> Callable[[F], F]:
    """Let a function's first argument be a table; the named arguments are then names of its
    columns.

    >>> @takes_table("a", "weight")
    ... def total(a, *, weight=None):
    ...     return sum(x * w for x, w in zip(a, weight or [1] * len(a)))
    >>> total({"x": [1, 2], "w": [3, 4]}, "x", weight="w"), total([1, 2])
    (11, 3)
    """

    def wrap(function: F) -> F:
        signature = inspect.signature(function)

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            said = [kwargs.get(k) for k in ("categories", "threshold")]
            if "categories" in signature.parameters and all(x is None for x in said):
                kwargs |= _order(args)
            if not args or names_of(args[0]) is None:
                _no_rows(args)
                return function(*args, **kwargs)
            table, bound = args[0], signature.bind_partial(*args[1:], **kwargs)
            weighed = "weights" in arguments and bound.arguments.get("weights") is not None
            even(table, () if weighed else bound.arguments.values())
            rest = (x for x in bound.arguments.values() if isinstance(x, dict))  # of **binning
            for given in (bound.arguments, *rest):
                for name in set(arguments) & given.keys():
                    given[name] = _picked(table, given[name], name)
            try:
                signature.bind(*bound.args, **bound.kwargs)
            except TypeError as e:
                raise DataError(
                    str(e),
                    where=function.__name__,
                    fix=f"after a table, name its columns: {names_of(table)}",
                ) from None
            return function(*bound.args, **bound.kwargs)

        return call  # type: ignore[return-value]

    return wrap


def _order(args: tuple[Any, ...]) -> dict[str, Any]:
    """The categories of pandas' ordered categoricals, from the lowest up, where both columns are of
    one such type."""
    names = names_of(args[0]) if args else None
    named = [n for n in args[1:3] if _is_name(n) and n in (names or ())]
    columns = args[:2] if names is None else [args[0][n] for n in named]
    kinds = {getattr(c, "dtype", None) for c in columns}
    kind = kinds.pop() if len(kinds) == 1 else None
    return {"categories": list(kind.categories)} if getattr(kind, "ordered", None) is True else {}


def _no_rows(args: tuple[Any, ...]) -> None:
    """A list of dicts is no table: its columns would be looked up row by row."""
    rows = args[0] if args and isinstance(args[0], list) else []
    if rows and isinstance(rows[0], Mapping):
        raise DataError(
            "a list of rows is no table of columns",
            where="the first argument",
            fix="give a DataFrame, such as pandas.DataFrame(rows), or name -> column",
        )


def _is_name(value: Any) -> bool:
    """A frame made of an array has whole numbers for names."""
    return isinstance(value, (str, int, np.integer)) and not isinstance(value, bool)


def _picked(table: Any, value: Any, name: str) -> Any:
    if _is_name(value):
        return column(table, value, name)
    names = isinstance(value, tuple) and all(map(_is_name, value))
    return tuple(column(table, v, name) for v in value) if names else value
