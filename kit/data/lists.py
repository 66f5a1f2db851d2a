"""Lists and objects that a cell of a table holds as text: JSON, or Python's repr."""

from __future__ import annotations

import ast
import io
import itertools
import json
import re
import tokenize
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .rows import Row

LISTED = re.compile(r"""\s*(?:\[\s*["'{\[]|\{\s*["']|"\s*[\[{])""")  # a list or object begins here


def parsed_json(value: Any) -> Any:
    """JSON in text as a value (control characters allowed); anything else, or text that is not
    JSON, as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(value, strict=False)
        except (ValueError, RecursionError):
            return value
    return value


def listed(row: Row, value: Any, field_name: str) -> Any:
    """A list of criteria that a cell of a table holds as text: JSON (also within JSON text) or
    Python's repr, as csv and pandas write it.

    What begins like one and cannot be read is an error, kept in meta, and not a criterion.
    """
    value = parsed_json(value)
    if not isinstance(value, str) or not LISTED.match(value):
        return value
    try:
        found = _literal(value.strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError, tokenize.TokenError):
        found = value
    found = parsed_json(found)
    if isinstance(found, (list, Mapping)):
        return found
    row.keep(field_name, value)
    row.find(
        "unreadable-list",
        f"the field {field_name!r} begins like a list and cannot be read as one: {value[:60]!r}",
        severity="error",
        field=field_name,
        suggestion="write it as JSON; it may be cut off, or the text of an array without commas",
    )
    return None


def _literal(text: str) -> Any:
    """JSON text, or a literal of Python; two texts without a comma between (numpy's repr), which
    Python would join, are a ValueError."""
    try:
        return json.loads(text, strict=False)
    except ValueError:
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        kinds = [t.type for t in tokens if t.type not in (tokenize.NL, tokenize.NEWLINE)]
        if (tokenize.STRING, tokenize.STRING) in itertools.pairwise(kinds):
            raise ValueError("a comma is missing") from None
        return ast.literal_eval(text)
