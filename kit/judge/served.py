"""A judge whose model is served on this machine, from the first question that nobody answered yet.

Its ledger keys name the model's file, not a process: what was recorded is replayed without the
model, without a server and without its packages.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from ..errors import MissingError
from ..records import Verdict
from .endpoint import EndpointJudge
from .records import Call, Question
from .server import LocalServer

# a busy laptop may need minutes for one answer: waiting is free here, asking again is not
PATIENT = {"price": (0.0, 0.0), "timeout": 900.0, "patience": 3600.0}
NOWHERE = "http://127.0.0.1:9/v1"  # never asked: the address is the started server's
_SERVERS: dict[Path, LocalServer] = {}
_LOCK = threading.Lock()


class ServedJudge(EndpointJudge):
    """An EndpointJudge that starts `find()`'s GGUF file when it is first asked; one server a file.

    find : gives the file, or raises MissingError with what to do. identity : what stands for the
    model in the keys. Further arguments as EndpointJudge takes them.
    """

    def __init__(self, find: Callable[[], Path], model: str, *, identity: str, **options: Any):
        free = {**PATIENT, **options, "identity": identity}
        super().__init__(model, base_url=NOWHERE, **free)
        self._find, self._free, self._inner = find, free, None

    async def replies(self, q: Question) -> AsyncIterator[tuple[list[Verdict], Call | None]]:
        """What each reply gave; the server is started before the first."""
        async for got in (await self.ready()).replies(q):
            yield got

    async def ready(self) -> EndpointJudge:
        """The judge at the started server."""
        if self._inner is None:
            server = await asyncio.to_thread(_serve, self._find)
            self._inner = server.judge(**{**self._free, "name": self.name})
        return self._inner


def _serve(find: Callable[[], Path]) -> LocalServer:
    """The server of this file, started once a process."""
    with _LOCK:
        path = find()
        if path not in _SERVERS or not _SERVERS[path].running:
            _SERVERS[path] = LocalServer(path, context=8192).start()
        return _SERVERS[path]


def small(**options: Any) -> ServedJudge:
    """The pinned 1.5B judge: replayed where it was recorded, else served (`kit fetch judge`)."""
    from ..data import judge_model

    def find() -> Path:
        path = judge_model.judge_cached()
        if path is None:
            fix = "run `python -m kit fetch judge` once (1.1 GB), or give judge='endpoint:MODEL'"
            raise MissingError(
                "this was not recorded, and the small judge's model is not here",
                where="judge 'small'",
                fix=fix,
            )
        return path

    ours = {"template": "short", "mode": "text", "probability": "logprobs"}
    model = judge_model.pin()["name"]
    return ServedJudge(find, model, identity=judge_model.identity(), **{**ours, **options})
