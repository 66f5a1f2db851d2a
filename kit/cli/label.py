"""Draw what to label next, and say what the labels will be worth.

The file has a row for each verdict to give: fill in the column `label` (met, unmet, partly,
unknown; for every criterion, also one of negative weight, whether its text holds). How the rows
were drawn stands in the file, so that `kit agree` and `kit rate` need not be told.

  random        each verdict (or, with --unit answer, each answer) has the same chance
  stratified    equally many on which the judge (--grades) says met, unmet, unknown: the rarer
                kind of its errors is found with fewer labels

With --labels the file of an earlier draw goes on: its labels are kept. The judge's verdict is not
in the file: who labels should not see it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from . import common

HELP = "draw what people should label next; says what the interval will be worth"


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments of `label`."""
    a = parser.add_argument
    a("tasks", metavar="TASKS", help="the tasks with their criteria")
    a("answers", metavar="ANSWERS", help="the answers")
    a("--n", type=int, default=40, help="how many to draw (default 40)")
    a("--design", default="random", help="random (default) or stratified")
    a("--unit", default="verdict", help="verdict (default), or answer: all criteria of each")
    a("--grades", metavar="GRADES", help="what `kit judge` wrote")
    a("--labels", metavar="FILE", help="labels that there are: an earlier draw goes on")
    a("--seed", type=int, default=0, help="another seed draws other rows (default 0)")
    a("--out", metavar="FILE", help=".csv or .jsonl (default: ANSWERS with the ending .labels.csv)")
    common.json_flag(parser)


def run(args: argparse.Namespace) -> int:
    """Write the rows to label."""
    from ..people.draw import draw, write

    more = {"design": args.design, "unit": args.unit, "seed": args.seed}
    found = draw(args.tasks, args.answers, n=args.n, grades=args.grades, labels=args.labels, **more)
    out = Path(args.out) if args.out else Path(args.answers).with_suffix(".labels.csv")
    path = write(found.rows, out)
    data = {"out": str(path), "rows": len(found.rows), "fresh": found.fresh}
    data |= {"design": found.design, "half_width": found.half_width, "worth": list(found.worth)}
    common.emit(args, data, f"{found}\nto be filled in: {path}")
    return 0
