"""Judge answers: verdicts per criterion and a score per answer, written as JSONL.

Each line of GRADES: {task_id, response_id, score, score_low, score_high, verdicts: [...], usage, cost}. Answers that are in GRADES
already are skipped with --resume; verdicts that are in the ledger are not paid again in any case.
"""  # shown by --help; here are the options, their checks and what is built from them, the work itself is in `judging`

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import DataError, KitError, MissingError
from ..records import FAILURES, Response, Task, response_from_json
from ..system import paths
from . import judging
from .common import json_flag

HELP = "judge answers against their rubrics; verdicts and scores as JSONL"
KINDS = ("replay", "endpoint", "decisions", "server", "local", "embedding", "code")


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments of `judge`."""
    a = parser.add_argument
    a("tasks", nargs="?", help="tasks with their criteria (any format that the kit reads)")
    a("responses", nargs="?", help="JSONL of {task_id, response, response_id?}")
    a(
        "--judge",
        choices=KINDS,
        default="replay",
        help="who judges what code does not (default: replay); server: a .gguf file, served on this machine meanwhile",
    )
    a("--out", help="GRADES.jsonl (default: beside RESPONSES)")
    a("--ledger", help="the ledger file (default: in the kit's cache)")
    a(
        "--model",
        help="model name; for local: a model folder; for server: a .gguf file; for replay: a recorded judge, e.g. gpt-4o/bare",
    )
    a(
        "--replay-from",
        metavar="FILE",
        help="for replay: a ledger, or verdicts as JSONL (default: a recorded real judge, see --model)",
    )
    a("--base-url", help="an OpenAI-compatible server (default: OPENAI_BASE_URL, else OpenAI)")
    a("--key-env", help="the environment variable that holds the key")
    a(
        "--how",
        default="all",
        help="all criteria in one call (all), one each (one), or a number per call",
    )
    a("--template", help="judge template: rubric, single, or a file")
    a(
        "--probability",
        choices=("none", "logprobs", "stated"),
        default="none",
        help="where P(met) comes from",
    )
    a("--effort", help="reasoning effort of a reasoning model")
    a("--concurrency", type=int, help="most calls at once")
    a("--timeout", type=float, default=120.0, help="seconds for one attempt")
    a(
        "--patience",
        type=float,
        default=180.0,
        help="seconds without any success until the run stops (exit code 5)",
    )
    a(
        "--price",
        help="IN,OUT in dollars per million tokens, for models that the price table does not know",
    )
    a("--budget-usd", type=float, help="stop before more dollars are spent (exit code 4)")
    a("--budget-calls", type=int, help="stop before more calls are made")
    a("--budget-tokens", type=int, help="stop before more tokens are used")
    a(
        "--batch",
        action="store_true",
        help="through the provider's batch API: half the price, up to a day",
    )
    a("--resume", action="store_true", help="keep the grades that are in OUT and do the rest")
    a(
        "--skip-bad",
        action="store_true",
        help="judge what can be read of TASKS, although the file has errors",
    )
    a("--retry", default="", help="failure kinds in the ledger to ask again, e.g. parse,missing")
    a(
        "--aggregate",
        default="mean",
        help="how verdicts become a score (see kit.rewards.aggregate.grade)",
    )
    a(
        "--max-width",
        type=float,
        help="widest interval of a partly unknown grade that still gets a score",
    )
    a("--estimate", action="store_true", help="say what it would cost and stop")
    a(
        "--audit",
        action="store_true",
        help="run the attack and bias suite against the judge on these answers instead; with --out AUDIT.html also as a page with the plot",
    )
    a("--explain", metavar="KEY", help="show everything that the ledger knows of a verdict")
    a("--costs", action="store_true", help="show the ledger's cost book")
    a(
        "--export",
        metavar="FILE",
        help="write the ledger's verdicts and replies as JSONL, for others to replay",
    )
    a("--import", dest="load", metavar="FILE", help="read such a file into the ledger")
    json_flag(parser)


def run(args: argparse.Namespace) -> int:
    """Do what was asked; the exit code."""
    from ..judge.ledger import Ledger

    path = Path(args.ledger) if args.ledger else paths.home() / "ledger.sqlite"
    if args.explain or args.costs or args.export or args.load:
        with Ledger(path, readonly=not args.load) as book:
            return judging.ledger(args, book)
    if not args.tasks or not args.responses:
        raise KitError(
            "TASKS and RESPONSES are needed",
            where="kit judge",
            fix="kit judge TASKS RESPONSES --judge endpoint --out GRADES.jsonl",
        )
    _sane(args, path)
    tasks = _tasks(args.tasks, args.skip_bad)
    answers = list(read_responses(args.responses, {t.id for t in tasks}))
    _ready(args, tasks, answers)
    who = make(args)
    if args.audit:
        return judging.audit(args, tasks, answers, who, path)
    if args.estimate:
        return judging.estimate(args, tasks, answers, who, path)
    return judging.judge(args, tasks, answers, who, path, _out(args))


def _tasks(path: str, skip_bad: bool = False) -> list[Task]:
    from ..data import load_tasks

    tasks = load_tasks(path).sound(skip_bad=skip_bad).tasks
    if not tasks:
        raise DataError("there are no tasks", where=path)
    return tasks


def _out(args: argparse.Namespace) -> Path:
    return Path(args.out) if args.out else Path(args.responses).with_suffix(".grades.jsonl")


def _sane(args: argparse.Namespace, ledger: Path) -> None:
    """Stop at options that cannot be meant, before anything is read, paid or written over."""
    out = _out(args).resolve()
    for name, other in (
        ("TASKS", args.tasks),
        ("RESPONSES", args.responses),
        ("--replay-from", args.replay_from),
        ("--ledger", ledger),
    ):
        if other and Path(other).resolve() == out:
            raise KitError(
                f"OUT is the same file as {name}, which would be lost",
                where=f"--out {_out(args)}",
                fix="give --out another name",
            )
    wrong = [k for k in args.retry.split(",") if k and k not in FAILURES]
    if wrong:
        raise KitError(
            f"there is no failure kind {wrong[0]!r}",
            where="--retry",
            fix=f"use any of {', '.join(FAILURES)}",
        )
    if args.base_url and not args.base_url.startswith(("http://", "https://")):
        raise KitError(
            f"{args.base_url!r} is no address of a server",
            where="--base-url",
            fix="write it whole, for example http://127.0.0.1:8000/v1",
        )
    if (
        args.judge in ("endpoint", "decisions")
        and args.key_env
        and not os.environ.get(args.key_env)
    ):
        raise KitError(
            f"the environment variable {args.key_env} is not set",
            where="--key-env",
            fix=f"export {args.key_env}=...",
        )
    if (
        args.judge in ("endpoint", "decisions")
        and not args.estimate
        and "api.openai.com"
        in (args.base_url or os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1")
    ) and not any(
        os.environ.get(k) for k in (args.key_env, "KIT_JUDGE_KEY", "OPENAI_API_KEY") if k
    ):
        raise KitError(
            "OPENAI_API_KEY is not set, and this judge needs it",
            where="environment",
            fix="export OPENAI_API_KEY=..., or give another server with --base-url",
        )


def _ready(args: argparse.Namespace, tasks: list[Task], answers: list[Response]) -> None:
    """Stop before anything is paid: no answers, or answers to a task that asks for nothing."""
    if not answers:
        raise DataError(
            "there are no answers",
            where=args.responses,
            fix='write lines of {"task_id": ..., "response": ...}',
        )
    bare = {t.id for t in tasks if not t.criteria}
    hit = next((r.task_id for r in answers if r.task_id in bare), None)
    if hit is not None and not args.skip_bad:
        raise DataError(
            f"task {hit!r} has no criteria, so its answers cannot be judged",
            where=args.tasks,
            fix="give it a rubric, or pass --skip-bad (its answers get no score)",
        )


def read_responses(path: str, tasks: set[str]) -> Iterator[Response]:
    """Answers from JSONL (or a JSON array, CSV, Parquet); DataError names file and line, also for an answer to no task or an id that comes twice.

    Ids that are numbers are read as text, as they are in tasks.
    """
    from ..data.tables import nearest, read_rows

    seen: set[tuple[str, str]] = set()
    for where, row in read_rows(path):
        row = {
            k: str(v) if k in ("task_id", "response_id", "id") and isinstance(v, int) else v
            for k, v in row.items()
        }
        for name, others in (("task_id", ("task_id",)), ("response", ("response", "text"))):
            if not any(row.get(o) is not None for o in others):
                near = nearest(name, row)
                raise DataError(
                    f"there is no {name!r}",
                    where=f"{where}, field {name}",
                    fix=(f"did you mean {near!r}? " if near and near != name else "")
                    + f"fields of the row: {', '.join(list(row)[:12]) or 'none'}",
                )
            if not isinstance(next(row[o] for o in others if row.get(o) is not None), str):
                raise DataError(
                    f"{name!r} is not text",
                    where=f"{where}, field {name}",
                    fix="write it in quotes",
                )
        r = response_from_json(row, where=where)
        if r.task_id not in tasks:
            near = nearest(r.task_id, tasks)
            raise DataError(
                f"there is no task {r.task_id!r}",
                where=f"{where}, field task_id",
                fix="give the file that has this task"
                + (f"; the nearest is {near!r}" if near else ""),
            )
        if (r.task_id, r.id) in seen:
            raise DataError(
                f"the answer {r.id!r} to task {r.task_id!r} comes twice",
                where=f"{where}, field response_id",
                fix="give every answer of a task its own response_id",
            )
        seen.add((r.task_id, r.id))
        yield r


def make(args: argparse.Namespace) -> Any:
    """The judge that the arguments name."""
    kind = args.judge
    if kind in ("code", "embedding"):
        from ..judge.factory import judge_of

        return judge_of(kind)
    if kind == "replay":
        return _replay(args)
    if kind == "local":
        from ..data.models import smollm2
        from ..judge.local import LocalJudge

        if args.model and not Path(args.model).is_dir():
            raise MissingError(
                "there is no such model folder",
                where=f"--model {args.model}",
                fix="give a folder with a model; without --model SmolLM2 judges",
            )
        return LocalJudge.from_pretrained(args.model or smollm2())
    if kind == "server":
        return _server(args)
    common = {
        "base_url": args.base_url,
        "key_env": args.key_env,
        "concurrency": args.concurrency,
        "timeout": args.timeout,
        "patience": args.patience,
        "price": _price(args.price),
    }
    if kind == "decisions":
        from ..judge.decisions import DecisionJudge

        return DecisionJudge(args.model, **common)
    from ..judge.endpoint import EndpointJudge

    who: Any = EndpointJudge(
        args.model,
        how=_how(args.how),
        template=args.template,
        probability=args.probability,
        effort=args.effort,
        **common,
    )
    if args.batch:
        from ..judge.batch import BatchJudge

        who = BatchJudge(who)
    return who


def _server(args: argparse.Namespace) -> Any:
    """A judge on a GGUF file that is served on this machine until this process ends."""
    from ..data.models import smollm2_gguf
    from ..judge.server import LocalServer

    slots = args.concurrency or 1
    server = LocalServer(args.model or smollm2_gguf(), slots=slots, context=8192).start()
    return server.judge(
        how=_how(args.how),
        template=args.template,
        probability=args.probability,
        timeout=args.timeout,
        patience=args.patience,
        name=server.model,
    )


def _replay(args: argparse.Namespace) -> Any:
    """Recorded verdicts: of a file or ledger (--replay-from), else of a recorded real judge (--model NAME or NAME/PROMPT)."""
    from ..judge.replay import ReplayJudge

    source = args.replay_from
    if source:
        if not Path(source).exists():
            raise MissingError("there is no such file", where=source)
        jsonl = Path(source).suffix.lower() in (".jsonl", ".json")
        return (ReplayJudge.from_jsonl if jsonl else ReplayJudge.from_ledger)(
            source, judge=args.model
        )
    name, _, prompt = (args.model or "gpt-4o").partition("/")
    return ReplayJudge.recorded(name, prompt or "bare")


def _how(text: str) -> str | int:
    return int(text) if text.isdigit() else text


def _price(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        first, second = (float(x) for x in text.split(","))
        return first, second
    except ValueError:
        raise KitError(
            f"--price is {text!r}",
            where="--price",
            fix="write IN,OUT in dollars per million tokens, e.g. --price 0.1,0.5",
        ) from None
