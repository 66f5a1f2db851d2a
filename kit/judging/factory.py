"""A judge from its name or its mapping: one vocabulary for notebooks, configs and commands.

"code"                 checks only; criteria without a check stay unknown
"replay:NAME"          a ledger or JSONL file, "small" (the recorded local judge), or "gpt-4o/bare"
"local", "small"       P(met) of a small local model; a 1.5B model on this machine
"server:FILE"          a GGUF file, served on this machine
"endpoint:MODEL"       an OpenAI-compatible server
{"endpoint": MODEL, "base_url": URL, "prompt": "prompt.txt", "how": "one", ...}
{"panel": [JUDGE, JUDGE, JUDGE], "rule": "majority"}
{"votes": JUDGE, "n": 5}, {"escalate": [CHEAP, STRONG], "low": 0.2, "high": 0.8}, {"group": JUDGE}
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import DataError, KitError
from ..records import Criterion, Response, Task, Verdict, unknown
from ..system.settings import check_names, nearest


class CodeJudge:
    """No model at all: criteria that code cannot decide stay unknown."""

    name, concurrency = "code", 1

    async def verdicts(
        self, task: Task, response: Response, criteria: Sequence[Criterion], run: Any
    ) -> list[Verdict]:
        """Unknown, all of them."""
        reason = "no check decides this criterion, and there is no judge"
        ids = (task.id, response.id)
        return [unknown(*ids, c.id, "abstain", judge="code", reason=reason) for c in criteria]


def judge_of(value: Any, *, where: str = "judge") -> Any:
    """A judge from its name, its mapping, or itself. DataError lists the valid names and options.

    >>> judge_of("code").name
    'code'
    >>> judge_of({"endpoint": "my-model", "base_url": "http://127.0.0.1:8000/v1"}).concurrency
    8
    >>> judge_of("endpiont:gpt")
    Traceback (most recent call last):
    ...
    kit.errors.DataError: there is no judge 'endpiont'
      where: judge
      to do: did you mean 'endpoint'?
    """
    if hasattr(value, "verdicts") and not isinstance(value, type):
        return value
    kind, subject, options = parts(value, where=where)
    try:
        return KINDS[kind](subject, **options)
    except TypeError as e:
        # A wrong name is the user's fault; everything else in `e` is ours.
        names = [*inspect.signature(KINDS[kind]).parameters][1:]
        if "options" not in names:
            check_names(options, names, where=f"{where} {kind}")
        raise DataError(str(e), where=f"{where} {kind}") from e
    except KitError as e:
        raise type(e)(e.what, where=e.where or where, fix=e.fix) from None


def parts(value: Any, *, where: str = "judge") -> tuple[str, Any, dict[str, Any]]:
    """Kind, subject and options of a judge's name or mapping.

    >>> parts({"endpoint": "m", "how": "one"})
    ('endpoint', 'm', {'how': 'one'})
    """
    if isinstance(value, Mapping):
        kinds = [name for name in value if name in KINDS]
        # {"endpoint": M, "group": ...} is no judge: one kind each.
        if len(kinds) != 1:
            raise DataError(
                f"a judge's mapping names one kind, not {kinds or list(value)}",
                where=where,
                fix=f"one of {', '.join(KINDS)}",
            )
        options = {str(k): v for k, v in value.items() if k != kinds[0]}
        return kinds[0], value[kinds[0]], options
    kind, _, subject = str(value).partition(":")
    if not isinstance(value, str) or kind not in KINDS:
        raise DataError(f"there is no judge {kind!r}", where=where, fix=nearest(kind, KINDS))
    return kind, subject or None, {}


def _code(subject: None) -> CodeJudge:
    return CodeJudge()


def _endpoint(subject: str | None, **options: Any) -> Any:
    from .endpoint import EndpointJudge
    from .prices import catalog

    return EndpointJudge(subject or catalog()["default"], **options)


def _replay(subject: str, **options: Any) -> Any:
    if subject == "small":
        from .recorded import RecordedJudge

        return RecordedJudge(**options)
    from .replay import replay

    return replay(subject, **options)


def _local(subject: str | None, **options: Any) -> Any:
    from .local import LocalJudge

    return LocalJudge(subject, **options) if subject else LocalJudge(**options)


def _small(subject: None, **options: Any) -> Any:
    from .server import small

    return small(**options)


def _server(subject: str | Path, **options: Any) -> Any:
    from .server import served

    return served(subject, **options)


def _panel(subject: Any, **options: Any) -> Any:
    from .panel import Panel

    return Panel(_members(subject, "panel"), **options)


def _votes(subject: Any, *, n: int = 5, name: str | None = None) -> Any:
    from .panel import Panel

    kind, model, options = parts(subject, where="judge votes")
    if kind != "endpoint" or not isinstance(n, int) or n < 2:
        raise DataError(
            f"{n!r} votes of {kind}",
            where="judge votes",
            fix="write {votes: {endpoint: MODEL}, n: 5} with n from 2 on",
        )
    options = {"temperature": 1.0, **options}
    judges = [judge_of({kind: model, **options, "sample": i}) for i in range(n)]
    return Panel(judges, share=True, name=name or f"{judges[0].name} x{n}")


def _escalate(subject: Any, **options: Any) -> Any:
    from .panel import Escalate

    return Escalate(*_members(subject, "escalate", 2), **options)


def _group(subject: Any, **options: Any) -> Any:
    from .grouped import GroupJudge

    return GroupJudge(judge_of(subject, where="judge group"), **options)


def _members(subject: Any, kind: str, n: int | None = None) -> list[Any]:
    """The judges of a judge that is made of judges."""
    rows = subject if isinstance(subject, list | tuple) else []
    if len(rows) < 2 or len(rows) != (n or len(rows)):
        raise DataError(
            f"{kind} needs {'two judges' if n else 'two judges or more'}",
            where="judge",
            fix=f"write {{{kind}: [JUDGE, JUDGE]}}, each a name or a mapping",
        )
    return [judge_of(row, where=f"judge {i} of {kind}") for i, row in enumerate(rows, 1)]


KINDS: dict[str, Callable[..., Any]] = {
    "code": _code, "replay": _replay, "local": _local, "small": _small, "server": _server,
    "endpoint": _endpoint, "panel": _panel, "votes": _votes, "escalate": _escalate, "group": _group,
}  # fmt: skip
