"""What a rubric set contains: tables of tasks, criteria, answers and labels, and numbers."""

from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd

from ..data import TaskSet, TaskSource, tasks_of
from ..plots import Figure, bars
from ..records import Verdict, count_of, leaves
from ..records.tables import labels_of, table
from ..system.settings import check_names

TASK_COLUMNS = [
    "task", "kind", "group", "split", "held_out", "criteria", "leaves", "length",
]  # fmt: skip
CRITERION_COLUMNS = [
    "task", "criterion", "weight", "scale", "required", "by_code", "check", "length",
]  # fmt: skip
ANSWER_COLUMNS = ["task", "answer", "source", "length"]


@dataclass(frozen=True)
class Summary:
    """Four DataFrames: tasks, criteria, answers and labels (one row per labelled criterion of an
    answer; the mean over raters). Lengths are in characters."""

    tasks: pd.DataFrame
    criteria: pd.DataFrame
    answers: pd.DataFrame
    labels: pd.DataFrame

    @property
    def checkable(self) -> float | None:
        """The share of criteria that code decides; None without criteria."""
        share = self.criteria["by_code"].mean()
        return float(share) if len(self.criteria) else None

    @property
    def coverage(self) -> float | None:
        """The share of (answer, criterion) pairs with a label; None without answers."""
        pairs = self.answers.merge(self.tasks, on="task")["leaves"].sum()
        return float(self.labels["human"].notna().sum() / pairs) if pairs else None

    def numbers(self) -> dict[str, int | float | None]:
        """Counts, shares and medians by name."""
        criteria, tasks = self.criteria, self.tasks
        return {
            "tasks": len(tasks),
            "held out": int(tasks["held_out"].sum()),
            "groups": tasks["group"].nunique(),
            "criteria": len(criteria),
            "criteria per task, median": float(tasks["criteria"].median()),
            "negative weights": int((criteria["weight"] < 0).sum()),
            "zero weights": int((criteria["weight"] == 0).sum()),
            "required": int(criteria["required"].sum()),
            "decided by code": self.checkable,
            "answers": len(self.answers),
            "labels": len(self.labels),
            "label coverage": self.coverage,
            "prompt length, median": float(tasks["length"].median()),
            "criterion length, median": float(criteria["length"].median()),
        }

    def table(self) -> pd.DataFrame:
        """The numbers as a table with the columns `name` and `value`."""
        return pd.DataFrame(
            # As objects, because a column of floats would print 3 tasks as 3.0.
            self.numbers().items(),
            columns=["name", "value"],
            dtype=object,
        )

    def plot(self, what: str = "criteria") -> Figure:
        """A bar chart. what : "criteria" (tasks by number of criteria), "weights", "lengths" (of
        prompts), "kinds" (of tasks) or "checks" (criteria by the check that decides them)."""
        columns = {
            "criteria": (self.tasks["criteria"], "Tasks by number of criteria"),
            "weights": (self.criteria["weight"], "Criteria by weight"),
            "lengths": (
                self.tasks["length"] // 200 * 200,
                "Tasks by prompt length in characters",
            ),
            # value_counts leaves NaN out, so tasks would be missing from the bars.
            "kinds": (self.tasks["kind"].fillna("none"), "Tasks by kind"),
            "checks": (
                self.criteria["check"].fillna("a judge"),
                "Criteria by who decides",
            ),
        }
        check_names([what], columns, where="Summary.plot(what=)")
        values, title = columns[what]
        counts = values.value_counts().sort_index()
        return bars(
            dict(zip(counts.index.map(str), counts.tolist(), strict=True)),
            title=title,
            x=title.split()[0].lower(),
            # Numbers stay in their own order.
            order=what in ("kinds", "checks"),
        )

    def __repr__(self) -> str:
        return f"Summary({count_of(len(self.tasks), 'task')}, {count_of(len(self.criteria), 'criterion')})"

    def __str__(self) -> str:
        return self.table().to_string(
            index=False, header=False, float_format="{:.3g}".format
        )

    def _repr_html_(self) -> str:
        return self.table().to_html(
            index=False, header=False, na_rep="", float_format="{:.3g}".format
        )


def summarize(tasks: TaskSource) -> Summary:
    """Count what a rubric set contains: tasks, criteria, weights, checks, answers, labels.

    tasks : a TaskSet, a file or tasks.

    >>> from kit.records import Criterion, Task
    >>> rows = [Task(id="t", prompt="Hi?", criteria=(Criterion(id="c", text="It greets."),))]
    >>> summarize(rows).numbers()["criteria"], summarize(rows).checkable
    (1, 0.0)
    """
    whole = tasks if isinstance(tasks, TaskSet) else TaskSet(tasks=tasks_of(tasks))
    task_rows, criterion_rows = [], []
    for t in whole:
        sizes = len(t.criteria), len(leaves(t.criteria)), len(t.conversation)
        task_rows.append((t.id, t.kind, t.group, t.split, t.held_out, *sizes))
        for c in t.criteria:
            check = (c.check or {}).get("name")
            row = c.weight, c.scale, c.required, c.by_code, check, len(c.text)
            criterion_rows.append((t.id, c.id, *row))
    return Summary(
        tasks=pd.DataFrame(task_rows, columns=TASK_COLUMNS),
        criteria=pd.DataFrame(criterion_rows, columns=CRITERION_COLUMNS),
        answers=pd.DataFrame(
            [(*r.ids, r.source, len(r.text)) for r in whole.responses],
            columns=ANSWER_COLUMNS,
        ),
        labels=labels_of(whole),
    )


def discrimination(
    tasks: TaskSet, verdicts: Iterable[Verdict] | None = None
) -> pd.DataFrame:
    """Which criteria tell the answers to a task apart, widest spread first.

    A criterion that every answer meets, or none, adds the same to all rewards: it teaches nothing.
    verdicts : of a judge; None = the set's own labels by people.
    Columns: task, criterion, text, weight, answers (with a known verdict), unknown, met (mean value
    in [0, 1]), spread (highest less lowest value), apart (spread > 0; False with one known answer).
    """
    if verdicts is None:
        criteria = pd.DataFrame(
            [(t.id, c.id, c.weight, c.text) for t in tasks for c in t.criteria],
            columns=["task", "criterion", "weight", "text"],
        )
        rows = (
            labels_of(tasks)
            .rename(columns={"human": "value"})
            .merge(criteria, on=["task", "criterion"])
        )
    else:
        rows = table(verdicts, tasks=tasks)
    by = rows.groupby(["task", "criterion", "text", "weight"], sort=False)["value"]
    spread = by.max() - by.min()
    # NaN > 0 is False: without a known verdict a criterion tells nothing apart.
    return pd.DataFrame(
        by.agg(answers="count", unknown=lambda x: x.isna().sum(), met="mean")
        .assign(spread=spread, apart=spread > 0)
        .reset_index()
        .sort_values("spread", ascending=False, ignore_index=True)
    )
