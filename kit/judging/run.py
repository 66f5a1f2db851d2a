"""`judge(tasks, responses, judge=...)`: verdicts on every answer and criterion.

The way of a question: `judge` -> `Run.all` -> `Run.ask` (ledger, then whoever asks the same now,
then the judge)
-> the judge's `verdicts` -> `Question.record` (stored before it is handed on).
"""

from __future__ import annotations

import asyncio
import html
import logging
import os
import socket
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from ..errors import BudgetError, DataError, JudgeDownError, KitError
from ..records import Criterion, Response, Task, Verdict, leaves, unknown
from ..system import progress as bars
from . import loop
from .factory import judge_of
from .ledger import Ledger
from .prices import Budget, Forecast

log = logging.getLogger(__name__)
PASSING = ("transport", "budget", "error")  # they say nothing about the answer: never stored
FREE: dict[str, Any] = {"cached": True, "cost": 0.0, "tokens_in": 0, "tokens_out": 0}
TOGETHER = 64  # answers that are looked up at once
DOWN = 8  # calls that fail one after the other
LEASE = 600.0  # seconds that a question may take where its judge names no limit
# failure -> (what it means, what to do)
CAUSES = {
    "transport": ("the judge could not be reached", "check the endpoint, then run again"),
    "parse": ("the reply was not in the requested form, twice", "retry=True, or another model"),
    "refusal": ("the model refused, or its provider filtered it", "use another model"),
    "abstain": ("the judge said that it cannot tell", "make the criterion decidable"),
    "contradiction": ("votes or verdicts disagree evenly", "add a judge to the panel"),
    "missing": ("the reply left this criterion out, twice", "retry=True, or how='one'"),
    "budget": ("the run was stopped before this question", "raise the budget and run again"),
    "error": ("the judge or the check raised an error", "read the reason and the log"),
}


@dataclass(frozen=True, kw_only=True)
class Spent:
    """What a run took: verdicts (all, from the ledger, by code), calls, tokens, US dollars,
    seconds.
    """

    verdicts: int = 0
    cached: int = 0
    by_code: int = 0
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0
    seconds: float = 0.0

    def __str__(self) -> str:
        return (
            f"{self.verdicts} verdicts in {self.seconds:.1f} s: {self.cached} from the ledger, "
            f"{self.by_code} by code, {self.calls} calls, "
            f"{self.tokens_in} + {self.tokens_out} tokens, ${self.cost:.4f}"
        )


class Verdicts(list[Verdict]):
    """A list of verdicts. `.spent` is what they took, `.table()` a DataFrame, `.causes()`
    explains unknown ones.
    """

    spent: Spent = Spent()

    def table(self, *, human: Any = None, tasks: Any = None) -> Any:
        """One row per verdict, beside people's labels and the tasks' columns (see kit.table)."""
        from ..records.tables import table

        return table(self, human=human, tasks=tasks)

    def causes(self) -> Any:
        """A DataFrame of what is unknown:

        cause, verdicts, meaning, what to do. Empty when all is known.
        """
        import pandas as pd

        counts = Counter(v.failure for v in self if not v.is_known)
        rows = [(cause, n, *CAUSES[str(cause)]) for cause, n in counts.most_common()]
        return pd.DataFrame(rows, columns=["cause", "verdicts", "meaning", "what to do"])

    def __repr__(self) -> str:
        lost = Counter(v.failure for v in self if not v.is_known)
        causes = ", ".join(f"{n} {cause}" for cause, n in lost.most_common())
        return f"{self.spent}; unknown: {causes or 'none'}"

    def _repr_html_(self) -> str:
        from ..records.tables import show

        frame = self[:20] and Verdicts(self[:20]).table()
        names = ("task", "response", "criterion", "status", "p", "failure", "reason")
        rows = show(frame, *names)._repr_html_() if len(self) else ""
        return f"{rows}<p>{html.escape(repr(self))}</p>"


def judge(
    tasks: Any,
    responses: Iterable[Response] | None = None,
    *,
    judge: Any = "code",
    ledger: Ledger | str | Path | None = None,
    budget: Budget | None = None,
    progress: bool = True,
    retry: bool = False,
) -> Verdicts:
    """Judge answers against the criteria of their tasks. Verdicts come in the order answers x
    criteria.

    tasks : a Task, a list of them, or a TaskSet. responses : the answers (default: those of
        the TaskSet).
    judge : "code" (checks only; other criteria stay unknown), "endpoint:MODEL", "local",
        "replay:NAME", a mapping
        with options, or a judge object; see `kit.judge_of`.
    ledger : a Ledger or its path. What it holds is not paid again. retry : ask stored
        unknown verdicts again.
    budget : caps that are checked before each call. BudgetError, JudgeDownError and
        MissingError stop the run;
        their `.verdicts` hold what was done, and the rest as unknown.
    Ctrl-C stops new calls and waits for those in flight. Works in scripts, notebooks and papermill.

    >>> task = Task(id="t", prompt="Say hello.", criteria=(Criterion(id="c", text="greets"),))
    >>> answers = [Response(task_id="t", id="r", text="Hello!")]
    >>> judge(task, answers, judge="code", progress=False)[0].failure
    'abstain'
    """
    run = Run(judge_of(judge), ledger=ledger, budget=budget, retry=retry, progress=progress)
    return loop.wait(run.all(pairs_of(tasks, responses)), run.stop)


async def ajudge(
    tasks: Any,
    responses: Iterable[Response] | None = None,
    *,
    judge: Any = "code",
    ledger: Ledger | str | Path | None = None,
    budget: Budget | None = None,
    progress: bool = False,
    retry: bool = False,
) -> Verdicts:
    """`judge` for asynchronous code, such as an async cell or a trainer's async reward.

    When it is cancelled, no new call starts; the calls in flight end, and the ledger keeps their
    verdicts.
    """
    run = Run(judge_of(judge), ledger=ledger, budget=budget, retry=retry, progress=progress)
    return await loop.hop(run.all(pairs_of(tasks, responses)), run.stop)


async def ajudge_pairs(
    pairs: Sequence[tuple[Task, Response]],
    *,
    judge: Any = "code",
    ledger: Ledger | str | Path | None = None,
    budget: Budget | None = None,
    retry: bool = False,
) -> Verdicts:
    """`ajudge` for (task, answer) pairs. A task may have other criteria in each pair."""
    run = Run(judge_of(judge), ledger=ledger, budget=budget, retry=retry)
    return await loop.hop(run.all(list(pairs)), run.stop)


def estimate(
    tasks: Any,
    responses: Iterable[Response] | None = None,
    *,
    judge: Any,
    ledger: Ledger | str | Path | None = None,
) -> Forecast:
    """Estimate calls, tokens and dollars of a run. Nothing is sent; stored verdicts cost nothing.

    `cost` is None where the price of the model is not known.

    >>> task = Task(id="t", prompt="Say hello.", criteria=(Criterion(id="c", text="greets"),))
    >>> answers = [Response(task_id="t", id="r", text="Hello!")]
    >>> estimate(task, answers, judge="endpoint:gpt-4o-mini").calls
    1
    """
    run, total = Run(judge_of(judge), ledger=ledger), Forecast()
    pairs = pairs_of(tasks, responses)
    run.bind(pairs)
    for task, response in pairs:
        criteria = [c for c in leaves(task.criteria) if not c.by_code]
        keys = run.keys(run.judge, task, response, criteria)
        stored = run.stored(keys)
        left = [c for c, key in zip(criteria, keys, strict=True) if key not in stored]
        total += Forecast(stored=len(criteria) - len(left))
        if left and hasattr(run.judge, "forecast"):
            total += run.judge.forecast(task, response, left)
    run.close()
    return total


def pairs_of(tasks: Any, responses: Iterable[Response] | None) -> list[tuple[Task, Response]]:
    """Each answer with its task.

    DataError for an unknown task, two answers with one id, or no answers.
    """
    if responses is None:
        responses = getattr(tasks, "responses", None)
    if not responses:
        raise DataError(
            "there are no answers to judge",
            where="judge(responses=...)",
            fix="give responses=, or join a file of answers: tasks.joined(kit.load(FILE))",
        )
    rows = [tasks] if isinstance(tasks, Task) else list(getattr(tasks, "tasks", tasks))
    by_id = {t.id: t for t in rows}
    texts: dict[tuple[str, str], str] = {}
    responses = [responses] if isinstance(responses, Response) else list(responses)
    for n, r in enumerate(responses, 1):
        if not isinstance(r, Response) or r.task_id not in by_id:
            what = f"there is no task {r.task_id!r}" if isinstance(r, Response) else f"{r!r:.60}"
            first = ", ".join(list(by_id)[:5])
            raise DataError(what, where=f"response {n}", fix=f"give Responses to tasks {first}")
        if texts.setdefault(r.ids, r.text) != r.text:
            raise DataError(f"two answers have the id {r.id!r}", where=f"task {r.task_id!r}")
    return [(by_id[r.task_id], r) for r in responses]


class Run:
    """One run: its judge, ledger and budget, what it spent, and why it stopped."""

    def __init__(
        self,
        judge: Any,
        *,
        ledger: Ledger | str | Path | None = None,
        budget: Budget | None = None,
        retry: bool = False,
        progress: bool = False,
    ):
        if not isinstance(budget, Budget | None):
            raise DataError("budget is no Budget", where="judge(budget=...)", fix="kit.Budget()")
        self.judge, self.budget, self.retry, self.progress = judge, budget, retry, progress
        self.opened = isinstance(ledger, str | Path)
        self.ledger = Ledger(ledger) if isinstance(ledger, str | Path) else ledger
        self.place = str(self.ledger.path.resolve()) if self.ledger else f"run {id(self)}"
        self.owner = f"{socket.gethostname()} {os.getpid()} {id(self)}"
        self.count: Counter[str] = Counter()
        self.cost = 0.0
        self.failures: Counter[str] = Counter()  # calls in a row that failed, by judge
        self.live: set[str] = set()  # judges that answered in this run
        self.fault: KitError | None = None  # why nothing more is asked

    def stop(self) -> None:
        """Ask nothing more: Ctrl-C, or the caller was cancelled."""
        self.fault = self.fault or BudgetError("the run was interrupted", fix="run it again")

    def close(self) -> None:
        """Close the ledger where this run opened it."""
        if self.opened and self.ledger:
            self.ledger.close()

    def bind(self, pairs: Sequence[tuple[Task, Response]]) -> None:
        """Tell a judge that looks at several answers at once which answers there are."""
        if hasattr(self.judge, "bind"):
            self.judge = self.judge.bind(pairs)

    async def all(self, pairs: Sequence[tuple[Task, Response]]) -> Verdicts:
        """Every pair: first code and ledger, then workers that ask the judge about the rest."""
        start = time.monotonic()
        self.bind(pairs)
        criteria = [leaves(task.criteria) for task, _ in pairs]
        results: list[dict[str, Verdict]] = [{} for _ in pairs]
        total = sum(map(len, criteria))
        bar = bars.bar(total=total, desc="judging", unit="verdict", disable=not self.progress)
        left = []
        for first in range(0, len(pairs), TOGETHER):
            left += self._look_up(
                pairs, criteria, results, range(len(pairs))[first : first + TOGETHER]
            )
            bar.update(sum(map(len, results[first : first + TOGETHER])))
            await asyncio.sleep(0)
        queue = iter(left)

        async def worker() -> None:
            for i, rest in queue:  # the workers share this iterator
                new = await self._safely(*pairs[i], rest)
                results[i] |= {c.id: v for c, v in zip(rest, new, strict=True)}
                bar.update(len(rest))

        workers = min(len(left), getattr(self.judge, "concurrency", 1))
        try:
            await asyncio.gather(*(worker() for _ in range(workers)))
        finally:
            bar.close()
            self.close()
        rows = zip(criteria, results, strict=True)
        verdicts = Verdicts(row[c.id] for cs, row in rows for c in cs)
        verdicts.spent = self._spent(verdicts, time.monotonic() - start)
        if (
            self.fault is None
            and self.count["lost"]
            and not self.live
            and not verdicts.spent.cached
        ):
            self.fault = JudgeDownError(
                f"no call was answered: {self.why}",
                where=f"judge {self.judge.name!r}",
                fix="check the base URL, the model's name and the key",
            )
        if self.fault is not None:
            self.fault.verdicts = verdicts  # type: ignore[attr-defined]
            raise self.fault
        return verdicts

    def _look_up(
        self, pairs: Any, criteria: Any, results: list[dict[str, Verdict]], part: Iterable[int]
    ) -> list[tuple[int, list[Criterion]]]:
        """Decide what code and ledger decide;

        (number of the pair, its criteria) of what is left.
        """
        rest, keys = {}, {}
        for i in part:
            results[i] |= {c.id: _by_code(*pairs[i], c) for c in criteria[i] if c.by_code}
            rest[i] = [c for c in criteria[i] if not c.by_code]
            keys[i] = self.keys(self.judge, *pairs[i], rest[i]) if rest[i] else []
        stored = self.stored([key for row in keys.values() for key in row])
        left = []
        for i, row in keys.items():
            for c, key in zip(rest[i], row, strict=False):
                if key in stored:
                    results[i][c.id] = _readdress(stored[key], *pairs[i], c, **FREE)
            if any(c.id not in results[i] for c in rest[i]):
                # All criteria go on, because a key may depend on the criteria beside its own.
                left.append((i, rest[i]))
        return left

    async def _safely(
        self, task: Task, response: Response, criteria: Sequence[Criterion]
    ) -> list[Verdict]:
        """Verdicts on one answer; unknown where the run stopped or the judge broke."""
        failure, reason = "budget", "the run stopped before this question"
        if self.fault is None:
            try:
                return await self.ask(self.judge, task, response, criteria)
            except KitError as e:
                self.fault, reason = self.fault or e, e.what
                if isinstance(e, JudgeDownError):
                    failure = "transport"
            except Exception as e:
                log.exception("judge %s raised an error", self.judge.name)
                failure, reason = "error", f"{type(e).__name__}: {e}"[:300]
        return lost(task, response, criteria, failure, judge=self.judge.name, reason=reason)

    # -- one question ----------------------------------------------------------
    def keys(
        self, judge: Any, task: Task, response: Response, criteria: Sequence[Criterion]
    ) -> list[str]:
        """The judge's keys; empty texts for a judge that has none: it is asked each time."""
        made = judge.keys(task, response, criteria) if hasattr(judge, "keys") else None
        return [""] * len(criteria) if made is None else made

    def stored(self, keys: Iterable[str]) -> dict[str, Verdict]:
        """Verdicts of the ledger by key, without the unknown ones in a retry."""
        rows = self.ledger.get(k for k in keys if k) if self.ledger else {}
        return {k: v for k, v in rows.items() if v.is_known or not self.retry}

    async def ask(
        self, judge: Any, task: Task, response: Response, criteria: Sequence[Criterion]
    ) -> list[Verdict]:
        """Verdicts of one judge on one answer, in the order of the criteria. Nothing is paid twice.

        The ledger comes first. Then whoever asks the same question now, in this process (a
        flight) or in
        another one (a lease), is waited for. Only then the judge is asked.
        """
        keys = self.keys(judge, task, response, criteria)
        question = Question(
            self, judge, {c.id: k for c, k in zip(criteria, keys, strict=True) if k}
        )
        if not all(keys):
            return await judge.verdicts(task, response, list(criteria), question)
        results = {k: msgspec.structs.replace(v, **FREE) for k, v in self.stored(keys).items()}
        while left := [k for k in dict.fromkeys(keys) if k not in results]:
            if flight := next((f for k in left if (f := loop.flights.get((self.place, k)))), None):
                await asyncio.wait([flight])
                for k in set(left) & set(flight.result()):
                    results[k] = msgspec.structs.replace(flight.result()[k], **FREE)
                continue
            flight = asyncio.get_running_loop().create_future()
            loop.flights |= {(self.place, k): flight for k in left}
            new: dict[str, Verdict] = {}
            try:
                new = await self._fly(
                    judge, task, response, dict(zip(keys, criteria, strict=True)), left, question
                )
            finally:
                for k in left:
                    del loop.flights[self.place, k]
                flight.set_result(new)
            results |= new
        return [
            _readdress(results[k], task, response, c) for k, c in zip(keys, criteria, strict=True)
        ]

    async def _fly(
        self,
        judge: Any,
        task: Task,
        response: Response,
        by_key: dict[str, Criterion],
        left: list[str],
        question: Question,
    ) -> dict[str, Verdict]:
        """Ask the judge, under a lease where there is a ledger."""
        if self.ledger is None:
            new = await judge.verdicts(task, response, [by_key[k] for k in left], question)
            return dict(zip(left, new, strict=True))
        limit = getattr(judge, "limit", LEASE)
        while not self.ledger.lease(left, self.owner, limit):
            await asyncio.sleep(0.2)
        try:
            # Another process may have answered between the look-up and the lease.
            stored = self.stored(left)
            results = {k: msgspec.structs.replace(v, **FREE) for k, v in stored.items()}
            rest = [k for k in left if k not in results]
            new = (
                await judge.verdicts(task, response, [by_key[k] for k in rest], question)
                if rest
                else []
            )
            return results | dict(zip(rest, new, strict=True))
        finally:
            self.ledger.release(left, self.owner)

    def _spent(self, verdicts: Sequence[Verdict], seconds: float) -> Spent:
        return Spent(
            verdicts=len(verdicts),
            cached=sum(v.cached for v in verdicts),
            by_code=sum(v.judge == "code" for v in verdicts),
            calls=self.count["calls"],
            tokens_in=self.count["tokens_in"],
            tokens_out=self.count["tokens_out"],
            cost=self.cost,
            seconds=seconds,
        )

    @property
    def why(self) -> str:
        """Why the last call was lost."""
        return next(reversed([k for k in self.count if k.startswith("why ")]), "why ?")[4:]


class Question:
    """What a judge receives as `run`:

    the budget before a call, the ledger after it, other judges.
    """

    def __init__(self, run: Run, judge: Any, keys: dict[str, str]):
        self.run, self.judge, self.keys = run, judge, keys

    async def before_call(self, judge: Any, most: float | None = 0.0) -> None:
        """Count a call that costs at most so many dollars (None:

        not known); raises where the run has stopped.
        """
        if self.run.fault is None and self.run.budget is not None:
            await self.run.budget.reserve(most)
        if self.run.fault is not None:
            raise self.run.fault
        self.run.count["calls"] += 1

    def after_call(self, judge: Any, most: float | None, call: dict[str, Any] | None) -> None:
        """Book what a call took. call : its row for the ledger, None where it was not answered."""
        run = self.run
        cost = call["cost"] if call else 0.0
        if run.budget is not None:
            run.budget.settle(most, cost)
        if call:
            run.live.add(judge.name)
            run.failures[judge.name] = 0
            run.cost += cost
            run.count["tokens_in"] += call["tokens_in"]
            run.count["tokens_out"] += call["tokens_out"]

    def lost(self, judge: Any, why: str, *, final: bool = False) -> None:
        """Count a call without an answer; JudgeDownError after many in a row.

        final : the endpoint refuses as such (key, model or URL), so the first one is enough.
        """
        run = self.run
        run.count["lost"] += 1
        run.count[f"why {why}"] += 1
        run.failures[judge.name] += 1
        refused = final and judge.name not in run.live
        if refused or run.failures[judge.name] >= DOWN:
            raise JudgeDownError(
                f"the judge does not answer: {why}",
                where=f"judge {judge.name!r}",
                fix="check the base URL, the model's name and the key; stored verdicts are not paid again",
            )

    async def record(
        self, verdicts: Sequence[Verdict], call: dict[str, Any] | None = None
    ) -> list[Verdict]:
        """Store a call and its verdicts, and return them with their keys.

        What passes is never stored.
        """
        keys = self.keys
        rows = [
            v if v.key else msgspec.structs.replace(v, key=keys.get(v.criterion_id))
            for v in verdicts
        ]
        if self.run.ledger is not None:
            lasting = [v for v in rows if v.failure not in PASSING and not v.meta.get("passing")]
            if lasting or call:
                self.run.ledger.put(lasting, call)
        return rows

    async def ask(
        self, judge: Any, task: Task, response: Response, criteria: Sequence[Criterion]
    ) -> list[Verdict]:
        """Ask another judge, through the same ledger and budget: for judges made of judges."""
        return await self.run.ask(judge, task, response, criteria)


def lost(
    task: Task, response: Response, criteria: Iterable[Criterion], failure: str, **more: Any
) -> list[Verdict]:
    """An unknown verdict for each criterion."""
    return [unknown(task.id, response.id, c.id, failure, **more) for c in criteria]


def _readdress(v: Verdict, task: Task, response: Response, c: Criterion, **more: Any) -> Verdict:
    """A verdict under the ids of whoever asks now."""
    ids = {"task_id": task.id, "response_id": response.id, "criterion_id": c.id}
    return msgspec.structs.replace(v, **ids, **more)


def _by_code(task: Task, response: Response, c: Criterion) -> Verdict:
    """The verdict of a check; unknown "error" where it raises."""
    from ..checks import check

    try:
        return check(task, response, c)
    except KitError:
        raise
    except Exception as e:
        log.exception("the check of criterion %s raised an error", c.id)
        reason = f"{type(e).__name__}: {e}"[:300]
        return unknown(task.id, response.id, c.id, "error", judge="code", reason=reason)
