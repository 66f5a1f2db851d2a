"""Grades as one page for a browser: answers, verdicts, reasons; filtered and searched offline.

The answers' texts are in another file than the grades: for NAME.grades.jsonl the file NAME.jsonl
beside it is read, else give --answers. Labels by people (--labels) stand beside the verdicts, and
"people disagree" becomes a filter.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from . import common

HELP = "grades as one page for a browser: answers, verdicts, reasons, filters, search"
OURS = ".grades.jsonl"


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments of `view`."""
    a = parser.add_argument
    a("grades", metavar="GRADES", help="what `kit judge` wrote")
    a("--tasks", help="the tasks: prompts, texts of the criteria, weights")
    a("--answers", help="the answers that were judged")
    a("--labels", help="labels by people, and the answers where --answers is not given")
    a("--out", metavar="PAGE.html", help="default: GRADES with the ending .html")
    common.json_flag(parser)


def run(args: argparse.Namespace) -> int:
    """Write the page."""
    from ..people.view import view

    answers = args.answers or beside(args.grades) or args.labels
    more = {"tasks": args.tasks, "answers": answers, "labels": args.labels}
    path = view(args.grades, out=args.out, **more)
    size = path.stat().st_size
    common.emit(args, {"page": str(path), "bytes": size}, f"page: {path} ({size / 1e6:.2f} MB)")
    return 0


def beside(grades: str) -> str | None:
    """NAME.jsonl beside NAME.grades.jsonl, where it is there."""
    path = Path(grades)
    if not path.name.endswith(OURS):
        return None
    found = path.with_name(path.name.removesuffix(OURS) + ".jsonl")
    return str(found) if found.is_file() else None
