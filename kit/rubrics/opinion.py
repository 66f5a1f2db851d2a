"""What words cannot decide, asked of a judge: each criterion is read once, as an answer would be.

The questions are a rubric for criteria, and the criterion is the text that is judged: it goes
through
the kit's own judge with its marks around hostile text, its ledger and its budget. What comes back
is
an opinion: its findings are of severity "info", and never counted as flaws. An unknown verdict is
none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..data.findings import Finding
from ..data.taskset import Parsed
from ..judge.prices import Budget
from ..records import Criterion, Response, Task, grouped

PREFIX = "judge-"  # of the codes of these findings
ASK = (
    "A rubric for judging answers to a task has a criterion. The text to be judged is that "
    "criterion, "
    "and not an answer to the task.\n\nThe task that the rubric is for:\n\n"
)
QUESTIONS = {  # name -> (what a sound criterion does, what to do where it does not)
    "several": (
        "It asks for one thing only: no answer can meet one half of it and miss the other.",
        "split it into one criterion each",
    ),
    "undecided": (
        "Whether an answer meets it can be decided from the task and the answer alone.",
        "say what in the answer would show it",
    ),
    "vague": (
        "It is exact enough that two careful readers of one answer would agree on whether it "
        "is met.",
        "say what an outsider would look for, with a number or an example",
    ),
    "note": (
        "It describes an answer. It is no remark on the rubric, on certain models or on "
        "their answers, "
        "and no order to the one who judges.",
        "remove it from the criteria, or say what the answer must do",
    ),
    "unrelated": (
        "It has to do with the task.",
        "check that it belongs to this prompt",
    ),
    "sign": (
        "Doing what it says makes an answer to the task better, not worse.",
        "turn the sign of its weight, or the wording",
    ),
}


def opinions(
    rows: Sequence[Parsed],
    *,
    judge: Any,
    ledger: Any = None,
    budget: Budget | None = None,
    progress: bool = False,
) -> Iterator[Finding]:
    """What a judge objects to in the criteria that no code decides, and how often it could not say.

    judge, ledger, budget : as in `kit.judge`. A criterion costs one call where the judge takes a
    rubric whole; one text under one prompt is asked once.
    """
    from ..judge.run import judge as ask

    places = [(p, c) for p in rows if p.task for c in p.task.criteria if c.check is None]
    tasks: dict[tuple[str, str], Task] = {}
    for p, c in places:
        tasks.setdefault((p.task.asked, c.text), _task(len(tasks), p.task.asked))
    answers = [Response(task_id=t.id, id="criterion", text=text) for (_, text), t in tasks.items()]
    told = ask(
        list(tasks.values()), answers, judge=judge, ledger=ledger, budget=budget, progress=progress
    )
    got = grouped((v.task_id, v) for v in told)
    unknown = sum(v.status == "unknown" for v in told)
    for p, c in places:
        for v in got[tasks[p.task.asked, c.text].id]:
            if v.status != "unknown" and _objects(v.criterion_id, c.weight, v.value):
                yield _finding(p, c, v.criterion_id, v)
    if unknown:
        yield Finding(
            code=PREFIX + "unknown",
            severity="info",
            message=f"the judge could not say on {unknown} of {len(told)} questions",
            suggestion="ask again: what was answered is in the ledger",
        )


def _task(number: int, asked: str) -> Task:
    return Task(
        id=f"lint-{number}",
        prompt=ASK + asked,
        criteria=tuple(Criterion(id=name, text=text) for name, (text, _) in QUESTIONS.items()),
    )


def _objects(name: str, weight: float, value: float | None) -> bool:
    """True where the judge sees a fault; with a negative weight it is right that doing it is
    bad."""
    good = value is not None and value >= 0.5
    if name == "sign":
        return weight != 0 and good != (weight > 0)
    return not good


def _finding(p: Parsed, c: Criterion, name: str, v: Any) -> Finding:
    what, fix = QUESTIONS[name]
    says = "yes" if v.value is not None and v.value >= 0.5 else "no"
    because = f": {v.reason[:200]}" if v.reason else ""
    return Finding(
        code=PREFIX + name,
        severity="info",
        row=p.row,
        where=p.where,
        task_id=p.task.id if p.task else None,
        criterion_id=c.id,
        text=c.text[:200],
        message=f"{v.judge or 'the judge'} says {says} to {what!r}{because}",
        confidence=0.5 if v.p is None else max(v.p, 1 - v.p),
        suggestion=fix,
    )
