"""Parameters of a notebook: the literals of its cell tagged "parameters". Values are checked before a kernel starts."""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ..errors import DataError, MissingError
from . import paths
from .settings import check_names

TYPES = {t.__name__: t for t in (bool, int, float, str, list, dict)}
PATH_NAMES = ("_file", "_dir", "rubrics", "answers")  # how the names of paths end


class Parameter(NamedTuple):
    """default : the value in the notebook. type : what values are converted to. optional : None is allowed."""

    default: Any
    type: type
    optional: bool


def cells(notebook: Path) -> list[dict[str, Any]]:
    """The cells of a notebook file, each with its source as one text."""
    try:
        rows = json.loads(Path(notebook).read_text("utf-8"))["cells"]
        return [{**row, "source": "".join(row["source"])} for row in rows]
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise DataError(f"this is no notebook: {e}", where=str(notebook)) from None


def parse(text: str, *, where: str = "parameters cell") -> dict[str, Parameter]:
    """The parameters of a cell's text: one `name = literal` per line.

    >>> parse("steps = 10  # updates")["steps"].type.__name__
    'int'
    >>> parse("limit: int | None = None")["limit"].optional
    True
    """
    out = {}
    for line in ast.parse(text).body:
        at = f"{where}, line {line.lineno}"
        target = line.targets[0] if isinstance(line, ast.Assign) else getattr(line, "target", None)
        try:
            default = ast.literal_eval(line.value)  # type: ignore[attr-defined]
            name = target.id  # type: ignore[union-attr]
        except (ValueError, AttributeError):
            raise DataError(
                "only lines `name = literal` are parameters",
                where=at,
                fix="compute derived values in a later cell",
            ) from None
        note = ast.unparse(line.annotation) if isinstance(line, ast.AnnAssign) else ""
        kind = note.removeprefix("Optional[").removesuffix("]").removesuffix(" | None")
        if not note and default is not None:
            kind = type(default).__name__
        if kind not in TYPES:
            raise DataError(
                f"{name} has no type that can be checked",
                where=at,
                fix=f"write `{name}: int | None = None`, with one of {', '.join(TYPES)}",
            )
        out[name] = Parameter(default, TYPES[kind], kind != note and bool(note))
    return out


def read(notebook: Path) -> dict[str, Parameter]:
    """The parameters that a notebook declares, by name, in order."""
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
    parameters = read(notebook)
    check_names(values, parameters, where=str(notebook))
    out = {name: p.default for name, p in parameters.items()}
    for name, value in values.items():
        p = parameters[name]
        if value is None and p.optional:
            out[name] = None
            continue
        # bool is a kind of int in Python; as a number of steps it is a mistake
        wrong = isinstance(value, bool) and p.type in (int, float)
        try:
            out[name] = msgspec.convert(str(value) if wrong else value, p.type, strict=False)
        except msgspec.ValidationError as e:
            raise DataError(f"{name} = {value!r}: {e}", where=str(notebook)) from None
        if isinstance(out[name], float) and not math.isfinite(out[name]):
            raise DataError(f"{name} = {value!r} is not a finite number", where=str(notebook))
        if name.endswith(PATH_NAMES) and value and ":" not in value:  # a colon: an address
            out[name] = str(_existing(name, value))
    return out


def _existing(name: str, value: str) -> Path:
    """The absolute path of a file or folder, also of one in the kit's data folder."""
    path = Path(value).expanduser().absolute()
    for candidate in (path, paths.data(value)):
        if candidate.exists():
            return candidate
    raise MissingError("there is no such file or folder", where=f"parameter {name} = {value!r}")
