"""What the trainer is handed: one reward per answer, or one per component of the reward
(`per_component`).

A component that does not apply to an answer is None there, and trl leaves it out of the sum. A
component that applies and is unknown makes the whole answer unknown: left out of the sum it would
count as 0.
"""

from __future__ import annotations

import asyncio
import dataclasses
import math
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import KitError
from ..records import Grade, Response, Task, Verdict, fingerprint
from ..rewards import contrast
from ..rewards.composer import Composer
from .reward import Reward

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
    """One part per component, and one each for a format bonus and for length.

    Gates, the format gate and truncation act on every component. The weighted sum is the reward
    where every component applies.
    """
    active = [c for c in composer.components if c.active]
    total = math.fsum(abs(c.weight) for c in active) or 1.0
    share = composer.scale / total if composer.combine == "mean" else composer.scale
    out = [
        Part(name=c.name, weight=c.weight * share, call=_alone(composer, c.name)) for c in active
    ]
    form, length = composer.format, composer.length
    if form.mode == "bonus":
        out.append(
            Part(
                name="format",
                weight=form.bonus * composer.scale,
                call=lambda task, response, verdicts: form.check(task, response).score,
            )
        )
    if length is not None:
        out.append(
            Part(
                name="length",
                weight=composer.scale,
                call=lambda task, response, verdicts: -length.penalty(response),
            )
        )
    return out


def _alone(composer: Composer, name: str) -> Any:
    """The score of one component behind the gates of the whole reward, before scale."""
    form = composer.format
    one = dataclasses.replace(
        composer,
        components=tuple(
            dataclasses.replace(c, weight=float(c.name == name)) for c in composer.components
        ),
        length=None,
        scale=1.0,
        combine="mean",
        format=dataclasses.replace(form, mode="gate" if form.mode == "gate" else "off"),
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
    """
    rows = [(reward.by_id[r.task_id], r, g) for r, g in zip(responses, grades, strict=True)]
    if not strength:
        return rows
    said: dict[str, list[Verdict]] = {}
    for task, _, g in rows:
        said.setdefault(task.id, []).extend(g.verdicts)
    by_id = {t.id: t for t, _, _ in rows}
    new = {i: contrast.focused(by_id[i], reward.composer, vs, strength) for i, vs in said.items()}
    return [(new[t.id], r, reward.composer.score(new[t.id], r, g.verdicts)) for t, r, g in rows]


def shuffled(pay: Any, seed: int) -> Any:
    """The same reward function, its rewards dealt out at random among the answers to one prompt: a
    control without learning.
    """

    async def control(**batch: Any) -> list[float | None]:
        paid, ids = await pay(**batch), batch["task_id"]
        out, key = list(paid), fingerprint([seed, batch["completion_ids"]])
        for task in dict.fromkeys(ids):
            mine = [i for i, t in enumerate(ids) if t == task]
            dealt = random.Random(f"{key}/{task}").sample(mine, len(mine))
            for i, j in zip(mine, dealt, strict=True):
                out[i] = paid[j]
        return out

    control.__name__ = pay.__name__
    return control


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
    limits: Mapping[str, Any] = {"cap": composer.cap, "floor": composer.floor}
    named = [k for k, v in limits.items() if v is not None]
    if named:
        raise KitError(
            f"the reward has a {' and a '.join(named)}, which acts on the sum of its components",
            where="setting per_component",
            fix=f"take the {' and the '.join(named)} out of the reward, or say per_component: "
            f"false",
        )
