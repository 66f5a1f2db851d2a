"""Run a notebook over a grid or a list of parameters.

Finished cells are skipped, one report compares them.
"""

from __future__ import annotations

from ..errors import KitError
from .common import Options, Output, arg, log

HELP = "a notebook over a grid of parameters, locally or on Ray"


ARGS = (
    arg("notebook"),
    arg(
        "--grid",
        action="append",
        default=[],
        metavar="NAME=A,B,...",
        help="one axis; may be repeated (values that hold commas: --file)",
    ),
    arg("--file", help="rows (JSONL, CSV, JSON, YAML), or a dict of lists (a grid)"),
    arg("--profile"),
    arg(
        "--out",
        help="folder of runs (default: the kit's runs/sweep-NOTEBOOK), seen by all machines",
    ),
    arg("--jobs", type=int, help="cells at once (default: 1 locally, all that fit on Ray)"),
    arg(
        "--address",
        help="a Ray cluster: auto, HOST:PORT, ray://HOST:PORT, or local (started for this sweep)",
    ),
    arg("--gpus", type=float, default=0.0, help="GPUs a cell needs (Ray)"),
    arg("--retries", type=int, default=1, help="retries of a cell whose worker died (Ray)"),
    arg("--max-cost", type=float, help="US dollars; no further cell starts beyond it"),
    arg("--max-seconds", type=float, help="no further cell starts beyond it"),
)


def axes(pairs: list[str]) -> dict[str, list[str]]:
    """NAME=A,B pairs as axes.

    >>> axes(["lr=1e-5,2e-5", "seed=0"])
    {'lr': ['1e-5', '2e-5'], 'seed': ['0']}
    """
    from .run import given

    return {
        k: [x.strip() for x in v.split(",") if x.strip()] for k, v in given(pairs, "--grid").items()
    }


def run(args: Options) -> Output:
    """Sweep; exit code 0 when every cell finished, 1 when one failed, 4 when a cap stopped it."""
    from pathlib import Path

    from ..runs import headless, report, sweep
    from ..system import paths, progress

    if bool(args.grid) == bool(args.file):
        raise KitError(
            "give either --grid or --file",
            where="command line",
            fix="--grid seed=0,1 --grid learning_rate=1e-5,4e-5",
        )
    cells = sweep.read_cells(args.file) if args.file else sweep.grid(axes(args.grid))
    book = headless.find_notebook(args.notebook)
    base = headless.folder_of(args.out) or paths.runs() / f"sweep-{book.stem}"
    result = sweep.sweep(
        book,
        cells,
        profile=args.profile,
        out=base,
        jobs=args.jobs,
        address=args.address,
        gpus=args.gpus,
        retries=args.retries,
        max_cost=args.max_cost,
        max_seconds=args.max_seconds,
        say=progress.say,
    )
    ids = {Path(c.folder).name for c in result.cells if c.folder}
    page = str(report.write(base, only=ids, title=f"Sweep of {book.stem}")) if ids else ""
    for c in result.cells:
        if c.status == "failed":
            progress.say(f"FAILED {sweep.text(c.params)}\n{c.tail}", always=True)
            log.error("a cell failed (%s): %s", Path(c.folder).name, c.reason)
    data = {
        "report": page,
        "counts": result.counts,
        "stopped": result.stopped,
        "cells": list(map(vars, result.cells)),
    }
    return Output(
        data,
        (
            f"{', '.join(f'{n} {s}' for s, n in result.counts.items())} in {result.seconds:.0f} s\n"
            f"table: {base / 'table.csv'}\nreport: {page or 'none, no cell has a run'}"
        ),
        0 if set(result.counts) == {"done"} else 1,
        result.error,
    )
