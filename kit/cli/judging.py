"""What `judge` does once its options are read: judging, estimating, auditing."""

from __future__ import annotations

import argparse
import math
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import BudgetError, JudgeDownError, KitError
from ..records import Grade, Response, Task, Verdict, fingerprint
from ..system import paths, processes
from .common import Output
from .gradefile import Grades, Grading

SHOWN = 20  # criteria in the table at the end


def judge(
    args: argparse.Namespace,
    tasks: list[Task],
    answers: list[Response],
    who: Any,
    ledger: Path,
    out: Path,
) -> Output:
    """Judge; each answer's grade is written as soon as those before it are."""
    out = paths.regular(out)
    busy = KitError(
        "another run is writing this file now",
        where=f"--out {out}",
        fix="wait for it, or give this run another --out",
    )
    with processes.alone(
        paths.home(), fingerprint(str(out.resolve())), lambda text: None, busy=busy
    ):  # two runs would mix their lines
        return _judge(args, tasks, answers, who, ledger, out)


def _judge(
    args: argparse.Namespace,
    tasks: list[Task],
    answers: list[Response],
    who: Any,
    ledger: Path,
    out: Path,
) -> Output:
    from ..judge import run as engine
    from ..judge.ledger import Ledger

    grading = Grading({t.id: t for t in tasks}, who, args.aggregate, args.max_width)
    grades = Grades(out, answers, grading, resume=args.resume)
    stop, totals = None, _Totals(args.aggregate, tasks)
    with Ledger(ledger) as book, paths.naming(out), grades:

        def each(r: Response, got: list[Verdict]) -> None:
            g = grading.grade(r, got)
            totals.add(g)
            grades.put(g)

        try:
            spent = engine.judge(
                tasks,
                [grades.of[key] for key in grades.left],
                judge=who,
                ledger=book,
                progress=False,
                budget=_budget(args),
                retry=[k for k in args.retry.split(",") if k],
                each=each,
            ).spent
        except (BudgetError, JudgeDownError) as e:
            spent, stop = e.verdicts.spent, e  # type: ignore[union-attr]
    totals.calls, totals.cost = spent.calls, spent.cost
    totals.tokens = spent.tokens_in + spent.tokens_out
    if not stop and totals.lost and totals.lost == totals.verdicts - totals.by_code:
        stop = JudgeDownError(
            f"not one call succeeded: {totals.said}",
            where=f"judge {getattr(who, 'name', '')}",
            fix="look at the server, the address and the key; then run the same command again",
        )
    if not stop:
        grades.before.unlink(missing_ok=True)
    data, text = totals.data(grades, who), totals.text(grades, ledger)
    return Output(data, text, error=stop)


@dataclass
class _Row:
    """A criterion in the table at the end."""

    id: str
    text: str
    n: int = 0
    met: int = 0
    unmet: int = 0
    unknown: int = 0
    values: array[float] = field(default_factory=lambda: array("d"))
    tasks: array[int] = field(default_factory=lambda: array("q"))

    def add(self, v: Verdict, task: int) -> None:
        """Add a verdict on an answer to the task of this number."""
        self.n += 1
        self.met += v.status == "met"
        self.unmet += v.status == "unmet"
        self.unknown += not v.known
        if v.value is not None:
            self.values.append(v.value)
            self.tasks.append(task)

    def mean(self) -> Any:
        """Mean of the known verdicts, interval clustered by task; None where all are unknown."""
        from .. import stats

        n = len(self.values)
        if not n:
            return None
        if min(self.tasks) == max(self.tasks):  # a rubric of its own for each task: no interval
            return stats.Estimate(sum(self.values) / n, math.nan, math.nan, n, 1)
        return stats.mean(self.values.tolist(), cluster=self.tasks.tolist(), bounds=(0.0, 1.0))

    def data(self) -> dict[str, Any]:
        """As JSON; the mean is of known verdicts, None where there are none."""
        mean = self.mean()
        names = ("id", "text", "n", "met", "unmet", "unknown")
        row = {k: getattr(self, k) for k in names}
        ends = {"mean": mean, "low": mean, "high": mean}
        if mean is not None:
            ends = {"mean": mean.value, "low": mean.low, "high": mean.high}
        return {**row, **ends}


class _Totals:
    """What the run gave, for the last lines of output."""

    def __init__(self, how: str, tasks: Sequence[Task]) -> None:
        self.how = how
        self.answers = self.scored = self.verdicts = self.unknown = self.cached = 0
        self.calls = self.tokens = self.lost = self.by_code = 0
        self.cost, self.said = 0.0, ""
        self.scores: list[tuple[str, float | None]] = []
        self.why: Counter[str] = Counter()
        self.texts = {(t.id, c.id): c.title or c.text for t in tasks for c in t.criteria}
        self.rows: dict[tuple[str, str], _Row] = {}
        self.numbers: dict[str, int] = {}  # of the tasks

    def add(self, g: Grade) -> None:
        """Add an answer."""
        self.answers += 1
        self.scores.append((g.task_id, g.score))
        self.scored += g.score is not None
        self.verdicts += len(g.verdicts)
        for v in g.verdicts:
            self._verdict(g.task_id, v)

    def _verdict(self, task_id: str, v: Verdict) -> None:
        text = self.texts.get((task_id, v.criterion_id), "")
        name = (v.criterion_id, text)
        number = self.numbers.setdefault(task_id, len(self.numbers))
        self.rows.setdefault(name, _Row(*name)).add(v, number)
        self.cached += v.cached
        self.by_code += v.judge == "code"
        if not v.known:
            self.unknown += 1
            self.why[f"{v.failure}: {v.reason}" if v.reason else str(v.failure)] += 1
        if v.failure == "transport":
            self.lost, self.said = self.lost + 1, v.reason or "no reason given"

    def table(self) -> str:
        """The criteria with what was found, as text; the rarest are left out of a long table."""
        rows = sorted(self.rows.values(), key=lambda r: -r.n)
        lines = [f"{'n':>6} {'met':>6} {'unmet':>6} {'unknown':>7}  {'mean':<16} criterion"]
        for r in rows[:SHOWN]:
            counts = f"{r.n:6} {r.met:6} {r.unmet:6} {r.unknown:7}"
            name, mean = " ".join(f"{r.id}: {r.text}".split()), r.mean()
            lines.append(f"{counts}  {mean.span() if mean else '':<16} {name}")
        if len(rows) > SHOWN:
            lines.append(f"... and {len(rows) - SHOWN} more criteria (all of them with --json)")
        return "\n".join(lines)

    def mean(self) -> Any:
        """Mean score, its interval clustered by task; None where there is no score."""
        from .. import stats

        bounds = (0.0, 1.0) if self.how in ("mean", "flip", "signed") else (-math.inf, math.inf)
        return (
            stats.mean(
                [s for _, s in self.scores], cluster=[t for t, _ in self.scores], bounds=bounds
            )
            if self.scored
            else None
        )

    def data(self, grades: Grades, who: Any) -> dict[str, Any]:
        """As JSON."""
        mean = self.mean()
        per = self.cost / (self.verdicts - self.cached) if self.verdicts > self.cached else None
        return {
            "out": str(grades.out),
            "judge": getattr(who, "name", ""),
            "answers": self.answers,
            "kept": grades.kept,
            "stale": grades.stale,
            "scored": self.scored,
            "score_mean": mean.value if mean else None,
            "score_low": mean.low if mean else None,
            "score_high": mean.high if mean else None,
            "tasks": len({t for t, _ in self.scores}),
            "verdicts": self.verdicts,
            "unknown": self.unknown,
            "cached": self.cached,
            "calls": self.calls,
            "tokens": self.tokens,
            "cost": self.cost,
            "cost_per_verdict": per,
            "abilities": getattr(who, "abilities", None),
            "criteria": [r.data() for r in self.rows.values()],
        }

    def text(self, grades: Grades, ledger: Path) -> str:
        """As text."""
        out, kept = grades.out, grades.kept
        more = f"; {grades.others} lines are of other answers" if grades.others else ""
        if not self.answers:
            return f"nothing to do: {kept} answers are graded already{more}\ngrades: {out}"
        mean = f"their mean score {self.mean()}" if self.scored else "no answer got a score"
        return (
            f"{self.table()}\n"
            f"{self.answers} answers judged ({kept} kept from before{more}), {mean}; "
            f"{self.answers - self.scored} without a score\n"
            f"{self.verdicts} verdicts, {self.unknown} unknown, {self.cached} from the ledger; "
            f"{self.calls} calls, {self.tokens} tokens, ${self.cost:.4f}\n"
            + "".join(f"unknown, {n} times: {why[:200]}\n" for why, n in self.why.most_common(1))
            + f"grades: {out}\nledger: {ledger}"
        )


def estimate(
    args: argparse.Namespace, tasks: list[Task], answers: list[Response], who: Any, ledger: Path
) -> Output:
    from ..judge import run as engine
    from ..judge.ledger import Ledger

    book = Ledger(ledger, readonly=True) if ledger.exists() else None
    cost = engine.estimate(tasks, answers, judge=who, ledger=book)
    data = {"answers": len(answers), **vars(cost)}
    return Output(data, f"{len(answers)} answers: {cost}; nothing was sent")


def audit(
    args: argparse.Namespace, tasks: list[Task], answers: list[Response], who: Any, ledger: Path
) -> Output:
    """The attack and bias suite on these answers; with --out, also as a page.

    Through the ledger, so that it can be interrupted.
    """
    from ..judge import audit as suite
    from ..judge.ledger import Ledger

    with Ledger(ledger) as book:
        report = suite.audit(who, tasks, answers, ledger=book, budget=_budget(args))
    said = {
        "judge": getattr(who, "name", ""),
        "answers": report.n_responses,
        "cost": report.cost,
        "rows": report.table(),
        "ladder": [{"step": r.name, **r.rate.as_dict()} for r in report.ladder],
        "fit": report.fit.data(),
    }
    if args.out:
        from ..plots.judging import audit_page

        Path(args.out).parent.mkdir(parents=True, exist_ok=True)
        paths.write_text(Path(args.out), audit_page(report))
        said["out"] = args.out
    page = f"\npage: {args.out}" if args.out else ""
    return Output(said, f"{report}\ncost: ${report.cost:.4f}{page}")


def _budget(args: argparse.Namespace) -> Any:
    """The caps that were given, or None."""
    from ..judge.budget import Budget

    caps = {"calls": args.budget_calls, "tokens": args.budget_tokens, "usd": args.budget_usd}
    return Budget(**caps) if any(x is not None for x in caps.values()) else None
