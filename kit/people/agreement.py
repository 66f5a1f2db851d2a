"""How far a judge agrees with people: overall, per criterion, and where they part."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .. import stats
from ..stats.agreement import table_stat
from ..stats.clusters import cell_sums, codes, estimate
from ..tables import rows_html
from .beside import HALF, Beside, beside

WORST = 10  # disagreements that are shown
SHOWN = 20  # criteria that a table in a terminal shows


@dataclass(frozen=True)
class Row:
    """A judge beside people on some rows.

    n : rows known to both. unknown : labelled rows on which the judge is unknown; unsaid : rows on
    which people are. too_kind : the judge gives credit and people do not (for a criterion of
    negative weight credit is "unmet"); too_strict : the other way round.
    """

    id: str
    text: str
    n: int
    kappa: stats.Estimate
    accuracy: stats.Estimate
    unknown: int
    unsaid: int
    too_kind: int
    too_strict: int

    def data(self) -> dict[str, Any]:
        """As JSON."""
        counts = ("id", "text", "n", "unknown", "unsaid", "too_kind", "too_strict")
        row = {k: getattr(self, k) for k in counts}
        return {**row, "kappa": self.kappa.as_dict(), "accuracy": self.accuracy.as_dict()}


@dataclass(frozen=True)
class Parted:
    """A verdict on which judge and people stand on different sides."""

    task: str
    response: str
    criterion: str
    text: str
    judge: str
    p: float | None
    label: float
    reason: str

    @property
    def sure(self) -> float:
        """How sure the judge is of the wrong side, in [0, 1]; 1 where it gives no probability."""
        return 1.0 if self.p is None else abs(self.p - self.label)


@dataclass(frozen=True)
class AgainstPeople:
    """What `agreement` found; `.overall`, `.criteria`, `.worst`, `.notes`."""

    overall: Row
    criteria: tuple[Row, ...]
    worst: tuple[Parted, ...]
    notes: tuple[str, ...]

    def data(self) -> dict[str, Any]:
        """As JSON."""
        worst = [{**vars(w), "sure": w.sure} for w in self.worst]
        rows = [r.data() for r in self.criteria]
        return {
            **self.overall.data(),
            "criteria": rows,
            "worst": worst,
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        parts = [_line(self.overall), *self.notes, "", *_table(self.criteria)]
        if self.worst:
            parts += [
                "",
                f"the {len(self.worst)} worst disagreements, the judge's surest first",
                *map(_told, self.worst),
            ]
        return "\n".join(parts)

    def _repr_html_(self) -> str:
        head = ("criterion", "n", "kappa", "accuracy", "unknown", "too kind", "too strict")
        rows = [_cells(r) for r in (self.overall, *self.criteria)]
        named = ("task", "answer", "criterion", "judge", "people", "reason")
        worst = [
            (w.task, w.response, f"{w.criterion}: {w.text}", w.judge, _side(w.label), w.reason)
            for w in self.worst
        ]
        notes = rows_html(("note",), [(n,) for n in self.notes]) if self.notes else ""
        tables = rows_html(head, rows) + notes
        return tables + rows_html(named, worst, caption="the worst disagreements")


def agreement(
    tasks: Any,
    labels: Any,
    grades: Any,
    *,
    cut: float = HALF,
    code: bool = False,
    level: float = 0.95,
) -> AgainstPeople:
    """A judge's grades against labels by people: kappa and accuracy, overall and per criterion.

    tasks, labels, grades : files, or what `kit.load` and `kit.judge` gave. Values from `cut` on
    are on the side of "met". code : also criteria that code decides (they say nothing of a judge).
    Intervals are clustered by the tasks' group; unknown rows are left out and counted. Labels that
    `kit label` drew with unequal probability are weighted by its inverse.

    >>> task = {"id": "t", "prompt": "Hi?", "criteria": [{"id": "c", "text": "It greets."}]}
    >>> from kit.records import Verdict, task_from_json
    >>> ids = dict(task_id="t", response_id="r", criterion_id="c")
    >>> yes, no = (Verdict(**ids, status=s) for s in ("met", "unmet"))
    >>> agreement([task_from_json(task)], [yes], [no]).overall.too_strict
    1
    """
    every = beside(tasks, labels, grades)
    rows = every if code else every.judged()
    return of(rows, cut=cut, left_out=len(every) - len(rows), level=level)


def of(rows: Beside, *, cut: float = HALF, left_out: int = 0, level: float = 0.95) -> AgainstPeople:
    """The agreement of columns that are beside each other already."""
    seen = rows.rows(i for i, there in enumerate(rows.labelled) if there)
    each = [_row(*key, part, cut, level) for key, part in seen.criteria().items()]
    each.sort(key=lambda r: (-r.n, r.accuracy.value if r.n else math.inf))
    overall = _row("all", "", seen, cut, level)
    return AgainstPeople(
        overall, tuple(each), tuple(_parted(seen, cut)), tuple(_notes(rows, overall, cut, left_out))
    )


def _row(id: str, text: str, rows: Beside, cut: float, level: float) -> Row:
    judge, people = rows.sides(cut)
    both = list(zip(judge, people, rows.weight, strict=True))
    unknown = sum(j is None and h is not None for j, h, _ in both)
    credit = [(j ^ (w < 0), h ^ (w < 0)) for j, h, w in both if None not in (j, h)]
    kappa, accuracy = _measured(rows, judge, people, level)
    return Row(
        id,
        text,
        len(credit),
        kappa,
        accuracy,
        unknown,
        people.count(None),
        credit.count((1, 0)),
        credit.count((0, 1)),
    )


def _measured(
    rows: Beside, judge: Sequence[Any], people: Sequence[Any], level: float
) -> tuple[stats.Estimate, stats.Estimate]:
    weights = rows.weights()
    if weights is not None:
        return _weighted(rows, judge, people, weights, level)
    more: dict[str, Any] = {"cluster": rows.cluster, "categories": (0, 1), "level": level}
    return stats.kappa(judge, people, **more), stats.accuracy(judge, people, **more)


def _weighted(
    rows: Beside,
    judge: Sequence[Any],
    people: Sequence[Any],
    weights: Sequence[float],
    level: float,
) -> tuple[stats.Estimate, stats.Estimate]:
    """Kappa and accuracy of rows drawn with unequal probability, by their inverse."""
    import numpy as np

    both = list(zip(judge, people, strict=True))
    keep = [i for i, pair in enumerate(both) if None not in pair]
    cluster = [rows.cluster[i] for i in keep]
    weight = [weights[i] for i in keep]
    right = [float(judge[i] == people[i]) for i in keep]
    accuracy = stats.mean(right, cluster=cluster, weights=weight, level=level)
    cell = np.array([2 * judge[i] + people[i] for i in keep], dtype=int)
    sums = cell_sums(cell, 4, codes(cluster, len(keep))[0], weight=np.array(weight))
    kappa = estimate(
        table_stat("kappa", 2),
        sums,
        n=len(keep),
        method="Cohen's kappa, rows weighted by the inverse of their probability to be drawn",
        missing=len(both) - len(keep),
        level=level,
        bounds=(-1.0, 1.0),
        size=sums.sum(1),
    )
    return kappa, accuracy


def _parted(rows: Beside, cut: float) -> list[Parted]:
    """The rows on which judge and people part, the judge's surest first, heavy criteria first."""
    judge, people = rows.sides(cut)
    both = enumerate(zip(judge, people, strict=True))
    at = [i for i, (j, h) in both if None not in (j, h) and j != h]
    found = [
        Parted(
            rows.task[i],
            rows.response[i],
            rows.criterion[i],
            rows.text[i],
            rows.status[i],
            rows.p[i],
            float(rows.label[i] or 0.0),
            rows.reason[i],
        )
        for i in at
    ]
    weight = {id(w): abs(rows.weight[i]) for w, i in zip(found, at, strict=True)}
    return sorted(found, key=lambda w: (-w.sure, -weight[id(w)]))[:WORST]


def _notes(rows: Beside, overall: Row, cut: float, left_out: int) -> list[str]:
    """What a reader must know beside the numbers."""
    level = sum(
        not all(x in (None, 0.0, 1.0) for x in pair)
        for pair in zip(rows.verdict, rows.label, strict=True)
    )
    said = {
        f"{left_out} verdicts by code are left out: they say nothing of the judge": left_out,
        f"{level} rows lie between met and unmet: {cut:g} and more is met": level,
        f"drawn {rows.design}: weighted by the inverse of a row's probability": rows.weights(),
    }
    notes = [*(text for text, there in said.items() if there), *rows.notes()]
    if overall.n == 0:
        notes.append("no row is known to both: nothing can be said")
    return notes + [n for n in {overall.kappa.note, overall.accuracy.note} if n]


def _line(r: Row) -> str:
    return (
        f"kappa     {r.kappa}\naccuracy  {r.accuracy}\n"
        f"credit that people refuse {r.too_kind}, refused what people give {r.too_strict}; "
        f"unknown: judge {r.unknown}, people {r.unsaid} (left out, never wrong or unmet)"
    )


def _cells(r: Row) -> tuple[Any, ...]:
    return (
        f"{r.id}: {r.text}" if r.text else r.id,
        r.n,
        str(r.kappa),
        str(r.accuracy),
        r.unknown,
        r.too_kind,
        r.too_strict,
    )


def _table(rows: Sequence[Row]) -> list[str]:
    lines = [f"{'n':>6}  {'kappa':<19} {'accuracy':<17} {'unknown':>7}  criterion"]
    for r in rows[:SHOWN]:
        name = " ".join(f"{r.id}: {r.text}".split())
        kappa, accuracy = r.kappa.span(), r.accuracy.span()
        lines.append(f"{r.n:>6}  {kappa:<19} {accuracy:<17} {r.unknown:>7}  {name}")
    beyond = len(rows) - SHOWN
    if beyond > 0:
        lines.append(f"... and {beyond} more criteria (all with --json)")
    return lines


def _side(label: float) -> str:
    return {1.0: "met", 0.0: "unmet"}.get(label, f"{label:g}")


def _told(w: Parted) -> str:
    sure = "" if w.p is None else f" (P(met) {w.p:.2f})"
    lines = [
        f"- {w.task} / {w.response} / {w.criterion}: {' '.join(w.text.split())}",
        f"    judge {w.judge}{sure}, people {_side(w.label)}",
    ]
    reason = " ".join(w.reason.split())
    return "\n".join([*lines, f"    because: {reason}"] if reason else lines)
