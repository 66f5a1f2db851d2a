"""Parameters of a notebook: the literals of its cell tagged "parameters". Values are checked before a kernel starts."""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from ..errors import DataError, MissingError
from . import paths
from .settings import check_names

# Literals only: a sweep reads the parameters of a notebook without running its code.
TYPES = (bool, int, float, str, list, dict)
# A text parameter is a path where its name is one of PATHS or ends in a suffix.
PATHS = ("rubrics", "answers")
SUFFIXES = ("_file", "_dir")


def cells(notebook: Path) -> list[dict[str, Any]]:
    """The cells of a notebook file, each with its source as one text."""
    try:
        rows = json.loads(Path(notebook).read_text("utf-8"))["cells"]
        # The format allows a text or a list of lines.
        return [{**row, "source": "".join(row["source"])} for row in rows]
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise DataError(f"this is no notebook: {e}", where=str(notebook)) from None


def parse(text: str, *, where: str = "parameters cell") -> dict[str, Any]:
    """The parameters of a cell's text, with their defaults: one `name = literal` per line.

    >>> parse("steps = 10  # updates")
    {'steps': 10}
    """
    out = {}
    for line in ast.parse(text).body:
        try:
            default = out[line.targets[0].id] = ast.literal_eval(line.value)  # type: ignore
        except (ValueError, AttributeError):
            default = None
        # None has no type that a value could be checked against.
        if type(default) not in TYPES:
            raise DataError(
                f"this line declares no parameter: {ast.unparse(line)}",
                where=where,
                fix="write `name = literal`; 0 or an empty text stand for nothing",
            )
    return out


def read(notebook: Path) -> dict[str, Any]:
    """The parameters that a notebook declares, in order, with their defaults."""
    for cell in cells(notebook):
        if "parameters" in cell["metadata"].get("tags", ()):
            return parse(cell["source"], where=str(notebook))
    raise DataError(
        "no cell has the tag `parameters`",
        where=str(notebook),
        fix="tag the cell that holds the defaults (property inspector, Cell Tags)",
    )


def check(notebook: Path, values: Mapping[str, Any]) -> dict[str, Any]:
    """All parameters of a notebook: defaults, and `values` in their place.

    A text is read as the number that it writes ("1e-5"), a path becomes absolute.
    DataError names unknown parameters, each with the nearest one, and values of another type.
    """
    out = read(notebook)
    check_names(values, out, where=str(notebook))
    for name, value in values.items():
        # The default says what a value is: a notebook's cell has no other types.
        kind = type(out[name])
        # True is an int in Python; as a number of steps it is a mistake.
        mistake = isinstance(value, bool) and kind in (int, float)
        try:
            out[name] = msgspec.convert(
                str(value) if mistake else value, kind, strict=False
            )
        except msgspec.ValidationError as e:
            raise DataError(
                f"{name} = {value!r}: {e}", where=str(notebook)
            ) from None
        if kind is float and not math.isfinite(out[name]):
            raise DataError(
                f"{name} = {value!r} is not a finite number", where=str(notebook)
            )
        is_path = name in PATHS or name.endswith(SUFFIXES)
        # A colon: an address such as hf://, which is no path. An empty text stands for nothing.
        if kind is str and is_path and value and ":" not in out[name]:
            out[name] = str(_existing(name, out[name]))
    return out


def _existing(name: str, value: str) -> Path:
    """The absolute path of a file or folder, also of one in the kit's data folder."""
    for candidate in (Path(value).expanduser().absolute(), paths.data(value)):
        if candidate.exists():
            return candidate
    raise MissingError(
        "there is no such file or folder", where=f"parameter {name} = {value!r}"
    )
