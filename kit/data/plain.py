"""Values that JSON does not know, as text: datetimes, decimals, bytes; counted, so that the reader
can say so."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Protocol

JSON = (str, int, float, bool, type(None))


class Counts(Protocol):
    """What counts the changes: (field, type) -> rows."""

    changed: Counter[tuple[str, str]]


def plain(row: Any, counts: Counts) -> Any:
    """A row with values of JSON alone; a mapping keeps its keys, a value that is changed is counted
    under its field.

    >>> class Seen:
    ...     changed = Counter()
    >>> plain({"on": datetime.date(2024, 5, 1), "n": 1}, Seen), dict(Seen.changed)
    ({'on': '2024-05-01', 'n': 1}, {('on', 'date'): 1})
    """
    if not isinstance(row, Mapping) or all(isinstance(v, JSON) for v in row.values()):
        return row
    return {k: _value(v, str(k), counts) for k, v in row.items()}


def _value(value: Any, name: str, counts: Counts) -> Any:
    if isinstance(value, JSON):
        return value
    if isinstance(value, Mapping):
        return {k: _value(v, name, counts) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_value(v, name, counts) for v in value]
    if hasattr(value, "tolist"):  # numpy
        return _value(value.tolist(), name, counts)
    if type(value).__name__ in ("NAType", "NaTType"):  # what pandas has for a missing value
        return None
    counts.changed[name, type(value).__name__] += 1
    return text_of(value)


def text_of(value: Any) -> Any:
    """A value that JSON does not know in its words: an array and a set as lists, the rest as text.

    >>> text_of(datetime.date(2024, 5, 1)), text_of({2, 1}), text_of(b"a")
    ('2024-05-01', ['1', '2'], 'a')
    """
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (set, frozenset)):
        return sorted(map(str, value))
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "backslashreplace")
    return format(value, "f") if isinstance(value, Decimal) else str(value)
