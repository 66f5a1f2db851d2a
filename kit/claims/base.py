"""Which verifier applies to a task, and the one door to them."""

from __future__ import annotations

from typing import Any

from ..records import Part, Response, Task

NAMES = ("factual", "direction", "consistency", "uncertainty")


def applicable(task: Task) -> tuple[str, ...]:
    """The verifiers that a task asks for. The task alone decides, so that no answer can dodge
    one.
    """
    asked = next(
        (
            x
            for x in (
                task.truth.get("verifiers"),
                task.meta.get("verifiers"),
                task.meta.get("applicable_verifiers"),
            )
            if x is not None
        ),
        None,
    )
    if asked is None:
        asked = [
            n
            for n, k in (
                ("factual", "facts"),
                ("direction", "claims"),
                ("uncertainty", "warranted"),
            )
            if task.truth.get(k)
        ]
    return tuple(n for n in NAMES if n in asked)


def verify(
    verifier: str, task: Task, response: Response, *, name: str | None = None, **options: Any
) -> Part:
    """The score in [0, 1] of one verifier, or an absent Part where the task does not ask for it."""
    name = name or verifier
    if verifier not in applicable(task):
        return Part.absent(name)
    from importlib import import_module

    return import_module(f"{__package__}.{verifier}").score(task, response, name=name, **options)
