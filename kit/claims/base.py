"""Which verifier applies to a task, and the one door to them."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any

from ..checks.text import BLOCK, answered
from ..records import Part, Response, Task
from .bags import called
from .listing import in_order
from .text import once

NAMES = ("factual", "direction", "consistency", "uncertainty")


def applicable(task: Task) -> tuple[str, ...]:
    """The verifiers that a task asks for. The task alone decides, so that no answer can dodge
    one.
    """
    said = task.truth.get("verifiers"), *map(task.meta.get, ("verifiers", "applicable_verifiers"))
    owns = (("factual", "facts"), ("direction", "claims"), ("uncertainty", "warranted"))
    asked = next((x for x in said if x is not None), [n for n, k in owns if task.truth.get(k)])
    return tuple(n for n in NAMES if n in asked)


def decisive(task: Task) -> set[str]:
    """Which of "factual" and "direction" say how right an answer is: those that the task asks for,
    else those that its truth holds something for.
    """
    holds = {n for n, k in (("factual", "facts"), ("direction", "claims")) if task.truth.get(k)}
    asked = {"factual", "direction"}.intersection(applicable(task))
    return asked or (holds if task.truth.get("answerable") is not False else set())


_SENTENCE = re.compile(r"(?:(?![.!?]\s)[^\n])+")
_ENDLESS = re.compile(r".{800}\S{0,40}")


def answer(task: Task, response: Response) -> Response:
    """The response without its thoughts and, of several <answer> blocks, with the last one alone;
    persons have their names of the key (`claims.bags`).

    What runs on for 800 characters is cut there into sentences: the time to read one grows with
    its square.

    >>> r = Response(task_id="t", id="r", text="<think>up?</think><answer>down</answer>")
    >>> answer(Task(id="t", prompt="Up?"), r).text.strip()
    '<answer>down</answer>'
    """
    return replace(response, text=_answer(task, response.text))


@once
def _answer(task: Task, text: str) -> str:
    first, *blocks = BLOCK.split(answered(text))
    text = f"{first}<answer>{blocks[-1]}" if blocks else first
    text = in_order(task, text)
    return called(task, _SENTENCE.sub(lambda m: _ENDLESS.sub("\\g<0>.\n", m[0]), text))


def verify(
    verifier: str,
    task: Task,
    response: Response,
    *,
    name: str | None = None,
    **options: Any,
) -> Part:
    """The score in [0, 1] of one verifier, or an absent Part where the task does not ask for it.

    Read is what is answered (`answer`).
    """
    name = name or verifier
    if verifier not in applicable(task):
        return Part.absent(name)
    read = answer(task, response)
    part = _module(verifier).score(task, read, name=name, **options)
    why = unread(task, read.text)
    low, high = part.range if why else (part.low, part.high)
    return replace(part, low=low, high=high, details={**part.details, "unread": why})


@once
def unread(task: Task, text: str) -> str:
    """Why an answer is not read, neither as right nor as wrong; "" where it is read."""
    names = {"factual" if n == "consistency" else n for n in applicable(task)} | decisive(task)
    readers = (
        ("direction", "direction"),
        ("factual", "unclear"),
        ("uncertainty", "consistency"),
    )
    read = (_module(reader).unread(task, text) for n, reader in readers if n in names)
    return next(filter(None, read), "")


@cache
def _module(name: str) -> Any:
    return import_module(f"{__package__}.{name}")
