"""What the subcommands share: output as text or JSON, and tidy numbers."""

from __future__ import annotations

import json
import math
import sys
from typing import Any


def clean(value: Any) -> Any:
    """JSON-safe copy: NaN and infinities become None, numpy scalars become Python numbers, tuples lists.

    >>> clean({"a": float("nan"), "b": (1, 2)})
    {'a': None, 'b': [1, 2]}
    """
    if isinstance(value, dict):
        return {str(k): clean(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean(v) for v in value]
    if hasattr(value, "tolist"):
        return clean(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def emit(args: Any, data: Any, text: str) -> None:
    """Print `data` as JSON when --json was given, else `text`."""
    out = (json.dumps(clean(data), indent=2, ensure_ascii=False) if getattr(args, "json", False) else text).rstrip() + "\n"
    try:
        out.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:  # half a surrogate pair in the data, or a terminal that has no such letters
        if getattr(args, "json", False):
            out = json.dumps(clean(data), indent=2) + "\n"
        out = out.encode(sys.stdout.encoding or "utf-8", "backslashreplace").decode(sys.stdout.encoding or "utf-8")
    sys.stdout.write(out)


def json_flag(parser: Any) -> None:
    """Add --json to a subcommand's parser."""
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
