"""Run one notebook headless: parameters are checked first, the run gets a folder of its own."""

from __future__ import annotations

from pathlib import Path

from ..errors import KitError
from .common import Options, Output, arg, log

HELP = "run one notebook headless (papermill), with checked parameters"


ARGS = (
    arg("notebook", nargs="?", help="a path, or a name or number from notebooks/ (3 = 03_...)"),
    arg("--profile", help="test, cpu, t4, gpu or cluster (default: KIT_PROFILE, else detected)"),
    arg("--seed", type=int),
    arg(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a parameter, refused when unknown or of another type; may be repeated",
    ),
    arg("--out", help="folder of runs (default: the kit's runs/)"),
    arg(
        "--reuse",
        action="store_true",
        help="take a finished run of the same code, data and parameters instead",
    ),
    arg("--resume", metavar="RUN_DIR", help="continue a failed or killed run in its folder"),
    arg("--params", action="store_true", help="only list the notebook's parameters"),
)


def given(pairs: list[str], option: str = "--set") -> dict[str, str]:
    """NAME=VALUE pairs as a dict; KitError for anything else or a name given twice.

    >>> given(["a=1", "b=x=y"])
    {'a': '1', 'b': 'x=y'}
    """
    out: dict[str, str] = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not sign or not name.strip():
            from ..judge.keys import veiled  # it may hold a key

            raise KitError(f"{option} takes NAME=VALUE, got {veiled(pair)!r}", where="command line")
        if name.strip() in out:
            raise KitError(f"parameter {name.strip()!r} is given twice", where="command line")
        out[name.strip()] = value
    return out


def run(args: Options) -> Output:
    """Execute; exit code 0 when the notebook finished, 1 when a cell failed."""
    from ..runs import headless
    from ..settings import params
    from ..system import progress

    if args.resume:
        folder, done = headless.resume(args.resume, say=progress.say)
    elif not args.notebook:
        raise KitError(
            "which notebook?",
            where="command line",
            fix="python -m kit run 03_train_grpo, or --resume RUN_DIR",
        )
    elif args.params:
        known = params.parameters(headless.find_notebook(args.notebook))
        rows, lines = {}, []
        for n, p in known.items():
            rows[n] = {"default": p.default, "type": p.type, "comment": p.comment}
            value = f"{n:24} {p.type:6} {p.default!r:24}"
            lines.append(f"{value} {p.comment}")
        return Output(rows, "\n".join(lines))
    else:
        folder, done = headless.run_notebook(
            args.notebook,
            profile=args.profile,
            seed=args.seed,
            given=given(args.set),
            out=args.out,
            reuse=args.reuse,
            say=progress.say,
        )
    data = {
        "folder": str(folder),
        "status": done.status,
        "seconds": done.seconds,
        "metrics": done.metrics,
        "pages": sorted(p.name for p in Path(folder).glob("*.html")),
    }
    if done.status != "done":
        log.error("%s: %s", done.status, done.meta.get("error"))
    return Output(
        data,
        f"{done.status} in {done.seconds or 0:.0f} s: {folder}\n{done.meta.get('error') or ''}",
        0 if done.status == "done" else 1,
    )
