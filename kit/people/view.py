"""Answers with their verdicts, reasons and labels as one HTML page that needs no network."""

from pathlib import Path
from typing import Any

import msgspec

from ..data import TaskSet
from ..errors import DataError
from ..plots import template
from ..records import Grade, Verdict
from ..records.tables import plain, table
from ..system import paths
from .agreement import (
    JudgeDecisions,
    PeopleLabels,
    verdicts_of,
    warn_of_lost_labels,
)

VERDICT_FIELDS = (
    "criterion", "status", "value", "p", "failure", "judge", "human", "reason",
)  # fmt: skip


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
    """Tasks with their criteria by id, and the answers with their verdicts, as they were judged."""
    # Verdicts do not hold the score of their answer; only grades do.
    grades = {g.answer_ids: g for g in decisions if isinstance(g, Grade)}
    page_tasks: dict[str, dict[str, Any]] = {}
    answers: dict[tuple[str, str], dict[str, Any]] = {}
    for row in _table_rows(decisions, tasks, labels):
        ids = row["task"], row["response"]
        task = page_tasks.setdefault(
            row["task"], {"prompt": row["prompt"], "criteria": {}}
        )
        if ids not in answers:
            grade = grades.get(ids)
            answers[ids] = {
                "task": row["task"],
                "id": row["response"],
                "score": grade.score if grade else None,
                "parts": grade.parts if grade else {},
                "text": row["answer"],
                "source": row["source"],
                "verdicts": [],
            }
        # The row of a grade without verdicts has no criterion.
        if "criterion" in row:
            # Once for all answers, so that the page stays small.
            about = {"text": row["text"], "weight": row["weight"]}
            task["criteria"][row["criterion"]] = about
            answers[ids]["verdicts"].append({f: row[f] for f in VERDICT_FIELDS})
    return {
        "tasks": page_tasks,
        "answers": [*answers.values()],
        "graded": bool(grades),
    }


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
