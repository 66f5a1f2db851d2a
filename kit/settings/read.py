"""Settings: a mapping, YAML or JSON becomes a frozen dataclass, every name and type checked.

One reader for all configs. An error says which key, where it stands, and what was probably meant.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeVar, get_args, get_origin, get_type_hints

from ..errors import KitError, MissingError, at

T = TypeVar("T")
PLAIN = (str, int, float, list, tuple, Mapping, type(None))  # what a config may hold


def closest(name: str, known: Iterable[str]) -> str | None:
    """The name most like `name`, whatever its case; None where none is like it.

    >>> closest("confidense", ["confidence", "correct"])
    'confidence'
    """
    by_fold = {str(k).casefold(): str(k) for k in known}
    found = difflib.get_close_matches(str(name).casefold(), list(by_fold), n=1, cutoff=0.5)
    return by_fold[found[0]] if found else None


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint that names the nearest known name, or all of them.

    >>> nearest("group_sise", ["group_size", "steps"])
    "did you mean 'group_size'?"
    >>> nearest("zzz", ["b", "a"])
    'known: a, b'
    """
    names = [str(k) for k in known]
    close = closest(name, names)
    return f"did you mean {close!r}?" if close else f"known: {', '.join(sorted(names))}"


def known_names(
    given: Iterable[str], known: Iterable[str], *, where: str, what: str = "setting"
) -> None:
    """KitError that lists every given name that is not known, with the nearest one."""
    names = list(known)
    wrong = [str(n) for n in given if n not in names]
    if len(wrong) == 1:
        raise KitError(
            f"there is no {what} {wrong[0]!r}", where=where, fix=nearest(wrong[0], names)
        )
    if wrong:
        hints = [f"{n!r}: did you mean {c!r}?" for n in wrong if (c := closest(n, names))]
        raise KitError(
            f"there are no {what}s {', '.join(map(repr, wrong))}",
            where=where,
            fix="; ".join(hints) or f"known: {', '.join(sorted(names))}",
        )


def load(path: str | Path, *, what: str = "config") -> dict[str, Any]:
    """The keys and values of a YAML or JSON file; MissingError, or KitError that names the line."""
    values = value(path, what=what)
    if not isinstance(values, Mapping):
        raise KitError(f"the {what} is not a mapping of names to values", where=str(path))
    return dict(values)


def value(path: str | Path, *, what: str = "config") -> Any:
    """What a YAML or JSON file holds, no key of it given twice; errors as of `load`."""
    path = Path(path)
    if not path.is_file():
        raise MissingError(f"the {what} is not there", where=str(path))
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError as e:
        line = e.object[: e.start].count(b"\n") + 1
        raise _broken(what, "it is not UTF-8", f"{path}, line {line}") from None
    return _json(text, path, what) if path.suffix == ".json" else _yaml(text, path, what)


def _json(text: str, path: Path, what: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=once)
    except json.JSONDecodeError as e:
        raise _broken(what, e.msg, f"{path}, line {e.lineno}") from None
    except ValueError as e:
        raise _broken(what, str(e), str(path)) from None


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys stand there once; of two, JSON's reader would drop the first."""
    twice = [k for k, n in Counter(k for k, _ in pairs).items() if n > 1]
    if twice:
        raise ValueError(f"{twice[0]!r} stands there twice")
    return dict(pairs)


def _yaml(text: str, path: Path, what: str) -> Any:
    import yaml

    try:
        return parse(text)
    except yaml.YAMLError as e:
        mark = getattr(e, "problem_mark", None)
        place = f"{path}, line {mark.line + 1}" if mark else str(path)
        raise _broken(what, str(e).splitlines()[0], place) from None


def parse(text: str) -> Any:
    """The value of a YAML text; numbers as in YAML 1.2 and everywhere else: 4e-5, 0o10 and 1_000
    are some, dates and 1:30 are texts.

    >>> parse("{lr: 4e-5, name: 4e-5b, quoted: '4e-5', out: 2026-01-01, at: 1:30, n: 010}")
    {'lr': 4e-05, 'name': '4e-5b', 'quoted': '4e-5', 'out': '2026-01-01', 'at': '1:30', 'n': 10}
    """
    import yaml

    class Loader(yaml.SafeLoader):
        """YAML 1.1 reads 4e-5 as text, 1:30 as 90, 010 as 8; the last of two keys wins."""

        yaml_implicit_resolvers: ClassVar = {
            first: [r for r in of if r[0].rpartition(":")[2] not in ("timestamp", "int", "float")]
            for first, of in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }

        def construct_yaml_int(self, node: Any) -> int:
            """Base 10, or as 0x, 0o and 0b say."""
            return int(node.value, 10 if node.value.lstrip("+-").isdigit() else 0)

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            """A mapping whose keys stand there once."""
            seen: set[str] = set()
            for key, _ in node.value:
                if key.tag != "tag:yaml.org,2002:merge" and str(key.value) in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"{key.value!r} stands there twice", key.start_mark
                    )
                seen.add(str(key.value))
            return super().construct_mapping(node, deep=deep)

    for kind, pattern in _NUMBERS.items():
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{kind}", pattern, [*"-+.0123456789"])
    Loader.add_constructor("tag:yaml.org,2002:int", Loader.construct_yaml_int)
    return yaml.load(text, Loader)


_NUMBERS = {
    "int": re.compile(r"[-+]?(?:\d+(?:_\d+)*|0x[\da-fA-F]+|0o[0-7]+|0b[01]+)$"),
    "float": re.compile(
        r"[-+]?(?:(?:\d+(?:_\d+)*(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?|\.(?:inf|Inf|INF))$"
        r"|\.(?:nan|NaN|NAN)$"
    ),
}


def texts(values: Mapping[str, Any], names: Iterable[str], *, where: str) -> None:
    """KitError for a value under one of these names that is neither text nor path; None is none."""
    for name in names:
        if not isinstance(values.get(name), (str, Path, type(None))):
            what = f"{name} is {values[name]!r}, and no text"
            raise KitError(
                what,
                where=f"{where}, key {name}",
                fix="put it in quotes: YAML reads bare numbers, on, off, yes and no as what they "
                "are",
            )


def _broken(what: str, why: str, place: str) -> KitError:
    return KitError(f"the {what} cannot be read: {why}", where=place, fix="correct the file there")


def make(cls: type[T], values: Mapping[str, Any], *, where: str = "settings") -> T:
    """An object of the dataclass `cls` from a mapping: strict, nothing is guessed.

    Lists become tuples where the field is one, whole floats become integers and integers floats;
    text is never read as a number.

    >>> @dataclasses.dataclass(frozen=True)
    ... class Speed:
    ...     steps: int = 1
    ...     rate: float = 0.1
    >>> make(Speed, {"steps": 3.0}).steps
    3
    >>> make(Speed, {"rate": "1e-5"})
    Traceback (most recent call last):
    ...
    kit.errors.KitError: '1e-5' is not a number
      where: settings, setting rate
      to do: write it without quotes
    """
    import msgspec

    known_names(values, [f.name for f in dataclasses.fields(cls)], where=where)
    try:
        # YAML's 1.0e+3 steps are whole; a float field takes them back
        whole = {
            k: int(v) if isinstance(v, float) and v.is_integer() else v for k, v in values.items()
        }
        with at(where):  # what the class itself refuses
            return msgspec.convert(whole, cls, strict=True)
    except msgspec.ValidationError as e:
        raise _wrong(cls, values, str(e), where) from None


ABOVE_0 = math.ulp(0.0)
FINITE = (-math.inf, math.inf, "a finite number")
SHARE = (0, 1, "a share, from 0 to 1")
COUNT = (1, math.inf, "it must be 1 or more")


def within(values: Mapping[str, Any], bounds: Mapping[str, tuple[float, float, str]]) -> None:
    """KitError for a number, alone or in a list, outside of the bounds of its name (both ends are
    allowed, but infinity; without bounds, any from 0 on).

    >>> within({"steps": 0}, {"steps": COUNT})
    Traceback (most recent call last):
    ...
    kit.errors.KitError: steps is 0
      where: setting steps
      to do: it must be 1 or more
    """
    for name, value in values.items():
        low, high, fix = bounds.get(name, (0, math.inf, "a number from 0 on"))
        for x in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(x, (int, float)) and not (low <= x <= high and abs(x) < math.inf):
                raise KitError(f"{name} is {x!r}", where=f"setting {name}", fix=fix)


def fitting(hints: Mapping[str, Any], given: Mapping[str, Any], *, where: str) -> dict[str, Any]:
    """Arguments in the types of `hints`, as `make` reads them; KitError for one that is not.

    >>> fitting({"tries": int, "name": str | None}, {"tries": 2, "name": object()}, where="ask")
    Traceback (most recent call last):
    ...
    kit.errors.KitError: name is an object
      where: ask, setting name
      to do: give one of these: str, NoneType
    """
    plain = {k: v for k, v in given.items() if isinstance(v, PLAIN)}
    for name in given.keys() & hints.keys() - plain.keys():
        kinds = [get_origin(k) or k for k in get_args(hints[name]) or [hints[name]]]
        if Any not in kinds and not isinstance(given[name], tuple(kinds)):
            raise KitError(
                f"{name} is an {type(given[name]).__name__}",
                where=f"{where}, setting {name}",
                fix=f"give one of these: {', '.join(k.__name__ for k in kinds)}",
            )
    made = dataclasses.make_dataclass("Arguments", [(k, hints[k]) for k in plain])
    return {**given, **vars(make(made, plain, where=where))}


def _wrong(cls: type, values: Mapping[str, Any], said: str, where: str) -> KitError:
    """msgspec's "Expected `int`, got `str` - at `$.steps`" as one of our errors."""
    what, _, path = said.partition(" - at `$.")
    name = path.rstrip("`")
    value = values.get(name.split("[")[0].split(".")[0])
    place = f"{where}, setting {name}" if name else where
    choices = get_args(get_type_hints(cls).get(name)) if name else ()
    if "enum value" in what and choices:
        return KitError(
            f"{value!r} is not a choice",
            where=place,
            fix=nearest(str(value), [str(c) for c in choices]),
        )
    if isinstance(value, str) and "`float`" in what:
        return KitError(f"{value!r} is not a number", where=place, fix="write it without quotes")
    shown = f"{value!r}: " if name else ""
    return KitError(f"{shown}{what[:1].lower()}{what[1:]}", where=place)
