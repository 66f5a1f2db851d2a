"""From answers to rewards: the judge and the composer, all calls of a batch in flight together,
None for unknown.

A judge that is down pays nobody: the step waits (up to `patience_s`) and asks again for the answers
that got none, or not all members' votes of a panel; then it stops cleanly with JudgeDownError. What
a judge that lives does not answer is unknown; a panel of which one lives goes on.

The trainer is handed one reward per answer, or one per component (`per_component`): a component
that does not apply is None there, and trl leaves it out of the sum. One that applies and is unknown
makes the whole answer unknown: left out of the sum it would count as 0.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import math
import random
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar

from ..errors import DataError, JudgeDownError, KitError
from ..judge import loop
from ..judge.ledger import Ledger
from ..records import Grade, Response, Task, Verdict, fingerprint, grouped, leaves
from ..rewards import contrast
from ..rewards.composer import Composer
from ..system.paths import write_text

logger = logging.getLogger(__name__)
DOWN = "transport"


@dataclass
class Bill:
    """What the judge cost so far, in this run: seconds waited, calls, US dollars; verdicts, and
    those of them that were paid before.

    kept : the file that it is written to at every batch, for the process that goes on after a stop;
    payer : what signs this run's calls in a ledger; last : the newest call that was counted there.
    """

    seconds: float = 0.0
    calls: int = 0
    cost: float = 0.0
    verdicts: int = 0
    cached: int = 0
    payer: str = ""
    last: int = 0
    kept: Path | None = None

    @classmethod
    def of(cls, path: Path, resume: bool) -> Bill:
        """The bill kept in this file; an empty one where none is, or nothing is resumed."""
        found = json.loads(path.read_text("utf-8")) if resume and path.exists() else {}
        known = {f.name: found[f.name] for f in fields(cls) if f.name in found}
        return cls(**{"payer": uuid.uuid4().hex, **known, "kept": path})

    def add(
        self,
        verdicts: Sequence[Verdict],
        seconds: float,
        spent: Sequence[Any] = (),
        ledger: Ledger | None = None,
    ) -> None:
        """Count one batch. spent : what each request to kit.judge cost; a judge of one's own that
        counts no calls was asked once an answer. ledger : holds these calls by now.
        """
        self.seconds += seconds
        new = [v for v in verdicts if v.judge != "code" and not v.cached]
        asked = {v.ids[:2] for v in new if v.failure != DOWN}
        self.calls += sum(s.calls for s in spent) or len(asked)
        self.cost += sum(s.cost for s in spent) or sum(v.cost for v in verdicts)
        self.verdicts += len(verdicts)
        self.cached += sum(v.cached for v in verdicts)
        self.last = self.last if ledger is None else ledger.newest()
        self._write()

    def begin(self, ledger: Ledger | None) -> None:
        """A batch is asked from now on. What a process that was stopped within its own had paid by
        then is counted.
        """
        if ledger is None:
            return
        ledger.payer = self.payer
        calls, cost = ledger.paid(self.payer, self.last)
        self.calls += calls
        self.cost += cost
        self.last = ledger.newest()
        self._write()

    def _write(self) -> None:
        if self.kept:
            write_text(self.kept, json.dumps({k: v for k, v in vars(self).items() if k != "kept"}))


@dataclass
class Reward:
    """Grades answers: `await grade(responses)`; used by the trainer and by the evaluation alike.

    judge : see kit.judge (None: every criterion must be checked by code); composer :
    kit.rewards.Composer.
    ledger : path or Ledger, so that no verdict is paid twice; patience_s : how long to wait for a
    judge that is down.
    """

    tasks: Sequence[Task]
    judge: Any
    composer: Any
    ledger: Any = None
    budget: Any = None
    patience_s: float = 120.0
    bill: Bill = field(default_factory=Bill)
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)

    pause_s: ClassVar[float] = 2.0  # before the first new attempt; doubled each time

    def __post_init__(self) -> None:
        self.by_id = {t.id: t for t in self.tasks}
        if isinstance(self.ledger, (str, Path)):  # opened once, not for every batch
            self.ledger = Ledger(self.ledger)
        if self.judge is None:
            judged = [(t.id, c.id) for t in self.tasks for c in t.criteria if not c.by_code]
            if judged:
                raise KitError(
                    f"{len(judged)} criteria need a judge, and none was given",
                    where=f"task {judged[0][0]!r}, criterion {judged[0][1]!r}",
                    fix="give judge=..., or checks by code for all criteria",
                )

    def put(self, task: Task) -> None:
        """Judge this task's answers by other criteria from now on."""
        self.by_id[task.id] = task
        self.ranges.pop(task.id, None)

    async def grade(self, responses: Sequence[Response]) -> list[Grade]:
        """One grade per response, in order; score None = unknown, to be left out of training."""
        verdicts: list[list[Verdict]] = [[] for _ in responses]
        left, begun, lives = list(range(len(responses))), time.monotonic(), False
        for tries in itertools.count():
            got = await self._ask([responses[i] for i in left], self.ledger)
            for i, vs in zip(left, got, strict=True):
                verdicts[i] = vs
            down = [i for i in left if any(v.failure == DOWN for v in verdicts[i])]
            half = [i for i in left if any(v.meta.get("passing") for v in verdicts[i])]
            if half and not down:  # a member is dead: is it the last sign of an outage of all?
                down = [] if await self._lives(responses, verdicts) else half
            left = sorted({*down, *half}) if down else []
            waited = time.monotonic() - begun
            if not left:
                break
            if waited < self.patience_s:
                await asyncio.sleep(
                    min(self.pause_s * 2 ** min(tries, 5), max(0.05, self.patience_s - waited))
                )
                continue
            await self._living(responses, verdicts, waited)
            if lives:
                break
            lives = True  # what is asked between two signs of life is not lost by an outage
        return [self._score(r, vs) for r, vs in zip(responses, verdicts, strict=True)]

    async def _living(
        self, responses: Sequence[Response], verdicts: Sequence[Sequence[Verdict]], waited: float
    ) -> None:
        """JudgeDownError unless the judge answers once more (past the ledger) what it answered."""
        if not await self._lives(responses, verdicts):
            raise JudgeDownError(
                f"the judge has not answered for {waited:.0f} s",
                where=f"judge {getattr(self.judge, 'name', '?')!r}",
                fix="start it again, then resume the run: everything so far is saved",
            )

    async def _lives(
        self, responses: Sequence[Response], verdicts: Sequence[Sequence[Verdict]]
    ) -> bool:
        known = [r for r, vs in zip(responses, verdicts, strict=True) if _answered(vs)]
        return any(map(_answered, await self._ask(known[:1], None)))

    def _score(self, response: Response, verdicts: Sequence[Verdict]) -> Grade:
        task = self.by_id[response.task_id]
        grade = self.composer.score(task, response, verdicts)
        if task.id not in self.ranges:
            self.ranges[task.id] = self.composer.limits(task)
        return replace(grade, meta={**grade.meta, "range": self.ranges[task.id]})

    def check(self) -> None:
        """DataError when the reward pays every answer to every task alike (nothing of it applies,
        say); a warning that counts such tasks.
        """
        ends = [self.composer.limits(t) for t in self.tasks]
        missed = [t.id for t, (low, high) in zip(self.tasks, ends, strict=True) if low >= high]
        if not missed:
            return
        name, n = self.composer.name, len(missed)
        said = f"nothing can be earned or lost by {name!r} in {n} of {len(self.tasks)} tasks"
        if len(missed) < len(self.tasks):
            logger.warning("%s (the first is %r): they teach nothing", said, missed[0])
            return
        raise DataError(
            said,
            where=f"task {missed[0]!r}",
            fix="choose a reward that reads what the rows hold, or add criteria, truth or sources; "
            "a gate must be one that an answer can pass",
        )

    async def _ask(self, responses: Sequence[Response], ledger: Any) -> list[list[Verdict]]:
        """Verdicts per response; the bill counts them. Where all want the criteria of their task
        they are asked together; criteria that depend on the answer (cited claims) answer by answer,
        all at once. An answer whose reward no verdict can change is not asked about.
        """
        from ..judge import ajudge

        started = time.monotonic()
        self.bill.begin(ledger)
        more = dict(judge=self.judge or _NoJudge(), ledger=ledger, budget=self.budget)
        wanted = [self.composer.criteria(self.by_id[r.task_id], r) for r in responses]
        asked = [i for i, w in enumerate(wanted) if w]
        found: list[list[Verdict]] = [[] for _ in responses]
        if all(wanted[i] == self.by_id[responses[i].task_id].criteria for i in asked):
            got = [await ajudge(list(self.by_id.values()), [responses[i] for i in asked], **more)]
            each = _regroup(got[0], [wanted[i] for i in asked])
        else:
            own = [
                replace(self.by_id[r.task_id], criteria=w)
                for r, w in zip(responses, wanted, strict=True)
            ]
            each = got = await asyncio.gather(
                *(ajudge(own[i], [responses[i]], **more) for i in asked)
            )
        for i, verdicts in zip(asked, each, strict=True):
            found[i] = list(verdicts)
        spent = [g.spent for g in got]
        told = [v for vs in found for v in vs]
        self.bill.add(told, time.monotonic() - started, spent, ledger)
        return found


class _NoJudge:
    """Stands in where every criterion is checked by code."""

    name = "none"

    async def verdicts(self, task: Task, response: Response, criteria: Any) -> list[Verdict]:
        """Never called with criteria: Reward refuses judged criteria without a judge."""
        raise KitError("no judge was given", where=f"task {task.id!r}")


def _regroup(verdicts: Sequence[Verdict], wanted: Sequence[Sequence[Any]]) -> list[list[Verdict]]:
    """Responses x criteria in order, cut into one list per response; parents of trees are not
    judged.
    """
    left = iter(verdicts)
    return [list(itertools.islice(left, len(leaves(criteria)))) for criteria in wanted]


def _answered(verdicts: Sequence[Verdict]) -> bool:
    """True when the judge gave one of these verdicts, known or not."""
    return any(v.judge != "code" and v.failure != DOWN for v in verdicts)


Graded = Sequence[tuple[Task, Response, Grade]]
Grader = Callable[..., Awaitable[Graded]]


@dataclass(frozen=True, kw_only=True)
class Part:
    """One component as a reward of its own; call(...) is None where it does not apply or is
    unknown.
    """

    name: str
    weight: float
    call: Callable[[Task, Response, Iterable[Verdict]], float | None]


def parts_of(composer: Composer) -> list[Part]:
    """One part per component, and one for a format bonus.

    Gates and the format gate act on every component. The weighted sum is the reward
    where every component applies.
    """
    total = math.fsum(abs(c.weight) for c in composer.components) or 1.0
    share = composer.scale / total if composer.combine == "mean" else composer.scale
    out = [
        Part(name=c.name, weight=c.weight * share, call=_alone(composer, c.name))
        for c in composer.components
    ]
    form = composer.format
    if form.mode == "bonus":
        out.append(
            Part(
                name="format",
                weight=form.bonus * composer.scale,
                call=lambda task, response, verdicts: form.check(task, response).score,
            )
        )
    return out


def _alone(composer: Composer, name: str) -> Any:
    """The score of one component behind the gates of the whole reward, before scale."""
    form = composer.format
    one = replace(
        composer,
        components=tuple(replace(c, weight=float(c.name == name)) for c in composer.components),
        scale=1.0,
        combine="mean",
        format=replace(form, mode="gate" if form.mode == "gate" else "off"),
    )
    return lambda task, response, verdicts: one.score(task, response, verdicts).score


def functions(composer: Composer, grade: Grader, *, per_component: bool) -> list[Any]:
    """Reward functions for trl; `grade(**batch)` is awaited once per batch, whatever their
    number.
    """
    if not per_component:
        return [_whole(grade)]
    _check(composer)
    once, parts = Once(grade), parts_of(composer)
    return [_part(once, i, parts) for i in range(len(parts))]


def weights(composer: Composer, *, per_component: bool) -> list[float] | None:
    """The weights of `functions`; None for a single one."""
    return [p.weight for p in parts_of(composer)] if per_component else None


def values(parts: Sequence[Part], task: Task, response: Response, grade: Grade) -> list[Any]:
    """What each function pays this answer; None for all of them where one that applies is
    unknown.
    """
    found = [f.call(task, response, grade.verdicts) for f in parts]
    lost = [
        v is None and grade.parts.get(f.name) is not None for f, v in zip(parts, found, strict=True)
    ]
    return [None] * len(parts) if grade.score is None or any(lost) else found


def focused(
    reward: Reward, responses: Sequence[Response], grades: Sequence[Grade], strength: float
) -> list[tuple[Task, Response, Grade]]:
    """The graded answers as they are paid in training: at a strength above 0 each group's weights
    follow what tells its answers apart. The grades themselves stay what log and evaluation show.

    Then an answer with an unknown verdict is not paid: its own weights would hang on what is not
    known, and a criterion that loses its weight would close the hole in its favour.
    """
    rows = [(reward.by_id[r.task_id], r, g) for r, g in zip(responses, grades, strict=True)]
    if not strength:
        return rows
    said = grouped((t.id, v) for t, _, g in rows for v in g.verdicts)
    by_id = {t.id: t for t, _, _ in rows}
    new = {
        i: contrast.focused(t, reward.composer, said.get(i, ()), strength) for i, t in by_id.items()
    }
    return [(new[t.id], r, _moved(reward.composer, new[t.id], r, g)) for t, r, g in rows]


def _moved(composer: Composer, task: Task, response: Response, grade: Grade) -> Grade:
    known = grade.score is not None and all(v.known for v in grade.verdicts)
    found = composer.score(task, response, grade.verdicts)
    return found if known else replace(found, score=None)


def shuffled(pay: Any, seed: int) -> Any:
    """The same reward function, its known rewards dealt out at random among the answers to one
    prompt that have one: a control without learning.
    """

    async def control(**batch: Any) -> list[float | None]:
        paid, ids = await pay(**batch), batch["task_id"]
        out = list(paid)
        key = fingerprint([seed, batch["completion_ids"]])
        for task in dict.fromkeys(ids):
            mine = [i for i, t in enumerate(ids) if t == task and paid[i] is not None]
            dealt = random.Random(f"{key}/{task}").sample(mine, len(mine))
            for i, j in zip(mine, dealt, strict=True):
                out[i] = paid[j]
        return out

    control.__name__ = pay.__name__
    return control


def waited(pay: Any) -> Any:
    """The same reward function for trl to call in the thread of the training: Ctrl-C arrives there.
    trl's own loop would ask on behind a run that was stopped.
    """

    def reward(**batch: Any) -> list[float | None]:
        return loop.run(pay(**batch))

    reward.__name__ = pay.__name__
    return reward


class Once:
    """Grades a batch for the first function that asks; the others wait for the same grades."""

    def __init__(self, grade: Grader):
        self.grade = grade
        self.batch: tuple[Any, asyncio.Future[Graded]] | None = None

    async def __call__(self, **batch: Any) -> Graded:
        ids = batch["completion_ids"]  # one object for all functions of a batch
        if self.batch is None or self.batch[0] is not ids:
            self.batch = (ids, asyncio.ensure_future(self.grade(**batch)))
        return await self.batch[1]


def _whole(grade: Grader) -> Any:
    async def rubric(**batch: Any) -> list[float | None]:
        return [g.score for _, _, g in await grade(**batch)]

    return rubric


def _part(once: Once, i: int, parts: Sequence[Part]) -> Any:
    async def reward(**batch: Any) -> list[float | None]:
        return [values(parts, t, r, g)[i] for t, r, g in await once(**batch)]

    reward.__name__ = parts[i].name
    return reward


def _check(composer: Composer) -> None:
    if composer.cap is not None:
        raise KitError(
            "the reward has a cap, which acts on the sum of its components",
            where="setting per_component",
            fix="take the cap out of the reward, or say per_component: false",
        )
