"""Settings files: YAML or JSON becomes a typed msgspec Struct. A wrong name, type or bound is an error."""

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from ..errors import DataError, MissingError

T = TypeVar("T", bound=msgspec.Struct)
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Positive = Annotated[float, msgspec.Meta(gt=0)]
NonNegative = Annotated[float, msgspec.Meta(ge=0)]
Count = Annotated[int, msgspec.Meta(ge=1)]


def nearest(name: str, names: Iterable[str]) -> str:
    """A hint that names the nearest valid name, or all of them.

    >>> nearest("group_sise", ["group_size", "steps"])
    "did you mean 'group_size'?"
    >>> nearest("zzz", ["b", "a"])
    'valid names: a, b'
    """
    names = [str(n) for n in names]
    matches = difflib.get_close_matches(str(name), names, n=1, cutoff=0.5)
    return (
        f"did you mean {matches[0]!r}?"
        if matches
        else f"valid names: {', '.join(sorted(names))}"
    )


def require_name(
    kind: str, name: object, valid: Iterable[str], *, where: str = ""
) -> None:
    """DataError where a name is not one of the valid ones. kind : what it should name.

    >>> require_name("judge", "code", ["code", "small"])
    """
    names = list(valid)
    if name not in names:
        raise DataError(
            f"there is no {kind} {name!r}",
            where=where,
            fix=nearest(str(name), names),
        )


def check_names(names: Iterable[str], valid: Iterable[str], *, where: str) -> None:
    """DataError that lists every name that is not among the valid ones, each with the nearest of them.

    >>> check_names(["steps"], ["steps"], where="config")
    """
    valid = list(valid)
    wrong = [str(n) for n in names if n not in valid]
    if wrong:
        raise DataError(
            f"unknown names: {', '.join(wrong)}",
            where=where,
            fix="; ".join(f"{n!r}: {nearest(n, valid)}" for n in wrong),
        )


def parse(text: str | bytes, where: str = "config") -> Any:
    """The value of a YAML 1.2 text: 4e-5 is a number, off is a text, no key may appear twice. JSON is YAML.

    >>> parse("learning_rate: 1e-5")
    {'learning_rate': 1e-05}
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    # PyYAML reads YAML 1.1: there 4e-5 is a text, and `off` is False.
    try:
        return YAML(typ="safe", pure=True).load(text)
    except YAMLError as e:
        raise DataError(f"this is not valid YAML: {e}", where=where) from None


def load(path: str | Path) -> dict[str, Any]:
    """The names and values of a config file; MissingError when there is no such file."""
    if not Path(path).is_file():
        raise MissingError("there is no such config file", where=str(path))
    values = parse(Path(path).read_bytes(), str(path))
    if not isinstance(values, dict):
        raise DataError(
            "the config must be a mapping of names to values", where=str(path)
        )
    return values


def make(cls: type[T], values: Mapping[str, Any], *, where: str = "settings") -> T:
    """An instance of a Struct from a mapping. Nothing is guessed or converted between types."""
    # msgspec would stop at the first unknown name, and without a hint.
    check_names(values, cls.__struct_fields__, where=where)
    try:
        return msgspec.convert(values, cls)
    except msgspec.ValidationError as e:
        raise DataError(str(e), where=where) from None
