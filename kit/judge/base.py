"""What a judge is, and how one is asked: through the ledger, once per question, with every fault a verdict.

`ask` is the one way to a judge's verdicts. It looks the keys up in the ledger, merges questions that are already in flight,
asks only for the rest and stores each answer. The run (ledger, budget, what was spent) travels in a context variable, so that
a judge made of judges (panel, escalation) may call `ask` for its members and everything is cached and counted all the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import random
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ..errors import BudgetError
from ..records import Criterion, Response, Task, Verdict, unknown
from . import claims

if TYPE_CHECKING:
    from .budget import Budget
    from .ledger import Ledger

# Failures that say nothing of the answer and cost nothing: never stored as an answer, asked again by the next run.
PASSING = frozenset({"transport", "budget", "error"})
POLL = (0.1, 0.3)  # seconds between two looks at what another process is asking


@runtime_checkable
class Judge(Protocol):
    """Anything that gives verdicts.

    `verdicts` returns exactly one Verdict per criterion, in that order; a fault of the judge is an unknown verdict with its
    failure kind, never an exception (exceptions: programming errors, BudgetError, JudgeDownError). `key` is the fingerprint of
    everything that shapes a verdict except the ids of task and response; a judge without it is never cached.
    Optional: `keys(task, response, criteria) -> list[str]` (faster than key by key), `workers: int` (questions at once),
    `forecast(task, response, criteria) -> Forecast` (for estimates), `async close()`.
    """

    name: str

    async def verdicts(
        self, task: Task, response: Response, criteria: Sequence[Criterion]
    ) -> list[Verdict]:
        """One verdict per criterion, in order."""
        ...


@dataclass(frozen=True, kw_only=True)
class Call:
    """One paid request and its raw reply, kept so that the verdicts can be parsed again.

    request : what was asked, as JSON text (no key, no header); reply : the raw text of the reply; seconds : wall time of the last attempt.
    """

    id: str
    judge: str
    model: str
    endpoint: str
    request: str = "{}"
    reply: str = ""
    status: str = "ok"
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    cost: float = 0.0
    seconds: float = 0.0
    created: float = 0.0
    meta: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Session:
    """One run over responses: the ledger, the caps, and what was spent so far.

    retry : failure kinds whose stored verdicts are asked again ("parse", "missing", "refusal", "abstain", "contradiction").
    """

    ledger: Ledger | None = None
    budget: Budget | None = None
    retry: Collection[str] = ()
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0
    started: float = field(default_factory=time.monotonic)
    stored: set[str] = field(default_factory=set)
    fresh: dict[tuple[str, str, str], Verdict] = field(default_factory=dict)
    _unwritten: list[tuple[list[Verdict], Call | None]] = field(default_factory=list)
    _wanted: list[tuple[str, asyncio.Future[bool]]] = field(default_factory=list)
    _done: list[str] = field(default_factory=list)
    _written: asyncio.Future[None] | None = None

    def partial(
        self, task: Task, response: Response, criteria: Sequence[Criterion]
    ) -> dict[int, Verdict]:
        """What was answered in this session of a response that was not finished, by position in `criteria`."""
        found = {i: self.fresh.get((task.id, response.id, c.id)) for i, c in enumerate(criteria)}
        return {i: v for i, v in found.items() if v is not None}

    def lookup(self, keys: Sequence[str]) -> dict[str, Verdict]:
        """Stored verdicts by key, those to be asked again left out."""
        if self.ledger is None or not keys:
            return {}
        found = self.ledger.get_many(keys)
        return (
            {k: v for k, v in found.items() if v.failure not in self.retry} if self.retry else found
        )

    def record(self, call: Call | None, verdicts: Sequence[Verdict] = ()) -> None:
        """Store a call with its verdicts in one transaction; add what it cost. On disk after `await settled()` or `flush()`.

        What arrives in one turn of the event loop is written together: one commit for many replies, none of which is handed on
        before it is on disk.
        """
        if call is not None:
            self.calls += 1
            self.tokens_in += call.tokens_in
            self.tokens_out += call.tokens_out
            self.cost += call.cost
        for v in verdicts:
            if not v.cached and v.failure not in PASSING:
                self.fresh[v.task_id, v.response_id, v.criterion_id] = v
        if self.ledger is not None:
            keep = [
                v
                for v in verdicts
                if v.key and not v.cached and v.failure not in PASSING and v.key not in self.stored
            ]
            if keep or call is not None:
                self.stored.update(v.key for v in keep if v.key)
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
        try:
            self.flush()
            if wanted and self.ledger is not None:
                ours = claims.take(self.ledger, [k for k, f in wanted if not f.done()])
        except Exception as e:  # a full disk: whoever waits for it is told
            fault = e
        _settle(done, None, fault)
        for k, f in wanted:
            _settle(f, k in ours, fault)

    def flush(self) -> None:
        """Write what is not on disk yet, now."""
        batch, self._unwritten = self._unwritten, []
        done, self._done = self._done, []
        if (batch or done) and self.ledger is not None:
            self.ledger.put_many(batch, replace=bool(self.retry), done=done)

    async def claim(self, key: str) -> bool:
        """Say that this question is being asked here; False when another process is asking it."""
        if self.ledger is None or self.ledger.readonly:
            return True
        answer = asyncio.get_running_loop().create_future()
        self._wanted.append((key, answer))
        self._soon()
        return await answer

    def unclaim(self, key: str) -> None:
        """The question is answered, or given up."""
        if self.ledger is not None and not self.ledger.readonly:
            self._done.append(key)
            self._soon()

    async def settled(self) -> None:
        """Wait until everything recorded so far is on disk."""
        if self._written is not None:
            await asyncio.shield(self._written)


def _settle(future: asyncio.Future[Any] | None, value: Any, fault: Exception | None) -> None:
    if future is None or future.done():
        return
    if fault is None:
        future.set_result(value)
    else:
        future.set_exception(fault)
        future.exception()  # where nobody waits any more, that is no fault of its own


_SESSION: ContextVar[Session | None] = ContextVar("kit_judge_session", default=None)
_FLIGHT: dict[str, asyncio.Future[Verdict | None]] = {}


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


def keys_of(
    judge: Any, task: Task, response: Response, criteria: Sequence[Criterion]
) -> list[str] | None:
    """The ledger keys of these questions, or None for a judge that cannot be cached."""
    if hasattr(judge, "keys"):
        return judge.keys(task, response, criteria)
    if hasattr(judge, "key"):
        return [judge.key(task, response, c) for c in criteria]
    return None


def readdress(v: Verdict, task: Task, response: Response, criterion: Criterion) -> Verdict:
    """A stored or shared verdict as this run's own: new ids, `cached`, nothing paid now (`meta["paid"]` has the price)."""
    fields = v.__dict__.copy()
    fields["task_id"], fields["response_id"], fields["criterion_id"], fields["cached"] = (
        task.id,
        response.id,
        criterion.id,
        True,
    )
    if v.tokens_in or v.tokens_out or v.cost:
        paid = {"tokens_in": v.tokens_in, "tokens_out": v.tokens_out, "cost": v.cost}
        fields["meta"] = {**v.meta, "paid": paid}
        fields["tokens_in"] = fields["tokens_out"] = 0
        fields["cost"] = 0.0
    return rebuilt(fields)


def rebuilt(fields: dict[str, Any]) -> Verdict:
    """A Verdict from all its fields, which a Verdict has checked before: five times faster than checking again."""
    v = object.__new__(Verdict)
    object.__setattr__(v, "__dict__", fields)
    return v


def checked(
    got: Sequence[Verdict],
    judge: Any,
    task: Task,
    response: Response,
    criteria: Sequence[Criterion],
    keys: Sequence[str] | None,
) -> list[Verdict]:
    """One verdict per criterion in order, whatever a judge returned: by id; a missing one is unknown "missing"."""
    by_id: dict[str, Verdict] = {}
    twice: set[str] = set()
    for v in got:
        if v.criterion_id in by_id:
            twice.add(v.criterion_id)
        by_id[v.criterion_id] = v
    out = []
    for i, c in enumerate(criteria):
        v = by_id.get(c.id)
        if v is None or c.id in twice:
            v = unknown(
                task.id,
                response.id,
                c.id,
                "missing" if v is None else "contradiction",
                judge=getattr(judge, "name", ""),
            )
        if keys is not None and v.key != keys[i]:
            v = dataclasses.replace(v, key=keys[i])
        out.append(v)
    return out


async def ask(
    judge: Any, task: Task, response: Response, criteria: Sequence[Criterion]
) -> list[Verdict]:
    """Verdicts of `judge`, one per criterion in order: ledger first, questions in flight shared, the rest asked and stored."""
    run, keys = session(), keys_of(judge, task, response, criteria)
    if keys is None:
        return checked(
            await judge.verdicts(task, response, criteria), judge, task, response, criteria, None
        )
    out: dict[int, Verdict] = {}
    found = run.lookup(keys)
    for i, k in enumerate(keys):
        if k in found:
            out[i] = readdress(found[k], task, response, criteria[i])
    while len(out) < len(keys):
        await _round(judge, task, response, criteria, keys, out)
    return [out[i] for i in range(len(keys))]


async def _round(
    judge: Any,
    task: Task,
    response: Response,
    criteria: Sequence[Criterion],
    keys: Sequence[str],
    out: dict[int, Verdict],
) -> None:
    """Ask what nobody is asking, then wait for what others ask; whoever fails leaves its questions to the next."""
    loop = asyncio.get_running_loop()
    theirs: dict[int, asyncio.Future[Verdict | None]] = {}
    mine: list[int] = []
    for i, k in enumerate(keys):
        if i in out:
            continue
        flying = _FLIGHT.get(k)
        if flying is not None and flying.get_loop() is loop:
            theirs[i] = flying
        else:
            mine.append(i)
    if mine:
        futures = {i: loop.create_future() for i in mine}
        _FLIGHT.update({keys[i]: f for i, f in futures.items()})
        try:
            await _mine(judge, task, response, criteria, keys, mine, out)
        finally:
            for i, f in futures.items():
                if _FLIGHT.get(keys[i]) is f:
                    del _FLIGHT[keys[i]]
                if not f.done():
                    f.set_result(out.get(i))
    for i, f in theirs.items():
        v = await asyncio.shield(f)
        if v is not None:
            out[i] = readdress(v, task, response, criteria[i])


async def _mine(
    judge: Any,
    task: Task,
    response: Response,
    criteria: Sequence[Criterion],
    keys: Sequence[str],
    mine: list[int],
    out: dict[int, Verdict],
) -> None:
    """Ask these, unless another process on the same ledger is asking them: then its answers, when they are there."""
    run = session()
    try:
        claimed = await run.claim(keys[mine[0]])
    except BaseException:  # cancelled, and the claim may have been taken all the same
        run.unclaim(keys[mine[0]])
        raise
    try:
        if not claimed:
            await asyncio.sleep(random.uniform(*POLL))
        found = run.lookup(
            [keys[i] for i in mine]
        )  # what was answered elsewhere before the claim was ours
        out.update(
            (i, readdress(found[keys[i]], task, response, criteria[i]))
            for i in mine
            if keys[i] in found
        )
        left = [i for i in mine if i not in out]
        if claimed and left:
            part = [criteria[i] for i in left]
            got = checked(
                await judge.verdicts(task, response, part),
                judge,
                task,
                response,
                part,
                [keys[i] for i in left],
            )
            run.record(None, got)
            await run.settled()
            out.update(zip(left, got, strict=True))
    finally:
        if claimed:
            run.unclaim(keys[mine[0]])


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """What a question is expected to cost: requests, tokens, US dollars (None where the price is not known)."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = 0.0

    def __add__(self, other: Forecast) -> Forecast:
        cost = None if self.cost is None or other.cost is None else self.cost + other.cost
        return Forecast(
            calls=self.calls + other.calls,
            tokens_in=self.tokens_in + other.tokens_in,
            tokens_out=self.tokens_out + other.tokens_out,
            cost=cost,
        )


__all__ = [
    "PASSING",
    "BudgetError",
    "Call",
    "Forecast",
    "Judge",
    "Session",
    "ask",
    "checked",
    "keys_of",
    "readdress",
    "session",
    "using",
]
