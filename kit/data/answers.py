"""Answers in a file of their own, on the tasks that they answer: the one way to read them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from ..records import Response
from .load import load_tasks, tasks_of
from .taskset import TaskSet


def answered(tasks: Any, source: Any) -> TaskSet:
    """Tasks with the answers and labels that a file holds, and no others; read and paired as
    `TaskSet.joined` does, whose errors it raises.

    >>> tasks = [{"id": "t", "prompt": "Say hi.", "criteria": ["It greets."]}]
    >>> [r.task_id for r in answered(tasks, [{"prompt": "Say hi.", "response": "Hi"}]).responses]
    ['t']
    """
    return TaskSet(tasks=tasks_of(tasks)).joined(load_tasks(source))


def answers_of(given: Any, tasks: Any = None) -> Iterable[Response]:
    """Answers out of a file, a TaskSet or a list; none of None. Those of a file belong to `tasks`,
    where there are some; a file with errors is refused."""
    if isinstance(given, (str, os.PathLike)):
        found = load_tasks(given) if tasks is None else answered(tasks, given)
        return found.sound().responses
    return () if given is None else getattr(given, "responses", given)
