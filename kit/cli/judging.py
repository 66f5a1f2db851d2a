"""What `judge` does once its options are read: judging, estimating, auditing."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import BudgetError, JudgeDownError, KitError
from ..judge import run as engine
from ..judge.ledger import Ledger
from ..records import Grade, Response, Task, Verdict, fingerprint
from ..system import paths, processes
from .common import Options, Output
from .gradefile import Grades, Grading

SHOWN = 20  # criteria in the table at the end


def judge(
    args: Options,
    tasks: list[Task],
    answers: list[Response],
    who: Any,
    ledger: Path,
    out: Path,
) -> Output:
    """Judge; each answer's grade is written as soon as it is there."""
    out = paths.regular(out)
    busy = KitError(
        "another run is writing this file now",
        where=f"--out {out}",
        fix="wait for it, or give this run another --out",
    )
    grading = Grading({t.id: t for t in tasks}, who, args.aggregate, args.max_width)
    stop, totals = None, _Totals(args.aggregate, tasks)
    alone = processes.alone(
        paths.home(), fingerprint(str(out.resolve())), lambda text: None, busy=busy
    )
    with alone:  # two runs would mix their lines
        grades = Grades(out, answers, grading, resume=args.resume)

        def each(r: Response, got: list[Verdict]) -> None:
            g = grading.grade(r, got)
            totals.add(g)
            grades.put(g)

        with Ledger(ledger) as book, paths.naming(out), grades:
            try:
                spent = engine.judge(
                    tasks,
                    grades.left,
                    judge=who,
                    ledger=book,
                    progress=False,
                    budget=_budget(args),
                    retry=[k for k in args.retry.split(",") if k],
                    each=each,
                ).spent
            except (BudgetError, JudgeDownError) as e:
                spent, stop = e.verdicts.spent, e  # type: ignore[union-attr]
        lost = {why: n for why, n in totals.why.items() if why[0] == "transport"}
        if not stop and lost and sum(lost.values()) == spent.verdicts - spent.by_code:
            stop = JudgeDownError(
                f"not one call succeeded: {[*lost][-1][1] or 'no reason given'}",
                where=f"judge {getattr(who, 'name', '')}",
                fix="look at the server, the address and the key; then run the same command again",
            )
        if not stop:
            grades.ended()
    text = totals.text(grades, ledger, spent)
    return Output(totals.data(grades, who, spent), text, error=stop)


class _Totals:
    """What the run gave, for the last lines of output; memory grows by two numbers a verdict."""

    def __init__(self, how: str, tasks: Sequence[Task]) -> None:
        self.bounds = (0.0 if how in ("mean", "flip", "signed") else -math.inf, 1.0)
        self.scores: list[tuple[str, float | None]] = []
        self.why: Counter[tuple[str | None, str | None]] = Counter()
        self.texts = {(t.id, c.id): c.title or c.text for t in tasks for c in t.criteria}
        self.numbers = {t.id: i for i, t in enumerate(tasks)}
        # by (id, text) of a criterion: states, known values, and the number of each one's task
        self.found: dict[tuple[str, str], tuple[Counter[str], array[float], array[int]]] = {}

    def add(self, g: Grade) -> None:
        """Add an answer."""
        self.scores.append((g.task_id, g.score))
        for v in g.verdicts:
            name = (v.criterion_id, self.texts.get((g.task_id, v.criterion_id), ""))
            states, values, of = self.found.setdefault(name, (Counter(), array("d"), array("q")))
            states[v.status] += 1
            if v.value is not None:
                values.append(v.value)
                of.append(self.numbers[g.task_id])
            if not v.known:
                self.why[v.failure, v.reason] += 1

    def criteria(self) -> dict[Any, tuple[dict[str, Any], Any]]:
        """By criterion: its counts, and the mean of its known verdicts (None: there are none)."""
        return {
            (i, text): (
                {"id": i, "text": text, "n": states.total()}
                | {state: states[state] for state in ("met", "unmet", "unknown")},
                _mean(values, of),
            )
            for (i, text), (states, values, of) in self.found.items()
        }

    def table(self) -> str:
        """The criteria with what was found, as text; the rarest are left out of a long table."""
        rows = sorted(self.criteria().values(), key=lambda row: -row[0]["n"])
        lines = [f"{'n':>6} {'met':>6} {'unmet':>6} {'unknown':>7}  {'mean':<16} criterion"]
        for r, mean in rows[:SHOWN]:
            counts = f"{r['n']:6} {r['met']:6} {r['unmet']:6} {r['unknown']:7}"
            name = " ".join(f"{r['id']}: {r['text']}".split())
            span = mean.span() if mean else ""
            lines.append(f"{counts}  {span:<16} {name}")
        if len(rows) > SHOWN:
            lines.append(f"... and {len(rows) - SHOWN} more criteria (all of them with --json)")
        return "\n".join(lines)

    def mean(self) -> Any:
        """Mean score, its interval clustered by task; None where there is no score."""
        from .. import stats

        if all(score is None for _, score in self.scores):
            return None
        of, scores = zip(*self.scores, strict=True)
        return stats.mean(list(scores), cluster=list(of), bounds=self.bounds)

    def data(self, grades: Grades, who: Any, spent: Any) -> dict[str, Any]:
        """As JSON."""
        fresh = spent.verdicts - spent.cached
        return {
            "out": str(grades.out),
            "judge": getattr(who, "name", ""),
            "answers": len(self.scores),
            "kept": grades.kept,
            "stale": grades.stale,
            "scored": sum(score is not None for _, score in self.scores),
            **_ends(self.mean(), "score_mean", "score_low", "score_high"),
            "tasks": len({t for t, _ in self.scores}),
            "verdicts": spent.verdicts,
            "unknown": self.why.total(),
            "cached": spent.cached,
            "calls": spent.calls,
            "tokens": spent.tokens_in + spent.tokens_out,
            "cost": spent.cost,
            "cost_per_verdict": spent.cost / fresh if fresh else None,
            "abilities": getattr(who, "abilities", None),
            "criteria": [r | _ends(m, "mean", "low", "high") for r, m in self.criteria().values()],
        }

    def text(self, grades: Grades, ledger: Path, spent: Any) -> str:
        """As text."""
        out, kept, n, mean = grades.out, grades.kept, len(self.scores), self.mean()
        more = f"; {grades.others} lines are of other answers" if grades.others else ""
        if not n:
            return f"nothing to do: {kept} answers are graded already{more}\ngrades: {out}"
        said = f"their mean score {mean}" if mean else "no answer got a score"
        whys = ((": ".join(filter(None, why)), m) for why, m in self.why.most_common(1))
        lost = [f"unknown, {m} times: {why[:200]}\n" for why, m in whys]
        unscored = sum(score is None for _, score in self.scores)
        answers = f"{n} answers judged ({kept} kept from before{more})"
        verdicts = f"{spent.verdicts} verdicts, {self.why.total()} unknown"
        tokens = spent.tokens_in + spent.tokens_out
        paid = f"{spent.calls} calls, {tokens} tokens, ${spent.cost:.4f}"
        return (
            f"{self.table()}\n"
            f"{answers}, {said}; {unscored} without a score\n"
            f"{verdicts}, {spent.cached} from the ledger; {paid}\n"
            f"{''.join(lost)}grades: {out}\nledger: {ledger}"
        )


def _mean(values: array[float], of: array[int]) -> Any:
    """Mean of a criterion's known verdicts, interval clustered by task."""
    from .. import stats

    if not values:
        return None
    if min(of) == max(of):  # a rubric of its own for each task: no interval
        return stats.Estimate(sum(values) / len(values), math.nan, math.nan, len(values), 1)
    return stats.mean(values.tolist(), cluster=of.tolist(), bounds=(0.0, 1.0))


def _ends(mean: Any, *names: str) -> dict[str, Any]:
    """Value and interval under these names; None where there is none."""
    ends = (None, None, None) if mean is None else (mean.value, mean.low, mean.high)
    return dict(zip(names, ends, strict=True))


def estimate(
    args: Options, tasks: list[Task], answers: list[Response], who: Any, ledger: Path
) -> Output:
    book = Ledger(ledger, readonly=True) if ledger.exists() else None
    cost = engine.estimate(tasks, answers, judge=who, ledger=book)
    data = {"answers": len(answers), **vars(cost)}
    return Output(data, f"{len(answers)} answers: {cost}; nothing was sent")


def audit(
    args: Options, tasks: list[Task], answers: list[Response], who: Any, ledger: Path
) -> Output:
    """The attack and bias suite on these answers; with --out, also as a page.

    Through the ledger, so that it can be interrupted.
    """
    from ..judge import audit as suite

    with Ledger(ledger) as book:
        report = suite.audit(
            who,
            tasks,
            answers,
            ledger=book,
            budget=_budget(args),
        )
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


def _budget(args: Options) -> Any:
    """The caps that were given."""
    from ..judge.prices import Budget

    return Budget(calls=args.budget_calls, tokens=args.budget_tokens, usd=args.budget_usd)
