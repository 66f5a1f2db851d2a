"""Label answers in a notebook: one question at a time, every click saved in the file of `kit label`."""

from __future__ import annotations

import html
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from ..data import TaskSet, load
from ..errors import DataError
from ..records.tables import Results
from ..system import paths, progress
from .agreement import JudgeDecisions, kappas_between, verdicts_of
from .label_table import ID_COLUMNS, label, labels_as_csv

if TYPE_CHECKING:
    from ipywidgets import Button, VBox


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
        row = self.rows.index[self.place]
        self.rows.loc[[row], ["label", "note"]] = choice, note
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
