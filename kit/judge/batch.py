"""The batch judge: an endpoint judge's questions through the provider's batch API, at half the price, for large offline jobs.

    judge(tasks, answers, judge=BatchJudge(EndpointJudge("gpt-6-luna")), ledger="ledger.sqlite")

The same call as ever; it takes minutes to a day. Interrupted and run again with the same ledger, it finds the batches that it had
sent and waits for those; nothing is sent twice.
"""

from __future__ import annotations

import asyncio
import dataclasses
import io
import json
import logging
import secrets
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import JudgeDownError
from ..records import Criterion, Response, Task, Verdict, fingerprint
from ..system import progress as bars
from . import loop
from .base import ask
from .bill import usage
from .endpoint import EndpointJudge
from .keys import key_for, redact, shown
from .payload import Raw, encode, plain, said
from .prices import models
from .records import Call, Forecast, Question
from .session import session

log = logging.getLogger(__name__)
LARGEST = 50_000  # requests in one batch, the provider's limit
BYTES = 190_000_000
ENDED = ("completed", "failed", "expired", "cancelled")


@dataclass
class _Pending:
    """One request on its way."""

    custom_id: str
    line: str
    future: asyncio.Future[Mapping[str, Any] | str] = field(repr=False)


class BatchJudge:
    """An EndpointJudge whose calls go through the batch API. `poll`: seconds between looks; `gather`: seconds to wait for more questions."""

    workers = 1_000_000  # all questions must be asked before the first answer comes

    def __init__(self, judge: EndpointJudge, *, poll: float = 30.0, gather: float = 1.0):
        self.inner, self.poll, self.gather = judge, poll, gather
        self.name = f"{judge.name}/batch"
        self._pending: list[_Pending] = []
        self._sender: asyncio.Task[None] | None = None
        self._client: Any = None
        self._over: set[str] = set()  # batches that have ended

    def key(self, task: Task, response: Response, criterion: Criterion) -> str:
        """The endpoint judge's own key: a batched verdict is the same verdict."""
        return self.inner.key(task, response, criterion)

    def keys(self, task: Task, response: Response, criteria: Sequence[Criterion]) -> list[str]:
        """The keys of several criteria."""
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

    async def verdicts(
        self, task: Task, response: Response, criteria: Sequence[Criterion]
    ) -> list[Verdict]:
        """One verdict per criterion, in order, when the batch is done."""
        return await loop.hop(ask(self, task, response, criteria))

    def parts(self, q: Question) -> list[Question]:
        """The question as it is spread over calls."""
        return self.inner.parts(q)

    async def replies(self, q: Question) -> AsyncIterator[tuple[list[Verdict], Call | None]]:
        """What the batch's reply to this request gave: (verdicts, call)."""
        yield await self._reply(q)

    async def _reply(self, q: Question) -> tuple[list[Verdict], Call | None]:
        task, response, criteria = q.task, q.response, q.criteria
        mode = self.inner.mode
        body = {
            k: v
            for k, v in self.inner.body(task, response, criteria, mode).items()
            if k not in self.inner.caller.abilities.refused
        }
        custom_id, text = fingerprint(list(q.keys)), encode(body)
        run = session()
        ticket = await run.budget.take(self.inner._forecast(body, criteria)) if run.budget else None
        spent = Forecast()
        try:
            got = await self._send(custom_id, text)
            if isinstance(got, str):
                return q.unknowns("transport", judge=self.name, reason=got), None
            reply = redact(json.dumps(got))
            used = usage(got, len(text), len(reply))
            cost = (used.forecast(self.inner.caller.price).cost or 0.0) * self._rate
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

    async def _send(self, custom_id: str, text: str) -> Mapping[str, Any] | str:
        line = encode(
            {
                "custom_id": custom_id,
                "method": "POST",
                "url": "/v1/chat/completions",
                "body": Raw(text),
            }
        )
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

    # -- the provider's side ------------------------------------------------------------------------------------------------
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
            note = f"batches {self.inner.base_url} {self.inner.model}"
            known: dict[str, list[str]] = (ledger.note(note) if ledger is not None else None) or {}
            waiting = {b: ids for b, ids in known.items() if set(ids) & set(by_id)}
            under_way = {i for ids in waiting.values() for i in ids}
            for part in _parts([ps[0] for i, ps in by_id.items() if i not in under_way]):
                batch_id = await self._submit(part)
                waiting[batch_id] = known[batch_id] = [p.custom_id for p in part]
                if ledger:
                    ledger.note(note, known)
            try:
                await asyncio.gather(
                    *(self._await(b, by_id, len(ids)) for b, ids in waiting.items())
                )
            finally:  # a batch that has ended, well or not, is not waited for again
                if ledger:
                    ledger.note(note, {b: ids for b, ids in known.items() if b not in self._over})
            _finish(taken, "the batch ended without a reply to this request")
        except BaseException as e:
            for p in taken or self._pending:
                if not p.future.done():
                    p.future.set_exception(e) if not isinstance(
                        e, asyncio.CancelledError
                    ) else p.future.cancel()
            if isinstance(e, asyncio.CancelledError):
                raise

    def _api(self) -> Any:
        import openai

        if self._client is None:
            wire = self.inner.caller.wire
            base = wire.address.base
            self._client = wire.client or openai.AsyncOpenAI(
                base_url=base,
                api_key=key_for(base, wire.key_env),
                max_retries=3,
                http_client=openai.DefaultAsyncHttpxClient(
                    follow_redirects=False, trust_env=not wire.address.local
                ),
            )
        return self._client

    async def _submit(self, part: Sequence[_Pending]) -> str:
        import openai

        api = self._api()
        data = io.BytesIO("\n".join(p.line for p in part).encode())
        try:
            file = await api.files.create(file=("requests.jsonl", data), purpose="batch")
            batch = await api.batches.create(
                input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
            )
        except openai.APIError as e:
            raise self._down(e, "the batch could not be sent") from None
        log.info("batch %s sent with %d requests", batch.id, len(part))
        return batch.id

    async def _await(self, batch_id: str, by_id: Mapping[str, list[_Pending]], size: int) -> None:
        """Wait for a batch and hand its replies out; a bar shows what the provider has done."""
        import openai

        api, failing = self._api(), None
        with bars.bar(total=size, desc=f"batch {batch_id}", unit="request", delay=2.0) as shown:
            while True:
                try:
                    batch, failing = await api.batches.retrieve(batch_id), None
                except (
                    openai.APIConnectionError,
                    openai.InternalServerError,
                    openai.RateLimitError,
                ) as e:
                    failing = (
                        failing or time.monotonic()
                    )  # a day is long: a short absence of the network must not end it
                    if time.monotonic() - failing > self.inner.caller.patience:
                        raise self._down(e, f"the batch {batch_id} cannot be asked for") from None
                except openai.APIError as e:
                    if isinstance(e, openai.NotFoundError):
                        self._over.add(batch_id)
                    raise self._down(e, f"the batch {batch_id} cannot be asked for") from None
                else:
                    counts = getattr(batch, "request_counts", None)
                    shown.update(
                        max(0, (counts.completed + counts.failed if counts else 0) - shown.n)
                    )
                    if batch.status in ENDED:
                        break
                await asyncio.sleep(self.poll)
        for file_id in (batch.output_file_id, batch.error_file_id):
            if file_id:
                try:
                    _hand_out(redact((await api.files.content(file_id)).text), by_id)
                except openai.APIError as e:
                    raise self._down(
                        e, f"the replies of batch {batch_id} cannot be fetched"
                    ) from None
        self._over.add(batch_id)
        if batch.status == "failed" and not batch.output_file_id:
            raise JudgeDownError(
                f"the provider refused the batch {batch_id}: {str(batch.errors)[:200]}",
                where=self.inner.base_url,
                fix="judge without --batch, or look at the provider's batch page",
            )

    def _down(self, e: Any, what: str) -> JudgeDownError:
        """The kit's error for one of the client's; its text holds no key."""
        status = getattr(e, "status_code", None)
        why = f"HTTP {status}" if status else type(e).__name__
        fix = (
            "this server seems to have no batch API: judge without --batch"
            if status in (404, 405, 501)
            else "look at the key, the address and the network; then run the same command: batches that were sent are found again"
        )
        return JudgeDownError(
            f"{what} ({why}: {said(str(getattr(e, 'message', e)))})",
            where=self.inner.base_url,
            fix=fix,
        )


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


def _hand_out(text: str, by_id: Mapping[str, list[_Pending]]) -> None:
    """Each line of an output file to whoever asked, by custom_id; a broken line harms nobody else."""
    for line in text.split("\n"):
        try:
            row = json.loads(line)
            reply = row.get("response") or {}
            body = reply.get("body") or {}
            good = (
                reply.get("status_code") == 200
                and isinstance(body, Mapping)
                and body.get("choices")
            )
            why = f"the batch's reply was: {shown(str(row.get('error') or body))}"
            value = body if good else why
            pending = by_id.get(row["custom_id"], [])
        except (ValueError, AttributeError, KeyError, TypeError, RecursionError):
            continue
        for p in pending:
            if not p.future.done():
                p.future.set_result(value)


def _finish(pending: Sequence[_Pending], why: str) -> None:
    for p in pending:
        if not p.future.done():
            p.future.set_result(why)
