"""Parameters of a notebook: read from its tagged cell, checked and coerced strictly before anything
starts.

papermill only warns about unknown names and takes YAML's `1e-5` for text; here both are settled
beforehand.
"""

from __future__ import annotations

import ast
import io
import json
import math
import re
import tokenize
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import KitError, MissingError
from .read import nearest

PATH_WORDS = ("file", "folder", "dir", "path", "jsonl")
RANGE = re.compile(r"in ([\[(])(\S+), (\S+)([\])])")  # in a comment: "in (0, 1]", "in [1, inf)"
ONE_OF = re.compile(r'"\w+"(?:, "\w+")* or "\w+"')
TYPES = {"int": int, "float": float, "str": str, "bool": bool, "list": list, "dict": dict}


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One line of a parameters cell: name, default, type name, whether None is allowed, its
    comment.
    """

    name: str
    default: Any
    type: str
    optional: bool = False
    comment: str = ""


def load(path: Path) -> dict[str, Any]:
    """A notebook's JSON; MissingError or KitError names the file and, for broken JSON, the line."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise MissingError(
            "there is no such notebook",
            where=str(path),
            fix="give a path, or a number or name from notebooks/",
        ) from None
    try:
        book = json.loads(text)
    except json.JSONDecodeError as e:
        raise KitError(
            f"not a notebook: {e.msg}",
            where=f"{path}, line {e.lineno}",
            fix="open and save it in Jupyter",
        ) from None
    if not isinstance(book, dict) or not isinstance(book.get("cells"), list):
        raise KitError("not a notebook: it has no cells", where=str(path))
    return book


def source(cell: dict[str, Any]) -> str:
    """A cell's source as one text."""
    s = cell.get("source", "")
    return s if isinstance(s, str) else "".join(s)


def parameters(path: Path) -> dict[str, Parameter]:
    """The parameters that a notebook declares, by name, in order."""
    cells = [
        c for c in load(path)["cells"] if "parameters" in c.get("metadata", {}).get("tags", [])
    ]
    if len(cells) != 1:
        raise KitError(
            f"a notebook needs one cell tagged 'parameters', found {len(cells)}",
            where=str(path),
            fix="tag the cell that holds the defaults (property inspector, Cell Tags)",
        )
    return parse(source(cells[0]), where=str(path))


def parse(text: str, *, where: str = "parameters cell") -> dict[str, Parameter]:
    """Parameters of a cell's text: literals only, one a line, `int | None` for None.

    >>> parse("steps = 10  # count")["steps"].comment
    'count'
    >>> parse("x: int | None = None")["x"].type
    'int'
    """
    comments = {
        t.start[0]: t.string.lstrip("# ").strip()
        for t in tokenize.generate_tokens(io.StringIO(text).readline)
        if t.type == tokenize.COMMENT
    }
    out: dict[str, Parameter] = {}
    for node in ast.parse(text).body:
        if isinstance(node, (ast.Import, ast.ImportFrom)) or (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        ):
            continue
        target = (
            node.targets[0]
            if isinstance(node, ast.Assign) and len(node.targets) == 1
            else getattr(node, "target", None)
        )
        if (
            isinstance(node, ast.AugAssign)
            or not isinstance(target, ast.Name)
            or getattr(node, "value", None) is None
        ):
            raise KitError(
                "only `name = literal` lines are parameters", where=f"{where}, line {node.lineno}"
            )
        try:
            default = ast.literal_eval(node.value)
        except ValueError:
            raise KitError(
                f"the default of {target.id!r} is not a literal",
                where=f"{where}, line {node.lineno}",
                fix="compute derived values in a later cell",
            ) from None
        kind, optional = _type(node, default, where)
        out[target.id] = Parameter(
            name=target.id,
            default=default,
            type=kind,
            optional=optional,
            comment=comments.get(node.end_lineno or node.lineno, ""),
        )
    return out


def _type(node: ast.stmt, default: Any, where: str) -> tuple[str, bool]:
    note = (
        ast.unparse(node.annotation).replace("typing.", "").strip("'\"")
        if isinstance(node, ast.AnnAssign)
        else ""
    )
    bare = note.removeprefix("Optional[").removeprefix("None | ").removesuffix(" | None")
    kind = bare.partition("[")[0].rstrip("]").lower()
    if kind in TYPES:
        return kind, bare != note
    if default is None:
        raise KitError(
            "a default of None needs its type",
            where=f"{where}, line {node.lineno}",
            fix="write `name: int | None = None`, or whatever its type is",
        )
    return type(default).__name__ if type(default).__name__ in TYPES else "list", False


def check(path: Path, given: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Given values, coerced to the declared types, and one note for each that changed its type.

    KitError for an unknown name (with the nearest one) and for a value of another type.
    """
    known = parameters(path)
    values, notes = {}, []
    for name, value in given.items():
        if name not in known:
            raise KitError(
                f"{Path(path).stem} has no parameter {name!r}; {nearest(name, known)}",
                where=str(path),
                fix=f"its parameters: {', '.join(known)}",
            )
        values[name], note = coerce(known[name], value)
        if note:
            notes.append(note)
    return values, notes


def locate(known: Mapping[str, Parameter], values: dict[str, Any], *roots: Path) -> None:
    """Make the paths among the values absolute, so that they hold wherever the kernel runs.

    A parameter is a path when its name or its comment says file or folder. Names of a hub or URL
    (with a colon) are left alone. roots : where a relative name is looked up besides the working
    directory. MissingError for what is not there: before a kernel starts, not half a minute later.
    """
    for name, value in values.items():
        p = known.get(name)
        if p is None or not is_path(p) or not isinstance(value, str) or not value or ":" in value:
            continue
        tried = [Path(value).expanduser(), *(root / value for root in roots)]
        there = next((t for t in tried if t.exists()), None)
        if there is None:
            folders = dict.fromkeys(str(t.absolute().parent) for t in tried)
            raise MissingError(
                "there is no such file or folder",
                where=f"parameter {name} = {value!r}",
                fix=f"looked in {', '.join(folders)}",
            )
        values[name] = str(there.resolve())


def is_path(p: Parameter) -> bool:
    """True when a text parameter names a file or a folder.

    >>> is_path(Parameter(name="rubrics", default="", type="str", comment="your own file"))
    True
    >>> is_path(Parameter(name="format", default="auto", type="str", comment="how to read it"))
    False
    """
    said = f"{p.name.replace('_', ' ')} {p.comment.split(';')[0]}".lower().split()
    return p.type == "str" and any(w.strip(",.:") in PATH_WORDS for w in said)


def coerce(p: Parameter, value: Any) -> tuple[Any, str]:
    """A value as the parameter's type, and how it was changed ("" when it was not).

    >>> coerce(parse("lr = 1.0e-4")["lr"], "1e-5")
    (1e-05, "lr: '1e-5' (text) -> 1e-05 (float)")
    """
    new = _convert(p, value)
    if new != p.default and not _fits(p, new):
        raise KitError(f"{p.name} = {new!r} cannot be", where=f"parameter {p.name}", fix=p.comment)
    if type(new) is type(value) and new == value:
        return new, ""
    kind = "text" if isinstance(value, str) else type(value).__name__
    return new, f"{p.name}: {value!r} ({kind}) -> {new!r} ({type(new).__name__})"


def _fits(p: Parameter, value: Any) -> bool:
    """False outside the range, or for none of the quoted words, that the comment gives.

    >>> share = parse("share = 0.5  # in (0, 1]")["share"]
    >>> _fits(share, 1.0), _fits(share, 0.0), _fits(parse('a = "x"  # "x" or "y"')["a"], "z")
    (True, False, False)
    """
    one_of = ONE_OF.search(p.comment)
    m = RANGE.search(p.comment)
    if p.type == "str":
        return not one_of or f'"{value}"' in one_of[0]
    if value is None or not m:
        return True
    low = float(m[2])
    high = float(m[3])
    if value == low:
        return m[1] == "["
    if value == high:
        return m[4] == "]"
    return low < value < high


def _convert(p: Parameter, value: Any) -> Any:
    """The value as the parameter's type; KitError where it is none."""
    nothing = isinstance(value, str) and p.type != "str" and value.lower() in ("none", "null")
    if (value is None or nothing) and p.optional:
        return None
    try:
        if value is not None and not nothing:
            return _READ[p.type](value)
    except (ValueError, KeyError, TypeError, OverflowError):
        pass
    article = "an" if p.type == "int" else "a"
    said = "nothing (an empty cell)" if value is None else repr(value)
    raise KitError(
        f"{p.name} = {said} is not {article} {p.type}",
        where=f"parameter {p.name}",
        fix=f"its default is {p.default!r}" + (f" ({p.comment})" if p.comment else ""),
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    return words[str(value).lower()]


def _float(value: Any) -> float:
    """A finite number: JSON has no nan, the run's record would lose it."""
    number = float(value)
    if isinstance(value, bool) or not math.isfinite(number):
        raise ValueError
    return number


def _int(value: Any) -> int:
    number = _float(value)
    if number != int(number):
        raise ValueError
    return int(value.strip()) if isinstance(value, str) else int(number)


def _held(value: Any, *kinds: type) -> Any:
    """A list or mapping, also as JSON."""
    found = json.loads(value) if isinstance(value, str) else value
    if not isinstance(found, kinds):
        raise TypeError
    return found


_READ = {
    "int": _int,
    "float": _float,
    "str": _text,
    "bool": _flag,
    "list": lambda value: list(_held(value, list, tuple)),
    "dict": lambda value: _held(value, dict),
}
