"""Making one call succeed, or saying why it did not.

Slots, deadlines, retries, waiting, and the bill. A Caller belongs to one endpoint and model.
Retries are counted here and nowhere else. A 429 waits for its own Retry-After (its slot given back)
and is repeated as long as the endpoint answers anybody; any other fault is repeated `tries` times.

A refusal (a wrong key, an unknown model, a firewall that dislikes one text) is the call's own
affair once the endpoint has answered anybody. Until then it waits for what the others are told:
only when all are refused is the endpoint of no use, and the run ends with JudgeDownError.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import math
import random
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import JudgeDownError
from .abilities import Abilities, Doubt
from .keys import redact
from .limiter import Limiter
from .payload import LARGE, decoded, encode, large, plain, said, unusable
from .prices import FREE, Price, Usage, is_reasoning, price, tokens, usage
from .records import Call, Forecast
from .session import session
from .wire import ANSWERED, Reply, Wire, WireError

log = logging.getLogger(__name__)
# calls are numbered in time: neighbours in the ledger's index
_COUNT, _HERE = itertools.count(), secrets.token_hex(3)
KEPT = 262_144  # characters of a reply that are stored
GRACE = 0.25  # seconds in which somebody else may begin to ask
BUSY = 50  # times that one call is told 429, for longer than `patience`, until it gives up
TRIALS = 12  # parameters left out on trial in one call
REFUSALS = (401, 402, 403, 404, 405, 407, 410)
FIXES = {
    401: "look at the key: is the environment variable set, is it this server's?",
    402: "look at the account and its quota",
    403: "look at the key's rights, the account, and firewalls on the way",
    404: "look at the model's name and the base URL, which often ends in /v1; a server that speaks "
    "Anthropic's /v1/messages only needs a gateway, or the address of its OpenAI-compatible side",
    405: "look at the base URL; it often ends in /v1",
}


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of one call: the decoded reply and its Call record, or a failure with its reason.

    doubt : with failure "refit", what the endpoint seems to refuse; hand it to the next call.
    """

    data: Mapping[str, Any] | None = None
    call: Call | None = None
    failure: str | None = None
    reason: str | None = None
    doubt: Doubt | None = None


@dataclass
class _Trial:
    """Where one call stands."""

    doubt: Doubt
    faults: int = 0
    refits: int = 0
    busy: int = 0
    tried: bool = False
    last: str = "no attempt"
    started: float = field(default_factory=time.monotonic)


@dataclass(frozen=True, kw_only=True)
class _Step:
    """What one attempt gave: data, or a reason with what to do (wait, count it, give up).

    refusal : the text of a 400, 422 or 501; refused : the endpoint may refuse everybody so.
    spent : what the attempt cost; None where nothing was paid. sent : requests that went out.
    """

    data: Mapping[str, Any] | None = None
    raw: str = ""
    payload: str = ""
    why: str = ""
    counts: int = 0
    wait: float | None = None
    busy: bool = False
    final: bool = False
    refused: str | None = None
    refusal: str | None = None
    spent: Usage | None = None
    sent: int = 1
    seconds: float = 0.0


class Caller:
    """Calls one endpoint; see the module's text. `concurrency`: the most calls at once.

    None: 256, or 64 on this machine, found out from below.
    """

    def __init__(
        self,
        model: str,
        wire: Wire,
        *,
        name: str,
        concurrency: int | None = None,
        timeout: float = 120.0,
        tries: int = 5,
        patience: float = 180.0,
        prices: Price | None = None,
    ):
        self.model, self.name, self.wire = model, name, wire
        self.base_url = self.place = wire.address.shown  # place: by which the ledger knows it
        self.timeout, self.tries, self.patience = timeout, tries, patience
        local = wire.address.local
        self.price = prices or (FREE if local else price(model))
        start, most = (4, 64) if local else (256, 256)
        self.limiter = Limiter(concurrency or most, start=None if concurrency else start)
        self.abilities = Abilities()
        if is_reasoning(model):
            why = "reasoning model (models.json)"
            self.abilities.refused.update({"temperature": why, "top_p": why})
        self._bad_since: float | None = None
        self._read_notes: set[int] = set()
        self._answered = False  # has it ever answered?
        self._active = 0  # calls that are being tried
        self._lost = 0  # calls that ended without an answer since the last one that had one
        self._ended = -math.inf
        self._held: list[tuple[asyncio.Future[None], _Step]] = []

    # -- the call -------------------------------------------------------------------------------
    async def call(
        self, path: str, body: Mapping[str, Any], room: int, doubt: Doubt | None = None
    ) -> Outcome:
        """POST `body` without what is refused; its reply has `room` tokens at most.

        Raises BudgetError and JudgeDownError only.
        """
        self.recall()
        if not self._active and time.monotonic() - self._ended > self.patience:
            self._bad_since = None  # what was long ago says nothing of today
        trial = _Trial(doubt or Doubt())
        self._active += 1
        try:
            step = await self._tried(path, body, room, trial)
            self._lost += step.data is None
        finally:
            self._active -= 1
            self._ended = time.monotonic()
            self._look()
        if step.data is not None:
            return Outcome(data=step.data, call=self._record(step, step.payload, trial.doubt))
        if step.why == "refit":
            return Outcome(failure="refit", doubt=trial.doubt)
        if step.refused:
            await self._hold(step)
        return Outcome(failure="transport", reason=step.why)

    async def _tried(self, path: str, body: Mapping[str, Any], room: int, trial: _Trial) -> _Step:
        """Attempts until there is an answer or nothing more to try."""
        while trial.faults < self.tries:
            sent = self.abilities.without(body, trial.doubt.dropped)
            step = await self._slot(path, sent, room, trial)
            if step.data is not None:
                if self.abilities.learn(trial.doubt, f"{self.base_url}, model {self.model}"):
                    self._note()
                return step
            if step.refusal is not None and trial.refits < TRIALS:
                trial.refits += 1
                if trial.doubt.next(step.refusal, sent, self.abilities):
                    if "response_format" in sent and "response_format" in trial.doubt.dropped:
                        return _Step(why="refit")  # the wording must change too: it asked for JSON
                    continue
            if step.final or step.refusal is not None:
                return step
            await self._wait(step, trial)
            if trial.busy > BUSY and time.monotonic() - trial.started > self.patience:
                return _Step(why=f"told to wait {trial.busy} times, the last with: {step.why}")
        return _Step(why=f"{self.tries} attempts failed, the last with: {trial.last}")

    async def _wait(self, step: _Step, trial: _Trial) -> None:
        """Sleep as the server says, else longer after each fault."""
        trial.last, trial.tried = step.why, True
        trial.faults += step.counts
        trial.busy += step.busy
        if trial.faults < self.tries:
            if step.wait is not None:  # its own word; a little later, and not all at once
                await asyncio.sleep(step.wait + random.uniform(0, min(0.5 * step.wait, 5.0)))
            else:
                short = step.counts > 1
                base = random.uniform(0.05, 0.2) if short else random.uniform(0.25, 0.75)
                await asyncio.sleep(base * 2 ** max(trial.faults - 1, 0))

    async def _slot(self, path: str, sent: Mapping[str, Any], room: int, trial: _Trial) -> _Step:
        """One attempt in a slot, its most cost set aside; what is paid and lost is written down."""
        run = session()
        await self.limiter.acquire(first=trial.tried)
        try:
            payload = encode(sent)
            most = Usage(tokens_in=tokens(len(payload)), tokens_out=room, estimated=True)
            ticket = await run.budget.take(most.forecast(self.price)) if run.budget else None
            spent = Forecast()
            try:
                step = await self._once(path, payload, most)
                spent = Forecast(calls=step.sent)
                if step.spent:
                    spent = step.spent.forecast(self.price)
            finally:
                if ticket is not None:
                    run.budget.settle(ticket, spent)  # type: ignore[union-attr]
        finally:
            self.limiter.release()
        if step.data is None and step.spent is not None:
            run.record(self._record(step, payload, trial.doubt, status="lost"))
        return step

    async def _once(self, path: str, payload: str, most: Usage) -> _Step:
        """One attempt: what it gave, or what to do next. most : what it may cost."""
        started = time.monotonic()
        try:
            reply = await self.wire.post(path, payload.encode("utf-8", "replace"), self.timeout)
        except WireError as e:
            if e.kind == "timeout":
                self.limiter.late()
            spent = most if e.kind in ("timeout", "size") else None
            sent = int(e.kind != "unreached")
            step = _Step(why=str(e), counts=1, final=e.kind == "size", spent=spent, sent=sent)
            return self._bad(step)
        if reply.status in ANSWERED:
            return await self._good(reply.text, time.monotonic() - started, path, payload, most)
        return self._no(reply)

    def _no(self, reply: Reply) -> _Step:
        """What to do about any status but 200."""
        status, text, wait = reply.status, reply.text[:20_000], reply.retry_after
        why = f"HTTP {status}: {said(text)}"
        quota = "insufficient_quota" in text[:2000]
        if 300 <= status < 400:
            fix = "give the address that it leads to as the base URL, if you trust it"
            return _Step(why=f"HTTP {status}: a redirect, not followed", final=True, refused=fix)
        if status in REFUSALS or quota:
            fix = FIXES.get(402 if quota else status, "look at the base URL and the account")
            step = _Step(why=why, final=True, refused=fix)
            return self._bad(step) if self._answered else step
        if wait is not None and wait > self.patience:
            why = f"{why}; it asks to wait {wait:.0f} s, longer than patience ({self.patience:g} s)"
            return _Step(why=why, final=True, refused="run the same command again later")
        if status == 429:
            self.limiter.limited()
            return self._bad(_Step(why=why, wait=wait if wait is not None else 1.0, busy=True))
        if status in (400, 422, 501):
            return self._bad(_Step(why=why, refusal=text))
        if status < 500 and status not in (408, 409, 425):
            return self._bad(_Step(why=why, final=True))
        return self._bad(_Step(why=why, counts=1, wait=wait))

    async def _good(self, raw: str, seconds: float, path: str, payload: str, most: Usage) -> _Step:
        """A reply with status 200: the data, or why it is none."""
        try:
            data = await large(len(raw), decoded, raw)
        except (ValueError, RecursionError) as e:
            why, counts = f"HTTP 200 with a broken body ({e})"[:200], 2
        else:
            why, counts = unusable(data, path)
        if why:
            return self._bad(_Step(why=why, counts=counts, spent=most, raw=raw[:LARGE]))
        self.limiter.ok(seconds)
        self._bad_since, self._answered, self._lost = None, True, 0
        self._look()
        spent = usage(data, len(payload), len(raw), most.tokens_out)
        return _Step(data=data, raw=raw, payload=payload, seconds=seconds, spent=spent)

    def _bad(self, step: _Step) -> _Step:
        """Note a fault; JudgeDownError when nothing has gone well for longer than `patience`.

        The last call of a run alone does not end it: the endpoint may dislike just this text.
        """
        now = time.monotonic()
        self._bad_since = self._bad_since or now
        if now - self._bad_since > self.patience + (step.wait or 0.0):
            if self._answered and self._active == 1 and not self._lost:
                return replace(step, final=True, refusal=None)
            raise JudgeDownError(
                f"no call has succeeded for {now - self._bad_since:.0f} s; "
                f"the last said: {step.why}",
                where=f"{self.base_url}, model {self.model}",
                fix="look at the server; then run the same command: the ledger continues",
            )
        return step

    # -- refusals: one text's affair, or the endpoint's -----------------------------------------
    async def _hold(self, step: _Step) -> None:
        """Wait until somebody is answered; JudgeDownError when everybody is refused."""
        if self._answered:
            return
        future = asyncio.get_running_loop().create_future()
        self._held.append((future, step))
        self._look()
        try:
            await future
        except JudgeDownError:
            raise JudgeDownError(
                f"the endpoint refuses: {step.why}",
                where=f"{self.base_url}, model {self.model}",
                fix=step.refused,
            ) from None

    def _look(self) -> None:
        """Let those that were refused go on, or end the run when nobody else is being tried."""
        if self._held and self._answered:
            for future, _ in self._held:
                if not future.done():
                    future.set_result(None)
            self._held.clear()
        elif self._held and not self._active:
            asyncio.get_running_loop().call_later(GRACE, self._give_up)

    def _give_up(self) -> None:
        if self._active or self._answered:
            return
        held, self._held = self._held, []
        for future, _ in held:
            if not future.done():
                future.set_exception(JudgeDownError("all are refused"))
                future.exception()

    # -- what the endpoint cannot do ------------------------------------------------------------
    def obeyed(self, ok: bool) -> None:
        """Whether a reply under a schema obeyed it; the first that does not is noted."""
        if self.abilities.enforced is None or (self.abilities.enforced and not ok):
            if not ok:
                log.warning(
                    "%s, model %s, answers 200 but does not enforce the schema; "
                    "replies are read and validated all the same",
                    self.base_url,
                    self.model,
                )
            self.abilities.enforced = ok
            self._note()

    def _note(self) -> None:
        run = session()
        if run.ledger is not None and not run.ledger.readonly:
            run.ledger.note(f"abilities {self.place} {self.model}", self.abilities.note())

    def recall(self) -> None:
        """What an earlier run noted of this endpoint, once per ledger."""
        book = session().ledger
        if book is not None and id(book) not in self._read_notes:
            self._read_notes.add(id(book))
            self.abilities.recall(book.note(f"abilities {self.place} {self.model}") or {})

    # -- the bill -------------------------------------------------------------------------------
    def _record(self, step: _Step, payload: str, doubt: Doubt, status: str = "ok") -> Call:
        bill = step.spent or Usage()
        without = sorted({*self.abilities.refused, *doubt.dropped})
        meta: dict[str, Any] = {"price_known": self.price is not None}
        meta |= {"without": without} if without else {}
        meta |= {"estimated": True} if bill.estimated else {}
        meta |= {"why": step.why} if step.why else {}
        meta |= {"characters": len(step.raw)} if len(step.raw) > KEPT else {}
        return Call(
            id=f"{time.time_ns():016x}{next(_COUNT) & 0xFFFF:04x}{_HERE}",
            judge=self.name,
            model=plain((step.data or {}).get("model")) or self.model,
            endpoint=self.base_url,
            request=redact(payload),
            reply=step.raw[:KEPT],
            status=status,
            tokens_in=bill.tokens_in,
            tokens_out=bill.tokens_out,
            tokens_cached=bill.cached,
            cost=bill.forecast(self.price).cost or 0.0,
            seconds=round(step.seconds, 4),
            created=time.time(),
            meta=meta,
        )
