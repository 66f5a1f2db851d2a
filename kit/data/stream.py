"""JSON as a stream: values one by one out of a file of any size, tolerant of raw control characters
in strings.

Real rubric files hold unescaped TABs (and other control characters) inside strings. Replacing every
TAB would
damage files that are indented with tabs, so nothing is replaced: the decoder takes the characters
as text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from .encodings import ESCAPED
from .findings import Note

BLOCK = 1 << 20  # bytes read at once
TRIES = 300  # places that look like the beginning of a row and are none; then the rest is given up
KEPT = 1 << 20  # characters that are searched again for a row that a block's end cut
LIMIT = 1 << 28  # characters of one value; beyond that the file is taken to be broken


class Source(Protocol):
    """Something with `read(size) -> bytes`, empty at the end."""

    def read(self, size: int) -> bytes: ...


@dataclass(frozen=True)
class BadValue:
    """Stands for a line that is not JSON; `message` says why."""

    message: str


def decoder(note: Callable[[str], None]) -> json.JSONDecoder:
    """A JSON decoder that takes control characters in strings, and notes keys that occur twice in
    an object."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        out = dict(items)
        if len(out) != len(items):
            seen: set[str] = set()
            twice = [k for k, _ in items if k in seen or seen.add(k)]  # type: ignore[func-returns-value]
            note(
                Note(
                    "duplicate-field",
                    f"the field {twice[0]!r} occurs twice in one object; the last value is used",
                )
            )
        return out

    return json.JSONDecoder(strict=False, object_pairs_hook=pairs)


def lines(source: Source, parse: json.JSONDecoder) -> Iterator[tuple[str, Any]]:
    """`("line N", value)` per line that is not blank; a line that is not JSON gives a BadValue."""
    rest, n = b"", 0
    while True:
        block = source.read(BLOCK)
        parts = (rest + block).split(b"\n") if rest else block.split(b"\n")
        rest = parts.pop() if block else b""
        for raw in parts:
            n += 1
            if raw.strip():
                yield f"line {n}", _line(raw, parse)
        if not block:
            return
        if len(rest) > LIMIT:
            yield f"line {n + 1}", BadValue(f"the line is longer than {LIMIT} bytes")
            return


def _line(raw: bytes, parse: json.JSONDecoder) -> Any:
    try:
        return parse.decode(raw.decode("utf-8").strip("\ufeff"))
    except UnicodeDecodeError as e:
        return BadValue(f"the line is not UTF-8 (byte {e.start + 1}: 0x{raw[e.start]:02x})")
    except json.JSONDecodeError as e:
        return BadValue(f"the line is not JSON: {e.msg}, column {e.colno}")
    except (
        ValueError,
        RecursionError,
    ) as e:  # an integer of over 4300 digits; nesting deeper than the stack
        return BadValue(f"the line cannot be read: {e}")


class _Buffer:
    """Text of the file from the current value on, with the line number that it starts at."""

    def __init__(self, source: Source):
        import codecs

        self.source, self.text, self.at, self.end = source, "", 0, False
        self.line, self.mark = 1, 0  # the line number at position `mark`
        self.utf8 = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self.foreign = ""  # said once: bytes that are not UTF-8

    def more(self) -> bool:
        """Read another block (doubling with what is held); False at the end of the file."""
        if self.end:
            return False
        block = self.source.read(max(BLOCK, len(self.text) - self.at))
        self.line_of(self.at)
        fresh = self.utf8.decode(block, final=not block)
        if not fresh.isascii() and (m := ESCAPED.search(fresh)):
            self.foreign = (
                f"bytes that are not UTF-8 (0x{ord(m[0]) - 0xDC00:02x} near line "
                f"{self.line + fresh.count(chr(10), 0, m.start())}) stand as \\udcXX in the text"
            )
        self.text = self.text[self.at :] + fresh
        self.at, self.mark, self.end = 0, 0, not block
        return not self.end

    def skip(self, chars: str) -> str:
        """Step over `chars`; the next character, "" at the end."""
        while True:
            while self.at < len(self.text) and self.text[self.at] in chars:
                self.at += 1
            if self.at < len(self.text):
                return self.text[self.at]
            if not self.more():
                return self.text[self.at : self.at + 1]

    def line_of(self, position: int) -> int:
        """1-based line of a position in the text; cheap when positions grow."""
        if position < self.mark:
            return self.line - self.text.count("\n", position, self.mark)
        self.line += self.text.count("\n", self.mark, position)
        self.mark = position
        return self.line


def values(source: Source, parse: json.JSONDecoder) -> Iterator[tuple[str, Any]]:
    """`("row N (line L)", value)` per element of a top-level array, or per value of a file of
    values one after another.

    A fault gives a BadValue that says what was not read: reading goes on at the next row that has
    the fields of the
    rows before; where there is none, the rest of the file is measured and given up.
    """
    b = _Buffer(source)
    array = b.skip(" \t\r\n\ufeff") == "["
    if array:
        b.at += 1
    n, gap, like = 0, " \t\r\n" if array else " \t\r\n,", frozenset()
    while True:
        following = b.skip(gap)
        closed = array and following == "]"
        b.at += closed
        if closed and b.skip(" \t\r\n\0") == "[":
            said = "several arrays follow one another: the rows of all are read"
            yield f"line {b.line_of(b.at)}", Note("several-arrays", said, "info")
            b.at += 1
            continue
        if closed or following == "":
            break
        n += 1
        line = b.line_of(b.at)
        value = _value(b, parse)
        if isinstance(value, BadValue):
            lost, found = _resume(b, parse, like)
            yield f"row {n} (line {line})", BadValue(f"{value.message}; {lost}")
            if not found:
                return
            continue
        if b.foreign:
            yield f"row {n} (line {line})", Note("encoding", b.foreign)
            b.foreign = ""
        yield f"row {n} (line {line})", value
        like = frozenset(value) if isinstance(value, dict) else like
        if array and (following := b.skip(gap)) not in (",", "]"):
            where, message = f"line {b.line_of(b.at)}", "the array is cut off"
            if following == "{":
                yield where, Note("missing-comma", "a comma is missing between two rows")
                continue
            if following:
                lost, found = _resume(b, parse, like)
                message = f"expected ',' or ']' after the row; {lost}"
            yield where, BadValue(message)
            if not following or not found:
                return
            continue
        b.at += array and following == ","
    if array:
        yield from _after(b, parse, closed)


_START = re.compile(r"[\]}\n]\s*,?\s*(?=\{)")  # where a row may begin


def _resume(b: _Buffer, parse: json.JSONDecoder, like: frozenset[str]) -> tuple[str, bool]:
    """(what was left out, was a row found?): go on to the next object that has most of the fields
    `like`.

    An object inside the broken row has other fields. Memory stays flat: what was searched is let
    go.
    """
    start, left, first, tries = b.line_of(b.at), 0, True, TRIES
    while True:
        at = b.at + first
        for m in _START.finditer(b.text, at):
            place = m.end()
            if not like or tries <= 0:
                break
            found = _row_at(b, parse, place)
            tries -= found is None
            if found is not None and 2 * len(like & found.keys()) > len(like):
                left += place - b.at
                line = b.line_of(place)
                b.at = place
                return f"{left} characters, lines {start} to {line}, were not read", True
        keep = max(at, len(b.text) - (KEPT if like else 64))
        left += keep - b.at
        b.line_of(keep)
        b.at, first = keep, False
        if not b.more():
            left += len(b.text) - b.at
            b.at = len(b.text)
            return (
                f"the rest of the file, {left} characters from line {start} on, was not read",
                False,
            )


def _row_at(b: _Buffer, parse: json.JSONDecoder, place: int) -> dict[str, Any] | None:
    try:
        value = parse.raw_decode(b.text, place)[0]
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _after(b: _Buffer, parse: json.JSONDecoder, closed: bool) -> Iterator[tuple[str, Any]]:
    """What follows the closing bracket: nothing, or a fault."""
    if not closed:
        yield (
            f"line {b.line_of(b.at)}",
            BadValue("the array is cut off: its closing ']' is missing"),
        )
        return
    if b.skip(" \t\r\n\0"):
        line = b.line_of(b.at)
        lost, _ = _resume(b, parse, frozenset())
        yield f"line {line}", BadValue(f"something follows the end of the array; {lost}")


def _value(b: _Buffer, parse: json.JSONDecoder) -> Any:
    while True:
        start = b.at
        try:
            value, end = parse.raw_decode(b.text, start)
        except json.JSONDecodeError as e:
            rest = b.text[e.pos :] if e.pos >= len(b.text) - 16 else "}"
            cut = e.msg.startswith("Unterminated string") or not {"]", "}"} & set(rest)
            if cut and len(b.text) - start < LIMIT and b.more():
                continue
            line = b.line_of(b.at + e.pos - start)
            return BadValue(
                f"not JSON: {e.msg}, line {line}"
                + (" (the file seems to be cut off)" if b.end and cut else "")
            )
        except (ValueError, RecursionError) as e:
            return BadValue(f"the row cannot be read: {e}")
        if end == len(b.text) and b.more():  # a number may go on in the next block
            continue
        b.at += end - start
        return value
