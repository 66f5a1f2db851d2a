"""Judges: from task, answer and criteria to verdicts.

>>> from kit.judge import judge, ajudge, Ledger     # doctest: +SKIP
>>> asked = EndpointJudge("gpt-6-luna")  # doctest: +SKIP
>>> verdicts = judge(tasks, answers, judge=asked, ledger="ledger.sqlite")  # doctest: +SKIP

Names are imported when they are first used, so that `import kit.judge` costs nothing.
"""

from __future__ import annotations

from ..verb import lazy, verb

_WHERE = {
    "judge": "run",
    "ajudge": "run",
    "estimate": "run",
    "Verdicts": "run",
    "Spent": "run",
    "Judge": "records",
    "Question": "records",
    "Call": "records",
    "Forecast": "records",
    "Session": "session",
    "ask": "asking",
    "using": "session",
    "Ledger": "ledger",
    "Budget": "prices",
    "EndpointJudge": "endpoint",
    "Limiter": "limiter",
    "models": "prices",
    "price": "prices",
    "LocalJudge": "local",
    "ReplayJudge": "replay",
    "Panel": "panel",
    "Escalate": "panel",
    "judge_of": "factory",
    "check": ".checks",
    "LocalServer": "server",
    "self_consistency": "panel",
}
__all__ = sorted(_WHERE)
__getattr__ = lazy(__name__, _WHERE)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


verb(__name__, ".run", "judge")
