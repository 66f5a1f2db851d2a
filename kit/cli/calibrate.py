"""`calibrate`: calibration error of a table of confidences and outcomes.

With interval, null value and convention.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..errors import DataError
from ..system import paths
from .common import Options, Output, arg, even_labels

STREAM_ABOVE = 1_000_000  # rows of a Parquet file from which it is read in chunks
G = 25200  # cells of the sketch that a stream goes into: numbers of bins that divide it
HELP = "calibration error of confidences in a table (JSONL, JSON, CSV, Parquet)"


def _bins(text: str) -> int | str:
    if text in ("auto", "distinct"):
        return text
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f'{text!r} is neither "auto", "distinct" nor a whole number'
        ) from None


ARGS = (
    arg("file", type=Path, help="table with one row per answer"),
    arg(
        "--confidence",
        required=True,
        metavar="COL[,COL...]",
        help="column of confidences in [0, 1]; several, parted by commas: the probabilities of "
        "classes, the worst first",
    ),
    arg(
        "--correct",
        required=True,
        metavar="COL",
        help="column of true / false or 1 / 0; of classes: the true one (name of its column, or "
        "0, 1, ...)",
    ),
    arg(
        "--cluster", metavar="COL", help="column of cluster labels; intervals then rest on clusters"
    ),
    arg(
        "--bins",
        type=_bins,
        default="auto",
        metavar="auto|distinct|N",
        help="default auto: one bin per value up to 64, else 15",
    ),
    arg(
        "--closed",
        choices=("right", "left"),
        default="right",
        help="which end of a bin belongs to it",
    ),
    arg(
        "--missing",
        choices=("raise", "count"),
        default="raise",
        help="rows whose confidence is empty, NaN or outside [0, 1]: stop, or leave out and count "
        "(a text is no confidence and stops either way)",
    ),
    arg(
        "--stream",
        action="store_true",
        help="read in chunks, in flat memory (clusters: numeric Parquet only); the default for "
        "Parquet above a million rows",
    ),
    arg(
        "--abstain",
        type=float,
        metavar="RISK",
        help="also the threshold below which to abstain, so that wrong answers given stay below "
        "this share of all",
    ),
    arg(
        "--slope",
        action="store_true",
        help="also Cox's intercept and slope (0 and 1 where calibrated; below 1: too extreme)",
    ),
    arg("--html", type=Path, metavar="OUT", help="write the reliability diagram here"),
)


def _streamed(
    args: Options, columns: dict[str, str], binning: dict[str, Any], numeric: bool
) -> Any:
    """The reliability of a file that is read in chunks, twice where there are clusters."""
    from .. import calibration

    if args.abstain is not None or args.slope or (args.cluster and not numeric):
        raise DataError(
            "a table that is read in chunks has no threshold to abstain at and no slope, and "
            "clusters only in Parquet with confidence and correctness as numbers",
            where="option --stream",
            fix="leave out --stream, or --abstain, --slope and --cluster",
        )
    sketch = calibration.sketch_file(args.file, **columns, missing=args.missing)
    if args.cluster:
        binning["cluster"] = calibration.parquet_blocks(args.file, **columns, cluster=args.cluster)
    return calibration.reliability(sketch, **binning)


def _classes(args: Options, names: list[str]) -> Output:
    """Per class its calibration error, and the ranked probability score of all."""
    from .. import calibration, stats
    from ..calibration.files import confidence_cell
    from ..data.tables import place, read_columns

    given = {
        "stream": args.stream,
        "abstain": args.abstain,
        "slope": args.slope,
        "html": args.html,
        "missing": args.missing != "raise",
    }
    odd = [f"--{k}" for k, v in given.items() if v is not None and v is not False]
    if odd:
        raise DataError(
            "classes have a calibration error each, and no more",
            where=f"option {odd[0]}",
            fix="leave it out, or name one column of confidences",
        )
    columns = read_columns(args.file, [*names, args.correct, *filter(None, [args.cluster])])
    classes = {k: i for i, n in enumerate(names) for k in (n, str(i))}
    said = [str(v).removesuffix(".0") for v in columns[args.correct]]
    at = next((i for i, v in enumerate(said) if v not in classes), None)
    if at is not None:
        raise DataError(
            f"{said[at]!r} is none of the classes",
            where=f"{place(args.file, at)}, field {args.correct}",
            fix=f"write one of {', '.join(classes)}",
        )
    probs = [
        [confidence_cell(v, f"{place(args.file, i)}, field {n}") for i, v in enumerate(columns[n])]
        for n in names
    ]
    rows = list(zip(*probs, strict=True))
    true = [classes[v] for v in said]
    cluster = columns.get(args.cluster)
    found = calibration.classwise(rows, true, cluster=cluster, bins=args.bins, closed=args.closed)
    score = stats.rps(rows, true, cluster=cluster)
    lines = [
        *(f"{n}: {e}" for n, e in zip(names, found, strict=True)),
        f"classwise ECE {sum(e.value for e in found) / len(found):.4f} (their mean)",
        f"ranked probability score: {score}",
    ]
    data = {n: asdict(e) for n, e in zip(names, found, strict=True)} | {"rps": asdict(score)}
    return Output(data, "\n".join(lines))


def _report(args: Options) -> tuple[Any, dict[str, Any]]:
    """The reliability, and what --abstain and --slope ask for."""
    from .. import calibration, stats
    from ..calibration.files import locate, numeric_parquet, parquet_cells, parquet_rows, read_cells

    binning = dict(bins=args.bins, closed=args.closed)
    columns = dict(confidence=args.confidence, correct=args.correct)
    numeric = numeric_parquet(args.file, list(columns.values()))
    whole = isinstance(args.bins, str) or G % args.bins == 0
    large = numeric and whole and parquet_rows(args.file) > STREAM_ABOVE
    if args.stream or (large and args.abstain is None and not args.slope):
        return _streamed(args, columns, binning, numeric), {}
    read = parquet_cells if numeric else read_cells
    p, y, cluster = read(args.file, **columns, cluster=args.cluster)
    try:
        found = calibration.reliability(
            p,
            y,
            cluster=cluster,
            missing=args.missing,
            **binning,
        )
        more = {}
        if args.abstain is not None:
            more["abstain"] = stats.abstain_below(p, y, risk=args.abstain, cluster=cluster)
        if args.slope:
            more["cox"] = calibration.cox(p, y, cluster=cluster, eps=1e-6, missing=args.missing)
        return found, more
    except DataError as e:
        from ..data.tables import place

        columns = {
            "conf": args.confidence,
            "correct": args.correct,
            "cluster": args.cluster or "cluster",
        }
        located = locate(e, columns, lambda i: place(args.file, i))
        raise (
            located
            if located is not e
            else DataError(e.what, where=f"{args.file.name}, {e.where}", fix=e.fix)
        ) from None


def run(args: Options) -> Output:
    """Print the report; write the diagram when asked."""
    even_labels(args.file, [args.correct])
    if len(names := args.confidence.split(",")) > 1:
        return _classes(args, names)
    result, more = _report(args)
    text = "\n".join([str(result), *(f"{name}: {found}" for name, found in more.items())])
    data = result.as_dict() | {name: asdict(found) for name, found in more.items()}
    if args.html:
        from ..plots import plot

        paths.write_text(args.html, plot(result).to_html(include_plotlyjs=True))
        text += f"\ndiagram: {args.html}"
    return Output(data, text)
