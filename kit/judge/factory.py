"""A judge from its name or its settings: one vocabulary for notebooks, configs and commands.

By name: "code" (no model), "replay:gpt-4o/bare", "replay:FILE", "local",
"local:FOLDER", "server:FILE.gguf", "small" (a 1.5B model, `kit fetch judge`), "endpoint:MODEL".
A mapping gives options, and judges made of judges:

    {endpoint: MODEL, base_url: URL, how: one}
    {panel: [JUDGE, JUDGE, JUDGE], rule: majority}
    {escalate: [CHEAP, STRONG], low: 0.2, high: 0.8}
    {votes: {endpoint: MODEL}, n: 5}
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_type_hints

from ..errors import KitError, MissingError
from ..records import Criterion, Response, Task, Verdict
from ..settings.read import fitting, known_names, nearest
from .keys import missing, veiled
from .records import Question

FORMS = (
    "code, replay:NAME, local, small, server, endpoint:MODEL, "
    "panel:JUDGE,JUDGE or escalate:CHEAP,STRONG"
)


class CodeOnly:
    """No judge at all: criteria that code cannot decide stay unknown."""

    name = "code"

    async def verdicts(
        self, task: Task, response: Response, criteria: Sequence[Criterion]
    ) -> list[Verdict]:
        """Unknown, all of them."""
        asked = Question(task, response, criteria)
        return asked.unknowns("abstain", judge="code", reason="no judge was asked")


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
    if hasattr(value, "verdicts") and not isinstance(value, type):
        return value
    kind, subject, options = parts(value, where)
    if kind not in KINDS:
        raise KitError(f"there is no judge {kind!r}", where=where, fix=nearest(kind, KINDS))
    subject, options = _typed(kind, subject, options, where)
    if kind == "panel":
        subject = _members(subject, kind)
    elif kind == "escalate":
        return _maker(kind)(*_members(subject, kind, 2), **options)
    return _maker(kind)(subject, **options)


def endpoints(judge: Any) -> Iterator[Any]:
    """The judges behind HTTP in a judge: itself, or the members of a panel, an escalation, a
    batch.
    """
    if hasattr(getattr(judge, "caller", None), "wire"):
        yield judge
    inner = [getattr(judge, name, None) for name in ("cheap", "strong", "inner")]
    for member in (*getattr(judge, "judges", ()), *(j for j in inner if j is not None)):
        yield from endpoints(member)


def keyed(judges: Iterable[Any]) -> None:
    """MissingError for a judge that is sure to need a key which is not there."""
    for inner in (j for judge in judges for j in endpoints(judge)):
        if name := missing(inner.caller.wire):
            raise MissingError(
                f"there is no key for {inner.caller.base_url}",
                where=f"judge {inner.name!r}",
                fix=f"set the environment variable {veiled(name)}, or give base_url for a server "
                "of your own",
            )


def parts(value: Any, where: str = "judge") -> tuple[str, Any, dict[str, Any]]:
    """Kind, subject and options of a judge's name or mapping."""
    if isinstance(value, str):
        kind, _, subject = value.partition(":")
        return ("code" if kind == "none" else kind), subject or None, {}
    names = list(value) if isinstance(value, Mapping) else []
    kind = next((k for k in names if k in KINDS), names[0] if names else None)
    if kind is None:
        raise KitError(f"{value!r} names no judge", where=where, fix=f"give one of {FORMS}")
    return str(kind), value[kind], {str(k): v for k, v in value.items() if k != kind}


def _maker(kind: str) -> Callable[..., Any]:
    """The class of a judge that asks over HTTP, or the function that makes it."""
    if kind in CLASSES:
        module, name = CLASSES[kind]
        return getattr(importlib.import_module(module, __package__), name)
    return MADE[kind]


def _typed(
    kind: str, subject: Any, options: Mapping[str, Any], where: str
) -> tuple[Any, dict[str, Any]]:
    """Subject and options in the types of whoever takes them; KitError names the one that is not.

    An object that no file could hold (a Template, a client) is left to whoever takes it.
    """
    maker = _maker("endpoint" if kind in SERVED else kind)
    parameters = inspect.signature(maker).parameters
    takes = [name for name, p in parameters.items() if p.kind is p.KEYWORD_ONLY]
    known_names(options, takes, where=where, what=f"{kind} option")
    hints = get_type_hints(maker.__init__ if isinstance(maker, type) else maker)
    made_of_judges = kind in ("panel", "escalate")  # `_members` reads them
    hints[kind] = Any if made_of_judges else hints.get(next(iter(parameters)), Any)
    read = fitting(hints, {kind: subject, **options}, where=where)
    return read.pop(kind), read


def _replay(subject: str | None, *, threshold: float | None = 3.0, judge: str | None = None) -> Any:
    """A file of verdicts or a ledger, or a recorded real judge ("gpt-4o", "gpt-4o/parity").

    judge : whose verdicts, where a file holds those of several.
    """
    from .replay import ReplayJudge

    path = Path(subject or "")
    if subject and path.suffix.lower() in (".jsonl", ".json"):
        return ReplayJudge.from_jsonl(path, judge=judge)
    if subject and (path.suffix in (".sqlite", ".db") or path.is_file()):
        return ReplayJudge.from_ledger(path, judge=judge)
    name, _, prompt = (subject or "gpt-4o").partition("/")
    return ReplayJudge.recorded(name, prompt or "bare", threshold=threshold)


def _local(subject: str | None) -> Any:
    from ..data.models import smollm2
    from .local import LocalJudge

    if subject and not Path(subject).is_dir():
        raise MissingError(
            "there is no such model folder",
            where=subject,
            fix="give a folder with a model; without one SmolLM2 judges",
        )
    return LocalJudge.from_pretrained(subject or smollm2())


def _server(subject: str | None, **options: Any) -> Any:
    """A GGUF file, served on this machine until this process ends."""
    from ..data.models import smollm2_gguf
    from .server import LocalServer

    server = LocalServer(
        subject or smollm2_gguf(), slots=options.pop("concurrency", None) or 1, context=8192
    ).start()
    return server.judge(**{"name": server.model, **options})


def _members(subject: Any, what: str, n: int | None = None) -> list[Any]:
    """The judges of a judge made of judges, n of them: a list, or their names with commas."""
    values = subject.split(",") if isinstance(subject, str) else subject
    if not isinstance(values, Sequence) or len(values) < 2 or len(values) > (n or len(values)):
        fix = f"write {{{what}: [JUDGE, JUDGE]}}, each by its name or with its options"
        fix += ": the cheap one and the strong one" if n else ""
        raise KitError(f"{what} needs {'' if n else 'at least '}two judges", where="judge", fix=fix)
    return [judge_of(v, where=f"judge {i} of {what}") for i, v in enumerate(values, 1)]


def _votes(subject: Any, *, n: int = 5, name: str | None = None) -> Any:
    """n samples of one endpoint, at temperature 1 where no other is given."""
    from .panel import self_consistency

    kind, model, options = parts(subject, "judge votes")
    if kind != "endpoint" or not isinstance(n, int) or n < 2:
        raise KitError(
            f"{n!r} votes of {kind}",
            where="judge votes",
            fix="write {votes: {endpoint: MODEL}, n: 5}; n is 2 or more",
        )
    options = {"temperature": 1.0, **options}
    return self_consistency(lambda i: judge_of({kind: model, **options, "sample": i}), n, name=name)


CLASSES = {
    "endpoint": (".endpoint", "EndpointJudge"),
    "panel": (".panel", "Panel"),
    "small": (".server", "small"),
    "escalate": (".panel", "Escalate"),
}
MADE: dict[str, Callable[..., Any]] = {
    "code": lambda subject: CodeOnly(),
    "replay": _replay,
    "local": _local,
    "server": _server,
    "votes": _votes,
}
SERVED = ("server", "small")  # they take an endpoint judge's options
KINDS = (*MADE, *CLASSES)
