"""`judge(tasks, responses, judge=...)`: verdicts on every answer and criterion.

The way of a question: `judge` -> `Runner.run` -> `judge_task` (what code decides) ->
`answer` (ledger and lease) -> `ask_and_store` -> the judge's `plan`, whose requests `send` puts
through slots and budget to a client -> `ask_and_store` stores the verdicts before they are handed on.
"""

import asyncio
import contextlib
import itertools
import json
import logging
import time
from collections import ChainMap, defaultdict
from collections.abc import (
    AsyncIterator,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Mapping,
    Sequence,
)
from typing import Any, TypeVar

from msgspec.structs import replace

from ..data import TaskSet, TaskSource, tasks_of
from ..errors import BudgetError, DataError, JudgeDownError, KitError
from ..records import Response, Task, Verdict, canonical, count_of, group, leaves
from ..records.tables import Verdicts
from ..system import progress as progress_bars
from . import loop
from .client import Server
from .judge import Judge, JudgeSource, judge_of
from .ledger import COSTS, LedgerLike, borrow_ledger, short_hash
from .prices import Budget, Usage, dollars, estimate_chat_tokens
from .question import (
    Place,
    Question,
    Reading,
    Reply,
    Request,
    RowPlan,
    Step,
    unknown,
)

T = TypeVar("T")
log = logging.getLogger(__name__)
# By the records' ids of answer and criterion.
VerdictMap = dict[Place, Verdict]
# An answer, its task, and the list that takes its verdicts.
JudgedRow = tuple[Task, Response, list[Verdict]]
MAX_CONSECUTIVE_FAILURES = 8  # of calls, before a judge counts as down
RETRY_ROOM = (
    4  # times the tokens of the first try, for a reply that could not be read
)


def judge(
    tasks: TaskSource,
    responses: Iterable[Response] | Response | None = None,
    *,
    judge: JudgeSource = "code",
    ledger: LedgerLike = None,
    budget: Budget | None = None,
    progress: bool = True,
    retry: bool = False,
) -> Verdicts:
    """Judge answers against the criteria of their tasks.

    tasks : a Task, a list of them, or a TaskSet. responses : the answers (default: those
        of the TaskSet). Verdicts come in the order answers x criteria.
    judge : "code" (checks only; other criteria stay unknown), "endpoint:MODEL", "local",
        "replay:NAME", a mapping with options, or a judge object; see `kit.judge_of`.
    ledger : a Ledger or its path (default: the one in the kit's cache, which the command
        line uses as well). What it holds is not paid again. False: nothing is stored.
    retry : ask stored unknown verdicts again.
    budget : caps that are checked before each call. BudgetError, JudgeDownError and
        MissingError stop the run; their `.verdicts` hold what was done, and the rest as
        unknown.
    Ctrl-C stops new calls and waits for those in flight.

    >>> from kit.records import Criterion
    >>> c = Criterion(id="c", text="greets")
    >>> task = Task(id="t", prompt="Say hello.", criteria=(c,))
    >>> answers = [Response(task_id="t", id="r", text="Hello!")]
    >>> judge(task, answers, judge="code", progress=False)[0].failure
    'abstain'
    """
    runner = Runner(judge, ledger, budget, retry=retry, progress=progress)
    return loop.wait(runner.run(pair_answers(tasks, responses)), runner.stop)


async def ajudge(
    tasks: TaskSource,
    responses: Iterable[Response] | Response | None = None,
    **options: Any,
) -> Verdicts:
    """`judge` for asynchronous code, such as an async cell or a trainer's async reward.

    options : judge, ledger, budget, progress, retry, as of `judge`. When it is cancelled,
    no new call starts; the calls in flight end, and the ledger keeps their verdicts.
    """
    return await ajudge_pairs(pair_answers(tasks, responses), **options)


async def ajudge_pairs(
    pairs: Iterable[tuple[Task, Response]],
    *,
    judge: JudgeSource = "code",
    **options: Any,
) -> Verdicts:
    """`ajudge` for (task, answer) pairs. A task may have other criteria in each pair."""
    runner = Runner(judge, **options)
    return await loop.wait_elsewhere(runner.run(list(pairs)), runner.stop)


def estimate(
    tasks: TaskSource,
    responses: Iterable[Response] | Response | None = None,
    *,
    judge: JudgeSource,
    ledger: LedgerLike = None,
) -> Usage:
    """Estimate calls, tokens and dollars of a run. Nothing is sent.

    `cost` is None where the price of the model is not known; `cached` counts the verdicts
    that the ledger has. Equal answers are counted each, though a run asks once.

    >>> from kit.records import Criterion
    >>> c = Criterion(id="c", text="greets")
    >>> task = Task(id="t", prompt="Say hello.", criteria=(c,))
    >>> answers = [Response(task_id="t", id="r", text="Hello!")]
    >>> estimate(task, answers, judge="endpoint:gpt-4o-mini", ledger=False).calls
    1
    """
    runner = Runner(judge, ledger, dry=True)
    loop.wait(runner.run(pair_answers(tasks, responses)))
    # The time of an estimate says nothing of the time of a run.
    return replace(runner.usage, seconds=0.0)


def complete(
    judge: JudgeSource, messages: str | Sequence[Mapping[str, str]], **options: Any
) -> str:
    """The text that a judge's model writes to `messages`. See `acomplete`."""
    return loop.wait(acomplete(judge, messages, **options))


async def acomplete(
    judge: JudgeSource,
    messages: str | Sequence[Mapping[str, str]],
    *,
    schema: Mapping[str, Any] | None = None,
    **options: Any,
) -> str:
    """The text that a judge's model writes; a stored reply is not paid again.

    judge : a judge with a model (an endpoint, a server) or a recording of one.
    messages : a text, or chat messages with role and content.
    schema : a JSON schema of the reply. options : ledger, budget.
    JudgeDownError where there is no usable reply.
    """
    runner = Runner(judge, **options)
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    chat, writer = list(map(dict, messages)), runner.judge
    key = short_hash(["completion", writer.identity or writer.name, chat, schema])
    [row] = await loop.wait_elsewhere(
        runner.work_off(
            [(key, writer.completion(chat, schema))], runner.pay_once, "completing"
        ),
        runner.stop,
    )
    return str(row["reply"])


def pair_answers(
    tasks: TaskSource, responses: Iterable[Response] | Response | None = None
) -> list[tuple[Task, Response]]:
    """Each answer with its task. DataError for what cannot be judged."""
    if responses is None:
        responses = getattr(tasks, "responses", ())
    responses = [responses] if isinstance(responses, Response) else list(responses)
    # Dicts or texts among them would have no task.
    if set(map(type, responses)) != {Response}:
        raise DataError(
            "there are no answers to judge, or not only Responses",
            where="judge(responses=...)",
            fix="give responses=, or join a file of answers: tasks.joined(kit.load(FILE))",
        )
    both = TaskSet(tasks=tasks_of(tasks)).joined(
        TaskSet(tasks=[], responses=responses)
    )
    return [(both.by_id[r.task_id], r) for r in responses]


class Runner:
    """One run: its judge, ledger and budget, what it spent, and why it stopped.

    dry : nothing is sent and nothing stored; what calls would take is counted.
    """

    def __init__(
        self,
        judge: JudgeSource,
        ledger: LedgerLike = None,
        budget: Budget | None = None,
        *,
        retry: bool = False,
        progress: bool = False,
        dry: bool = False,
    ):
        self.judge, self.budget = judge_of(judge), budget or Budget()
        self.progress, self.dry, self.start = progress, dry, time.time()
        # Stored unknown verdicts that are older are asked again.
        self.since = self.start if retry else 0.0
        # A judge without keys needs no file.
        if (
            ledger is None
            and self.judge.identity is None
            and not self.judge.members
        ):
            ledger = False
        # In memory, equal questions of this run still share a call.
        self.opened_ledger = borrow_ledger(ledger)
        # Equal servers share their connections and slots.
        self.servers: dict[Server, Server] = {}
        self.usage = Usage()
        # Why calls in a row failed, by judge.
        self.failures: defaultdict[str, list[str]] = defaultdict(list)
        self.sample = ""  # the last raw reply
        self.fault: KitError | None = None  # why nothing more is asked

    def stop(self) -> None:
        """Ask nothing more: Ctrl-C, or the caller was cancelled."""
        self.fault = self.fault or BudgetError(
            "the run was interrupted", fix="run it again"
        )

    def raise_if_stopped(self) -> None:
        """Raises after a stop."""
        if self.fault is not None:
            raise self.fault

    # -- a run -----------------------------------------------------------------
    async def run(self, pairs: Sequence[tuple[Task, Response]]) -> Verdicts:
        """Verdicts on every pair, in order."""
        names: Iterable[Any] = range(len(pairs))
        # A judge that compares answers gets all answers to a task in one question.
        if self.judge.groups:
            names = [f"{task.id} {task.criteria}" for task, _ in pairs]
        # Each answer has a list, which its question fills.
        rows: list[JudgedRow] = [(task, answer, []) for task, answer in pairs]
        jobs = group(zip(names, rows, strict=True))
        await self.work_off(list(jobs.values()), self.judge_task, "judging")
        verdicts = Verdicts(itertools.chain(*(row for _, _, row in rows)))
        cached = sum(v.cached for v in verdicts)
        self.usage += Usage(seconds=time.time() - self.start, cached=cached)
        verdicts.spent = self.usage
        # A run in which no call was answered is an outage, however few calls it had.
        if self.failures and not self.usage.tokens_in and not cached:
            self.fault = self.fault or _describe_outage(*self.failures.popitem())
        if self.fault is not None:
            self.fault.verdicts = verdicts  # type: ignore[attr-defined]
            raise self.fault
        if not self.dry:
            self._warn_of_losses(verdicts)
        return verdicts

    async def work_off(
        self,
        jobs: Sequence[Iterable[Any]],
        work: Callable[..., Coroutine[Any, Any, T]],
        desc: str,
    ) -> list[T]:
        """The results of this work with the arguments of each job; as many at once as the judge allows."""
        results: list[Any] = [None] * len(jobs)
        queue = enumerate(jobs)

        async def work_off_queue() -> None:
            # The workers share this iterator.
            for place, job in queue:
                results[place] = await work(*job)
                bar.update(1)
                # What the ledger answers waits for nothing, but others use this loop.
                await asyncio.sleep(0)

        bar = progress_bars.bar(
            total=len(jobs), desc=desc, unit="question", disable=not self.progress
        )
        with self.opened_ledger as self.ledger, bar:
            await loop.every(
                work_off_queue() for _ in jobs[: self.judge.concurrency]
            )
        return results

    def _warn_of_losses(self, verdicts: Verdicts) -> None:
        readable = [v for v in verdicts if v.is_known]
        if self.usage.calls and not readable:
            log.warning(
                "no verdict is known. The first one: %s (%s)\nThe last raw reply: %s",
                verdicts[0].reason,
                verdicts[0].failure,
                self.sample[:500] or "(none)",
            )
        lost = sum(v.p is None and v.judge != "code" for v in readable)
        if self.judge.gives_p and lost:
            log.warning(
                "%d of %d verdicts have no P(met): the server sends no log-probabilities",
                lost,
                len(verdicts),
            )

    async def judge_task(self, *rows: JudgedRow) -> None:
        """Put the verdicts on each answer to a task into its list.

        They are unknown where the run stopped or the judge broke.
        """
        from ..checks import check_answer

        task, answers = rows[0][0], [r for _, r, _ in rows]
        verdicts: VerdictMap = {}
        criteria = leaves(task.criteria)
        by_code = group((c.by_code, c) for c in criteria)
        for c, r in itertools.product(by_code.get(True, ()), answers):
            verdicts[r.id, c.id] = check_answer(task, r, c)
        question = Question.of(task, answers, by_code.get(False, ()))
        lost: Reading = {}
        try:
            await self.answer(self.judge, question, verdicts)
        # The kit's own errors stop the run.
        except KitError as e:
            lost = self._stop_for(e)
        except Exception as e:
            log.error("judge %s raised an error", self.judge.name, exc_info=e)
            lost = unknown(f"{type(e).__name__}: {e}", "error")
        for ids in {*question.record_ids} - verdicts.keys():
            verdicts[ids] = _make_verdict(self.judge, task, ids, lost)
        for _, r, row in rows:
            row += [verdicts[r.id, c.id] for c in criteria]

    def _stop_for(self, e: KitError) -> Reading:
        """Ask nothing more; the reading of a place that got none."""
        self.fault = self.fault or e
        return unknown(
            e.what, "transport" if isinstance(e, JudgeDownError) else "budget"
        )

    # -- a question ------------------------------------------------------------
    async def answer(
        self, judge: Judge, question: Question, verdicts: VerdictMap
    ) -> None:
        """Put the verdicts on a question into `verdicts`. Nothing is paid twice.

        Whoever asks the same now, in this process or another, is waited for (a lease).
        What was answered before an error is in `verdicts` when it is raised.
        """
        parts = judge.split(question)
        keys = dict(ChainMap(*map(judge.keys, parts)))
        if not self._take_stored(judge, parts, keys, verdicts):
            return
        async with self.leased(list(keys.values()), judge.limit):
            # Looked up under the lease: nobody else can pay between this and the call.
            left = self._take_stored(judge, parts, keys, verdicts)
            await loop.every(
                self.ask_and_store(judge, q, keys, verdicts) for q in left
            )

    @contextlib.asynccontextmanager
    async def leased(self, keys: list[str], seconds: float) -> AsyncIterator[None]:
        """Nobody else pays for these keys meanwhile, in this process or another. seconds : of the slowest call."""
        # The list lives as long as the lease, so its id is nobody else's.
        owner = f"{self.ledger.owner} {id(keys)}"
        self.raise_if_stopped()
        # The lease outlives the slowest call; who holds it longer was killed.
        while not (self.dry or self.ledger.lease(keys, owner, seconds)):
            await asyncio.sleep(0.05)
            self.raise_if_stopped()
        try:
            yield
        finally:
            self.ledger.release(keys, owner)

    def _take_stored(
        self,
        judge: Judge,
        parts: Iterable[Question],
        keys: dict[Place, str],
        verdicts: VerdictMap,
    ) -> list[Question]:
        """Take the verdicts of the ledger, under the ids of whoever asks now; what is left to ask."""
        rows, questions = self.ledger.get(keys.values(), self.since), []
        for part in parts:
            left = set()
            for ids in part.record_ids:
                # A judge without identity has no keys.
                if stored := rows.get(keys.get(ids, "")):
                    verdicts[ids] = replace(
                        stored,
                        task_id=part.task.id,
                        response_id=ids[0],
                        criterion_id=ids[1],
                        cached=True,
                        **dict.fromkeys(COSTS, 0),
                    )
                else:
                    left.add(ids[1])
            # All of a group's answers and criteria shape each other's verdicts.
            if left:
                questions.append(part if judge.groups else part.with_criteria(left))
        return questions

    async def ask_and_store(
        self,
        judge: Judge,
        question: Question,
        keys: dict[Place, str],
        verdicts: VerdictMap,
        room_factor: int = 1,
    ) -> None:
        """Put the verdicts of one plan into the ledger and then into `verdicts`.

        What its reply leaves unreadable is asked once more, alone, with more room.
        """
        plan, n_places = judge.plan(question), len(question.places)
        readings, call = await self.drive_plan(judge, plan, room_factor)
        if readings is None and self.dry:
            readings = [unknown("an estimate sends nothing", "budget")] * n_places
        if readings is None or len(readings) != n_places:
            raise _too_few_readings(judge, len(readings or ()), n_places)
        shares = _share_costs(call or {}, n_places)
        unreadable: set[str] = set()
        lasting: VerdictMap = {}
        for ids, reading in zip(question.record_ids, readings, strict=True):
            # A stored verdict stays, also where a group is asked again.
            if ids in verdicts:
                continue
            is_unreadable = reading.get("failure") in ("parse", "missing")
            if is_unreadable and call is not None and room_factor < RETRY_ROOM:
                unreadable.add(ids[1])
            else:
                # Its own fields win: an ensemble sums what its members took.
                lasting[ids] = _make_verdict(
                    judge, question.task, ids, {**shares, **reading}, keys.get(ids)
                )
        # A refusal or an abstention is certain; what is unreadable is stored only in
        # the end, so that a killed run asks it again.
        self.ledger.put(lasting.values(), call)
        verdicts.update(lasting)
        if unreadable:
            # Under the same ids: a late reply to the first call must not fit other criteria.
            question = question.with_criteria(unreadable)
            await self.ask_and_store(judge, question, keys, verdicts, RETRY_ROOM)

    async def drive_plan(
        self, judge: Judge, plan: Generator[Step, Any, T], room_factor: int = 1
    ) -> tuple[T | None, dict[str, Any] | None]:
        """What a plan returns, and the ledger row of its last call.

        {} for a call that was lost, None where there was no call. In a dry run a plan ends
        with None where it needs other work than a call.
        """
        call: dict[str, Any] | None = None
        result: Any = None
        try:
            while True:
                step = plan.send(result)
                if isinstance(step, Request):
                    # The last call is stored with its verdicts, those before it alone.
                    self.ledger.put([], call)
                    request = replace(
                        step, max_tokens=step.max_tokens * room_factor
                    )
                    result = await self.send(judge, request)
                    call = self.call_row(judge, request, result)
                elif isinstance(step, list):
                    result = await loop.every(
                        itertools.starmap(self._ask_member, step)
                    )
                    if all(isinstance(row, JudgeDownError) for row in result):
                        raise result[0]
                elif self.dry:
                    return None, call
                else:
                    result = await asyncio.to_thread(step)
        except StopIteration as end:
            return end.value, call
        except BaseException:
            self.ledger.put([], call)
            raise

    async def _ask_member(
        self, judge: Judge, question: Question
    ) -> list[Verdict] | JudgeDownError:
        """The verdicts of another judge, in the order of the question's places."""
        verdicts: VerdictMap = {}
        try:
            await self.answer(judge, question, verdicts)
        # The plan decides what a member that is down means; a budget stops the run.
        except JudgeDownError as e:
            return e
        return [verdicts[ids] for ids in question.record_ids]

    # -- a call ----------------------------------------------------------------
    async def send(self, judge: Judge, request: Request) -> Reply:
        """One reply, when a slot and the budget allow the call."""
        tokens_in = estimate_chat_tokens(request.messages)
        # A reply takes about a third of the room that it has.
        tokens_out = max(1, request.max_tokens // 3)
        reply = Reply(
            failure="budget",
            reason="an estimate sends nothing",
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            cost=dollars(request.server.price, tokens_in, tokens_out),
        )
        if not self.dry:
            reply = await self._post_within_budget(request)
        self.usage += Usage(
            calls=1,
            tokens_in=reply.tokens_in,
            tokens_out=reply.tokens_out,
            cost=reply.cost,
        )
        # Many calls in a row without an answer: the judge is down.
        if reply.failure == "transport":
            reasons = self.failures[judge.name]
            reasons.append(reply.reason)
            if len(reasons) >= MAX_CONSECUTIVE_FAILURES:
                raise _describe_outage(judge.name, reasons)
        else:
            self.failures.pop(judge.name, None)
            self.sample = reply.text or self.sample
        return reply

    async def _post_within_budget(self, request: Request) -> Reply:
        if request.server not in self.servers:
            request.server.connect()
        server = self.servers.setdefault(request.server, request.server)
        # A token is at least one byte; a message has some more around it.
        size = sum(
            len(m["content"].encode(errors="replace")) + 16
            for m in request.messages
        )
        most = dollars(request.server.price, size, request.max_tokens)
        async with server.slots:
            self.raise_if_stopped()
            # The most that the call can cost is reserved until the true cost is there.
            while not self.budget.reserve(most):
                # What is in flight may turn out cheaper than its reservation.
                await asyncio.sleep(0.02)
                self.raise_if_stopped()
            reply = Reply()
            try:
                reply = await server.post(request)
            finally:
                self.budget.settle(most, reply.cost)
        return reply

    def call_row(
        self, judge: Judge, request: Request, reply: Reply
    ) -> dict[str, Any]:
        """The row of a call for the ledger; {} where nothing was paid."""
        if not reply.is_completion:
            return {}
        # An equal server may be the one that is connected.
        server = self.servers[request.server]
        return {
            "judge": judge.name,
            "model": reply.model,
            "tokens_in": reply.tokens_in,
            "tokens_out": reply.tokens_out,
            "cost": reply.cost,
            "settings": server.clean(
                canonical(
                    {**(request.settings or {}), "left out": sorted(server.refused)}
                )
            ),
            "request": json.dumps(
                [
                    {**m, "content": server.clean(m["content"])}
                    for m in request.messages
                ],
                ensure_ascii=False,
            ),
            "reply": reply.text,
        }

    async def pay_once(self, key: str, plan: RowPlan) -> dict[str, Any]:
        """The call that is stored under a key; where there is none, a plan makes it."""
        # Under the lease nobody else can pay between the look and the call.
        async with self.leased([key], self.judge.limit):
            row = self.ledger.find_call(key)
            if row is None:
                fields, call = await self.drive_plan(self.judge, plan)
                row = {**(call or {}), **(fields or {})}
                # Without a key an unfinished reply is not found again.
                if fields:
                    row["key"] = key
                if call:
                    self.ledger.put([], row)
        return row


def _describe_outage(name: str, reasons: Sequence[str]) -> JudgeDownError:
    """The error of a judge that does not answer."""
    return JudgeDownError(
        f"the judge does not answer: {reasons[-1]}",
        where=f"judge {name!r}",
        fix="check base URL, model and key; stored verdicts are not paid again",
    )


def _too_few_readings(judge: Judge, n: int, n_places: int) -> DataError:
    """The error of a judge whose plan leaves places without a reading, or has some too many."""
    return DataError(
        f"plan() returned {count_of(n, 'reading')} for {count_of(n_places, 'verdict')}",
        where=f"judge {judge.name!r}",
        fix="return a reading for each of question.places",
    )


def _share_costs(call: Mapping[str, Any], n: int) -> Reading:
    """What each of n verdicts of a call took: whole tokens, and fractions of a dollar."""
    return {
        "tokens_in": call.get("tokens_in", 0) // n,
        "tokens_out": call.get("tokens_out", 0) // n,
        "cost": (call.get("cost") or 0.0) / n,
    }


def _make_verdict(
    judge: Judge, task: Task, ids: Place, reading: Reading, key: str | None = None
) -> Verdict:
    """A verdict of a judge under its ledger key. ids : of answer and criterion."""
    # A recorded reading has ids of its own, of the texts' first owner.
    fields: dict[str, Any] = {
        "judge": judge.name,
        **reading,
        "key": key,
        "task_id": task.id,
        "response_id": ids[0],
        "criterion_id": ids[1],
    }
    return Verdict(**fields)
