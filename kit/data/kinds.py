"""Which kind of table a file is, by its name and its first bytes."""

from __future__ import annotations

import os
import re

from ..errors import DataError
from .files import local, open_bytes

SUFFIXES = {
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
}
OTHERS = (".yaml", ".yml", ".xlsx", ".xls", ".toml", ".xml", ".zip", ".bz2", ".xz", ".zst")
OTHERS += (".md", ".html", ".htm", ".pdf", ".docx")
JSON_HEAD = re.compile(rb'(?:\xef\xbb\xbf)?\s*\[?\s*\{\s*["}]')


def kind_of(path: str | os.PathLike[str]) -> str:
    """ "json", "csv" or "parquet", by suffix, then by the first bytes."""
    p = local(path)
    suffixes = [s.lower() for s in p.suffixes if s.lower() != ".gz"]
    kind = SUFFIXES.get(suffixes[-1]) if suffixes else None
    if suffixes and suffixes[-1] in OTHERS:
        raise DataError(
            f"{suffixes[-1]} files are not read",
            where=str(p),
            fix="write JSONL (one object a line), JSON, CSV or Parquet",
        )
    if kind and kind != "csv":
        return kind
    with open_bytes(p) as f:
        head = f.read(4096)
    if kind == "csv":  # some export JSON under this name; no header begins so
        return "json" if JSON_HEAD.match(head) else "csv"
    if head[:4] == b"PAR1":
        return "parquet"
    return "json" if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[") else "csv"


def delimiter_of(header: str) -> str:
    """What divides the cells of a header: a comma, or where it has none what it has most of."""
    best = max(";|\t", key=header.count)
    return best if "," not in header and best in header else ","
