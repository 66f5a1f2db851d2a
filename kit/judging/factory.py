"""A judge from its name or its mapping: one vocabulary for notebooks, configs, commands.

"code"             checks only; criteria without a check stay unknown
"replay:NAME"      a ledger or JSONL file, "small" (the recorded local judge), "gpt-4o/bare"
"local", "small"   a 135M and a 1.5B model, served on this machine, with P(met)
"server:FILE"      any GGUF file, served on this machine
"endpoint:MODEL"   an OpenAI-compatible server
{"endpoint": MODEL, "base_url": URL, "prompt": "prompt.txt", "how": "one", ...}
{"panel": [JUDGE, JUDGE, JUDGE], "rule": "majority"}
{"votes": JUDGE, "n": 5}, {"escalate": [CHEAP, STRONG], "low": 0.2, "high": 0.8}
{"group": JUDGE}   all answers to a task in one call
"""

import asyncio
import importlib
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import DataError
from ..records import Response, Task, Verdict
from ..system.settings import nearest
from .form import Criteria, refuse

# kind -> the module that makes it, and its name there; imported at its first use
KINDS = {
    "code": "factory Judge", "replay": "replay replay", "local": "local local",
    "small": "local small", "server": "local ServedJudge", "endpoint": "endpoint EndpointJudge",
    "panel": "panel Panel", "votes": "panel votes", "escalate": "panel Escalate",
    "group": "panel GroupJudge",
}  # fmt: skip


class Judge:
    """The judge "code", which decides nothing beside the checks, and the base of all.

    A judge of your own derives from it and has `readings`.

    concurrency : questions at once. limit : the most seconds that one takes.
    groups : a question holds all answers to its task. settings : what shapes a verdict.
    sends : only a call costs something, so an estimate may go as far as the call.
    """

    name, settings, system = "code", None, None
    concurrency, limit = 1, 600.0
    groups = sends = False

    def keys(
        self, task: Task, answers: Sequence[Response], criteria: Criteria
    ) -> list[str]:
        """Ledger keys, answers x criteria; none where a verdict costs nothing."""
        return []

    def readings(self, task: Task, response: Response, criteria: Criteria) -> Any:
        """The fields of a verdict for each criterion; here unknown, all of them."""
        reason = "no check decides this criterion, and there is no judge"
        return [refuse(reason, "abstain")] * len(criteria)

    async def verdicts(
        self, task: Task, answers: Sequence[Response], criteria: Criteria, run: Any
    ) -> list[Verdict]:
        """The verdicts, answers x criteria, in order. The judge works in a thread."""
        verdicts = []
        for r in answers:
            rows = await asyncio.to_thread(self.readings, task, r, criteria)
            pairs = zip(criteria, rows, strict=True)
            verdicts += [run.verdict(r, c, **fields) for c, fields in pairs]
        run.record(verdicts)
        return verdicts

    async def complete(self, messages: Any, schema: Any, run: Any, key: str) -> str:
        """What the judge's model writes to a chat."""
        raise DataError(
            f"{self.name!r} cannot write text",
            where="complete",
            fix="use an endpoint or a server",
        )


# A judge as users write it: itself, a name, or a mapping with options.
JudgeSource = Judge | str | Mapping[str, Any]


def judge_of(value: JudgeSource, *, where: str = "judge") -> Any:
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
    if isinstance(value, Judge):
        return value
    kind, subject, options = parts(value, where=where)
    module, name = KINDS[kind].split()
    make = getattr(importlib.import_module(f".{module}", __package__), name)
    return call(make, subject, options, where=f"{where} {kind}")


def call(make: Any, subject: Any, options: Mapping[str, Any], *, where: str) -> Any:
    """What a maker of judges returns; DataError for an option that it does not have."""
    signature, names = inspect.signature(make), [] if subject is None else [subject]
    # A wrong option is the user's slip; a TypeError from inside a judge is not.
    try:
        signature.bind(*names, **options)
    except TypeError as e:
        fix = f"this kind takes: {', '.join(signature.parameters)}"
        raise DataError(f"{e}", where=where, fix=fix) from None
    return make(*names, **options)


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
        kind, options = kinds[0], {str(k): v for k, v in value.items()}
        return kind, options.pop(kind), options
    kind, _, subject = str(value).partition(":")
    if not isinstance(value, str) or kind not in KINDS:
        raise DataError(
            f"there is no judge {kind!r}", where=where, fix=nearest(kind, KINDS)
        )
    return kind, subject or None, {}
