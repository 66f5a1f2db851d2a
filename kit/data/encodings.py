"""Which encoding a file is in: by its mark, by its NUL bytes, else guessed and said; never mojibake
in silence."""

from __future__ import annotations

import codecs
import io
import re
from typing import IO, Any

from ..errors import DataError
from .findings import Note

MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
ALPHABETS = [  # letters beyond ASCII: French, German, Spanish, Portuguese, Italian, Nordic, Dutch
    set(a)
    for a in (
        "àâæçéèêëîïôœùûüÿ",
        "äöüßéè",
        "áéíñóúü",
        "áâãàçéêíóôõúü",
        "àèéìíòóùúî",
        "åäöæøéü",
        "éëïóöüèáê",
    )
]
AMID = re.compile(r"[^\W\d_][^\w\s’·\x00-\x7f–—…]+[^\W\d_]")  # a sign in the middle of a word
ESCAPED = re.compile("[\udc80-\udcff]")  # bytes that were no text in the encoding


def encoding_of(head: bytes, where: str) -> tuple[str, Note | None]:
    """(encoding of a file that begins like this, what to say of it); no word on UTF-8, with a mark
    or without.

    DataError where the bytes are no text in any encoding that could be told.

    >>> encoding_of("naïve".encode(), "f")
    ('utf-8-sig', None)
    >>> encoding_of("naïve".encode("utf-16"), "f")[0]
    'utf-16'
    """
    for mark, name in MARKS:
        if head.startswith(mark):
            return name, _note(name, "by its byte order mark")
    if name := _wide(head):
        return name, _note(name, "by its NUL bytes")
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError as e:
        if _mostly_utf8(head):  # UTF-8 with a few damaged bytes: the rows that hold them are named
            return "utf-8-sig", None
        name = _guess(head)
        if name is None:
            raise DataError(
                f"the file is not UTF-8 (byte {e.start + 1} is 0x{head[e.start]:02x}), and "
                f"no other "
                "encoding fits it",
                where=where,
                fix="save it as UTF-8",
            ) from None
        how = f"guessed: byte {e.start + 1} is not UTF-8"
        return name, _note(name, how) if _plausible(head, name) else _doubt(name, how)
    return "utf-8-sig", None


def _note(name: str, how: str) -> Note:
    return Note("encoding", f"the file was read as {name} ({how}); save it as UTF-8 to be sure")


def _doubt(name: str, how: str) -> Note:
    said = f"the file was read as {name} ({how}), which is not sure: other encodings fit as well"
    fix = "say which one it is by saving it as UTF-8 (iconv -f ISO-8859-2 -t UTF-8, for example)"
    return Note("encoding", f"{said}; {fix}", "error")


def _plausible(head: bytes, name: str) -> bool:
    """True where text read as Windows-1252 is written as one Western language is: letters of one
    alphabet, and signs that stand where signs do; text of another script is told by statistics.

    >>> [_plausible("déjà vu, l’été".encode("cp1252"), "cp1252"),
    ...  _plausible("příliš žluťoučký".encode("iso8859-2"), "cp1252")]
    [True, False]
    """
    if name != "cp1252":
        return True
    text = head.decode(name, "replace")
    letters = {c for c in text.casefold() if c > "\x7f" and c.isalpha()} - set("ªºµ")
    return not AMID.search(text) and any(letters <= a for a in ALPHABETS)


def _wide(head: bytes) -> str | None:
    """UTF-16 without a mark: a NUL in nearly every second byte."""
    if len(head) < 4:
        return None
    even, odd = head[0:400:2], head[1:400:2]
    if odd.count(0) > 0.7 * len(odd) and not even.count(0):
        return "utf-16-le"
    if even.count(0) > 0.7 * len(even) and not odd.count(0):
        return "utf-16-be"
    return None


def _mostly_utf8(head: bytes) -> bool:
    """True where more characters than not, of those beyond ASCII, are sound UTF-8."""
    text = head.decode("utf-8", "surrogateescape")
    broken = len(ESCAPED.findall(text))
    return sum(c > "\x7f" for c in text) > 2 * broken


def _guess(head: bytes) -> str | None:
    """The likeliest encoding. Mostly ASCII text of Western Europe is too short for statistics: then
    Windows-1252."""
    if head.count(0) or sum(b < 9 for b in head):
        return None
    high = sum(b >= 0x80 for b in head)
    if high < 0.4 * len(head):
        try:
            text = head.decode("cp1252")
        except UnicodeDecodeError:
            return None
        letters = sum(c.isalpha() or c in "€‚„…†‡‰‹‘’“”•–—™›«»°§·¡¿" for c in text if c > "\x7f")
        return "cp1252" if letters >= 0.8 * high else None
    try:
        from charset_normalizer import from_bytes
    except ImportError:
        return None
    best = from_bytes(head[:20_000]).best()
    return best.encoding if best is not None and best.coherence > 0.1 else None


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
