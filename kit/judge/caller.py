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
import contextlib
import itertools
import logging
import math
import random
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import DataError, JudgeDownError
from .abilities import Abilities, Doubt
from .keys import plain, redact, said
from .limiter import Limiter
from .prices import FREE, Price, Usage, is_reasoning, price, tokens, usage
from .reading import unusable
from .records import Call, Forecast
from .session import session
from .templates import encode
from .wire import ANSWERED, SLOW, Reply, Wire, WireError, large, parsed

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


@dataclass(kw_only=True, slots=True)
class Outcome:
    """What came of a call, or of one attempt: the decoded reply and its Call, or why there is none.

    doubt : what the endpoint seems to refuse, where the question must be put in other words; hand
        it to the next call.
    Of an attempt: counts, wait, busy : how it counts, and when to try again; final : not at all.
    refusal : the text of a 400, 422 or 501; refused : the endpoint may refuse everybody so.
    spent : what it cost; None where nothing was paid. sent : requests that went out.
    """

    data: Mapping[str, Any] | None = None
    call: Call | None = None
    reason: str = ""
    doubt: Doubt | None = None
    raw: str = ""
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
        self._held: asyncio.Future[bool] | None = None  # for which the refused wait

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
        self._active += 1
        try:
            got = await self._tried(path, body, room, doubt or Doubt())
            self._lost += got.data is None
        finally:
            self._active -= 1
            self._ended = time.monotonic()
            self._look()
        if got.refused:
            await self._hold(got)
        return got

    async def _tried(self, path: str, body: Mapping[str, Any], room: int, doubt: Doubt) -> Outcome:
        """Attempts until there is an answer or nothing more to try."""
        asked = faults = busy = refits = 0
        started = time.monotonic()
        while True:
            asked += 1
            sent = self.abilities.without(body, doubt.dropped)
            got = await self._slot(path, sent, room, doubt, first=faults + busy > 0)
            if got.data is not None:
                if self.abilities.learn(doubt, f"{self.base_url}, model {self.model}"):
                    self._note()
                return got
            if got.refusal is not None and refits < TRIALS:
                refits += 1
                if doubt.next(got.refusal, sent, self.abilities):
                    if "response_format" in sent and "response_format" in doubt.dropped:
                        return Outcome(doubt=doubt)  # the wording asks for JSON: it must change
                    continue
            if got.final or got.refusal is not None:
                return got
            faults = faults + got.counts
            busy = busy + got.busy
            if faults >= self.tries:
                return Outcome(reason=f"{asked} attempts failed, the last with: {got.reason}")
            if busy > BUSY and time.monotonic() - started > self.patience:
                return Outcome(reason=f"told to wait {busy} times, the last with: {got.reason}")
            await session().pause(_pause(got, faults))

    async def _slot(
        self, path: str, body: Mapping[str, Any], room: int, doubt: Doubt, first: bool
    ) -> Outcome:
        """One attempt in a slot, its most cost set aside; what is paid is written down."""
        run = session()
        await self.limiter.acquire(first=first)
        try:
            run.going()
            payload = encode(body)
            most = Usage(tokens_in=tokens(len(payload)), tokens_out=room, estimated=True)
            ticket = await run.budget.take(most.forecast(self.price)) if run.budget else None
            spent = Forecast()
            run.flying += 1
            try:
                got = await self._attempt(path, payload, most)
                spent = got.spent.forecast(self.price) if got.spent else Forecast(calls=got.sent)
            finally:
                run.flying -= 1
                if ticket is not None:
                    run.budget.settle(ticket, spent)  # type: ignore[union-attr]
        finally:
            self.limiter.release()
        if got.spent is not None:
            got.call = self._record(got, got.spent, payload, doubt)
            if got.data is None:
                run.record(got.call)
        return got

    async def _attempt(self, path: str, payload: str, most: Usage) -> Outcome:
        """One attempt: what it gave, or what to do next. most : what it may cost."""
        started = time.monotonic()
        try:
            reply = await self.wire.post(path, payload.encode("utf-8", "replace"), self.timeout)
        except WireError as e:
            if e.kind == "timeout":
                self.limiter.told("late")
            spent = most if e.kind in ("timeout", "size") else None
            sent = int(e.kind != "unreached")
            final = e.kind == "size"
            return self._bad(Outcome(reason=str(e), counts=1, final=final, spent=spent, sent=sent))
        if reply.status not in ANSWERED:
            return self._no(reply)
        raw = reply.text
        try:
            data = await large(len(raw), parsed, raw)
            why, counts = unusable(data, path)
        except (ValueError, RecursionError) as e:
            why, counts = redact(f"HTTP 200 with a broken body ({e})")[:200], 2
        if why:
            return self._bad(Outcome(reason=why, counts=counts, spent=most, raw=raw[:SLOW]))
        seconds = time.monotonic() - started
        self.limiter.told("ok")
        self._bad_since, self._answered, self._lost = None, True, 0
        self._look()
        spent = usage(data, len(payload), len(raw), most.tokens_out)
        return Outcome(data=data, raw=raw, seconds=seconds, spent=spent)

    def _no(self, reply: Reply) -> Outcome:
        """What to do about any status but 200."""
        status, text, wait = reply.status, reply.text[:20_000], reply.retry_after
        why = f"HTTP {status}: {said(text)}"
        quota = "insufficient_quota" in text[:2000]
        if 300 <= status < 400:
            return Outcome(
                reason=f"HTTP {status}: a redirect, not followed",
                final=True,
                refused="give the address that it leads to as the base URL, if you trust it",
            )
        if status in REFUSALS or quota:
            got = Outcome(
                reason=why,
                final=True,
                refused=FIXES.get(402 if quota else status, "look at the base URL and the account"),
            )
            return self._bad(got) if self._answered else got
        if wait is not None and wait > self.patience:
            return Outcome(
                reason=f"{why}; it asks to wait {wait:.0f} s, longer than patience "
                f"({self.patience:g} s)",
                final=True,
                refused="run the same command again later",
            )
        if status == 429:
            self.limiter.told("limited")
            return self._bad(Outcome(reason=why, wait=1.0 if wait is None else wait, busy=True))
        if status in (400, 422, 501):
            return self._bad(Outcome(reason=why, refusal=text))
        if status < 500 and status not in (408, 409, 425):
            return self._bad(Outcome(reason=why, final=True))
        return self._bad(Outcome(reason=why, counts=1, wait=wait))

    def _bad(self, got: Outcome) -> Outcome:
        """Note a fault; JudgeDownError when nothing has gone well for longer than `patience`.

        The last call of a run alone does not end it: the endpoint may dislike just this text.
        """
        now = time.monotonic()
        self._bad_since = self._bad_since or now
        silent = now - self._bad_since
        if silent > self.patience:
            if not (self._answered and self._active == 1 and not self._lost):
                raise JudgeDownError(
                    f"no call has succeeded for {silent:.0f} s; the last said: {got.reason}",
                    where=f"{self.base_url}, model {self.model}",
                    fix="look at the server; then run the same command: the ledger continues",
                )
            got.final, got.refusal = True, None
            got.reason += f" (for {silent:.0f} s; patience is {self.patience:g} s)"
        return got

    # -- refusals: one text's affair, or the endpoint's -----------------------------------------
    async def _hold(self, got: Outcome) -> None:
        """Wait until somebody is answered; JudgeDownError when everybody is refused."""
        if self._answered:
            return
        self._held = self._held or asyncio.get_running_loop().create_future()
        self._look()
        if not await asyncio.shield(self._held):
            raise JudgeDownError(
                f"the endpoint refuses: {got.reason}",
                where=f"{self.base_url}, model {self.model}",
                fix=got.refused,
            )

    def _look(self) -> None:
        """Let those that were refused go on, or end the run when nobody else is being tried."""
        if self._answered:
            self._tell(True)
        elif self._held is not None and not self._active:
            asyncio.get_running_loop().call_later(GRACE, self._give_up)

    def _give_up(self) -> None:
        if not self._active and not self._answered:
            self._tell(False)

    def _tell(self, answered: bool) -> None:
        held, self._held = self._held, None
        if held is not None and not held.done():
            held.set_result(answered)

    # -- what the endpoint cannot do ------------------------------------------------------------
    def obeyed(self, ok: bool) -> None:
        """Whether a reply under a schema obeyed it; the first that does not is noted."""
        if self.abilities.enforced is None or (self.abilities.enforced and not ok):
            if not ok:
                log.warning(
                    "%s, model %s, answers 200 but does not enforce the schema; replies are read "
                    "and validated all the same",
                    self.base_url,
                    self.model,
                )
            self.abilities.enforced = ok
            self._note()

    def _note(self) -> None:
        run = session()
        if run.ledger is not None and not run.ledger.readonly:
            with contextlib.suppress(DataError):  # a full disk is told where it loses something
                run.ledger.note(f"abilities {self.place} {self.model}", self.abilities.note())

    def recall(self) -> None:
        """What an earlier run noted of this endpoint, once per ledger."""
        book = session().ledger
        if book is not None and id(book) not in self._read_notes:
            self._read_notes.add(id(book))
            old = book.note(f"abilities {self.place} {self.model}")
            self.abilities.recall(old if isinstance(old, Mapping) else {})

    # -- the bill -------------------------------------------------------------------------------
    def _record(self, got: Outcome, bill: Usage, payload: str, doubt: Doubt) -> Call:
        more = {
            "without": sorted({*self.abilities.refused, *doubt.dropped}),
            "estimated": bill.estimated,
            "why": got.reason,
            "characters": len(got.raw) if len(got.raw) > KEPT else 0,
        }
        known = {"price_known": self.price is not None}
        return Call(
            id=f"{time.time_ns():016x}{next(_COUNT) & 0xFFFF:04x}{_HERE}",
            judge=self.name,
            model=redact(plain((got.data or {}).get("model"))) or self.model,
            endpoint=self.base_url,
            request=redact(payload),
            reply=redact(got.raw[: KEPT + SLOW])[:KEPT],  # no key is halved
            status="lost" if got.data is None else "ok",
            tokens_in=bill.tokens_in,
            tokens_out=bill.tokens_out,
            tokens_cached=bill.cached,
            cost=bill.forecast(self.price).cost or 0.0,
            seconds=round(got.seconds, 4),
            created=time.time(),
            meta=known | {name: value for name, value in more.items() if value},
        )


def _pause(got: Outcome, faults: int) -> float:
    """Seconds to wait as the server says, a little later and not all at once; else longer after
    each fault."""
    if got.wait is not None:
        return got.wait + random.uniform(0, min(0.5 * got.wait, 5.0))
    short = random.uniform(0.05, 0.2) if got.counts > 1 else random.uniform(0.25, 0.75)
    return short * 2 ** max(faults - 1, 0)
