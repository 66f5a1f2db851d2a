"""Tables that a JSON object holds by column, as pandas writes them, as rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..errors import DataError
from .chats import PROMPTS

Table = tuple[list[str], list[Any], list[Any]]  # names of the columns, labels and cells of rows


def columnar(value: Mapping[str, Any], where: str) -> Table | None:
    """The table that the object holds split, by column, or as lists side by side; None for another
    object.

    >>> columnar({"prompt": {"0": "p", "1": "q"}, "weight": {"1": 2, "0": 1}}, "a.json")
    (['prompt', 'weight'], ['0', '1'], [['p', 1], ['q', 2]])
    """
    held = list(value.values())
    if value.keys() <= {"columns", "index", "data"} and value.keys() >= {"columns", "data"}:
        return _split(value, where)
    if not set(PROMPTS) & value.keys():
        return None
    if all(isinstance(v, dict) for v in held):
        keys = list(dict.fromkeys(k for column in held for k in column))
        if all(len(v) == len(keys) for v in held) or all(k.isdecimal() for k in keys):
            return list(value), keys, [[v.get(k) for v in held] for k in keys]
        return None
    asked = next(value[k] for k in PROMPTS if k in value)
    texts = isinstance(asked, list) and all(isinstance(t, str) for t in asked) and len(held) > 1
    alike = texts and all(isinstance(v, list) and len(v) == len(asked) for v in held)
    cells = list(zip(*held, strict=True)) if alike and asked else []
    return (list(value), list(range(len(cells))), cells) if cells else None


def _split(value: Mapping[str, Any], where: str) -> Table | None:
    names, cells = value["columns"], value["data"]
    if not (isinstance(names, list) and isinstance(cells, list)):
        return None
    if cells and all(isinstance(row, dict) for row in cells):
        return None  # rows beside a list of columns
    labels = value.get("index") or list(range(len(cells)))
    if not isinstance(labels, list) or len(labels) != len(cells):
        said = f"the index does not name each of the {len(cells)} rows"
        raise DataError(said, where=f"{where}, field index", fix="write it again, or leave it out")
    if odd := [n for n in names if not isinstance(n, str)]:
        fix = "name the columns (prompt, criterion, ...)"
        raise DataError(f"a column is named {odd[0]!r}", where=f"{where}, field columns", fix=fix)
    return names, labels, cells


def once(names: Sequence[str], where: str) -> None:
    """DataError where two columns have one name."""
    if twice := sorted({n for n in names if names.count(n) > 1}):
        said = f"the header names {twice[0]!r} twice"
        raise DataError(said, where=where, fix="rename one of the columns")


def rows_of(table: Table, where: str) -> Iterator[dict[str, Any] | str]:
    """The rows, or what is wrong with one. Labels that are no mere numbering are kept: as the id
    where rows have none, else as `index`.
    """
    names, labels, cells = table
    once(names, f"{where}, its columns")
    counted = {str(i) for i in labels} == {str(i) for i in range(len(labels))}
    own = {"id", "task_id", "criterion"} & set(names) or any(str(i).isdecimal() for i in labels)
    field = "index" if own else "id"
    for label, row in zip(labels, cells, strict=True):
        if not isinstance(row, (list, tuple)):
            yield f"the row is {type(row).__name__}, not a list of cells"
        elif len(row) != len(names):
            yield f"the line has {len(row)} cells, the header {len(names)}"
        else:
            yield ({} if counted or field in names else {field: label}) | dict(
                zip(names, row, strict=True)
            )
