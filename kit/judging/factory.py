"""A judge from its name or its mapping: one vocabulary for notebooks, configs, commands.

"code"             checks only; criteria without a check stay unknown
"replay:NAME"      a ledger or JSONL file, "small" (the recorded local judge), "gpt-4o/bare"
"local", "small"   P(met) of a small local model; a 1.5B model on this machine
"server:FILE"      a GGUF file, served on this machine
"endpoint:MODEL"   an OpenAI-compatible server
{"endpoint": MODEL, "base_url": URL, "prompt": "prompt.txt", "how": "one", ...}
{"panel": [JUDGE, JUDGE, JUDGE], "rule": "majority"}
{"votes": JUDGE, "n": 5}, {"escalate": [CHEAP, STRONG], "low": 0.2, "high": 0.8}
{"group": JUDGE}   all answers to a task in one call
"""

import importlib
import inspect
from collections.abc import Mapping
from typing import Any

from ..errors import DataError
from ..records import Response, Task, Verdict, unknown
from ..system.settings import check_names, nearest
from .reader import Criteria

# kind -> the module that makes it, and its name there; imported at its first use
KINDS = {
    "code": "factory CodeJudge", "replay": "replay replay", "local": "local LocalJudge",
    "small": "local small", "server": "local served", "endpoint": "endpoint EndpointJudge",
    "panel": "panel Panel", "votes": "panel votes", "escalate": "panel Escalate",
    "group": "panel GroupJudge",
}  # fmt: skip


class CodeJudge:
    """No model at all: criteria that code cannot decide stay unknown."""

    name, concurrency = "code", 1

    async def verdicts(
        self,
        task: Task,
        response: Response,
        criteria: Criteria,
        run: Any,
    ) -> list[Verdict]:
        """Unknown, all of them."""
        reason = "no check decides this criterion, and there is no judge"
        more = {"failure": "abstain", "judge": "code", "reason": reason}
        return [unknown(task.id, response.id, c.id, **more) for c in criteria]


def judge_of(value: Any, *, where: str = "judge") -> Any:
    """A judge from its name, its mapping, or itself. DataError lists what is valid.

    >>> judge_of("code").name
    'code'
    >>> url = "http://127.0.0.1:8000/v1"
    >>> judge_of({"endpoint": "my-model", "base_url": url}).concurrency
    2
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
    module, name = KINDS[kind].split()
    make = getattr(importlib.import_module(f".{module}", __package__), name)
    return call(make, subject, options, where=f"{where} {kind}")


def call(make: Any, subject: Any, options: Mapping[str, Any], *, where: str) -> Any:
    """What a maker of judges returns; DataError for an option that it does not have."""
    # A wrong option is the user's slip; a TypeError from inside a judge is not.
    parameters = inspect.signature(make).parameters.values()
    if not any(p.kind is p.VAR_KEYWORD for p in parameters):
        names = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
        check_names(options, names, where=where)
    if subject is None:
        return make(**options)
    if all(p.kind in (p.KEYWORD_ONLY, p.VAR_KEYWORD) for p in parameters):
        raise DataError(
            f"this judge takes no name, and {subject!r} is one",
            where=where,
            fix="write the judge's kind alone, or {KIND: null}",
        )
    return make(subject, **options)


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
        raise DataError(
            f"there is no judge {kind!r}", where=where, fix=nearest(kind, KINDS)
        )
    return kind, subject or None, {}
