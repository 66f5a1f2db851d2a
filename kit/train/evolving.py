"""Evolving rubrics in a training (kit.rewards.evolve): criteria are proposed from a batch's answers
before it is judged.

Only the training reward sees them. Held-out answers are judged by the tasks' own criteria, before
and after. evolve.jsonl holds every change with its reason, and the buffers, from which a resumed
run goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import KitError
from ..judge import loop
from ..judge.asking import Reply, chat, once
from ..judge.factory import endpoints
from ..records import Criterion, Grade, Response, grouped, is_number
from ..rewards.components import Format
from ..rewards.evolve import Ask, EvolvingRubrics
from ..settings.read import COUNT, make, within
from . import rollouts, world
from .reward import Reward

LOG = "evolve.jsonl"
ROOM = 2000  # tokens of a reply with proposed criteria


@dataclass(frozen=True, kw_only=True)
class Evolve:
    """`evolve:` of a training config; `true` takes all defaults.

    model : who proposes, an endpoint judge ("endpoint:MODEL"); default: the judge of the training.
    ask_every : batches between two requests; most : proposals taken from one (1-5).
    keep : active criteria that stay per task; spread : the smallest standard deviation that counts.
    static : criteria {text, weight} for all tasks that leave without spread and come back every
    `every` steps.
    """

    model: Any = None
    ask_every: int = 1
    keep: int = 5
    every: int = 10
    most: int = 5
    spread: float = 1e-6
    static: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        counts = dict.fromkeys(("ask_every", "keep", "every"), COUNT)
        within(vars(self), {**counts, "most": (1, 5, "a whole number from 1 to 5")})

    def rubrics(self) -> EvolvingRubrics:
        """The buffers, empty."""
        static = [_criterion(row, i) for i, row in enumerate(self.static, 1)]
        return EvolvingRubrics(
            static=static,
            keep=self.keep,
            every=self.every,
            spread=self.spread,
            most=self.most,
        )


def settings_of(value: Any, where: str = "config") -> Evolve | None:
    """The settings behind `evolve:`; None for false.

    >>> settings_of({"keep": 3}).keep
    3
    """
    if value in (None, False):
        return None
    if value is True or isinstance(value, Evolve):
        return Evolve() if value is True else value
    if not isinstance(value, Mapping):
        raise KitError(
            f"evolve is {value!r}",
            where=where,
            fix="write true, or {keep: 5, model: endpoint:MODEL}",
        )
    return make(Evolve, value, where=f"{where}, key evolve")


def _criterion(row: Any, i: int) -> Criterion:
    text = row.get("text") if isinstance(row, Mapping) else row
    weight = row.get("weight", 1.0) if isinstance(row, Mapping) else 1.0
    if not isinstance(text, str) or not text.strip() or not is_number(weight):
        raise KitError(
            "a criterion needs a text, and a number where it has a weight",
            where=f"evolve, static {i}",
        )
    return Criterion(id=f"evolve-static:{i}", text=text, weight=float(weight))


def asker(judge: Any, reward: Reward) -> Ask:
    """A function from a prompt to the text that an endpoint judge's model says, through the
    reward's ledger and budget and onto its bill: the same question is paid once.
    """
    judge, book = next(endpoints(judge), None), reward.ledger
    if judge is None:
        raise KitError(
            "evolving rubrics need a model that proposes criteria",
            where="evolve",
            fix="write evolve: {model: endpoint:MODEL}, or train with an endpoint as the judge",
        )

    async def ask(prompt: str) -> str:
        def reply() -> Awaitable[Reply]:
            return loop.hop(chat(judge, prompt, ROOM, book, reward.budget))

        reward.bill.begin(book)
        said, call, why = await once(reply, prompt, who=judge.name, name="evolve", ledger=book)
        if call is None:
            raise ConnectionError(why)
        return said

    return ask


class Evolving:
    """The training reward with evolving rubrics: proposals, then verdicts, then what goes.

    reward : of the training tasks alone; the evaluation has one of its own. rewards : it, and that
    of a judge audit, which looks at the same criteria.
    """

    def __init__(self, settings: Evolve, reward: Reward, ask: Ask, out: Path):
        if world.size() > 1:
            raise KitError("evolving rubrics train in one process", where="evolve")
        self.settings, self.reward, self.ask = settings, reward, ask
        self.rewards = [reward]
        self.rubrics, self.log = settings.rubrics(), rollouts.Log(out / LOG)
        self.own = dict(reward.by_id)
        _check(reward)

    async def grade(self, step: int, responses: Sequence[Response]) -> list[Grade]:
        """Grades by the criteria in use; buffers change before (proposals) and after (no
        spread).
        """
        groups = grouped((r.task_id, r) for r in responses)
        start = len(self.rubrics.log)
        if (step - 1) % self.settings.ask_every == 0:
            asked = (
                self.rubrics.propose(self.own[t], rs, ask=self.ask, step=step)
                for t, rs in groups.items()
            )
            await asyncio.gather(*asked)
        for t in groups:
            task = replace(self.own[t], criteria=self.rubrics.criteria(self.own[t]))
            for graded in self.rewards:
                graded.put(task)
        grades = await self.reward.grade(responses)
        for t in groups:
            seen = [v for g in grades if g.task_id == t for v in g.verdicts]
            self.rubrics.update(self.own[t], seen, step=step)
        changes = self.rubrics.log[start:]
        self.log.append([self._row(step, t, changes) for t in groups])
        return grades

    def _row(self, step: int, task_id: str, changes: Sequence[Any]) -> dict[str, Any]:
        mine = [asdict(c) for c in changes if c.task_id == task_id]
        state = self.rubrics.state(self.own[task_id])
        return {"step": step, "task_id": task_id, "changes": mine, "buffers": state}

    def resume(self) -> None:
        """Take over the buffers as the log leaves them (rewound to the checkpoint)."""
        for row in rollouts.read(self.log.path):
            self.rubrics.restore(row["task_id"], row["buffers"])


def _check(reward: Reward) -> None:
    """KitError where a new criterion would change nothing, or nobody could judge it."""
    if reward.judge is None:
        raise KitError(
            "new criteria are words, and no judge was given",
            where="evolve",
            fix="give judge=...",
        )
    task = next(iter(reward.by_id.values()))
    new = Criterion(id="evolve-check", text="check")
    any_form = replace(reward.composer, format=Format())
    asked = any_form.criteria(
        replace(task, criteria=(*task.criteria, new)),
        Response(task_id=task.id, id="check", text=""),
    )
    if new not in asked:
        raise KitError(
            f"the reward {reward.composer.name!r} reads no rubric: new criteria would change "
            f"nothing",
            where="evolve",
            fix="choose a reward with a rubric component, as reward: rubric",
        )
