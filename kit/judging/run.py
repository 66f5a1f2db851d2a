"""`judge(tasks, responses, judge=...)`: verdicts on every answer and criterion.

The way of a question: `judge` -> `Run.all` -> `Run.one` (what code decides) ->
`Question.answer` (ledger and lease) -> the judge's `verdicts` -> `Question.record` (on
disk before it is handed on).
"""

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ..errors import BudgetError, DataError, JudgeDownError, KitError
from ..records import (
    Criterion,
    Response,
    Task,
    Verdict,
    group,
    leaves,
)
from ..records.tables import Verdicts
from ..system import loop
from ..system import progress as bars
from . import form as forms
from .factory import judge_of
from .form import Criteria
from .ledger import COSTS, Budget, Ledger, Spent

log = logging.getLogger(__name__)
# Never stored: they say nothing of the answer.
PASSING = ("transport", "budget", "error")
FREE: dict[str, Any] = {"cached": True, **dict.fromkeys(COSTS, 0)}
DOWN = 8  # calls in a row that fail


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

    >>> from kit.records import Criterion
    >>> c = Criterion(id="c", text="greets")
    >>> task = Task(id="t", prompt="Say hello.", criteria=(c,))
    >>> answers = [Response(task_id="t", id="r", text="Hello!")]
    >>> judge(task, answers, judge="code", progress=False)[0].failure
    'abstain'
    """
    run = Run(judge, ledger, budget, retry=retry, progress=progress)
    return loop.wait(run.all(pairs_of(tasks, responses)), run.stop)


async def ajudge(
    tasks: Any, responses: Iterable[Response] | None = None, **options: Any
) -> Verdicts:
    """`judge` for asynchronous code, such as an async cell or a trainer's async reward.

    options : judge, ledger, budget, progress, retry, as of `judge`. When it is cancelled,
    no new call starts; the calls in flight end, and the ledger keeps their verdicts.
    """
    return await ajudge_pairs(pairs_of(tasks, responses), **options)


async def ajudge_pairs(
    pairs: Iterable[tuple[Task, Response]], *, judge: Any = "code", **options: Any
) -> Verdicts:
    """`ajudge` for (task, answer) pairs. A task may have other criteria in each pair."""
    run = Run(judge, **options)
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
    that the ledger has. Equal answers are counted each, though a run asks once.

    >>> from kit.records import Criterion
    >>> c = Criterion(id="c", text="greets")
    >>> task = Task(id="t", prompt="Say hello.", criteria=(c,))
    >>> answers = [Response(task_id="t", id="r", text="Hello!")]
    >>> estimate(task, answers, judge="endpoint:gpt-4o-mini").calls
    1
    """
    run = Run(judge, ledger, dry=True)
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
    **options: Any,
) -> str:
    """The text that a judge's model writes; a stored reply is not paid again.

    judge : a judge with a model (an endpoint, a server) or a recording of one.
    messages : a text, or chat messages with role and content.
    schema : a JSON schema of the reply. options : ledger, budget.
    JudgeDownError where there is no usable reply.
    """
    run = Run(judge, **options)
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
    fix = f"give Responses to the tasks {', '.join([*by_id][:5])}"
    texts: dict[Any, str] = {}
    for n, r in enumerate(responses, 1):
        if getattr(r, "task_id", None) not in by_id:
            wrong = f"there is no task of {r!r:.60}"
            raise DataError(wrong, where=f"answer {n}", fix=fix)
        if texts.setdefault(r.ids, r.text) != r.text:
            wrong = f"two answers have the id {r.id!r}"
            raise DataError(wrong, where=f"answer {n}", fix=fix)
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
        self.judge, self.budget = judge_of(judge), budget or Budget()
        self.progress, self.dry, self.start = progress, dry, time.time()
        # Stored unknown verdicts that are older are asked again.
        self.since = self.start if retry else 0.0
        # Without a file, equal questions of this run still share a call in memory.
        self.ledger = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
        # A ledger that this run opened is closed at its end.
        self.open: Any = nullcontext() if ledger is self.ledger else self.ledger
        self.spent = Spent()
        # Why calls in a row failed, by judge.
        self.failures: defaultdict[str, list[str]] = defaultdict(list)
        self.fault: KitError | None = None  # why nothing more is asked

    def stop(self) -> None:
        """Ask nothing more: Ctrl-C, or the caller was cancelled."""
        self.fault = self.fault or BudgetError(
            "the run was interrupted", fix="run it again"
        )

    def go_on(self) -> None:
        """Raises after a stop."""
        if self.fault is not None:
            raise self.fault

    async def all(self, pairs: Sequence[tuple[Task, Response]]) -> Verdicts:
        """Verdicts on every pair, in order; as many at once as the judge allows."""
        # A judge that compares answers gets all answers to a task in one question.
        places, groups = range(len(pairs)), self.judge.groups
        names = [
            f"{t.id} {t.criteria}" if groups else n
            for n, (t, _) in enumerate(pairs)
        ]
        questions = group(zip(names, places, strict=True))
        rows: list[Sequence[Verdict]] = [()] * len(pairs)
        queue = iter(questions.values())

        async def worker() -> None:
            for question in queue:  # the workers share this iterator
                answers = [pairs[n][1] for n in question]
                verdicts = await self.one(pairs[question[0]][0], answers)
                for n in question:
                    rows[n] = verdicts[pairs[n][1].id]
                bar.update(len(question))
                # What the ledger answers waits for nothing, but others use this loop.
                await asyncio.sleep(0)

        n = min(len(questions), self.judge.concurrency)
        with (
            self.open,
            bars.bar(
                total=len(pairs),
                desc="judging",
                unit="answer",
                disable=not self.progress,
            ) as bar,
        ):
            await loop.every(worker() for _ in range(n))
        verdicts = Verdicts(v for row in rows for v in row)
        n = sum(v.cached for v in verdicts)
        self.spent += Spent(seconds=time.time() - self.start, cached=n)
        verdicts.spent = self.spent
        # A run in which no call was answered is an outage, however few calls it had.
        if self.failures and not self.spent.tokens_in and not n:
            self.fault = self.fault or self.down(*self.failures.popitem())
        if self.fault is not None:
            self.fault.verdicts = verdicts  # type: ignore[attr-defined]
        self.go_on()
        return verdicts

    async def one(
        self, task: Task, answers: Sequence[Response]
    ) -> dict[str, list[Verdict]]:
        """Verdicts by answer; unknown where the run stopped or the judge broke."""
        from ..checks import check_answer

        criteria = leaves(task.criteria)
        verdicts = {
            (r.id, c.id): check_answer(task, r, c)
            for r in answers
            for c in criteria
            if c.by_code
        }
        rest = [c for c in criteria if not c.by_code]
        question = Question(self, self.judge, task, answers, rest)
        try:
            verdicts |= await question.answer()
        except KitError as e:
            self.fault = self.fault or e
            failure = "transport" if isinstance(e, JudgeDownError) else "budget"
            verdicts |= question.lost(failure, e.what)
        except Exception as e:
            log.exception("judge %s raised an error", self.judge.name)
            verdicts |= question.lost("error", f"{type(e).__name__}: {e}")
        return {r.id: [verdicts[r.id, c.id] for c in criteria] for r in answers}

    async def complete(
        self, chat: list[Any], schema: Mapping[str, Any] | None
    ) -> str:
        """A plain completion of the judge's model."""
        writer = self.judge
        settings = writer.settings or writer.name
        key = forms.short(["completion", settings, chat, schema])
        with self.open:
            text = self.ledger.reply(key)
            if text is None:
                question = Question(self, writer)
                text = await writer.complete(chat, schema, question, key)
            return text

    def down(self, name: str, reasons: Sequence[str]) -> JudgeDownError:
        """The error of a judge that does not answer."""
        fix = "check base URL, model and key; stored verdicts are not paid again"
        what = f"the judge does not answer: {reasons[-1]}"
        return JudgeDownError(what, where=f"judge {name!r}", fix=fix)


class Question:
    """Answers to a task and its criteria for one judge, which receives it as `run`.

    keys : of the ledger, by the ids of answer and criterion; {} for a judge without.
    """

    def __init__(
        self,
        run: Run,
        judge: Any,
        task: Any = None,
        answers: Sequence[Response] = (),
        criteria: Criteria = (),
    ):
        self.run, self.judge, self.dry = run, judge, run.dry
        self.task, self.answers, self.criteria = task, answers, criteria
        self.places = [(r.id, c.id) for r in answers for c in criteria]
        keys = judge.keys(task, answers, criteria) if self.places else []
        self.keys = dict(zip(self.places, keys, strict=bool(keys)))

    async def answer(self) -> dict[tuple[str, str], Verdict]:
        """Verdicts by the ids of answer and criterion. Nothing is paid twice.

        Whoever asks the same now, in this process or another, is waited for (a lease).
        """
        verdicts = self.stored()
        if len(verdicts) == len(self.places):
            return verdicts
        self.run.go_on()
        # An estimate goes the way of a question up to the call; other judges would work.
        if self.dry and not self.judge.sends:
            return self.lost("budget", "an estimate sends nothing")
        # The lease outlives the slowest call; who holds it longer was killed.
        names = [] if self.dry else list(self.keys.values())
        lease = names, f"{self.run.ledger.owner} {id(self)}"
        while not self.run.ledger.lease(*lease, self.judge.limit):
            await asyncio.sleep(0.05)
            self.run.go_on()
        try:
            # Looked up under the lease: nobody else can pay between this and the call.
            verdicts = self.stored()
            ids = {name for _, name in verdicts.keys() ^ set(self.places)}
            left = [c for c in self.criteria if c.id in ids]
            if left:
                rows = await self.judge.verdicts(
                    self.task, self.answers, left, self
                )
                verdicts = {v.ids[1:]: v for v in rows} | verdicts
            return verdicts
        finally:
            self.run.ledger.release(*lease)

    def stored(self) -> dict[tuple[str, str], Verdict]:
        """The verdicts of the ledger, under the ids of whoever asks now."""
        rows = self.run.ledger.get(self.keys.values(), self.run.since)
        names = ("task_id", "response_id", "criterion_id")
        verdicts = {}
        for place, key in self.keys.items():
            if key in rows:
                ids = dict(zip(names, (self.task.id, *place), strict=True))
                verdicts[place] = replace(rows[key], **ids, **FREE)
        return verdicts

    def lost(self, failure: str, reason: str) -> dict[tuple[str, str], Verdict]:
        """Unknown verdicts on all criteria but those that are stored."""
        rows = {
            (r.id, c.id): self.verdict(
                r, c, status="unknown", failure=failure, reason=reason[:300]
            )
            for r in self.answers
            for c in self.criteria
        }
        return rows | self.stored()

    # -- what judges call --------------------------------------------------------
    async def ask(
        self,
        judge: Any,
        task: Task,
        answers: Sequence[Response],
        criteria: Criteria,
    ) -> list[Verdict]:
        """The verdicts of another judge, for judges that are made of judges."""
        # Each answer alone, unless that judge compares them.
        parts = [answers] if judge.groups else [[r] for r in answers]
        questions = [Question(self.run, judge, task, p, criteria) for p in parts]
        rows = await loop.every(question.answer() for question in questions)
        pairs = zip(questions, rows, strict=True)
        return [row[place] for question, row in pairs for place in question.places]

    def verdict(self, r: Response, c: Criterion, **fields: Any) -> Verdict:
        """A verdict of this judge under its ledger key."""
        ids = {"task_id": r.task_id, "response_id": r.id, "criterion_id": c.id}
        fields = {"judge": self.judge.name, **fields, **ids}
        return Verdict(**{**fields, "key": self.keys.get((r.id, c.id))})

    async def before_call(self, most: float | None = 0.0) -> None:
        """Reserve at most so many dollars (None: not known); raises after a stop."""
        self.run.go_on()
        await self.run.budget.reserve(most, self.run.go_on)

    def book(self, **costs: Any) -> None:
        """Count a call and what it took."""
        self.run.spent += Spent(calls=1, **costs)

    def after_call(
        self, most: float | None, call: Mapping[str, Any], why: str = ""
    ) -> None:
        """Book what a call took; JudgeDownError after many in a row without an answer.

        call : its row for the ledger, {} without an answer. why : the reason then.
        """
        run, name = self.run, self.judge.name
        self.book(**{x: call[x] for x in COSTS if x in call})
        run.budget.settle(most, call.get("cost") or 0.0)
        if call:
            run.failures.pop(name, None)
        elif why:
            run.failures[name].append(why)
            if len(run.failures[name]) >= DOWN:
                raise run.down(name, run.failures[name])

    def record(
        self, verdicts: Iterable[Verdict], call: Mapping[str, Any] = {}
    ) -> None:
        """Store a call and its verdicts, before anybody reads them."""
        lasting = [v for v in verdicts if v.key and v.failure not in PASSING]
        if lasting or call:
            self.run.ledger.put(lasting, call)
