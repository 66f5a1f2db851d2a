"""A room that is also a verb: `kit.judge(tasks)` works, and so does `from kit.judge import Ledger`.

`import kit.judge` binds the package to the name `judge` whatever the front door says, so the
package
itself is made callable. Editors, `inspect.signature` and `kit.judge??` see the function.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any


class Verb(ModuleType):
    """A module that calls one of its functions; the function's module loads at the first call."""

    @property
    def __wrapped__(self) -> Any:
        module, function = self._VERB
        return getattr(importlib.import_module(module, self.__name__), function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__wrapped__(*args, **kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        return importlib.import_module, (self.__name__,)


def lazy(room: str, where: Mapping[str, str]) -> Callable[[str], Any]:
    """A room's `__getattr__`: a name of `where` loads its module (relative to the room)."""

    def attribute(name: str) -> Any:
        if name in where:
            return getattr(importlib.import_module(f".{where[name]}", room), name)
        raise AttributeError(f"module {room!r} has no attribute {name!r}")

    return attribute


def verb(room: str, module: str, function: str) -> None:
    """Make the room (its `__name__`) call `function` of `module` (relative to the room)."""
    package = sys.modules[room]
    package._VERB = module, function  # type: ignore[attr-defined]
    package.__class__ = Verb
