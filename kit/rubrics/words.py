"""Text as words, for the rules of the lint."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_ASCII = bytes(
    ord(chr(i).lower()) if i < 128 and chr(i).isalnum() else 32 for i in range(256)
)  # lower case, the rest as spaces
STOP = frozenset(
    "a an and any are as at be been being by can could did do does each every for from had "
    "has have he her his how i if in into is it its "
    "may more most must no nor not of on one only or other our out over own response answer "
    "responses answers text generated output "
    "model reply she should so some such than that the their them then there these they this "
    "those to too under up us use uses using "
    "very was we were what when where which while who whom whose why will with within "
    "without would you your it's doesn't don't "
    "include includes including mention mentions provide provides state states contain "
    "contains given input least "
    "also about both all between given make makes written writes write task prompt user "
    "question criterion says say".split()
)


def fold(text: str) -> str:
    """Text for comparison: compatibility forms, lower case, words only, one space.

    >>> fold("  The Title,  is “Short”. ")
    'the title is short'
    """
    return " ".join(words(text))


def words(text: str) -> list[str]:
    """Words in order, lower case."""
    return list(_words(text)) if len(text) > 200 else _found(text)


def _found(text: str) -> list[str]:
    if not text.isascii():
        return WORD.findall(unicodedata.normalize("NFKC", text).lower())
    if "'" in text:
        return WORD.findall(text.lower())
    return (
        text.encode("ascii").translate(_ASCII).decode("ascii").split()
    )  # what WORD finds, five times faster


@lru_cache(maxsize=16)  # several rules read the words of one prompt
def _words(text: str) -> tuple[str, ...]:
    return tuple(_found(text))


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """A crude stem: plural and verb endings off, at most 7 letters.

    >>> stem("volcanoes"), stem("volcano")
    ('volcano', 'volcano')
    """
    for end in ("'s", "’s", "ies", "ing", "es", "ed", "ly", "s"):
        if len(word) > len(end) + 2 + (end == "ly") and word.endswith(end):
            word = word[: -len(end)]
            break
    return word[:7]


def tokens_of(text: str) -> int:
    """A rough number of model tokens: four characters a token in Latin script, one a token in CJK.

    >>> tokens_of("abcdefgh"), tokens_of("你好")
    (2, 2)
    """
    wide = (
        0
        if text.isascii()
        else sum("\u2e80" <= c <= "\u9fff" or "\uac00" <= c <= "\ud7af" for c in text)
    )
    return wide + -(-(len(text) - wide) // 4)
