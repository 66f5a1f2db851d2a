"""The cheap judge first, the strong one only where the cheap one is in doubt; and what that saves, measured on verdicts of both."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from ..errors import JudgeDownError, KitError
from ..records import Criterion, Response, Task, Verdict, unknown
from .base import ask
from .panel import Joined, paid
from .records import PASSING, READER

VERSION = 1


def doubtful(v: Verdict, low: float = 0.2, high: float = 0.8) -> bool:
    """True where a verdict should go to a stronger judge: unknown, without P, or low < P < high."""
    return not v.known or v.p is None or low < v.p < high


class Escalate(Joined):
    """A judge made of two: `cheap` answers all criteria, `strong` those in doubt (unknown, no P, or low < P < high).

    The final verdict is the last judge's; meta["first"] keeps the cheap one's status and P. Where the strong judge fails, the verdict is
    unknown with its cause, unless fallback=True lets a known cheap verdict stand. Cost and tokens are the sum of both.
    """

    def __init__(
        self,
        cheap: Any,
        strong: Any,
        *,
        low: float = 0.2,
        high: float = 0.8,
        fallback: bool = False,
        name: str | None = None,
    ):
        if not 0 <= low <= high <= 1:
            raise KitError(
                f"low {low!r}, high {high!r}",
                where="Escalate(low=..., high=...)",
                fix="0 <= low <= high <= 1",
            )
        self.cheap, self.strong, self.low, self.high, self.fallback = (
            cheap,
            strong,
            low,
            high,
            fallback,
        )
        self.name = name or f"{cheap.name} -> {strong.name}"
        mark = ["escalate", VERSION, low, high, fallback]
        super().__init__((cheap, strong), lambda row: [*mark, *row])

    async def verdicts(
        self, task: Task, response: Response, criteria: Sequence[Criterion]
    ) -> list[Verdict]:
        """One verdict per criterion, in order."""
        first = await _either(self.cheap, task, response, criteria)
        open_ = [i for i, v in enumerate(first) if doubtful(v, self.low, self.high)]
        rest, down = [criteria[i] for i in open_], all(v.failure == "transport" for v in first)
        asked = ask if down else _either  # when neither can be reached the run ends
        second = await asked(self.strong, task, response, rest) if open_ else []
        out = [self._final(v, None) for v in first]
        for i, v in zip(open_, second, strict=True):
            out[i] = self._final(first[i], v)
        return out

    def _final(self, first: Verdict, second: Verdict | None) -> Verdict:
        last = (
            first
            if second is None or (self.fallback and first.known and not second.known)
            else second
        )
        both = [v for v in (first, second) if v is not None]
        meta = {
            **last.meta,
            "reader": READER,
            "escalated": second is not None,
            "first": {
                "judge": first.judge,
                "status": first.status,
                "p": first.p,
                "reason": first.reason,
                "failure": first.failure,
            },
        }
        if any(v.failure in PASSING for v in both):
            meta["passing"] = True  # not stored: the next run asks the one that failed again
        if any(paid(v) for v in both):
            meta["paid"] = {"cost": sum(paid(v) for v in both)}
        return dataclasses.replace(
            last,
            key=None,
            meta=meta,
            judge=last.judge,
            cost=sum(v.cost for v in both),
            cached=all(v.cached for v in both),
            tokens_in=sum(v.tokens_in for v in both),
            tokens_out=sum(v.tokens_out for v in both),
        )


async def _either(
    judge: Any, task: Task, response: Response, criteria: Sequence[Criterion]
) -> list[Verdict]:
    """One judge's verdicts; unknown with the cause where it cannot be reached."""
    try:
        return await ask(judge, task, response, criteria)
    except JudgeDownError as e:
        more = dict(judge=judge.name, reason=e.what)
        return [unknown(task.id, response.id, c.id, "transport", **more) for c in criteria]
