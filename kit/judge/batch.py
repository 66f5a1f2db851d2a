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
Waiting = dict[str, tuple[str, list[asyncio.Future[Got]]]]  # by request: its line, and who asked


class BatchJudge(Asked):
    """An EndpointJudge whose calls go through the batch API. `poll`: seconds between looks; `gather`: seconds to wait for more questions."""

    workers = 1_000_000  # all questions must be asked before the first answer comes

    def __init__(self, judge: EndpointJudge, *, poll: float = 30.0, gather: float = 1.0):
        self.inner, self.caller, self.gather = judge, judge.caller, gather
        self.provider = Provider(judge.caller, poll)
        self.name = f"{judge.name}/batch"
        self._pending: Waiting = {}
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
        future: asyncio.Future[Got] = asyncio.get_running_loop().create_future()
        self._pending.setdefault(custom_id, (encode(request), []))[1].append(future)
        if self._sender is None or self._sender.done():
            self._sender = asyncio.create_task(self._work(session().ledger))
        try:
            return await future
        except asyncio.CancelledError:
            if self._sender is not None and not _open(self._pending):
                self._sender.cancel()
            raise

    async def _work(self, ledger: Any) -> None:
        """Gather questions, send what is not under way yet, wait for all."""
        taken: Waiting = {}
        try:
            before = -1
            while before < (now := len(_open(self._pending))):
                before = now
                await asyncio.sleep(self.gather)
            taken, self._pending = self._pending, {}
            sent = Sent(ledger, f"batches {self.inner.base_url} {self.inner.model}")
            for name, ids in sent.of(taken).items():
                if name.startswith(SENT):
                    batch_id = await self.provider.look(name)
                    sent.change({batch_id: ids} if batch_id else {}, gone=name)
            under_way = {i for ids in sent.of(taken).values() for i in ids}
            new = {i: line for i, (line, _) in taken.items() if i not in under_way}
            for part in _parts(new):
                await self.provider.submit(sent, part)
            await asyncio.gather(*(self._hand_out(sent, b, taken) for b in sent.of(taken)))
            for i in taken:
                _answered(
                    taken, i, ("transport", "the batch ended without a reply to this request")
                )
        except asyncio.CancelledError:
            for future in _open(taken or self._pending):
                future.cancel()
            raise
        except BaseException as e:
            for future in _open(taken or self._pending):
                future.set_exception(e)

    async def _hand_out(self, sent: Sent, batch_id: str, waiting: Waiting) -> None:
        """Each reply of a batch to whoever asked; forget the batch when they are on disk."""
        ids = sent.known[batch_id]
        rows, whole = await self.provider.ended(sent, batch_id)
        why = f"batch {batch_id} has ended, and its files lack this reply; run the same command "
        why += "again later, or judge without --batch to ask for it alone"
        for i in ids:
            if i in rows:
                _answered(waiting, i, _reply(rows[i]))
            elif not whole:
                _answered(waiting, i, ("transport", why))
        if whole:
            for _ in range(TURNS):
                await asyncio.sleep(0)
            await session().settled()
            sent.change({}, gone=batch_id)


def _parts(lines: Mapping[str, str]) -> list[dict[str, str]]:
    """Requests in batches within the provider's limits."""
    out: list[dict[str, str]] = []
    size = 0
    for i, line in lines.items():
        size += len(line) + 1
        if not out or len(out[-1]) >= LARGEST or size > BYTES:
            out.append({})
            size = len(line) + 1
        out[-1][i] = line
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


def _open(waiting: Waiting) -> list[asyncio.Future[Got]]:
    """Who still waits."""
    return [future for _, who in waiting.values() for future in who if not future.done()]


def _answered(waiting: Waiting, i: str, got: Got) -> None:
    for future in _open({i: waiting[i]} if i in waiting else {}):
        future.set_result(got)
