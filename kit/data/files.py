"""Rows of a JSONL, JSON, CSV or Parquet file, or of memory, each with its place; rows into JSONL."""

import csv
import gzip
import io
import json
import os
import re
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from ..errors import DataError, MissingError

# A CSV file holds texts only. The columns of these names hold numbers, or true and false.
KINDS = {
    **dict.fromkeys(("weight", "points", "inclusion"), float),
    **dict.fromkeys(("confidence", "stated_confidence"), float),
    **dict.fromkeys(("required", "truncated"), bool),
}


def rows_of(source: Any) -> Iterator[tuple[str, Any]]:
    """(place, row) of a file, an hf:// address, a DataFrame, a `datasets.Dataset`, or dicts.

    A row may be a function that parses it, so that one broken row does not hide the rows after it.
    """
    if isinstance(source, str) and source.startswith("hf://"):
        source = _from_hub(source)
    if isinstance(source, str | os.PathLike):
        yield from _read(Path(source))
        return
    is_frame = hasattr(source, "iloc")
    # An empty cell of a table is NaN or None. In a dict NaN is a mistake, and stays.
    has_gaps = is_frame or hasattr(source, "column_names")
    for n, row in enumerate(source.to_dict("records") if is_frame else source, 1):
        yield f"row {n}", partial(_plain, row, has_gaps)


def _read(path: Path) -> Iterator[tuple[str, Any]]:
    if not path.is_file():
        raise MissingError("there is no such file", where=str(path))
    ending = Path(path.name.lower().removesuffix(".gz")).suffix
    if ending not in READERS:
        raise DataError(
            f"files of the kind {path.suffix!r} are not read",
            where=str(path),
            fix=f"write one of {', '.join(READERS)}",
        )
    what = "line" if READERS[ending] is _lines else "row"
    for n, row in READERS[ending](path):
        yield f"{path.name}, {what} {n}", row


def _text(path: Path) -> str:
    try:
        raw, is_packed = path.read_bytes(), path.suffix.lower() == ".gz"
        return (gzip.decompress(raw) if is_packed else raw).decode("utf-8-sig")
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
        # Python reads half of a surrogate pair; no UTF-8 file can hold it.
        if "\\ud" in text.lower():
            msgspec.json.encode(value)
        return value
    except (json.JSONDecodeError, UnicodeEncodeError) as e:
        raise DataError(f"this is not JSON: {e}", where=where) from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # `json` would take the last of two values; the writer may have meant the first.
    row = dict(pairs)
    if len(row) < len(pairs):
        twice = max(row, key=[name for name, _ in pairs].count)
        raise DataError(
            f"the field {twice!r} is there twice", fix="keep one of them"
        )
    return row


def _constant(name: str) -> Any:
    raise DataError(
        f"{name} is not a JSON number", fix="write null, or leave the field out"
    )


Numbered = Iterator[tuple[int, Any]]


def _lines(path: Path) -> Numbered:
    lines = enumerate(_text(path).split("\n"), 1)
    return ((n, partial(parse, line)) for n, line in lines if line.strip())


def _array(path: Path) -> Numbered:
    rows = parse(_text(path), f"{path.name},")
    # A published RLVR sample is one row without brackets around it.
    rows = [rows] if isinstance(rows, dict) else rows
    if not isinstance(rows, list):
        raise DataError(
            "the file holds no rows", where=path.name, fix="write [{...}, {...}]"
        )
    return enumerate(rows, 1)


def _csv(path: Path) -> Numbered:
    # The default of 128 KiB is less than one long answer.
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
        yield from enumerate((partial(_cells, row) for row in reader), 2)
    except csv.Error as e:
        raise DataError(
            f"the table is broken: {e}",
            where=f"{path.name}, line {reader.line_num}",
        ) from None


def _cells(row: dict[str, Any]) -> dict[str, Any]:
    if None in row or None in row.values():
        raise DataError(
            "the row has another number of cells than the header",
            fix="put texts with commas in quotation marks",
        )
    # A blank label still says that the row is one of labels.
    return {k: _cell(k, text) for k, text in row.items() if text or k == "label"}


def _cell(name: str, text: str) -> Any:
    kind = KINDS.get(name, str)
    try:
        return msgspec.convert(text, kind, strict=False)
    except msgspec.ValidationError:
        raise DataError(
            f"the field {name!r} is {text!r}, not a {kind.__name__}"
        ) from None


def _parquet(path: Path) -> Numbered:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        rows = pq.read_table(path).to_pylist()
    except (OSError, pa.ArrowInvalid) as e:
        raise DataError(
            f"the file is broken or cut: {e}", where=path.name
        ) from None
    return enumerate((partial(_plain, row, True) for row in rows), 1)


CHATS = ("messages", "chosen", "rejected", "prompt")
CHAT = re.compile(r"""\s*\[\s*\{\s*["'](?:role|content)["'].*\]\s*""", re.S)


def chats(row: dict[str, Any]) -> dict[str, Any]:
    """The row with its chats parsed, which a table has as JSON text."""
    # The kit's own records have texts only.
    return {
        k: parse(v, f"field {k!r}")
        if k in CHATS
        and "record" not in row
        and isinstance(v, str)
        and CHAT.fullmatch(v)
        else v
        for k, v in row.items()
    }


READERS = {
    ".jsonl": _lines,
    ".ndjson": _lines,
    ".json": _array,
    ".csv": _csv,
    ".tsv": _csv,
    ".parquet": _parquet,
}


def _plain(row: Any, has_gaps: bool) -> Any:
    """The values as JSON has them: no numpy, no tuples; without the empty cells of a table."""
    hook = lambda x: x.tolist() if hasattr(x, "tolist") else str(x)  # noqa: E731
    values = msgspec.to_builtins(row, enc_hook=hook)
    # NaN is the one value that differs from itself.
    gaps = [k for k, v in values.items() if v is None or v != v] if has_gaps else []
    # A blank label still says that the row is one of labels.
    label = {"label": None} if "label" in gaps else {}
    return (
        {k: v for k, v in values.items() if k not in gaps} | label
        if gaps
        else values
    )


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

        return Path(
            hf_hub_download(
                "/".join(parts[1:3]), "/".join(parts[3:]), repo_type="dataset"
            )
        )
    # No package, no network, no rights, a wrong name: each has a class of its own.
    except Exception as e:
        raise MissingError(
            f"the hub did not give the file: {type(e).__name__}: {str(e)[:200]}",
            where=address,
            fix="check the network, the address and HF_TOKEN, or fetch the file yourself",
        ) from None
