"""The judge's lint: eight plain questions about each criterion, asked as an ordinary rubric.

The criterion is the text that is judged. So it passes through the kit's own judge, with its fence
around hostile text, its ledger and its budget. The questions are in `questions.toml`. The findings
are opinions: their severity is "info".

The judge must be able to review a criterion. The local 1.5B judge ("small") cannot: in one-word mode
it named 1 of 26 planted faults and objected to 1 of 26 sound criteria beside them. Use a large
model; its recall is not measured here.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..data import Finding
from ..records import Criterion, Response, Task

OTHERS = 20  # other criteria that the judge sees beside the one it reviews


def opinions(
    tasks: Sequence[Task], *, judge: Any, ledger: Any, budget: Any
) -> list[Finding]:
    """Findings of a judge on every criterion that code does not decide.

    A last finding counts the questions that the judge left unknown. They are no faults.
    """
    from ..judging import judge as ask

    # Files beside the code are read at their use, so that the import stays cheap.
    words = tomllib.loads(
        Path(__file__).with_name("questions.toml").read_text(encoding="utf-8")
    )
    pairs = [(t, c) for t in tasks for c in t.criteria if not c.by_code]
    places = {f"lint-{n}": pair for n, pair in enumerate(pairs)}
    reviews = [_review(name, t, c, words) for name, (t, c) in places.items()]
    texts = [
        Response(task_id=i, id="criterion", text=c.text)
        for i, (_, c) in places.items()
    ]
    # Without a criterion for a judge there is nothing to ask.
    verdicts = (
        ask(reviews, texts, judge=judge, ledger=ledger, budget=budget)
        if texts
        else []
    )
    out = []
    for v in verdicts:
        # Questions ask for faults: met is a finding, unknown is counted below.
        if v.status != "met":
            continue
        task, criterion = places[v.task_id]
        question = words["questions"][v.criterion_id]
        out.append(
            Finding(
                code=f"judge-{v.criterion_id}",
                severity="info",
                message=f"{v.judge}: {question['fault']}{f' ({v.reason})' if v.reason else ''}",
                suggestion=question["fix"],
                task_id=task.id,
                criterion_id=criterion.id,
                text=criterion.text[:200],
            )
        )
    if unknown := sum(not v.is_known for v in verdicts):
        out.append(
            Finding(
                code="judge-unknown",
                severity="info",
                message=f"the judge left {unknown} of {len(verdicts)} questions unknown",
            )
        )
    return out


def _review(
    name: str, task: Task, criterion: Criterion, words: dict[str, Any]
) -> Task:
    """The task that asks about one criterion."""
    others = [f"- {c.text}" for c in task.criteria if c.id != criterion.id][:OTHERS]
    prompt = words["task"].format(
        prompt=task.conversation,
        others="\n".join(others) or "(none)",
        effect=words["loses"] if criterion.weight < 0 else words["gains"],
    )
    return Task(
        id=name,
        prompt=prompt.strip(),
        criteria=tuple(
            Criterion(id=i, text=q["text"]) for i, q in words["questions"].items()
        ),
        sources=task.sources,
    )
