"""Judges made of judges: a panel that votes, a cheap judge that passes its doubts on to a
strong one, and a judge that compares all answers to a task in one call.

Members are asked through the same ledger and budget, each under keys of its own.
"""

from __future__ import annotations

import asyncio
import copy
import random
import statistics
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

from msgspec.structs import replace

from ..errors import DataError, JudgeDownError
from ..records import Response, Task, Verdict, group
from . import prompt
from .factory import judge_of, parts
from .prices import COSTS
from .reader import Criteria

# What a vote says, and what its panel says anew.
VOTE = ("judge", "status", "value", "p", "reason", "failure", "key")


class Joined:
    """A judge that is made of judges.

    It has no keys: what its members said is in the ledger, and joining it costs nothing.
    """

    sends = True

    def __init__(self, judges: Any, name: str):
        self.judges, self.name = judges, name
        self.concurrency = max(getattr(j, "concurrency", 1) for j in judges)

    def bind(self, pairs: Any) -> Joined:
        """Tell members that look at several answers at once which answers there are."""
        bound = copy.copy(self)  # other runs may use this judge
        bound.judges = [
            j.bind(pairs) if hasattr(j, "bind") else j for j in self.judges
        ]
        return bound


class Panel(Joined):
    """Several judges that vote.

    rule : "majority" of the known votes (a tie goes by the mean P; a dead tie is unknown
        "contradiction"), or "mean": mean P(met) against one half. More than half of the
        members must have a known vote.
    The verdict's p is the mean of the members' P(met), 1 or 0 for a member without.
    meta["votes"] keeps the members' verdicts, meta["disagreement"] the smaller side's share.
    """

    def __init__(
        self,
        judges: Any = (),
        *,
        rule: Literal["majority", "mean"] = "majority",
        name: str | None = None,
    ):
        if rule not in ("majority", "mean"):
            raise DataError(
                f"there is no rule {rule!r}",
                where="judge panel",
                fix="rule is majority or mean",
            )
        judges = members(judges, "panel")
        # Fewer known votes than half would let one member speak for the panel.
        self.rule, self.quorum = rule, len(judges) // 2 + 1
        names = ", ".join(j.name for j in judges)
        super().__init__(judges, name or f"panel({names})")

    async def verdicts(
        self,
        task: Task,
        response: Response,
        criteria: Criteria,
        run: Any,
    ) -> list[Verdict]:
        """One verdict per criterion. A member that is down is a vote less."""
        calls = (run.ask(j, task, response, criteria) for j in self.judges)
        rows = await asyncio.gather(*calls, return_exceptions=True)
        votes = [row for row in rows if isinstance(row, list)]
        for e in rows:
            # A budget or a missing recording stops the run, and so do members all down.
            is_down = isinstance(e, JudgeDownError) and votes
            if isinstance(e, BaseException) and not is_down:
                raise e
        return [self.combine(row) for row in zip(*votes, strict=True)]

    def combine(self, votes: Sequence[Verdict]) -> Verdict:
        """One verdict out of those of the members that are not down."""
        valid = [v for v in votes if v.is_known]
        met, n = sum(v.value >= 0.5 for v in valid), len(valid)
        fields = {"judge": self.name, **dict.fromkeys(VOTE[1:])}
        fields["reason"] = f"{met} of {n} known votes met, quorum {self.quorum}"
        if n < self.quorum:
            failures = Counter(v.failure for v in votes if not v.is_known)
            failures["transport"] += len(self.judges) - len(votes)
            failure = failures.most_common(1)[0][0]
            fields |= {"status": "unknown", "failure": failure}
        else:
            fields |= self._decide(valid)
        rows = [{name: getattr(v, name) for name in VOTE} for v in votes]
        smaller = min(met, n - met) / n if n else None
        fields["meta"] = {"votes": rows, "disagreement": smaller}
        return replace(votes[0], **fields, **_sums(votes))

    def _decide(self, votes: Sequence[Verdict]) -> dict[str, Any]:
        """Status and P(met) out of enough known votes."""
        share = statistics.fmean(v.value >= 0.5 for v in votes)
        p = statistics.fmean(v.value if v.p is None else v.p for v in votes)
        # A majority decides by heads; P(met) decides only where heads are even.
        by_heads = self.rule == "majority" and share != 0.5
        side = share if by_heads else p
        if side == 0.5:
            return {"status": "unknown", "failure": "contradiction", "p": p}
        if any(v.status == "level" for v in votes):
            value = statistics.fmean(v.value for v in votes)
            return {"status": "level", "value": value, "p": p}
        return {"status": "met" if side > 0.5 else "unmet", "p": p}


def votes(subject: Any = None, *, n: int = 5, **options: Any) -> Panel:
    """A panel of n samples of one endpoint; at temperature 1 where no other is set."""
    kind, model, more = parts(subject, where="judge votes")
    if kind != "endpoint" or not isinstance(n, int) or n < 2:
        raise DataError(
            f"{n!r} votes of {kind}",
            where="judge votes",
            fix="write {votes: {endpoint: MODEL}, n: 5} with n from 2 on",
        )
    # At temperature 0 all votes would be one vote.
    mapping = {"endpoint": model, "temperature": 1.0, **more}
    judges = [judge_of(mapping) for _ in range(n)]
    # Equal keys would make one stored sample serve for all.
    for i, judge in enumerate(judges):
        judge.settings["sample"] = i
    return Panel(judges, **{"name": f"{judges[0].name} x{n}", **options})


class Escalate(Joined):
    """A cheap judge first; the strong one only where the cheap one is in doubt.

    judges : the cheap and the strong one. In doubt: unknown, no P(met), or
    low < P(met) < high. The last judge's verdict counts; meta["first"] keeps the cheap
    one's. Tokens and cost are the sum of both.
    """

    def __init__(
        self,
        judges: Sequence[Any] = (),
        *,
        low: float = 0.2,
        high: float = 0.8,
        name: str | None = None,
    ):
        if not 0 <= low <= high <= 1:
            raise DataError(f"low {low!r}, high {high!r}", where="judge escalate")
        cheap, strong = judges = members(judges, "escalate", most=2)
        self.low, self.high = low, high
        name = name or f"{cheap.name} -> {strong.name}"
        super().__init__(judges, name)

    async def verdicts(
        self,
        task: Task,
        response: Response,
        criteria: Criteria,
        run: Any,
    ) -> list[Verdict]:
        """One verdict per criterion, in order."""
        cheap, strong = self.judges
        rows = await run.ask(cheap, task, response, criteria)
        pairs = zip(criteria, rows, strict=True)
        doubts = [c for c, v in pairs if self._doubts(v)]
        later = await run.ask(strong, task, response, doubts) if doubts else []
        by_id = {v.criterion_id: v for v in later}
        return [self._last(v, by_id.get(v.criterion_id)) for v in rows]

    def _doubts(self, v: Verdict) -> bool:
        # Without P(met) nobody knows how sure the cheap judge is.
        return not v.is_known or v.p is None or self.low < v.p < self.high

    def _last(self, first: Verdict, second: Verdict | None) -> Verdict:
        last = second or first
        early = {name: getattr(first, name) for name in VOTE}
        meta = {**last.meta, "escalated": last is second, "first": early}
        sums = _sums([first, second] if second else [first])
        return replace(last, key=None, meta=meta, **sums)


def members(judges: Any, kind: str, most: int | None = None) -> list[Any]:
    """The judges of a judge that is made of judges."""
    n = len(judges) if isinstance(judges, list | tuple) else 0
    if n < 2 or n > (most or n):
        raise DataError(
            f"{kind} needs two judges",
            where=f"judge {kind}",
            fix=f"write {{{kind}: [JUDGE, JUDGE]}}, each a name or a mapping",
        )
    rows = enumerate(judges, 1)
    return [judge_of(row, where=f"judge {i} of {kind}") for i, row in rows]


def _sums(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """Tokens and cost of several verdicts; cached where all are."""
    sums = {name: sum(getattr(v, name) for v in verdicts) for name in COSTS}
    return {**sums, "cached": all(v.cached for v in verdicts)}


class GroupJudge:
    """A judge that sees the answers to a task together. judge : an endpoint judge.

    One call holds all answers in shuffled order under the ids a1..an, and gives each a
    verdict on each criterion; answers may tie. seed : another order. The order, and all
    answers of the group, are part of each key.
    """

    sends = True

    def __init__(
        self, judge: Any = None, *, seed: int = 0, name: str | None = None
    ):
        judge = judge_of(judge, where="judge group")
        if not hasattr(judge, "reply"):
            raise DataError(
                f"{judge.name!r} cannot judge groups",
                where="judge group",
                fix="use an endpoint",
            )
        self.judge, self.seed = judge, seed
        self.name = name or f"group({judge.name})"
        self.concurrency, self.limit = judge.concurrency, judge.limit
        self.groups: dict[str, list[Response]] = {}
        self.calls: dict[str, asyncio.Future[list[Verdict]]] = {}

    def bind(self, pairs: Sequence[tuple[Task, Response]]) -> GroupJudge:
        """A judge that knows the answers to each task of these pairs."""
        bound = GroupJudge(self.judge, seed=self.seed, name=self.name)
        # Siblings wait for one call, so each answer needs a worker.
        bound.concurrency = max(self.concurrency, len(pairs))
        for task_id, answers in group((t.id, r) for t, r in pairs).items():
            rows = list({r.id: r for r in answers}.values())
            # Sorted first: the order must not depend on how the caller lists them.
            rows.sort(key=lambda r: prompt.short([self.seed, r.text, r.id]))
            random.Random(self.seed).shuffle(rows)
            bound.groups[task_id] = rows
        return bound

    def keys(self, task: Task, response: Response, criteria: Criteria) -> list[str]:
        """Keys that depend on all answers, their order, and the place of this one."""
        rows = self.groups[task.id]
        answers = [prompt.short(prompt.judged(r.text)) for r in rows]
        place = [r.id for r in rows].index(response.id)
        together = [answers, place, [prompt.texts(c) for c in criteria]]
        settings = ["group", self.judge.settings]
        return prompt.keys(settings, task, response, criteria, together=together)

    async def verdicts(
        self,
        task: Task,
        response: Response,
        criteria: Criteria,
        run: Any,
    ) -> list[Verdict]:
        """The verdicts on this answer. The first of a group calls, the others wait."""
        # Only some criteria may be left, but all of them shape the verdicts.
        place = f"{task.id} {[c.id for c in run.criteria]}"
        if place not in self.calls:
            self.calls[place] = asyncio.ensure_future(self._call(task, run))
        by_ids = {v.ids[1:]: v for v in await self.calls[place]}
        return [by_ids[response.id, c.id] for c in criteria]

    async def _call(self, task: Task, run: Any) -> list[Verdict]:
        """The verdicts on all answers of the group, each under its own key."""
        answers = {f"a{n}": r for n, r in enumerate(self.groups[task.id], 1)}
        for r in answers.values():
            keys = self.keys(task, r, run.criteria)
            for c, key in zip(run.criteria, keys, strict=True):
                run.keys[r.id, c.id] = key
        return await self.judge.ask(task, answers, run.criteria, run)
