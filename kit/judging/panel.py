"""Judges made of judges: a panel that votes, a cheap judge that passes its doubts on to a
strong one, and a judge that compares all answers to a task in one call.

Members are asked through the same ledger and budget, each under keys of its own.
"""

import asyncio
import random
import statistics
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

from msgspec.structs import replace

from ..errors import DataError, JudgeDownError
from ..records import Response, Task, Verdict, strip_thinking
from . import form as forms
from .endpoint import EndpointJudge
from .factory import Judge, judge_of, parts
from .form import Criteria
from .ledger import COSTS

# What a vote says, and what its panel says anew.
VOTE = ("judge", "status", "value", "p", "reason", "failure", "key")


class Joined(Judge):
    """A judge that is made of judges: kind is its name in a mapping, most how many it takes.

    It has no keys: what its members said is in the ledger, and joining it costs nothing.
    """

    sends = True

    def __init__(self, judges: Any, kind: str, most: int | None = None):
        n = len(judges) if isinstance(judges, list | tuple) else 0
        if n < 2 or n > (most or n):
            raise DataError(
                f"{kind} needs two judges",
                where=f"judge {kind}",
                fix=f"write {{{kind}: [JUDGE, JUDGE]}}, each a name or a mapping",
            )
        rows = enumerate(judges, 1)
        self.judges = [
            judge_of(row, where=f"judge {i} of {kind}") for i, row in rows
        ]
        self.name = f"{kind}({', '.join(j.name for j in self.judges)})"
        self.concurrency = max(j.concurrency for j in self.judges)
        self.groups = any(j.groups for j in self.judges)


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
        super().__init__(judges, "panel")
        # Fewer known votes than half would let one member speak for the panel.
        self.rule, self.quorum = rule, len(self.judges) // 2 + 1
        self.name = name or self.name

    async def verdicts(
        self, task: Task, answers: Sequence[Response], criteria: Criteria, run: Any
    ) -> list[Verdict]:
        """The verdicts, answers x criteria. A member that is down is a vote less."""
        calls = (run.ask(j, task, answers, criteria) for j in self.judges)
        rows = await asyncio.gather(*calls, return_exceptions=True)
        votes = [row for row in rows if isinstance(row, list)]
        for e in rows:
            # A budget or a missing recording stops the run, and so do members all down.
            is_down = isinstance(e, JudgeDownError) and votes
            if isinstance(e, BaseException) and not is_down:
                raise e
        places = [(r, c) for r in answers for c in criteria]
        fields = [self.combine(row) for row in zip(*votes, strict=True)]
        pairs = zip(places, fields, strict=True)
        return [run.verdict(*place, **row) for place, row in pairs]

    def combine(self, votes: Sequence[Verdict]) -> dict[str, Any]:
        """The fields of one verdict out of those of the members that are not down."""
        valid = [v for v in votes if v.is_known]
        met, n = sum(v.value >= 0.5 for v in valid), len(valid)
        rows = [{name: getattr(v, name) for name in VOTE} for v in votes]
        fields = {
            "reason": f"{met} of {n} known votes met, quorum {self.quorum}",
            "meta": {
                "votes": rows,
                "disagreement": min(met, n - met) / n if n else None,
            },
            **_sums(votes),
        }
        if n >= self.quorum:
            return {**fields, **self._decide(valid)}
        failures = Counter(v.failure for v in votes if not v.is_known)
        failures["transport"] += len(self.judges) - len(votes)
        failure = failures.most_common(1)[0][0]
        return {**fields, "status": "unknown", "failure": failure}

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
        super().__init__(judges, "escalate", most=2)
        self.low, self.high, self.name = low, high, name or self.name

    async def verdicts(
        self, task: Task, answers: Sequence[Response], criteria: Criteria, run: Any
    ) -> list[Verdict]:
        """The verdicts, answers x criteria, in order."""
        cheap, strong = self.judges
        rows = await run.ask(cheap, task, answers, criteria)
        doubts = [v for v in rows if self._doubts(v)]
        names = {v.response_id for v in doubts}, {v.criterion_id for v in doubts}
        again = [r for r in answers if r.id in names[0]]
        left = [c for c in criteria if c.id in names[1]]
        later = await run.ask(strong, task, again, left)
        by_ids = {v.ids: v for v in later}
        return [self._last(v, by_ids.get(v.ids)) for v in rows]

    def _doubts(self, v: Verdict) -> bool:
        # Without P(met) nobody knows how sure the cheap judge is.
        return not v.is_known or v.p is None or self.low < v.p < self.high

    def _last(self, first: Verdict, second: Verdict | None) -> Verdict:
        verdicts = [first, second] if second and self._doubts(first) else [first]
        early = {name: getattr(first, name) for name in VOTE}
        last, is_late = verdicts[-1], len(verdicts) == 2
        meta = {**last.meta, "escalated": is_late, "first": early}
        return replace(last, key=None, meta=meta, **_sums(verdicts))


def _sums(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """Tokens and cost of several verdicts; cached where all are."""
    costs = {name: sum(getattr(v, name) for v in verdicts) for name in COSTS}
    return costs | {"cached": all(v.cached for v in verdicts)}


class GroupJudge(Judge):
    """A judge that sees the answers to a task together. judge : an endpoint judge.

    One call holds all answers in shuffled order under the ids a1..an, and gives each a
    verdict on each criterion; answers may tie. seed : another order. The order, and all
    answers of the group, are part of each key.
    """

    sends = groups = True

    def __init__(
        self, judge: Any = None, *, seed: int = 0, name: str | None = None
    ):
        judge = judge_of(judge, where="judge group")
        if not isinstance(judge, EndpointJudge):
            raise DataError(
                f"{judge.name!r} cannot judge groups",
                where="judge group",
                fix="use an endpoint",
            )
        self.judge, self.seed = judge, seed
        self.name = name or f"group({judge.name})"
        self.concurrency, self.limit = judge.concurrency, judge.limit

    def order(self, answers: Sequence[Response]) -> list[Response]:
        """The answers as the call shows them."""
        # Sorted first: the order must not depend on how the caller lists them.
        rows = sorted(answers, key=lambda r: forms.short([self.seed, r.text, r.id]))
        random.Random(self.seed).shuffle(rows)
        return rows

    def keys(
        self, task: Task, answers: Sequence[Response], criteria: Criteria
    ) -> list[str]:
        """Keys that depend on all answers, their order, and the place of each."""
        order = self.order(answers)
        texts = [forms.short(strip_thinking(r.text)) for r in order]
        rubric = [forms.texts(c) for c in criteria]
        settings, keys = ["group", self.judge.settings], []
        for r in answers:
            together = [texts, order.index(r), rubric]
            keys += forms.keys(settings, task, r, criteria, together=together)
        return keys

    async def verdicts(
        self, task: Task, answers: Sequence[Response], criteria: Criteria, run: Any
    ) -> list[Verdict]:
        """The verdicts of one call. Also where only some are left, because all shape them."""
        group = {f"a{n}": r for n, r in enumerate(self.order(answers), 1)}
        return await self.judge.ask(task, group, run.criteria, run)
