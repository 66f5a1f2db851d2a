"""Which encoding a file is in: UTF-8, or the one that its byte order mark names; no mojibake."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Mapping
from typing import IO, Any

from ..errors import DataError
from .findings import Note

MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
ISO_2022 = re.compile(rb"\x1b(?:\$[@AB]|\$[()][A-GQR]|\([BIJ])")  # how it changes its characters
ESCAPED = re.compile("[\udc80-\udcff]")  # bytes that were no text in the encoding


def encoding_of(head: bytes, where: str) -> tuple[str, Note | None]:
    """(encoding of a file that begins like this, what to say of it); no word on UTF-8, with a mark
    or without. DataError for bytes that are neither.

    >>> encoding_of("naïve".encode(), "f")
    ('utf-8-sig', None)
    >>> encoding_of("naïve".encode("utf-16"), "f")[0]
    'utf-16'
    """
    for mark, name in MARKS:
        if head.startswith(mark):
            return name, Note(
                "encoding",
                f"the file was read as {name} (by its byte order mark); save it as UTF-8",
            )
    fix = "save it as UTF-8 (iconv -f WINDOWS-1252 -t UTF-8 FILE, for example)"
    wide = fix.replace("WINDOWS-1252", "UTF-16LE or UTF-16BE")
    DataError.first(
        (
            3 * head.count(0) > len(head),
            "the file is full of NUL bytes: it is not UTF-8",
            where,
            wide,
        ),
        (
            ISO_2022.search(head),
            "the file is ISO-2022 (escape sequences), not UTF-8",
            where,
            fix,
        ),
    )
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError as e:
        line = head.count(b"\n", 0, e.start) + 1
        raise DataError(
            f"the file is not UTF-8: byte {e.start + 1} is 0x{head[e.start]:02x}",
            where=f"{where}, line {line}",
            fix=fix,
        ) from None
    return "utf-8-sig", None


HALF = "half a character (a lone surrogate, as of an emoji that was cut) became U+FFFD"


def mended(value: Any) -> Any:
    """A value of JSON without halves of surrogate pairs, which no table and no file in UTF-8 takes.

    >>> mended({"a": ["x \\ud83d", 1]})
    {'a': ['x �', 1]}
    """
    if isinstance(value, str):
        if value.isascii():
            return value
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, Mapping):
        pairs = ((str(k).encode("utf-8", "backslashreplace"), v) for k, v in value.items())
        return {k.decode(): mended(v) for k, v in pairs}
    return [mended(v) for v in value] if isinstance(value, list) else value


class Recoded(io.RawIOBase):
    """A file of another encoding as bytes in UTF-8, block by block."""

    def __init__(self, head: bytes, raw: IO[bytes], encoding: str):
        self.raw, self.waiting = raw, head
        self.decoder: Any = codecs.getincrementaldecoder(encoding)("backslashreplace")

    def read(self, size: int = -1) -> bytes:
        """The next block, of about `size` bytes; empty at the end."""
        while True:
            block, self.waiting = self.waiting or self.raw.read(size), b""
            text = self.decoder.decode(block, final=not block)
            if text or not block:
                return text.encode("utf-8", "surrogatepass")
