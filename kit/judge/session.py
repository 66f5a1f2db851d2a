"""A run of judging (Session): a ledger, caps, what it spent, and what it is asking just now.

It travels in a context variable, so that a judge made of judges (panel, escalation) may ask its
members and everything is cached and counted all the same. How it asks: asking.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..errors import BudgetError, DataError
from ..records import Criterion, Response, Task, Verdict
from . import claims, loop
from .records import PASSING, READER, Call, Forecast, Question

if TYPE_CHECKING:
    from .ledger import Ledger
    from .prices import Budget

Answer = tuple[set[str], dict[str, Verdict]]  # keys that are ours to ask, verdicts that are there


@dataclass
class Session:
    """One run over responses: the ledger, the caps, and what was spent so far.

    retry : failure kinds whose stored verdicts are asked again ("parse", "missing", "refusal",
        "abstain", "contradiction").
    flying : requests that are on their way. stopping : set where no more may go out.
    """

    ledger: Ledger | None = None
    budget: Budget | None = None
    retry: Collection[str] = ()
    spent: Forecast = field(default_factory=Forecast)
    started: float = field(default_factory=time.monotonic)
    fresh: dict[tuple[str, str, str], Verdict] | None = field(default_factory=dict)
    flying: int = 0
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    held: set[str] = field(default_factory=set)  # keys that this run has claimed
    _unwritten: list[tuple[list[Verdict], Call | None]] = field(default_factory=list)
    _wanted: list[tuple[Sequence[str], asyncio.Future[Answer]]] = field(default_factory=list)
    _done: list[str] = field(default_factory=list)
    _written: asyncio.Future[None] | None = None

    def ease(self) -> int:
        """Ask nothing more, from any thread; how many requests are on their way."""
        loop.get().call_soon_threadsafe(self.stopping.set)
        return self.flying

    def going(self) -> None:
        """BudgetError where the run is being stopped: nothing more is asked."""
        if self.stopping.is_set():
            raise BudgetError("the run was stopped")

    async def pause(self, seconds: float) -> None:
        """Wait before a request is tried again; BudgetError when the run is stopped meanwhile."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.stopping.wait(), seconds)
        self.going()

    def partial(
        self, task: Task, response: Response, criteria: Sequence[Criterion]
    ) -> dict[str, Verdict]:
        """What was answered in this run of a response that was not finished, by criterion."""
        found = {c.id: (self.fresh or {}).get((task.id, response.id, c.id)) for c in criteria}
        return {i: v for i, v in found.items() if v is not None}

    def lookup(self, keys: Sequence[str]) -> dict[str, Verdict]:
        """Stored verdicts by key; see `known`."""
        return self.ledger.get_many(keys) if self.ledger is not None and keys else {}

    def known(self, q: Question, found: Mapping[str, Verdict]) -> dict[int, Verdict]:
        """What was found of a question, by position, as its own verdicts.

        A verdict that an earlier reader took from a reply is read again, at no cost; one that
        cannot be (a level of a yes-or-no criterion, an old panel's, one that no run stores) is
        forgotten, and asked again, as are those of a kind in `retry`.
        """
        out, mended, gone = {}, [], []
        for i, k in enumerate(q.keys):
            v = found.get(k)
            c = q.criteria[i]
            if v is None:
                continue
            if v.meta.get("reader") != READER and "mode" in v.meta:
                from . import reading  # an old ledger is rare

                call = None if self.ledger is None else self.ledger.call(str(v.meta.get("call")))
                v = reading.again(v, call, c, q.shown(c))
                mended.append(v)
            if not _fits(v, c):
                gone.append(k)
            elif v.failure not in self.retry:
                out[i] = q.again(i, v)
        if (mended or gone) and self.ledger is not None and not self.ledger.readonly:
            self.ledger.correct(mended, gone)
        return out

    def record(self, call: Call | None, verdicts: Sequence[Verdict] = ()) -> None:
        """Store a call with its verdicts in one transaction; add what it cost.

        On disk after `await settled()` or `flush()`. What arrives in one turn of the event loop is
        written together: one commit for many replies, none handed on before it is on disk.
        """
        if call is not None:
            self.spent += Forecast(
                calls=1, tokens_in=call.tokens_in, tokens_out=call.tokens_out, cost=call.cost
            )
        new = [v for v in verdicts if not v.cached and v.failure not in PASSING]
        if self.fresh is not None:
            self.fresh.update({v.ids: v for v in new})
        keep = [v for v in new if v.key and not v.meta.get("passing")]
        writable = self.ledger is not None and not self.ledger.readonly
        if writable and (keep or call is not None):
            self._unwritten.append((keep, call))
            self._soon()

    def _soon(self) -> None:
        """Write at the end of this turn of the loop; at once where no loop runs."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return self.flush()
        if self._written is None:
            self._written = loop.create_future()
            loop.call_soon(self._turn)
        return None

    def _turn(self) -> None:
        done, self._written = self._written, None
        wanted, self._wanted = self._wanted, []
        fault: Exception | None = None
        ours: set[str] = set()
        there: dict[str, Verdict] = {}
        keys = [k for keys, f in wanted if not f.done() for k in keys]
        before = self._unwritten, self._done, set(self.held)
        both = bool(keys) and bool(self._unwritten or self._done)
        try:  # one commit for what is stored and what is claimed
            with self.ledger.transaction() if both and self.ledger else contextlib.nullcontext():
                self.flush()
                if keys and self.ledger is not None:
                    ours, there = self.ledger.claim(keys, again=self.retry)
                    self.held |= ours
        except Exception as e:  # a full disk: whoever waits for it is told
            fault = e
            self._unwritten, self._done, self.held = before  # what was rolled back
        _settle(done, None, fault)
        for keys, f in wanted:
            mine = {k for k in keys if k in ours}
            _settle(f, (mine, {k: there[k] for k in keys if k in there}), fault)

    def flush(self) -> None:
        """Write what is not on disk yet, now."""
        batch, done = self._unwritten, self._done
        if (batch or done) and self.ledger is not None:
            self.ledger.put_many(batch, replace=bool(self.retry), done=done)
            self.held.difference_update(v.key for verdicts, _ in batch for v in verdicts)
        self._unwritten, self._done = [], []  # on a full disk they stay for the next time

    def close(self) -> None:
        """Write what is not on disk yet and give back every claim: the run is over.

        Also those of processes that were killed.
        """
        self._done += self.held
        self.held.clear()
        try:
            self.flush()
        except DataError as e:
            lost = [call for _, call in self._unwritten if call is not None]
            cost = math.fsum(call.cost for call in lost)
            raise DataError(
                e.what
                + f"; {len(lost)} calls that were paid (${cost:.4f}) are not in it" * bool(lost),
                where=e.where,
                fix=e.fix,
            ) from None
        if self.ledger is not None and not self.ledger.readonly:
            self.ledger.bury()

    async def claim(self, keys: Sequence[str]) -> Answer:
        """Say that these are being asked here: (those that are ours, verdicts that are there).

        What is in neither is being asked by another process at this moment.
        """
        if self.ledger is None or self.ledger.readonly or not keys:
            return set(keys), {}
        answer = asyncio.get_running_loop().create_future()
        self._wanted.append((keys, answer))
        self._soon()
        return await answer

    def unclaim(self, keys: Collection[str]) -> None:
        """These are answered, or given up."""
        left = self.held.intersection(keys)  # a stored verdict has ended its claim
        if left:
            self.held -= left
            self._done += left
            self._soon()

    async def settled(self) -> None:
        """Wait until everything recorded so far is on disk."""
        if self._written is not None:
            await asyncio.shield(self._written)

    @contextlib.contextmanager
    def beating(self) -> Iterator[None]:
        """Renew this run's claims meanwhile: a queue may be longer than a lease."""
        loop = asyncio.get_running_loop()

        def beat() -> None:
            nonlocal timer
            timer = loop.call_later(claims.BEAT, beat)
            if self.held and self.ledger is not None:
                with contextlib.suppress(Exception):  # a full disk is told where it loses something
                    self.ledger.renew(self.held)

        timer = loop.call_later(claims.BEAT, beat)
        try:
            yield
        finally:
            timer.cancel()


def _fits(v: Verdict, c: Criterion) -> bool:
    """True for a verdict that this criterion can have, made as it is made today."""
    level = v.status != "unknown" and (v.status == "level") == (c.scale == "binary")
    made = "members" in v.meta or "escalated" in v.meta  # its parts were read by an earlier reader
    old = made and v.meta.get("reader") != READER
    return not (level or old or v.failure in PASSING)


def _settle(future: asyncio.Future[Any] | None, value: Any, fault: Exception | None) -> None:
    if future is None or future.done():
        return
    if fault is None:
        future.set_result(value)
    else:
        future.set_exception(fault)
        future.exception()  # where nobody waits any more, that is no fault of its own


_SESSION: ContextVar[Session | None] = ContextVar("kit_judge_session", default=None)


def session() -> Session:
    """The run that the calling judge works for; an empty one outside of `judge()`."""
    return _SESSION.get() or Session()


@contextlib.contextmanager
def using(run: Session) -> Iterator[Session]:
    """Make `run` the session of everything inside."""
    token = _SESSION.set(run)
    try:
        yield run
    finally:
        _SESSION.reset(token)
