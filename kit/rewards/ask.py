"""From verdicts to grades; no judge is called here (kit.judge asks, kit.train.reward waits)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..errors import KitError
from ..records import Grade, Response, Task, Verdict
from .composer import Composer


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
