"""Summary and lint of a rubric data set: what is in it, and what to fix first."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

from .common import Options, Output, arg

HELP = "summary and lint of a rubric data set (any known format)"

ARGS = (
    arg("file", help="JSONL, JSON, CSV or Parquet, or its address"),
    arg(
        "--format",
        default="auto",
        help="auto (default) or a format's name; a wrong name lists them",
    ),
    arg(
        "--lint",
        action="store_true",
        help="list the findings, one per rule and text, 20 a rule; exit code 1 when one is an "
        "error",
    ),
    arg("--profile", default="t4", help="its prompt length decides what is too long (default t4)"),
    arg(
        "--rules",
        default="default",
        help="default (rules right in at least 70%% of what was read), all, or names with commas",
    ),
    arg(
        "--judge",
        metavar="JUDGE",
        help="ask this judge too what words cannot decide, once per criterion (see `judge "
        "--help`); its opinions are findings judge-..., never errors",
    ),
    arg("--ledger", metavar="FILE", help="the judge's answers (default: none kept)"),
    arg("--budget-calls", type=int, help="stop before the judge is called more often"),
)


def run(args: Options) -> Output:
    """Print the scan; with --lint the exit code is 1 when there is an error."""
    from ..rubrics.summary import scan

    found = scan(
        args.file,
        format=args.format,
        profile=args.profile,
        rules=args.rules if args.rules in ("default", "all") else args.rules.split(","),
        opinion=_opinion(args),
    )
    data = as_json(found, every=args.lint)
    text = [
        f"{found.name}: format {found.format}, {found.rows} rows, {found.skipped} skipped",
        "",
        str(found.summary),
        "",
        str(found.lint),
    ]
    if args.lint:
        text += [
            "",
            "findings:",
            *listed(found.lint),
        ]
    code = 1 if args.lint and found.lint.severities.get("error") else 0
    return Output(data, "\n".join(text), code)


def _opinion(args: Options) -> Any:
    """What asks the judge of --judge, or None."""
    from ..judge.factory import judge_of
    from ..judge.prices import Budget
    from ..rubrics.lint import opinion_of

    if args.judge is None:
        return None
    who = judge_of(args.judge, where="--judge")
    return opinion_of(who, args.ledger, Budget(calls=args.budget_calls), True)


def listed(lint: Any) -> list[str]:
    """A line per group of findings, and per rule how many are not shown."""
    lines, shown = [], Counter()
    for f, rows, n in lint.groups():
        shown[f.code] += n
        again = f" | {n} times, rows {', '.join(map(str, rows[:8]))}" if n > 1 else ""
        lines.append(f"  {f}" + (f" | {f.text[:90]!r}" if f.text else "") + again)
    rest = {code: n - shown[code] for code, n in lint.counts.items() if n > shown[code]}
    return [*lines, *(f"  and {n} more of {code}" for code, n in sorted(rest.items()))]


def as_json(found: Any, *, every: bool) -> dict[str, Any]:
    """A scan as JSON; `every` adds the kept findings."""
    summary = dataclasses.asdict(found.summary)
    summary["histograms"] = {
        k: {str(x): n for x, n in v.items()}
        for k, v in summary["histograms"].items()
        if k != "cells"
    }
    lint = {
        "tasks": found.lint.tasks,
        "criteria": found.lint.criteria,
        "usable": found.lint.usable,
        "counts": found.lint.counts,
        "severities": found.lint.severities,
        "note_share": found.lint.note_share,
        "rules": found.lint.table(),
    }
    if every:
        lint["findings"] = [dataclasses.asdict(f) for f in found.lint.findings]
    return {
        "name": found.name,
        "format": found.format,
        "rows": found.rows,
        "skipped": found.skipped,
        "summary": summary,
        "lint": lint,
    }
