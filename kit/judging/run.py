"""`judge(tasks, responses, judge=...)`: verdicts on every answer and criterion.

The way of a question: `judge` -> `Run.all` (code and ledger first) -> `Run.ask` (whoever asks
the same now, then the
judge) -> the judge's `verdicts` -> `Question.record` (on disk before it is handed on).
"""

from __future__ import annotations

import asyncio
import html
import logging
import os
import socket
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ..errors import BudgetError, DataError, JudgeDownError, KitError
from ..records import Criterion, Response, Task, Verdict, leaves, unknown
from ..system import progress as bars
from . import keys, loop
from .factory import judge_of
from .ledger import Ledger
from .prices import Budget, Forecast

log = logging.getLogger(__name__)
PASSING = ("transport", "budget", "error")  # never stored
FREE: dict[str, Any] = {"cached": True, "cost": 0.0, "tokens_in": 0, "tokens_out": 0}
TOGETHER = 64  # answers that are looked up at once
DOWN = 8  # calls in a row that fail
# failure -> (what it means, what to do)
CAUSES = {
    "transport": (
        "the judge could not be reached",
        "check the endpoint, then run again",
    ),
    "parse": (
        "the reply was not in the requested form, twice",
        "retry=True, or another model",
    ),
    "refusal": ("the model refused, or its provider filtered it", "use another model"),
    "abstain": ("the judge said that it cannot tell", "make the criterion decidable"),
    "contradiction": ("votes or verdicts disagree evenly", "add a judge to the panel"),
    "missing": ("the reply left this criterion out, twice", "retry=True, or how='one'"),
    "budget": (
        "the run was stopped before this question",
        "raise the budget and run again",
    ),
    "error": ("the judge or the check raised an error", "read the reason and the log"),
}


class Spent(msgspec.Struct, kw_only=True):
    """What a run took: calls, tokens, US dollars, seconds. cached : verdicts that cost nothing."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0
    seconds: float = 0.0
    cached: int = 0

    def __str__(self) -> str:
        tokens = f"{self.tokens_in} + {self.tokens_out} tokens"
        return f"{self.calls} calls, {tokens}, ${self.cost:.4f}, {self.seconds:.1f} s, {self.cached} cached"


class Verdicts(list[Verdict]):
    """A list of verdicts.

    `.spent` is what they took, `.table()` a DataFrame, `.causes()` explains unknown ones.
    """

    spent = Spent()

    def table(self, *, human: Any = None, tasks: Any = None) -> Any:
        """One row per verdict, beside people's labels and the tasks' columns (see kit.table)."""
        from ..records.tables import table

        return table(self, human=human, tasks=tasks)

    def causes(self) -> Any:
        """A DataFrame of what is unknown: cause, verdicts, meaning, what to do."""
        import pandas as pd

        counts = Counter(str(v.failure) for v in self if not v.is_known)
        rows = [(cause, n, *CAUSES[cause]) for cause, n in counts.most_common()]
        return pd.DataFrame(
            rows, columns=["cause", "verdicts", "meaning", "what to do"]
        )

    def __repr__(self) -> str:
        counts = Counter(v.failure for v in self if not v.is_known)
        unknown = (
            ", ".join(f"{n} {cause}" for cause, n in counts.most_common()) or "none"
        )
        return f"{len(self)} verdicts ({self.spent}); unknown: {unknown}"

    def _repr_html_(self) -> str:
        columns = ["task", "response", "criterion", "status", "p", "failure", "reason"]
        return f"{self.table()[columns].head(20).to_html()}<p>{html.escape(repr(self))}</p>"


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
        "replay:NAME", a
        mapping with options, or a judge object; see `kit.judge_of`.
    ledger : a Ledger or its path. What it holds is not paid again. retry : ask stored
        unknown verdicts again.
    budget : caps that are checked before each call. BudgetError, JudgeDownError and
        MissingError stop the
        run; their `.verdicts` hold what was done, and the rest as unknown.
    Ctrl-C stops new calls and waits for those in flight. Works in scripts, notebooks and papermill.

    >>> task = Task(id="t", prompt="Say hello.", criteria=(Criterion(id="c", text="greets"),))
    >>> answers = [Response(task_id="t", id="r", text="Hello!")]
    >>> judge(task, answers, judge="code", progress=False)[0].failure
    'abstain'
    """
    pairs = pairs_of(tasks, responses)
    run = Run(judge_of(judge), ledger, budget, retry=retry, progress=progress)
    return loop.wait(run.all(pairs), run.stop)


async def ajudge(
    tasks: Any, responses: Iterable[Response] | None = None, **options: Any
) -> Verdicts:
    """`judge` for asynchronous code, such as an async cell or a trainer's async reward.

    options : judge, ledger, budget, progress, retry, as of `judge`. When it is cancelled, no
        new call starts;
    the calls in flight end, and the ledger keeps their verdicts.
    """
    return await ajudge_pairs(pairs_of(tasks, responses), **options)


async def ajudge_pairs(
    pairs: Sequence[tuple[Task, Response]],
    *,
    judge: Any = "code",
    ledger: Ledger | str | Path | None = None,
    budget: Budget | None = None,
    progress: bool = False,
    retry: bool = False,
) -> Verdicts:
    """`ajudge` for (task, answer) pairs. A task may have other criteria in each pair."""
    run = Run(judge_of(judge), ledger, budget, retry=retry, progress=progress)
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
    pairs = pairs_of(tasks, responses)
    run, total = Run(judge_of(judge), ledger), Forecast()
    run.bind(pairs)
    for task, response in pairs:
        criteria = leaves(task.criteria)
        [results] = run.look_up([(task, response, criteria)])
        total += Forecast(stored=sum(v.cached for v in results.values()))
        left = [c for c in criteria if c.id not in results]
        if left and hasattr(run.judge, "forecast"):
            total += run.judge.forecast(task, response, left)
    run.close()
    return total


def complete(
    judge: Any, messages: str | Sequence[Mapping[str, str]], **options: Any
) -> str:
    """The text that a judge's model writes to `messages`. See `acomplete`."""
    return loop.wait(acomplete(judge, messages, **options))


async def acomplete(
    judge: Any,
    messages: str | Sequence[Mapping[str, str]],
    *,
    schema: Mapping[str, Any] | None = None,
    ledger: Ledger | str | Path | None = None,
    budget: Budget | None = None,
) -> str:
    """The text that a judge's model writes, through the judge's client; a stored reply is not
    paid again.

    judge : a judge with a model (an endpoint, a server), by name, mapping or object; of a
        panel the first member.
    messages : a text, or chat messages with role and content. schema : a JSON schema of the reply.
    JudgeDownError where there is no usable reply.
    """
    run = Run(judge_of(judge), ledger, budget)
    chat = (
        [{"role": "user", "content": messages}]
        if isinstance(messages, str)
        else list(messages)
    )
    return await loop.hop(run.complete(chat, schema), run.stop)


def pairs_of(tasks: Any, responses: Any = None) -> list[tuple[Task, Response]]:
    """Each answer with its task.

    DataError for an unknown task, two answers with one id, or no answers.
    """
    if responses is None:
        responses = getattr(tasks, "responses", ())
    responses = [responses] if isinstance(responses, Response) else list(responses)
    rows = [tasks] if isinstance(tasks, Task) else list(getattr(tasks, "tasks", tasks))
    by_id = {t.id: t for t in rows}
    texts: dict[Any, str] = {}
    if not responses:
        fix = "give responses=, or join a file of answers: tasks.joined(kit.load(FILE))"
        raise DataError(
            "there are no answers to judge", where="judge(responses=...)", fix=fix
        )
    for n, r in enumerate(responses, 1):
        wrong = (
            ""
            if getattr(r, "task_id", None) in by_id
            else f"there is no task of {r!r:.60}"
        )
        if not wrong and texts.setdefault(r.ids, r.text) != r.text:
            wrong = f"two answers have the id {r.id!r}"
        if wrong:
            fix = f"give Responses with own ids, to the tasks {', '.join([*by_id][:5])}"
            raise DataError(wrong, where=f"answer {n}", fix=fix)
    return [(by_id[r.task_id], r) for r in responses]


class Run:
    """One run: its judge, ledger and budget, what it spent, and why it stopped."""

    def __init__(
        self,
        judge: Any,
        ledger: Ledger | str | Path | None = None,
        budget: Budget | None = None,
        *,
        retry: bool = False,
        progress: bool = False,
    ):
        self.judge, self.budget, self.retry, self.progress = (
            judge,
            budget,
            retry,
            progress,
        )
        opens = isinstance(ledger, str | Path)
        self.ledger = Ledger(ledger) if opens else ledger
        self.close = self.ledger.close if opens else lambda: None
        self.place = str(self.ledger.path) if self.ledger else f"run {id(self)}"
        self.owner = f"{socket.gethostname()} {os.getpid()} {id(self)}"
        self.spent, self.start = Spent(), time.monotonic()
        self.failures: Counter[str] = Counter()  # calls in a row that failed, by judge
        self.live: set[str] = set()  # judges that answered in this run
        self.why = ""  # the last call that failed
        self.fault: KitError | None = None  # why nothing more is asked

    def stop(self) -> None:
        """Ask nothing more: Ctrl-C, or the caller was cancelled."""
        self.fault = self.fault or BudgetError(
            "the run was interrupted", fix="run it again"
        )

    def bind(self, pairs: Sequence[tuple[Task, Response]]) -> None:
        """Tell a judge that compares answers which there are."""
        self.judge = (
            self.judge.bind(pairs) if hasattr(self.judge, "bind") else self.judge
        )

    async def all(self, pairs: Sequence[tuple[Task, Response]]) -> Verdicts:
        """Every pair: first code and ledger, then workers that ask the judge about the rest."""
        self.bind(pairs)
        criteria = [leaves(task.criteria) for task, _ in pairs]
        results: list[dict[str, Verdict]] = [{} for _ in pairs]
        total = sum(map(len, criteria))
        bar = bars.bar(
            total=total, desc="judging", unit="verdict", disable=not self.progress
        )
        left: list[int] = []
        # Cached verdicts are looked up in blocks: one query a block, and the loop stays free between.
        for first in range(0, len(pairs), TOGETHER):
            part = range(len(pairs))[first : first + TOGETHER]
            results[first : first + TOGETHER] = self.look_up(
                [(*pairs[i], criteria[i]) for i in part]
            )
            left += [i for i in part if len(results[i]) < len(criteria[i])]
            bar.update(sum(len(results[i]) for i in part))
            await asyncio.sleep(0)
        queue = iter(left)

        async def worker() -> None:
            for i in queue:  # the workers share this iterator
                # All criteria go on, because a key may depend on the criteria beside its own.
                rest = [c for c in criteria[i] if not c.by_code]
                new = await self._safely(*pairs[i], rest)
                bar.update(len(criteria[i]) - len(results[i]))
                results[i] |= {c.id: v for c, v in zip(rest, new, strict=True)}

        workers = min(len(left), getattr(self.judge, "concurrency", 1))
        try:
            await asyncio.gather(*(worker() for _ in range(workers)))
        finally:
            bar.close()
            self.close()
        rows = zip(criteria, results, strict=True)
        verdicts = Verdicts(row[c.id] for cs, row in rows for c in cs)
        self.spent.seconds = time.monotonic() - self.start
        self.spent.cached = sum(v.cached for v in verdicts)
        verdicts.spent = self.spent
        # A run in which no call was answered is an outage, however few calls it had.
        if self.why and not self.live and not self.spent.cached:
            self.fault = self.fault or self.down(self.judge.name)
        if self.fault is not None:
            self.fault.verdicts = verdicts  # type: ignore[attr-defined]
            raise self.fault
        return verdicts

    def look_up(
        self, rows: Sequence[tuple[Task, Response, Any]]
    ) -> list[dict[str, Verdict]]:
        """What code and ledger decide of some answers, by criterion id."""
        from ..checks import check

        out, questions = [], []
        for task, response, criteria in rows:
            out.append({c.id: check(task, response, c) for c in criteria if c.by_code})
            rest = [c for c in criteria if not c.by_code]
            places = self.keys(self.judge, task, response, rest) if rest else []
            questions.append(list(zip(rest, places, strict=True)))
        stored = self.stored(key for question in questions for _, key in question)
        for (task, response, _), question, results in zip(
            rows, questions, out, strict=True
        ):
            for c, key in question:
                if key in stored:
                    results[c.id] = _readdress(stored[key], task, response, c, **FREE)
        return out

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
                failure = "transport" if isinstance(e, JudgeDownError) else failure
            except Exception as e:
                log.exception("judge %s raised an error", self.judge.name)
                failure, reason = "error", f"{type(e).__name__}: {e}"[:300]
        return lost(
            task, response, criteria, failure, judge=self.judge.name, reason=reason
        )

    # -- one question ----------------------------------------------------------
    def keys(
        self, judge: Any, task: Task, response: Response, criteria: Sequence[Criterion]
    ) -> list[str]:
        """The judge's keys; empty texts for a judge without: it is asked each time."""
        made = judge.keys(task, response, criteria) if hasattr(judge, "keys") else None
        return [""] * len(criteria) if made is None else made

    def stored(self, places: Iterable[str]) -> dict[str, Verdict]:
        """Verdicts of the ledger by key, without the unknown ones in a retry."""
        rows = self.ledger.get(key for key in places if key) if self.ledger else {}
        return {key: v for key, v in rows.items() if v.is_known or not self.retry}

    async def ask(
        self, judge: Any, task: Task, response: Response, criteria: Sequence[Criterion]
    ) -> list[Verdict]:
        """Verdicts of one judge on one answer, in the order of the criteria. Nothing is paid twice.

        Whoever asks the same question now, in this process (a flight) or in another (a lease),
        is waited for.
        """
        places = self.keys(judge, task, response, criteria)
        question = Question(
            self, judge, {c.id: k for c, k in zip(criteria, places, strict=True)}
        )
        # A judge without keys (code, a replay, a user's own) costs nothing or is its owner's affair.
        if not all(places):
            return await judge.verdicts(task, response, list(criteria), question)
        by_key = dict(zip(places, criteria, strict=True))
        results = _free(self.stored(places))
        while left := [key for key in by_key if key not in results]:
            # Flights end with an empty result when their asker fails: then the loop asks itself.
            flights = [f for key in left if (f := loop.flights.get((self.place, key)))]
            if flights:
                await asyncio.wait(flights[:1])
                new = _free(flights[0].result())
                results |= {key: v for key, v in new.items() if key in left}
                continue
            flight = asyncio.get_running_loop().create_future()
            loop.flights |= {(self.place, key): flight for key in left}
            new = {}
            try:
                new = await self._fly(
                    judge, task, response, {k: by_key[k] for k in left}, question
                )
            finally:
                for key in left:
                    del loop.flights[self.place, key]
                flight.set_result(new)
            results |= new
        return [
            _readdress(results[key], task, response, c)
            for c, key in zip(criteria, places, strict=True)
        ]

    async def _fly(
        self,
        judge: Any,
        task: Task,
        response: Response,
        left: dict[str, Criterion],
        question: Any,
    ) -> dict[str, Verdict]:
        """Ask the judge, under a lease where there is a ledger."""
        # The lease outlives the slowest call; a killed owner is noticed earlier (ledger._alive).
        limit = getattr(judge, "limit", 600.0)
        while self.ledger and not self.ledger.lease([*left], self.owner, limit):
            await asyncio.sleep(0.2)
        results: dict[str, Verdict] = {}
        try:
            # Another process may have answered between the look-up and the lease.
            results = _free(self.stored(left))
            todo = {key: c for key, c in left.items() if key not in results}
            if todo:
                new = await judge.verdicts(task, response, [*todo.values()], question)
                results |= dict(zip(todo, new, strict=True))
            return results
        finally:
            # What was stored has no lease any more.
            if self.ledger:
                rest = [k for k in left if k not in results or not _lasts(results[k])]
                self.ledger.release(rest, self.owner)

    async def complete(self, chat: list[Any], schema: Mapping[str, Any] | None) -> str:
        """A plain completion of the judge's model, or of the first member that has one."""
        writer = self.judge
        while not hasattr(writer, "complete") and hasattr(writer, "judges"):
            writer = writer.judges[0]
        if not hasattr(writer, "complete"):
            fix = "use an endpoint or a local server"
            raise DataError(
                f"the judge {writer.name!r} cannot write text",
                where="complete",
                fix=fix,
            )
        settings = getattr(writer, "settings", writer.name)
        key = keys.short(["completion", settings, chat, schema])
        try:
            text = self.ledger.reply(key) if self.ledger else None
            question = Question(self, writer, {})
            return (
                await writer.complete(chat, schema, question, key)
                if text is None
                else text
            )
        finally:
            self.close()

    def down(self, name: str) -> JudgeDownError:
        """The error of a judge that does not answer."""
        fix = "check the base URL, the model's name and the key; stored verdicts are not paid again"
        what = f"the judge does not answer: {self.why}"
        return JudgeDownError(what, where=f"judge {name!r}", fix=fix)


class Question:
    """What a judge receives as `run`:

    the budget before a call, the ledger after it, other judges.
    """

    def __init__(self, run: Run, judge: Any, keys: dict[str, str]):
        self.run, self.judge, self.keys = run, judge, keys
        self.ask = run.ask  # for judges that are made of judges

    async def before_call(self, judge: Any, most: float | None = 0.0) -> None:
        """Count a call that costs at most so many dollars (None:

        not known); raises after a stop.
        """
        run = self.run
        if run.fault is None and run.budget is not None:
            await run.budget.reserve(most)
            if run.fault is not None:  # the run stopped while this call waited
                run.budget.settle(most, 0.0)
        if run.fault is not None:
            raise run.fault
        run.spent.calls += 1

    def after_call(
        self, judge: Any, most: float | None, call: Mapping[str, Any] | None
    ) -> None:
        """Book what a call took. call : its row for the ledger, None where it was not answered."""
        run, spent = self.run, self.run.spent
        if run.budget is not None:
            run.budget.settle(most, call["cost"] if call else 0.0)
        if call:
            run.live.add(judge.name)
            run.failures[judge.name] = 0
            for name in ("cost", "tokens_in", "tokens_out"):
                setattr(spent, name, getattr(spent, name) + call[name])

    def lost(self, judge: Any, why: str, *, final: bool = False) -> None:
        """Count a call without an answer; JudgeDownError after many in a row.

        final : the endpoint refuses as such (key, model or URL), so the first one is enough.
        """
        run = self.run
        run.why = why
        run.failures[judge.name] += 1
        if (final and judge.name not in run.live) or run.failures[judge.name] >= DOWN:
            raise run.down(judge.name)

    async def record(
        self, verdicts: Sequence[Verdict], call: dict[str, Any] | None = None
    ) -> list[Verdict]:
        """Store a call and its verdicts, and return them with their keys.

        What passes is not stored.
        """
        places = self.keys
        replace = msgspec.structs.replace
        rows = [
            v if v.key else replace(v, key=places.get(v.criterion_id)) for v in verdicts
        ]
        lasting = [v for v in rows if _lasts(v)]
        if self.run.ledger is not None and (lasting or call):
            self.run.ledger.put(lasting, call)
        return rows


def lost(
    task: Task,
    response: Response,
    criteria: Iterable[Criterion],
    failure: str,
    **more: Any,
) -> list[Verdict]:
    """An unknown verdict for each criterion."""
    return [unknown(task.id, response.id, c.id, failure, **more) for c in criteria]


def _lasts(v: Verdict) -> bool:
    """False for what says nothing about the answer, or was made without a vote that is missing now."""
    return v.failure not in PASSING and not v.meta.get("passing")


def _free(verdicts: Mapping[str, Verdict]) -> dict[str, Verdict]:
    """Verdicts that somebody else paid for."""
    return {key: msgspec.structs.replace(v, **FREE) for key, v in verdicts.items()}


def _readdress(
    v: Verdict, task: Task, response: Response, c: Criterion, **more: Any
) -> Verdict:
    """A verdict under the ids of whoever asks now."""
    ids = {"task_id": task.id, "response_id": response.id, "criterion_id": c.id}
    return msgspec.structs.replace(v, **ids, **more)
