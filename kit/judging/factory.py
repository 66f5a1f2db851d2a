"""A judge from its name or its mapping: one vocabulary for notebooks, configs, commands.

"code"             checks only; criteria without a check stay unknown
"replay:NAME"      a ledger or JSONL file, "small" (the recorded local judge), "gpt-4o/bare"
"local", "small"   a 135M and a 1.5B model, served on this machine, with P(met)
"server:FILE"      any GGUF file, served on this machine
"endpoint:MODEL"   an OpenAI-compatible server
{"endpoint": MODEL, "base_url": URL, "prompt": "prompt.txt", "how": "one", ...}
{"panel": [JUDGE, JUDGE, JUDGE], "rule": "majority"}
{"votes": JUDGE, "n": 5}, {"escalate": [CHEAP, STRONG], "low": 0.2, "high": 0.8}
{"cutoff": JUDGE, "at": 0.4}: met where P(met) is at least 0.4
{"group": JUDGE}   all answers to a task in one call
"""

import importlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import DataError
from ..system.settings import nearest
from .judge import Judge

# kind -> the module that makes it, and its name there; imported at its first use
KINDS = {
    "code": "judge Judge", "replay": "replay replay", "local": "local local",
    "small": "local small", "server": "local ServedJudge", "endpoint": "llm LLMJudge",
    "panel": "ensembles Panel", "votes": "ensembles votes", "escalate": "ensembles Escalate",
    "group": "ensembles GroupJudge", "cutoff": "ensembles Cutoff",
}  # fmt: skip


# A judge as users write it: itself, a name, or a mapping with options.
JudgeSource = Judge | str | Mapping[str, Any]


def judge_of(value: JudgeSource, *, where: str = "judge") -> Judge:
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
    kind, subject, options = split_spec(value, where=where)
    module, name = KINDS[kind].split()
    return make_judge(
        getattr(importlib.import_module(f".{module}", __package__), name),
        subject,
        options,
        where=f"{where} {kind}",
    )


def make_judge(
    make: Callable[..., Judge],
    subject: Any,
    options: Mapping[str, Any],
    *,
    where: str,
) -> Judge:
    """What a maker of judges returns; DataError for an option that it does not have."""
    signature = inspect.signature(make)
    names: list[Any] = []
    if subject is not None:
        names.append(subject)
    # A wrong option is the user's slip; a TypeError from inside a judge is not.
    try:
        signature.bind(*names, **options)
    except TypeError as e:
        raise DataError(
            f"{e}",
            where=where,
            fix=f"this kind takes: {', '.join(signature.parameters)}",
        ) from None
    return make(*names, **options)


def split_spec(
    value: Any, *, where: str = "judge"
) -> tuple[str, Any, dict[str, Any]]:
    """Kind, subject and options of a judge's name or mapping.

    >>> split_spec({"endpoint": "m", "how": "one"})
    ('endpoint', 'm', {'how': 'one'})
    """
    if isinstance(value, Mapping):
        kinds = [name for name in value if name in KINDS]
        # {"endpoint": M, "group": ...} is not a judge: one kind each.
        if len(kinds) != 1:
            raise DataError(
                f"a judge's mapping names one kind, not {kinds or list(value)}",
                where=where,
                fix=f"one of {', '.join(KINDS)}",
            )
        options = {str(k): v for k, v in value.items()}
        return kinds[0], options.pop(kinds[0]), options
    kind, _, subject = str(value).partition(":")
    if not isinstance(value, str) or kind not in KINDS:
        raise DataError(
            f"there is no judge {kind!r}", where=where, fix=nearest(kind, KINDS)
        )
    return kind, subject or None, {}
