"""`agree`: how well a judge's column agrees with a human's, with clustered intervals."""

from __future__ import annotations

import argparse
import math
from typing import Any

from ..errors import DataError
from . import common

HELP = "agreement of a judge's column with a human's: kappa, AC1, raw agreement, confusion"


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments of `agree`."""
    parser.add_argument("file", help="JSONL, JSON, CSV or Parquet")
    parser.add_argument(
        "--judge", required=True, metavar="COL", help="column with the judge's verdicts or scores"
    )
    parser.add_argument(
        "--human", required=True, metavar="COL", help="column with the human's labels or scores"
    )
    parser.add_argument(
        "--cluster",
        metavar="COL",
        help="column with the prompt of each row; without it rows count as independent",
    )
    parser.add_argument(
        "--threshold",
        type=float,
        metavar="X",
        help="cut scores: at least X is 1; a column of 0 and 1 stays as it is",
    )
    parser.add_argument(
        "--order", metavar="A,B,C", help="the levels from worst to best, for --weights"
    )
    parser.add_argument(
        "--weights",
        choices=("linear", "quadratic"),
        help="kappa and AC2 of ordered levels: near misses count in part",
    )
    parser.add_argument(
        "--unknown",
        action="append",
        default=[],
        metavar="VALUE",
        help="a value that means unknown (may be repeated; empty cells always do)",
    )
    parser.add_argument("--level", type=float, default=0.95, help="confidence level (default 0.95)")
    common.json_flag(parser)


def run(args: argparse.Namespace) -> int:
    """Print the agreement report."""
    from ..data.tables import read_columns
    from ..stats import agree

    names = [args.judge, args.human, *([args.cluster] if args.cluster else [])]
    columns = read_columns(args.file, list(dict.fromkeys(names)))
    if args.threshold is not None and not math.isfinite(args.threshold):
        raise DataError(
            f"the threshold is {args.threshold}",
            where="--threshold",
            fix="write a number, for example 0.5",
        )
    unknown = {
        "",
        "unknown",
        "null",
        "nan",
        "none",
        "n/a",
        *(u.strip().lower() for u in args.unknown),
    }
    judge, human = (
        _column(columns[c], c, unknown, args.threshold, args.file) for c in (args.judge, args.human)
    )
    result = agree(
        judge,
        human,
        cluster=columns[args.cluster] if args.cluster else None,
        categories=_order(args.order, judge, human),
        weights=args.weights,
        threshold=args.threshold,
        level=args.level,
    )
    hint = (
        ""
        if args.cluster
        else "\nrows taken as independent: give --cluster COL when several rows share a prompt"
    )
    common.emit(
        args,
        {
            "file": args.file,
            "n": result.kappa.n,
            "n_clusters": result.kappa.n_clusters,
            **result.as_dict(),
        },
        result.text() + hint,
    )
    return 0


def _order(words: str | None, *columns: list[Any]) -> list[Any] | None:
    """The levels as the columns hold them, numbers where these are numbers."""
    if words is None:
        return None
    held = {str(v): v for column in columns for v in column if v is not None}
    return [held.get(w.strip(), w.strip()) for w in words.split(",")]


def _column(
    values: list[Any], name: str, unknown: set[str], cut: float | None, file: str
) -> list[Any]:
    out: list[Any] = []
    for i, v in enumerate(values):
        if v is None or v != v or (isinstance(v, str) and v.strip().lower() in unknown):
            out.append(None)
        elif cut is None:
            out.append(v.strip() if isinstance(v, str) else v)
        elif isinstance(v, (int, float)):
            out.append(v)
        else:
            from ..data.tables import place

            raise DataError(
                f"{v!r} is not a number, so --threshold cannot cut it",
                where=f"{place(file, i)}, field {name}",
                fix="leave --threshold out",
            )
    found = {x for x in out if x is not None}
    if cut is None and len(found) > 20:
        raise DataError(
            f"column {name!r} has {len(found)} different values",
            where=f"{file}, field {name}",
            fix="cut scores with --threshold X",
        )
    return out
