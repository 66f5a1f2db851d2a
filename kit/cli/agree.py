"""Agreement of a judge with people, with clustered intervals. Two forms:

kit agree TASKS LABELS GRADES     what `kit judge` wrote beside labels by people: overall, for each
                                  criterion, and the ten worst disagreements with their reasons
kit agree TABLE --judge COL --human COL    two columns of one table

LABELS: answers with `labels`, or what `kit label` drew, filled in.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..errors import DataError
from ..records import NO_ANSWER
from .common import LEVEL, Options, Output, arg, even_labels

HELP = "agreement of a judge with people: grades beside labels, or two columns of a table"


ARGS = (
    arg("file", metavar="TASKS|TABLE", help="JSONL, JSON, CSV or Parquet"),
    arg("labels", nargs="?", metavar="LABELS", help="labels by people"),
    arg("grades", nargs="?", metavar="GRADES", help="what `kit judge` wrote"),
    arg(
        "--code",
        action="store_true",
        help="GRADES: also criteria that code decides (they say nothing of a judge)",
    ),
    arg("--judge", metavar="COL", help="column of the judge's verdicts or scores"),
    arg("--human", metavar="COL", help="column of the human's labels or scores"),
    arg(
        "--confusion",
        action="store_true",
        help="also what the judge says where the human says each level, with intervals",
    ),
    arg(
        "--panel",
        metavar="A,B,C",
        help="columns of three judges or more, without a human: likely levels and each judge's "
        "accuracy (Dawid-Skene)",
    ),
    arg(
        "--cluster",
        metavar="COL",
        help="column with the prompt of each row; without it rows count as independent",
    ),
    arg(
        "--threshold",
        type=float,
        metavar="X",
        help="cut scores: at least X is 1; a column of 0 and 1 stays as it is",
    ),
    arg("--order", metavar="A,B,C", help="the levels from worst to best, for --weights"),
    arg(
        "--weights",
        choices=("linear", "quadratic"),
        help="kappa and AC2 of ordered levels: near misses count in part",
    ),
    arg(
        "--unknown",
        action="append",
        default=[],
        metavar="VALUE",
        help="a value that means unknown (may be repeated; empty cells, NA, ? and the like always "
        "do)",
    ),
    LEVEL,
)


def run(args: Options) -> Output:
    """Print the agreement report."""
    if args.labels:
        return _grades(args)
    from ..data.tables import read_columns
    from ..stats import agree

    panel = [c.strip() for c in (args.panel or "").split(",") if c.strip()]
    twice = [c for i, c in enumerate(panel) if c in panel[:i]]
    DataError.first(
        (
            not panel and not (args.judge and args.human),
            "--judge and --human are needed",
            "kit agree",
            "name both columns, or the judges' columns with --panel A,B,C",
        ),
        (
            twice,
            f"{''.join(twice[:1])!r} stands twice",
            "--panel",
            "name each judge once",
        ),
    )
    sides = panel or [args.judge, args.human]
    names = [*sides, *([args.cluster] if args.cluster else [])]
    even_labels(args.file, sides)
    columns = read_columns(args.file, list(dict.fromkeys(names)))
    if args.threshold is not None and not math.isfinite(args.threshold):
        raise DataError(
            f"the threshold is {args.threshold}",
            where="--threshold",
            fix="write a number, for example 0.5",
        )
    levels = {w.strip().casefold() for w in (args.order or "").split(",")} - {""}
    unknown = (NO_ANSWER - levels) | {u.strip().casefold() for u in args.unknown}
    read = [_column(columns[c], c, unknown, args.threshold, args.file) for c in sides]
    if panel:
        return _panel(args, panel, read)
    judge, human = read
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
    data = {
        "file": args.file,
        "n": result.kappa.n,
        "n_clusters": result.kappa.n_clusters,
        **result.as_dict(),
    }
    text = result.text()
    if args.confusion:
        lines, data["rates"] = _confusion(args, judge, human, columns)
        text += "\n" + lines
    return Output(data, text + hint)


COLUMNS = ("judge", "human", "confusion", "panel", "cluster", "order", "weights", "unknown")


def _grades(args: Options) -> Output:
    """Grades beside labels: overall, per criterion, the worst disagreements."""
    from ..people import agreement

    given = next((name for name in COLUMNS if getattr(args, name)), None)
    cut = 0.5 if args.threshold is None else args.threshold
    DataError.first(
        (
            not args.grades,
            "there are two files",
            "kit agree",
            "kit agree TASKS LABELS GRADES, or kit agree TABLE --judge COL --human COL",
        ),
        (
            given,
            "this option is for columns of a table",
            f"--{given}",
            "leave it out; tasks are the clusters, their groups where they have some",
        ),
        (
            not 0 < cut <= 1,
            f"the threshold is {cut}",
            "--threshold",
            "verdicts lie in [0, 1]: 0.5 is the middle",
        ),
    )
    found = agreement(
        args.file, args.labels, args.grades, cut=cut, code=args.code, level=args.level
    )
    return Output({"file": args.grades, **found.data()}, str(found))


def _confusion(
    args: Options, judge: list[Any], human: list[Any], columns: Mapping[str, list[Any]]
) -> tuple[str, list[dict[str, Any]]]:
    """What the judge says, given what the human says: lines, and rows for --json."""
    from ..stats import confusion

    judge = _cut(args, judge, args.judge)
    human = _cut(args, human, args.human)
    found = confusion(
        judge,
        human,
        cluster=columns[args.cluster] if args.cluster else None,
        categories=_order(args.order, judge, human),
        level=args.level,
    )
    lines = [f"  {y} -> {x}: {e}" for (y, x), e in found.items()]
    rows = [{"human": y, "judge": x, **e.as_dict()} for (y, x), e in found.items()]
    return "\n".join(["what the human says -> what the judge says", *lines]), rows


def _panel(args: Options, names: list[str], read: list[list[Any]]) -> Output:
    """Several judges without a reference: each one's accuracy by the model, and the levels."""
    from ..stats import dawid_skene

    columns = [_cut(args, c, name) for c, name in zip(read, names, strict=True)]
    found = dawid_skene(list(zip(*columns, strict=True)))
    accuracy = dict(zip(names, found.accuracy().tolist(), strict=True))
    shares = dict(zip(map(str, found.categories), found.prevalence.tolist(), strict=True))
    lines = [
        *(f"{name:<24}accuracy {value:.3f} (by the model)" for name, value in accuracy.items()),
        *(f"{name:<24}share {value:.3f} of the items" for name, value in shares.items()),
        f"agrees with the majority on {found.agrees:.1%} of the items",
        found.note,
    ]
    data = {
        "file": args.file,
        "n": len(found.label),
        "accuracy": accuracy,
        "prevalence": shares,
        "agrees": found.agrees,
        "label": found.label,
        "note": found.note,
    }
    return Output(data, "\n".join(filter(None, lines)))


def _cut(args: Options, column: list[Any], name: str) -> list[Any]:
    """The column cut at --threshold, where one is given."""
    from ..stats.report import cut

    if args.threshold is None:
        return column
    return [None if x != x else int(x) for x in cut(column, args.threshold, name)[0].tolist()]


def _order(words: str | None, *columns: list[Any]) -> list[Any] | None:
    """The levels as the columns hold them, numbers where these are numbers."""
    if words is None:
        return None
    held = {str(v): v for column in columns for v in column if v is not None}
    return [held.get(w.strip(), w.strip()) for w in words.split(",")]


def _column(
    values: list[Any], name: str, unknown: frozenset[str], cut: float | None, file: str
) -> list[Any]:
    from ..data.tables import kind_of, place, typed
    from ..data.values import number

    codes = {*unknown, *map(number, unknown)} - {None}  # -1 or 9 in a column of numbers, too
    said = [v.strip().casefold() if isinstance(v, str) else v for v in values]
    gone = [v != v or v in codes for v in said]
    values = [None if g else v for g, v in zip(gone, values, strict=True)]
    if any(gone) and kind_of(file) == "csv":
        values = typed(values)  # numbers beside a word for unknown
    kinds = (int, float, type(None))
    odd = next((i for i, v in enumerate(values) if not isinstance(v, kinds)), None)
    if cut is not None and odd is not None:
        raise DataError(
            f"{values[odd]!r} is not a number, so --threshold cannot cut it",
            where=f"{place(file, odd)}, field {name}",
            fix="leave --threshold out",
        )
    out = [v.strip() if isinstance(v, str) else v for v in values]
    found = {x for x in out if x is not None}
    if cut is None and len(found) > 20:
        raise DataError(
            f"column {name!r} has {len(found)} different values",
            where=f"{file}, field {name}",
            fix="cut scores with --threshold X",
        )
    return out
