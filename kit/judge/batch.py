"""The batch judge: an endpoint judge's questions through the provider's batch API, at half the price, for large offline jobs.

    judge(tasks, answers, judge=BatchJudge(EndpointJudge("gpt-6-luna")), ledger="ledger.sqlite")

The same call as ever; it takes minutes to a day. Interrupted and run again with the same ledger, it
finds the batches that it had sent and waits for those; nothing is sent twice (provider.py).
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import secrets
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..records import Criterion, Response, Task, Verdict, fingerprint
from .caller import unusable
from .endpoint import EndpointJudge
from .keys import plain, redact, shown
from .prices import Usage, models, tokens, usage
from .provider import PATH, SENT, Provider, Sent
from .records import Call, Forecast, Question
from .session import Asked, session
from .templates import Raw, encode

LARGEST = 50_000  # requests in one batch, the provider's limit
BYTES = 190_000_000
TURNS = 4  # of the loop, until a reply that is handed out is recorded

Got = Mapping[str, Any] | tuple[str, str]  # a reply's body, or the failure and its reason


@dataclass
class _Pending:
    """One request on its way."""

    custom_id: str
    line: str
    future: asyncio.Future[Got] = field(repr=False)


class BatchJudge(Asked):
    """An EndpointJudge whose calls go through the batch API. `poll`: seconds between looks; `gather`: seconds to wait for more questions."""

    workers = 1_000_000  # all questions must be asked before the first answer comes

    def __init__(self, judge: EndpointJudge, *, poll: float = 30.0, gather: float = 1.0):
        self.inner, self.caller, self.gather = judge, judge.caller, gather
        self.provider = Provider(judge.caller, poll)
        self.name = f"{judge.name}/batch"
        self._pending: list[_Pending] = []
        self._sender: asyncio.Task[None] | None = None

    def keys(self, task: Task, response: Response, criteria: Sequence[Criterion]) -> list[str]:
        """The endpoint judge's own keys: a batched verdict is the same verdict."""
        return self.inner.keys(task, response, criteria)

    def forecast(self, task: Task, response: Response, criteria: Sequence[Criterion]) -> Forecast:
        """The endpoint judge's forecast at the batch price."""
        f = self.inner.forecast(task, response, criteria)
        return Forecast(
            calls=f.calls,
            tokens_in=f.tokens_in,
            tokens_out=f.tokens_out,
            cost=None if f.cost is None else f.cost * self._rate,
        )

    @property
    def _rate(self) -> float:
        return float(models()["batch_discount"]) if self.inner._openai else 1.0

    def parts(self, q: Question) -> list[Question]:
        """The question as it is spread over calls."""
        return self.inner.parts(q)

    async def replies(self, q: Question) -> AsyncIterator[tuple[list[Verdict], Call | None]]:
        """What the batch's reply to this request gave: (verdicts, call)."""
        yield await self._reply(q)

    async def _reply(self, q: Question) -> tuple[list[Verdict], Call | None]:
        task, response, criteria = q.task, q.response, q.criteria
        mode = self.inner.mode
        body, price = self.inner.body(task, response, criteria, mode), self.inner.caller.price
        text = encode(self.inner.caller.abilities.without(body, {}))
        custom_id, room = fingerprint(list(q.keys)), body["max_completion_tokens"]
        run, most = session(), Usage(tokens_in=tokens(len(text)), tokens_out=room)
        ticket = await run.budget.take(most.forecast(price)) if run.budget else None
        spent = Forecast()
        try:
            got = await self._send(custom_id, text)
            if isinstance(got, tuple):
                return q.unknowns(got[0], judge=self.name, reason=got[1]), None
            reply = redact(json.dumps(got))
            used = usage(got, len(text), len(reply), room)
            cost = (used.forecast(price).cost or 0.0) * self._rate
            spent = dataclasses.replace(used.forecast(None), cost=cost)
        finally:
            if ticket is not None:
                run.budget.settle(ticket, spent)  # type: ignore[union-attr]
        call = Call(
            id=secrets.token_hex(8),
            judge=self.name,
            model=plain(got.get("model")) or self.inner.model,
            endpoint=self.inner.base_url,
            request=redact(text),
            reply=reply,
            tokens_in=used.tokens_in,
            tokens_out=used.tokens_out,
            tokens_cached=used.cached,
            cost=cost,
            created=time.time(),
            meta={"batch": custom_id, **({"estimated": True} if used.estimated else {})},
        )
        readings, probs = self.inner._read(got, q, mode)
        return self.inner._verdicts(q, readings, probs, call, mode), call

    async def _send(self, custom_id: str, text: str) -> Got:
        request = {"custom_id": custom_id, "method": "POST", "url": PATH, "body": Raw(text)}
        line = encode(request)
        p = _Pending(custom_id, line, asyncio.get_running_loop().create_future())
        self._pending.append(p)
        if self._sender is None or self._sender.done():
            self._sender = asyncio.create_task(self._work(session().ledger))
        try:
            return await p.future
        except asyncio.CancelledError:
            if self._sender is not None and not any(
                not q.future.done() for q in self._pending if q is not p
            ):
                self._sender.cancel()
            raise

    async def _work(self, ledger: Any) -> None:
        """Gather questions, send what is not under way yet, wait for all."""
        taken: list[_Pending] = []
        try:
            while True:
                before = len(self._pending)
                await asyncio.sleep(self.gather)
                if len(self._pending) == before:
                    break
            taken, self._pending = self._pending, []
            by_id: dict[str, list[_Pending]] = {}
            for p in taken:
                by_id.setdefault(p.custom_id, []).append(p)
            sent = Sent(ledger, f"batches {self.inner.base_url} {self.inner.model}")
            for name, ids in sent.of(by_id).items():
                if name.startswith(SENT):
                    batch_id = await self.provider.look(name)
                    sent.change({batch_id: ids} if batch_id else {}, gone=name)
            under_way = {i for ids in sent.of(by_id).values() for i in ids}
            for part in _parts([ps[0] for i, ps in by_id.items() if i not in under_way]):
                await self.provider.submit(sent, {p.custom_id: p.line for p in part})
            waiting = sent.of(by_id)
            await asyncio.gather(*(self._hand_out(sent, b, by_id) for b in waiting))
            _answered(taken, ("transport", "the batch ended without a reply to this request"))
        except BaseException as e:
            for p in taken or self._pending:
                if not p.future.done():
                    p.future.set_exception(e) if not isinstance(
                        e, asyncio.CancelledError
                    ) else p.future.cancel()
            if isinstance(e, asyncio.CancelledError):
                raise

    async def _hand_out(
        self, sent: Sent, batch_id: str, by_id: Mapping[str, Sequence[_Pending]]
    ) -> None:
        """Each reply of a batch to whoever asked; forget the batch when they are on disk."""
        ids = sent.known[batch_id]
        rows, whole = await self.provider.ended(sent, batch_id)
        why = f"batch {batch_id} has ended, and its files lack this reply; run the same command "
        why += "again later, or judge without --batch to ask for it alone"
        for i in ids:
            if i in rows:
                _answered(by_id.get(i, ()), _reply(rows[i]))
            elif not whole:
                _answered(by_id.get(i, ()), ("transport", why))
        if whole:
            for _ in range(TURNS):
                await asyncio.sleep(0)
            await session().settled()
            sent.change({}, gone=batch_id)


def _parts(pending: Sequence[_Pending]) -> list[list[_Pending]]:
    """Requests in batches within the provider's limits."""
    out: list[list[_Pending]] = []
    size = 0
    for p in pending:
        if not out or len(out[-1]) >= LARGEST or size + len(p.line) > BYTES:
            out.append([])
            size = 0
        out[-1].append(p)
        size += len(p.line) + 1
    return out


def _reply(rows: Sequence[Mapping[str, Any]]) -> Got:
    """What the lines of one request say: its reply's body, or why it has none."""
    replies = [r.get("response") for r in rows]
    reply = replies[0] if isinstance(replies[0], Mapping) else {}
    body = reply.get("body")
    if any(not isinstance(r, Mapping) or r.get("body") != body for r in replies[1:]):
        return "contradiction", "the batch has two different replies to this request"
    error = rows[0].get("error")
    if error or reply.get("status_code") != 200 or unusable(body, PATH)[0]:
        return "transport", f"the batch's reply was: {shown(str(error or body))}"
    return body


def _answered(pending: Sequence[_Pending], got: Got) -> None:
    for p in pending:
        if not p.future.done():
            p.future.set_result(got)
