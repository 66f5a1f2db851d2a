"""Persons: whom an answer means by a surname, an initial, a title or a name more than the key has.

The surname tells who it is where no other answer of the data set has it; another first name is
another person.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from ..records import Task
from . import lexicon as lx
from .bags import FIELD, SISTERS, names

_ASKED = re.compile(
    r"\b(?:whom?|whose)\b|\b(?:which|what) (?:\w+ ){0,2}?(?:\w+(?:naut|ist|ian)|person|doctor"
    r"|researcher|engineer|author|inventor|(?:wo)?man|president|laureate|winner)s?\b",
    re.I,
)
_TITLES = r"(?:(?:Drs?|Doctor|Prof|Professor|Sir|Dame|Lord|Lady|Mr|Mrs|Ms|Madame|Mme|St)\.? )*"
_WORD = r"(?:(?:[A-Z]\.)+|[A-Z][^\W\d_]*(?:['’-][^\W\d_]+)*)"
_NAME = re.compile(rf"{_TITLES}({_WORD})(?: (?:{_WORD}|d[aei]|v[ao]n|der?))* ([A-Z][\w-]+[^\W\d])")
_AND = re.compile(r"\s*,\s*(?:and\s+)?|\s+(?:and|&)\s+")
_BEFORE = re.compile(rf"({_WORD}) \Z")


@lru_cache(maxsize=4_096)
def _pattern(name: str) -> re.Pattern[str]:
    first, last = _NAME.fullmatch(name).groups()  # type: ignore[union-attr]
    full = first if len(first) > 2 else rf"{first[0]}[a-z]+"  # "A. Fleming" may be Alexander
    given = rf"(?P<given>{first[0]}(?:\.[A-Z])*\.?|{full}) (?:{_WORD} )*"
    return re.compile(rf"(?<![\w-]){_TITLES}(?:{given})?{last}\b(?!-)")


def _meant(task: Task, text: str) -> Iterable[tuple[re.Match[str], str]]:
    """Where a text means a person of the key or of another answer of the data set, and the name; ""
    where one of the key may be another one."""
    keys = names(task) if _ASKED.search(task.prompt) else []
    own = [part for key in keys for part in _AND.split(key) if _NAME.fullmatch(part)]
    texts = *keys, *task.truth.get(FIELD, ()), *task.truth.get(SISTERS, ())
    others = [part for text in texts for part in _AND.split(text) if own]
    for name in dict.fromkeys((*own, *filter(_NAME.fullmatch, others))):
        found, last = _pattern(name), name.split()[-1]
        shared = any(n.endswith(f" {last}") and not found.fullmatch(n) for n in others)
        for m in found.finditer(text):
            before = _BEFORE.search(text[: m.start()])
            alone = shared and not m["given"]
            if (before and before[1].lower() not in lx.SMALL | lx.LEADS) or (
                alone and name not in own
            ):
                continue
            yield m, "" if alone else name.replace(".", "")


def called(task: Task, text: str) -> str:
    """The text with the key's name for each person whom it means.

    >>> asked = Task(id="t", prompt="Who?", truth={"facts": [{"text": "Alexander Fleming"}]})
    >>> called(asked, "Dr. Fleming, not J. Fleming"), called(asked, "Not A. J. Fleming")
    ('Alexander Fleming, not J. Fleming', 'Not Alexander Fleming')
    """
    found = {m.span(): name or m[0] for m, name in _meant(task, text)}
    for (start, end), name in sorted(found.items(), reverse=True):
        text = text[:start] + name + text[end:]
    return text


def unread(task: Task, text: str) -> str:
    """The surname that several answers of the data set have, where it stands alone; else ""."""
    return next((m[0] for m, name in _meant(task, text) if not name), "")
