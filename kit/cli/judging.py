"""What `judge` does once its options are read: judging in chunks, estimating, auditing, and the ledger's own commands."""

from __future__ import annotations

import argparse
import json
import math
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import BudgetError, DataError, JudgeDownError, KitError
from ..records import Grade, Response, Task, Verdict, fingerprint, to_json
from ..runs import plain
from ..system import paths, processes
from .common import emit

CHUNK = 200  # answers between two writes of the output


def judge(
    args: argparse.Namespace,
    tasks: list[Task],
    answers: list[Response],
    who: Any,
    ledger: Path,
    out: Path,
) -> int:
    """Judge in chunks; each chunk's grades are on disk before the next begins."""
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
) -> int:
    from ..judge import run as engine
    from ..judge.ledger import Ledger
    from ..system.progress import bar

    done = _done(out) if args.resume else set()
    left = [r for r in answers if (r.task_id, r.id) not in done]
    if out.exists() and not args.resume:
        out.unlink()
    out.parent.mkdir(parents=True, exist_ok=True)
    budget = _budget(args)
    by_id, stop, totals = {t.id: t for t in tasks}, None, _Totals(args.aggregate)
    size = len(left) if args.batch else CHUNK
    with (
        Ledger(ledger) as book,
        open(out, "a", encoding="utf-8") as f,
        bar(total=len(left), desc="judging", unit="answer", delay=2.0) as shown,
    ):
        for start in range(0, len(left), max(size, 1)):
            part = left[start : start + size]
            try:
                got = engine.judge(
                    tasks,
                    part,
                    judge=who,
                    ledger=book,
                    progress=False,
                    budget=budget,
                    retry=[k for k in args.retry.split(",") if k],
                )
            except (BudgetError, JudgeDownError) as e:
                got, stop = getattr(e, "verdicts", engine.Verdicts()), e
            mine: dict[tuple[str, str], list[Verdict]] = {}
            for v in got:
                mine.setdefault((v.task_id, v.response_id), []).append(v)
            grades = [
                _grade(args, by_id[r.task_id], r, mine.get((r.task_id, r.id), [])) for r in part
            ]
            whole = (
                [
                    g
                    for g in grades
                    if not any(v.failure in ("budget", "transport") for v in g.verdicts)
                ]
                if stop
                else grades
            )
            totals.add(whole, got)
            f.write("".join(json.dumps(plain(row(g)), ensure_ascii=False) + "\n" for g in whole))
            f.flush()
            os.fsync(f.fileno())
            shown.update(len(whole))
            shown.set_postfix_str(f"${totals.cost:.4f}", refresh=False)
            if stop:
                break
    emit(args, totals.data(out, len(done), who), totals.text(out, len(done), ledger))
    if stop:
        raise stop
    if totals.lost and totals.lost == totals.verdicts - totals.by_code:
        raise JudgeDownError(
            f"not one call succeeded: {totals.said}",
            where=f"judge {getattr(who, 'name', '')}",
            fix="look at the server, the address and the key; then run the same command again without --resume",
        )
    return 0


def _done(out: Path) -> set[tuple[str, str]]:
    """Answers that have a whole line in OUT; half a line at the end (a crash) is cut off."""
    if not out.exists():
        return set()
    raw = out.read_bytes()
    whole = raw[: raw.rfind(b"\n") + 1]
    if whole != raw:
        part = out.with_name(out.name + ".part")
        part.write_bytes(whole)
        os.replace(part, out)
    rows = []
    for n, line in enumerate(whole.decode("utf-8").splitlines(), 1):
        try:
            data = json.loads(line)
            rows.append((data["task_id"], data["response_id"]))
        except (ValueError, KeyError, TypeError):
            raise DataError(
                "this is no line of a grades file",
                where=f"{out}, line {n}",
                fix="give another --out, or run without --resume",
            ) from None
    return set(rows)


def _grade(args: argparse.Namespace, task: Task, r: Response, got: list[Verdict]) -> Grade:
    from ..rewards.aggregate import grade

    more = {} if args.max_width is None else {"max_width": args.max_width}
    return grade(task, got, how=args.aggregate, response_id=r.id, **more)


def row(g: Grade) -> dict[str, Any]:
    """A grade as a line of GRADES."""
    data = to_json(g)
    for v in data["verdicts"]:
        for name in ("task_id", "response_id"):
            v.pop(name)
    return {
        k: data[k]
        for k in (
            "task_id",
            "response_id",
            "score",
            "score_low",
            "score_high",
            "verdicts",
            "usage",
            "cost",
            "parts",
        )
    }


class _Totals:
    """What the run gave, for the last lines of output."""

    def __init__(self, how: str) -> None:
        self.how = how
        self.answers = self.scored = self.verdicts = self.unknown = self.cached = self.calls = (
            self.tokens
        ) = 0
        self.cost, self.scores = 0.0, []
        self.lost, self.by_code, self.said = 0, 0, ""
        self.why: Counter[str] = Counter()

    def add(self, grades: Sequence[Grade], got: Any) -> None:
        """Add a chunk."""
        self.answers += len(grades)
        self.scores += [(g.task_id, g.score) for g in grades]
        self.scored += sum(g.score is not None for g in grades)
        verdicts = [v for g in grades for v in g.verdicts]
        self.verdicts += len(verdicts)
        self.unknown += sum(not v.known for v in verdicts)
        self.why.update(
            f"{v.failure}: {v.reason}" if v.reason else str(v.failure)
            for v in verdicts
            if not v.known
        )
        self.cached += sum(v.cached for v in verdicts)
        self.by_code += sum(v.judge == "code" for v in verdicts)
        lost = [v for v in verdicts if v.failure == "transport"]
        self.lost, self.said = (
            self.lost + len(lost),
            (lost[-1].reason or "no reason given") if lost else self.said,
        )
        spent = getattr(got, "spent", None)
        if spent is not None:
            self.calls, self.cost, self.tokens = (
                self.calls + spent.calls,
                self.cost + spent.cost,
                self.tokens + spent.tokens_in + spent.tokens_out,
            )

    def mean(self) -> Any:
        """Mean score with an interval clustered by task, unknown ones counted; None where there is no score."""
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
        }

    def text(self, out: Path, kept: int, ledger: Path) -> str:
        """As text."""
        mean = f"mean score {self.mean()}" if self.scored else "no answer got a score"
        return (
            f"{self.answers} answers judged ({kept} kept from before), {mean}; {self.answers - self.scored} without a score\n"
            f"{self.verdicts} verdicts, {self.unknown} unknown, {self.cached} from the ledger; {self.calls} calls, {self.tokens} tokens, "
            f"${self.cost:.4f}\n"
            + "".join(f"unknown, {n} times: {why[:200]}\n" for why, n in self.why.most_common(1))
            + f"grades: {out}\nledger: {ledger}"
        )


def estimate(
    args: argparse.Namespace, tasks: list[Task], answers: list[Response], who: Any, ledger: Path
) -> int:
    from ..judge import run as engine
    from ..judge.ledger import Ledger

    book = Ledger(ledger, readonly=True) if ledger.exists() else None
    cost = engine.estimate(tasks, answers, judge=who, ledger=book)
    money = (
        f"${cost.cost:.4f}" if cost.cost is not None else "an unknown price (give --price IN,OUT)"
    )
    emit(
        args,
        {
            "answers": len(answers),
            "calls": cost.calls,
            "tokens_in": cost.tokens_in,
            "tokens_out": cost.tokens_out,
            "cost": cost.cost,
        },
        f"{len(answers)} answers: {cost.calls} calls, about {cost.tokens_in} tokens in, {cost.tokens_out} out, {money}; nothing was sent",
    )
    return 0


def ledger(args: argparse.Namespace, book: Any) -> int:
    """The ledger's own commands."""
    if args.load:
        n = book.load(args.load)
        emit(args, {"lines": n}, f"{n} lines read into {book.path}")
    elif args.export:
        n = book.export(args.export)
        emit(args, {"lines": n}, f"{n} lines written to {args.export}")
    elif args.costs:
        rows = book.costs()
        lines = [
            f"{r['judge']}  {r['model']}  {r['endpoint']}: {r['calls']} calls, {r['verdicts']} verdicts, {r['tokens_in']} + {r['tokens_out']} "
            f"tokens, ${r['cost']:.4f}"
            for r in rows
        ]
        emit(args, rows, "\n".join(lines) or "nothing has been paid")
    else:
        found = book.explain(args.explain)
        emit(args, found, explained(found))
    return 0


def explained(found: dict[str, Any]) -> str:
    """What the ledger knows of a verdict, as text."""
    v, call = found["verdict"], found["call"]
    state = v["status"] + (f" ({v['failure']})" if v["failure"] else "")
    lines = [
        f"{v['task_id']} / {v['response_id']} / {v['criterion_id']}: {state}, P(met) {v['p']}, by {v['judge']}",
        f"key: {found['key']}",
        f"reason: {v['reason']}",
    ]
    if not call:
        return "\n".join([*lines, "no call is stored with it"])
    lines.append(
        f"call {call['id']}: {call['model']} at {call['endpoint']}, {call['tokens_in']} + {call['tokens_out']} tokens, "
        f"${call['cost']:.6f}, {call['seconds']:.2f} s"
    )
    if call["meta"].get("without"):
        lines.append(
            f"asked without (refused by the endpoint): {', '.join(call['meta']['without'])}"
        )
    lines += [
        f"same call: {', '.join(s['criterion_id'] + ' ' + s['status'] for s in found['same_call']) or 'nothing else'}",
        "",
        "asked:",
    ]
    messages = call["request"].get("messages", []) if isinstance(call["request"], dict) else []
    lines += [f"[{m['role']}]\n{m['content']}" for m in messages]
    return "\n".join([*lines, "", "raw reply:", call["reply"]])


def audit(
    args: argparse.Namespace, tasks: list[Task], answers: list[Response], who: Any, ledger: Path
) -> int:
    """The attack and bias suite on these answers; through the ledger, so that it can be interrupted. With --out, also as a page."""
    from ..judge import audit as suite
    from ..judge.ledger import Ledger

    with Ledger(ledger) as book:
        report = suite.audit(who, tasks, answers, ledger=book, budget=_budget(args))
    said = {
        "judge": getattr(who, "name", ""),
        "answers": report.n_responses,
        "cost": report.cost,
        "rows": report.table(),
    }
    if args.out:
        Path(args.out).parent.mkdir(parents=True, exist_ok=True)
        Path(args.out).write_text(report.page(), encoding="utf-8")
        said["out"] = args.out
    emit(
        args,
        said,
        f"{report}\ncost: ${report.cost:.4f}" + (f"\npage: {args.out}" if args.out else ""),
    )
    return 0


def _budget(args: argparse.Namespace) -> Any:
    """The caps that were given, or None."""
    from ..judge.budget import Budget

    caps = {"calls": args.budget_calls, "tokens": args.budget_tokens, "usd": args.budget_usd}
    return Budget(**caps) if any(x is not None for x in caps.values()) else None
