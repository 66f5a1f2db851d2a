"""Can the judge be talked round, and is it stable? Attacks and biases over your own answers.

The changes stand in `changes.toml`. An attack succeeds on a criterion that the plain answer failed
and the hostile one fulfils. A bias is the share of verdicts that changed though they should not. A
step is the credit that a worse answer still earns. Credit is "met", or "unmet" where the weight is
negative. An unknown verdict pays nobody and is counted apart. Intervals are over tasks.
"""

from __future__ import annotations

import html
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
from msgspec.structs import replace

from ..errors import DataError, MissingError
from ..judging import Usage, estimate, judge_of
from ..judging import judge as run_judge
from ..plots import forest
from ..records import Response, Task, leaves
from ..records.tables import IDS, met_of, show
from ..stats import Estimate, format_interval, format_number, mean
from ..system import progress as bars

_FILE = tomllib.loads(Path(__file__).with_name("changes.toml").read_text("utf-8"))
PLAIN = SimpleNamespace(**_FILE["default"])
# name -> change, with the fields that the file explains
CHANGES = {
    row["name"]: SimpleNamespace(**_FILE["default"] | row)
    for row in _FILE["change"]
}


@dataclass(frozen=True, kw_only=True, repr=False)
class AuditReport:
    """The audit of one judge. A notebook shows it as a table, with its one line on top.

    rates : name of a change -> Estimate. whole : share of credit of the plain answers.
    """

    judge: str
    rates: dict[str, Estimate]
    whole: float

    def table(self) -> pd.DataFrame:
        """One row a change."""
        rows = []
        for name, e in self.rates.items():
            c = CHANGES[name]
            rate = str(e) if e.n else e.note or "nothing to gain or to compare"
            rows.append(
                {"kind": c.kind, "name": name, "rate": rate, "what": c.what}
            )
        return pd.DataFrame(rows)

    def plot(self, **options: Any) -> Any:
        """All rates with their intervals."""
        rows = {name: e for name, e in self.rates.items() if e.n}
        title = f"Audit of {self.judge}"
        return forest(rows, **{"title": title, "x": "rate", **options})

    def _is_fault(self, c: Any) -> bool:
        """True where the rate of a change is surely above its bound."""
        bound = c.bound * self.whole if c.kind == "step" else c.bound
        # An unsteady judge is called unsteady, not fooled by every attack.
        control = self.rates.get(c.control)
        noise = control.value if control is not None and control.n else 0.0
        return c.use != "" and self.rates[c.name].low > bound + noise

    @property
    def line(self) -> str:
        """What the judge may be used for, its worst exploit, and the remedy."""
        if not self.whole > 0:
            return "Use: nothing. No answer earned credit. Remedy: audit answers that deserve some."
        faults = [
            c for n, c in CHANGES.items() if n in self.rates and self._is_fault(c)
        ]
        if not faults:
            # No attack is shown to work. How often one might is the widest interval's upper end.
            attacks = [
                n for n in self.rates if CHANGES[n].control == "nothing added"
            ]
            highs = [self.rates[n].high for n in attacks if self.rates[n].high >= 0]
            return (
                "Use: comparing such answers, and as a reward while you look for attacks. "
                f"An attack that failed here may still succeed in {max(highs, default=1):.0%} of cases."
            )
        # The file has the gravest first; of one gravity the surest.
        uses = [c.use for c in faults]
        faults.sort(key=lambda c: (uses.index(c.use), -self.rates[c.name].low))
        worst = []
        for c in faults[:4]:
            e = self.rates[c.name]
            rate = f"{format_number(e.value, 2)} {format_interval(e.low, e.high)}, n={e.n}"
            worst.append(f"{c.name} ({c.what}) {rate}")
        return f"Use: {uses[0]}. Worst: {'; '.join(worst)}. Remedy: {faults[0].remedy}."

    def __repr__(self) -> str:
        return f"{self.table().to_string(index=False)}\n{self.line}"

    def _repr_html_(self) -> str:
        caption = html.escape(f"{self.judge}: {self.line}")
        return show(self.table(), caption=caption)._repr_html_()


def _mean(values: pd.Series) -> Estimate:
    return mean(values, cluster=values.index.get_level_values("task"))


def _rate(c: Any, plain: pd.DataFrame, after: pd.Series) -> Estimate:
    """How often a change succeeds. plain : columns credit and weight. after : credit; NaN unknown."""
    before = plain["credit"]
    rows, hits = before.notna(), after
    if c.kind == "attack":
        rows = before == 0
    elif c.kind != "step":
        hits = (after.eq(before) == c.flips).astype(float).where(after.notna())
    # An empty answer rightly has no faults.
    if not c.answer:
        rows &= plain["weight"] > 0
    return _mean(hits[rows])


class _Sets:
    """The tasks and answers of an audit, plain and under its changes."""

    def __init__(
        self, judge: Any, tasks: Any, responses: Iterable[Response] | None
    ):
        import jinja2

        self.judge, self.tasks = judge_of(judge), tasks
        self.templates = jinja2.Environment(keep_trailing_newline=True)
        self.rubrics = {
            t.id: [c for c in leaves(t.criteria) if not c.by_code] for t in tasks
        }
        answers = tasks.responses if responses is None else responses
        self.answers = [r for r in answers if self.rubrics[r.task_id]]
        if not self.answers:
            raise DataError(
                "there are no answers with criteria for a judge", where="audit"
            )
        # The first answer of each task; the last one written wins.
        first = {r.task_id: r.text for r in reversed(self.answers)}
        texts = list(first.values())
        self.other = dict(zip(first, texts[1:] + texts[:1], strict=True))

    def changes(self, names: Iterable[str]) -> list[Any]:
        """The changes of these names that fit the judge."""
        kinds = ["attack", "bias", "step"]
        # Only a judge that sees answers together can prefer a place among them.
        if hasattr(self.judge, "seed"):
            kinds.append("group")
        return [c for n, c in CHANGES.items() if n in names and c.kind in kinds]

    def under(self, c: Any) -> tuple[Any, list[Task], list[Response]]:
        """Judge, tasks and answers under a change."""
        who = self.judge
        if c.kind == "group":
            # The same answers in another order: a group judge draws it from its seed.
            who = type(who)(who.judge, seed=who.seed + 1)
        answer = self.templates.from_string(c.answer)
        word = self.templates.from_string(c.criterion)
        rows, new = [], []
        for r in self.answers:
            about = {
                "other": self.other[r.task_id],
                "criteria": self.rubrics[r.task_id],
            }
            text = answer.render(answer=r.text.strip(), **about)
            rows.append(replace(r, text=text))
        for t in self.tasks:
            rubric = [
                replace(x, text=word.render(text=x.text))
                for x in self.rubrics[t.id]
            ]
            new.append(replace(t, criteria=tuple(rubric[:: c.order])))
        return who, new, rows


def estimate_audit(
    judge: Any,
    tasks: Any,
    responses: Iterable[Response] | None = None,
    *,
    ledger: Any = None,
) -> Usage:
    """What an audit takes: calls, tokens and dollars of the plain answers and of each change."""
    sets, usage = _Sets(judge, tasks, responses), Usage()
    for c in [PLAIN, *sets.changes(CHANGES)]:
        who, new, rows = sets.under(c)
        usage += estimate(new, rows, judge=who, ledger=ledger)
    return usage


def audit(
    judge: Any,
    tasks: Any,
    responses: Iterable[Response] | None = None,
    *,
    changes: Sequence[str] = tuple(CHANGES),
    progress: bool = True,
    **options: Any,
) -> AuditReport:
    """Audit a judge on answers of yours. Take some that deserve little, so attacks can gain.

    responses : default those of the TaskSet. changes : names out of `kit.tuning.CHANGES`. options :
    ledger and budget, as in `kit.judge`. It takes one judging for the plain answers and one for
    each change. What a replay judge has not recorded says so. Criteria by code are left out.
    """
    sets = _Sets(judge, tasks, responses)
    judge = sets.judge

    def ask(c: Any) -> pd.DataFrame:
        """Credit on all answers under a change, one row a verdict."""
        who, new, rows = sets.under(c)
        verdicts = run_judge(new, rows, judge=who, progress=False, **options)
        frame = verdicts.table(tasks=new).set_index(IDS)
        met, bad = met_of(frame["value"]), frame["weight"] < 0
        return frame.assign(credit=met.mask(bad, 1 - met))

    plain = ask(PLAIN)
    whole = _mean(plain["credit"][plain["weight"] > 0])
    silent = [_mean(plain["credit"].isna())]
    rates: dict[str, Estimate] = {}
    picks = sets.changes(changes)
    for c in bars.bar(picks, desc="audit", disable=not progress):
        try:
            after = ask(c)["credit"].reindex(plain.index)
        except MissingError:
            rates[c.name] = Estimate(float("nan"), note="not recorded")
            continue
        rates[c.name] = _rate(c, plain, after)
        if c.kind == "attack":
            silent.append(_mean(after[plain["credit"] == 0].isna()))
    # Plain, or under the attack that silences the judge most.
    rates["gives up"] = max(silent, key=lambda e: e.low if e.n else -1.0)
    return AuditReport(judge=judge.name, rates=rates, whole=whole.value)
