"""A file to read: a path, a .gz, or an address, as bytes on this machine; what is not there is
named with what is near."""

from __future__ import annotations

import atexit
import gzip
import io
import os
import re
import shutil
import tempfile
import zlib
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from ..errors import DataError, MissingError
from ..settings.read import closest

STRANGE = {  # how files begin that are none of data
    b"pk\x03\x04": "a zip archive or an Excel file",
    b"<!doctype": "a web page",
    b"<html": "a web page",
    b"version https://git-lfs": "a pointer of git-LFS",
}


def open_bytes(path: str | os.PathLike[str]) -> IO[bytes]:
    """The file opened for reading bytes, unzipped where it is gzip; MissingError when it is not
    there."""
    p = local(path)
    if p.is_dir():
        raise DataError("this is a folder, not a file", where=str(p), fix="give a file in it")
    if not p.is_file():
        if p.exists():
            raise DataError("this is a device, not a file", where=str(p), fix="give a file")
        near = closest(p.name, [x.name for x in p.parent.iterdir()]) if p.parent.is_dir() else None
        raise MissingError(
            "there is no such file",
            where=str(p),
            fix=f"did you mean {near!r}?" if near else "check the path",
        )
    raw = p.open("rb")
    head = raw.read(64)
    zipped = head.startswith(b"\x1f\x8b")  # by its bytes: the name may be wrong either way
    raw.seek(0)
    for begins, what in STRANGE.items():
        if head.lstrip().lower().startswith(begins):
            raw.close()
            raise DataError(
                f"this is {what}, whatever its name",
                where=str(p),
                fix="fetch or export the data itself, as JSONL, JSON, CSV or Parquet",
            )
    if not zipped:
        return raw
    raw.close()
    return io.BufferedReader(_Unzipped(p), 1 << 16)


class _Unzipped(io.RawIOBase):
    """A .gz file as bytes. One that is cut off or damaged ends where it can no longer be read;
    `fault` says so."""

    def __init__(self, path: Path):
        self.zip, self.fault, self.count = gzip.open(path, "rb"), "", 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer`; 0 at the end, or where the file is damaged."""
        try:
            data = b"" if self.fault else self.zip.read1(len(buffer))
        except (EOFError, OSError, zlib.error) as e:
            data = b""
            self.fault = (
                f"the .gz file is cut off or damaged near its unpacked byte {self.count} ({e}); "
                "what stands before was read"
            )
        self.count += len(data)
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self.zip.close()
        super().close()


def is_url(path: str | os.PathLike[str]) -> bool:
    """True for an address such as https://... or s3://..., False for a path."""
    return "://" in os.fspath(path) if isinstance(os.fspath(path), str) else False


def local(path: str | os.PathLike[str]) -> Path:
    """The path itself, or for an address a copy of what is there, fetched once through fsspec and
    deleted at exit."""
    return _fetched(os.fspath(path)) if is_url(path) else Path(path)


@lru_cache(maxsize=64)
def _fetched(url: str) -> Path:
    if os.environ.get("KIT_OFFLINE", "") not in ("", "0"):
        raise MissingError(
            "KIT_OFFLINE is set, so nothing is fetched",
            where=url,
            fix="unset KIT_OFFLINE, or give a local file",
        )
    folder = tempfile.TemporaryDirectory(prefix="kit-")
    atexit.register(folder.cleanup)
    target = Path(folder.name) / (url.partition("?")[0].rstrip("/").rpartition("/")[2] or "file")
    try:
        import fsspec

        with fsspec.open(url, "rb") as source, target.open("wb") as out:
            shutil.copyfileobj(source, out, 1 << 20)
    except Exception as e:  # a protocol, a package, the network, credentials: each its own class
        folder.cleanup()
        raise MissingError(
            f"the address cannot be read: {type(e).__name__}: {str(e)[:200]}",
            where=url,
            fix="check the address and the network (s3://, gs://, hf:// need s3fs, gcsfs, "
            "huggingface_hub), or download the file and give its path",
        ) from None
    return target


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
OTHERS += (".md", ".html", ".htm", ".pdf", ".docx", ".feather", ".arrow", ".orc", ".avro", ".pkl")
OTHERS += (".ods", ".tar", ".tgz", ".7z")
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
