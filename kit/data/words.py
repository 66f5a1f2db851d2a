"""Text as words, for the rules of the lint; and which tasks ask the same, in the same words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, Sequence
from functools import lru_cache

from ..records import Task

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


def asked_key(task: Task) -> str:
    """What makes two prompts one: the words of all that is asked, in order; without a word the
    text; "" where nothing is asked.

    >>> asked_key(Task(id="a", prompt="Why?  Say.")) == asked_key(Task(id="b", prompt="why, say"))
    True
    """
    return fold(task.asked) or " ".join(task.asked.split())


def together(tasks: Sequence[Task], *, groups: bool = False) -> dict[str, list[str]]:
    """Task id -> the ids that stay on its side: those with the same prompt, and with `groups` those
    of its group, and so on from these."""
    side = {t.id: [t.id] for t in tasks}
    first: dict[tuple[bool, str | None], str] = {}
    for t in tasks:
        named = (False, t.group if groups else None), (True, asked_key(t) or None)
        for key in (k for k in named if k[1] is not None):
            mine, other = side[t.id], side[first.setdefault(key, t.id)]
            if mine is not other:
                small, large = sorted((mine, other), key=len)
                large += small
                side.update(dict.fromkeys(small, large))
    return side


def held_out(tasks: Sequence[Task], ids: Container[str] = ()) -> set[str]:
    """The ids of the tasks that are marked as held out or named in `ids`, and of those that ask the
    same.

    >>> sorted(held_out([Task(id="a", prompt="Why?", split="test"), Task(id="b", prompt="why")]))
    ['a', 'b']
    """
    side = together(tasks)
    return {i for t in tasks if t.held_out or t.id in ids for i in side[t.id]}
