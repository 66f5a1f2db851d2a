"""Judging: from a task, an answer and its criteria to verdicts that are never paid twice.

A judge says what to ask and how to read it (`Judge.plan`); it does no I/O. The way of a
question: `kit.judge` -> `Runner.run` -> `answer` (ledger, lease) -> `ask_and_store` -> the judge's `plan`
-> `send` (slots, budget) -> `Server.post` (HTTP) -> back into the plan, which reads the reply
(`read_reply`) -> `ask_and_store` puts the verdicts into the ledger before anybody sees them.

Why was a call made twice? A verdict's key names everything that shaped it, in five parts:
settings of the judge, task, answer, criterion, and the criteria beside it.
`kit.Ledger(path).explain(verdict.key)` shows request and reply, and in `others` each
stored verdict on the same texts or ids with the parts that differ.
"""

from .judge import Judge, JudgeSource, judge_of
from .ledger import Ledger, LedgerLike, borrow_ledger, open_ledger
from .llm import LLMJudge
from .loop import wait
from .prices import Budget, Usage, format_cost
from .question import Plan, Question, Reading, Reply, Request, unknown
from .runner import (
    acomplete,
    ajudge,
    ajudge_pairs,
    complete,
    estimate,
    judge,
)

__all__ = [
    "Budget",
    "Judge",
    "JudgeSource",
    "LLMJudge",
    "Ledger",
    "LedgerLike",
    "Plan",
    "Question",
    "Reading",
    "Reply",
    "Request",
    "Usage",
    "acomplete",
    "ajudge",
    "ajudge_pairs",
    "borrow_ledger",
    "complete",
    "estimate",
    "format_cost",
    "judge",
    "judge_of",
    "open_ledger",
    "unknown",
    "wait",
]
