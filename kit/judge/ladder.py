"""Answers made worse step by step: a judge that reads them gives less credit at every step.

Pure text, no judge, no randomness. Only criteria of positive weight are looked at: an empty answer
rightly has none of the faults that negative weights mark.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..records import Response


@dataclass(frozen=True)
class Step:
    """A name, what it does in words, and the answers with the step taken."""

    name: str
    what: str
    worse: Callable[[Sequence[Response]], list[Response]]


def part(text: str, share: float) -> str:
    """The first share of the text's sentences, of its words where it is one sentence.

    >>> part("One. Two. Three. Four.", 0.5), part("a b c d", 0.25)
    ('One. Two.', 'a')
    """
    pieces = [s for s in re.split(r"(?<=[.!?])\s+", text.strip()) if s]
    if len(pieces) < 2:
        pieces = text.split()
    return " ".join(pieces[: max(1, int(len(pieces) * share))]) if pieces else ""


def _cut(share: float) -> Callable[[Sequence[Response]], list[Response]]:
    return lambda rows: [dataclasses.replace(r, text=part(r.text, share)) for r in rows]


def _strange(rows: Sequence[Response]) -> list[Response]:
    """To each task the answer of the next one; nothing where there is one task."""
    first = {r.task_id: r.text for r in reversed(rows)}
    names = list(dict.fromkeys(r.task_id for r in rows))
    if len(names) < 2:
        return []
    after = dict(zip(names, names[1:] + names[:1], strict=True))
    return [dataclasses.replace(r, text=first[after[r.task_id]]) for r in rows]


def _empty(rows: Sequence[Response]) -> list[Response]:
    return [dataclasses.replace(r, text="") for r in rows]


STEPS = (
    Step("half", "the second half of the answer is gone", _cut(0.5)),
    Step("a quarter", "three quarters of the answer are gone", _cut(0.25)),
    Step("of another task", "the answer to another task", _strange),
    Step("empty", "no answer at all", _empty),
)
