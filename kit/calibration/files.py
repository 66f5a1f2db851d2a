"""Confidences and outcomes from files: a table that fits into memory, or in chunks into a Sketch;
errors with the file's own line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ..data.tables import kind_of, place, read_columns, read_rows
from ..errors import DataError
from ..stats.vocabulary import side
from .inputs import Inputs
from .sketch import CHUNK, Sketch

BLOCK = 1 << 19  # rows whose clusters are summed at once
EMPTY = ("", "na", "nan", "none", "null")


def _cell(value: Any, what: str, where: str, fix: str) -> float | None:
    """A cell as a number; None when it is empty."""
    if value is None or (isinstance(value, str) and value.strip().lower() in EMPTY):
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        raise DataError(
            f"{what} is {str(value)[:60]!r}, not a number", where=where, fix=fix
        ) from None


def confidence_cell(value: Any, where: str) -> float | None:
    """A table cell as a confidence: a number, digits in quotes, or None when empty.

    >>> confidence_cell("0.8", "f, line 1"), confidence_cell("", "f, line 2")
    (0.8, None)
    """
    return _cell(
        str(value) if isinstance(value, bool) else value,
        "confidence",
        where,
        "write a fraction such as 0.8; kit.confidence.extract reads text replies",
    )


def correct_cell(value: Any, where: str) -> float | None:
    """A table cell as an outcome: true / false, 1 / 0, yes / no, correct / wrong; None when empty.

    >>> correct_cell("True", "f, line 1"), correct_cell(0, "f, line 2")
    (1.0, 0.0)
    """
    known = side(value)
    given = value if known is None else known
    return _cell(given, "correct", where, "write true / false or 1 / 0")


def _pairs(path: Path, confidence: str, correct: str) -> Iterator[tuple[str, Any, Any]]:
    """(place, confidence, outcome) of every row."""
    for where, row in read_rows(path):
        for name in (confidence, correct):
            if name not in row:
                raise DataError(
                    f"column {name!r} is missing",
                    where=where,
                    fix=f"found {sorted(map(str, row))[:12]}",
                )
        p = confidence_cell(row[confidence], f"{where}, field {confidence}")
        yield where, p, correct_cell(row[correct], f"{where}, field {correct}")


def _chunks(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    it = iter(items)
    while part := list(islice(it, size)):
        yield part


def parquet_rows(path: str | Path) -> int:
    """Rows of a Parquet file by its footer; 0 for a file of another kind.

    >>> parquet_rows("table.csv")
    0
    """
    if Path(path).suffix.lower() not in (".parquet", ".pq") or kind_of(path) != "parquet":
        return 0
    import pyarrow.parquet as pq

    return int(pq.ParquetFile(path).metadata.num_rows)


def _parquet_columns(
    path: Path,
    names: list[str],
    size: int,
    cluster: str | None = None,
) -> Iterator[tuple[int, list[np.ndarray], np.ndarray | None, int]]:
    """Blocks of numeric columns, None as NaN: number of the first row, the columns, codes of the
    clusters as they first appear (or None), and how many clusters there were so far.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path, pre_buffer=False)  # else the whole file's columns stay in memory
    asked = [*names, *([cluster] if cluster else [])]
    for name in asked:
        if name not in file.schema_arrow.names:
            raise DataError(
                f"column {name!r} is missing",
                where=path.name,
                fix=f"found {sorted(file.schema_arrow.names)[:12]}",
            )
    first, code, known = 0, None, np.empty(0, np.int64)
    for batch in file.iter_batches(batch_size=size, columns=asked):
        columns = [batch.column(n).cast(pa.float64()).to_numpy(zero_copy_only=False) for n in names]
        if cluster:
            code, known = _numbered(batch.column(cluster), known, (path, first, cluster))
        yield first, columns, code, len(known)
        first += batch.num_rows


def _numbered(
    column: Any, known: np.ndarray, place_of: tuple[Path, int, str]
) -> tuple[np.ndarray, np.ndarray]:
    """Codes (n,) of a block's labels, and the keys `known` (C,) from earlier blocks with its own.

    A whole number is its own key, other labels go by a hash of 64 bits: a million take 8 MB.
    """
    import pyarrow as pa

    if column.null_count:
        path, first, name = place_of
        row = first + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise DataError(
            "cluster is missing",
            where=f"{place(path, row)}, field {name}",
            fix="give every row a cluster label",
        )
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    coded = column.dictionary_encode()
    labels = coded.dictionary
    if pa.types.is_integer(labels.type):
        keys = labels.to_numpy().astype(np.int64)
    else:
        keys = np.array([hash(str(v)) for v in labels.to_pylist()], np.int64)
    _, old, here = np.intersect1d(known, keys, assume_unique=True, return_indices=True)
    code = np.full(len(keys), -1)
    code[here] = old
    new = code < 0
    code[new] = len(known) + np.arange(new.sum())
    return code[coded.indices.to_numpy()], np.concatenate([known, keys[new]])


def numeric_parquet(path: str | Path, names: list[str]) -> bool:
    """True when it is a Parquet file whose columns of these names are all numbers or booleans: then
    it is read in blocks.
    """
    if not parquet_rows(path):
        return False
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pq.ParquetFile(path).schema_arrow
    kinds = [schema.field(n).type for n in names if schema.names.count(n) == 1]
    test = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
    return len(kinds) == len(names) and all(any(f(k) for f in test) for k in kinds)


def _parts(
    path: Path, names: list[str], size: int
) -> Iterator[tuple[Callable[[int], str], Any, Any]]:
    """Chunks of a table: what names the place of a row, confidences and outcomes."""
    if numeric_parquet(path, names):
        for first, (p, y), _, _ in _parquet_columns(path, names, size):
            yield lambda i, first=first: place(path, first + i), p, y
        return
    for rows in _chunks(_pairs(path, *names), size):
        places, p, y = zip(*rows, strict=True)
        yield places.__getitem__, p, y


def parquet_cells(
    path: str | Path,
    *,
    confidence: str,
    correct: str,
    cluster: str | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Columns of a numeric Parquet file as arrays, clusters as codes: a tenth of the memory of
    lists of objects.
    """
    n, names = parquet_rows(path), [confidence, correct]
    p, y, group = np.empty(n), np.empty(n, np.float32), np.empty(n if cluster else 0, np.int32)
    for first, (conf, right), code, _ in _parquet_columns(Path(path), names, CHUNK, cluster):
        here = slice(first, first + len(conf))
        p[here], y[here] = conf, right
        if code is not None:
            group[here] = code
    return p, y, group if cluster else None


def parquet_blocks(
    path: str | Path,
    *,
    confidence: str,
    correct: str,
    cluster: str,
) -> Iterator[Inputs]:
    """The usable rows of a numeric Parquet file in blocks: with a Sketch of the same file, what
    `reliability` takes as `cluster`. Errors name file, row and field.
    """
    columns = _parquet_columns(Path(path), [confidence, correct], BLOCK, cluster)
    for _, (p, y), code, c in columns:
        keep = (p >= 0) & (p <= 1) & ((y == 0) | (y == 1))
        lost = int((~keep).sum())
        yield Inputs(p[keep], y[keep], cluster=code[keep], n_clusters=c, missing=lost)


def sketch_file(
    path: str | Path,
    *,
    confidence: str,
    correct: str,
    missing: str = "raise",
    chunk: int = 200_000,
    into: Sketch | None = None,
) -> Sketch:
    """A Sketch of a JSONL, JSON, CSV or Parquet table, a chunk of rows in memory at a time.

    confidence, correct : column names. into : a sketch to add to (several files: pass it
        on, or merge). Errors name file, line and field.
    """
    sketch = into or Sketch()
    columns = {"conf": confidence, "correct": correct}
    for place_of, p, y in _parts(Path(path), [confidence, correct], chunk):
        try:
            sketch.update(p, y, missing=missing)
        except DataError as e:
            raise locate(e, columns, place_of) from None
    return sketch


def locate(e: DataError, columns: Mapping[str, str], place: Callable[[int], str]) -> DataError:
    """The error with "conf, row i" (from 0) said as the file's own place and field.

    columns : argument (conf, correct, cluster, weights) -> column of the file; place : row ->
        words.

    >>> e = DataError("bad", where="conf, row 1")
    >>> locate(e, {"conf": "p"}, lambda i: f"a.csv, line {i + 2}").where
    'a.csv, line 3, field p'
    """
    found = re.fullmatch(r"(\w+), row (\d+)", e.where or "")
    if not found:
        return e
    return DataError(
        e.what, where=f"{place(int(found[2]))}, field {columns.get(found[1], found[1])}", fix=e.fix
    )


def read_cells(
    path: str | Path,
    *,
    confidence: str,
    correct: str,
    cluster: str | None = None,
) -> tuple[list[float | None], list[float | None], list[Any] | None]:
    """Confidences, outcomes and cluster labels of a table that fits into memory; None where a cell
    is empty.

    Errors name file, line (the header counted) and field.
    """
    columns = read_columns(path, [confidence, correct, *([cluster] if cluster else [])])

    def cells(name: str, read: Callable[[Any, str], float | None]) -> Iterator[float | None]:
        for i, v in enumerate(columns[name]):
            try:
                yield read(v, "")
            except DataError as e:
                raise DataError(
                    e.what, where=f"{place(path, i)}, field {name}", fix=e.fix
                ) from None

    return (
        list(cells(confidence, confidence_cell)),
        list(cells(correct, correct_cell)),
        columns[cluster] if cluster else None,
    )
