"""Judge all answers to one prompt in one call, so that they are compared: `{"group": JUDGE}`.

The answers come in shuffled order under the ids a1..an. Each gets a verdict on each criterion;
answers may tie.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import DataError
from ..records import Criterion, Response, Task, Verdict, group
from . import keys, prompt
from .prices import Forecast, dollars, tokens
from .reader import Reading, parse, readings, refuse


class GroupJudge:
    """A judge that sees the answers to a prompt together. judge : an endpoint judge.

    seed : another order of the answers. The order, and all answers of the group, are part of
        each key.
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
        """A judge that knows the groups of these pairs:

        the answers to each task, in shuffled order.
        """
        bound = GroupJudge(self.judge, seed=self.seed, name=self.name)
        bound.concurrency = max(
            self.concurrency, len(pairs)
        )  # siblings wait for one call
        for task_id, answers in group((t.id, r) for t, r in pairs).items():
            unique = {r.id: r for r in answers}
            # Sorted by text first: the order must not depend on how the caller lists the answers.
            rows = sorted(
                unique.values(), key=lambda r: keys.short([self.seed, r.text, r.id])
            )
            random.Random(self.seed).shuffle(rows)
            bound.groups[task_id] = rows
        return bound

    def _group(self, task: Task, response: Response) -> list[Response]:
        return self.groups.get(task.id) or [response]

    def keys(
        self, task: Task, response: Response, criteria: Sequence[Criterion]
    ) -> list[str]:
        """Keys that depend on all answers of the group, their order, and the place of this one."""
        # A later call may be about some of the criteria, but all of them shape the verdicts.
        self.criteria[response.ids] = list(criteria)
        rows = self._group(task, response)
        texts = [keys.short(prompt.judged(r.text)) for r in rows]
        place = [r.id for r in rows].index(response.id)
        together = [texts, place, [keys.texts(c) for c in criteria]]
        return keys.keys(
            ["group", self.judge.settings], task, response, criteria, together=together
        )

    def forecast(
        self, task: Task, response: Response, criteria: Sequence[Criterion]
    ) -> Forecast:
        """What the group's call takes, about; 0 for all its answers but the first."""
        rows = self._group(task, response)
        if rows[0].id != response.id:
            return Forecast()
        chat, _ = self._messages(task, rows, prompt.number(criteria), "0000")
        n_in, n_out = tokens(chat[1]["content"]), 60 * len(rows) * len(criteria)
        price = self.judge.price
        cost = dollars(price, n_in, n_out) if price else None
        return Forecast(calls=1, tokens_in=n_in, tokens_out=n_out, cost=cost)

    def _messages(
        self,
        task: Task,
        rows: Sequence[Response],
        criteria: Mapping[str, Criterion],
        call: str,
    ) -> tuple[list[dict[str, str]], dict[str, Response]]:
        named = {f"a{n}": r for n, r in enumerate(rows, 1)}
        answers = "\n\n".join(
            prompt.fence(a, prompt.judged(r.text)) for a, r in named.items()
        )
        chat = prompt.messages(
            self.judge.system, task, answers, criteria, form="group", call=call, ids=", ".join(named)
        )  # fmt: skip
        return chat, named

    async def verdicts(
        self, task: Task, response: Response, criteria: Sequence[Criterion], run: Any
    ) -> list[Verdict]:
        """The verdicts on this answer.

        The first answer of a group makes the call, the others wait for it.
        """
        whole = self.criteria[response.ids]
        place = f"{task.id} {[c.id for c in whole]}"
        if place not in self.calls:
            self.calls[place] = asyncio.ensure_future(
                self._ask(task, response, whole, run)
            )
        rows = (await asyncio.shield(self.calls[place]))[response.id]
        by_id = {v.criterion_id: v for v in rows}
        return [by_id[c.id] for c in criteria]

    async def _ask(
        self, task: Task, response: Response, criteria: Sequence[Criterion], run: Any
    ) -> dict[str, list[Verdict]]:
        """One call for the group, and once more where the whole reply could not be read."""
        rows, numbered = self._group(task, response), prompt.number(criteria)
        form = prompt.schema(
            numbered, answers=[f"a{n}" for n in range(1, len(rows) + 1)]
        )
        n = len(rows) * len(numbered)
        for attempt in (1, 2):
            call = prompt.mark()
            chat, named = self._messages(task, rows, numbered, call)
            reply = await self.judge.reply(chat, run, schema=form, room=200 + 160 * n)
            made = self._read(reply, named, numbered, call)
            lost = any(
                r.get("failure") in ("parse", "missing")
                for row in made.values()
                for r in row
            )
            if attempt == 2 or not lost or not reply.call:
                break
            await run.record([], reply.call)
        out = {}
        for a, r in named.items():
            pairs = zip(criteria, made[a], self.keys(task, r, criteria), strict=True)
            out[r.id] = [
                self.judge.verdict(
                    task, r, c, reading, reply, n, judge=self.name, key=key
                )
                for c, reading, key in pairs
            ]
        stored = await run.record([v for row in out.values() for v in row], reply.call)
        return group((v.response_id, v) for v in stored)

    def _read(
        self,
        reply: Any,
        named: Mapping[str, Response],
        criteria: Mapping[str, Criterion],
        call: str,
    ) -> dict[str, list[Reading]]:
        """Readings by the id of the answer."""
        if reply.failure:
            return dict.fromkeys(
                named, refuse(criteria, str(reply.reason), reply.failure)
            )
        try:
            rows = parse(reply.text, named, call=call)
            return {a: readings(rows.get(a, {}), criteria) for a in named}
        except ValueError as e:
            reason = f"the reply is not in the requested form: {e}"
            return dict.fromkeys(named, refuse(criteria, reason))
