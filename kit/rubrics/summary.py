"""What a rubric set contains: tables of tasks, criteria, answers and labels, and numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from ..data import TaskSet, tasks_of
from ..errors import DataError
from ..records import leaves
from ..records.tables import labels_of, table


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
        return (
            float(self.criteria["by_code"].mean()) if len(self.criteria) else None
        )

    @property
    def coverage(self) -> float | None:
        """The share of (answer, criterion) pairs with a label; None without answers."""
        pairs = (
            self.answers["task"].map(self.tasks.set_index("task")["leaves"]).sum()
        )
        return float(self.labels["human"].notna().sum() / pairs) if pairs else None

    def numbers(self) -> dict[str, Any]:
        """Counts, shares and medians by name."""
        c, t = self.criteria, self.tasks
        return {
            "tasks": len(t),
            "held out": int(t["held_out"].sum()),
            "groups": t["group"].nunique(),
            "criteria": len(c),
            "criteria per task, median": float(t["criteria"].median()),
            "negative weights": int((c["weight"] < 0).sum()),
            "zero weights": int((c["weight"] == 0).sum()),
            "required": int(c["required"].sum()),
            "decided by code": self.checkable,
            "answers": len(self.answers),
            "labels": len(self.labels),
            "label coverage": self.coverage,
            "prompt length, median": float(t["length"].median()),
            "criterion length, median": float(c["length"].median()),
        }

    def table(self) -> pd.DataFrame:
        """The numbers as a table with the columns `name` and `value`."""
        return pd.DataFrame(
            # As objects, because a column of floats would print 3 tasks as 3.0.
            self.numbers().items(),
            columns=["name", "value"],
            dtype=object,
        )

    def plot(self, what: str = "criteria") -> Any:
        """A bar chart. what : "criteria" (tasks by number of criteria), "weights", "lengths" (of
        prompts), "kinds" (of tasks) or "checks" (criteria by the check that decides them)."""
        from .. import plots

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
        if what not in columns:
            raise DataError(
                f"there is no picture {what!r}", fix=f"one of {', '.join(columns)}"
            )
        values, title = columns[what]
        counts = values.value_counts().sort_index()
        return plots.bars(
            {str(k): int(n) for k, n in counts.items()},
            title=title,
            x=title.split()[0].lower(),
            # numbers stay in their own order
            order=what in ("kinds", "checks"),
        )

    def __repr__(self) -> str:
        return f"Summary({len(self.tasks)} tasks, {len(self.criteria)} criteria)"

    def __str__(self) -> str:
        return self.table().to_string(
            index=False, header=False, float_format="{:.3g}".format
        )

    def _repr_html_(self) -> str:
        return self.table().to_html(
            index=False, header=False, na_rep="", float_format="{:.3g}".format
        )


def summarize(tasks: Any) -> Summary:
    """Count what a rubric set contains: tasks, criteria, weights, checks, answers, labels.

    tasks : a TaskSet, a file or tasks.

    >>> from kit.records import Criterion, Task
    >>> rows = [Task(id="t", prompt="Hi?", criteria=(Criterion(id="c", text="It greets."),))]
    >>> summarize(rows).numbers()["criteria"], summarize(rows).checkable
    (1, 0.0)
    """
    whole = tasks if isinstance(tasks, TaskSet) else TaskSet(tasks=tasks_of(tasks))
    rows, criteria = [], []
    for t in whole:
        sizes = len(t.criteria), len(leaves(t.criteria)), len(t.conversation)
        rows.append((t.id, t.kind, t.group, t.split, t.held_out, *sizes))
        for c in t.criteria:
            check = (c.check or {}).get("name")
            row = c.weight, c.scale, c.required, c.by_code, check, len(c.text)
            criteria.append((t.id, c.id, *row))
    answers = [(*r.ids, r.source, len(r.text)) for r in whole.responses]
    return Summary(
        tasks=_frame("task kind group split held_out criteria leaves length", rows),
        criteria=_frame(
            "task criterion weight scale required by_code check length", criteria
        ),
        answers=_frame("task answer source length", answers),
        labels=labels_of(whole),
    )


def _frame(columns: str, rows: list[tuple[Any, ...]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=columns.split())


def discrimination(tasks: TaskSet, verdicts: Any = None) -> pd.DataFrame:
    """Which criteria tell the answers to a task apart, widest spread first.

    A criterion that every answer meets, or none, adds the same to all rewards: it teaches nothing.
    verdicts : of a judge; None = the set's own labels by people.
    Columns: task, criterion, text, weight, answers (with a known verdict), unknown, met (mean value
    in [0, 1]), spread (highest less lowest value), apart (spread > 0; False with one known answer).
    """
    if verdicts is None:
        rows = labels_of(tasks).rename(columns={"human": "value"})
        texts = [(t.id, c.id, c.weight, c.text) for t in tasks for c in t.criteria]
        rows = rows.merge(
            _frame("task criterion weight text", texts), on=["task", "criterion"]
        )
    else:
        rows = table(verdicts, tasks=tasks)
    by = rows.groupby(["task", "criterion", "text", "weight"], sort=False)["value"]
    out = by.agg(answers="count", unknown=lambda x: x.isna().sum(), met="mean")
    spread = (by.max() - by.min()).rename("spread")
    # NaN > 0 is False: without a known verdict a criterion tells nothing apart.
    out = out.assign(spread=spread, apart=spread > 0).reset_index()
    return out.sort_values("spread", ascending=False, ignore_index=True)
