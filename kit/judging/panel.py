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
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from ..errors import DataError, JudgeDownError
from ..records import Criterion, Response, Task, Verdict, group, unknown
from . import prompt
from .reader import Reading, parse, readings, refuse

COSTS = ("tokens_in", "tokens_out", "cost")


class Joined:
    """What a panel and an escalation share: the keys of their members."""

    def __init__(self, judges: Sequence[Any], name: str, settings: list[Any]):
        self.judges, self.name, self.settings = tuple(judges), name, settings
        self.concurrency = max(getattr(j, "concurrency", 1) for j in judges)
        self.limit = sum(getattr(j, "limit", 0.0) for j in judges)

    def bind(self, pairs: Any) -> Joined:
        """Tell members that look at several answers at once which answers there are."""
        bound = copy.copy(self)  # other runs may use this judge
        rows = self.judges
        bound.judges = tuple(
            j.bind(pairs) if hasattr(j, "bind") else j for j in rows
        )
        return bound

    def keys(
        self, task: Task, response: Response, criteria: Sequence[Criterion]
    ) -> list[str] | None:
        """Keys that depend on the members' keys; None where a member has none."""
        if not all(hasattr(j, "keys") for j in self.judges):
            return None
        rows = [j.keys(task, response, criteria) for j in self.judges]
        made = []
        for c, *row in zip(criteria, *rows, strict=True):
            made += prompt.keys(self.settings, task, response, [c], together=row)
        return made


class Panel(Joined):
    """Several judges that vote.

    rule : "majority" of the known votes (a tie goes by the mean P; a dead tie is unknown
        "contradiction"), or "mean": mean P(met) against one half. More than half of the
        members must have a known vote.
    The verdict's p is the mean of the members' P(met) (1 or 0 for a member without); with
    share=True it is the share of met votes. meta["votes"] keeps the members' verdicts,
    meta["disagreement"] the smaller side's share.
    """

    def __init__(
        self,
        judges: Sequence[Any],
        *,
        rule: Literal["majority", "mean"] = "majority",
        share: bool = False,
        name: str | None = None,
    ):
        if rule not in ("majority", "mean"):
            raise DataError(
                f"there is no rule {rule!r}",
                where="judge panel",
                fix="rule is majority or mean",
            )
        # Fewer known votes than half would let one member speak for the panel.
        self.rule, self.share, self.quorum = rule, share, len(judges) // 2 + 1
        name = name or f"panel({', '.join(j.name for j in judges)})"
        super().__init__(judges, name, ["panel", rule, self.quorum, share])

    async def verdicts(
        self,
        task: Task,
        response: Response,
        criteria: Sequence[Criterion],
        run: Any,
    ) -> list[Verdict]:
        """One verdict per criterion. A member that is down is a vote less."""
        calls = (run.ask(j, task, response, criteria) for j in self.judges)
        rows = await asyncio.gather(*calls, return_exceptions=True)
        votes = [row for row in rows if isinstance(row, list)]
        faults = [row for row in rows if isinstance(row, BaseException)]
        # A budget or a missing recording stops the run, and so do members all down.
        fatal = [
            e for e in faults if not votes or not isinstance(e, JudgeDownError)
        ]
        if fatal:
            raise fatal[0]
        made = [
            self.combine(list(row), bool(faults))
            for row in zip(*votes, strict=True)
        ]
        return await run.record(made)

    def combine(self, votes: list[Verdict], down: bool = False) -> Verdict:
        """One verdict out of the members' verdicts. down : some member has no vote."""
        valid = [v for v in votes if v.is_known]
        values = [float(v.value or 0.0) for v in valid]
        ps = [x if v.p is None else v.p for v, x in zip(valid, values, strict=True)]
        met, n = sum(x >= 0.5 for x in values), len(valid)
        columns = ("judge", "status", "value", "p", "reason", "failure", "key")
        both = _sums(votes, self.name, f"{met} of {n} votes met")
        both["meta"] = {
            "votes": [{name: getattr(v, name) for name in columns} for v in votes],
            "disagreement": min(met, n - met) / n if n else None,
            # A vote that is missing for a while must not be stored as if it was cast.
            "passing": down or any(v.failure == "transport" for v in votes),
        }
        if n:
            both["p"] = met / n if self.share else statistics.fmean(ps)
        if n < self.quorum:
            lost = Counter(str(v.failure) for v in votes if not v.is_known)
            failure = max(lost, key=lost.__getitem__, default="transport")
            both["reason"] = f"{n} known votes, {self.quorum} needed"
            return unknown(*votes[0].ids, failure, **both)
        # A majority decides by heads; P(met) decides only where heads are even.
        side = both["p"] - 0.5
        if self.rule == "majority" and 2 * met != n:
            side = met / n - 0.5
        if side == 0:
            return unknown(*votes[0].ids, "contradiction", **both)
        both["status"], both["value"] = ("met", 1.0) if side > 0 else ("unmet", 0.0)
        if any(v.status == "level" for v in valid):
            both |= {"status": "level", "value": statistics.fmean(values)}
        return msgspec.structs.replace(valid[0], key=None, cached=False, **both)


class Escalate(Joined):
    """A cheap judge first; the strong one only where the cheap one is in doubt.

    In doubt: unknown, no P(met), or low < P(met) < high. The last judge's verdict counts;
    meta["first"] keeps the cheap one's. Tokens and cost are the sum of both.
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
        self,
        task: Task,
        response: Response,
        criteria: Sequence[Criterion],
        run: Any,
    ) -> list[Verdict]:
        """One verdict per criterion, in order."""
        cheap, strong = self.judges
        first = await run.ask(cheap, task, response, criteria)
        # Without P(met) nobody knows how sure the cheap judge is.
        doubts = [v.p is None or self.low < v.p < self.high for v in first]
        pairs = zip(criteria, first, doubts, strict=True)
        left = [c for c, v, doubt in pairs if doubt or not v.is_known]
        second = await run.ask(strong, task, response, left) if left else []
        later = {v.criterion_id: v for v in second}
        columns = ("judge", "status", "p", "reason", "failure")
        made = []
        for v in first:
            last = later.get(v.criterion_id, v)
            both = _sums(
                [v, last] if last is not v else [v], last.judge, last.reason
            )
            early = {name: getattr(v, name) for name in columns}
            both["meta"] = {**last.meta, "escalated": last is not v, "first": early}
            made.append(
                msgspec.structs.replace(last, key=None, cached=False, **both)
            )
        return await run.record(made)


def _sums(
    votes: Sequence[Verdict], judge: str, reason: str | None
) -> dict[str, Any]:
    """Tokens and cost of all votes, beside who judged and why."""
    fields = {name: sum(getattr(v, name) for v in votes) for name in COSTS}
    return {**fields, "judge": judge, "reason": reason}


class GroupJudge:
    """A judge that sees the answers to a task together. judge : an endpoint judge.

    One call holds all answers in shuffled order under the ids a1..an, and gives each a
    verdict on each criterion; answers may tie. seed : another order. The order, and all
    answers of the group, are part of each key.
    """

    def __init__(self, judge: Any, *, seed: int = 0, name: str | None = None):
        if not hasattr(judge, "reply"):
            raise DataError(
                f"{judge.name!r} cannot judge groups",
                where="judge group",
                fix="use an endpoint",
            )
        self.judge, self.judges, self.seed = judge, (judge,), seed
        self.name = name or f"group({judge.name})"
        self.concurrency, self.limit = judge.concurrency, judge.limit
        self.groups: dict[str, list[Response]] = {}
        self.criteria: dict[tuple[str, str], list[Criterion]] = {}
        self.calls: dict[str, asyncio.Future[dict[str, list[Verdict]]]] = {}

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

    def keys(
        self, task: Task, response: Response, criteria: Sequence[Criterion]
    ) -> list[str]:
        """Keys that depend on all answers, their order, and the place of this one."""
        # A later call may be about some criteria, but all of them shape the verdicts.
        self.criteria[response.ids] = list(criteria)
        rows = self.groups.get(task.id) or [response]
        answers = [prompt.short(prompt.judged(r.text)) for r in rows]
        place = [r.id for r in rows].index(response.id)
        together = [answers, place, [prompt.texts(c) for c in criteria]]
        settings = ["group", self.judge.settings]
        return prompt.keys(settings, task, response, criteria, together=together)

    async def verdicts(
        self,
        task: Task,
        response: Response,
        criteria: Sequence[Criterion],
        run: Any,
    ) -> list[Verdict]:
        """The verdicts on this answer. The first of a group calls, the others wait."""
        whole = self.criteria[response.ids]
        place = f"{task.id} {[c.id for c in whole]}"
        if place not in self.calls:
            call = self._ask(task, response, whole, run)
            self.calls[place] = asyncio.ensure_future(call)
        # Shielded: one cancelled answer must not cancel the call of all.
        made = await asyncio.shield(self.calls[place])
        by_id = {v.criterion_id: v for v in made[response.id]}
        return [by_id[c.id] for c in criteria]

    async def _ask(
        self,
        task: Task,
        response: Response,
        criteria: Sequence[Criterion],
        run: Any,
    ) -> dict[str, list[Verdict]]:
        """One call for the group, and once more where its reply could not be read."""
        rows, numbered = (
            self.groups.get(task.id) or [response],
            prompt.number(criteria),
        )
        named = {f"a{n}": r for n, r in enumerate(rows, 1)}
        fences = [prompt.fence(a, prompt.judged(r.text)) for a, r in named.items()]
        form = prompt.schema(numbered, answers=list(named))
        places = {"form": "group", "ids": ", ".join(named)}
        chat = ("\n\n".join(fences), numbered)
        n = len(rows) * len(numbered)
        for attempt in (1, 2):
            mark = prompt.mark()
            messages = prompt.messages(
                self.judge.system, task, *chat, call=mark, **places
            )
            reply = await self.judge.reply(
                messages, run, schema=form, room=200 + 160 * n
            )
            made = self._read(reply, named, numbered, mark)
            failures = {r.get("failure") for row in made.values() for r in row}
            readable = not failures & {"parse", "missing"}
            if attempt == 2 or readable or not reply.call:
                break
            await run.record([], reply.call)
        verdicts = []
        for a, r in named.items():
            keys = self.keys(task, r, criteria)
            for c, reading, key in zip(criteria, made[a], keys, strict=True):
                more = {"judge": self.name, "key": key}
                verdicts.append(self.judge.verdict(r, c, reading, reply, n, **more))
        stored = await run.record(verdicts, reply.call)
        return group((v.response_id, v) for v in stored)

    def _read(
        self,
        reply: Any,
        named: Mapping[str, Response],
        criteria: Mapping[str, Criterion],
        call: str,
    ) -> dict[str, list[Reading]]:
        """Readings by the id of the answer."""
        reason, failure = str(reply.reason), reply.failure
        if not failure:
            try:
                rows = parse(reply.text, named, call=call)
                return {a: readings(rows.get(a, {}), criteria) for a in named}
            except ValueError as e:
                reason, failure = (
                    f"the reply is not in the requested form: {e}",
                    "parse",
                )
        return dict.fromkeys(named, refuse(criteria, reason, failure))
