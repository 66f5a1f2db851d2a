"""A judge from its name or its settings: one vocabulary for notebooks, configs and the command
line.

"code" (no model), "replay:gpt-4o/bare", "embedding", "local", "local:FOLDER", "server:FILE.gguf",
"endpoint:MODEL", "decisions:MODEL"; a mapping gives options: {endpoint: MODEL, base_url: URL}.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import KitError, MissingError
from ..records import Criterion, Response, Task, Verdict, unknown
from ..settings.read import known_names, nearest

FORMS = "code, replay:NAME, embedding, local, server, endpoint:MODEL, decisions:MODEL"


class CodeOnly:
    """No judge at all: criteria that code cannot decide stay unknown."""

    name = "code"

    async def verdicts(
        self, task: Task, response: Response, criteria: Sequence[Criterion]
    ) -> list[Verdict]:
        """Unknown, all of them."""
        more = dict(judge="code", reason="no judge was asked")
        return [unknown(task.id, response.id, c.id, "abstain", **more) for c in criteria]


def judge_of(value: Any, *, where: str = "judge") -> Any:
    """A judge from its name ("endpoint:my-model"), a mapping with options, or itself.

    None and "code" : criteria that code cannot decide stay unknown. KitError says which names
    there are, and which options the named judge takes.

    >>> judge_of("code").name
    'code'
    >>> judge_of("endpiont:gpt")
    Traceback (most recent call last):
    ...
    kit.errors.KitError: there is no judge 'endpiont'
      where: judge
      to do: did you mean 'endpoint'?
    """
    if value is None:
        return CodeOnly()
    if hasattr(value, "verdicts"):
        return value
    kind, subject, options = _parts(value, where)
    if kind not in KINDS:
        raise KitError(f"there is no judge {kind!r}", where=where, fix=nearest(kind, KINDS))
    known_names(options, _options(kind), where=where, what=f"{kind} option")
    return _maker(kind)(subject, **options)


def _parts(value: Any, where: str) -> tuple[str, str | None, dict[str, Any]]:
    """Kind, subject and options of a judge's name or mapping."""
    if isinstance(value, str):
        kind, _, subject = value.partition(":")
        return ("code" if kind == "none" else kind), subject or None, {}
    kind = next((k for k in value if k in KINDS), None) if isinstance(value, Mapping) else None
    if kind is None:
        raise KitError(f"{value!r} names no judge", where=where, fix=f"give one of {FORMS}")
    return kind, value[kind], {str(k): v for k, v in value.items() if k != kind}


def _maker(kind: str) -> Callable[..., Any]:
    """The class of a judge that asks over HTTP, or the function below that makes it."""
    if kind in CLASSES:
        module, name = CLASSES[kind]
        return getattr(importlib.import_module(module, __package__), name)
    return MADE[kind]


def _options(kind: str) -> list[str]:
    """The names of a judge's options."""
    parameters = inspect.signature(_maker("endpoint" if kind == "server" else kind)).parameters
    return [name for name, p in parameters.items() if p.kind is p.KEYWORD_ONLY]


def _code(subject: str | None) -> Any:
    return CodeOnly()


def _replay(subject: str | None, *, threshold: float | None = 3.0) -> Any:
    """A file of verdicts or a ledger, or a recorded real judge ("gpt-4o", "gpt-4o/parity")."""
    from .replay import ReplayJudge

    path = Path(subject or "")
    if subject and path.suffix in (".jsonl", ".json"):
        return ReplayJudge.from_jsonl(path)
    if subject and path.suffix in (".sqlite", ".db"):
        return ReplayJudge.from_ledger(path)
    name, _, prompt = (subject or "gpt-4o").partition("/")
    return ReplayJudge.recorded(name, prompt or "bare", threshold=threshold)


def _embedding(subject: str | None) -> Any:
    from .embedding import EmbeddingJudge

    return EmbeddingJudge()


def _local(subject: str | None) -> Any:
    from ..data.models import smollm2
    from .local import LocalJudge

    if subject and not Path(subject).is_dir():
        fix = "give a folder with a model; without one SmolLM2 judges"
        raise MissingError("there is no such model folder", where=subject, fix=fix)
    return LocalJudge.from_pretrained(subject or smollm2())


def _server(subject: str | None, **options: Any) -> Any:
    """A GGUF file, served on this machine until this process ends."""
    from ..data.models import smollm2_gguf
    from .server import LocalServer

    server = LocalServer(subject or smollm2_gguf(), context=8192).start()
    return server.judge(**{"name": server.model, **options})


CLASSES = {
    "endpoint": (".endpoint", "EndpointJudge"),
    "decisions": (".decisions", "DecisionJudge"),
}
MADE: dict[str, Callable[..., Any]] = {
    "code": _code,
    "replay": _replay,
    "embedding": _embedding,
    "local": _local,
    "server": _server,
}
KINDS = (*MADE, *CLASSES)
