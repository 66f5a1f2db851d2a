"""The judge's lint: eight plain questions about each criterion, asked as an ordinary rubric.

The criterion is the text that is judged. So it passes through the kit's own judge, with its fence
around hostile text, its ledger and its budget. The questions are in `questions.toml`. The findings
are opinions: their severity is "info".

The judge must be able to review a criterion. The local 1.5B judge ("small") cannot: in one-word mode
it named 1 of 26 planted faults and objected to 1 of 26 sound criteria beside them. Use a large
model; its recall is not measured here.
"""

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..data import Finding
from ..judging import Budget, JudgeSource, LedgerLike
from ..judging import judge as judge_answers
from ..records import Criterion, Response, Task, Verdict, count_of

# The judge sees so many other criteria beside the one that it reviews.
MAX_OTHER_CRITERIA = 20


def judge_findings(
    tasks: Sequence[Task],
    *,
    judge: JudgeSource,
    ledger: LedgerLike,
    budget: Budget | None,
) -> list[Finding]:
    """Findings of a judge on every criterion that code does not decide.

    A last finding counts the questions that the judge left unknown. They are not faults.
    """
    # Files beside the code are read at their use, so that the import stays cheap.
    wording = tomllib.loads(
        Path(__file__).with_name("questions.toml").read_text("utf-8")
    )
    pairs = [(t, c) for t in tasks for c in t.criteria if not c.by_code]
    if not pairs:
        return []
    reviewed = {f"lint-{n}": pair for n, pair in enumerate(pairs)}
    verdicts = judge_answers(
        [_review_task(name, *pair, wording) for name, pair in reviewed.items()],
        [
            Response(task_id=name, id="criterion", text=criterion.text)
            for name, (_, criterion) in reviewed.items()
        ],
        judge=judge,
        ledger=ledger,
        budget=budget,
    )
    # Questions ask for faults: met is a finding, unknown is counted below.
    findings = [
        _judge_finding(v, *reviewed[v.task_id], wording["questions"])
        for v in verdicts
        if v.status == "met"
    ]
    if n_unknown := sum(not v.is_known for v in verdicts):
        findings.append(
            Finding(
                code="judge-unknown",
                severity="info",
                message=f"the judge left {n_unknown} of {count_of(len(verdicts), 'question')} unknown",
            )
        )
    return findings


def _judge_finding(
    verdict: Verdict, task: Task, criterion: Criterion, questions: dict[str, Any]
) -> Finding:
    question = questions[verdict.criterion_id]
    reason = f" ({verdict.reason})" if verdict.reason else ""
    return Finding(
        code=f"judge-{verdict.criterion_id}",
        severity="info",
        message=f"{verdict.judge}: {question['fault']}{reason}",
        suggestion=question["fix"],
        task_id=task.id,
        criterion_id=criterion.id,
        text=criterion.text[:200],
    )


def _review_task(
    name: str, task: Task, criterion: Criterion, wording: dict[str, Any]
) -> Task:
    """The task that asks about one criterion."""
    others = [f"- {c.text}" for c in task.criteria if c.id != criterion.id]
    prompt = wording["task"].format(
        prompt=task.conversation,
        others="\n".join(others[:MAX_OTHER_CRITERIA]) or "(none)",
        effect=wording["loses" if criterion.weight < 0 else "gains"],
    )
    return Task(
        id=name,
        prompt=prompt.strip(),
        criteria=tuple(
            Criterion(id=i, text=question["text"])
            for i, question in wording["questions"].items()
        ),
        sources=task.sources,
    )
