"""Tune a judge's prompt on labelled answers: try prompts, search for better ones, read a sealed
test once.

Prompts (--try NAME=FILE) and other changes (--vary, --examples, --cascade) are compared with the
judge's own on dev; --search lets GEPA rewrite the prompt on train; --test reads the sealed test for
the winner, once. The same command goes on after it was stopped or killed: what was judged is in the
ledger and is not paid again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..errors import DataError, KitError
from ..judge.factory import keyed, parts
from ..system import paths
from .common import BUDGET_USD, LEDGER, Options, Output, arg, ledger_of
from .judge import HTTP, http_options

HELP = "try judge prompts on labelled answers, search for better ones, read a sealed test once"

PLAN = (
    "a gain of {gain:g} in {measure} is found in {found in:.0%} of studies with {needed} labelled "
    "prompts; here are {prompts}: they find {finds} as often"
)


ARGS = (
    arg("labels", metavar="LABELS", help="answers with labels of people (any format of the kit)"),
    arg("--judge", required=True, help="endpoint:MODEL, small, or a JSON mapping with options"),
    arg("--prompt", metavar="FILE", help="where to begin (default: the judge's own prompt)"),
    arg(
        "--try",
        dest="prompts",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="a prompt to try, as a text file (may be repeated)",
    ),
    arg(
        "--vary",
        action="append",
        default=[],
        metavar="NAME=JSON",
        help="""a trial with other settings, e.g. 'one={"how":"one"}', 'mini={"endpoint":"MODEL"}',
        'clear={"reword":{"OLD CRITERION":"NEW"}}', 'options={"options":{"yes":1,"partly":0.5,
        "no":0,"not applicable":null}}', 'panel={"of":["baseline","one","mini"]}'""",
    ),
    arg(
        "--examples",
        type=int,
        metavar="K",
        help="""a trial "K examples": so many labels of train are shown""",
    ),
    arg("--cascade", metavar="CHEAP,STRONG", help="two trials: the second where the first doubts"),
    arg("--tolerance", type=float, default=0.02, help="agreement that it may lose (default .02)"),
    arg("--whole", action="store_true", help="all criteria of an answer as one plain rubric"),
    arg("--search", action="store_true", help="let GEPA rewrite the prompt on train"),
    arg("--rows", type=int, help="most rows that the search may judge (default: five rounds)"),
    arg(
        "--reflect",
        metavar="JUDGE",
        help="the model that rewrites (default: the judge's own); its price stands in a mapping",
    ),
    arg("--estimate", action="store_true", help="say what the search may cost, and stop"),
    arg("--gain", type=float, metavar="X", help="how many labelled prompts would show a gain of X"),
    arg("--attack", action="store_true", help="what cheats earn: the baseline beside the winner"),
    arg("--test", action="store_true", help="read the sealed test for the winner, once"),
    arg("--choose", metavar="TRIAL", help="in the winner's place this trial, 'found 1' say"),
    arg(
        "--unseal",
        action="store_true",
        help="read it although it was read before; the report says so",
    ),
    arg("--measure", default="kappa", help="kappa (default), accuracy, balanced_accuracy or ac1"),
    LEDGER,
    arg(
        "--out",
        metavar="FOLDER",
        help="trials and doubts on these labels, of this judge, are kept here (default: "
        "runs/tune-LABELS)",
    ),
    arg("--page", metavar="FILE.html", help="also write the bench as a page"),
    BUDGET_USD,
    *HTTP,
)


def run(args: Options) -> Output:
    """Try, search, and read the test where asked."""
    from ..judge.ledger import Ledger

    _sane(args)
    with Ledger(ledger_of(args)) as book:
        bench = _bench(args, book)
        keyed(() if args.estimate else [bench.make(bench.prompt)])
        reflect = _rewriter(args)
        cost = bench.estimate(args.rows, reflect) if args.estimate or args.search else None
        if args.estimate:
            rows = bench.search_size(args.rows).most
            text = "a search of {} rows: at most {}, if what it finds is as long; nothing was sent"
            return Output(vars(cost), text.format(rows, cost))
        _try(args, bench)
        if args.search:
            bench.search(reflect, rows=args.rows)
        audits = bench.attack() if args.attack else {}
        read = bench.test(args.choose, replay=True, unseal=args.unseal) if args.test else None
        return _report(args, bench, read, audits)


def _sane(args: Options) -> None:
    """Stop at options that cannot be meant, before anything is read or paid."""
    for name, value, least in (("--tolerance", args.tolerance, 0), ("--gain", args.gain, 1e-6)):
        if value is not None and not least <= value <= 1:
            raise KitError(f"{value} is no gain or share", where=name, fix="give one up to 1")
    if args.page:
        page = paths.regular(Path(args.page))
        paths.apart({"--page": page}, {"LABELS": args.labels, "--ledger": args.ledger})
        page.parent.mkdir(parents=True, exist_ok=True)


def _bench(args: Options, book: Any) -> Any:
    from ..judge.prices import Budget
    from ..tuning.bench import Workbench

    folder = args.out or paths.runs() / f"tune-{Path(args.labels).stem}{'-whole' * args.whole}"
    folder = None if args.estimate else folder  # its trials would be asked where they are not known
    return Workbench(
        args.labels,
        judge=_judge(args),
        ledger=book,
        measure=args.measure,
        folder=folder,
        whole=args.whole,
        budget=None if args.budget_usd is None else Budget(usd=args.budget_usd),
        prompt=None if args.prompt is None else _text(args.prompt),
    )


def _judge(args: Options) -> Any:
    """The judge, with the options that were given."""
    kind, subject, options = _named(args.judge, "--judge")
    return {kind: subject, **options, **http_options(args)}


def _rewriter(args: Options) -> Any:
    """Who rewrites, None: the judge's own model. What --reflect itself says stays; a --price is the
    judge's.
    """
    if args.reflect is None:
        return None
    kind, subject, options = _named(args.reflect, "--reflect")
    given = {k: v for k, v in http_options(args).items() if k != "price"}
    return {kind: subject, **given, **options}


def _named(text: str, where: str) -> tuple[str, Any, dict[str, Any]]:
    """A judge's name, or a mapping written as JSON: kind, subject, options."""
    return parts(_json(text, where) if text.lstrip().startswith("{") else text, where)


def _json(text: str, where: str) -> dict[str, Any]:
    try:
        return dict(json.loads(text))
    except (ValueError, TypeError, RecursionError) as e:
        raise KitError(
            f"{text!r:.80} is no JSON ({e})",
            where=where,
            fix="""write an object, e.g. {"how": "one"}, and mind the quotes""",
        ) from None


def _try(args: Options, bench: Any) -> None:
    """All trials, those made of others last; what cannot be meant is refused before one is paid."""
    whole = [("in parts", {"reword": bench.parts})] if args.whole else []
    tries = [*map(_prompt, args.prompts), *whole, *map(_varied, args.vary)]
    shown = [] if args.examples is None else [f"{args.examples} examples"]
    names = [*shown, *(name for name, _ in tries)]
    if twice := next((n for n in names if names.count(n) > 1), None):
        raise KitError(f"two trials are named {twice!r}", where="--try", fix="rename one of them")
    for name, settings in tries:
        bench.check(name, coming=names[: names.index(name)], **settings)
    both = [] if args.cascade is None else args.cascade.split(",", 1)
    if both:
        bench.check("cascade", coming=names, of=both)
    if args.test:
        bench.study().sealed(seals=bench.seals, replay=True, unseal=args.unseal)
    for name in shown:
        bench.try_(name, bench.examples(args.examples))
    for name, settings in tries:
        bench.try_(name, **settings)
    if both:
        bench.cascade(*both, tolerance=args.tolerance)


def _varied(text: str) -> tuple[str, dict[str, Any]]:
    name, _, settings = text.partition("=")
    settings = _json(settings, "--vary")
    if settings.keys() & {"name", "coming"}:
        raise KitError(f"{text!r} names the trial again", where="--vary", fix="leave it out")
    return name, settings


def _prompt(text: str) -> tuple[str, dict[str, Any]]:
    name, sign, file = text.partition("=")
    if not (sign and name and file):
        raise KitError(f"{text!r} names no prompt", where="--try", fix="write NAME=FILE.txt")
    return name, {"prompt": _text(file)}


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8-sig").strip()
    except (OSError, ValueError) as e:
        raise DataError(
            f"the prompt cannot be read ({e})", where=path, fix="give a text file"
        ) from None


def _report(args: Options, bench: Any, read: Any, audits: Any) -> Output:
    choice, rows = bench.choose(args.choose), bench.data()
    lines = [repr(bench), "", *("  ".join(f"{k}: {v}" for k, v in r.items()) for r in rows)]
    best = "; ".join(filter(None, (str(choice.dev_result), choice.dev_result.note)))
    word = "chosen" if args.choose else "best on dev"
    lines += ["", f"{word}: {choice.winner.name} ({best}); the test is sealed"]
    if read is not None:
        lines[-1:] = [f"sealed test: {read.sentence}", f"optimism (dev - test): {read.optimism}"]
    lines += [f"{name}: {audit}" for name, audit in audits.items()]
    plan = None if args.gain is None else bench.plan(args.gain)
    lines += [] if plan is None else [PLAN.format(**plan)]
    if args.page:
        lines.append(f"page: {bench.export(args.page)}")
    data = {
        "labels": len(bench.rows),
        "notes": bench.notes,
        "trials": rows,
        "winner": choice.winner.name,
        "prompt": bench.trials[choice.winner.name].prompt,
        "attacks": {name: audit.table() for name, audit in audits.items()},
        "plan": plan,
        "test": None if read is None else read.as_dict(),
    }
    return Output(data, "\n".join(lines))
