"""One answer, whole: what the judge was asked, what it replied, and how the reward came about."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..data import TaskSource, tasks_of
from ..errors import DataError
from ..records import Criterion, Grade, Response, Task, Verdict
from ..stats import format_number
from .components import RubricComponent
from .composer import Composer, RewardSource

if TYPE_CHECKING:
    from ..judging import JudgeSource, Ledger

STEP_TEXTS = {
    "start": "nothing applies",
    "component": "add {name}",
    "weights": "divide by the sum of the weights, {name}",
    "format bonus": "add the format bonus",
    "gate": "the gate of {name} is closed",
    "cap": "at most {name}",
    "scale": "times {name}",
    "format gate": "the required form is missing: the least that any answer earns",
}


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Why an answer earned its reward. Printed, it is a text; in a notebook its sections are folded.

    calls : what was sent to the judge and what it replied, each once: `request` (chat messages) and `reply`.
    sections : title -> lines. The last one is the arithmetic of the reward.
    """

    grade: Grade
    calls: list[dict[str, Any]]
    sections: dict[str, list[str]]

    def __str__(self) -> str:
        lines = []
        for title, rows in self.sections.items():
            lines += [title, *(f"  {row}" for row in rows), ""]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        blocks = []
        for title, rows in self.sections.items():
            # Asked and replied texts are long; the verdicts and the sum are what one reads first.
            is_open = "" if title.startswith("Call") else " open"
            text = html.escape("\n".join(rows))
            blocks.append(
                f"<details{is_open}><summary>{html.escape(title)}</summary>"
                f'<pre style="white-space: pre-wrap">{text}</pre></details>'
            )
        return "".join(blocks)


def explain(
    tasks: TaskSource,
    answer: Response | str,
    *,
    judge: JudgeSource = "code",
    reward: RewardSource = "rubric",
    ledger: Ledger | str | Path | None = None,
    verdicts: Iterable[Verdict] | None = None,
) -> Explanation:
    """Show one answer whole: the judge's messages, its reply, each verdict, and the reward line by line.

    answer : a Response to one of the tasks, or its ids "TASK/ANSWER" where the tasks have answers.
    judge, reward, ledger : as in `kit.judge` and `kit.grade`; stored verdicts are not paid again.
    verdicts : verdicts that are there already; then no judge is asked.

    >>> task = Task(id="t", prompt="p", criteria=(Criterion(id="a", text="x", weight=2),))
    >>> verdict = Verdict(task_id="t", response_id="r", criterion_id="a", status="met")
    >>> response = Response(task_id="t", id="r", text="yes")
    >>> print(*explain([task], response, verdicts=[verdict]).sections["Reward"], sep="\\n")
    rubric (net): weight 2, value 1: adds 2.000  a: x
    rubric (net): the sum is divided by 2
    rubric (net): 1.000
    add rubric: 1.000
    divide by the sum of the weights, 1: 1.000
    paid: 1.000
    """
    from ..judging import judge as judge_answers
    from ..judging import open_ledger

    composer = Composer.from_config(reward)
    task, response = _find_answer(tasks, answer)
    calls: dict[str, dict[str, Any]] = {}
    with open_ledger(ledger) as store:
        if verdicts is None:
            for rubric, _ in composer.answers_to_judge([(task, response)]):
                verdicts = judge_answers(
                    rubric, [response], judge=judge, ledger=store, progress=False
                )
        rows = [v for v in verdicts or () if v.answer_ids == response.ids]
        # Verdicts that came from elsewhere have no call here.
        for key in store.get(_ledger_keys(rows)):
            call = store.explain(key)
            if "call" in call:
                calls[call["call"]] = call
    grade = composer.grade(task, response, rows)
    sections = {
        f"{task.id} / {response.id}": [task.conversation, "", response.text]
    }
    for n, call in enumerate(calls.values(), 1):
        sections[f"Call {n} of {call['judge']}: asked"] = [
            f"[{m['role']}] {m['content']}" for m in json.loads(call["request"])
        ]
        sections[f"Call {n} of {call['judge']}: replied"] = [call["reply"]]
    criteria = {c.id: c for c in composer.criteria_to_judge(task, response)}
    sections["Verdicts"] = [_verdict_line(v, criteria) for v in rows]
    sections["Reward"] = _reward_lines(composer, task, response, rows, grade)
    return Explanation(grade=grade, calls=[*calls.values()], sections=sections)


def _find_answer(
    tasks: TaskSource, answer: Response | str
) -> tuple[Task, Response]:
    """An answer with its task; DataError lists what there is."""
    by_id = {t.id: t for t in tasks_of(tasks)}
    responses = list(getattr(tasks, "responses", ()))
    if isinstance(answer, Response):
        responses.append(answer)
        answer = "/".join(answer.ids)
    by_ids = {"/".join(r.ids): r for r in responses if r.task_id in by_id}
    if answer not in by_ids:
        some = ", ".join([*by_ids][:5])
        raise DataError(
            f"there is no answer {answer!r} to these tasks",
            where="explain(answer=)",
            fix=f"write TASK/ANSWER, such as {some}" if some else "give a Response",
        )
    return by_id[by_ids[answer].task_id], by_ids[answer]


def _ledger_keys(verdicts: Iterable[Verdict]) -> list[str]:
    """The ledger's keys of verdicts, and of the votes that they were made of."""
    keys = []
    for v in verdicts:
        votes = [*v.meta.get("votes", ()), v.meta.get("first") or {}]
        keys += [v.key, *(vote.get("key") for vote in votes)]
    return [key for key in dict.fromkeys(keys) if key]


def _verdict_line(v: Verdict, criteria: dict[str, Criterion]) -> str:
    words = [v.criterion_id, v.status]
    if v.status == "level":
        words.append(format_number(v.value))
    if v.p is not None:
        words.append(f"P(met) {format_number(v.p, 2)}")
    text = criteria[v.criterion_id].text if v.criterion_id in criteria else ""
    reason = v.reason or v.failure or "no reason was given"
    return f"{', '.join(words)} ({v.judge}): {text} Why: {reason}"


def _ends(low: float, high: float) -> str:
    """One number, or both ends where unknown verdicts leave it open."""
    if low == high:
        return format_number(low)
    return f"{format_number(low)} to {format_number(high)}"


def _reward_lines(
    composer: Composer,
    task: Task,
    response: Response,
    verdicts: list[Verdict],
    grade: Grade,
) -> list[str]:
    """The arithmetic: the terms of each rubric, the components, and what is paid."""
    scores, steps = composer.scores_and_steps(task, response, verdicts)
    criteria = {c.id: c for c in composer.criteria_to_judge(task, response)}
    lines = []
    for c in composer.components:
        score, name = scores[c.name], c.name
        if not score.applies:
            lines.append(f"{name}: does not apply")
            continue
        if isinstance(c, RubricComponent):
            name = f"{c.name} ({c.how})"
            *sides, divisor = c.sum_terms(task, response, verdicts)
            for worst, best in zip(*sides, strict=True):
                value = f"{worst.value:g}"
                if worst.value != best.value:
                    value = "unknown"
                text = criteria[worst.id].text if worst.id in criteria else ""
                lines.append(
                    f"{name}: weight {worst.weight:g}, value {value}: adds "
                    f"{_ends(worst.contribution, best.contribution)}  {worst.id}: {text}"
                )
            lines.append(f"{name}: the sum is divided by {divisor:g}")
            quotients = [sum(t.contribution for t in s) / divisor for s in sides]
            if quotients != [score.low, score.high]:
                lines.append(
                    f"{name}: {_ends(*quotients)}, but a required criterion fails or may fail"
                )
        lines.append(f"{name}: {_ends(score.low, score.high)}")
    # The sum starts at 0, which says nothing where something is added.
    for step in steps[1:] or steps:
        text = STEP_TEXTS[step.kind].format(name=step.name)
        lines.append(f"{text}: {_ends(step.low, step.high)}")
    if grade.score is None:
        return [*lines, f"not paid: {grade.meta['excluded']}"]
    return [*lines, f"paid: {format_number(grade.score)}"]
