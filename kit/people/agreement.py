"""A judge beside people: agreement overall and per criterion, and the rate that people would give."""

import html
import itertools
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from .. import plots, stats
from ..data import TaskSet
from ..errors import DataError
from ..records import Grade, Task, Verdict, count_of, group
from ..records.tables import IDS, Results, labels_of, met_of, table
from ..stats import Agreement, Estimate

log = logging.getLogger(__name__)
PeopleLabels = TaskSet | Iterable[Verdict]
JudgeDecisions = Iterable[Verdict | Grade]

# An agreement on fewer labels is noise.
FEWEST_LABELS = 5
WORST_COLUMNS = [
    "task", "response", "criterion", "text", "judge", "status", "value", "p", "human", "reason", "prompt", "answer",
]  # fmt: skip


def verdicts_of(decisions: JudgeDecisions) -> list[Verdict]:
    """The verdicts of grades; verdicts stay what they are."""
    return [
        verdict
        for decision in decisions
        for verdict in (
            decision.verdicts if isinstance(decision, Grade) else [decision]
        )
    ]


def warn_of_lost_labels(labels: PeopleLabels, decisions: JudgeDecisions) -> None:
    """Say how many labels belong to no verdict, and to what the first one belongs: an id may be misspelt."""
    ids = labels_of(labels)[IDS]
    judged = [v.ids for v in verdicts_of(decisions)]
    lost = ids[~pd.MultiIndex.from_frame(ids).isin(judged)]
    if len(lost):
        log.warning(
            "labels without a verdict are left out: %d of %d, first that of %s",
            len(lost),
            len(ids),
            " / ".join(lost.iloc[0]),
        )


def judge_beside_people(
    tasks: TaskSet | Sequence[Task], labels: PeopleLabels, verdicts: JudgeDecisions
) -> pd.DataFrame:
    """Verdicts of a judge beside labels, a row each; those by code and by people are left out.

    Adds `credit` and `due`: 1 where judge and people give credit. That is "met", and "unmet" where
    the weight of the criterion is negative.
    """
    frame = table(verdicts_of(verdicts), human=labels, tasks=tasks)
    is_other = (frame["judge"] == "code") | frame["judge"].str.startswith("human")
    frame = frame[~is_other].reset_index(drop=True)
    if not frame["human"].notna().any():
        # The ids of the first label and of the first verdict, to compare by eye.
        first = ", ".join(
            f"the first {name} is of {' / '.join(rows[IDS].iloc[0])}"
            if len(rows)
            else f"there is no {name}"
            for name, rows in (("label", labels_of(labels)), ("verdict", frame))
        )
        raise DataError(
            f"no label belongs to a verdict of the judge; {first}",
            where="labels",
            fix="label the answers that were judged; task, answer and criterion ids must be equal",
        )
    for column, source in (("credit", "value"), ("due", "human")):
        is_met = met_of(frame[source])
        frame[column] = is_met.mask(frame["weight"] < 0, 1 - is_met)
    return frame


def kappas_between(verdicts: Iterable[Verdict]) -> Results:
    """Kappa of each two who judged some answer both, people or judges, over prompts."""
    columns = {}
    for who, rows in group((v.judge, v) for v in verdicts).items():
        columns[who] = pd.Series({v.ids: v.value for v in rows}, dtype=float)
    frame, results = pd.DataFrame(columns).apply(met_of), Results()
    for a, b in itertools.combinations(frame, 2):
        both = frame[[a, b]].dropna()
        if len(both):
            results[f"{a} and {b}"] = stats.kappa(
                both[a], both[b], cluster=both.index.get_level_values(0)
            )
    return results


@dataclass(frozen=True)
class AgreementReport:
    """What `agreement_report` returns.

    overall : kappa, raw agreement and the rates, with intervals. criteria : a DataFrame with one
    row per criterion: rows known to both (n), kappa, accuracy, unknown (labelled rows on which the
    judge is unknown), too_kind and too_strict (the judge gives credit that people refuse, and the
    reverse). disagreements : each with prompt, answer, criterion and both verdicts, those on which
    the judge is surest first. people : kappa of each two people who labelled the same rows, which
    is what a judge can reach. Left out and counted: unknown (the judge's verdict on a labelled row), undecided
    (people are split, or say unknown), unmatched (labels of rows that the judge gave no verdict on).
    """

    overall: Agreement
    criteria: pd.DataFrame
    disagreements: pd.DataFrame
    unknown: int
    people: Results
    undecided: int = 0
    unmatched: int = 0

    @property
    def worst(self) -> pd.DataFrame:
        """The ten disagreements on which the judge is surest."""
        return self.disagreements.head(10)

    @property
    def estimate(self) -> Estimate:
        """Kappa over all criteria."""
        return self.overall.kappa

    def table(self) -> pd.DataFrame:
        """The criteria with five labels or more, their estimates as text."""
        rows = self.criteria[self.criteria["n"] >= FEWEST_LABELS]
        return rows.assign(
            kappa=rows["kappa"].map(str), accuracy=rows["accuracy"].map(str)
        )

    def plot(self, *, most: int = 20) -> plots.Figure:
        """A forest: accuracy per criterion, those with most labels first."""
        rows = self.criteria[self.criteria["n"] >= FEWEST_LABELS].head(most)
        names = rows["criterion"] + ": " + rows["text"]
        return plots.forest(
            dict(zip(names, rows["accuracy"], strict=True)),
            title=self.overall.sentence,
            x="accuracy by criterion",
        )

    @property
    def note(self) -> str:
        """What is left out: rows without a verdict or a label that counts, criteria with few labels."""
        few = int((self.criteria["n"] < FEWEST_LABELS).sum())
        text = (
            f"Left out: {count_of(self.unknown, 'labelled row')} unknown to the judge, {self.undecided} on which "
            f"people are split or undecided, {self.unmatched} without a verdict of the judge."
        )
        if few:
            text += f" Not listed: {count_of(few, 'criterion')} with fewer than {FEWEST_LABELS} labels."
        return text

    def __str__(self) -> str:
        return self.describe(lambda frame: frame.to_string(index=False))

    def describe(self, table_text: Callable[[pd.DataFrame], str]) -> str:
        """The whole report as text. table_text : how its table is printed."""
        blocks = [self.overall.sentence, f"{self.overall}\n{self.note}"]
        if self.people:
            blocks.append(f"Kappa of two people:\n{self.people}")
        if len(self.table()):
            blocks.append(table_text(self.table()))
        blocks.append(
            f"{count_of(len(self.disagreements), 'disagreement')}, the {len(self.worst)} surest:"
        )
        for row in self.worst.to_dict("records"):
            texts = [
                f"  {name}: {row[name]}"
                for name in ("prompt", "answer", "reason")
                # NaN where the answers were not given.
                if row[name] and pd.notna(row[name])
            ]
            head = (
                "{task} / {response} / {criterion}: {text}\n"
                "  the judge says {status} ({value:g}), people {human:g} "
                "(1 is met, or the best level)"
            ).format_map(row)
            blocks.append("\n".join([head, *texts]))
        return "\n\n".join(blocks)

    def _repr_html_(self) -> str:
        people = {f"kappa of {pair}": e for pair, e in self.people.items()}
        measures = Results(self.overall.measures() | people)._repr_html_()
        note = html.escape(f"{self.note} {self.overall.note}")
        worst = self.worst.to_html(index=False, na_rep="")
        return (
            f"{measures}<p>{note}</p>{self.table().to_html(index=False)}"
            f"<p>The worst disagreements:</p>{worst}"
        )


def agreement_report(
    tasks: TaskSet | Sequence[Task], labels: PeopleLabels, verdicts: JudgeDecisions
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
    people = [*getattr(labels, "verdicts", labels)]
    rows = judge_beside_people(tasks, people, verdicts)
    rows = rows[rows["human"].notna()]
    decided = labels_of(people)["human"].notna()
    criteria = [
        _criterion_row(*names, rows=part)
        for names, part in rows.groupby(
            ["criterion", "text"], sort=False, dropna=False
        )
    ]
    # The surest disagreement first; of equally sure ones, the heaviest first.
    wrong = (
        # A judge that gives no probability counts as sure.
        rows.assign(sure=rows["confidence"].fillna(1), heavy=rows["weight"].abs())
        .query("correct == 0")
        .sort_values(["sure", "heavy"], ascending=False, kind="stable")
    )
    return AgreementReport(
        overall=_judge_agreement(rows),
        criteria=pd.DataFrame(criteria).sort_values(
            "n", ascending=False, kind="stable", ignore_index=True
        ),
        # Tasks without their answers have no such column.
        disagreements=wrong.reindex(columns=WORST_COLUMNS).reset_index(drop=True),
        unknown=int(rows["value"].isna().sum()),
        undecided=int((~decided).sum()),
        # A judge that answered twice has a row for each of its answers.
        unmatched=int(decided.sum()) - len(rows[IDS].drop_duplicates()),
        people=kappas_between(v for v in people if v.judge.startswith("human:")),
    )


def _judge_agreement(rows: pd.DataFrame) -> Agreement:
    return stats.agree(
        rows["value"],
        rows["human"],
        cluster=rows["group"],
        # From this value on, a verdict or a label is on the side of "met".
        threshold=0.5,
    )


def _criterion_row(*names: object, rows: pd.DataFrame) -> dict[str, object]:
    """One row of the table of criteria. names : id and text."""
    agreement = _judge_agreement(rows)
    gap = rows["credit"] - rows["due"]
    return {
        "criterion": names[0],
        "text": names[1],
        "n": int(gap.count()),
        "kappa": agreement.kappa,
        "accuracy": agreement.raw,
        "unknown": int(rows["value"].isna().sum()),
        "too_kind": int((gap > 0).sum()),
        "too_strict": int((gap < 0).sum()),
    }


def rate(
    tasks: TaskSet | Sequence[Task],
    labels: PeopleLabels,
    verdicts: JudgeDecisions,
    *,
    design: str,
    other: JudgeDecisions | None = None,
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
    rows = judge_beside_people(tasks, labels, verdicts)
    warn_of_lost_labels(labels, [*verdicts, *(other or ())])
    rates = _pass_rates(rows, design)
    if other is not None:
        others = judge_beside_people(tasks, labels, other)
        for name, estimate in _pass_rates(others, design).items():
            rates[f"other: {name}"] = estimate
        ids = ["task", "response"]
        if not rows[ids].merge(others[ids]).empty:
            raise DataError(
                "an answer id is in both sets of verdicts, so its labels fit both",
                where="rate(other=)",
                fix="give the other policy's answers ids of their own",
            )
        # Too few labels to know the judge's errors: the rate is that of labels alone, here too.
        if rates["pass rate"].method == "labels alone":
            rows = rows.assign(credit=0.0)
        if rates["other: pass rate"].method == "labels alone":
            others = others.assign(credit=0.0)
        both = pd.concat(
            [rows.assign(policy="this"), others.assign(policy="other")],
            ignore_index=True,
        )
        # The pass rate of one policy less that of the other, paired by prompt.
        rates["difference"] = stats.policy_difference(
            both["credit"],
            both["due"],
            both["policy"],
            new="this",
            old="other",
            cluster=both["group"],
        )
    return rates


def _pass_rates(rows: pd.DataFrame, design: str) -> Results:
    if design == "random" and rows["inclusion"].nunique() > 1:
        raise DataError(
            "the labels were drawn with unequal probability",
            where="labels, column inclusion",
            fix="use the labels of one draw",
        )
    # Labels from elsewhere: the judge is rated on the rows that nobody labelled.
    rated = rows[rows["due"].isna()] if design == "shifted" else rows
    return Results(
        {
            "pass rate": stats.label_mean(
                rows["credit"], rows["due"], design=design, cluster=rows["group"]
            ),
            "judge alone": stats.mean(rated["credit"], cluster=rated["group"]),
            "labels alone": stats.mean(rows["due"], cluster=rows["group"]),
        }
    )
