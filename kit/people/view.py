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


def view(
    verdicts: Iterable[Verdict | Grade],
    *,
    tasks: Any,
    labels: Any = None,
    out: str | Path,
    title: str = "Judgments",
) -> Path:
    """Write verdicts as one page to read in a browser: answers, reasons, labels, filters, search.

    verdicts : verdicts, or grades (then the page shows scores). tasks : a TaskSet with the answers.
    labels : of people (default: those of the TaskSet). out : the file to write.
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
    page = jinja2.Environment(autoescape=True).from_string(template)
    return paths.write(out, page.render(title=title, data=text))


def _content(rows: list[Verdict | Grade], tasks: Any, labels: Any) -> dict[str, Any]:
    """Tasks with their criteria, and answers whose verdicts name a criterion by its place."""
    frame = table(verdicts_of(rows), human=labels, tasks=tasks)
    if absent := set(frame.loc[frame["prompt"].isna(), "task"]):
        raise DataError(
            f"there is no task {min(absent)!r}", where="view(tasks=)", fix="give the judged tasks"
        )
    scores = {g.ids: g.score for g in rows if isinstance(g, Grade)}
    places = {}
    contents = []
    by_task = group((row["task"], row) for row in plain(frame.to_dict("records")))
    for task, part in by_task.items():
        criteria = {r["criterion"]: r for r in part}
        places[task] = {name: n for n, name in enumerate(criteria)}
        columns = {"id": "criterion", "text": "text", "weight": "weight"}
        about = [{k: r[c] for k, c in columns.items()} for r in criteria.values()]
        contents.append({"id": task, "prompt": part[0]["prompt"], "criteria": about})
    numbers = {task: n for n, task in enumerate(by_task)}
    names = ("status", "value", "p", "failure", "judge", "human")
    answers = []
    for part in by_task.values():
        for ids, verdicts in group(((r["task"], r["response"]), r) for r in part).items():
            answers.append(
                {
                    "task": numbers[ids[0]],
                    "id": ids[1],
                    "text": verdicts[0]["answer"],
                    "source": verdicts[0]["source"],
                    "score": scores.get(ids),
                    "verdicts": [
                        {
                            "criterion": places[ids[0]][r["criterion"]],
                            "reason": r["reason"] or "",
                            **{name: r[name] for name in names},
                        }
                        for r in verdicts
                    ],
                }
            )
    return {"tasks": contents, "answers": answers, "graded": bool(scores)}
