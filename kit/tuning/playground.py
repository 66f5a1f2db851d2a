"""Edit a criterion, its weight or the judge's prompt in a notebook, judge again, and see what flipped."""

import html
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ..data import TaskSet, save
from ..errors import KitError, MissingError
from ..judging import LedgerLike, Usage, estimate, format_cost, judge, open_ledger
from ..plots import Html, side_by_side, template
from ..records import Response, count_of, group
from ..rewards import grade
from ..stats import format_number
from ..system import paths, progress
from .workbench import WorkbenchJudge, first_prompt, judge_with_prompt

# A field counts when it is left, not at each key.
WIDE_FIELD: dict[str, Any] = {
    "layout": {"width": "98%"},
    "continuous_update": False,
}


class Playground:
    """Fields for the criteria and the judge's prompt; a notebook shows them, headless nothing is judged.

    tasks : a TaskSet with answers, and labels where there are any. judge : the name or mapping of a
    judge that has a prompt. out : the folder for `keep`. ledger : as in `kit.judge`; what it holds is free.

    >>> from kit.records import Criterion, Task
    >>> task = Task(id="t", prompt="Hi?", criteria=(Criterion(id="c", text="Greets."),))
    >>> answer = Response(task_id="t", id="r", text="Hello!")
    >>> play = Playground(TaskSet(tasks=[task], responses=[answer]), judge="endpoint:m", ledger=False)
    >>> play.edit("t", "c", text="Says hello.", weight=2)
    >>> play.estimate([answer]).calls
    2
    """

    def __init__(
        self,
        tasks: TaskSet,
        *,
        judge: WorkbenchJudge,
        out: str | Path = ".",
        ledger: LedgerLike = None,
    ):
        self.tasks, self.judge, self.out = tasks, judge, Path(out)
        self.ledger = open_ledger(ledger)
        self.first_prompt = self.prompt = first_prompt(judge)
        self.edited = dict(tasks.by_id)

    def edit(self, task: str, criterion: str, **fields: Any) -> None:
        """Give a criterion another text= or weight=."""
        old = self.edited[task]
        criteria = {c.id: c for c in old.criteria}
        criteria[criterion] = replace(criteria[criterion], **fields)
        self.edited[task] = replace(old, criteria=tuple(criteria.values()))

    def sides(self) -> dict[str, dict[str, Any]]:
        """What is judged "before" the edits and "now": tasks and judge."""
        return {
            "before": {
                "tasks": self.tasks.tasks,
                "judge": judge_with_prompt(self.judge, self.first_prompt),
            },
            "now": {
                "tasks": [*self.edited.values()],
                "judge": judge_with_prompt(self.judge, self.prompt),
            },
        }

    def estimate(self, answers: Sequence[Response]) -> Usage:
        """The most that judging these answers before and after the edits costs; stored verdicts are free."""
        before, now = self.sides().values()
        options: dict[str, Any] = {"responses": answers, "ledger": self.ledger}
        return estimate(**before, **options) + estimate(**now, **options)

    def cost(self, answers: Sequence[Response]) -> str:
        """What judging these answers costs, as the button says it; a recorded judge may have no verdict."""
        usage = self.estimate(answers)
        if usage.calls:
            return f"at most {count_of(usage.calls, 'call')}, {format_cost(usage.cost, 4)}"
        # Nothing is asked, so only the judging itself can tell whether all is there.
        try:
            self.compare(answers)
        except MissingError:
            return "this judge has no verdict for a changed text"
        return "free, all stored"

    def compare(self, answers: Sequence[Response]) -> Html:
        """Judge these answers before and after the edits: what flipped, scores, and labels beside them."""
        rows = [v for v in self.tasks.verdicts if v.judge.startswith("human")]
        values, scores = [], []
        for name, side in self.sides().items():
            verdicts = judge(
                **side, responses=answers, ledger=self.ledger, progress=False
            )
            values.append({v.ids: v.value for v in verdicts})
            scores.append(
                {g.answer_ids: g.score for g in grade(side["tasks"], verdicts)}
            )
            rows += [replace(v, judge=name) for v in verdicts]
        before, now = values
        page = template(Path(__file__).with_suffix(".html")).render(
            flips=sum(now[ids] != before[ids] for ids in now),
            total=count_of(len(now), "verdict"),
            tasks=self.edited,
            by_task=group((a.task_id, a) for a in answers),
            scores=scores,
            format_number=format_number,
            side_by_side=partial(side_by_side, verdicts=rows),
        )
        return Html(page)

    def keep(self) -> Path:
        """Write rubrics.jsonl and the judge's prompt.txt, as they are edited; returns their folder."""
        save(self.out / "rubrics.jsonl", TaskSet(tasks=[*self.edited.values()]))
        return paths.write(self.out / "prompt.txt", self.prompt + "\n").parent

    def choose_answers(self, task: str, number: int) -> list[Response]:
        """The first answers of the set, those of a task before all others."""
        return sorted(self.tasks.responses, key=lambda a: a.task_id != task)[
            :number
        ]

    def _ipython_display_(self) -> None:
        from IPython import display

        show: Any = display.display
        answer = self.tasks.responses[0]
        still = side_by_side(
            self.edited[answer.task_id], [answer], self.tasks.verdicts
        )
        show(still if progress.headless() else self.controls())

    def controls(self) -> object:
        """The fields and buttons, as a widget (ipywidgets 7.7 or 8)."""
        return PlaygroundControls(self).box


class PlaygroundControls:
    """The fields and buttons of a playground. box : all of them, as a widget."""

    def __init__(self, playground: Playground):
        import ipywidgets as w

        self.playground = playground
        self.menu = w.Dropdown(description="task", options=[*playground.edited])
        self.number = w.BoundedIntText(1, description="answers", min=1, max=10)
        self.prompt = w.Textarea(playground.prompt, rows=6, **WIDE_FIELD)
        self.fields, self.result = w.VBox(), w.HTML()
        self.run = w.Button(layout=w.Layout(width="auto"))
        keep = w.Button(description="Keep as files")
        self.draw()
        self.menu.observe(self.draw, "value")
        for field in (self.number, self.prompt):
            field.observe(self.read, "value")
        self.run.on_click(self.judge_now)
        keep.on_click(self.keep_now)
        self.box = w.VBox(
            [
                self.menu,
                self.number,
                w.HTML("<b>Weights and criteria</b>"),
                self.fields,
                w.HTML("<b>Prompt</b>"),
                self.prompt,
                w.HBox([self.run, keep]),
                self.result,
            ]
        )

    def draw(self, _: object = None) -> None:
        """Show the criteria of the task in the menu: for each a field with its weight beside one with its text."""
        import ipywidgets as w

        rows = []
        for c in self.playground.edited[self.menu.value].criteria:
            weight = w.FloatText(c.weight, layout=w.Layout(width="6em"))
            text = w.Textarea(c.text, rows=2, **WIDE_FIELD)
            for field in (weight, text):
                field.observe(self.read, "value")
            rows.append(w.HBox([weight, text]))
        self.fields.children = rows
        self.read()

    def read(self, _: object = None) -> list[Response]:
        """Take over all fields, and say on the button what a click costs; the answers to judge."""
        play, task = self.playground, self.menu.value
        play.prompt = self.prompt.value
        criteria = play.edited[task].criteria
        for c, row in zip(criteria, self.fields.children, strict=True):
            weight, text = row.children
            play.edit(task, c.id, text=text.value, weight=weight.value)
        answers = play.choose_answers(task, self.number.value)
        self.run.description = f"Judge: {play.cost(answers)}"
        return answers

    def judge_now(self, _: object) -> None:
        """Show what the edits change."""
        try:
            self.result.value = self.playground.compare(self.read()).text
        except KitError as error:
            # An error in a click would be seen in a log only.
            self.result.value = f"<pre>{html.escape(str(error))}</pre>"
        self.read()

    def keep_now(self, _: object) -> None:
        """Write the files, and say where they are."""
        folder = html.escape(str(self.playground.keep()))
        self.result.value = f"<p>rubrics.jsonl and prompt.txt are in {folder}.</p>"
