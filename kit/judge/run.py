"""`judge(tasks, responses, judge=...)`: verdicts for every response and criterion.

From a script, a cell, or a reward function. Criteria with a `check` go to code, the rest to the
judge; the ledger is consulted first. Verdicts come in the order responses x criteria whatever the
order of execution.
"""

from __future__ import annotations

import asyncio
import contextlib
import html
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..data import TaskSet
from ..errors import BudgetError, DataError, JudgeDownError, KitError
from ..records import FAILURES, Criterion, Response, Task, Verdict, leaves, unknown
from ..system import progress as bars
from ..tables import rows_html, table
from . import loop
from .asking import answer
from .factory import judge_of
from .ledger import Ledger
from .prices import Budget
from .records import Forecast, Question, question
from .session import Session, using

TOGETHER = 64  # responses looked up at once
Each = Callable[[Response, list[Verdict]], None]
WORKERS = 32  # questions at once for a judge that does not say (`judge.workers`)


@dataclass(frozen=True, kw_only=True)
class Spent:
    """What a run asked and paid: requests, tokens, US dollars, seconds.

    And its verdicts: all, from the ledger, from code, unknown by cause.
    """

    verdicts: int = 0
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0
    seconds: float = 0.0
    cached: int = 0
    by_code: int = 0
    unknown: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        lost = ", ".join(f"{n} {kind}" for kind, n in self.unknown) or "none"
        return (
            f"{self.verdicts} verdicts in {self.seconds:.1f} s: {self.cached} from the ledger, "
            f"{self.by_code} by code, {self.calls} calls, "
            f"{self.tokens_in} + {self.tokens_out} tokens, ${self.cost:.4f}; unknown: {lost}"
        )


class Verdicts(list[Verdict]):
    """A list of verdicts with what they cost (`.spent`) and how they group (`.of(response_id)`)."""

    spent: Spent = Spent()

    def of(self, response_id: str, task_id: str | None = None) -> list[Verdict]:
        """The verdicts on one response."""
        return [v for v in self if v.response_id == response_id and task_id in (None, v.task_id)]

    def table(self, *, human: Any = None, tasks: Any = None) -> Any:
        """A tidy DataFrame, one row per verdict, beside labels of people; see kit.tables.table."""
        return table(self, human=human, tasks=tasks)

    def _repr_html_(self) -> str:
        head = ("task", "response", "criterion", "status", "P(met)", "reason")
        said = [f"{v.status} ({v.failure})" if v.failure else v.status for v in self]
        rows = [(*v.ids, word, v.p, v.reason) for v, word in zip(self, said, strict=True)]
        more = f"<p>... and {len(self) - 20} more</p>" if len(self) > 20 else ""
        cost = f"<details><summary>cost</summary>{html.escape(str(self.spent))}</details>"
        return rows_html(head, rows[:20]) + more + cost

    def __repr__(self) -> str:
        return str(self.spent)


def judge(
    tasks: Any,
    responses: Iterable[Response] | None = None,
    *,
    judge: Any = "code",
    ledger: Ledger | str | Path | None = None,
    progress: bool = True,
    budget: Budget | None = None,
    retry: Collection[str] = (),
    each: Each | None = None,
) -> Verdicts:
    """Verdicts of `judge` (and of code) on every response, in the order responses x criteria.

    tasks : a Task, a list of them, or a TaskSet; responses : the answers, each naming its task
        (default: those of the TaskSet).
    judge : an object with `verdicts`, or a name: "endpoint:my-model", "replay:gpt-4o/bare",
        "local", "code" (criteria without a check stay unknown); see kit.judge.factory.
    ledger : a Ledger or its path; what is in it is not asked again. retry : failure kinds that are
        asked again all the same.
    budget : caps, checked before each call; a BudgetError's `.verdicts` hold what was done, the
        rest unknown "budget".
    each : called with every response and its verdicts as soon as they are all there, on the kit's
        loop; then nothing is kept: what is returned is empty and has only `.spent`.
    Works in a script, in a notebook's running loop, under papermill; Ctrl-C stops the work once the
    calls on their way are answered (a second one at once); what was answered is in the ledger.

    >>> from kit.records import Criterion
    >>> class Fair:
    ...     name = "fair"
    ...     async def verdicts(self, task, response, criteria):
    ...         ids = dict(task_id=task.id, response_id=response.id)
    ...         return [Verdict(**ids, criterion_id=c.id, status="met") for c in criteria]
    >>> task = Task(id="t", prompt="p", criteria=(Criterion(id="c", text="x"),))
    >>> answers = [Response(task_id="t", id="r", text="a")]
    >>> judge(task, answers, judge=Fair(), progress=False)[0].status
    'met'
    """
    answers = _answers(tasks, responses)
    if isinstance(tasks, TaskSet):
        tasks.sound(warn=True)
    who = judge_of(judge)
    run = _session(ledger, budget, retry, each)
    return loop.run(_all(tasks, answers, who, ledger, progress, run, each), run.ease)


def _session(ledger: Any, budget: Any, retry: Any, each: Any = None) -> Session:
    """The run that is asked for; KitError for an argument that is none."""
    kinds = isinstance(retry, Collection) and not isinstance(retry, str)
    for name, given, fits, fix in (
        ("ledger", ledger, isinstance(ledger, Ledger | str | Path | None), "a path or a Ledger"),
        ("budget", budget, isinstance(budget, Budget | None), "a kit.judge.Budget"),
        ("each", each, each is None or callable(each), "a function of an answer and its verdicts"),
        ("retry", retry, kinds and all(k in FAILURES for k in retry), f"a set of {FAILURES}"),
    ):
        if not fits:
            raise KitError(
                f"{name} is {given!r:.80}", where=f"judge({name}=...)", fix=f"give {fix}"
            )
    return Session(budget=budget, retry=frozenset(retry))


def _answers(tasks: Any, responses: Iterable[Response] | None) -> Iterable[Response]:
    """The answers that were given, else those of the task set; KitError where there are none."""
    answers = getattr(tasks, "responses", None) if responses is None else responses
    if answers is None or (responses is None and not answers):
        raise KitError(
            "there are no answers to judge",
            where="judge(responses=...)",
            fix="give responses=, or join a file of answers: tasks.joined(kit.load(FILE))",
        )
    return answers


async def ajudge(
    tasks: Any,
    responses: Iterable[Response],
    *,
    judge: Any,
    ledger: Ledger | str | Path | None = None,
    progress: bool = False,
    budget: Budget | None = None,
    retry: Collection[str] = (),
) -> Verdicts:
    """`judge` for asynchronous code: an async cell, a trainer's async reward.

    Where it is cancelled, the calls on their way, which are paid, end all the same: their verdicts
    are in the ledger, or are those of the next run that asks.
    """
    who = judge_of(judge)
    run = _session(ledger, budget, retry)
    return await loop.hop(_all(tasks, responses, who, ledger, progress, run, None), run.ease)


def estimate(
    tasks: Any,
    responses: Iterable[Response],
    *,
    judge: Any,
    ledger: Ledger | str | Path | None = None,
) -> Forecast:
    """What judging would cost now, ledger hits left out; nothing is sent.

    `cost` is None where the price is not known.
    """
    total = Forecast()
    with _open(ledger) as book:
        for task, response in _pairs(tasks, responses):
            criteria = [c for c in leaves(task.criteria) if not c.by_code]
            q = question(judge, task, response, criteria)
            found = book.get_many(q.keys) if book else {}
            left = q.only([i for i in range(len(criteria)) if q.key(i) not in found])
            for part in left.apart() if left.criteria else ():
                if hasattr(judge, "forecast"):
                    total += judge.forecast(task, part.response, part.criteria)
                else:
                    total += Forecast(calls=1, cost=0.0)
    return total


def _open(ledger: Ledger | str | Path | None) -> Any:
    """The ledger (or None) for a `with`, which closes it where it was opened for it."""
    given = ledger is None or isinstance(ledger, Ledger)
    return contextlib.nullcontext(ledger) if given else Ledger(ledger)


def _pairs(tasks: Any, responses: Iterable[Response]) -> list[tuple[Task, Response]]:
    rows = storable(tasks if isinstance(tasks, Task) else getattr(tasks, "tasks", tasks), "tasks")
    responses = storable(responses, "responses")
    by_id = {t.id: t for t in rows}
    for n, r in enumerate(responses, 1):
        if r.task_id not in by_id:
            raise DataError(
                f"there is no task {r.task_id!r}",
                where=f"response {n} ({r.id!r}), field task_id",
                fix=f"the tasks are {', '.join(sorted(by_id)[:5])}"
                + (" ..." if len(by_id) > 5 else ""),
            )
    return [(by_id[r.task_id], r) for r in responses]


def storable(given: Any, where: str) -> list[Any]:
    """A record, or several, as a list; DataError for an id with half a character: its verdicts
    would be paid and not be kept; for
    one id of two: the verdicts on both would go by it; and for what is no record.
    """
    seen: dict[tuple[str, str], Task | str] = {}
    alone = isinstance(given, Task | Response) or not isinstance(given, Iterable)
    records = [given] if alone else list(given)
    for n, record in enumerate(records, 1):
        if not isinstance(record, (Task, Response)):
            raise DataError(
                f"{record!r:.60} is none",
                where=f"{where}, number {n}",
                fix="give Task and Response objects; kit.load reads them from a file",
            )
        name = (getattr(record, "task_id", ""), record.id)
        said = getattr(record, "text", record)
        if seen.setdefault(name, said) != said:
            raise DataError(
                f"two that differ have the id {record.id!r}",
                where=f"{where}, number {n}",
                fix="give each an id of its own",
            )
        for i in (record.id, *(c.id for c in getattr(record, "criteria", ()))):
            if not i.isascii() and any("\ud800" <= ch <= "\udfff" for ch in i):
                raise DataError(
                    f"the id {i!a} is no text",
                    where=f"{where}, number {n}, field id",
                    fix="write the id in whole characters (no half of a surrogate pair)",
                )
    return records


async def _all(
    tasks: Any,
    responses: Iterable[Response],
    who: Any,
    ledger: Ledger | str | Path | None,
    progress: bool,
    run: Session,
    each: Each | None,
) -> Verdicts:
    """The whole run, on the kit's loop."""
    job = _Job(
        _pairs(tasks, responses),
        who,
        run,
        progress,
        each,
    )
    if each is not None:  # memory stays flat
        run.fresh = None
    with _open(ledger) as run.ledger:
        try:
            with contextlib.closing(run), using(run), loop.fewer_collections(), run.beating():
                await job.run()
        except DataError as e:  # a ledger that was removed: what was paid is only here
            job.stop = e
    out = job.result()
    if job.stop is not None:
        job.stop.verdicts = out  # type: ignore[attr-defined]
        raise job.stop
    return out


class _Job:
    """The questions of one run: cached ones and code at once, then workers on the rest."""

    def __init__(
        self,
        pairs: Sequence[tuple[Task, Response]],
        who: Any,
        run: Session,
        progress: bool,
        each: Each | None,
    ):
        self.pairs, self.who, self.run_, self.stop, self.each = pairs, who, run, None, each
        self.n: Counter[str] = Counter()  # fields of Spent
        self.lost: Counter[str] = Counter()
        judged = {id(t): leaves(t.criteria) for t, _ in pairs}
        self.criteria = [judged[id(t)] for t, _ in pairs]
        self.found: list[dict[str, Verdict]] = [{} for _ in pairs]  # by criterion
        self.bar = bars.bar(
            total=sum(map(len, self.criteria)),
            desc="judging",
            unit="verdict",
            delay=2.0,
            disable=not progress,
        )

    async def run(self) -> None:
        try:
            left = await self._known()
            # answers to one task together: prefix caches hit
            queue = iter(sorted(left, key=lambda row: row[1].task.id))
            n = min(len(left), int(getattr(self.who, "workers", None) or WORKERS))
            await self._workers(queue, n)
            if isinstance(self.stop, (DataError, OSError)):
                raise self.stop
        finally:
            self.bar.close()

    async def _known(self) -> list[tuple[int, Question]]:
        """Code and ledger; what is left: (number of the answer, question)."""
        left = []
        for start in range(0, len(self.pairs), TOGETHER):
            part = range(start, min(start + TOGETHER, len(self.pairs)))
            open_ = {i: self._open(i) for i in part}
            hits = self.run_.lookup([k for q in open_.values() for k in q.keys])
            for i, q in open_.items():
                out = self.found[i]
                known = self.run_.known(q, hits)
                out.update((v.criterion_id, v) for v in known.values())
                asked = [n for n in range(len(q.criteria)) if n not in known]
                self.bar.update(len(out))
                if asked:
                    left.append((i, q.only(asked)))
                else:
                    self._over(i)
            await asyncio.sleep(0)
        return left

    def _open(self, i: int) -> Question:
        """Check by code what can be; the question for the rest."""
        (task, response), criteria = self.pairs[i], self.criteria[i]
        self.found[i] = {c.id: _code(task, response, c) for c in criteria if c.check is not None}
        asked = [c for c in criteria if c.check is None]
        return question(self.who, task, response, asked) if asked else Question(task, response, [])

    async def _workers(self, queue: Any, n: int) -> None:
        workers: list[asyncio.Task[None]] = []
        try:
            for i in range(n):
                workers.append(asyncio.create_task(self._worker(queue)))
                if i % 8 == 7:  # the first requests go out while the next are made ready
                    await asyncio.sleep(0)
            await asyncio.gather(*workers)
        except (BudgetError, JudgeDownError) as e:
            self.stop = e
        finally:
            for w in workers:
                w.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    async def _worker(self, queue: Any) -> None:
        for i, q in queue:
            if self.stop is not None or self.run_.stopping.is_set():
                return
            try:
                got = await answer(self.who, q)
                self.found[i].update((v.criterion_id, v) for v in got)
                self._over(i)
            except (BudgetError, DataError, OSError) as e:  # a cap, a full disk
                self.stop = self.stop or e  # the calls in flight are paid: let them finish
                if not isinstance(e, BudgetError):
                    self.run_.stopping.set()
                return
            self.bar.update(len(got))
            self.bar.set_postfix_str(f"${self.run_.spent.cost:.4f}", refresh=False)

    def _over(self, i: int) -> None:
        """All verdicts on a response are there: hand them on, and keep them only where nobody
        took them."""
        if self.each is None:
            return
        got = self._rows(i)
        self._count(i, got)
        self.each(self.pairs[i][1], got)
        self.found[i] = {}

    def _rows(self, i: int) -> list[Verdict]:
        """The verdicts on a response, in order; where the run was stopped, what there is."""
        (task, response), found = self.pairs[i], self.found[i]
        if self.stop is not None:
            found = self.run_.partial(task, response, self.criteria[i]) | found
        kind = "budget" if isinstance(self.stop, BudgetError) else "transport"
        name = getattr(self.who, "name", "")
        return [
            found.get(c.id) or unknown(task.id, response.id, c.id, kind, judge=name)
            for c in self.criteria[i]
        ]

    def _count(self, i: int, got: Sequence[Verdict]) -> None:
        self.n.update(
            verdicts=len(got),
            cached=sum(v.cached for v in got),
            by_code=sum(c.by_code for c in self.criteria[i]),
        )
        self.lost.update(v.failure for v in got if v.failure)

    def result(self) -> Verdicts:
        out, run = Verdicts(), self.run_
        if self.each is None:
            for i in range(len(self.pairs)):
                got = self._rows(i)
                self._count(i, got)
                out += got
        out.spent = Spent(
            **self.n,
            **vars(run.spent),
            seconds=time.monotonic() - run.started,
            unknown=tuple(sorted(self.lost.items())),
        )
        return out


def _code(task: Task, response: Response, c: Criterion) -> Verdict:
    """A check by code; a fault of the check is an unknown verdict, never an exception."""
    from ..checks import check

    try:
        return check(task, response, c)
    except KitError:
        raise
    except Exception as e:
        return unknown(
            task.id,
            response.id,
            c.id,
            "error",
            judge="code",
            reason=f"{type(e).__name__}: {e}"[:200],
        )
