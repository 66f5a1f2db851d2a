"""Rows into a JSONL file, whole or not at all."""

from __future__ import annotations

import datetime
import gzip
import json
import os
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from ..errors import DataError
from ..system.paths import whole
from .files import OTHERS


def write_jsonl(path: str | os.PathLike[str], rows: Iterable[Mapping[str, Any]]) -> int:
    """Write one object per line, UTF-8, atomically (the old file stays until the new one is whole);
    the number of rows.

    NaN and infinities are written as NaN / Infinity, which `read_rows` reads back; other types as
    text. DataError, before anything is written, for a name that says another form.
    """
    p, n = Path(path), 0
    named = p.with_suffix("") if p.suffix.lower() == ".gz" else p
    # a reader would go by the name
    if named.suffix.lower() in (*OTHERS, ".parquet", ".pq"):
        raise DataError(
            f"the name says {named.suffix}, and the rows are written as JSONL",
            where=str(path),
            fix="end the name in .jsonl or .jsonl.gz",
        )
    p.parent.mkdir(parents=True, exist_ok=True)
    opened = gzip.open if p.suffix == ".gz" else open
    with whole(p) as part, opened(part, "wb") as f:
        for row in rows:
            f.write(dumps(row) + b"\n")
            n += 1
    return n


def dumps(row: Any) -> bytes:
    """One line of JSON in UTF-8; lone surrogates are escaped, so any text survives.

    >>> dumps({"a": "\\ud800", "b": [1, None]})
    b'{"a": "\\\\ud800", "b": [1, null]}'
    """
    try:
        return json.dumps(row, ensure_ascii=False, default=text_of).encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(row, ensure_ascii=True, default=text_of).encode("ascii")


JSON = (str, int, float, bool, type(None))


Changed = Counter[tuple[str, str]]  # (field, type) -> rows


def plain(row: Any, changed: Changed) -> Any:
    """A row with values of JSON alone; a mapping keeps its keys, a value that is changed is counted
    under its field.

    >>> seen = Counter()
    >>> plain({"on": datetime.date(2024, 5, 1), "n": 1}, seen), dict(seen)
    ({'on': '2024-05-01', 'n': 1}, {('on', 'date'): 1})
    """
    if not isinstance(row, Mapping) or all(type(v) in JSON for v in row.values()):
        return row
    return {k: _value(v, str(k), changed) for k, v in row.items()}


def _value(value: Any, name: str, changed: Changed) -> Any:
    if type(value) in JSON:
        return value
    if isinstance(value, Mapping):
        return {_key(k, value, name, changed): _value(v, name, changed) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_value(v, name, changed) for v in value]
    if hasattr(value, "tolist"):  # numpy
        return _value(value.tolist(), name, changed)
    if type(value).__name__ in ("NAType", "NaTType"):  # what pandas has for a missing value
        return None
    changed[name, type(value).__name__] += 1
    return text_of(value)


def mapped(value: Any, kind: Any) -> Any:
    """A value out of Arrow with its maps, which Arrow gives as pairs, as objects; one that names a
    key twice stays pairs. kind : the value's Arrow type.
    """
    if isinstance(value, Mapping):
        return {k: mapped(x, kind.field(k).type) for k, x in value.items()}
    if not isinstance(value, list):
        return value
    if not hasattr(kind, "item_type"):
        return [mapped(x, kind.value_type) for x in value]
    named = {k if isinstance(k, Hashable) else str(k): x for k, x in value}
    if len(named) < len(value):
        return value
    return {k: mapped(x, kind.item_type) for k, x in named.items()}


def _key(key: Any, beside: Mapping[Any, Any], name: str, changed: Changed) -> str:
    """A key as text, another than those beside it."""
    if isinstance(key, str):
        return key
    changed[name, f"{type(key).__name__}, as a key"] += 1
    return str(key) if str(key) not in beside else f"{key!r} ({type(key).__name__})"


def text_of(value: Any) -> Any:
    """A value that JSON does not know in its words: an array and a set as lists, the rest as text.

    >>> text_of(datetime.date(2024, 5, 1)), text_of({2, 1}), text_of(b"a")
    ('2024-05-01', [1, 2], 'a')
    """
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (set, frozenset)):
        return [x if isinstance(x, JSON) else text_of(x) for x in sorted(value, key=str)]
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "backslashreplace")
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def numbered(known: Mapping[str, Any], rows: int) -> dict[str, range]:
    """The columns of numbers that pandas keeps as their first, last and step alone."""
    out = {}
    for column in known.get("index_columns", ()):
        if not isinstance(column, Mapping) or not column.get("name"):
            continue
        ids = range(
            column["start"],
            column["stop"],
            column["step"],
        )
        if len(ids) == rows:
            out[column["name"]] = ids
    return out
