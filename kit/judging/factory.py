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
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import DataError
from ..records import Criterion, Response, Task, Verdict, unknown
from ..system.settings import check_names, nearest

# kind -> the module that makes it, and its name there; imported at its first use
KINDS = {
    "code": "factory CodeJudge", "replay": "replay replay", "local": "local LocalJudge",
    "small": "server small", "server": "server served", "endpoint": "endpoint EndpointJudge",
    "panel": "panel Panel", "votes": "panel Panel", "escalate": "panel Escalate",
    "group": "panel GroupJudge",
}  # fmt: skip


class CodeJudge:
    """No model at all: criteria that code cannot decide stay unknown."""

    name, concurrency = "code", 1

    async def verdicts(
        self,
        task: Task,
        response: Response,
        criteria: Sequence[Criterion],
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
    subjects = [] if subject is None else [subject]
    if kind == "votes":
        samples = _samples(subject, options.pop("n", 5))
        name = f"{samples[0].name} x{len(samples)}"
        subjects, options = [samples], {"share": True, "name": name, **options}
    elif kind == "group":
        subjects = [judge_of(subject, where="judge group")]
    elif kind in ("panel", "escalate"):
        members = _members(subject, kind)
        subjects = [members] if kind == "panel" else members
    module, name = KINDS[kind].split()
    make = getattr(importlib.import_module(f".{module}", __package__), name)
    # A wrong option is the user's slip; a TypeError from inside a judge is not.
    parameters = inspect.signature(make).parameters.values()
    if not any(p.kind is p.VAR_KEYWORD for p in parameters):
        names = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
        check_names(options, names, where=f"{where} {kind}")
    return make(*subjects, **options)


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
    if kind == "server" and not subject:
        raise DataError(
            "server needs a model file", where=where, fix="write server:FILE.gguf"
        )
    return kind, subject or None, {}


def _samples(subject: Any, n: Any) -> list[Any]:
    """n judges that differ by their sample, at temperature 1 where no other is set."""
    kind, model, options = parts(subject, where="judge votes")
    if kind != "endpoint" or not isinstance(n, int) or n < 2:
        raise DataError(
            f"{n!r} votes of {kind}",
            where="judge votes",
            fix="write {votes: {endpoint: MODEL}, n: 5} with n from 2 on",
        )
    # At temperature 0 all votes would be one vote.
    options = {"endpoint": model, "temperature": 1.0, **options}
    judges = [judge_of(options) for _ in range(n)]
    # Equal keys would make one stored sample serve for all.
    for i, judge in enumerate(judges):
        judge.settings["sample"] = i
    return judges


def _members(subject: Any, kind: str) -> list[Any]:
    """The judges of a judge that is made of judges."""
    rows = subject if isinstance(subject, list | tuple) else []
    if len(rows) < 2 or (kind == "escalate" and len(rows) > 2):
        raise DataError(
            f"{kind} needs two judges",
            where=f"judge {kind}",
            fix=f"write {{{kind}: [JUDGE, JUDGE]}}, each a name or a mapping",
        )
    pairs = enumerate(rows, 1)
    return [judge_of(row, where=f"judge {i} of {kind}") for i, row in pairs]
