"""Text as words, for the rules of the lint; and which tasks ask the same, in the same words."""

from __future__ import annotations

import logging
import re
import unicodedata
from collections.abc import Container, Sequence
from functools import lru_cache

from ..records import Task

WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
SIGNS = re.compile(  # operators: no hyphens or slashes between words, no marks of a layout
    r"[-+*/<>=^](?:(?<=[\w)\]].)|(?<=[\w)\]][ \t].))(?!(?<=[ \t]\*)\**\w)"
    r"(?!(?:(?<=[^\W\d_]{2}[-/*])|(?<=[^\W\d_]{2}[ \t][-/*]))[-/*]*[ \t]*[^\W\d_]{2})"
    r"[-+*/<>=^]*(?=[ \t]*[-\w(\[$])|[+#%](?:(?<=\w.)|(?<=\w[ \t]%))[+#%]*|[-+](?=\d)"
)
TOLD = re.compile(  # of what is asked: words, operators, any sign that is no end of a sentence
    rf"{WORD.pattern}|{SIGNS.pattern}|[()\[\]{{}}|~&$]|!(?=[\w(\[])|[^\x00-\x7f\s]"
)
ALIKE = str.maketrans("’ʼ−\u2010\u2011", "''---")
HIDDEN = re.compile("[\u00ad\u200b\u2060\ufeff]")  # inside a word
RAISED = re.compile("[²³¹⁰ⁱ⁴-ⁿ]+")
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


_words = lru_cache(maxsize=16)(_found)  # several rules read the words of one prompt


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
    """What makes two tasks ask one thing: the words of system, chat, prompt and sources, in order,
    and the signs between them (operators, brackets, money, emoji); without any the text; "" where
    nothing is asked.

    >>> asked_key(Task(id="a", prompt="Why?  Say.")) == asked_key(Task(id="b", prompt="why, say"))
    True
    >>> asked_key(Task(id="a", prompt="Well-known: (5 × 3)")), asked_key(Task(id="b", prompt="?"))
    ('well known ( 5 × 3 )', '?')
    """
    beside = (task.system or "", *task.sources.values()) if task.asked.strip() else ()
    text = "\n".join((task.asked, *beside))
    plain = unicodedata.normalize("NFKC", RAISED.sub(r"^\g<0>", text)).lower().translate(ALIKE)
    plain = re.sub(r"(?<=\d)[–—](?=\d)", "-", HIDDEN.sub("", plain))
    plain = re.sub(r"[^\S\n]+", " ", plain)
    said = " ".join(filter(_tells, TOLD.findall(plain)))
    return said or " ".join(text.split())


def _tells(token: str) -> bool:
    """Whether a word or sign makes another text: no dash, quotation mark or other punctuation."""
    kind = "" if token.isascii() or len(token) > 1 else unicodedata.category(token)
    return (
        kind not in ("Cf", "Sk", "Pd", "Pi", "Pf", "Po", "Pc") and token not in "„‚「」『』\ufe0f"
    )


def together(tasks: Sequence[Task], *, groups: bool = False) -> dict[str, list[str]]:
    """Task id -> the ids that stay on its side: those with the same prompt, and with `groups` those
    of its group, and so on from these."""
    side = {t.id: [t.id] for t in tasks}
    first: dict[tuple[bool, str | None], str] = {}
    for t in tasks:
        named = (False, t.group if groups else None), (True, asked_key(t) or None)
        for key in (k for k in named if k[1] is not None):
            mine = side[t.id]
            other = side[first.setdefault(key, t.id)]
            if mine is not other:
                small, large = sorted((mine, other), key=len)
                large += small
                side.update(dict.fromkeys(small, large))
    return side


def held_out(tasks: Sequence[Task], ids: Container[str] = ()) -> set[str]:
    """The ids of the tasks that are marked as held out or named in `ids`, and of those that ask the
    same, of which a warning says how many they are.

    >>> sorted(held_out([Task(id="a", prompt="Why?", split="test"), Task(id="b", prompt="why")]))
    ['a', 'b']
    """
    side = together(tasks)
    held = {t.id for t in tasks if t.held_out or t.id in ids}
    out = {i for own in held for i in side[own]}
    if more := [t for t in tasks if t.id in out and t.id not in held]:
        logging.getLogger(__name__).warning(
            "%d tasks are not trained on, of which %d are marked for it: what they ask is held out "
            "under another id",
            len(more),
            sum(t.split is not None for t in more),
        )
    return out
