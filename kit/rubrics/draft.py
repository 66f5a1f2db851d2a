"""Draft criteria with a model: from a preferred and a rejected answer, or from a reference answer.

The model proposes and the judge decides. A proposal stays only where the judge gives the better
answer full credit and the worse answer none, and where the lint has no objection.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from string import Template
from typing import Annotated, Any

import msgspec

from ..data import Finding, TaskSet
from ..errors import DataError, JudgeDownError
from ..records import Criterion, Response, Task, Verdict, canonical, strip_thinking
from .lint import lint

BETTER = ("chosen", "reference", "ideal")
# Stands in for the worse answer where a task has only a reference.
NO_ANSWER = "I do not know."
FENCE = re.compile(r"\A```(?:json)?[ \t]*\n(.*)\n```\Z", re.S)


class Proposal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A criterion as the model writes it. weight : a whole number, 1 to 10 or -10 to -1."""

    text: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]
    weight: Annotated[int, msgspec.Meta(ge=-10, le=10)]

    def __post_init__(self) -> None:
        if not self.weight:
            raise ValueError("the weight is 0")


class Proposals(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The model's reply."""

    criteria: list[Proposal]


@dataclass(frozen=True)
class Contrast:
    """A task with a better and a worse answer."""

    task: Task
    better: Response
    worse: Response

    @property
    def material(self) -> str:
        """What the model reads: one JSON object."""
        return canonical(
            {
                "prompt": self.task.conversation,
                "better": self.better.text,
                "worse": self.worse.text,
            }
        )


def draft(
    tasks: TaskSet,
    *,
    judge: Any,
    ledger: Any = None,
    budget: Any = None,
    most: int = 8,
) -> TaskSet:
    """Propose criteria with a model, and keep those that tell a good answer from a bad one.

    tasks : a TaskSet. A task needs one of these: two answers of the roles "chosen" and "rejected"
        (`meta["role"]` or `source`); an answer of the role "reference" or "ideal", or a text in
        `truth["reference"]`; two answers or more with labels by people. With a reference alone,
        the worse answer is "I do not know.", so only criteria of positive weight can stay.
    judge : a judge that also completes a chat (an endpoint, a server, a replay).
    most : the largest number of criteria per task.

    Returns the set with the new criteria ("draft-1", ...) after the old ones, the judge's verdicts
    on them, and a finding for each proposal that was dropped. A reply in another form than the
    requested JSON is unknown: a finding counts it, and it gives no criterion.
    """
    from ..judging import judge as ask
    from ..judging import wait

    contrasts = [c for t in tasks if (c := _contrast(t, tasks))]
    if not contrasts:
        raise DataError(
            "no task has two answers to compare",
            where="draft",
            fix='give answers of the role "chosen" and "rejected", or "reference", or labels',
        )
    options = {"judge": judge, "ledger": ledger, "budget": budget}
    replies = wait(_replies(contrasts, most, **options))
    rows = [(c, _read(r, most)) for c, r in zip(contrasts, replies, strict=True)]
    pairs = [(c, new) for c, new in rows if new]
    verdicts: list[Verdict] = []
    if pairs:
        larger = [msgspec.structs.replace(c.task, criteria=new) for c, new in pairs]
        answers = [r for c, _ in pairs for r in (c.better, c.worse)]
        verdicts = ask(larger, answers, **options)
    values = {v.ids: v.value for v in verdicts}
    drafts, findings = {}, []
    for contrast, new in rows:
        task, drop = _choose(contrast, new or (), values)
        drafts[task.id] = task
        findings += drop
        if new is None:
            findings.append(
                _finding(
                    "draft-unknown", "the reply is not in the requested form", task
                )
            )
    criteria = {(t.id, c.id) for t in drafts.values() for c in t.criteria}
    # No answer of the set has the verdicts on a stand-in answer.
    ids = {r.ids for r in tasks.responses}
    verdicts = [v for v in verdicts if v.ids[:2] in ids and v.ids[::2] in criteria]
    return replace(
        tasks,
        tasks=[drafts.get(t.id, t) for t in tasks],
        verdicts=tasks.verdicts + verdicts,
        findings=tasks.findings + findings,
    )


def _contrast(task: Task, tasks: TaskSet) -> Contrast | None:
    """The better and the worse answer to a task; None where there are none to compare."""
    answers = tasks.answers(task.id)
    roles = {r.meta.get("role", r.source): r for r in answers}
    better = next((roles[name] for name in BETTER if name in roles), None)
    worse = roles.get("rejected")
    if better is None and isinstance(task.truth.get("reference"), str):
        better = Response(
            task_id=task.id, id="reference", text=task.truth["reference"]
        )
    if better is None:
        scores = _credits(task, tasks)
        ranks = sorted(
            (r for r in answers if r.id in scores), key=lambda r: scores[r.id]
        )
        if not ranks or scores[ranks[0].id] == scores[ranks[-1].id]:
            return None
        worse, better = ranks[0], ranks[-1]
    return Contrast(
        task,
        better,
        worse or Response(task_id=task.id, id="no-answer", text=NO_ANSWER),
    )


def _credits(task: Task, tasks: TaskSet) -> dict[str, float]:
    """Answer id -> the weighted share of credit that people's labels give it, in [0, 1]."""
    weights = {c.id: c.weight for c in task.criteria if c.weight}
    credit: dict[str, float] = {}
    total: dict[str, float] = {}
    for v in tasks.labels(task.id):
        if (
            not v.judge.startswith("human")
            or v.value is None
            or v.criterion_id not in weights
        ):
            continue
        weight = weights[v.criterion_id]
        # To be without a fault earns credit, so that the share stays in [0, 1].
        share = v.value if weight > 0 else 1 - v.value
        credit[v.response_id] = credit.get(v.response_id, 0) + abs(weight) * share
        total[v.response_id] = total.get(v.response_id, 0) + abs(weight)
    return {name: credit[name] / total[name] for name in total}


async def _replies(
    contrasts: Sequence[Contrast],
    most: int,
    *,
    judge: Any,
    ledger: Any,
    budget: Any,
) -> list[str]:
    """The model's replies; an empty text where a call was lost."""
    from ..judging import acomplete, judge_of
    from ..judging.prompt import closed_object

    text = Path(__file__).with_name("draft.txt").read_text("utf-8")
    system = Template(text).substitute(most=most)
    item = closed_object(
        {"text": {"type": "string"}, "weight": {"type": "integer"}}
    )
    schema = closed_object({"criteria": {"type": "array", "items": item}})
    # one object, so that its limit of calls at once holds for all
    writer = judge_of(judge)

    async def reply(contrast: Contrast) -> str | JudgeDownError:
        chat = [
            {"role": "system", "content": system},
            {"role": "user", "content": contrast.material},
        ]
        try:
            return await acomplete(
                writer, chat, schema=schema, ledger=ledger, budget=budget
            )
        except JudgeDownError as e:
            # Returned: gather would lose the other replies at the first error.
            return e

    replies = await asyncio.gather(*map(reply, contrasts))
    # One lost call is one unknown reply. When all are lost, the judge is down.
    if all(isinstance(r, JudgeDownError) for r in replies):
        raise replies[0]
    return [r if isinstance(r, str) else "" for r in replies]


def _read(reply: str, most: int) -> tuple[Criterion, ...] | None:
    """The criteria of a reply; None where the reply is not exactly in the requested form."""
    # As in a judge's reply: a closed thought in front and one code fence are no part of the JSON.
    try:
        text = FENCE.sub(r"\1", strip_thinking(reply).strip())
        rows = msgspec.json.decode(text, type=Proposals).criteria
    except msgspec.DecodeError:  # a ValidationError is one
        return None
    return tuple(
        Criterion(id=f"draft-{n}", text=p.text.strip(), weight=p.weight)
        for n, p in enumerate(rows[:most], 1)
    )


def _choose(
    contrast: Contrast,
    new: Sequence[Criterion],
    values: dict[tuple[str, str, str], float | None],
) -> tuple[Task, list[Finding]]:
    """The task with the proposals that stay, and a finding for each that does not."""
    task, drop = contrast.task, []
    for c in new:
        pair = [
            values[task.id, r.id, c.id] for r in (contrast.better, contrast.worse)
        ]
        # Linted beside those that stay: two proposals may repeat each other.
        larger = msgspec.structs.replace(task, criteria=(*task.criteria, c))
        faults = [f for f in lint([larger]).findings if f.criterion_id == c.id]
        if None in pair:
            drop.append(
                _finding("draft-unknown", "the judge left it unknown", task, c)
            )
        elif pair != ([1, 0] if c.weight > 0 else [0, 1]):
            side = "neither" if pair[0] == pair[1] else "the worse"
            message = f"it favours {side} answer ({pair[0]:g}, {pair[1]:g})"
            drop.append(_finding("draft-not-separated", message, task, c))
        elif faults:
            drop.append(_finding("draft-lint", faults[0].message, task, c))
        else:
            task = larger
    return task, drop


def _finding(
    code: str, message: str, task: Task, c: Criterion | None = None
) -> Finding:
    return Finding(
        code=code,
        severity="info",
        message=message,
        task_id=task.id,
        **({} if c is None else {"criterion_id": c.id, "text": c.text}),
    )
