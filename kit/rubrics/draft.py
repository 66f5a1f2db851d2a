"""Draft criteria with a model: from a preferred and a rejected answer, or from a reference answer.

The model proposes and the judge decides. A proposal stays only where the judge gives the better
answer full credit and the worse answer none, and where the lint has no objection.
"""

import asyncio
import re
from collections import defaultdict
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from string import Template
from typing import Annotated, Literal

import msgspec

from ..data import Finding, TaskSet
from ..errors import DataError, JudgeDownError
from ..judging import Budget, JudgeSource, LedgerLike, acomplete, judge_of, wait
from ..judging import judge as judge_answers
from ..judging.prompt import closed_object
from ..records import Criterion, Response, Task, Verdict, canonical, strip_thinking
from .lint import lint

# Stands in for the worse answer where a task has only a reference.
NO_ANSWER = "I do not know."
CODE_FENCE = re.compile(r"\A```(?:json)?[ \t]*\n(.*)\n```\Z", re.S)


class ProposedCriterion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A criterion as the model writes it. weight : a whole number, 1 to 10 or -10 to -1."""

    text: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]
    weight: Literal[
        -10, -9, -8, -7, -6, -5, -4, -3, -2, -1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
    ]


class ProposedRubric(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The model's reply."""

    criteria: list[ProposedCriterion]


@dataclass(frozen=True)
class AnswerPair:
    """A task with a better and a worse answer."""

    task: Task
    better: Response
    worse: Response


def draft(
    tasks: TaskSet,
    *,
    judge: JudgeSource,
    ledger: LedgerLike = None,
    budget: Budget | None = None,
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
    pairs = [pair for t in tasks if (pair := _answer_pair(t, tasks))]
    if not pairs:
        raise DataError(
            "no task has two answers to compare",
            where="draft",
            fix='give answers of the role "chosen" and "rejected", or "reference", or labels',
        )
    replies = wait(_model_replies(pairs, most, judge, ledger, budget))
    rubrics = [_read_reply(reply, most) for reply in replies]
    verdicts = _judge_proposals(pairs, rubrics, judge, ledger, budget)
    values = {v.ids: v.value for v in verdicts}
    drafts, findings = {}, list(tasks.findings)
    for pair, criteria in zip(pairs, rubrics, strict=True):
        task, dropped = _keep_separating(pair, criteria or (), values)
        drafts[task.id] = task
        findings += dropped
        if criteria is None:
            findings.append(
                _draft_finding(
                    "draft-unknown", "the reply is not in the requested form", task
                )
            )
    larger = [drafts.get(t.id, t) for t in tasks]
    # No answer of the set has the verdicts on a stand-in answer.
    drafted = {
        (*r.ids, c.id)
        for t in larger
        for r in tasks.answers(t.id)
        for c in t.criteria
    }
    usable = [v for v in verdicts if v.ids in drafted]
    return replace(
        tasks, tasks=larger, findings=findings, verdicts=tasks.verdicts + usable
    )


def _judge_proposals(
    pairs: Sequence[AnswerPair],
    rubrics: Sequence[tuple[Criterion, ...] | None],
    judge: JudgeSource,
    ledger: LedgerLike,
    budget: Budget | None,
) -> list[Verdict]:
    """Verdicts on both answers of each pair, by the criteria that were proposed for it."""
    tasks, answers = [], []
    for pair, criteria in zip(pairs, rubrics, strict=True):
        if criteria:
            tasks.append(msgspec.structs.replace(pair.task, criteria=criteria))
            answers += [pair.better, pair.worse]
    if not tasks:
        return []
    return judge_answers(tasks, answers, judge=judge, ledger=ledger, budget=budget)


def _answer_pair(task: Task, tasks: TaskSet) -> AnswerPair | None:
    """The better and the worse answer to a task; None where there are none to compare."""
    answers = tasks.answers(task.id)
    roles = {r.meta.get("role", r.source): r for r in answers}
    better = roles.get("chosen") or roles.get("reference") or roles.get("ideal")
    worse = roles.get("rejected")
    reference = task.truth.get("reference")
    if better is None and isinstance(reference, str):
        better = Response(task_id=task.id, id="reference", text=reference)
    if better is None:
        shares = _credit_shares(task, tasks)
        labelled = sorted(
            (r for r in answers if r.id in shares), key=lambda r: shares[r.id]
        )
        if not labelled or shares[labelled[0].id] == shares[labelled[-1].id]:
            return None
        worse, better = labelled[0], labelled[-1]
    no_answer = Response(task_id=task.id, id="no-answer", text=NO_ANSWER)
    return AnswerPair(task, better, worse or no_answer)


def _credit_shares(task: Task, tasks: TaskSet) -> dict[str, float]:
    """Answer id -> the weighted share of credit that people's labels give it, in [0, 1]."""
    weights = {c.id: c.weight for c in task.criteria if c.weight}
    credit: dict[str, float] = defaultdict(float)
    total: dict[str, float] = defaultdict(float)
    for v in tasks.labels(task.id):
        weight = weights.get(v.criterion_id)
        if not weight or v.value is None or not v.judge.startswith("human"):
            continue
        # To be without a fault earns credit, so that the share stays in [0, 1].
        share = v.value if weight > 0 else 1 - v.value
        credit[v.response_id] += abs(weight) * share
        total[v.response_id] += abs(weight)
    return {name: credit[name] / total[name] for name in total}


async def _model_replies(
    pairs: Sequence[AnswerPair],
    most: int,
    judge: JudgeSource,
    ledger: LedgerLike,
    budget: Budget | None,
) -> list[str]:
    """The model's replies; an empty text where a call was lost."""
    template = Template(Path(__file__).with_name("draft.txt").read_text("utf-8"))
    item = closed_object(
        {"text": {"type": "string"}, "weight": {"type": "integer"}}
    )
    schema = closed_object({"criteria": {"type": "array", "items": item}})
    # One object, so that its limit of calls at once holds for all.
    writer = judge_of(judge)

    def complete(pair: AnswerPair) -> Coroutine[None, None, str]:
        material = {
            "prompt": pair.task.conversation,
            "better": pair.better.text,
            "worse": pair.worse.text,
        }
        chat = [
            {"role": "system", "content": template.substitute(most=most)},
            {"role": "user", "content": canonical(material)},
        ]
        return acomplete(writer, chat, schema=schema, ledger=ledger, budget=budget)

    results = await asyncio.gather(*map(complete, pairs), return_exceptions=True)
    lost = [r for r in results if isinstance(r, BaseException)]
    for error in lost:
        # One lost call is one unknown reply. When all are lost, the judge is down.
        if len(lost) == len(results) or not isinstance(error, JudgeDownError):
            raise error
    return ["" if isinstance(r, BaseException) else r for r in results]


def _read_reply(reply: str, most: int) -> tuple[Criterion, ...] | None:
    """The criteria of a reply; None where the reply is not exactly in the requested form."""
    # As in a judge's reply: a closed thought in front and one code fence are not part of the JSON.
    text = CODE_FENCE.sub(r"\1", strip_thinking(reply).strip())
    # A ValidationError is a DecodeError, too.
    try:
        rows = msgspec.json.decode(text, type=ProposedRubric).criteria
    except msgspec.DecodeError:
        return None
    return tuple(
        Criterion(id=f"draft-{n}", text=row.text.strip(), weight=row.weight)
        for n, row in enumerate(rows[:most], 1)
    )


def _keep_separating(
    pair: AnswerPair,
    proposed: Sequence[Criterion],
    values: dict[tuple[str, str, str], float | None],
) -> tuple[Task, list[Finding]]:
    """The task with the proposals that stay, and a finding for each that does not."""
    task, dropped = pair.task, []
    for c in proposed:
        # Linted beside those that stay: two proposals may repeat each other.
        larger = msgspec.structs.replace(task, criteria=(*task.criteria, c))
        better = values[task.id, pair.better.id, c.id]
        worse = values[task.id, pair.worse.id, c.id]
        fault = None
        if better is None or worse is None:
            fault = "draft-unknown", "the judge left it unknown"
        elif (better, worse) != ((1, 0) if c.weight > 0 else (0, 1)):
            side = "neither" if better == worse else "the worse"
            message = f"it favours {side} answer ({better:g}, {worse:g})"
            fault = "draft-not-separated", message
        for finding in lint([larger]).findings:
            if fault is None and finding.criterion_id == c.id:
                fault = "draft-lint", finding.message
        if fault:
            dropped.append(_draft_finding(*fault, task, c))
        else:
            task = larger
    return task, dropped


def _draft_finding(
    code: str, message: str, task: Task, criterion: Criterion | None = None
) -> Finding:
    return Finding(
        code=code,
        severity="info",
        message=message,
        task_id=task.id,
        criterion_id=criterion.id if criterion else None,
        text=criterion.text if criterion else None,
    )
