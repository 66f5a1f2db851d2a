"""Pass rate and rubric score that people would give, from `kit judge`'s grades and a few labels.

A rate read off a judge is biased by the judge's errors; labels of some verdicts take the bias out.
How depends on how the labelled verdicts were chosen: `kit label` writes that into its file, for
other files say it with --design.

  random        a random sample of verdicts, or of whole prompts
  probability   drawn with the probability in the file's column `inclusion`
  by_label      chosen by their label (half met, half unmet, say)
  shifted       labels from elsewhere

With --against: the difference in credit to another policy's grades by the same judge, both
corrected (a partly met criterion counts in part: no threshold).
"""

from __future__ import annotations

from ..errors import KitError
from .common import LEVEL, Options, Output, arg

HELP = "pass rate and rubric score, corrected by people's labels; --against another policy's grades"


ARGS = (
    arg("tasks", metavar="TASKS", help="the tasks that were judged"),
    arg(
        "labels",
        metavar="LABELS",
        help="labels by people: answers with labels, or kit label's file",
    ),
    arg("grades", metavar="GRADES", help="what `kit judge` wrote"),
    arg("--design", help="how the labelled verdicts were chosen: see above"),
    arg("--against", metavar="GRADES", help="grades of another policy's answers to the same tasks"),
    arg("--against-labels", metavar="LABELS", help="their labels, where both have the same ids"),
    arg(
        "--how",
        help="the score: flip (default, in [0, 1]), signed, positive_normalised",
    ),
    arg(
        "--threshold",
        type=float,
        metavar="X",
        help="values from X on pass (default .5)",
    ),
    LEVEL,
)


def run(args: Options) -> Output:
    """Print the corrected rates, or the corrected difference."""
    from ..people import against, rate
    from ..stats import claim

    more = {"design": args.design, "level": args.level}
    given = (("how", args.how), ("cut", args.threshold))
    own = {name: value for name, value in given if value is not None}
    if args.against:
        if own:
            raise KitError(
                "--threshold and --how are of the rates",
                where="--against",
                fix="leave them out: --against compares the credit itself",
            )
        files = (args.tasks, args.labels, args.grades, args.against)
        found = against(*files, other_labels=args.against_labels, **more)
        said = claim(found, new=args.grades, old=args.against, what="credit")
        head = f"credit of {args.grades} less that of {args.against}: {found}"
        lines = filter(None, (head, said, found.method, found.note))
        return Output({"difference": found.as_dict()}, "\n".join(lines))
    files = (args.tasks, args.labels, args.grades)
    rated = rate(*files, **own, **more)
    return Output({"file": args.grades, **rated.data()}, str(rated))
