"""Draw what to label next, and say what the labels will be worth.

The file has a row for each verdict to give: fill in the column `label` (met, unmet, partly,
unknown; for every criterion, also one of negative weight, whether its text holds; or one of the
levels, or the points, that the column `scale` lists). How the rows were drawn stands in the file,
so that `kit agree` and `kit rate` need not be told.

  random        each verdict has the same chance
  stratified    equally many on which the judge (--grades) says met, unmet, unknown: the rarer
                kind of its errors is found with fewer labels

With --labels the file of an earlier draw goes on: its labels are kept, each rater's (column
`rater`) in a row of its own. It needs the answers, and for a stratified one the grades, that it was
drawn from: others make its probabilities wrong. The judge's verdict is not in the file: who labels
should not see it.
"""

from __future__ import annotations

from pathlib import Path

from .common import Options, Output, arg

HELP = "draw what people should label next; says what the interval will be worth"


ARGS = (
    arg("tasks", metavar="TASKS", help="the tasks with their criteria"),
    arg("answers", metavar="ANSWERS", help="the answers"),
    arg("--n", type=int, default=40, help="how many to draw (default 40)"),
    arg("--design", default="random", help="random (default) or stratified"),
    arg("--grades", metavar="GRADES", help="what `kit judge` wrote"),
    arg("--labels", metavar="FILE", help="labels that there are: an earlier draw goes on"),
    arg("--seed", type=int, default=0, help="another seed draws other rows (default 0)"),
    arg(
        "--out",
        metavar="FILE",
        help=".csv or .jsonl (default: ANSWERS with the ending .labels.csv)",
    ),
)


def run(args: Options) -> Output:
    """Write the rows to label."""
    from ..people.draw import draw, write

    found = draw(
        args.tasks,
        args.answers,
        n=args.n,
        grades=args.grades,
        labels=args.labels,
        design=args.design,
        seed=args.seed,
    )
    out = Path(args.out) if args.out else Path(args.answers).with_suffix(".labels.csv")
    path = write(found.rows, out)
    data = {
        "out": str(path),
        "rows": len(found.rows),
        "fresh": found.fresh,
        "design": found.design,
        "half_width": found.half_width,
        "worth": list(found.worth),
    }
    return Output(data, f"{found}\nto be filled in: {path}")
