"""Rows from JSONL, JSON, CSV and Parquet files, as a stream, each with its place.

Conventions: NaN stays NaN, null stays None, an empty CSV cell is None. Nothing is dropped in
silence: what cannot be read is a DataError that names file, line and field. `.gz` files are read as
they are.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import logging
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from ..errors import DataError
from ..settings.read import closest
from .cells import records, swallowed
from .chats import PROMPTS, is_chat
from .encodings import ESCAPED, Recoded, encoding_of
from .files import delimiter_of, kind_of, local, open_bytes
from .findings import Note
from .jsonl import mapped, numbered
from .names import mark, marked
from .slips import asks
from .stream import BadValue, decoder, lines, values

CONTAINERS = (
    "data",
    "rows",
    "examples",
    "items",
    "tasks",
    "records",
    "samples",
    "results",
    "per_sample",
    "train",
    "test",
)
BOOLEANS = {"true": True, "false": False, "wahr": True, "falsch": False}  # a German Excel's, too
log = logging.getLogger(__name__)
Problem = Callable[[str, str], None]  # (where, message): called instead of raising


def read_rows(
    path: str | os.PathLike[str], *, problem: Problem | None = None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Stream `(where, row)` of a JSONL, JSON array, CSV or Parquet file; memory does not grow with
    the file.

    Raw control characters inside JSON strings are accepted as they are. A JSON object that holds
    its rows
    in one field (data, rows, items, ...) is unpacked.

    path : a local file; `.gz` works.
    problem : called with (where, message) for every row that cannot be read, and reading goes on;
        without it the first one raises DataError.
    """
    for where, value in read_values(path, problem=problem):
        if isinstance(value, dict):
            yield where, value
        else:
            _report(
                problem,
                where,
                f"the row is {_type(value)}, not an object",
                'write one object per row: {"field": value}',
            )


def read_values(
    path: str | os.PathLike[str], *, problem: Problem | None = None
) -> Iterator[tuple[str, Any]]:
    """Like `read_rows`, but rows may be any JSON value."""
    read = {"parquet": _parquet, "csv": _csv, "json": _json}[kind_of(path)]
    yield from read(local(path), problem)


def _type(value: Any) -> str:
    names = {
        dict: "an object",
        list: "a list",
        str: "text",
        bool: "true/false",
        int: "a number",
        float: "a number",
        type(None): "null",
    }
    return names.get(type(value), type(value).__name__)


def _report(problem: Problem | None, where: str, message: str, fix: str | None = None) -> None:
    if problem is not None:
        problem(where, message)
    elif isinstance(message, Note):
        log.warning("%s: %s", where, message)
    else:
        raise DataError(message, where=where, fix=fix)


def _damage(raw: IO[bytes], problem: Problem | None, name: str) -> bool:
    """Report a .gz file that ended before its end."""
    fault = getattr(getattr(raw, "raw", None), "fault", "")
    if fault:
        _report(problem, name, fault, "fetch or copy the file again")
    return bool(fault)


def _json(path: Path, problem: Problem | None) -> Iterator[tuple[str, Any]]:
    name = path.name
    with open_bytes(path) as raw:
        notes: list[str] = []
        f = _text(raw, notes.append, str(path))  # bytes in UTF-8
        parse = decoder(notes.append)
        stream = lines(f, parse) if f.by_line else values(f, parse)
        sound = _sound(stream, notes, name, problem)
        head = list(itertools.islice(sound, 2))
        if len(head) == 1 and not {".jsonl", ".ndjson"} & set(path.suffixes):
            head = _unpack(*head[0], name, problem)  # a lone object may be a container of rows
        yield from head
        yield from sound
        damaged = _damage(raw, problem, name)
        while notes:
            _report(problem, name, notes.pop(0))
        if not f.seen and not damaged:
            raise DataError(
                "the file is empty",
                where=str(path),
                fix="check that the download or export finished",
            )


def _sound(
    stream: Iterable[tuple[str, Any]], notes: list[str], name: str, problem: Problem | None
) -> Iterator[tuple[str, Any]]:
    """The values that could be read; what is to be said of the others, and of the file, is said."""
    for place, value in stream:
        where = f"{name}, {place}"
        while notes:
            _report(problem, where, notes.pop(0), "remove one of the two")
        if isinstance(value, Note):
            _report(problem, where, value)
        elif isinstance(value, BadValue):
            _report(problem, where, value.message, "correct the JSON there")
        else:
            yield where, value


def _unpack(
    where: str, value: Any, name: str, problem: Problem | None
) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        asked = [value[k] for k in PROMPTS if value.get(k)]
        several = all(isinstance(a, (dict, list)) and not is_chat(a) for a in asked)
        if {"columns", "data"} <= value.keys() or (asked and several):
            raise DataError(
                "the file holds a table by its columns",
                where=name,
                fix='write one object a row: frame.to_json(path, orient="records")',
            )
        lists = {
            k: x
            for k, x in value.items()
            if x and isinstance(x, list) and all(isinstance(row, dict) for row in x)
        }
        held = [k for k in CONTAINERS if k in lists]
        if len(held) == 1:  # another part of the same rows
            names = lists[held[0]][0].keys()
            held += [k for k in lists if k not in held and lists[k][0].keys() == names]
        if len(held) > 1 and not value.keys() & {"prompt", "sub_tasks", "id"}:
            sizes = ", ".join(_sized(k, value[k]) for k in held)
            raise DataError(
                f"the file holds several lists of rows: {sizes}",
                where=name,
                fix="write each into a file of its own",
            )
        if len(held) == 1 and not ("prompt" in value or "sub_tasks" in value or "id" in value):
            rest = {k: x for k, x in value.items() if k != held[0]}
            side = marked({"split": held[0]} | rest)
            if rest := {k: x for k, x in rest.items() if mark(k, x) is None}:
                named = ", ".join(_sized(k, x) for k, x in list(rest.items())[:8])
                more = f" and {len(rest) - 8} more" * (len(rest) > 8)
                said = f"nothing reads {named}{more} beside the rows in {held[0]!r}"
                lost = any(asks(k, x) for k, x in rest.items())
                _report(problem, name, Note("unread-field", said, "error" if lost else "warning"))
            for i, row in enumerate(value[held[0]], 1):
                yield f"{name}, field {held[0]}, item {i}", {"split": side} | row if side else row
            return
    yield where, value


def _sized(name: str, value: Any) -> str:
    return f"{name!r} ({len(value)} items)" if isinstance(value, (list, dict)) else repr(name)


class _text:
    """Bytes of a JSON file in UTF-8, with its first block looked at: which encoding, lines or one
    document?"""

    def __init__(self, raw: IO[bytes], note: Callable[[str], None], where: str):
        head = raw.read(1 << 16)
        encoding, said = encoding_of(head, where)
        if said:
            note(said)
            raw = Recoded(head, raw, encoding)
            head = raw.read(1 << 16)
        head = head.removeprefix(b"\xef\xbb\xbf")
        self.raw, self.head = raw, head
        self.seen = bool(head.strip())
        first = head.lstrip(b" \t\r\n").split(b"\n", 1)[0].rstrip()
        long = len(first) > 1 and len(first) > len(head) // 2
        whole = first.endswith(b"}") or (long and not first.endswith((b",", b":", b"[", b"{")))
        if b"\n" not in head and b"\r" in head.strip():
            whole = False  # lines of an old Mac
        self.by_line = not head.lstrip(b" \t\r\n").startswith(b"[") and (
            whole or not first.startswith(b"{")
        )

    def read(self, size: int) -> bytes:
        """The next block; empty at the end."""
        head, self.head = self.head, b""
        return head or self.raw.read(size)


def _csv(path: Path, problem: Problem | None) -> Iterator[tuple[str, dict[str, Any]]]:
    csv.field_size_limit(1 << 30)
    tab = any(s.lower() == ".tsv" for s in path.suffixes)
    with open_bytes(path) as head:
        start = head.read(1 << 16)
    encoding, said = encoding_of(start, str(path))
    if said:
        _report(problem, path.name, said)
    with (
        open_bytes(path) as raw,
        io.TextIOWrapper(raw, encoding=encoding, errors="surrogateescape", newline="") as f,
    ):
        first = start.decode(encoding, "replace").lstrip().partition("\n")[0].rstrip("\r")
        delimiter = "\t" if tab else delimiter_of(first)
        if delimiter != "," and not tab:
            _report(
                problem,
                path.name,
                Note(
                    "delimiter",
                    f"the cells are divided by {delimiter!r}, going by the first line",
                ),
            )
        rows = records(f, delimiter)
        header = next(rows, (1, []))[1]
        DataError.first(
            (
                isinstance(header, csv.Error),
                f"the header cannot be read: {header}",
                str(path),
                None,
            ),
            (not header, "the file is empty", str(path), "the first line must name the columns"),
        )
        width = len(header)
        header = [name.strip() for name in header]
        while header and not header[-1]:  # columns that a spreadsheet left empty
            header.pop()
        if twice := sorted({n for n in header if header.count(n) > 1}):
            raise DataError(
                f"the header names {twice[0]!r} twice",
                where=f"{path.name}, line 1",
                fix="rename one of the columns",
            )
        for line, cells in rows:
            where = f"{path.name}, line {line}"
            if not (isinstance(cells, csv.Error) or any(c.strip() for c in cells)):
                continue
            if wrong := _wrong(cells, len(header), width, encoding):
                _report(problem, where, *wrong)
                continue
            if swallowed(cells, delimiter):
                _report(
                    problem,
                    where,
                    Note(
                        "quoted-lines",
                        "a quoted cell holds lines that look like rows: is its quote a stray one?",
                    ),
                )
            yield where, {h: (c if c != "" else None) for h, c in zip(header, cells, strict=False)}
        _damage(raw, problem, path.name)


def _wrong(
    cells: list[str] | csv.Error, named: int, width: int, encoding: str
) -> tuple[str, str | None] | None:
    """What is wrong with a line, and what to do; None for a sound one."""
    if isinstance(cells, csv.Error):
        return (
            f"the line cannot be read: {cells}",
            'close the quote; inside a quoted cell write "" for a quotation mark',
        )
    if any(not c.isascii() and ESCAPED.search(c) for c in cells):
        return f"the line is not {encoding.removesuffix('-sig').upper()}", None
    if len(cells) == width and not any(cells[named:]):
        return None
    wanted = f"the header {width}" if len(cells) != width else f"{named} are named"
    return f"the line has {len(cells)} cells, {wanted}", "quote cells that hold commas or line ends"


def _parquet(path: Path, problem: Problem | None) -> Iterator[tuple[str, dict[str, Any]]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.is_file():
        open_bytes(path)
    n = 0
    try:
        with pq.ParquetFile(path) as f:
            twice = [k for k, n in Counter(f.schema_arrow.names).items() if n > 1]
            if twice:
                raise DataError(
                    f"the file names {twice[0]!r} twice", where=path.name, fix="rename one column"
                )
            metadata = f.schema_arrow.metadata or {}
            known = json.loads(metadata.get(b"huggingface", b"{}"))
            index = numbered(json.loads(metadata.get(b"pandas", b"{}")), f.metadata.num_rows)
            features = known.get("info", {}).get("features", {})
            maps = {c.name: c.type for c in f.schema_arrow if "map<" in str(c.type)}
            batches = f.iter_batches(batch_size=512)
            rows = itertools.chain.from_iterable(batch.to_pylist() for batch in batches)
            for n, row in enumerate(rows, 1):
                row |= {k: mapped(row[k], kind) for k, kind in maps.items()}
                row |= {k: ids[n - 1] for k, ids in index.items() if k not in row}
                yield f"{path.name}, row {n}", named(row, features)
    except (pa.ArrowException, OSError) as e:
        _report(
            problem,
            f"{path.name}, row {n + 1}",
            f"the Parquet file cannot be read: {e}",
            "write the file again",
        )


def named(value: Any, feature: Any) -> Any:
    """A value of a data set of Hugging Face with the names of its classes in place of their
    numbers; -1, which stands for none, is None. feature : what the data set says of it.

    >>> named({"label": 0}, {"label": {"names": ["met", "unmet"], "_type": "ClassLabel"}})
    {'label': 'met'}
    """
    if not feature:
        return value
    kind = feature.get("_type") if isinstance(feature, Mapping) else None
    inner = feature[0] if isinstance(feature, list) else feature
    inner = inner["feature"] if isinstance(kind, str) and "feature" in inner else inner
    if isinstance(value, list):
        return [named(x, inner) for x in value]
    if isinstance(value, Mapping):
        return {k: named(x, inner.get(k)) for k, x in value.items()}
    if kind != "ClassLabel" or not isinstance(value, int):
        return value
    return None if value < 0 else feature["names"][value]


def read_columns(path: str | os.PathLike[str], names: Sequence[str]) -> dict[str, list[Any]]:
    """Columns of a file, `{name: [value per row]}`, all of one length; a row without the field
    gives None.

    CSV columns whose cells are all numbers (or all true/false) become numbers (booleans); "nan"
    becomes NaN.
    A dotted name ("scores.total") reaches into objects. DataError names a column found in no row,
    and the nearest.
    """
    columns: dict[str, list[Any]] = {n: [] for n in names}
    found: set[str] = set()
    present: dict[str, None] = {}
    for _, row in read_rows(path):
        present.update(dict.fromkeys(row))
        for n in names:
            ok, value = _get(row, n)
            columns[n].append(value)
            if ok:
                found.add(n)
    if not present:
        raise DataError(
            "the file has no rows",
            where=str(path),
            fix="check that the download or export finished",
        )
    for n in set(names) - found:
        near = closest(n, present)
        fix = f"did you mean {near!r}? " * bool(near) + f"columns: {', '.join(list(present)[:20])}"
        raise DataError(f"there is no column {n!r}", where=Path(path).name, fix=fix)
    if kind_of(path) != "csv":
        return columns
    return {n: typed(cells) for n, cells in columns.items()}


def place(path: str | os.PathLike[str], index: int) -> str:
    """Where row `index` (the first is 0) of `read_columns` stands, as `read_rows` says it: file and
    line, the header counted.

    Reads the file again up to there: for error messages.
    """
    return next(
        (where for i, (where, _) in enumerate(read_rows(path)) if i == index), Path(path).name
    )


def _get(row: Mapping[str, Any], name: str) -> tuple[bool, Any]:
    if name in row:
        return True, row[name]
    value: Any = row
    for part in name.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return False, None
        value = value[part]
    return True, value


def typed(cells: Sequence[Any]) -> list[Any]:
    """CSV text as numbers or booleans where every cell is one; otherwise as it stands.

    >>> typed(["1", None, "2.5"]), typed(["true", "False"]), typed(["1", "x"])
    ([1, None, 2.5], [True, False], ['1', 'x'])
    """
    texts = [c for c in cells if c is not None]
    if texts and all(isinstance(c, str) and c.strip().lower() in BOOLEANS for c in texts):
        return [None if c is None else BOOLEANS[c.strip().lower()] for c in cells]
    try:
        return [None if c is None else _number(c) for c in cells]
    except (ValueError, TypeError):
        return list(cells)


def _number(text: str) -> int | float:
    if "_" in text:
        raise ValueError(text)
    try:
        return int(text)
    except ValueError:
        return float(text)
