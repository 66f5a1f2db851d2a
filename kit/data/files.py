"""Rows of a JSONL, JSON, CSV or Parquet file, or of memory, each with its place; rows into JSONL."""

import csv
import gzip
import io
import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from ..errors import DataError, MissingError
from ..system import paths

# A CSV file holds texts only. These columns hold numbers, and true or false.
NUMBERS = {"weight", "points", "confidence", "stated_confidence", "inclusion"}
BOOLEANS = {"required", "truncated"}


def rows_of(source: Any) -> Iterator[tuple[str, Any]]:
    """(place, row) of a file, an hf:// address, a DataFrame, a `datasets.Dataset`, or dicts.

    A row may be a function that parses it, so that one broken row does not hide the rows after it.
    """
    if isinstance(source, str) and source.startswith("hf://"):
        source = _from_hub(source)
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        yield from ((f"{path.name}, {place}", row) for place, row in _read(path))
        return
    # An empty cell of a table is NaN or None. In a dict NaN is a mistake, and stays.
    has_gaps = hasattr(source, "iloc") or hasattr(source, "column_names")
    rows = source.to_dict("records") if hasattr(source, "iloc") else source
    yield from (
        (f"row {n}", partial(_plain, row, has_gaps)) for n, row in enumerate(rows, 1)
    )


def _read(path: Path) -> Iterator[tuple[str, Any]]:
    if not path.is_file():
        raise MissingError("there is no such file", where=str(path))
    readers = {
        ".jsonl": _lines,
        ".ndjson": _lines,
        ".json": _array,
        ".csv": _csv,
        ".tsv": _csv,
        ".parquet": _parquet,
    }
    endings = [s.lower() for s in path.suffixes if s.lower() != ".gz"]
    if not endings or endings[-1] not in readers:
        raise DataError(
            f"files of the kind {path.suffix!r} are not read",
            where=str(path),
            fix=f"write one of {', '.join(readers)}",
        )
    return readers[endings[-1]](path)


def _text(path: Path) -> str:
    try:
        raw = path.read_bytes()
        raw = gzip.decompress(raw) if path.suffix.lower() == ".gz" else raw
        return raw.decode("utf-8-sig")
    except (UnicodeDecodeError, gzip.BadGzipFile, EOFError, zlib.error) as e:
        raise DataError(
            f"the file is broken, cut, or not UTF-8: {e}",
            where=path.name,
            fix="save it as UTF-8, or fetch it again",
        ) from None


def parse(text: str, where: str = "") -> Any:
    """The value of a JSON text. Bare control characters in strings are taken, because RLVR files have them.

    A field that an object has twice, NaN, and half a surrogate pair are errors: they could not be written back.
    """
    try:
        value = json.loads(
            text, strict=False, object_pairs_hook=_object, parse_constant=_constant
        )
        if "\\ud" in text.lower():
            msgspec.json.encode(value)
        return value
    except (json.JSONDecodeError, UnicodeEncodeError) as e:
        raise DataError(f"this is not JSON: {e}", where=where) from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        twice = max(row, key=[name for name, _ in pairs].count)
        raise DataError(f"the field {twice!r} is there twice", fix="keep one of them")
    return row


def _constant(name: str) -> Any:
    raise DataError(
        f"{name} is not a JSON number", fix="write null, or leave the field out"
    )


def _lines(path: Path) -> Iterator[tuple[str, Any]]:
    for n, line in enumerate(_text(path).split("\n"), 1):
        if line.strip():
            yield f"line {n}", partial(parse, line)


def _array(path: Path) -> Iterator[tuple[str, Any]]:
    rows = parse(_text(path), f"{path.name},")
    # A published RLVR sample is one row without brackets around it.
    rows = [rows] if isinstance(rows, dict) else rows
    if not isinstance(rows, list):
        raise DataError(
            "the file holds no rows", where=path.name, fix="write [{...}, {...}]"
        )
    yield from ((f"row {n}", row) for n, row in enumerate(rows, 1))


def _csv(path: Path) -> Iterator[tuple[str, Any]]:
    csv.field_size_limit(1 << 30)
    mark = "\t" if ".tsv" in path.suffixes else ","
    # pandas would turn the texts "NA" and "None" into empty cells.
    reader = csv.DictReader(
        io.StringIO(_text(path), newline=""), delimiter=mark, strict=True
    )
    try:
        names = reader.fieldnames or []
        if len(set(names)) < len(names):
            raise DataError("two columns have the same name", where=path.name)
        yield from (
            (f"row {n}", partial(_cells, row)) for n, row in enumerate(reader, 2)
        )
    except csv.Error as e:
        where = f"{path.name}, line {reader.line_num}"
        raise DataError(f"the table is broken: {e}", where=where) from None


def _cells(row: dict[str, Any]) -> dict[str, Any]:
    if None in row or None in row.values():
        raise DataError(
            "the row has another number of cells than the header",
            fix="put texts with commas in quotation marks",
        )
    return {name: _cell(name, text) for name, text in row.items() if text}


def _cell(name: str, text: str) -> Any:
    try:
        if name in BOOLEANS:
            return {"true": True, "false": False}[text.strip().lower()]
        return float(text) if name in NUMBERS else text
    except (KeyError, ValueError):
        kind = "true or false" if name in BOOLEANS else "a number"
        raise DataError(f"the field {name!r} is {text!r}, not {kind}") from None


def _parquet(path: Path) -> Iterator[tuple[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        rows = pq.read_table(path).to_pylist()
    except (OSError, pa.ArrowInvalid) as e:
        raise DataError(f"the file is broken or cut: {e}", where=path.name) from None
    yield from (
        (f"row {n}", partial(_plain, row, True)) for n, row in enumerate(rows, 1)
    )


def _plain(row: Any, has_gaps: bool) -> Any:
    """The values as JSON has them: no numpy, no tuples; without the empty cells of a table."""
    hook = lambda x: x.tolist() if hasattr(x, "tolist") else str(x)  # noqa: E731
    values = msgspec.to_builtins(row, enc_hook=hook)
    # NaN is the one value that differs from itself.
    gaps = [k for k, v in values.items() if v is None or v != v] if has_gaps else []
    return {k: v for k, v in values.items() if k not in gaps} if gaps else values


def _from_hub(address: str) -> Path:
    """The path in the hub's cache of hf://datasets/OWNER/NAME/FILE."""
    parts = address.removeprefix("hf://").split("/")
    if len(parts) < 4 or parts[0] != "datasets" or not all(parts):
        raise DataError(
            "the address names no file",
            where=address,
            fix="write hf://datasets/OWNER/NAME/FILE, or give load() a datasets.Dataset",
        )
    try:
        from huggingface_hub import hf_hub_download

        name = "/".join(parts[3:])
        return Path(hf_hub_download("/".join(parts[1:3]), name, repo_type="dataset"))
    except (
        Exception
    ) as e:  # of many kinds: no package, no network, no rights, a wrong name
        raise MissingError(
            f"the hub did not give the file: {type(e).__name__}: {str(e)[:200]}",
            where=address,
            fix="check the network, the address and HF_TOKEN, or fetch the file yourself",
        ) from None


def write_jsonl(path: str | os.PathLike[str], rows: Iterable[Mapping[str, Any]]) -> int:
    """Write one object per line, the whole file or nothing; returns the number of rows."""
    lines = [msgspec.json.encode(row) for row in rows]
    text = b"".join(line + b"\n" for line in lines)
    # Without a time in its header, the same rows give the same bytes.
    paths.write(
        Path(path), gzip.compress(text, mtime=0) if str(path).endswith(".gz") else text
    )
    return len(lines)
