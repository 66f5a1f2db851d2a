"""Text as words and n-grams, for the rules of the lint."""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections.abc import Iterable
from functools import lru_cache

WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
STOP = frozenset("a an and any are as at be been being by can could did do does each every for from had has have he her his how i if in into is it its "
                 "may more most must no nor not of on one only or other our out over own response answer responses answers text generated output "
                 "model reply she should so some such than that the their them then there these they this those to too under up us use uses using "
                 "very was we were what when where which while who whom whose why will with within without would you your it's doesn't don't "
                 "include includes including mention mentions provide provides state states contain contains given input least "
                 "also about both all between given make makes written writes write task prompt user question criterion says say".split())
GENERIC = frozenset("word words sentence sentences paragraph paragraphs line lines bullet bullets list lists format formatted json markdown heading "
                    "headings title table tone style language english grammar grammatical spelling clear clearly concise length short long polite "
                    "professional formal informal readable structure structured section sections introduction conclusion step steps numbered "
                    "character characters letter letters comma commas punctuation capital uppercase lowercase quote quotes emoji emojis plain "
                    "first second person rhyme rhymes poem code comment comments example examples cite cites citation citations source sources "
                    "claim claims relevant accurate accuracy correct complete organized coherent consistent consistently "
                    "instructions instruction requested request follow follows appropriate specific present start starts end ends begin begins".split())


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
    return WORD.findall(text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).lower())


@lru_cache(maxsize=16)  # several rules read the words of one prompt
def _words(text: str) -> tuple[str, ...]:
    return tuple(_found(text))


@lru_cache(maxsize=200_000)
def stem(word: str) -> str:
    """A crude stem: plural and verb endings off, at most 7 letters.

    >>> stem("volcanoes"), stem("volcano")
    ('volcano', 'volcano')
    """
    for end in ("ies", "ing", "es", "ed", "ly", "s", "'s"):
        if len(word) > len(end) + 3 and word.endswith(end):
            word = word[:-len(end)]
            break
    return word[:7]


def content(tokens: Iterable[str]) -> set[str]:
    """Stems of the words that carry content."""
    return {stem(w) for w in set(tokens).difference(STOP) if len(w) > 2}


def grams(text: str, n: int = 4) -> frozenset[str]:
    """Character n-grams of folded text.

    >>> sorted(grams("abcde"))
    ['abcd', 'bcde']
    """
    return grams_of(fold(text), n)


def grams_of(t: str, n: int = 4) -> frozenset[str]:
    """Character n-grams of text that is folded already."""
    return frozenset([t[i:i + n] for i in range(max(1, len(t) - n + 1))])


def jaccard(a: frozenset[str] | set[str], b: frozenset[str] | set[str]) -> float:
    """Shared over all, in [0, 1]; two empty sets give 1."""
    if not a and not b:
        return 1.0
    both = len(a & b)
    return both / (len(a) + len(b) - both)


def sketch(tokens: list[str], k: int = 12) -> tuple[int, ...]:
    """The k smallest hashes of the word triples: two texts' sketches estimate their overlap (bottom-k sketch)."""
    if len(tokens) < 3:
        return (_hash(" ".join(tokens)),)
    h = [_hash(w) for w in tokens]
    mixed = {(a * 0x9E3779B97F4A7C15 + b * 0xC2B2AE3D27D4EB4F + c * 0x165667B19E3779F9) >> 24 & 0xFFFFFFFF for a, b, c in zip(h, h[1:], h[2:], strict=False)}
    return tuple(sorted(mixed)[:k])


@lru_cache(maxsize=200_000)
def _hash(word: str) -> int:
    return zlib.crc32(word.encode("utf-8", "surrogatepass"))


def overlap(a: tuple[int, ...], b: tuple[int, ...]) -> float:
    """Estimated overlap of two texts from their sketches, in [0, 1]."""
    k = min(len(a), len(b))
    if not k:
        return 0.0
    union = sorted(set(a) | set(b))[:max(len(a), len(b))]
    return len(set(union) & set(a) & set(b)) / len(union)


def tokens_of(text: str) -> int:
    """A rough number of model tokens: four characters a token in Latin script, one a token in CJK.

    >>> tokens_of("abcdefgh"), tokens_of("你好")
    (2, 2)
    """
    wide = 0 if text.isascii() else sum("\u2e80" <= c <= "\u9fff" or "\uac00" <= c <= "\ud7af" for c in text)
    return wide + -(-(len(text) - wide) // 4)
