"""Grades as one page for a browser: answers, verdicts, reasons; filtered and searched offline.

The answers' texts are in another file than the grades: for NAME.grades.jsonl the file NAME.jsonl
beside it is read, else give --answers. Labels by people (--labels) stand beside the verdicts, and
"people disagree" becomes a filter.
"""

from __future__ import annotations

from pathlib import Path

from .common import Options, Output, arg

HELP = "grades as one page for a browser: answers, verdicts, reasons, filters, search"
OURS = ".grades.jsonl"


ARGS = (
    arg("grades", metavar="GRADES", help="what `kit judge` wrote"),
    arg("--tasks", help="the tasks: prompts, texts of the criteria, weights"),
    arg("--answers", help="the answers that were judged"),
    arg("--labels", help="labels by people, and the answers where --answers is not given"),
    arg("--out", metavar="PAGE.html", help="default: GRADES with the ending .html"),
)


def run(args: Options) -> Output:
    """Write the page."""
    from ..people.view import view

    path = view(
        args.grades,
        out=args.out,
        tasks=args.tasks,
        answers=args.answers or beside(args.grades) or args.labels,
        labels=args.labels,
    )
    size = path.stat().st_size
    return Output({"page": str(path), "bytes": size}, f"page: {path} ({size / 1e6:.2f} MB)")


def beside(grades: str) -> str | None:
    """NAME.jsonl beside NAME.grades.jsonl, where it is there."""
    path = Path(grades)
    if not path.name.endswith(OURS):
        return None
    found = path.with_name(path.name.removesuffix(OURS) + ".jsonl")
    return str(found) if found.is_file() else None
