"""Ledger keys: a fingerprint of everything that shapes a verdict, in five parts.

    SETTINGS-TASK-ANSWER-CRITERION-TOGETHER      (16 hex digits each)

Two keys that differ in one part show why a question was paid twice: another prompt or model
(settings),
another task text, another answer, a reworded criterion, or other criteria in the same call
(together).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from ..records import Criterion, Response, Task, canonical
from .prompt import judged

PARTS = ("settings", "task", "answer", "criterion", "together")
SIZE = 16
ABOUT = slice(SIZE + 1, 4 * SIZE + 3)  # task, answer and criterion inside a key


def short(value: Any) -> str:
    """The first 16 hex digits of the sha256 of the canonical JSON of `value`."""
    return hashlib.sha256(canonical(value).encode("utf-8", "replace")).hexdigest()[
        :SIZE
    ]


def keys(
    settings: Any,
    task: Task,
    response: Response,
    criteria: Sequence[Criterion],
    *,
    together: Any = None,
) -> list[str]:
    """One key per criterion, in order. Ids do not count: equal texts share a verdict.

    settings : what the judge is, as JSON. together : what else is in the same call, such as
        the other criteria.
    """
    shared = "-".join(short(x) for x in (settings, _task(task), _text(response)))
    last = short(together)
    return [f"{shared}-{short(texts(c))}-{last}" for c in criteria]


def about(task: Task, response: Response, criterion: Criterion) -> str:
    """The middle of a key: a fingerprint of task, answer and criterion, whoever the judge is."""
    return "-".join(short(x) for x in (_task(task), _text(response), texts(criterion)))


def texts(c: Criterion) -> list[Any]:
    """What a judge sees of a criterion."""
    return [c.text, c.scale, c.levels, c.points]


def _task(task: Task) -> list[Any]:
    return [task.conversation, task.system, task.sources]


def _text(response: Response) -> str:
    # A lone surrogate is no text that JSON can carry.
    return judged(response.text).encode("utf-8", "replace").decode()
