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

from ..data.values import point
from ..errors import DataError
from ..stats.vocabulary import side
from .sketch import Sketch

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
        return float(point(value))
    except (TypeError, ValueError):
        raise DataError(
            f"confidence is {str(value)[:60]!r}, not a number",
            where=where,
            fix="write a fraction such as 0.8; kit.confidence.extract reads text replies",
        ) from None


def correct_cell(value: Any, where: str) -> float | None:
    """A table cell as an outcome: true / false, 1 / 0, yes / no, correct / wrong; None when empty.

    >>> correct_cell("True", "f, line 1"), correct_cell(0, "f, line 2")
    (1, 0.0)
    """
    if value is None or (isinstance(value, str) and value.strip().lower() in EMPTY):
        return None
    if isinstance(value, str) and (known := side(value)) is not None:
        return known
    try:
        return float(value)
    except (TypeError, ValueError):
        raise DataError(
            f"correct is {str(value)[:60]!r}", where=where, fix="write true / false or 1 / 0"
        ) from None


def _pairs(
    path: Path, confidence: str, correct: str, weight: str | None
) -> Iterator[tuple[str, Any, Any, Any]]:
    from ..data.tables import read_rows

    for where, row in read_rows(path):
        for name in (confidence, correct, *([weight] if weight else [])):
            if name not in row:
                raise DataError(
                    f"column {name!r} is missing",
                    where=where,
                    fix=f"found {sorted(map(str, row))[:12]}",
                )
        yield where, row[confidence], row[correct], row[weight] if weight else None


def _chunks(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    it = iter(items)
    while part := list(islice(it, size)):
        yield part


def parquet_rows(path: str | Path) -> int:
    """Rows of a Parquet file by its footer; 0 for a file of another kind.

    >>> parquet_rows("table.csv")
    0
    """
    from ..data.tables import kind_of

    if Path(path).suffix.lower() not in (".parquet", ".pq") or kind_of(path) != "parquet":
        return 0
    import pyarrow.parquet as pq

    return int(pq.ParquetFile(path).metadata.num_rows)


def _parquet_columns(
    path: Path, names: list[str], size: int
) -> Iterator[tuple[int, list[np.ndarray]]]:
    """Blocks of numeric columns, None as NaN, with the number of their first row; DataError where a
    column is no number.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path)
    for name in names:
        if name not in file.schema_arrow.names:
            raise DataError(
                f"column {name!r} is missing",
                where=path.name,
                fix=f"found {sorted(file.schema_arrow.names)[:12]}",
            )
    first = 0
    for batch in file.iter_batches(batch_size=size, columns=names):
        columns = [batch.column(batch.schema.get_field_index(n)).cast(pa.float64()) for n in names]
        yield first, [c.to_numpy(zero_copy_only=False) for c in columns]
        first += batch.num_rows


def numeric_parquet(path: str | Path, names: list[str]) -> bool:
    """True when it is a Parquet file whose columns of these names are all numbers or booleans: then
    it is read in blocks.
    """
    if not parquet_rows(path):
        return False
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pq.ParquetFile(path).schema_arrow
    kinds = [schema.field(n).type for n in names if n in schema.names]
    test = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
    return len(kinds) == len(names) and all(any(f(k) for f in test) for k in kinds)


def _sketch_parquet(
    path: Path, sketch: Sketch, names: list[str], missing: str, chunk: int
) -> Sketch:
    from ..data.tables import place

    columns = dict(zip(("conf", "correct", "weights"), names, strict=False))
    for first, (p, y, *w) in _parquet_columns(path, names, chunk):
        try:
            sketch.update(p, y, weights=w[0] if w else None, missing=missing)
        except DataError as e:
            raise locate(e, columns, lambda i, first=first: place(path, first + i)) from None
    return sketch


def parquet_cells(
    path: str | Path, *, confidence: str, correct: str, cluster: str | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Columns of a numeric Parquet file as arrays, clusters as codes: a tenth of the memory of
    lists of objects.
    """
    import pyarrow.parquet as pq

    from ..data.tables import place

    n, path = parquet_rows(path), Path(path)
    p, y = np.empty(n), np.empty(n, np.float32)
    for first, (conf, right) in _parquet_columns(path, [confidence, correct], 1 << 18):
        p[first : first + len(conf)] = conf
        y[first : first + len(right)] = right
    if cluster is None:
        return p, y, None
    labels = pq.read_table(path, columns=[cluster]).column(cluster)
    if labels.null_count:
        row = next(i for i, v in enumerate(labels) if not v.is_valid)
        where = f"{place(path, row)}, field {cluster}"
        raise DataError("cluster is missing", where=where, fix="give every row a cluster label")
    coded = labels.dictionary_encode().combine_chunks()
    return p, y, coded.indices.to_numpy(zero_copy_only=False)


def sketch_file(
    path: str | Path,
    *,
    confidence: str,
    correct: str,
    weight: str | None = None,
    missing: str = "raise",
    chunk: int = 200_000,
    into: Sketch | None = None,
) -> Sketch:
    """A Sketch of a JSONL, JSON, CSV or Parquet table, a chunk of rows in memory at a time.

    confidence, correct, weight : column names. into : a sketch to add to (several files: pass it
        on, or merge). Errors name file, line and field.
    """
    sketch = into or Sketch()
    names = [confidence, correct, *([weight] if weight else [])]
    if numeric_parquet(path, names):
        return _sketch_parquet(Path(path), sketch, names, missing, chunk)
    for rows in _chunks(_pairs(Path(path), confidence, correct, weight), chunk):
        p = [confidence_cell(r[1], f"{r[0]}, field {confidence}") for r in rows]
        y = [correct_cell(r[2], f"{r[0]}, field {correct}") for r in rows]
        try:
            sketch.update(
                p, y, weights=None if weight is None else [r[3] for r in rows], missing=missing
            )
        except DataError as e:
            names = {"conf": confidence, "correct": correct, "weights": weight or "weights"}
            raise locate(e, names, lambda i, rows=rows: rows[i][0]) from None
    return sketch


def locate(e: DataError, columns: Mapping[str, str], place: Callable[[int], str]) -> DataError:
    """The error with "row i (the first row is 0), conf" said as the file's own place and field.

    columns : argument (conf, correct, cluster, weights) -> column of the file; place : row ->
        words.

    >>> e = DataError("bad", where="row 1 (the first row is 0), conf")
    >>> locate(e, {"conf": "p"}, lambda i: f"a.csv, line {i + 2}").where
    'a.csv, line 3, field p'
    """
    found = re.fullmatch(r"row (\d+) \(the first row is 0\), (\w+)", e.where or "")
    if not found:
        return e
    return DataError(
        e.what, where=f"{place(int(found[1]))}, field {columns.get(found[2], found[2])}", fix=e.fix
    )


def read_cells(
    path: str | Path, *, confidence: str, correct: str, cluster: str | None = None
) -> tuple[list[float | None], list[float | None], list[Any] | None]:
    """Confidences, outcomes and cluster labels of a table that fits into memory; None where a cell
    is empty.

    Errors name file, line (the header counted) and field.
    """
    from ..data.tables import place, read_columns

    columns = read_columns(path, [confidence, correct, *([cluster] if cluster else [])])

    def cells(name: str, read: Callable[[Any, str], float | None]) -> list[float | None]:
        out: list[float | None] = []
        for i, v in enumerate(columns[name]):
            try:
                out.append(read(v, ""))
            except DataError as e:
                raise DataError(
                    e.what, where=f"{place(path, i)}, field {name}", fix=e.fix
                ) from None
        return out

    return (
        cells(confidence, confidence_cell),
        cells(correct, correct_cell),
        columns[cluster] if cluster else None,
    )
