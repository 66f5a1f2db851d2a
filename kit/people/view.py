"""Answers with their verdicts, reasons and labels as one HTML page that needs no network."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from ..errors import DataError
from ..records import Grade, Verdict, group
from ..records.tables import plain, table
from ..system import paths
from .agreement import verdicts_of

FIELDS = ("status", "value", "p", "failure", "judge", "human", "reason")


def view(
    verdicts: Iterable[Verdict | Grade],
    *,
    tasks: Any,
    labels: Any = None,
    out: str | Path,
    title: str = "Judgments",
) -> Path:
    """Write verdicts as one page to read in a browser: answers, reasons, labels, filters, search.

    verdicts : verdicts, or grades (then the page shows scores and the parts of the reward).
    tasks : a TaskSet with the answers. labels : of people (default: those of the TaskSet). out : the file to write.
    All texts are escaped. The page is about as large as its texts.
    """
    import jinja2

    rows = list(verdicts)
    data = _content(rows, tasks, tasks if labels is None else labels)
    if not data["answers"]:
        raise DataError("there is no verdict to show", where="view")
    # In a script element only "<" can end the data.
    text = msgspec.json.encode(data).decode().replace("<", "\\u003c")
    template = Path(__file__).with_name("view.html").read_text(encoding="utf-8")
    # Jinja escapes nothing by default, and a title may hold markup.
    page = jinja2.Environment(autoescape=True).from_string(template)
    return paths.write(out, page.render(title=title, data=text))


def _content(
    rows: list[Verdict | Grade], tasks: Any, labels: Any
) -> dict[str, Any]:
    """Tasks with their criteria, and answers whose verdicts name a criterion by its place."""
    frame = table(verdicts_of(rows), human=labels, tasks=tasks)
    if absent := set(frame.loc[frame["prompt"].isna(), "task"]):
        raise DataError(
            f"there is no task {min(absent)!r}",
            where="view(tasks=)",
            fix="give the judged tasks",
        )
    # Verdicts do not hold the score of their answer; only grades do.
    grades = {g.ids: g for g in rows if isinstance(g, Grade)}
    # A verifier grades an answer without a verdict on any criterion.
    bare = [g for g in grades.values() if not g.verdicts]
    contents: list[dict[str, Any]] = []
    answers: list[dict[str, Any]] = []
    records = plain(
        [*frame.to_dict("records"), *table(bare, tasks=tasks).to_dict("records")]
    )
    for task_id, of_task in group((row["task"], row) for row in records).items():
        criteria: dict[str, dict[str, Any]] = {}
        for row in (row for row in of_task if "criterion" in row):
            row["reason"] = row["reason"] or ""
            about = {
                "id": row["criterion"],
                "text": row["text"],
                "weight": row["weight"],
            }
            criteria.setdefault(row["criterion"], about)
        places = {name: n for n, name in enumerate(criteria)}
        for name, part in group((row["response"], row) for row in of_task).items():
            grade = grades.get((task_id, name))
            answer = {
                "task": len(contents),
                "id": name,
                "score": grade and grade.score,
                "parts": grade.parts if grade else {},
            }
            answer["text"] = part[0]["answer"]
            answer["source"] = part[0]["source"]
            answer["verdicts"] = [
                {
                    "criterion": places[row["criterion"]],
                    **{k: row[k] for k in FIELDS},
                }
                for row in part
                if "criterion" in row
            ]
            answers.append(answer)
        about_task = {"id": task_id, "prompt": of_task[0]["prompt"]}
        contents.append({**about_task, "criteria": list(criteria.values())})
    return {"tasks": contents, "answers": answers, "graded": bool(grades)}
