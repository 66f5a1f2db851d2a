"""Can the judge be talked round, and is it stable? Attacks and biases over your own answers.

The changes stand in `changes.toml`. An attack succeeds on a criterion that the plain answer failed
and the hostile one fulfils. A bias is the share of verdicts that changed though they should not. A
step is the credit that a worse answer still earns. Credit is "met", or "unmet" where the weight is
negative. An unknown verdict pays nobody and is counted apart. Intervals are over tasks.
"""

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import jinja2
import msgspec
import pandas as pd
from msgspec.structs import replace

from ..data import TaskSet
from ..errors import DataError, MissingError
from ..judging import JudgeSource, LedgerLike, Usage, estimate, judge_of
from ..judging import judge as run_judge
from ..plots import Figure, forest
from ..records import Response, Task, leaves
from ..records.tables import IDS, met_of, show
from ..stats import Estimate, mean
from ..system import progress as bars


class AuditChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A change to answers or criteria; by default none. `changes.toml` explains the fields."""

    kind: Literal["plain", "attack", "bias", "step", "group", "reply"] = "plain"
    name: str = ""
    what: str = ""
    use: str = ""
    remedy: str = ""
    control: str = ""
    bound: float = 0.05
    answer: str = "{{ answer }}"
    criterion: str = "{{ text }}"
    order: Literal[1, -1] = 1
    flips: bool = False


NO_CHANGE = AuditChange()
AUDIT_CHANGES = {
    change.name: change
    for change in msgspec.toml.decode(
        Path(__file__).with_name("changes.toml").read_bytes(),
        type=dict[Literal["change"], list[AuditChange]],
    )["change"]
}
MAX_NAMED_FAULTS = 4


@dataclass(frozen=True, kw_only=True, repr=False)
class AuditReport:
    """The audit of one judge. A notebook shows it as a table, with its one line on top.

    rates : name of a change -> Estimate. whole : share of credit of the plain answers.
    """

    judge: str
    rates: dict[str, Estimate]
    whole: float

    def table(self) -> pd.DataFrame:
        """One row per change."""
        rows = []
        for name, rate in self.rates.items():
            change = AUDIT_CHANGES[name]
            unknown = rate.note or "nothing to gain or to compare"
            text = str(rate) if rate.n else unknown
            rows.append((change.kind, name, text, change.what))
        return pd.DataFrame(rows, columns=["kind", "name", "rate", "what"])

    def plot(self, **options: Any) -> Figure:
        """All rates with their intervals; the title says what the judge may be used for."""
        rows = {name: e for name, e in self.rates.items() if e.n}
        use, _, detail = self.line.partition(". ")
        return forest(
            rows,
            **{
                "title": f"{self.judge}. {use}.",
                "subtitle": detail,
                "x": "rate",
                **options,
            },
        )

    def _is_fault(self, change: AuditChange) -> bool:
        """True where the rate of a change is surely above its bound."""
        if not change.use or change.name not in self.rates:
            return False
        bound = change.bound * (self.whole if change.kind == "step" else 1)
        # An unsteady judge is called unsteady, not fooled by every attack.
        control = self.rates.get(change.control)
        noise = control.value if control is not None and control.n else 0.0
        return self.rates[change.name].low > bound + noise

    @property
    def line(self) -> str:
        """What the judge may be used for, its worst exploit, and the remedy."""
        if not self.whole > 0:
            return "Use: nothing. No answer earned credit. Remedy: audit answers that deserve some."
        faults = list(filter(self._is_fault, AUDIT_CHANGES.values()))
        if not faults:
            # No attack is shown to work. How often one might is the widest interval's upper end.
            highs = [
                rate.high
                for name, rate in self.rates.items()
                if AUDIT_CHANGES[name].control == "nothing added" and rate.high >= 0
            ]
            return (
                "Use: comparing such answers, and as a reward while you look for attacks. "
                f"An attack that failed here may still succeed in {max(highs, default=1):.0%} of cases."
            )
        # The file has the gravest first; of one gravity the surest.
        uses = [change.use for change in faults]
        faults.sort(key=lambda c: (uses.index(c.use), -self.rates[c.name].low))
        worst = "; ".join(
            f"{c.name} ({c.what}) {self.rates[c.name]}"
            for c in faults[:MAX_NAMED_FAULTS]
        )
        return f"Use: {uses[0]}. Worst: {worst}. Remedy: {faults[0].remedy}."

    def __repr__(self) -> str:
        return f"{self.table().to_string(index=False)}\n{self.line}"

    def _repr_html_(self) -> str:
        return show(
            self.table(), caption=html.escape(f"{self.judge}: {self.line}")
        ).to_html()


def _mean_over_tasks(values: pd.Series) -> Estimate:
    return mean(values, cluster=values.index.get_level_values("task"))


def _success_rate(
    change: AuditChange, plain: pd.DataFrame, after: pd.Series
) -> Estimate:
    """How often a change succeeds. plain : columns credit and weight. after : credit; NaN unknown."""
    before = plain["credit"]
    rows, hits = before.notna(), after
    if change.kind == "attack":
        rows = before == 0
    elif change.kind != "step":
        hits = (after.eq(before) == change.flips).astype(float).where(after.notna())
    # An empty answer rightly has no faults.
    if not change.answer:
        rows &= plain["weight"] > 0
    return _mean_over_tasks(hits[rows])


class ChangedAnswers:
    """The tasks and answers of an audit, to be written anew under each change."""

    def __init__(
        self,
        judge: JudgeSource,
        tasks: TaskSet | Sequence[Task],
        responses: Iterable[Response] | None,
    ):
        # The attributes of a group judge are not part of `Judge`.
        self.judge: Any = judge_of(judge)
        self.tasks = list(tasks)
        self.criteria = {
            task.id: [c for c in leaves(task.criteria) if not c.by_code]
            for task in self.tasks
        }
        if responses is None:
            responses = getattr(tasks, "responses", ())
        self.answers = [r for r in responses if self.criteria[r.task_id]]
        if not self.answers:
            raise DataError(
                "there are no answers with criteria for a judge", where="audit"
            )
        # The first answer of each task; the last one written wins.
        first = {r.task_id: r.text for r in reversed(self.answers)}
        texts = list(first.values())
        self.others = dict(zip(first, texts[1:] + texts[:1], strict=True))

    def applicable(self, names: Iterable[str]) -> list[AuditChange]:
        """The changes of these names that fit the judge."""
        kinds = ["attack", "bias", "step"]
        # Only a judge that sees answers together can prefer a place among them.
        if hasattr(self.judge, "seed"):
            kinds.append("group")
        return [
            c for n, c in AUDIT_CHANGES.items() if n in names and c.kind in kinds
        ]

    def under(self, change: AuditChange) -> dict[str, Any]:
        """The tasks, answers and judge of an audit under a change, as `kit.judge` takes them."""
        wording = jinja2.Template(change.criterion, keep_trailing_newline=True)
        tasks = []
        for task in self.tasks:
            criteria = [
                replace(c, text=wording.render(text=c.text))
                for c in self.criteria[task.id]
            ]
            # An order of -1 turns them round.
            tasks.append(replace(task, criteria=tuple(criteria[:: change.order])))
        template = jinja2.Template(change.answer, keep_trailing_newline=True)
        answers = [
            replace(
                response,
                text=template.render(
                    answer=response.text.strip(),
                    other=self.others[response.task_id],
                    criteria=self.criteria[response.task_id],
                ),
            )
            for response in self.answers
        ]
        judge = self.judge
        if change.kind == "group":
            # A group judge draws the order of the answers from its seed.
            judge = type(judge)(judge.judge, seed=judge.seed + 1)
        return {"tasks": tasks, "responses": answers, "judge": judge}


def estimate_audit(
    judge: JudgeSource,
    tasks: TaskSet | Sequence[Task],
    responses: Iterable[Response] | None = None,
    *,
    ledger: LedgerLike = None,
) -> Usage:
    """What an audit takes: calls, tokens and dollars of the plain answers and of each change."""
    material, usage = ChangedAnswers(judge, tasks, responses), Usage()
    for change in [NO_CHANGE, *material.applicable(AUDIT_CHANGES)]:
        usage += estimate(**material.under(change), ledger=ledger)
    return usage


def audit(
    judge: JudgeSource,
    tasks: TaskSet | Sequence[Task],
    responses: Iterable[Response] | None = None,
    *,
    changes: Sequence[str] = tuple(AUDIT_CHANGES),
    progress: bool = True,
    **options: Any,
) -> AuditReport:
    """Audit a judge on answers of yours. Take some that deserve little, so attacks can gain.

    responses : default those of the TaskSet. changes : names out of `kit.tuning.AUDIT_CHANGES`. options :
    ledger and budget, as in `kit.judge`. It takes one judging for the plain answers and one for
    each change. What a replay judge has not recorded says so. Criteria by code are left out.
    """
    material = ChangedAnswers(judge, tasks, responses)
    plain = _credit_table(material, NO_CHANGE, options)
    whole = _mean_over_tasks(plain["credit"][plain["weight"] > 0])
    silent = [_mean_over_tasks(plain["credit"].isna())]
    rates: dict[str, Estimate] = {}
    for change in bars.bar(
        material.applicable(changes), desc="audit", disable=not progress
    ):
        try:
            table = _credit_table(material, change, options)
        except MissingError:
            rates[change.name] = Estimate(float("nan"), note="not recorded")
            continue
        after = table["credit"].reindex(plain.index)
        rates[change.name] = _success_rate(change, plain, after)
        if change.kind == "attack":
            silent.append(_mean_over_tasks(after[plain["credit"] == 0].isna()))
    # Plain, or under the attack that silences the judge most.
    rates["gives up"] = max(silent, key=lambda e: e.low if e.n else -1.0)
    return AuditReport(judge=material.judge.name, rates=rates, whole=whole.value)


def _credit_table(
    material: ChangedAnswers, change: AuditChange, options: Mapping[str, Any]
) -> pd.DataFrame:
    """Credit on all answers under a change, one row per verdict."""
    sides = material.under(change)
    verdicts = run_judge(**sides, progress=False, **options)
    table = verdicts.table(tasks=sides["tasks"]).set_index(IDS)
    is_met = met_of(table["value"])
    return table.assign(credit=is_met.mask(table["weight"] < 0, 1 - is_met))
