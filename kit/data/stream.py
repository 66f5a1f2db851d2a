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
from typing import IO, Any

from .encodings import ESCAPED, HALF, mended
from .findings import Note

BLOCK = 1 << 20  # bytes read at once
HALVES = ("\\ud", "\\uD")  # how JSON escapes half of a surrogate pair, or a whole one
BLANK = re.compile(r"\s*")
LIMIT = 1 << 28  # characters of one value; beyond that the file is taken to be broken


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


def lines(source: IO[bytes], parse: json.JSONDecoder) -> Iterator[tuple[str, Any]]:
    """`("line N", value)` per line that is not blank; a line that is not JSON gives a BadValue."""
    rest, n = b"", 0
    while True:
        block = source.read(BLOCK)
        parts = (rest + block).split(b"\n")
        rest = parts.pop() if block else b""
        for raw in parts:
            n += 1
            for value in _line(raw, parse):
                yield f"line {n}", value
        if not block:
            return
        if len(rest) > LIMIT:
            yield f"line {n + 1}", BadValue(f"the line is longer than {LIMIT} bytes")
            return


def _line(raw: bytes, parse: json.JSONDecoder) -> Iterator[Any]:
    """The value of a line; several where a line end between objects was lost."""
    end = 0
    try:
        text = raw.decode("utf-8").strip("\ufeff \t\r\n")
        while end < len(text):
            value, end = parse.raw_decode(text, end)
            end = BLANK.match(text, end).end()  # type: ignore[union-attr]
            if end < len(text) and text[end] != "{":
                raise json.JSONDecodeError("Extra data", text, end)
            whole = mended(value) if any(half in text for half in HALVES) else value
            if whole != value:
                yield Note("encoding", HALF)
            yield whole
    except UnicodeDecodeError as e:
        yield BadValue(f"the line is not UTF-8 (byte {e.start + 1}: 0x{raw[e.start]:02x})")
    except json.JSONDecodeError as e:
        yield BadValue(f"the line is not JSON: {e.msg}, column {e.colno}")
    except (
        ValueError,
        RecursionError,
    ) as e:  # an integer of over 4300 digits; nesting deeper than the stack
        yield BadValue(f"the line cannot be read: {e}")


class _Buffer:
    """Text of the file from the current value on, with the line number that it starts at."""

    def __init__(self, source: IO[bytes]):
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
                f"{self.line + fresh.count(chr(10), 0, m.start())}) became U+FFFD in the text"
            )
            fresh = ESCAPED.sub("\ufffd", fresh)
        self.text = self.text[self.at :] + fresh
        self.at, self.mark, self.end = 0, 0, not block
        return not self.end

    def skip(self, chars: str) -> str:
        """Step over `chars`; the next character, "" at the end."""
        while True:
            while self.at < len(self.text) and self.text[self.at] in chars:
                self.at += 1
            if self.at < len(self.text) or not self.more():
                return self.text[self.at : self.at + 1]

    def line_of(self, position: int) -> int:
        """1-based line of a position in the text; cheap when positions grow."""
        if position < self.mark:
            return self.line - self.text.count("\n", position, self.mark)
        self.line += self.text.count("\n", self.mark, position)
        self.mark = position
        return self.line


def values(source: IO[bytes], parse: json.JSONDecoder) -> Iterator[tuple[str, Any]]:
    """`("row N (line L)", value)` per element of a top-level array, or per value of a file of
    values one after another.

    A fault gives a BadValue that says from which line on nothing was read, and ends the reading.
    """
    b = _Buffer(source)
    array = b.skip(" \t\r\n\ufeff") == "["
    b.at += array
    n, gap, end = 0, " \t\r\n" if array else " \t\r\n,", ("", "]") if array else ("",)
    while b.skip(gap) not in end:
        n += 1
        where = f"row {n} (line {b.line_of(b.at)})"
        value = _value(b, parse)
        if isinstance(value, BadValue):
            yield where, _unread(b, value.message)
            return
        if b.foreign:
            yield where, Note("encoding", b.foreign)
            b.foreign = ""
        yield where, value
        following = b.skip(gap)
        if array and following not in (",", *end):
            where = f"line {b.line_of(b.at)}"
            yield where, _unread(b, "expected ',' or ']' after the row")
            return
        b.at += array and following == ","
    if array:
        yield from _after(b)


def _unread(b: _Buffer, message: str) -> BadValue:
    """A fault that ends the reading."""
    return BadValue(
        f"{message}; the rest of the file, from line {b.line_of(b.at)} on, was not read"
    )


def _after(b: _Buffer) -> Iterator[tuple[str, Any]]:
    """What follows the array: its bracket and nothing else, or a fault."""
    where = f"line {b.line_of(b.at)}"
    if not b.skip(""):
        yield where, BadValue("the array is cut off: its closing ']' is missing")
        return
    b.at += 1
    if b.skip(" \t\r\n\0"):
        where = f"line {b.line_of(b.at)}"
        yield where, _unread(b, "something follows the end of the array")


def _value(b: _Buffer, parse: json.JSONDecoder) -> Any:
    while True:
        start = b.at
        try:
            value, end = parse.raw_decode(b.text, start)
            cut = any(b.text.find(half, start, end) >= 0 for half in HALVES)
            whole = mended(value) if cut else value
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
        b.foreign = b.foreign or (HALF if whole != value else "")
        b.at += end - start
        return whole
