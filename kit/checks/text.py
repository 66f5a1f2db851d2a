"""What checks measure, by plain conventions.

word : letters and digits; an apostrophe, hyphen or dot inside does not split it.
sentence : ends with . ! or ? before a blank and a capital, digit or quote, or at the end of a line.
paragraph : a block between blank lines. item : a line that begins with -, *, + or "1.".
Markdown marks and code fences are left out.
"""

from __future__ import annotations

import re
import unicodedata

_MARKS = re.compile(
    r"^\s*(?:[-*+]|\d{1,3}[.)]|#{1,6}|>)\s+|[*_`~]+(?=\S)|(?<=\S)[*_`~]+|^\s*(?:```|~~~).*$",
    re.M,
)
_LINK = re.compile(r"!?\[([^\]\n]*)\]\([^)\s]*\)")
_WORD = re.compile(r"[^\W_]+(?:(?:['’.-]|(?<=\d)[,:/](?=\d))[^\W_]+)*")
# "Dr. Lee" is not cut: a lookbehind for each length of an abbreviation.
_END = re.compile(
    r"(?<=[.!?])(?<!\b(?:Dr|Mr|Ms|St|vs|No)\.)(?<!\b(?:Mrs|e\.g|i\.e|etc|Fig)\.)(?<!\bProf\.)"
    r"[\"'”’)\]]*\s+(?=[\"'“‘(\[]*[A-Z\d])|\n+"
)
ITEM = re.compile(r"^\s*[-*+•]\s+\S", re.M)
NUMBERED_ITEM = re.compile(r"^\s*\d{1,3}[.)]\s+\S", re.M)
_PLAIN_MARKS = str.maketrans("’‘`“”„‐‑–—−", "'''\"\"\"-----")


def visible(text: str) -> str:
    """NFC, plain line ends, no invisible characters."""
    # Most answers are plain, and this is the slowest step of a check.
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    text = unicodedata.normalize("NFC", text)
    text = text.replace("\r\n", "\n").replace("\u2028", "\n")
    # Cf: invisible characters would split words, or hide a term from `contains`.
    return "".join(
        c
        for c in text
        if c in "\n\t" or unicodedata.category(c) not in ("Cf", "Cc")
    )


def plain(text: str) -> str:
    """The text without markdown."""
    return _MARKS.sub("", _LINK.sub(r"\1", visible(text)))


def has_word(text: str) -> bool:
    """True for a text with a letter or a digit."""
    return any(map(str.isalnum, text))


def words(text: str) -> list[str]:
    """The words of a text.

    >>> words("Don't panic: **state-of-the-art** - 1,000.5 km, cats,dogs.")
    ["Don't", 'panic', 'state-of-the-art', '1,000.5', 'km', 'cats', 'dogs']
    """
    return _WORD.findall(plain(text))


def sentences(text: str) -> list[str]:
    """The sentences of a text.

    >>> sentences("Dr. Lee paid $3.50. Was it tea? Yes!")
    ['Dr. Lee paid $3.50.', 'Was it tea?', 'Yes!']
    """
    parts = [part.strip() for part in _END.split(plain(text))]
    return list(filter(has_word, parts))


def paragraphs(text: str) -> list[str]:
    """Blocks between blank lines that hold a word."""
    return list(filter(has_word, re.split(r"\n\s*\n", plain(text))))


def lines(text: str) -> list[str]:
    """The lines that are not blank."""
    return [line for line in visible(text).splitlines() if line.strip()]


def fold(text: str) -> str:
    """For comparing: compatibility form, small letters, plain quotes and dashes, single blanks."""
    text = unicodedata.normalize("NFKC", visible(text)).casefold()
    return " ".join(text.translate(_PLAIN_MARKS).split())


def norm(text: str, case: bool) -> str:
    """For comparing, with or without the difference of small and capital letters."""
    return visible(text).strip() if case else fold(text)


def parts(text: str) -> list[str]:
    """The words cut at hyphens, in small letters."""
    return [p for w in words(text) for p in w.casefold().split("-") if p]


def runs(items: list[str], n: int) -> list[tuple[str, ...]]:
    """Each n neighbours."""
    return list(zip(*(items[i:] for i in range(n)), strict=False))
