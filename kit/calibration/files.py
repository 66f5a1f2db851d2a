"""Tables larger than memory: read a column pair in chunks into a Sketch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from ..errors import DataError
from .sketch import Sketch

WORDS = {"true": 1, "yes": 1, "correct": 1, "1": 1, "1.0": 1, "false": 0, "no": 0, "wrong": 0, "incorrect": 0, "0": 0, "0.0": 0}
EMPTY = ("", "na", "nan", "none", "null")


def confidence_cell(value: Any, where: str) -> float | None:
    """A table cell as a confidence: a number, digits in quotes, or None when empty.

    >>> confidence_cell("0.8", "f, line 1"), confidence_cell("", "f, line 2")
    (0.8, None)
    """
    if value is None or (isinstance(value, str) and value.strip().lower() in EMPTY):
        return None
    try:
        if isinstance(value, bool):
            raise ValueError
        return float(value)
    except (TypeError, ValueError):
        raise DataError(f"confidence is {str(value)[:60]!r}, not a number", where=where,
                        fix="write a fraction such as 0.8; kit.confidence.extract reads text replies") from None


def correct_cell(value: Any, where: str) -> float | None:
    """A table cell as an outcome: true / false, 1 / 0, yes / no, correct / wrong; None when empty.

    >>> correct_cell("True", "f, line 1"), correct_cell(0, "f, line 2")
    (1, 0.0)
    """
    if value is None or (isinstance(value, str) and value.strip().lower() in EMPTY):
        return None
    if isinstance(value, str) and value.strip().lower() in WORDS:
        return WORDS[value.strip().lower()]
    try:
        return float(value)
    except (TypeError, ValueError):
        raise DataError(f"correct is {str(value)[:60]!r}", where=where, fix="write true / false or 1 / 0") from None


def _pairs(path: Path, confidence: str, correct: str, weight: str | None) -> Iterator[tuple[str, Any, Any, Any]]:
    from ..sources.tables import read_rows

    for where, row in read_rows(path):
        for name in (confidence, correct, *([weight] if weight else [])):
            if name not in row:
                raise DataError(f"column {name!r} is missing", where=where, fix=f"found {sorted(map(str, row))[:12]}")
        yield where, row[confidence], row[correct], row[weight] if weight else None


def _chunks(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    it = iter(items)
    while part := list(islice(it, size)):
        yield part


def sketch_file(path: str | Path, *, confidence: str, correct: str, weight: str | None = None, missing: str = "raise", chunk: int = 200_000,
                into: Sketch | None = None) -> Sketch:
    """A Sketch of a JSONL, JSON, CSV or Parquet table, a chunk of rows in memory at a time.

    confidence, correct, weight : column names. into : a sketch to add to (several files: pass it on, or merge).
    Errors name file, line and column.
    """
    sketch = into or Sketch()
    for rows in _chunks(_pairs(Path(path), confidence, correct, weight), chunk):
        p = [confidence_cell(r[1], f"{r[0]}, column {confidence}") for r in rows]
        y = [correct_cell(r[2], f"{r[0]}, column {correct}") for r in rows]
        try:
            sketch.update(p, y, weights=None if weight is None else [r[3] for r in rows], missing=missing)
        except DataError as e:
            raise DataError(e.what, where=_locate(e.where, rows), fix=e.fix) from None
    return sketch


def _locate(where: str | None, rows: list[tuple[str, Any, Any, Any]]) -> str:
    """Replace "row i" of a chunk by the file's own line."""
    words = (where or "").split()
    if len(words) > 1 and words[0] == "row" and words[1].isdigit():
        return f"{rows[int(words[1])][0]}, column {words[-1]}"
    return where or ""
