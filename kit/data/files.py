"""Rows of a JSONL, JSON, CSV or Parquet file, or of memory, each with its place; a file as one table."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from ..errors import DataError, MissingError
from ..system.downloads import fetch_from_hub
from ..system.texts import parse_json, read_text

if TYPE_CHECKING:
    import pandas as pd

# Of a row, or of an object in it: name -> value.
Fields: TypeAlias = dict[str, Any]
# A `datasets.Dataset` is an iterable of mappings too.
Source: TypeAlias = (
    "str | os.PathLike[str] | pd.DataFrame | Iterable[Mapping[str, Any]]"
)

# A row is parsed when it is called, so that one broken row does not hide the rows after it.
LazyRow = Callable[[], Any]
NumberedRows = Iterator[tuple[int, LazyRow]]

# A CSV file holds texts only. The columns of these names hold numbers, or true and false.
COLUMN_TYPES: dict[str, type] = {
    "weight": float,
    "points": float,
    "inclusion": float,
    "confidence": float,
    "stated_confidence": float,
    "required": bool,
    "truncated": bool,
}
NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?")
CHAT_FIELDS = ("messages", "chosen", "rejected", "prompt", "completion")
CHAT_AS_TEXT = re.compile(r"""\s*\[\s*\{\s*["'](?:role|content)["'].*\]\s*""", re.S)


def rows_of(
    source: Source, ours: Mapping[str, str] | None = None
) -> Iterator[tuple[str, LazyRow]]:
    """(place, function that parses the row) of a file, an hf:// address, a DataFrame, a Dataset, or dicts.

    ours : a column of a CSV file -> our name of it, where they differ; its name says the type of its cells.
    """
    rows: Any = source
    place = "row"
    if isinstance(source, str) and source.startswith("hf://"):
        source = fetch_from_hub(source)
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if not path.is_file():
            raise MissingError(
                "there is no such file",
                where=str(path),
                fix="check the path and the folder that you are in",
            )
        ending = Path(path.name.lower().removesuffix(".gz")).suffix
        if ending not in READERS:
            raise DataError(
                f"files of the kind {path.suffix!r} are not read",
                where=str(path),
                fix=f"write one of {', '.join(READERS)}",
            )
        unit = "line" if ending in (".jsonl", ".ndjson") else "row"
        place = f"{path.name}, {unit}"
        read = READERS[ending]
        if ending in CELL_ENDINGS:
            read = partial(read, ours=ours)
        rows = read(path)
    else:
        # An empty cell of a table is NaN or None. In a dict NaN is a mistake, and stays.
        is_table = hasattr(rows, "iloc") or hasattr(rows, "column_names")
        if hasattr(rows, "iloc"):
            rows = rows.astype(object).where(rows.notna(), None).to_dict("records")
        rows = enumerate((partial(_plain_row, row, is_table) for row in rows), 1)
    for n, parse_row in rows:
        yield f"{place} {n}", parse_row


def read_rows(source: Source) -> Iterator[tuple[str, Fields]]:
    """(place, fields) of each row; DataError with its place for the first row that is not an object."""
    for place, parse_row in rows_of(source):
        try:
            yield place, row_fields(parse_row)
        except DataError as e:
            raise e.at(place) from None


def row_fields(parse_row: LazyRow) -> Fields:
    """The fields of a row; DataError where it is not an object."""
    row = parse_row()
    if not isinstance(row, dict):
        raise DataError(
            f"the row is a {type(row).__name__}, not an object with fields",
            fix='write {"id": ..., "prompt": ...}',
        )
    return row


def no_rows(file: str) -> DataError:
    """The error for a file without rows, which would give numbers of nothing."""
    return DataError(
        "there are no rows", where=file, fix="check that it is the right file"
    )


def read_table(
    path: str | os.PathLike[str], *, numbers: Sequence[str] = ()
) -> pd.DataFrame:
    """The rows of a file as a DataFrame. Texts stay as they are; an empty cell is NaN.

    path : CSV, TSV, JSONL, JSON or Parquet, also .gz. numbers : the columns that hold numbers, or true and false.
    DataError names row and column of a cell that does not.
    """
    import pandas as pd

    rows = dict(read_rows(path))
    if not rows:
        raise no_rows(Path(path).name)
    for place, row in rows.items():
        # An empty cell is unknown.
        for name in [n for n in numbers if row.get(n) is not None]:
            text = str(row[name]).strip().lower()
            text = {"true": "1", "false": "0"}.get(text, text)
            # Python would take "nan" and "1_0", too.
            if not NUMBER.fullmatch(text):
                raise DataError(
                    f"{row[name]!r} is not a number",
                    where=f"{place}, column {name!r}",
                    fix="write 1 and 0 for right and wrong, .95 for 95 %; leave it empty where it is unknown",
                )
            row[name] = float(text)
    return pd.DataFrame(rows.values())


def _json_lines(path: Path) -> NumberedRows:
    for n, line in enumerate(read_text(path).split("\n"), 1):
        if line.strip():
            yield n, partial(parse_json, line)


def _json_array(path: Path) -> NumberedRows:
    rows = parse_json(read_text(path), f"{path.name},")
    # A published RLVR sample is one row without brackets around it.
    if isinstance(rows, dict):
        rows = [rows]
    if not isinstance(rows, list):
        raise DataError(
            "the file holds no rows", where=path.name, fix="write [{...}, {...}]"
        )
    return enumerate((partial(_plain_row, row, False) for row in rows), 1)


def _cells_of_file(
    path: Path, delimiter: str, ours: Mapping[str, str] | None
) -> NumberedRows:
    # pandas would turn the texts "NA" and "None" into empty cells.
    reader = csv.DictReader(
        io.StringIO(read_text(path), newline=""), delimiter=delimiter, strict=True
    )
    # The default of 128 KiB is less than one long answer. The limit belongs to the process, so it is put back.
    limit = csv.field_size_limit(1 << 30)
    try:
        rows = list(reader)
    except csv.Error as e:
        raise DataError(
            f"the table is broken: {e}",
            where=f"{path.name}, line {reader.line_num}",
            fix="put texts with commas, quotation marks or line ends in quotation marks",
        ) from None
    finally:
        csv.field_size_limit(limit)
    names = reader.fieldnames or []
    if len(names) == 1 and ";" in names[0]:
        raise DataError(
            "the cells are parted by semicolons",
            where=path.name,
            fix="save it with commas, or with tabs as .tsv",
        )
    if len(set(names)) < len(names):
        raise DataError(
            "two columns have the same name",
            where=path.name,
            fix="rename or remove one of them",
        )
    return enumerate((partial(_parse_cells, row, ours) for row in rows), 2)


def _parse_cells(row: Mapping[str, Any], ours: Mapping[str, str] | None) -> Fields:
    # The reader puts surplus cells under None, and None into cells that lack.
    if None in row or None in row.values():
        raise DataError(
            "the row has another number of cells than the header",
            fix="put texts with commas in quotation marks",
        )
    fields = filled_fields({name: text or None for name, text in row.items()})
    return typed_cells(fields, ours or {})


def typed_cells(row: Fields, ours: Mapping[str, str]) -> Fields:
    """The row of a CSV file with numbers and flags where our names of its columns say so."""
    fields = dict(row)
    for name, text in row.items():
        kind = COLUMN_TYPES.get(ours.get(name, name), object)
        try:
            fields[name] = msgspec.convert(text, kind, strict=False)
        except msgspec.ValidationError:
            raise DataError(
                f"the field {name!r} is {text!r}, not a {kind.__name__}",
                fix="write a number as 0.95, a flag as true or false",
            ) from None
    return fields


def _parquet_rows(path: Path) -> NumberedRows:
    import pyarrow.parquet as pq

    try:
        rows = pq.read_table(path).to_pylist()
    # ArrowInvalid is a ValueError.
    except (OSError, ValueError) as e:
        raise DataError(
            f"the file is broken or cut: {e}",
            where=path.name,
            fix="fetch or write it again",
        ) from None
    return enumerate((partial(_plain_row, row, True) for row in rows), 1)


READERS: dict[str, Callable[..., NumberedRows]] = {
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".json": _json_array,
    ".csv": partial(_cells_of_file, delimiter=","),
    ".tsv": partial(_cells_of_file, delimiter="\t"),
    ".parquet": _parquet_rows,
}
# Their cells are texts.
CELL_ENDINGS = (".csv", ".tsv")


def parse_chats(row: Fields) -> Fields:
    """The row with its chats parsed, which a table has as JSON text."""
    for name in CHAT_FIELDS:
        text = row.get(name)
        # The kit's own records have texts only.
        if (
            isinstance(text, str)
            and "record" not in row
            and CHAT_AS_TEXT.fullmatch(text)
        ):
            row = {**row, name: parse_json(text, f"field {name!r}")}
    return row


def filled_fields(row: Mapping[str, Any]) -> Fields:
    """The fields without the empty cells of a table. A blank label still says that the row is one of labels."""
    return {k: v for k, v in row.items() if v is not None or k == "label"}


def _plain_row(row: Any, is_table: bool) -> Any:
    """The values as JSON has them: no numpy, no tuples."""
    values = msgspec.to_builtins(
        row, enc_hook=lambda x: x.tolist() if hasattr(x, "tolist") else str(x)
    )
    return filled_fields(values) if is_table else values
