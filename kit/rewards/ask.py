"""From responses to grades through a judge. The only place here that waits for anything.

A judge that fails, in whatever way, yields unknown verdicts: the group is excluded and counted, the run goes on, nobody is paid.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..errors import BudgetError, JudgeDownError, KitError
from ..records import Criterion, Grade, Response, Task, Verdict, by_criterion, unknown
from .composer import Composer

_DOWN = (JudgeDownError, OSError, asyncio.TimeoutError)  # ConnectionError is an OSError


async def averdicts(
    task: Task, response: Response, *, judge: Any, composer: Composer
) -> list[Verdict]:
    """One verdict for each criterion that the composer needs, in its order: checks by code here, the rest by `judge`.

    judge : see kit.judge.base.Judge, or None (then judged criteria are unknown, failure "missing").
    Verdicts are taken by criterion id, so a shuffled, short or doubled reply reaches the right criteria.
    """
    wanted = composer.criteria(task, response)
    coded = [c for c in wanted if c.by_code]
    asked = [c for c in wanted if not c.by_code]
    found = {c.id: _check(task, response, c) for c in coded}
    from ..judge.base import ask

    failure = "missing"
    replies: Iterable[Verdict] = ()
    if asked and judge is not None:
        try:
            replies = await ask(judge, task, response, asked)
        except _DOWN:
            failure = "transport"
        except BudgetError:
            failure = "budget"
    mine = by_criterion(v for v in replies if (v.task_id, v.response_id) == (task.id, response.id))
    for c in asked:
        found[c.id] = mine.get(c.id) or unknown(
            task.id, response.id, c.id, failure, judge=getattr(judge, "name", "")
        )
    return [found[c.id] for c in wanted]


def _check(task: Task, response: Response, criterion: Criterion) -> Verdict:
    from ..checks import check

    return check(task, response, criterion)


async def agrades(
    tasks: Iterable[Task] | Mapping[str, Task],
    responses: Sequence[Response],
    *,
    judge: Any,
    composer: Composer,
) -> list[Grade]:
    """A grade per response, in their order; all judge calls are in flight together (the judge limits itself)."""
    by_id = index(tasks)

    async def one(r: Response) -> Grade:
        task = task_of(by_id, r)
        return composer.score(task, r, await averdicts(task, r, judge=judge, composer=composer))

    return list(await asyncio.gather(*(one(r) for r in responses)))


def grades(
    tasks: Iterable[Task] | Mapping[str, Task],
    responses: Sequence[Response],
    verdicts: Iterable[Verdict],
    *,
    composer: Composer,
) -> list[Grade]:
    """A grade per response from verdicts that are there already; no judge is called."""
    by_id = index(tasks)
    groups: dict[tuple[str, str], list[Verdict]] = {}
    for v in verdicts:
        groups.setdefault((v.task_id, v.response_id), []).append(v)
    return [
        composer.score(task_of(by_id, r), r, groups.get((r.task_id, r.id), ())) for r in responses
    ]


def index(tasks: Iterable[Task] | Mapping[str, Task]) -> Mapping[str, Task]:
    """Tasks by id."""
    return tasks if isinstance(tasks, Mapping) else {t.id: t for t in tasks}


def task_of(by_id: Mapping[str, Task], response: Response) -> Task:
    """The task of a response; KitError when it is not among the tasks."""
    if response.task_id not in by_id:
        raise KitError(
            f"response {response.id!r} answers task {response.task_id!r}, which is not here",
            where="tasks",
            fix="pass the task too",
        )
    return by_id[response.task_id]
