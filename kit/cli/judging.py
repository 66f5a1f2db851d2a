"""What `judge` does once its options are read: judging, estimating, auditing."""

from __future__ import annotations

import argparse
import json
import math
import os
from array import array
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

from ..data.jsonl import dumps
from ..data.schemas import readable, stamped
from ..errors import BudgetError, DataError, JudgeDownError, KitError
from ..judge.records import PASSING
from ..records import PAID, Grade, Response, Task, Verdict, fingerprint, paid, to_json
from ..runs import plain
from ..system import paths, processes
from .common import Output

SYNC = 200  # lines between two times that the output is on the disk for sure
WAIT = (
    10_000  # finished answers that may wait for a slow one, so that lines keep the answers' order
)
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

    sizes = _kept(out) if args.resume else {}
    left = [r for r in answers if (r.task_id, r.id) not in sizes]
    kept = len(sizes)
    if out.exists() and not args.resume:
        out.unlink()
    out.parent.mkdir(parents=True, exist_ok=True)
    by_id, stop, totals = {t.id: t for t in tasks}, None, _Totals(args.aggregate, tasks)
    with Ledger(ledger) as book, paths.naming(out), _Grades(out, answers, sizes) as grades:

        def each(r: Response, got: list[Verdict]) -> None:
            g = _grade(args, by_id[r.task_id], r, got)
            totals.add(g)
            grades.put(g)

        try:
            spent = engine.judge(
                tasks,
                left,
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
    data, text = totals.data(out, kept, who), totals.text(out, kept, ledger)
    return Output(data, text, error=stop)


Key = tuple[str, str]  # an answer: its task, its id


class _Grades:
    """The output: a line per answer, in the order of the answers, whatever the order of coming.

    At most WAIT finished answers wait for a slow one; beyond that the oldest are written out of
    order, so that memory stays flat. Lines that stand out of order, these and those of an
    interrupted run, are put in order at the end.
    """

    def __init__(self, out: Path, answers: Sequence[Response], sizes: dict[Key, int]) -> None:
        from ..system.progress import bar

        self.out, self.file, self.sizes, self.broken = out, out.open("ab"), sizes, False
        self.at = {(r.task_id, r.id): i for i, r in enumerate(answers)}
        self.left = deque(k for k in self.at if k not in sizes)  # in the order of the answers
        self.bar = bar(total=len(self.left), desc="judging", unit="answer", delay=2.0)
        self.waiting: dict[Key, bytes] = {}
        self.unsynced = 0

    def put(self, g: Grade) -> None:
        """One answer is finished."""
        self.waiting[g.task_id, g.response_id] = dumps(plain(row(g))) + b"\n"
        self.bar.update(1)
        if len(self.waiting) > WAIT:
            self._write(self._ordered(self.waiting)[: WAIT // 2])
        ready = []
        while self.left and (self.left[0] in self.waiting or self.left[0] in self.sizes):
            ready.append(self.left.popleft())
        self._write([k for k in ready if k in self.waiting])

    def _ordered(self, keys: Iterable[Key]) -> list[Key]:
        """In the order of the answers; lines of others, from another file of answers, follow."""
        return sorted(keys, key=lambda k: self.at.get(k, len(self.at)))

    def _write(self, keys: Sequence[Key]) -> None:
        if self.broken or not keys:
            return
        self.broken = True  # after half a line on a full disk nothing more is written
        lines = {k: self.waiting.pop(k) for k in keys}
        self.file.write(b"".join(lines.values()))
        self.file.flush()
        self.broken = False
        self.sizes.update((k, len(line)) for k, line in lines.items())
        self.unsynced += len(lines)
        if self.unsynced >= SYNC:
            os.fsync(self.file.fileno())
            self.unsynced = 0

    def __enter__(self) -> _Grades:
        return self

    def __exit__(self, *fault: Any) -> None:
        try:
            self._write(self._ordered(self.waiting))
            os.fsync(self.file.fileno())
        finally:
            self.file.close()
            self.bar.close()
        if fault[0] is None and (order := self._ordered(self.sizes)) != list(self.sizes):
            self._reorder(order)

    def _reorder(self, order: Sequence[Key]) -> None:
        starts = dict(zip(self.sizes, accumulate(self.sizes.values(), initial=0), strict=False))
        with (
            open(self.out, "rb") as old,
            paths.whole(self.out) as part,
            open(part, "wb") as new,
        ):
            for key in order:
                old.seek(starts[key])
                new.write(old.read(self.sizes[key]))


def _kept(out: Path) -> dict[Key, int]:
    """Answers whose line in OUT stands, and its bytes; the others are cut out and judged again.

    Half a line at the end (a crash), and lines with a verdict that a new call can change (the
    judge was away, a cap was reached). Read line by line; a line ends at \\n and nowhere else.
    """
    kept: dict[Key, int] = {}
    if not out.exists():
        return kept
    with open(out, "rb") as old, paths.whole(out) as part, open(part, "wb") as new:
        for n, line in enumerate(old, 1):
            key = _done(line, f"{out}, line {n}") if line.endswith(b"\n") else None
            if key in kept:
                fix = "take one of the lines out, or run without --resume"
                raise DataError(f"{key[1]!r} is graded twice", where=f"{out}, line {n}", fix=fix)
            if key is not None:
                kept[key] = len(line)
                new.write(line)
    return kept


def _done(line: bytes, where: str) -> Key | None:
    """The answer that a line of OUT grades; None where it is to be judged again."""
    try:
        data = readable("grades", json.loads(line.decode("utf-8", "surrogatepass")), where=where)
        again = any(v.get("failure") in PASSING for v in data.get("verdicts", ()))
        return None if again else (data["task_id"], data["response_id"])
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DataError(
            "this is no line of a grades file",
            where=where,
            fix="give another --out, or run without --resume",
        ) from None


def _grade(args: argparse.Namespace, task: Task, r: Response, got: list[Verdict]) -> Grade:
    """The grade of an answer; its cost is that of its verdicts when they were asked, also by a run
    that was killed before it wrote the line.
    """
    from ..rewards.aggregate import grade, usage

    more = {} if args.max_width is None else {"max_width": args.max_width}
    g = grade(task, got, how=args.aggregate, response_id=r.id, **more)
    if not any(v.cached for v in g.verdicts):
        return g
    spent = [replace(v, cached=False, **{k: paid(v, k) for k in PAID}) for v in g.verdicts]
    return replace(g, usage=usage(spent), cost=math.fsum(v.cost for v in spent))


def row(g: Grade) -> dict[str, Any]:
    """A grade as a line of GRADES."""
    data = to_json(g)
    for v in data["verdicts"]:
        for name in ("task_id", "response_id"):
            v.pop(name)
    names = ("task_id", "response_id", "score", "score_low", "score_high")
    more = ("verdicts", "usage", "cost", "parts")
    return stamped("grades", {k: data[k] for k in (*names, *more)})


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

    def data(self, out: Path, kept: int, who: Any) -> dict[str, Any]:
        """As JSON."""
        mean = self.mean()
        per = self.cost / (self.verdicts - self.cached) if self.verdicts > self.cached else None
        return {
            "out": str(out),
            "judge": getattr(who, "name", ""),
            "answers": self.answers,
            "kept": kept,
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

    def text(self, out: Path, kept: int, ledger: Path) -> str:
        """As text."""
        if not self.answers:
            return f"nothing to do: {kept} answers are graded already\ngrades: {out}"
        mean = f"mean score {self.mean()}" if self.scored else "no answer got a score"
        return (
            f"{self.table()}\n"
            f"{self.answers} answers judged ({kept} kept from before), {mean}; "
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
        Path(args.out).write_text(audit_page(report), encoding="utf-8")
        said["out"] = args.out
    page = f"\npage: {args.out}" if args.out else ""
    return Output(said, f"{report}\ncost: ${report.cost:.4f}{page}")


def _budget(args: argparse.Namespace) -> Any:
    """The caps that were given, or None."""
    from ..judge.budget import Budget

    caps = {"calls": args.budget_calls, "tokens": args.budget_tokens, "usd": args.budget_usd}
    return Budget(**caps) if any(x is not None for x in caps.values()) else None
