"""Rubric rewards inside other people's frameworks; none of them is imported by `import kit`.

    scorer = kit.adapters.inspect_scorer("rubrics.json", "endpoint:my-model")       # inspect-ai
    class MyTask(vf.Task):                                                          # verifiers
        rubric = kit.adapters.verifiers_reward("rubrics.json", "endpoint:my-model")

TRL, verl and open-instruct call `kit.reward_function` as it is.
"""

from __future__ import annotations

import importlib
from typing import Any

_WHERE = {"inspect_scorer": "inspect_ai", "verifiers_reward": "verifiers"}
__all__ = sorted(_WHERE)


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(importlib.import_module(f".{_WHERE[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
