"""What the subcommands share: output as text or JSON."""

from __future__ import annotations

import json
import sys
from typing import Any

from ..runs import plain


def emit(args: Any, data: Any, text: str) -> None:
    """Print `data` as JSON when --json was given, else `text`."""
    out = (
        json.dumps(plain(data), indent=2, ensure_ascii=False)
        if getattr(args, "json", False)
        else text
    ).rstrip() + "\n"
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
