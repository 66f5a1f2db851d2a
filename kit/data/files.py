"""Rows of a JSONL, JSON, CSV or Parquet file, or of memory, each with its place; rows into JSONL."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from ..errors import DataError, MissingError
from ..system import paths

KINDS = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
}
# A CSV file holds texts only. These columns hold numbers, and yes or no.
NUMBERS = {"weight", "points", "confidence", "stated_confidence", "inclusion"}
BOOLEANS = {"required", "truncated"}
# A row that cannot be read stands as its error, so that the rows after it are still read.
Place = tuple[str, "dict[str, Any] | DataError"]


def rows_of(source: Any) -> Iterator[Place]:
    """(place, row) of a file, an hf:// address, a DataFrame, a `datasets.Dataset`, or dicts."""
    if isinstance(source, str) and source.startswith("hf://"):
        source = _from_hub(source)
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        yield from ((f"{path.name}, {place}", row) for place, row in _read(path))
        return
    is_table = hasattr(source, "iloc") or hasattr(source, "column_names")
    rows = source.to_dict("records") if hasattr(source, "iloc") else source
    for n, row in enumerate(rows, 1):
        with _collect() as fault:
            row = _plain(row, gaps=is_table)
        yield f"row {n}", fault[0] if fault else _object(row)


def _read(path: Path) -> Iterator[Place]:
    if not path.is_file():
        raise MissingError("there is no such file", where=str(path))
    endings = [s.lower() for s in path.suffixes if s.lower() != ".gz"]
    kind = KINDS.get(endings[-1] if endings else "")
    if kind is None:
        raise DataError(
            f"files of the kind {path.suffix or 'without an ending'!r} are not read",
            where=str(path),
            fix=f"write one of {', '.join(KINDS)}",
        )
    for place, row in {"jsonl": _lines, "json": _array, "csv": _csv, "parquet": _parquet}[kind](
        path
    ):
        yield place, row if isinstance(row, DataError) else _object(row)


def _object(row: Any) -> dict[str, Any] | DataError:
    if isinstance(row, dict) and all(isinstance(k, str) for k in row):
        return row
    return DataError(f"the row is a {type(row).__name__}, not an object with named fields")


@contextlib.contextmanager
def _collect() -> Iterator[list[DataError]]:
    """The DataError that the block raises, in a list."""
    faults: list[DataError] = []
    try:
        yield faults
    except DataError as e:
        faults.append(e)


def _text(path: Path) -> str:
    try:
        raw = path.read_bytes()
        if path.suffix.lower() == ".gz":
            raw = gzip.decompress(raw)
        return raw.decode("utf-8-sig")
    except (UnicodeDecodeError, gzip.BadGzipFile, EOFError, zlib.error) as e:
        raise DataError(
            f"the file is broken, cut, or not UTF-8: {e}",
            where=path.name,
            fix="save it as UTF-8, or fetch it again",
        ) from None


def _json(text: str, where: str = "") -> Any:
    """JSON with bare control characters in its strings, as RLVR files have them.

    A field that an object has twice, NaN, and half a surrogate pair are errors: they would be lost.
    """
    try:
        value = json.loads(
            text, strict=False, object_pairs_hook=_unique_fields, parse_constant=_no_constant
        )
        if "\\ud" in text or "\\uD" in text:
            msgspec.json.encode(value)
        return value
    except json.JSONDecodeError as e:
        place = f"line {e.lineno}, column {e.colno}" if "\n" in text else f"column {e.colno}"
        raise DataError(f"this is not JSON: {e.msg}", where=f"{where} {place}".strip()) from None
    except (UnicodeEncodeError, RecursionError) as e:
        raise DataError(f"the text cannot be read: {e}", where=where) from None
    except DataError as e:
        raise DataError(e.what, where=where, fix=e.fix) from None


def _unique_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        names = [k for k, _ in pairs]
        twice = next(k for k in names if names.count(k) > 1)
        raise DataError(f"the field {twice!r} is there twice", fix="keep one of them")
    return row


def _no_constant(name: str) -> Any:
    raise DataError(f"{name} is not a JSON number", fix="write null, or leave the field out")


def _lines(path: Path) -> Iterator[tuple[str, Any]]:
    for n, line in enumerate(_text(path).split("\n"), 1):
        if line.strip():
            with _collect() as fault:
                row = _json(line)
            yield f"line {n}", fault[0] if fault else row


def _array(path: Path) -> Iterator[tuple[str, Any]]:
    rows = _json(_text(path), f"{path.name},")
    rows = [rows] if isinstance(rows, dict) else rows  # one row without brackets around it
    if not isinstance(rows, list):
        raise DataError("the file holds no rows", where=path.name, fix="write [{...}, {...}]")
    yield from ((f"row {n}", row) for n, row in enumerate(rows, 1))


def _csv(path: Path) -> Iterator[tuple[str, Any]]:
    csv.field_size_limit(1 << 30)
    mark = "\t" if ".tsv" in path.suffixes else ","
    reader = csv.reader(io.StringIO(_text(path), newline=""), delimiter=mark, strict=True)
    try:
        names = next(reader, [])
        if len(set(names)) < len(names):
            raise DataError("two columns have the same name", where=path.name)
        for n, cells in enumerate(reader, 2):
            if not cells:
                continue
            if len(cells) != len(names):
                what = f"the row has {len(cells)} cells, the header {len(names)}"
                yield f"row {n}", DataError(what, fix="put texts with commas in quotation marks")
            else:
                with _collect() as fault:
                    row = {k: _cell(k, x) for k, x in zip(names, cells, strict=True) if x}
                yield f"row {n}", fault[0] if fault else row
    except csv.Error as e:
        raise DataError(
            f"the table is broken: {e}", where=f"{path.name}, line {reader.line_num}"
        ) from None


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
    yield from ((f"row {n}", _plain(row, gaps=True)) for n, row in enumerate(rows, 1))


def _plain(row: Any, *, gaps: bool) -> Any:
    """The values as JSON has them. gaps : NaN is an empty cell of a table, so it is left out."""

    def convert(x: Any) -> Any:
        return x.tolist() if hasattr(x, "tolist") else str(x)

    try:
        if gaps:
            row = msgspec.json.decode(msgspec.json.encode(row, enc_hook=convert))
            return {k: v for k, v in row.items() if v is not None}
        return msgspec.to_builtins(row, enc_hook=convert)
    except (TypeError, UnicodeEncodeError, RecursionError) as e:
        raise DataError(f"the row has no JSON form: {e}") from None


def _from_hub(address: str) -> Any:
    """hf://datasets/OWNER/NAME/FILE as a path in the hub's cache; without FILE the split "train"."""
    parts = address.removeprefix("hf://").split("/")
    if len(parts) < 3 or parts[0] != "datasets" or not all(parts):
        raise DataError(
            "the address is not complete", where=address, fix="write hf://datasets/OWNER/NAME/FILE"
        )
    repository, name = "/".join(parts[1:3]), "/".join(parts[3:])
    fetch: Callable[[], Any]
    try:
        if name:
            from huggingface_hub import hf_hub_download

            fetch = lambda: hf_hub_download(repository, name, repo_type="dataset")  # noqa: E731
        else:
            from datasets import load_dataset

            fetch = lambda: load_dataset(repository, split="train")  # noqa: E731
        return fetch()
    except ImportError as e:
        raise MissingError(
            f"the package {e.name} is missing", where=address, fix=f"pip install {e.name}"
        ) from None
    except Exception as e:  # many kinds: network, rights, a wrong name, the hub's own
        raise MissingError(
            f"the hub did not give the data set: {type(e).__name__}: {str(e)[:200]}",
            where=address,
            fix="check the network, the name and HF_TOKEN, or fetch the file yourself and load it",
        ) from None


def write_jsonl(path: str | os.PathLike[str], rows: Iterable[Mapping[str, Any]]) -> int:
    """Write one object per line, the whole file or nothing; returns the number of rows."""
    lines = [msgspec.json.encode(row) for row in rows]
    text = b"".join(line + b"\n" for line in lines)
    paths.write(path, gzip.compress(text, mtime=0) if str(path).endswith(".gz") else text)
    return len(lines)
