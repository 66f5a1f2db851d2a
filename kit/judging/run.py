"""`judge(tasks, responses, judge=...)`: verdicts on every answer and criterion.

The way of a question: `judge` -> `Run.all` (code and ledger first) -> `Run.ask` (a lease,
then the judge) -> the judge's `verdicts` -> `Question.record` (on disk before it is
handed on).
"""

import asyncio
import html
import logging
import os
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ..errors import BudgetError, DataError, JudgeDownError, KitError
from ..records import Criterion, Response, Task, Verdict, leaves, unknown
from ..system import progress as bars
from . import loop, prompt
from .factory import judge_of
from .ledger import Ledger
from .prices import Budget, Spent

log = logging.getLogger(__name__)
PASSING = (
    "transport",
    "budget",
    "error",
)  # never stored: they say nothing of the answer
FREE: dict[str, Any] = {
    "cached": True,
    "cost": 0.0,
    "tokens_in": 0,
    "tokens_out": 0,
}
TOGETHER = 64  # answers that are looked up at once
DOWN = 8  # calls in a row that fail
HOPELESS = ("HTTP 401", "HTTP 403", "HTTP 404")
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
    "refusal": (
        "the model refused, or its provider filtered it",
        "use another model",
    ),
    "abstain": (
        "the judge said that it cannot tell",
        "make the criterion decidable",
    ),
    "contradiction": (
        "votes or verdicts disagree evenly",
        "add a judge to the panel",
    ),
    "missing": (
        "the reply left this criterion out, twice",
        "retry=True, or how='one'",
    ),
    "budget": (
        "the run was stopped before this question",
        "raise the budget and run again",
    ),
    "error": (
        "the judge or the check raised an error",
        "read the reason and the log",
    ),
}


class Verdicts(list[Verdict]):
    """A list of verdicts.

    `.spent` is what they took, `.table()` a DataFrame, `.causes()` explains unknown ones.
    """

    spent = Spent()

    def table(self, *, human: Any = None, tasks: Any = None) -> Any:
        """One row per verdict, beside people's labels and the tasks' columns."""
        from ..records.tables import table  # pandas loads slowly

        return table(self, human=human, tasks=tasks)

    def causes(self) -> Any:
        """A DataFrame of what is unknown: cause, verdicts, meaning, what to do."""
        import pandas as pd

        counts = Counter(str(v.failure) for v in self if not v.is_known)
        rows = [(cause, n, *CAUSES[cause]) for cause, n in counts.most_common()]
        names = ["cause", "verdicts", "meaning", "what to do"]
        return pd.DataFrame(rows, columns=names)

    def __repr__(self) -> str:
        counts = Counter(v.failure for v in self if not v.is_known)
        causes = ", ".join(f"{n} {cause}" for cause, n in counts.most_common())
        return f"{len(self)} verdicts ({self.spent}); unknown: {causes or 'none'}"

    def _repr_html_(self) -> str:
        columns = [
            "task",
            "response",
            "criterion",
            "status",
            "p",
            "failure",
            "reason",
        ]
        rows = self.table()[columns].head(20).to_html()
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
    """Judge answers against the criteria of their tasks.

    tasks : a Task, a list of them, or a TaskSet. responses : the answers (default: those
        of the TaskSet). Verdicts come in the order answers x criteria.
    judge : "code" (checks only; other criteria stay unknown), "endpoint:MODEL", "local",
        "replay:NAME", a mapping with options, or a judge object; see `kit.judge_of`.
    ledger : a Ledger or its path. What it holds is not paid again. retry : ask stored
        unknown verdicts again.
    budget : caps that are checked before each call. BudgetError, JudgeDownError and
        MissingError stop the run; their `.verdicts` hold what was done, and the rest as
        unknown.
    Ctrl-C stops new calls and waits for those in flight.

    >>> c = Criterion(id="c", text="greets")
    >>> task = Task(id="t", prompt="Say hello.", criteria=(c,))
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

    options : judge, ledger, budget, progress, retry, as of `judge`. When it is cancelled,
    no new call starts; the calls in flight end, and the ledger keeps their verdicts.
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
) -> Spent:
    """Estimate calls, tokens and dollars of a run. Nothing is sent.

    `cost` is None where the price of the model is not known; `cached` counts the verdicts
    that the ledger has.

    >>> c = Criterion(id="c", text="greets")
    >>> task = Task(id="t", prompt="Say hello.", criteria=(c,))
    >>> answers = [Response(task_id="t", id="r", text="Hello!")]
    >>> estimate(task, answers, judge="endpoint:gpt-4o-mini").calls
    1
    """
    run = Run(judge_of(judge), ledger, dry=True)
    return loop.wait(run.all(pairs_of(tasks, responses))).spent


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
    """The text that a judge's model writes; a stored reply is not paid again.

    judge : a judge with a model (an endpoint, a server) or a recording of one; of a panel
        the first member. messages : a text, or chat messages with role and content.
    schema : a JSON schema of the reply.
    JudgeDownError where there is no usable reply.
    """
    run = Run(judge_of(judge), ledger, budget)
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    return await loop.hop(run.complete(list(messages), schema), run.stop)


def pairs_of(tasks: Any, responses: Any = None) -> list[tuple[Task, Response]]:
    """Each answer with its task. DataError for what cannot be judged."""
    if responses is None:
        responses = getattr(tasks, "responses", ())
    responses = [responses] if isinstance(responses, Response) else list(responses)
    rows = [tasks] if isinstance(tasks, Task) else getattr(tasks, "tasks", tasks)
    by_id = {t.id: t for t in rows}
    if not responses:
        raise DataError(
            "there are no answers to judge",
            where="judge(responses=...)",
            fix="give responses=, or join a file of answers: tasks.joined(kit.load(FILE))",
        )
    texts: dict[Any, str] = {}
    for n, r in enumerate(responses, 1):
        wrong = ""
        if getattr(r, "task_id", None) not in by_id:
            wrong = f"there is no task of {r!r:.60}"
        elif texts.setdefault(r.ids, r.text) != r.text:
            wrong = f"two answers have the id {r.id!r}"
        if wrong:
            raise DataError(
                wrong,
                where=f"answer {n}",
                fix=f"give Responses with own ids, to the tasks {', '.join([*by_id][:5])}",
            )
    return [(by_id[r.task_id], r) for r in responses]


class Run:
    """One run: its judge, ledger and budget, what it spent, and why it stopped.

    dry : nothing is sent and nothing stored; endpoints book what a call would take.
    """

    def __init__(
        self,
        judge: Any,
        ledger: Ledger | str | Path | None = None,
        budget: Budget | None = None,
        *,
        retry: bool = False,
        progress: bool = False,
        dry: bool = False,
    ):
        self.judge, self.budget, self.retry = judge, budget, retry
        self.progress, self.dry = progress, dry
        self.closes = not isinstance(ledger, Ledger)
        # Without a file, equal questions of this run still share a call in memory.
        self.ledger = Ledger(ledger) if self.closes else ledger
        self.spent, self.start = Spent(), time.monotonic()
        self.failures: Counter[str] = (
            Counter()
        )  # calls in a row that failed, by judge
        self.live: set[str] = set()  # judges that answered in this run
        self.why = ""  # the last call that failed
        self.fault: KitError | None = None  # why nothing more is asked

    def stop(self) -> None:
        """Ask nothing more: Ctrl-C, or the caller was cancelled."""
        fault = BudgetError("the run was interrupted", fix="run it again")
        self.fault = self.fault or fault

    async def all(self, pairs: Sequence[tuple[Task, Response]]) -> Verdicts:
        """Every pair: first code and ledger, then workers that ask about the rest."""
        if hasattr(self.judge, "bind"):
            self.judge = self.judge.bind(pairs)
        rows = [(task, answer, leaves(task.criteria)) for task, answer in pairs]
        results: list[dict[str, Verdict]] = []
        total = sum(len(criteria) for _, _, criteria in rows)
        off = not self.progress
        bar = bars.bar(total=total, desc="judging", unit="verdict", disable=off)
        # Looked up in blocks: one query a block, and the loop stays free between them.
        for first in range(0, len(rows), TOGETHER):
            results += self.look_up(rows[first : first + TOGETHER])
            bar.update(sum(map(len, results[first:])))
            await asyncio.sleep(0)
        pieces = zip(rows, results, strict=True)
        left = [(*row, made) for row, made in pieces if len(made) < len(row[2])]
        queue = iter(left)

        async def worker() -> None:
            for (
                task,
                answer,
                criteria,
                made,
            ) in queue:  # the workers share this iterator
                # All go on, because a key may depend on the criteria beside its own.
                rest = [c for c in criteria if not c.by_code]
                new = await self._safely(task, answer, rest)
                bar.update(len(criteria) - len(made))
                made |= {v.criterion_id: v for v in new}

        workers = min(len(left), getattr(self.judge, "concurrency", 1))
        try:
            await asyncio.gather(*(worker() for _ in range(workers)))
        finally:
            bar.close()
            self.close()
        verdicts = Verdicts()
        for (_, _, criteria), made in zip(rows, results, strict=True):
            verdicts += [made[c.id] for c in criteria]
        n = sum(v.cached for v in verdicts)
        self.spent += Spent(seconds=time.monotonic() - self.start, cached=n)
        verdicts.spent = self.spent
        # A run in which no call was answered is an outage, however few calls it had.
        if self.why and not self.live and not n:
            self.fault = self.fault or self.down(self.judge.name)
        if self.fault is not None:
            self.fault.verdicts = verdicts  # type: ignore[attr-defined]
            raise self.fault
        return verdicts

    def look_up(self, rows: Sequence[tuple[Task, Response, Any]]) -> list[Any]:
        """What code and ledger decide of some answers, each by criterion id."""
        from ..checks import check

        out, questions = [], []
        for task, response, criteria in rows:
            made = {c.id: check(task, response, c) for c in criteria if c.by_code}
            out.append(made)
            rest = [c for c in criteria if not c.by_code]
            places = self.keys(self.judge, task, response, rest) if rest else []
            questions += [
                (made, response, *x) for x in zip(rest, places, strict=True)
            ]
        stored = self.stored(key for *_, key in questions)
        for made, response, c, key in questions:
            if key in stored:
                made[c.id] = _readdress(stored[key], response, c)
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
        return self._lost(self.judge, response, criteria, failure, reason)

    def _lost(
        self,
        judge: Any,
        response: Response,
        criteria: Any,
        failure: str,
        reason: str,
    ) -> list[Verdict]:
        more = {"failure": failure, "judge": judge.name, "reason": reason}
        return [unknown(*response.ids, c.id, **more) for c in criteria]

    # -- one question ----------------------------------------------------------
    def keys(
        self,
        judge: Any,
        task: Task,
        response: Response,
        criteria: Sequence[Criterion],
    ) -> list[str]:
        """The judge's keys; empty texts for a judge without: it is asked each time."""
        made = (
            judge.keys(task, response, criteria) if hasattr(judge, "keys") else None
        )
        return [""] * len(criteria) if made is None else made

    def stored(self, places: Iterable[str]) -> dict[str, Verdict]:
        """Verdicts of the ledger by key, without the unknown ones in a retry."""
        rows = self.ledger.get(key for key in places if key)
        return {key: v for key, v in rows.items() if v.is_known or not self.retry}

    async def ask(
        self,
        judge: Any,
        task: Task,
        response: Response,
        criteria: Sequence[Criterion],
    ) -> list[Verdict]:
        """Verdicts of one judge on one answer, in order. Nothing is paid twice.

        Whoever asks the same now, in this process or another, is waited for (a lease).
        """
        places = self.keys(judge, task, response, criteria)
        names = [c.id for c in criteria]
        question = Question(self, judge, dict(zip(names, places, strict=True)))
        # An estimate runs the way of a question up to the call; other judges would work.
        if self.dry and not (hasattr(judge, "reply") or hasattr(judge, "judges")):
            return self._lost(judge, response, criteria, "budget", "not asked")
        # A judge without keys (code, a replay, a user's own) costs nothing.
        if self.dry or not all(places):
            return await judge.verdicts(task, response, list(criteria), question)
        # The lease outlives the slowest call; who holds it longer was killed.
        owner, limit = (
            f"{os.getpid()} {id(question)}",
            getattr(judge, "limit", 600.0),
        )
        while not self.ledger.lease(places, owner, limit):
            await asyncio.sleep(0.05)
        try:
            # Looked up under the lease: nobody else can pay between this and the call.
            stored = self.stored(places)
            pairs = zip(criteria, places, strict=True)
            made = {
                c.id: _readdress(stored[key], response, c)
                for c, key in pairs
                if key in stored
            }
            todo = [c for c in criteria if c.id not in made]
            if todo:
                new = await judge.verdicts(task, response, todo, question)
                made |= dict(zip([c.id for c in todo], new, strict=True))
            return [made[c.id] for c in criteria]
        finally:
            self.ledger.release(places, owner)

    async def complete(
        self, chat: list[Any], schema: Mapping[str, Any] | None
    ) -> str:
        """A plain completion of the judge's model, or of the first member that has one."""
        writer = self.judge
        while not hasattr(writer, "complete") and hasattr(writer, "judges"):
            writer = writer.judges[0]
        if not hasattr(writer, "complete"):
            raise DataError(
                f"{writer.name!r} cannot write text",
                where="complete",
                fix="use an endpoint or a server",
            )
        settings = getattr(writer, "settings", writer.name)
        key = prompt.short(["completion", settings, chat, schema])
        try:
            text = self.ledger.reply(key)
            if text is None:
                question = Question(self, writer, {})
                text = await writer.complete(chat, schema, question, key)
            return text
        finally:
            self.close()

    def close(self) -> None:
        """Close a ledger that this run opened."""
        if self.closes:
            self.ledger.close()

    def down(self, name: str) -> JudgeDownError:
        """The error of a judge that does not answer."""
        fix = "check base URL, model and key; stored verdicts are not paid again"
        what = f"the judge does not answer: {self.why}"
        return JudgeDownError(what, where=f"judge {name!r}", fix=fix)


class Question:
    """What a judge receives as `run`: budget, ledger, other judges."""

    def __init__(self, run: Run, judge: Any, keys: dict[str, str]):
        self.run, self.judge, self.keys, self.dry = run, judge, keys, run.dry
        self.ask = run.ask  # for judges that are made of judges

    async def before_call(self, judge: Any, most: float | None = 0.0) -> None:
        """Reserve at most so many dollars (None: not known); raises after a stop."""
        run = self.run
        if run.fault is None and run.budget is not None:
            await run.budget.reserve(most)
            if run.fault is not None:  # the run stopped while this call waited
                run.budget.settle(most, 0.0)
        if run.fault is not None:
            raise run.fault

    def after_call(
        self, judge: Any, most: float | None, call: Any, why: str = ""
    ) -> None:
        """Book what a call took; JudgeDownError after many in a row without an answer.

        call : its row for the ledger, None without an answer. why : the reason then.
        """
        run, name = self.run, judge.name
        row = call or {"cost": 0.0, "tokens_in": 0, "tokens_out": 0}
        took = {key: row[key] for key in ("cost", "tokens_in", "tokens_out")}
        run.spent += Spent(calls=1, **took)
        if run.budget is not None:
            run.budget.settle(most, row["cost"])
        if call:
            run.live.add(name)
            run.failures[name] = 0
        elif why:
            run.why, run.failures[name] = why, run.failures[name] + 1
            # Without a key, a model or a path the next call fails as well.
            # After a first answer they may pass: a proxy that restarts sends 404, too.
            hopeless = why in HOPELESS and name not in run.live
            if hopeless or run.failures[name] >= DOWN:
                raise run.down(name)

    async def record(
        self, verdicts: Sequence[Verdict], call: dict[str, Any] | None = None
    ) -> list[Verdict]:
        """Store a call and its verdicts; the verdicts with their keys."""
        replace = msgspec.structs.replace
        rows = [
            v if v.key else replace(v, key=self.keys.get(v.criterion_id))
            for v in verdicts
        ]
        # A panel that lacked a vote must not be stored as if it had been cast.
        lasting = [
            v
            for v in rows
            if v.failure not in PASSING and not v.meta.get("passing")
        ]
        if (lasting or call) and not self.dry:
            self.run.ledger.put(lasting, call)
        return rows


def _readdress(v: Verdict, response: Response, c: Criterion) -> Verdict:
    """A verdict that was paid before, under the ids of whoever asks now."""
    task_id, response_id = response.ids
    ids = {"task_id": task_id, "response_id": response_id, "criterion_id": c.id}
    return msgspec.structs.replace(v, **ids, **FREE)
