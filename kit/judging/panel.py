"""Judges made of judges: a panel that votes, and a cheap judge that passes its doubts on to a
strong one.

Members are asked through the same ledger and budget, each under keys of its own.
"""

from __future__ import annotations

import asyncio
import copy
import statistics
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from ..errors import DataError, JudgeDownError
from ..records import Criterion, Response, Task, Verdict, unknown
from . import keys
from .prices import Forecast


class Joined:
    """What a panel and an escalation share: the keys and the forecast of their members."""

    def __init__(self, judges: Sequence[Any], name: str, settings: list[Any]):
        self.judges, self.name, self.settings = tuple(judges), name, settings
        self.concurrency = max(getattr(j, "concurrency", 1) for j in judges)
        self.limit = sum(getattr(j, "limit", 0.0) for j in judges)

    def bind(self, pairs: Any) -> Joined:
        """Tell members that look at several answers at once which answers there are."""
        bound = copy.copy(self)  # other runs may use this judge
        bound.judges = tuple(
            j.bind(pairs) if hasattr(j, "bind") else j for j in self.judges
        )
        return bound

    def keys(
        self, task: Task, response: Response, criteria: Sequence[Criterion]
    ) -> list[str] | None:
        """Keys that depend on the members' keys;

        None where a member has none: then nothing is stored.
        """
        if not all(hasattr(j, "keys") for j in self.judges):
            return None
        rows = zip(
            *(j.keys(task, response, criteria) for j in self.judges), strict=True
        )
        return [
            keys.keys(self.settings, task, response, [c], together=list(row))[0]
            for c, row in zip(criteria, rows, strict=True)
        ]

    def forecast(
        self, task: Task, response: Response, criteria: Sequence[Criterion]
    ) -> Forecast:
        """The most that it takes: all members on everything."""
        able = [j for j in self.judges if hasattr(j, "forecast")]
        return sum((j.forecast(task, response, criteria) for j in able), Forecast())


class Panel(Joined):
    """Several judges that vote.

    rule : "majority" of the known votes (a tie goes by the mean P; a dead tie is unknown
        "contradiction"),
        or "mean": mean P(met) against one half. quorum : known votes that are needed (default:
        more than half).
    The verdict's p is the mean of the members' P(met) (1 or 0 for a member without); with
    share=True it is the
    share of met votes. meta["votes"] keeps the members' verdicts, meta["disagreement"] the
    smaller side's share.
    """

    def __init__(
        self,
        judges: Sequence[Any],
        *,
        rule: Literal["majority", "mean"] = "majority",
        quorum: int | None = None,
        share: bool = False,
        name: str | None = None,
    ):
        self.rule, self.share = rule, share
        self.quorum = len(judges) // 2 + 1 if quorum is None else quorum
        if rule not in ("majority", "mean") or not 1 <= self.quorum <= len(judges):
            raise DataError(
                f"rule {rule!r}, quorum {quorum!r} of {len(judges)} judges",
                where="judge panel",
                fix="rule is majority or mean; quorum is from 1 to the number of judges",
            )
        name = name or f"panel({', '.join(j.name for j in judges)})"
        super().__init__(judges, name, ["panel", rule, self.quorum, share])

    async def verdicts(
        self, task: Task, response: Response, criteria: Sequence[Criterion], run: Any
    ) -> list[Verdict]:
        """One verdict per criterion.

        A member that is down is an unknown vote; raises where all are down.
        """
        calls = (run.ask(j, task, response, criteria) for j in self.judges)
        rows = await asyncio.gather(*calls, return_exceptions=True)
        votes = [row for row in rows if isinstance(row, list)]
        faults = [row for row in rows if isinstance(row, BaseException)]
        # A budget or a missing recording stops the run; a member that is down is only a vote less.
        fatal = [e for e in faults if not votes or not isinstance(e, JudgeDownError)]
        if fatal:
            raise fatal[0]
        made = [
            self.combine(list(row), len(faults)) for row in zip(*votes, strict=True)
        ]
        return await run.record(made)

    def combine(self, votes: list[Verdict], down: int = 0) -> Verdict:
        """One verdict out of the members' verdicts on a criterion.

        down : members without a vote.
        """
        valid = [v for v in votes if v.is_known]
        values = [float(v.value or 0.0) for v in valid]
        ps = [x if v.p is None else v.p for v, x in zip(valid, values, strict=True)]
        met = sum(x >= 0.5 for x in values)
        n = len(valid)
        p = (met / n if self.share else statistics.fmean(ps)) if n else None
        columns = ("judge", "status", "value", "p", "reason", "failure", "key")
        meta = {
            "votes": [{name: getattr(v, name) for name in columns} for v in votes],
            "disagreement": min(met, n - met) / n if n else None,
            # A vote that is missing for a while must not be stored as if it had been cast.
            "passing": bool(down) or any(v.failure == "transport" for v in votes),
        }
        reason = f"{met} of {n} votes met"
        both = {**_sums(votes), "judge": self.name, "p": p, "meta": meta}
        if n < self.quorum:
            lost = Counter(str(v.failure) for v in votes if not v.is_known)
            failure = lost.most_common(1)[0][0] if lost else "transport"
            reason = f"{n} known votes, {self.quorum} needed"
            return unknown(*votes[0].ids, failure, reason=reason, **both)
        # A majority decides by heads; P(met) decides only where heads are even.
        side = (p or 0.0) - 0.5
        if self.rule == "majority" and 2 * met != n:
            side = met / n - 0.5
        if side == 0:
            return unknown(*votes[0].ids, "contradiction", reason=reason, **both)
        status, value = ("met", 1.0) if side > 0 else ("unmet", 0.0)
        if any(v.status == "level" for v in valid):
            status, value = "level", statistics.fmean(values)
        base = {"status": status, "value": value, "reason": reason, "cached": False}
        return msgspec.structs.replace(
            valid[0], failure=None, key=None, **{**base, **both}
        )


class Escalate(Joined):
    """A cheap judge first; the strong one only where the cheap one is in doubt.

    In doubt: unknown, no P(met), or low < P(met) < high. The last judge's verdict counts;
    meta["first"] keeps
    the cheap one's. Tokens and cost are the sum of both.
    """

    def __init__(
        self,
        cheap: Any,
        strong: Any,
        *,
        low: float = 0.2,
        high: float = 0.8,
        name: str | None = None,
    ):
        if not 0 <= low <= high <= 1:
            raise DataError(f"low {low!r}, high {high!r}", where="judge escalate")
        self.low, self.high = low, high
        name = name or f"{cheap.name} -> {strong.name}"
        super().__init__((cheap, strong), name, ["escalate", low, high])

    async def verdicts(
        self, task: Task, response: Response, criteria: Sequence[Criterion], run: Any
    ) -> list[Verdict]:
        """One verdict per criterion, in order."""
        cheap, strong = self.judges
        first = await run.ask(cheap, task, response, criteria)
        doubts = [
            c
            for c, v in zip(criteria, first, strict=True)
            if v.p is None or self.low < v.p < self.high or not v.is_known
        ]
        second = await run.ask(strong, task, response, doubts) if doubts else []
        later = {c.id: v for c, v in zip(doubts, second, strict=True)}
        made = [self._last(v, later.get(v.criterion_id)) for v in first]
        return await run.record(made)

    def _last(self, first: Verdict, second: Verdict | None) -> Verdict:
        last = second or first
        columns = ("judge", "status", "p", "reason", "failure")
        meta = {
            **last.meta,
            "escalated": second is not None,
            "first": {name: getattr(first, name) for name in columns},
        }
        both = _sums([first, second] if second else [first])
        return msgspec.structs.replace(last, key=None, cached=False, meta=meta, **both)


def _sums(votes: Sequence[Verdict]) -> dict[str, Any]:
    """Tokens and cost of all votes."""
    return {
        name: sum(getattr(v, name) for v in votes)
        for name in ("tokens_in", "tokens_out", "cost")
    }
