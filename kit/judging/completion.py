"""A plain completion of a judge's model, through the same client, budget and ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import DataError
from . import keys, loop
from .factory import judge_of
from .ledger import Ledger
from .prices import Budget
from .run import Question, Run


def complete(
    judge: Any,
    messages: str | Sequence[Mapping[str, str]],
    *,
    schema: Mapping[str, Any] | None = None,
    ledger: Ledger | str | Path | None = None,
    budget: Budget | None = None,
) -> str:
    """The text that a judge's model writes to `messages`; a stored reply is not paid again.

    judge : a judge with a model (endpoint, small, server), by name, mapping or object; of a
        panel the first member.
    messages : a text, or chat messages with role and content. schema : a JSON schema of the reply.
    JudgeDownError where there is no usable reply.
    """
    run = Run(judge_of(judge), ledger=ledger, budget=budget)
    return loop.wait(_complete(run, messages, schema), run.stop)


async def acomplete(
    judge: Any,
    messages: str | Sequence[Mapping[str, str]],
    *,
    schema: Mapping[str, Any] | None = None,
    ledger: Ledger | str | Path | None = None,
    budget: Budget | None = None,
) -> str:
    """`complete` for asynchronous code."""
    run = Run(judge_of(judge), ledger=ledger, budget=budget)
    return await loop.hop(_complete(run, messages, schema), run.stop)


async def _complete(run: Run, messages: Any, schema: Mapping[str, Any] | None) -> str:
    writer = run.judge
    while not hasattr(writer, "complete"):
        inner = getattr(writer, "judges", None) or [getattr(writer, "judge", None)]
        if inner[0] is None:
            raise DataError(
                f"the judge {run.judge.name!r} cannot write text",
                where="complete(judge=...)",
                fix="use an endpoint or a local server",
            )
        writer = inner[0]
    chat = [{"role": "user", "content": messages}] if isinstance(messages, str) else list(messages)
    key = keys.short(["completion", getattr(writer, "settings", writer.name), chat, schema])
    try:
        stored = run.ledger.reply(key) if run.ledger else None
        if stored is not None:
            return stored
        return await writer.complete(chat, schema, Question(run, writer, {}), key)
    finally:
        run.close()
