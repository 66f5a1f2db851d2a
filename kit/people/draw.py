"""Draw what people should label next, as a table for a spreadsheet, and read what they labelled."""

from __future__ import annotations

import json
import math
import random
from functools import reduce
from pathlib import Path
from typing import Any

import pandas as pd
from msgspec.structs import replace

from ..data import TaskSet, load
from ..errors import DataError
from ..records import leaves
from ..records.tables import IDS, labels_of, met_of
from ..system import paths
from .agreement import verdicts_of

# What a spreadsheet takes for a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r")
LEAST_PROMPTS = 5  # a corrected rate needs labels on five prompts


def questions(tasks: TaskSet) -> list[dict[str, Any]]:
    """Each answer with each criterion that a judge decides: a row of ids and texts."""
    rows = []
    for t in tasks:
        criteria = [c for c in leaves(t.criteria) if not c.by_code]
        for r in tasks.answers(t.id):
            texts = {"prompt": t.conversation, "response": r.text}
            for c in criteria:
                ids = {"task_id": t.id, "response_id": r.id, "criterion_id": c.id}
                row = {**ids, "criterion": c.text}
                row["levels"] = json.dumps(c.levels) if c.levels else ""
                row["points"] = c.points or ""
                rows.append({**row, **texts})
    return rows


def label(
    tasks: TaskSet,
    *,
    n: int = 40,
    verdicts: Any = None,
    whole: bool = False,
    seed: int = 0,
) -> pd.DataFrame:
    """Draw verdicts for people to give: one row each, with an empty column `label` to fill in.

    tasks : a TaskSet with answers. n : the number of rows to draw.
    verdicts : of a judge; then only rows that it judged are drawn. What it decided is not shown,
        because whoever labels should not know it.
    whole : draw whole prompts with all their answers (about n rows, at least five prompts).

    A label is met, unmet, partly or unknown, one of the levels in the column `levels`, or points
    such as 3/5. It says whether the text of the criterion holds, also where the weight is negative.
    The column `inclusion` is the probability of a row to be drawn. It is the same for all rows, so
    `kit.rate(design="random")` holds. `save_labels` writes the table, and `kit.load` reads it when
    it is filled in.
    """
    rows = questions(tasks)
    if verdicts is not None:
        decisions = {v.ids for v in verdicts_of(verdicts) if v.judge != "code"}
        ids = ("task_id", "response_id", "criterion_id")
        rows = [row for row in rows if tuple(map(row.get, ids)) in decisions]
    if not rows or n < 1:
        raise DataError(
            "there is nothing to label",
            where="label",
            fix="give answers to tasks whose criteria a judge decides, and n of 1 or more",
        )
    rng = random.Random(seed)
    if whole:
        # A set has another order in each process: the seed would draw other rows.
        prompts = list(dict.fromkeys(row["task_id"] for row in rows))
        size = max(LEAST_PROMPTS, math.ceil(n * len(prompts) / len(rows)))
        sample = set(rng.sample(prompts, min(size, len(prompts))))
        inclusion = len(sample) / len(prompts)
        rows = [row for row in rows if row["task_id"] in sample]
    else:
        inclusion = min(n, len(rows)) / len(rows)
        places = rng.sample(range(len(rows)), min(n, len(rows)))
        # In the file's order, so that answers to one prompt are read together.
        rows = [rows[i] for i in sorted(places)]
    frame = pd.DataFrame(rows).assign(inclusion=inclusion, rater="", label="")
    # Most sets have criteria that are met or unmet only: then these columns are empty.
    return frame.drop(
        columns=[k for k in ("levels", "points") if (frame[k] == "").all()]
    )


def save_labels(frame: pd.DataFrame, path: str | Path) -> Path:
    """Write rows to label as CSV. A file that exists may hold labels, so it is never replaced.

    A text that a spreadsheet would take for a formula (it begins with = + - @) gets an apostrophe
    in front; `kit.load` takes it off.
    """
    path = Path(path)
    if path.exists():
        raise DataError(
            "the file exists, and may hold labels",
            where=str(path),
            fix="give another name",
        )

    def safe(cell: Any) -> Any:
        # An answer such as =HYPERLINK(...) would run when a rater opens the file.
        is_formula = isinstance(cell, str) and cell.startswith(FORMULA)
        return f"'{cell}" if is_formula else cell

    return paths.write(path, frame.map(safe).to_csv(index=False))


def label_rows(source: Any) -> tuple[TaskSet, pd.DataFrame]:
    """Labelled answers, to tasks with the labelled criteria only, and a row for each label.

    source : a file or TaskSet, or several that are joined by their ids: [tasks, answers, labels].
    Columns: task, response, criterion (their ids); prompt, answer, text (of the criterion);
    cluster (the task's group, or its prompt); human: 1 met, 0 unmet, NaN where raters do not know
    or split evenly. Raters are averaged; .5 and more is met.
    """
    sources = source if isinstance(source, list | tuple) else [source]
    sets = [s if isinstance(s, TaskSet) else load(s) for s in sources]
    data = reduce(TaskSet.joined, sets)
    names = dict(zip(("task_id", "response_id", "criterion_id"), IDS, strict=True))
    names |= {"criterion": "text", "response": "answer"}
    frame = pd.DataFrame(questions(data)).rename(columns=names)
    frame = frame.merge(labels_of(data), on=IDS)
    met = met_of(frame["human"])
    if met.nunique() < 2:
        raise DataError(
            f"{len(frame)} labels, all alike or none",
            where="labels",
            fix="give answers with labels of people, some met and some unmet",
        )
    groups = {t.id: t.group or t.conversation for t in data}
    # Nobody is asked about a criterion without a label.
    pairs, tasks = set(zip(frame["task"], frame["criterion"], strict=True)), []
    for t in data:
        criteria = [c for c in t.criteria if (t.id, c.id) in pairs]
        tasks.append(replace(t, criteria=tuple(criteria)))
    rows = frame.assign(human=met, cluster=frame["task"].map(groups))
    return TaskSet(tasks=tasks, responses=data.responses), rows
