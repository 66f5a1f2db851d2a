"""Can the judge be talked round, and is it stable? Attacks and biases over your own answers, each a
rate with an interval.

An attack succeeds on a criterion when the plain answer earned no credit for it and the hostile one
does (credit: met, or for a negative criterion unmet). A bias row gives the share of verdicts that
changed though they should not have. Unknown verdicts are counted apart: a judge that gives up under
attack pays nobody, but it is worth knowing. Rates cluster by task.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .. import stats
from ..data import tasks_of
from ..errors import DataError, MissingError
from ..page import escape
from ..records import Criterion, Response, Task, Verdict, leaves
from ..system import progress as bars
from ..tables import rows_html
from .attacks import ATTACKS, BIASES, STEPS, STRANGE, Attack, Bias, Step
from .records import Unkept, keys_of
from .run import judge as run_judge
from .suited import Fit, fit


@dataclass(frozen=True)
class AuditRow:
    """One attack or bias.

    kind : "attack" or "bias". rate : success rate of the attack, or share of changed verdicts.
    drift : mean change in credit (positive: it pays), for biases; None for attacks. unknown : share
    of verdicts that were known before and are unknown now. example : one case in words.
    """

    kind: str
    name: str
    what: str
    rate: stats.Estimate
    drift: stats.Estimate | None = None
    unknown: stats.Estimate | None = None
    example: str = ""
    note: str = ""


@dataclass(frozen=True)
class AuditReport:
    """The audit of one judge. `.table()`, `kit.plot(...)`; shown as a table in a notebook,
    hostile text escaped.
    """

    judge: str
    rows: tuple[AuditRow, ...]
    n_tasks: int
    n_responses: int
    n_verdicts: int
    unknown_share: float
    # another task's answers on criteria of the task's own; drift: against the whole answers there
    swapped: AuditRow
    cost: float = 0.0
    ladder: tuple[AuditRow, ...] = ()  # credit of answers made worse, step by step
    foreign: AuditRow | None = None  # another task's criteria; drift: against the task's own

    @property
    def fit(self) -> Fit:
        """What the judge may be used for, what not, its worst exploit and the remedy."""
        return fit(self)

    def table(self) -> list[dict[str, Any]]:
        """Rows {kind, name, rate, low, high, n, unknown, drift, drift_low, drift_high, what,
        note}; None where there is nothing.
        """

        def number(e: stats.Estimate | None, field: str) -> float | None:
            value = None if e is None else getattr(e, field)
            return None if value is None or math.isnan(value) else value

        return [
            {
                "kind": r.kind,
                "name": r.name,
                "rate": number(r.rate, "value"),
                "low": number(r.rate, "low"),
                "high": number(r.rate, "high"),
                "n": r.rate.n,
                "unknown": number(r.unknown, "value"),
                "drift": number(r.drift, "value"),
                "drift_low": number(r.drift, "low"),
                "drift_high": number(r.drift, "high"),
                "what": r.what,
                "note": r.note,
            }
            for r in self.rows
        ]

    def row(self, name: str) -> AuditRow:
        """The row of an attack or bias by name; KeyError when it was not run."""
        return {r.name: r for r in self.rows}[name]

    def __str__(self) -> str:
        head = (
            f"{self.judge}: {self.n_responses} answers to {self.n_tasks} tasks, "
            f"{self.n_verdicts} verdicts, {self.unknown_share:.1%} unknown"
        )
        lines = [
            f"  {r.kind:6} {r.name:26} {r.rate}" + (f"  ({r.note})" if r.note else "")
            for r in (*self.rows, *self.ladder)
        ]
        return "\n".join([head, *lines, self.fit.line])

    def _repr_html_(self) -> str:
        rows = [
            (
                r.kind,
                f"<span title='{escape(r.what)}'>{escape(r.name)}</span>",
                str(r.rate),
                r.drift if r.drift is None else str(r.drift),
                f"{r.unknown.value:.1%}" if r.unknown is not None and r.unknown.n else "",
                r.note or r.example[:300],
            )
            for r in (*self.rows, *self.ladder)
        ]
        head = ("", "what", "rate [95% interval]", "drift", "became unknown", "example")
        line = f"<p><b>{escape(self.fit.line)}</b></p>"
        return line + rows_html(
            head,
            rows,
            caption=f"{self.judge}: {self.n_responses} answers to {self.n_tasks} tasks, "
            f"{self.unknown_share:.1%} of plain verdicts unknown",
            raw=(1,),
        )


def audit(
    judge: Any,
    tasks: Any,
    responses: Iterable[Response],
    *,
    attacks: Sequence[Attack] = ATTACKS,
    biases: Sequence[Bias] = BIASES,
    ledger: Any = None,
    budget: Any = None,
    progress: bool = True,
) -> AuditReport:
    """Audit a judge on answers of yours; take some that deserve little, so that attacks have
    something to gain.

    Criteria checked by code are left out. Every variant is judged through `ledger`, so an
    interrupted audit goes on where it stopped. Variants that a replay judge has not recorded are
    reported as such. Costs about (1 + attacks + biases + 5) times one judging.
    """
    rows = tasks_of(tasks)
    judged = {
        t.id: replace(t, criteria=tuple(c for c in leaves(t.criteria) if not c.by_code))
        for t in rows
    }
    answers = [r for r in responses if r.task_id in judged and judged[r.task_id].criteria]
    by_id = {
        i: judged[i] for i in dict.fromkeys(r.task_id for r in answers)
    }  # a task that is checked by code alone has nothing to vary
    if not answers:
        raise DataError(
            "there is nothing to audit",
            where="audit(judge, tasks, responses)",
            fix="give answers to tasks with criteria for a judge",
        )
    ask, out = _Asker(judge, by_id, ledger, budget), []
    with bars.bar(
        total=2 + len(attacks) + len(biases) + len(STEPS),
        desc="audit",
        unit="variant",
        delay=2.0,
        disable=not progress,
    ) as shown:
        base = ask(answers)
        shown.update(1)
        for x in (*attacks, *biases):
            shown.set_postfix_str(x.name, refresh=False)
            out.append(_row(x, ask, answers, base, by_id))
            shown.update(1)
        taken = {step.name: _taken(ask, step.worse(answers)) for step in STEPS}
        odd, last = _foreign(by_id)
        few = [r for r in answers if biases and len(last) > 1 and r.task_id in odd]
        foreign, note = _taken(ask, few, odd)
        shown.update(1 + len(STEPS))
    paid = {p: c for p in base if (c := by_id[p[0]].criterion(p[2])).weight > 0}
    return AuditReport(
        getattr(judge, "name", type(judge).__name__),
        tuple(out),
        len({r.task_id for r in answers}),
        len(answers),
        len(base),
        sum(not v.known for v in base.values()) / len(base),
        _swapped(STRANGE, taken[STRANGE.name], answers, base, paid, by_id),
        ask.cost,
        tuple(_ladder(taken, base, paid)),
        _swapped(
            FOREIGN,
            ({p: v for p, v in foreign.items() if p[2] == last[p[0]].id}, note),
            answers,
            base,
            paid,
            by_id,
        ),
    )


NOTHING = {  # why a row is empty
    "attack": "no answer failed a criterion: nothing to gain",
    "bias": "nothing to compare: it needs known verdicts, and for positions two criteria",
}
FOREIGN = Step("a criterion of another task", "one criterion is another task's", lambda rows: rows)


def _foreign(tasks: dict[str, Task]) -> tuple[dict[str, Task], dict[str, Criterion]]:
    """The tasks with their last criterion that pays, and that no other task has, put for that of
    the next task, and these criteria: who gives all criteria of an answer one verdict, or does not
    read them, does not see it.
    """
    used = Counter(
        x for t in tasks.values() for x in {c.text.strip().casefold() for c in t.criteria}
    )
    own = [(i, c) for i, t in tasks.items() for c in t.criteria if c.weight > 0]
    last = {i: c for i, c in own if used[c.text.strip().casefold()] == 1}
    after = dict(zip(last, [*list(last)[1:], *list(last)[:1]], strict=True))
    foreign = {i: replace(last[other], id=last[i].id) for i, other in after.items()}
    out = {
        i: replace(
            tasks[i], criteria=tuple(new if c.id == new.id else c for c in tasks[i].criteria)
        )
        for i, new in foreign.items()
    }
    return out, last


Place = tuple[str, str, str]  # task, response, criterion
Taken = tuple[dict[Place, Verdict], str]  # a step's verdicts, or why there are none


class _Asker:
    """Runs the judge on variants and adds up the cost."""

    def __init__(self, judge: Any, tasks: dict[str, Task], ledger: Any, budget: Any):
        self.judge, self.tasks, self.more, self.cost = (
            judge,
            tasks,
            {"ledger": ledger, "budget": budget, "progress": False},
            0.0,
        )

    def __call__(
        self, answers: Sequence[Response], tasks: dict[str, Task] | None = None
    ) -> dict[Place, Verdict]:
        same = tasks is not None and self.more["ledger"] and self._same_keys(answers[0], tasks)
        judge = Unkept(self.judge) if same else self.judge  # else: the plain verdicts once more
        got = run_judge(list((tasks or self.tasks).values()), answers, judge=judge, **self.more)
        self.cost += got.spent.cost
        return {v.ids: v for v in got}

    def _same_keys(self, r: Response, tasks: dict[str, Task]) -> bool:
        """True when the judge's keys do not see the order of the criteria."""
        old, new = (
            keys_of(self.judge, t[r.task_id], r, t[r.task_id].criteria) for t in (self.tasks, tasks)
        )
        return bool(old) and set(old or ()) == set(new or ())


def _credit(v: Verdict | None, c: Criterion) -> bool | None:
    """Whether the verdict earns credit; None when unknown."""
    if v is None or not v.known:
        return None
    met = (v.value or 0.0) >= 0.5
    return not met if c.weight < 0 else met


def _row(
    x: Attack | Bias,
    ask: _Asker,
    answers: Sequence[Response],
    base: dict[Place, Verdict],
    tasks: dict[str, Task],
) -> AuditRow:
    """What an attack earned on criteria without credit, or how many verdicts a bias changed."""
    attack = isinstance(x, Attack)
    kind = "attack" if attack else "bias"
    flips = not attack and x.flips
    try:
        runs = list(_variants(x, ask, answers, tasks))
    except MissingError as e:
        nothing = stats.Estimate(math.nan, math.nan, math.nan, 0, None, "", "not recorded")
        return AuditRow(kind, x.name, x.what, nothing, note=f"not recorded: {e.what[:80]}")
    hits, drift, lost, where, example = [], [], [], [], ""
    for place, before, got in ((p, v, run[p]) for run in runs for p, v in base.items() if p in run):
        c = tasks[place[0]].criterion(place[2])
        old, new = _credit(before, c), _credit(got, c)
        if old is None or (attack and old):
            continue
        hit = None if new is None else new != (old != flips)
        hits.append(hit)
        drift.append(None if new is None else float(new) - float(old))
        lost.append(new is None)
        where.append(place[0])
        if hit and not example:
            example = f"{place[0]} / {c.text[:100]}: {before.status}, then {got.status}"
            example += f" ({got.reason[:120]})" if attack and got.reason else ""
    return AuditRow(
        kind,
        x.name,
        x.what,
        stats.mean(hits, cluster=where),
        stats.mean(drift, cluster=where) if hits and not attack and not flips else None,
        stats.mean(lost, cluster=where),
        example,
        "" if hits else NOTHING[kind],
    )


def _variants(
    b: Attack | Bias, ask: _Asker, answers: Sequence[Response], tasks: dict[str, Task]
) -> Iterable[dict[Place, Verdict]]:
    """Verdicts of each variant of a bias, under the plain ids."""
    if isinstance(b, Attack) or b.text is not None:
        yield ask([replace(r, text=b.text(tasks[r.task_id], r)) for r in answers])
        return
    moved = b.name.startswith("position")
    used = {i: t for i, t in tasks.items() if not moved or len(t.criteria) > 1}
    variants = {i: b.criteria(t.criteria) for i, t in used.items()} if b.criteria else {}
    for n in range(max(map(len, variants.values()), default=0)):
        part = {
            i: replace(used[i], criteria=tuple(v[n])) for i, v in variants.items() if n < len(v)
        }
        rows = [r for r in answers if r.task_id in part]
        if rows:
            yield ask(rows, part)


def _ladder(
    taken: dict[str, Taken], base: dict[Place, Verdict], paid: dict[Place, Criterion]
) -> list[AuditRow]:
    """Credit on criteria of positive weight, of the whole answers and of each step down."""
    before = [_credit(base[p], c) for p, c in paid.items()]
    where = [p[0] for p in paid]
    out = [_rung("whole", "the answers as they are", before, None, where)]
    for step in STEPS:
        got, note = taken[step.name]
        now = [_credit(got.get(p), c) for p, c in paid.items()]
        out.append(_rung(step.name, step.what, now, before, where, note))
        before = before if note else now
    return out


def _swapped(
    step: Step,
    taken: Taken,
    answers: Sequence[Response],
    base: dict[Place, Verdict],
    paid: dict[Place, Criterion],
    tasks: dict[str, Task],
) -> AuditRow:
    """Credit of another task's answers, or criteria, where no other task has the prompt, the
    criterion or the answer: what tasks share ("Is polite.") may rightly be met by all answers.
    """
    got, note = taken
    said = {r.ids: (tasks[r.task_id].prompt, r.text) for r in answers}
    words = {p: [w.strip().casefold() for w in (*said[p[:2]], c.text)] for p, c in paid.items()}
    used = Counter(w for _, w in {(p[0], w) for p, each in words.items() for w in each})
    pairs = {p: (_credit(base[p], c), _credit(got.get(p), c)) for p, c in paid.items()}
    known = [p for p, pair in pairs.items() if None not in pair]
    own = [p for p in known if all(used[w] == 1 for w in words[p])]
    before, now = ([pairs[p][i] for p in own or known] for i in (0, 1))
    note = note or ("" if own else "no criterion is of one task alone")
    return _rung(step.name, step.what, now, before, [p[0] for p in own or known], note)


def _taken(ask: _Asker, answers: Sequence[Response], tasks: dict[str, Task] | None = None) -> Taken:
    """Verdicts on the answers made worse, or why there are none."""
    try:
        return (ask(answers, tasks), "") if answers else ({}, "needs two tasks")
    except MissingError as e:
        return {}, f"not recorded: {e.what[:80]}"


def _rung(
    name: str,
    what: str,
    now: Sequence[bool | None],
    before: Sequence[bool | None] | None,
    where: Sequence[str],
    note: str = "",
) -> AuditRow:
    fall = None if before is None else stats.difference(now, before, cluster=where)
    lost = stats.mean([x is None for x in now], cluster=where) if now and not note else None
    return AuditRow("ladder", name, what, stats.mean(now, cluster=where), fall, lost, note=note)
