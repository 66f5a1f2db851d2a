"""Draw what people should label next, as a table for a spreadsheet, and read what they labelled."""

import json
import math
import random
from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from msgspec.structs import replace
from numpy.typing import NDArray

from ..data import TaskSet, load
from ..errors import DataError
from ..records import count_of, leaves
from ..records.tables import IDS, labels_of, met_of
from ..system import paths
from .agreement import JudgeDecisions, PeopleLabels, verdicts_of

LabelFile = TaskSet | str | Path

ID_COLUMNS = ["task_id", "response_id", "criterion_id"]
QUESTION_COLUMNS = [
    *ID_COLUMNS, "criterion", "levels", "points", "prompt", "response",
]  # fmt: skip


def label_questions(tasks: TaskSet) -> pd.DataFrame:
    """Each answer with each criterion that a judge decides: a row of ids and texts."""
    rows = []
    for task in tasks:
        criteria = [c for c in leaves(task.criteria) if not c.by_code]
        for response, c in product(tasks.answers(task.id), criteria):
            levels = json.dumps(c.levels) if c.levels else ""
            about = (
                c.text,
                levels,
                c.points or "",
                task.conversation,
                response.text,
            )
            rows.append((*response.ids, c.id, *about))
    return pd.DataFrame(rows, columns=QUESTION_COLUMNS)


def label(
    tasks: TaskSet,
    *,
    n: int = 40,
    verdicts: JudgeDecisions | None = None,
    labels: PeopleLabels = (),
    whole: bool = False,
    seed: int = 0,
) -> pd.DataFrame:
    """Draw verdicts for people to give: one row each, with an empty column `label` to fill in.

    tasks : a TaskSet with answers. n : the number of rows to draw.
    verdicts : of a judge; then only rows that it judged are drawn. What it decided is not shown,
        because whoever labels should not know it.
    labels : of people, from an earlier draw; then only rows (with whole: prompts) without a label
        are drawn. Both draws together are one random sample, so the rows keep its `inclusion`.
    whole : draw whole prompts with all their answers (about n rows, at least five prompts).

    A label is met, unmet, partly or unknown, one of the levels in the column `levels`, or points
    such as 3/5. It says whether the text of the criterion holds, also where the weight is negative.
    The column `inclusion` is the probability of a row to be drawn. It is the same for all rows, so
    `kit.rate(design="random")` holds. `save_labels` writes the table, and `kit.load` reads it when
    it is filled in.
    """
    rows = label_questions(tasks)
    if verdicts is not None:
        judged = [v.ids for v in verdicts_of(verdicts) if v.judge != "code"]
        rows = rows[_is_among(rows, judged)]
    earlier = labels_of(labels)
    units, size = rows.index, n
    if whole:
        units = pd.Index(rows["task_id"])
        # A corrected rate needs labels on five prompts.
        size = max(5, math.ceil(n * units.nunique() / max(len(rows), 1)))
    labelled = units[_is_among(rows, earlier[IDS].itertuples(index=False))]
    pool = list(units[~units.isin(labelled)].unique())
    if not pool or n < 1:
        raise DataError(
            "there is nothing to label",
            where="label",
            fix="give answers to tasks whose criteria a judge decides, and n of 1 or more",
        )
    sample = random.Random(seed).sample(pool, min(size, len(pool)))
    inclusion = next(iter(earlier["inclusion"].dropna()), len(sample) / len(pool))
    # In the file's order, so that answers to one prompt are read together.
    drawn = rows[units.isin(sample)].assign(inclusion=inclusion, rater="", label="")
    # Most sets have criteria that are met or unmet only: then these columns are empty.
    is_empty = (drawn[["levels", "points"]] == "").all()
    return drawn.drop(columns=is_empty.index[is_empty]).reset_index(drop=True)


def _is_among(
    rows: pd.DataFrame, ids: Iterable[tuple[str, ...]]
) -> NDArray[np.bool_]:
    """True for each row to label that one of these (task, answer, criterion) names."""
    return pd.MultiIndex.from_frame(rows[ID_COLUMNS]).isin([*ids])


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
    return paths.write(path, labels_as_csv(frame))


def labels_as_csv(frame: pd.DataFrame) -> str:
    """Rows to label as the text of a CSV file that no spreadsheet runs."""

    # A spreadsheet takes such a cell for a formula: an answer such as =HYPERLINK(...) would run
    # when a rater opens the file.
    safe = frame.replace(r"^([=+@\t\r-])", r"'\1", regex=True)
    return str(safe.to_csv(index=False))


def label_rows(
    source: LabelFile | Sequence[LabelFile],
) -> tuple[TaskSet, pd.DataFrame]:
    """Labelled answers, to tasks with the labelled criteria only, and a row for each label.

    source : a file or TaskSet, or several that are joined by their ids: [tasks, answers, labels].
    Columns: task, response, criterion (their ids); prompt, answer, text (of the criterion);
    cluster (the task's group, or its prompt); human: 1 met, 0 unmet, NaN where raters do not know
    or split evenly. Raters are averaged; .5 and more is met.
    """
    sources = [source] if isinstance(source, LabelFile) else source
    data = reduce(
        TaskSet.joined, (s if isinstance(s, TaskSet) else load(s) for s in sources)
    )
    names = dict(zip(ID_COLUMNS, IDS, strict=True))
    names |= {"criterion": "text", "response": "answer"}
    rows = label_questions(data).rename(columns=names)
    rows = rows.merge(labels_of(data), on=IDS)
    is_met = met_of(rows["human"])
    if is_met.nunique() < 2:
        raise DataError(
            f"{count_of(len(rows), 'label')}, all alike or none",
            where="labels",
            fix="give answers with labels of people, some met and some unmet",
        )
    clusters = {t.id: t.group or t.conversation for t in data}
    rows = rows.assign(human=is_met, cluster=rows["task"].map(clusters))
    # Nobody is asked about a criterion that has no label.
    labelled = set(zip(rows["task"], rows["criterion"], strict=True))
    tasks = []
    for task in data:
        criteria = [c for c in task.criteria if (task.id, c.id) in labelled]
        tasks.append(replace(task, criteria=tuple(criteria)))
    return TaskSet(tasks=tasks, responses=data.responses), rows
