"""Judging: from a task, an answer and its criteria to verdicts that are never paid twice.

A question takes ten calls in four modules: `kit.judge` -> `Run.all` -> `Run.one` ->
`Question.answer` (run.py) -> `EndpointJudge.verdicts` -> `ask` -> `_read` (endpoint.py) ->
`messages` (form.py), then `reply`, and `read` (form.py). `Question.record` puts what comes
out into the ledger (ledger.py).

Why was a call made twice? A verdict's key names everything that shaped it, in five parts:
settings of the judge, task, answer, criterion, and the criteria beside it.
`kit.Ledger(path).explain(verdict.key)` shows request and reply, and in `others` each
stored verdict on the same task, answer and criterion with the parts that differ.
"""

from .factory import Judge, JudgeSource, judge_of
from .ledger import Budget, Ledger, Spent
from .run import (
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
    "Ledger",
    "Spent",
    "acomplete",
    "ajudge",
    "ajudge_pairs",
    "complete",
    "estimate",
    "judge",
    "judge_of",
]
