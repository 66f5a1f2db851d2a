"""How the criteria of a task are spread over calls, and what of that stands in the ledger's keys."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..records import Criterion, Task, fingerprint
from . import templates


class Raw(str):
    """JSON text that is ready: `encode` takes it as it is (a schema is the same for many calls)."""


def encode(body: Mapping[str, Any]) -> str:
    """A request body as JSON text.

    >>> encode({"a": Raw("[1,2]"), "b": None})
    '{"a":[1,2],"b":null}'
    """
    parts = (f'"{k}":{v if isinstance(v, Raw) else json.dumps(v)}' for k, v in body.items())
    return "{" + ",".join(parts) + "}"


class Layout:
    """How the criteria of a task are spread over calls, and what each call's context is (part of the key)."""

    def __init__(self, task: Task, how: str | int, own: str):
        parents = {c.parent for c in task.criteria}
        asked = [c for c in task.criteria if not c.by_code and c.id not in parents]
        sizes = {"all": len(asked) or 1, "one": 1}
        size = sizes[how] if how in sizes else int(how)
        self.base = fingerprint([own, size == 1, task.asked, task.system, dict(task.sources)])
        self._group: dict[str, int] = {}
        self._mark: dict[str, str] = {}
        self._texts: dict[Any, tuple[list[Criterion], str, Raw]] = {}
        self._known: dict[str, Criterion] = {c.id: c for c in asked}
        for start in range(0, len(asked), size):
            part = asked[start : start + size]
            context = fingerprint(
                [
                    [n, c.scale, templates.spec(c)]
                    for n, c in zip(templates.names(part), part, strict=True)
                ]
            )
            for c in part:
                self._group[c.id] = start
                self._mark[c.id] = fingerprint([self.base, context, c.id])

    def of(self, c: Criterion) -> str:
        """Fingerprint of a criterion with its context."""
        if self._same(c):
            return self._mark[c.id]
        return fingerprint(
            [self.base, [[templates.names([c])[0], c.scale, templates.spec(c)]], c.id]
        )

    def _same(self, c: Criterion) -> bool:
        """Whether the task has this criterion, as far as a judge can see (a weight is not seen)."""
        own = self._known.get(c.id)
        return own is c or (
            own is not None and own.scale == c.scale and templates.spec(own) == templates.spec(c)
        )

    def texts(self, criteria: Sequence[Criterion], stated: bool) -> tuple[str, Raw]:
        """The listed criteria and the schema as JSON text, made once per group."""
        name = (stated, *(id(c) for c in criteria))
        if name not in self._texts:
            if len(self._texts) > 64:
                self._texts.clear()
            form = Raw(json.dumps(templates.schema(criteria, stated=stated)))
            self._texts[name] = (list(criteria), templates.listed(criteria), form)
        return self._texts[name][1:]

    def split(self, criteria: Sequence[Criterion]) -> list[list[Criterion]]:
        """These criteria grouped as they are asked; one that the task does not have is asked alone."""
        groups: dict[Any, list[Criterion]] = {}
        for c in criteria:
            groups.setdefault(self._group[c.id] if self._same(c) else ("alone", c.id), []).append(c)
        return list(groups.values())


@functools.lru_cache(maxsize=4096)
def digest(text: str) -> str:
    """SHA-256 of a text in hex; lone surrogates are allowed."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
