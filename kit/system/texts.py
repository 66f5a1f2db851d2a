"""Text files and JSON, read strictly: what is broken, or could not be written back, is an error."""

import gzip
import json
import zlib
from pathlib import Path
from typing import Any

import msgspec

from ..errors import DataError


def read_text(path: Path) -> str:
    """The text of a UTF-8 file, also of a .gz one."""
    raw = path.read_bytes()
    try:
        if path.suffix.lower() == ".gz":
            raw = gzip.decompress(raw)
        # Excel begins a UTF-8 file with a mark.
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DataError(
            "the file is not UTF-8",
            where=path.name,
            fix="save it as UTF-8 (Excel: 'CSV UTF-8')",
        ) from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as e:
        raise DataError(
            f"the file is broken or cut: {e}",
            where=path.name,
            fix="fetch it again",
        ) from None


def parse_json(text: str, where: str = "") -> Any:
    """The value of a JSON text. Bare control characters in strings are taken, because RLVR files have them.

    A field that an object has twice, NaN, and half a surrogate pair are errors: they could not be written back.
    """
    try:
        value = json.loads(
            text,
            strict=False,
            object_pairs_hook=_unique_fields,
            parse_constant=_refuse_constant,
        )
        # Python reads half of a surrogate pair; no UTF-8 file can hold it.
        if "\\ud" in text.lower():
            msgspec.json.encode(value)
        return value
    except (json.JSONDecodeError, UnicodeEncodeError) as e:
        raise DataError(
            f"this is not JSON: {e}",
            where=where,
            fix='write a text as "...", a list of texts as ["...", "..."], an object as {"name": "..."}',
        ) from None


def _unique_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # `json` would take the last of two values; the writer may have meant the first.
    row = dict(pairs)
    if len(row) < len(pairs):
        twice = max(row, key=[name for name, _ in pairs].count)
        raise DataError(
            f"the field {twice!r} is there twice", fix="keep one of them"
        )
    return row


def _refuse_constant(name: str) -> Any:
    raise DataError(
        f"{name} is not a JSON number", fix="write null, or leave the field out"
    )
