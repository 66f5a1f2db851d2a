"""Rows into a JSONL file, whole or not at all."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..system.paths import whole
from .plain import text_of


def write_jsonl(path: str | os.PathLike[str], rows: Iterable[Mapping[str, Any]]) -> int:
    """Write one object per line, UTF-8, atomically (the old file stays until the new one is whole);
    the number of rows.

    NaN and infinities are written as NaN / Infinity, which `read_rows` reads back; other types as
    text.
    """
    p, n = Path(path), 0
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
