"""Answers with their verdicts, reasons and labels as one HTML page that needs no network."""

from pathlib import Path
from typing import Any

import msgspec

from ..data import TaskSet
from ..errors import DataError
from ..plots import template
from ..records import Grade, Verdict, group
from ..records.tables import plain, table
from ..system import paths
from .agreement import (
    JudgeDecisions,
    PeopleLabels,
    verdicts_of,
    warn_of_lost_labels,
)

VERDICT_FIELDS = ("status", "value", "p", "failure", "judge", "human")


def view(
    verdicts: JudgeDecisions,
    *,
    tasks: TaskSet,
    labels: PeopleLabels | None = None,
    out: str | Path,
    title: str = "Judgments",
) -> Path:
    """Write verdicts as one page to read in a browser: answers, reasons, labels, filters, search.

    verdicts : verdicts, or grades (then the page shows scores and the parts of the reward).
    tasks : a TaskSet with the answers. labels : of people (default: those of the TaskSet). out : the file to write.
    All texts are escaped. The page is about as large as its texts.
    """
    decisions = list(verdicts)
    if labels is not None:
        warn_of_lost_labels(labels, decisions)
    data = _page_data(decisions, tasks, tasks if labels is None else labels)
    if not data["answers"]:
        raise DataError("there is no verdict to show", where="view")
    # In a script element only "<" can end the data.
    text = msgspec.json.encode(data).decode().replace("<", "\\u003c")
    page = template(Path(__file__).with_suffix(".html"))
    return paths.write(out, page.render(title=title, data=text))


def _page_data(
    decisions: list[Verdict | Grade], tasks: TaskSet, labels: PeopleLabels
) -> dict[str, Any]:
    """Tasks with their criteria, and answers whose verdicts name a criterion by its place."""
    # Verdicts do not hold the score of their answer; only grades do.
    grades = {g.answer_ids: g for g in decisions if isinstance(g, Grade)}
    page_tasks: list[dict[str, Any]] = []
    answers: list[dict[str, Any]] = []
    rows = _table_rows(decisions, tasks, labels)
    for task_id, of_task in group((row["task"], row) for row in rows).items():
        criteria = {
            row["criterion"]: {
                "id": row["criterion"],
                "text": row["text"],
                "weight": row["weight"],
            }
            for row in of_task
            if "criterion" in row
        }
        for name, part in group((row["response"], row) for row in of_task).items():
            grade = grades.get((task_id, name))
            answer = _answer_data(part, grade, [*criteria])
            answers.append({"task": len(page_tasks), **answer})
        page_tasks.append(
            {
                "id": task_id,
                "prompt": of_task[0]["prompt"],
                "criteria": [*criteria.values()],
            }
        )
    return {"tasks": page_tasks, "answers": answers, "graded": bool(grades)}


def _table_rows(
    decisions: list[Verdict | Grade], tasks: TaskSet, labels: PeopleLabels
) -> list[dict[str, Any]]:
    """A row for each verdict, and one for each grade without any: a verifier decides by no criterion."""
    verdicts = table(verdicts_of(decisions), human=labels, tasks=tasks)
    if absent := set(verdicts.loc[verdicts["prompt"].isna(), "task"]):
        raise DataError(
            f"there is no task {min(absent)!r}",
            where="view(tasks=)",
            fix="give the judged tasks (--tasks)",
        )
    bare = [g for g in decisions if isinstance(g, Grade) and not g.verdicts]
    grades = table(bare, tasks=tasks)
    return list(plain(verdicts.to_dict("records") + grades.to_dict("records")))


def _answer_data(
    rows: list[dict[str, Any]], grade: Grade | None, criteria: list[str]
) -> dict[str, Any]:
    """An answer with its verdicts. rows : of the table of verdicts or grades. criteria : the task's ids."""
    return {
        "id": rows[0]["response"],
        "score": grade.score if grade else None,
        "parts": grade.parts if grade else {},
        "text": rows[0]["answer"],
        "source": rows[0]["source"],
        "verdicts": [
            {
                **{field: row[field] for field in VERDICT_FIELDS},
                "criterion": criteria.index(row["criterion"]),
                "reason": row["reason"] or "",
            }
            for row in rows
            if "criterion" in row
        ],
    }
