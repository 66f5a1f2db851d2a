"""Single values of a row: absent or not, as text, as a number."""

from __future__ import annotations

import ast
import io
import itertools
import json
import math
import re
import tokenize
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..checks.text import CJK
from ..records import NOTHING

if TYPE_CHECKING:
    from .rows import Row


PROSE = re.compile(rf"\s*(?:\S+\s+){{3}}\S|[{CJK}]{{6}}")  # four words: no name, no category
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet takes for a formula
NUMBER = re.compile(r" \(\d+\)\Z")  # behind a name that was taken


def unused(name: str, free: Callable[[str], bool], form: str = "{}#{}") -> str:
    """The name, with a number behind it where it is not free.

    >>> unused("a", lambda n: n not in ("a", "a#2"))
    'a#3'
    """
    each = itertools.chain([name], (form.format(name, i) for i in itertools.count(2)))
    return next(n for n in each if free(n))


def beside(meta: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Both; a name that is taken gets a number.

    >>> beside({"a": 1}, {"a": 2, "b": 3})
    {'a': 1, 'a (2)': 2, 'b': 3}
    """
    out = dict(meta)
    for name, value in more.items():
        out[unused(name, lambda n: n not in out, "{} ({})")] = value
    return out


def absent(value: Any) -> bool:
    """True for null and for NaN."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def says_nothing(text: str) -> bool:
    """True for blank text, and for what tables write into an empty cell.

    >>> says_nothing(" "), says_nothing("N/A"), says_nothing("nan"), says_nothing("No. 1")
    (True, True, True, False)
    """
    return len(text) < 20 and (not text.strip() or text.strip().casefold() in NOTHING)


def prose(value: Any) -> bool:
    """True for a text, or a list with a text, of some words.

    >>> prose("The cat sat on it."), prose(["Rome was not built"]), prose("Tone and style")
    (True, True, False)
    """
    each = value if isinstance(value, list) else [value]
    return any(isinstance(x, str) and PROSE.match(x) for x in each)


def blank(value: Any) -> bool:
    """True for what is absent or empty, and for white space; a cell says so as text.

    >>> blank(" "), blank([]), blank("[]"), blank("[x]")
    (True, True, True, False)
    """
    if isinstance(value, str):
        return value.strip() in ("", "[]", "{}")
    return absent(value) or (isinstance(value, (list, dict)) and not value)


def as_text(value: Any) -> str:
    """A value as text: text as it is, whole numbers without ".0", the rest as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return json.dumps(value, ensure_ascii=False, default=str)


def guarded(text: Any) -> Any:
    """A text that no spreadsheet takes for a formula: judged text is hostile.

    >>> guarded("=1+1"), guarded("plain"), unguarded(guarded("'-x")), unguarded("'tis")
    ("'=1+1", 'plain', "'-x", "'tis")
    """
    return f"'{text}" if _risky(text) else text


def unguarded(text: Any) -> Any:
    """The text that was guarded; another value as it is."""
    return text[1:] if _risky(text) and text[0] == "'" else text


def _risky(text: Any) -> bool:
    return isinstance(text, str) and text.lstrip("'").startswith(FORMULA)


def number(value: Any) -> float | None:
    """A finite number out of a number or numeric text; None otherwise.

    A decimal comma is refused: 1,234 may be thousands.

    >>> number("2.5"), number(True), number("x"), number("1,5")
    (2.5, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    if isinstance(value, str) and ("_" in value or not value.isascii()):
        return None  # Python alone takes these for numbers
    try:
        out = float(value)
    except (ValueError, OverflowError):
        return None
    return out if math.isfinite(out) else None


LISTED = re.compile(r"""\s*(?:\[\s*["'{\[]|\{\s*["']|"\s*[\[{])""")  # a list or object begins here

WITHIN = re.compile(  # a list or object behind a line that leads to it, or within a code fence
    r"(?:[^\n\[{`]{0,80}[:\n])?\s*(?:```\w*)?\s*([\[{].*[\]}])\s*(?:```)?\s*\Z", re.S
)


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
    found = literal(value)
    within = WITHIN.match(found) if isinstance(found, str) else None
    inner = parsed_json(within[1]) if within else None
    if isinstance(inner[0] if inner and isinstance(inner, list) else inner, Mapping):
        return inner
    if not isinstance(found, str) or not LISTED.match(value):
        return found
    row.aside(
        "unreadable-list",
        field_name,
        value,
        f"the field {field_name!r} begins like a list and cannot be read as one: {value[:60]!r}",
        severity="error",
        suggestion="write it as JSON; it may be cut off, or the text of an array without commas",
    )
    return None


def literal(value: Any) -> Any:
    """A list or an object out of JSON or of Python's repr; another value as it is.

    >>> literal("[{'met': True}]"), literal("a [b]")
    ([{'met': True}], 'a [b]')
    """
    if not isinstance(value, str) or not LISTED.match(value):
        return parsed_json(value)
    try:
        return parsed_json(_literal(value.strip()))
    except (ValueError, SyntaxError, RecursionError, MemoryError, tokenize.TokenError):
        return parsed_json(value)


def _literal(text: str) -> Any:
    """JSON text, or a literal of Python; also numpy's repr of objects, without commas between. Two
    texts without one, which Python would join, are a ValueError."""
    try:
        return json.loads(text, strict=False)
    except ValueError:
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        pairs = [
            *itertools.pairwise(t for t in tokens if t.type not in (tokenize.NL, tokenize.NEWLINE))
        ]
        if any(a.type == b.type == tokenize.STRING for a, b in pairs):
            raise ValueError("a comma is missing") from None
        apart = (a.string + (", " if (a.string, b.string) == ("}", "{") else " ") for a, b in pairs)
        return ast.literal_eval("".join(apart))


def both_of(meta: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Both; another value under a name that is taken gets a number."""
    held = [(NUMBER.sub("", k), x) for k, x in meta.items()]
    new = {k: x for k, x in more.items() if (NUMBER.sub("", k), x) not in held}
    return beside(meta, new)
