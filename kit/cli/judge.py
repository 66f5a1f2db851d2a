"""Judge answers: verdicts per criterion and a score per answer, written as JSONL.

Each line of GRADES: {task_id, response_id, score, score_low, score_high, verdicts: [...], usage,
cost}. With --resume the lines that are in GRADES stay, but for those on another text, by another
rubric or judge; verdicts that are in the ledger are not paid again in any case. What GRADES held
before a run is in GRADES.TIME.before until one has come to its end. usage, cost: of the line's
verdicts when they were asked, by this run or by an earlier one; a reply that was lost on its way is
in `kit ledger costs` only.
"""  # shown by --help; here are the options and their checks, the work itself is in `judging`

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ..data import answered, load_tasks
from ..errors import DataError, KitError
from ..judge.factory import FORMS, judge_of, keyed
from ..judge.keys import remember_all
from ..judge.prices import Price
from ..records import FAILURES, Response, Task
from ..system import paths
from . import judging
from .common import BUDGET_USD, LEDGER, Options, Output, arg, ledger_of
from .run import given

HELP = "judge answers against their rubrics; verdicts and scores as JSONL"
# how a server is asked; what is not given is the judge's own default
OVER = "judges over HTTP (endpoint, server)"
HTTP = (
    arg(
        "--base-url",
        help="an OpenAI-compatible server (default: OPENAI_BASE_URL, else OpenAI)",
        group=OVER,
    ),
    arg("--key-env", help="the environment variable that holds the key", group=OVER),
    arg(
        "--header",
        action="append",
        metavar="NAME:VALUE",
        help="a header of every request; VALUE $NAME is read from the environment",
        group=OVER,
    ),
    arg(
        "--extra",
        action="append",
        metavar="NAME=JSON",
        help="a field of every request's body, e.g. top_k=20",
        group=OVER,
    ),
    arg(
        "--how",
        help="all criteria in one call (all), one each (one), or a number per call",
        group=OVER,
    ),
    arg("--template", help="judge template: rubric, single, or a file", group=OVER),
    arg(
        "--mode",
        choices=("schema", "text"),
        help="replies under a JSON schema, or plain text",
        group=OVER,
    ),
    arg(
        "--probability",
        choices=("none", "logprobs", "stated"),
        help="where P(met) comes from",
        group=OVER,
    ),
    arg("--temperature", help="default 0; none: it is not sent", group=OVER),
    arg("--effort", help="reasoning effort of a reasoning model", group=OVER),
    arg("--max-tokens", type=int, help="most tokens of a reply", group=OVER),
    arg("--concurrency", type=int, help="most calls at once", group=OVER),
    arg("--timeout", type=float, help="seconds for one attempt (default 120)", group=OVER),
    arg("--tries", type=int, help="attempts per call (default 5)", group=OVER),
    arg(
        "--patience",
        type=float,
        help="seconds without any success until the run stops (exit code 5; default 180)",
        group=OVER,
    ),
    arg(
        "--price",
        help="IN,OUT in dollars per million tokens, for models without a known price",
        group=OVER,
    ),
)
MADE = "judges made of judges"
OF_JUDGES = (
    arg(
        "--votes",
        type=int,
        metavar="N",
        help="ask N times at temperature 1: P(met) is the share",
        group=MADE,
    ),
    arg(
        "--panel",
        action="append",
        metavar="JUDGE",
        help="another member of a panel, e.g. endpoint:other-model (give it several times)",
        group=MADE,
    ),
    arg(
        "--escalate",
        metavar="JUDGE",
        help="a stronger judge for what --judge is in doubt of",
        group=MADE,
    ),
)
ARGS = (
    arg("tasks", help="tasks with their criteria (any format that the kit reads)"),
    arg("responses", help="answers (any format that the kit reads): task_id or prompt, response"),
    arg(
        "--judge",
        default="replay",
        metavar="JUDGE",
        help=f"who judges what code does not: {FORMS} (default: replay); "
        "server: a .gguf file, served on this machine meanwhile",
    ),
    arg("--out", help="GRADES.jsonl (default: beside RESPONSES)"),
    LEDGER,
    arg(
        "--model",
        help="model name; for local: a model folder; for server: a .gguf file; "
        "for replay: a recorded judge, e.g. gpt-4o/bare",
    ),
    arg(
        "--replay-from",
        metavar="FILE",
        help="for replay: a ledger, or verdicts as JSONL (default: a recorded judge, see --model)",
    ),
    BUDGET_USD,
    arg("--budget-calls", type=int, help="stop before more calls are made"),
    arg("--budget-tokens", type=int, help="stop before more tokens are used"),
    arg("--resume", action="store_true", help="keep the grades that are in OUT and do the rest"),
    arg(
        "--skip-bad",
        action="store_true",
        help="judge what can be read of TASKS and RESPONSES, although they have errors",
    ),
    arg("--retry", default="", help="failure kinds in the ledger to ask again, e.g. parse,missing"),
    arg(
        "--aggregate",
        default="net",
        help="how verdicts become a score: net (weighted, as kit.grade does; the default), mean "
        "(unweighted), flip ...; see kit.rewards.aggregate.grade",
    ),
    arg(
        "--max-width",
        type=float,
        help="widest interval of a partly unknown grade that still gets a score",
    ),
    arg("--estimate", action="store_true", help="say what it would cost and stop"),
    arg(
        "--audit",
        action="store_true",
        help="run the attack and bias suite against the judge on these answers instead; "
        "with --out AUDIT.html also as a page with the plot",
    ),
    *HTTP,
    *OF_JUDGES,
)


def run(args: Options) -> Output:
    """Judge, estimate or audit."""
    path = ledger_of(args)
    _sane(args, path)
    tasks, answers = _read(args)
    who = make(args)
    keyed(() if args.estimate else [who])
    if args.audit:
        return judging.audit(args, tasks, answers, who, path)
    if args.estimate:
        return judging.estimate(args, tasks, answers, who, path)
    return judging.judge(args, tasks, answers, who, path, _out(args))


def _read(args: Options) -> tuple[list[Task], list[Response]]:
    """The tasks, and the answers of the other file; DataError for what would be paid in vain."""
    tasks = load_tasks(args.tasks).sound(skip_bad=args.skip_bad).tasks
    if not tasks:
        raise DataError("there are no tasks", where=args.tasks)
    found = answered(tasks, args.responses).sound(skip_bad=args.skip_bad)
    _ready(args, found.tasks, found.responses)
    return found.tasks, found.responses


def _out(args: Options) -> Path:
    return Path(args.out) if args.out else Path(args.responses).with_suffix(".grades.jsonl")


def _sane(args: Options, ledger: Path) -> None:
    """Stop at options that cannot be meant, before anything is read, paid or written over."""
    written = {"OUT": _out(args), "--ledger": ledger, "--log-file": args.log_file}
    read = {"TASKS": args.tasks, "RESPONSES": args.responses, "--replay-from": args.replay_from}
    paths.apart(written, read)
    wrong = [k for k in args.retry.split(",") if k and k not in FAILURES]
    if wrong:
        raise KitError(
            f"there is no failure kind {wrong[0]!r}",
            where="--retry",
            fix=f"use any of {', '.join(FAILURES)}",
        )


def _ready(args: Options, tasks: list[Task], answers: list[Response]) -> None:
    """Stop before anything is paid: no answers, or answers to a task that asks for nothing."""
    from ..judge.run import storable

    if not answers:
        raise DataError(
            "there are no answers",
            where=args.responses,
            fix='write lines of {"task_id": ..., "response": ...}',
        )
    storable(tasks, args.tasks)
    storable(answers, args.responses)
    bare = {t.id for t in tasks if not t.criteria}
    hit = next((r.task_id for r in answers if r.task_id in bare), None)
    if hit is not None and not args.skip_bad:
        raise DataError(
            f"task {hit!r} has no criteria, so its answers cannot be judged",
            where=args.tasks,
            fix="give it a rubric, or pass --skip-bad (its answers get no score)",
        )


def make(args: Options) -> Any:
    """The judge that the arguments name, through the factory that configs and notebooks use."""
    options = http_options(args)
    value: Any = _named(args.judge, options, args)
    if args.votes is not None:
        value = {"votes": value, "n": args.votes}
    if args.panel:
        value = {"panel": [value, *(_named(p, options) for p in args.panel)]}
    if args.escalate:
        value = {"escalate": [value, _named(args.escalate, options)]}
    return judge_of(value, where="--judge")


def _named(text: str, options: dict[str, Any], args: Options | None = None) -> dict[str, Any]:
    """A judge by its name, with the options that were given; `args`: it is the one of --judge."""
    kind, _, subject = text.partition(":")
    if args is None:
        return {kind: subject or None, **(options if kind == "endpoint" else {})}
    if kind == "replay" and args.replay_from:
        return {kind: args.replay_from, "judge": args.model}
    return {kind: subject or args.model, **options}


def http_options(args: Options) -> dict[str, Any]:
    """The options of a judge over HTTP that were given."""
    names = ("base_url", "key_env", "template", "mode", "probability", "effort")
    numbers = ("max_tokens", "concurrency", "timeout", "tries", "patience")
    given = {n: getattr(args, n) for n in (*names, *numbers)} | {
        "how": int(args.how) if (args.how or "").isdecimal() else args.how,
        "price": _price(args.price),
        "headers": _headers(args.header),
        "extra": _extra(args.extra),
    }
    out = {k: v for k, v in given.items() if v is not None}
    if args.temperature is not None:
        out["temperature"] = _temperature(args.temperature)
    return out


def _headers(given: list[str] | None) -> dict[str, str] | None:
    if not given:
        return None
    out = {}
    for text in given:
        name, colon, value = text.partition(":")
        name, value = name.strip(), value.strip()
        if not colon:
            raise KitError(
                "this is no header",
                where="--header",
                fix="write NAME:VALUE, or 'NAME:$VARIABLE' for one that is secret",
            )
        if value.startswith("$"):
            if value[1:] not in os.environ:
                raise KitError(
                    f"{value[1:]} is not set",
                    where=f"--header {name}",
                    fix=f"export {value[1:]}=...",
                )
            value = os.environ[value[1:]]
            remember_all({"secret": value})  # whatever the header's name is
        out[name] = value
    return out


def _extra(pairs: list[str] | None) -> dict[str, Any] | None:
    out: dict[str, Any] = dict(given(pairs or [], "--extra"))
    for name, value in out.items():
        try:
            out[name] = json.loads(value)
        except (ValueError, RecursionError) as e:  # plain text needs no quotes
            if value.startswith(("{", "[", '"')):
                raise KitError(
                    f"{value!r:.60} is no JSON ({e})",
                    where=f"--extra {name}",
                    fix="write the value as JSON, or as text without brackets and quotes",
                ) from None
    return out or None


def _temperature(text: str) -> float | None:
    try:
        return None if text == "none" else float(text)
    except ValueError:
        raise KitError(
            f"{text!r} is no temperature",
            where="--temperature",
            fix="give a number from 0 on, or none",
        ) from None


def _price(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        price = Price.of([float(x) for x in text.split(",")])
        return price.input, price.output
    except (ValueError, KitError):
        raise KitError(
            f"--price is {text!r}",
            where="--price",
            fix="write IN,OUT in dollars per million tokens, e.g. --price 0.1,0.5",
        ) from None
