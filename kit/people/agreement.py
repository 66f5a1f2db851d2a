"""A judge beside people: agreement overall and per criterion, and the rate that people would give."""

from __future__ import annotations

import html
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from .. import stats
from ..errors import DataError
from ..records import Grade, Verdict
from ..records.tables import Results, met_of, table
from ..stats import Agreement, Estimate

WORST = 10  # disagreements that a report lists
SIDE = 0.5  # values from here on are on the side of "met"


def verdicts_of(rows: Iterable[Verdict | Grade]) -> list[Verdict]:
    """The verdicts of grades; verdicts stay what they are."""
    out: list[Verdict] = []
    for row in rows:
        out += row.verdicts if isinstance(row, Grade) else (row,)
    return out


def beside(
    tasks: Any, labels: Any, verdicts: Iterable[Verdict | Grade]
) -> pd.DataFrame:
    """Verdicts of a judge beside labels, a row each; those by code and by people are left out.

    Adds `credit` and `due`: 1 where judge and people give credit. That is "met", and "unmet" where
    the weight of the criterion is negative.
    """
    frame = table(verdicts_of(verdicts), human=labels, tasks=tasks)
    others = (frame["judge"] == "code") | frame["judge"].str.startswith("human")
    frame = frame[~others].reset_index(drop=True)
    if not frame["human"].notna().any():
        raise DataError(
            "no label belongs to a verdict of the judge",
            where="labels",
            fix="label the answers that were judged; task, answer and criterion ids must be equal",
        )
    turn = frame["weight"] < 0
    for column, source in (("credit", "value"), ("due", "human")):
        side = met_of(frame[source])
        frame[column] = side.where(~turn, 1 - side)
    return frame


@dataclass(frozen=True)
class AgreementReport:
    """What `agreement_report` returns.

    overall : kappa, raw agreement and the rates, with intervals. criteria : a DataFrame with one
    row per criterion: rows known to both (n), kappa, accuracy, unknown (labelled rows on which the
    judge is unknown), too_kind and too_strict (the judge gives credit that people refuse, and the
    reverse). worst : the ten disagreements on which the judge is surest.
    """

    overall: Agreement
    criteria: pd.DataFrame
    worst: pd.DataFrame
    unknown: int

    @property
    def estimate(self) -> Estimate:
        """Kappa over all criteria."""
        return self.overall.kappa

    def table(self) -> pd.DataFrame:
        """The criteria with their estimates as text."""
        texts = {
            name: self.criteria[name].map(str) for name in ("kappa", "accuracy")
        }
        return self.criteria.assign(**texts)

    def plot(self, *, most: int = 20) -> Any:
        """A forest: accuracy per criterion, those with most labels first."""
        from .. import plots

        rows = self.criteria.head(most)
        names = rows["criterion"] + ": " + rows["text"]
        return plots.forest(
            dict(zip(names, rows["accuracy"], strict=True)),
            title="Agreement with people",
        )

    def __str__(self) -> str:
        note = f"{self.unknown} labelled rows are unknown to the judge; they are left out"
        return f"{self.overall}\n{note}\n\n{self.table().to_string(index=False)}"

    def _repr_html_(self) -> str:
        measures = Results(self.overall.measures())
        note = f"{self.unknown} labelled rows are unknown to the judge; they are left out."
        text = html.escape(f"{note} {self.overall.note}")
        parts = [measures._repr_html_(), f"<p>{text}</p>"]
        parts.append(self.table().to_html(index=False))
        parts.append("<p>The worst disagreements:</p>")
        parts.append(self.worst.to_html(index=False, na_rep=""))
        return "".join(parts)


def agreement_report(
    tasks: Any, labels: Any, verdicts: Iterable[Verdict | Grade]
) -> AgreementReport:
    """Compare a judge with people: overall, per criterion, and where they disagree most.

    tasks : a TaskSet. labels : a TaskSet or verdicts of people. verdicts : of the judge, or grades.
    Verdicts by code are left out, because they show nothing of a judge. Intervals are over the
    tasks' groups. Rows that one side does not know are left out and counted.

    >>> from kit.records import Criterion, Task, Verdict
    >>> task = Task(id="t", prompt="Hi?", criteria=(Criterion(id="c", text="It greets."),))
    >>> ids = {"task_id": "t", "response_id": "r", "criterion_id": "c"}
    >>> label = Verdict(**ids, status="met", judge="human")
    >>> verdict = Verdict(**ids, status="unmet", judge="j")
    >>> agreement_report([task], [label], [verdict]).criteria["too_strict"].sum()
    np.int64(1)
    """
    rows = beside(tasks, labels, verdicts)
    rows = rows[rows["human"].notna()]
    wrong = rows[rows["correct"] == 0]
    # A judge that gives no probability counts as sure.
    order = wrong.assign(
        sure=wrong["confidence"].fillna(1), heavy=wrong["weight"].abs()
    )
    worst = order.sort_values(
        ["sure", "heavy"], ascending=False, kind="stable"
    ).head(WORST)
    columns = [
        "task",
        "response",
        "criterion",
        "text",
        "judge",
        "status",
        "p",
        "human",
        "reason",
    ]
    groups = rows.groupby(["criterion", "text"], sort=False, dropna=False)
    criteria = pd.DataFrame([_criterion(names, part) for names, part in groups])
    return AgreementReport(
        overall=_agree(rows),
        criteria=criteria.sort_values(
            "n", ascending=False, kind="stable", ignore_index=True
        ),
        worst=worst[columns].reset_index(drop=True),
        unknown=int(rows["value"].isna().sum()),
    )


def _agree(rows: pd.DataFrame) -> Agreement:
    return stats.agree(
        rows["value"], rows["human"], cluster=rows["group"], threshold=SIDE
    )


def _criterion(names: Any, rows: pd.DataFrame) -> dict[str, Any]:
    """One row of the table of criteria. names : (id, text)."""
    result = _agree(rows)
    gap = rows["credit"] - rows["due"]
    row: dict[str, Any] = dict(zip(("criterion", "text"), names, strict=True))
    row["n"] = int(gap.count())
    row |= {"kappa": result.kappa, "accuracy": result.raw}
    row["unknown"] = int(rows["value"].isna().sum())
    row["too_kind"] = int((gap > 0).sum())
    row["too_strict"] = int((gap < 0).sum())
    return row


def rate(
    tasks: Any,
    labels: Any,
    verdicts: Iterable[Verdict | Grade],
    *,
    design: str,
    other: Iterable[Verdict | Grade] | None = None,
) -> Results:
    """Estimate the pass rate that people would give, from many verdicts and a few labels.

    A verdict passes where it gives credit (see `agreement_report`). The judge's errors are read
    from the labels and taken out.

    design : how the labelled rows were drawn. "random": at random from these rows or prompts, as
        `kit.label` does. "shifted": they come from elsewhere.
    other : verdicts on the answers of another policy, with other answer ids; adds its rates, and
        the difference of this policy less the other, paired by prompt ("random" only).
    Returns estimates by name: "pass rate", "judge alone", "labels alone".
    """
    if other is not None and design != "random":
        raise DataError(
            "a difference needs labels drawn at random", where="rate(design=)"
        )
    rows = beside(tasks, labels, verdicts)
    out = _rates(rows, design)
    if other is None:
        return out
    second = beside(tasks, labels, other)
    both = pd.concat(
        [rows.assign(policy="this"), second.assign(policy="other")],
        ignore_index=True,
    )
    ids = ["task", "response"]
    if not rows[ids].merge(second[ids]).empty:
        raise DataError(
            "an answer id is in both sets of verdicts, so its labels fit both",
            where="rate(other=)",
            fix="give the other policy's answers ids of their own",
        )
    difference = stats.policy_difference(
        both["credit"],
        both["due"],
        both["policy"],
        new="this",
        old="other",
        cluster=both["group"],
    )
    others = {f"other: {name}": e for name, e in _rates(second, design).items()}
    return Results({**out, **others, "difference": difference})


def _rates(rows: pd.DataFrame, design: str) -> Results:
    if design == "random" and rows["inclusion"].nunique() > 1:
        raise DataError(
            "the labels were drawn with unequal probability",
            where="labels, column inclusion",
            fix="use the labels of one draw",
        )
    fit = stats.label_mean(
        rows["credit"], rows["due"], design=design, cluster=rows["group"]
    )
    # Labels from elsewhere: the judge is rated on the rows that nobody labelled.
    new = rows[rows["due"].isna()] if design == "shifted" else rows
    out = Results({"pass rate": fit})
    out["judge alone"] = stats.mean(new["credit"], cluster=new["group"])
    out["labels alone"] = stats.mean(rows["due"], cluster=rows["group"])
    return out
