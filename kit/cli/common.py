"""What the subcommands share: output as text or JSON."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

from ..runs import plain

# what a terminal obeys: escape sequences, their 8-bit forms, line separators, text turned around
_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """Text of others that a terminal cannot obey: control characters as \\uXXXX.

    >>> print(printable("a\\x1b[2Jb"))
    a\\u001b[2Jb
    """
    return _OBEYED.sub(lambda m: f"\\u{ord(m[0]):04x}", text)


def emit(args: Any, data: Any, text: str) -> None:
    """Print `data` as JSON when --json was given, else `text`."""
    out = (
        json.dumps(plain(data), indent=2, ensure_ascii=False)
        if getattr(args, "json", False)
        else text
    ).rstrip() + "\n"
    out = printable(out)
    try:
        out.encode(sys.stdout.encoding or "utf-8")
    except (
        UnicodeEncodeError
    ):  # half a surrogate pair in the data, or a terminal that has no such letters
        if getattr(args, "json", False):
            out = json.dumps(plain(data), indent=2) + "\n"
        out = out.encode(sys.stdout.encoding or "utf-8", "backslashreplace").decode(
            sys.stdout.encoding or "utf-8"
        )
    sys.stdout.write(out)


def json_flag(parser: Any) -> None:
    """Add --json to a subcommand's parser."""
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
