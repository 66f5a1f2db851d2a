"""Draw what people should label next, as a table for a spreadsheet or with buttons in a notebook, and read the labels.

A spreadsheet and the `Labeller` fill in the same file, and the labeller saves it at every click.
"""

from __future__ import annotations

import html
import io
import json
import math
import random
from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from msgspec.structs import replace
from numpy.typing import NDArray

from ..data import TaskSet, load
from ..errors import DataError
from ..records import count_of, leaves
from ..records.tables import IDS, Results, labels_of, met_of
from ..system import paths, progress
from .agreement import JudgeDecisions, PeopleLabels, kappas_between, verdicts_of

if TYPE_CHECKING:
    from ipywidgets import Button, VBox

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
            rows.append(
                (
                    *response.ids,
                    c.id,
                    c.text,
                    json.dumps(c.levels) if c.levels else "",
                    c.points or "",
                    task.conversation,
                    response.text,
                )
            )
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
    return _table_to_fill_in(rows[units.isin(sample)], inclusion)


def _is_among(
    rows: pd.DataFrame, ids: Iterable[tuple[str, ...]]
) -> NDArray[np.bool_]:
    """True for each row to label that one of these (task, answer, criterion) names."""
    return pd.MultiIndex.from_frame(rows[ID_COLUMNS]).isin([*ids])


def _table_to_fill_in(rows: pd.DataFrame, inclusion: float) -> pd.DataFrame:
    """The drawn rows in the file's order, so that answers to one prompt are read together."""
    frame = rows.assign(inclusion=inclusion, rater="", label="")
    # Most sets have criteria that are met or unmet only: then these columns are empty.
    is_empty = (frame[["levels", "points"]] == "").all()
    return frame.drop(columns=is_empty.index[is_empty]).reset_index(drop=True)


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
    return frame.replace(r"^([=+@\t\r-])", r"'\1", regex=True).to_csv(index=False)


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


class Labeller:
    """Buttons for one person's labels; a notebook shows them, headless the question.

    source : rows of `kit.label`, or a TaskSet to draw 40 from. out : the CSV file. What it holds
    stays: labels of another person, and this person's from an earlier sitting, which goes on where
    it was. rater : who labels. verdicts : of a judge; shown to nobody, compared at the end.

    The file is that of `kit label`: `kit.load` reads it, whoever labelled and however far.

    >>> import tempfile
    >>> labels = load(paths.data("judge_labels.jsonl"))
    >>> file = Path(tempfile.mkdtemp()) / "labels.csv"
    >>> ann = Labeller(label(labels, n=3), out=file, rater="ann")
    >>> ann.choices()
    ['met', 'unmet', 'partly', 'unknown']
    >>> ann.answer("met", note="plain to see")
    >>> Labeller(label(labels, n=3), out=file, rater="ann").progress
    '1 of 3'
    """

    def __init__(
        self,
        source: pd.DataFrame | TaskSet,
        *,
        out: str | Path,
        rater: str,
        verdicts: JudgeDecisions = (),
    ):
        drawn = label(source) if isinstance(source, TaskSet) else source
        # For people to read: the file puts an apostrophe before what looks like a formula.
        self.texts = drawn
        # As the file holds them, so that ids compare equal.
        rows = _read_csv(io.StringIO(labels_as_csv(drawn)))
        self.path, self.rater = Path(out), rater
        self.verdicts = verdicts_of(verdicts)
        rows = rows.assign(rater=rater, label="", note="")
        self.rows = rows.set_index(ID_COLUMNS, drop=False)
        stored = _read_csv(self.path) if self.path.exists() else rows.head(0)
        stored = stored[stored["label"] != ""].set_index(ID_COLUMNS, drop=False)
        is_mine = stored["rater"] == rater
        self.others, mine = stored[~is_mine], stored[is_mine]
        if not stored.index.isin(self.rows.index).all():
            raise DataError(
                "the file holds labels on other questions",
                where=str(self.path),
                fix="give another out=, or the rows that the file was made of",
            )
        self.rows.update(mine.reindex(columns=["label", "note"]).fillna(""))
        # The first question without a label.
        self.place = int((self.rows["label"] != "").cumprod().sum())

    @property
    def progress(self) -> str:
        """How many questions have a label, of how many."""
        return f"{int((self.rows['label'] != '').sum())} of {len(self.rows)}"

    def choices(self) -> list[str]:
        """The labels that the criterion of this question takes; none at the end."""
        if self.place == len(self.rows):
            return []
        row = self.rows.iloc[self.place]
        if row.get("levels"):
            return [*json.loads(row["levels"]), "unknown"]
        if row.get("points"):
            # The file may hold 5 points as 5.0.
            top = float(row["points"])
            return [*(f"{n}/{top:g}" for n in range(int(top) + 1)), "unknown"]
        return ["met", "unmet", "partly", "unknown"]

    def answer(self, choice: str, *, note: str = "") -> None:
        """Label this question, save the file, and go on to the next question."""
        if choice not in self.choices():
            raise DataError(
                f"{choice!r} is not a label of this criterion",
                where="Labeller.answer",
                fix=f"one of {', '.join(self.choices())}",
            )
        self.rows.loc[[self.rows.index[self.place]], ["label", "note"]] = (
            choice,
            note,
        )
        paths.write(self.path, labels_as_csv(pd.concat([self.others, self.rows])))
        self.place += 1

    def back(self) -> None:
        """Return to the question before."""
        self.place = max(0, self.place - 1)

    def agreement(self) -> Results:
        """Kappa of each two people who labelled, and of each with the judge, over prompts."""
        labels = [*load(self.path).verdicts, *self.verdicts]
        return kappas_between([v for v in labels if v.ids in self.rows.index])

    def question_html(self) -> str:
        """The question as the page shows it: prompt, answer, criterion; no judge's verdict."""
        if not self.choices():
            file = html.escape(str(self.path))
            return (
                f"<p>All labels are in {file}.</p>{self.agreement()._repr_html_()}"
            )
        page = (
            f"<p><b>{self.progress}</b> labelled by {html.escape(self.rater)}</p>"
        )
        for name in ("prompt", "response", "criterion"):
            text = html.escape(str(self.texts.iloc[self.place][name]))
            title = "answer" if name == "response" else name
            page += f"<b>{title}</b><p style='white-space:pre-wrap'>{text}</p>"
        return page

    def _ipython_display_(self) -> None:
        from IPython import display

        # IPython has no types for these.
        show: Any = display.display
        as_html: Any = display.HTML
        first = as_html(self.question_html())
        show(first if progress.headless() else self.controls())

    def controls(self) -> VBox:
        """The question with its buttons, as a widget (ipywidgets 7.7 or 8)."""
        import ipywidgets as w

        text, note = w.HTML(), w.Text(placeholder="a note (optional)")
        buttons = w.HBox(layout=w.Layout(flex_flow="row wrap"))

        def draw() -> None:
            text.value, note.value = self.question_html(), ""
            buttons.children = [
                w.Button(description=name) for name in [*self.choices(), "back"]
            ]
            for button in buttons.children:
                button.on_click(click)

        def click(button: Button) -> None:
            if button.description == "back":
                self.back()
            else:
                self.answer(button.description, note=note.value)
            draw()

        draw()
        return w.VBox([text, note, buttons])


def _read_csv(source: Path | io.StringIO) -> pd.DataFrame:
    return pd.read_csv(source, dtype=str, keep_default_na=False)
