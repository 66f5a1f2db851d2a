"""Answers to one task beside each other: criteria as rows, verdicts and reasons, differences marked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from ..records import Response, Task, Verdict, group
from .page import Html, template

TEMPLATE = Path(__file__).with_suffix(".html")


def side_by_side(
    task: Task, answers: Sequence[Response], verdicts: Iterable[Verdict]
) -> Html:
    """Answers as columns, criteria as rows; a row whose verdicts differ is marked.

    An answer has a column for each judge or person, so this compares judges as well.
    verdicts : those of other answers are left out. All texts are escaped.

    >>> from kit import Criterion
    >>> task = Task(id="t", prompt="Hi?", criteria=(Criterion(id="c", text="Greets."),))
    >>> answers = [Response(task_id="t", id=i, text=i) for i in ("a", "b")]
    >>> words = {"a": "met", "b": "unmet"}
    >>> verdicts = [Verdict(task_id="t", response_id=i, criterion_id="c", status=words[i]) for i in words]
    >>> "differs" in side_by_side(task, answers, verdicts).text
    True
    """
    of_answer = group((v.ids[:2], v) for v in verdicts)
    columns, texts = [], []
    for answer in answers:
        judges = group((v.judge, v) for v in of_answer.get(answer.ids, []))
        # An answer that nobody judged has a column, too.
        judges = judges or {"": []}
        texts.append((answer, len(judges)))
        for name, judged in judges.items():
            by_criterion = {v.criterion_id: v for v in judged}
            columns.append((answer, name, by_criterion))
    rows = []
    for criterion in task.criteria:
        cells = [cells.get(criterion.id) for _, _, cells in columns]
        values = {(v.status, v.value) for v in cells if v is not None}
        rows.append((criterion, cells, len(values) > 1))
    page = template(TEMPLATE)
    return Html(page.render(task=task, columns=columns, texts=texts, rows=rows))
