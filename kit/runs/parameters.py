"""Parameters of a notebook: the literals of its cell tagged "parameters", checked before a kernel starts.

The comment of a line says what the parameter means, and what it may be: "in [1, 9]", "in (0, 1]",
"at least 0", "one of: red, blue". The default may always be written.
"""

import ast
import json
import math
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import msgspec

from ..errors import DataError, MissingError
from ..judging import judge_of
from ..system import paths
from ..system.settings import check_names, nearest

RANGE = re.compile(
    r"\bin ([\[(])(-?[\d.]+), (-?[\d.]+)([\])])|\bat least (-?[\d.]+)"
)


class Parameter(msgspec.Struct, frozen=True):
    """A parameter of a notebook. meaning : the comment behind its line."""

    name: str
    default: Any
    meaning: str

    def convert(self, value: object) -> Any:
        """A value in the default's type, within its range; ValueError says what is wrong."""
        kind: Any = type(self.default)
        converted = msgspec.convert(value, kind, strict=False)
        if kind is float and not math.isfinite(converted):
            raise ValueError("not a finite number")
        if converted == self.default:
            return converted
        if self.choices and converted not in self.choices:
            raise ValueError(nearest(str(converted), self.choices))
        if limits := RANGE.search(self.meaning):
            left, low, high, right, least = limits.groups()
            bounds: dict[str, Any] = {
                "gt" if left == "(" else "ge": kind(low or least)
            }
            if high:
                bounds["lt" if right == ")" else "le"] = kind(high)
            kind = Annotated[kind, msgspec.Meta(**bounds)]
        return msgspec.convert(converted, kind)

    @property
    def choices(self) -> list[str]:
        """The values that the comment lists; empty where it lists none."""
        listed = re.search(r"\bone of: ([^;]+)", self.meaning)
        return listed[1].split(", ") if listed else []


def code_cells(notebook: Path) -> list[dict[str, Any]]:
    """The cells of code of a notebook file, each with its source as one text."""
    try:
        return [
            # The format allows a text or a list of lines.
            {**row, "source": "".join(row["source"])}
            for row in json.loads(Path(notebook).read_text("utf-8"))["cells"]
            if row["cell_type"] == "code"
        ]
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise DataError(
            f"this is not a notebook: {e}", where=str(notebook)
        ) from None


def parse(text: str, *, where: str = "parameters cell") -> dict[str, Parameter]:
    """The parameters of a cell's text, by name: one `name = literal  # meaning` per line.

    >>> parse("steps = 10  # updates, at least 1")["steps"]
    Parameter(name='steps', default=10, meaning='updates, at least 1')
    """
    out = {}
    lines = text.encode().splitlines()
    for line in ast.parse(text).body:
        default: object = None
        match line:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                with suppress(ValueError):
                    default = ast.literal_eval(value)
        # Literals only: a sweep reads the parameters of a notebook without running its code.
        # None has no type that a value could be checked against.
        if type(default) not in (bool, int, float, str, list, dict):
            raise DataError(
                f"this line declares no parameter: {ast.unparse(line)}",
                where=where,
                fix="write `name = literal`; 0 or an empty text stand for nothing",
            )
        comment = lines[(line.end_lineno or line.lineno) - 1][line.end_col_offset :]
        out[name] = Parameter(name, default, comment.decode().strip(" #;"))
    return out


def read(notebook: Path) -> dict[str, Parameter]:
    """The parameters that a notebook declares, in order, by name."""
    for cell in code_cells(notebook):
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
    DataError names unknown parameters, each with the nearest one, and values of another type or out of range.
    """
    declared = read(notebook)
    check_names(values, declared, where=str(notebook))
    out = {name: p.default for name, p in declared.items()}
    for name, value in values.items():
        try:
            out[name] = declared[name].convert(value)
        except ValueError as e:
            raise DataError(
                f"{name} = {value!r}: {e}",
                where=str(notebook),
                fix=f"{name}: {declared[name].meaning}",
            ) from None
        if not (out[name] and isinstance(out[name], str)):
            continue
        is_path = name in ("rubrics", "answers") or name.endswith(("_file", "_dir"))
        # A colon: an address such as hf://, which is not a path.
        if is_path and ":" not in out[name]:
            out[name] = str(_existing(name, out[name]))
        elif name.endswith("judge") and not declared[name].choices:
            judge_of(out[name], where=f"parameter {name}")
    return out


def _existing(name: str, value: str) -> Path:
    """The absolute path of a file or folder, also of one in the kit's data folder."""
    for candidate in (Path(value).expanduser().absolute(), paths.data(value)):
        if candidate.exists():
            return candidate
    raise MissingError(
        "there is no such file or folder", where=f"parameter {name} = {value!r}"
    )
