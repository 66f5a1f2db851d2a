"""Read what other tools logged into tasks and answers, and write grades back into their logs.

kit logs read LOG --rubric rubric.json     LOG.tasks.jsonl and LOG.answers.jsonl for kit judge
kit logs write LOG GRADES --out NEW        the log once more, with the grades in it (a Parquet
                                           log as JSONL)

LOG: inspect-ai (.eval, .json), verifiers (results.jsonl, traces.jsonl), TRL (completions_*.parquet
or JSONL), open-instruct (*_rollouts_*.jsonl, with --tokenizer). The rubric: a list of criteria,
[{"text": ..., "weight": ...}], which every prompt gets.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import KitError
from .common import Options, Output, arg

HELP = "read logs of inspect-ai, verifiers, TRL, open-instruct; write grades back into them"


ARGS = (
    arg("action", choices=("read", "write")),
    arg("log", metavar="LOG", help="the other tool's file"),
    arg("grades", nargs="?", metavar="GRADES", help="write: what `kit judge` wrote"),
    arg(
        "--rubric", metavar="FILE", help="read: criteria that every prompt gets (JSON, JSONL, CSV)"
    ),
    arg("--tokenizer", metavar="NAME", help="open-instruct: the model's tokenizer, folder or name"),
    arg("--out", help="read: beginning of the two files' names; write: the new log"),
)


def run(args: Options) -> Output:
    """Do what was asked; the exit code."""
    return {"read": _read, "write": _write}[args.action](args)


def _read(args: Options) -> Output:
    from ..data import write_jsonl
    from ..data.formats.kit import record_row
    from ..data.logs import read_log
    from ..tables import plain

    found = read_log(args.log, criteria=_criteria(args.rubric), tokenizer=args.tokenizer)
    base = args.out or str(Path(args.log).with_suffix(""))
    tasks, answers = f"{base}.tasks.jsonl", f"{base}.answers.jsonl"
    write_jsonl(tasks, map(record_row, found.tasks.values()))
    write_jsonl(answers, (plain(record_row(r)) for r in found.answers))
    n, m = len(found.tasks), len(found.answers)
    data = {
        "kind": found.kind,
        "tasks": tasks,
        "answers": answers,
        "n_tasks": n,
        "n_answers": m,
        "remarks": found.remarks,
    }
    hint = "" if args.rubric else "\nthere is no rubric: give --rubric, or write criteria"
    head = [f"{found.kind}: {m} answers to {n} prompts", *found.remarks]
    return Output(data, "\n".join([*head, tasks, answers]) + hint)


def _criteria(path: str | None) -> tuple[Any, ...]:
    """The criteria of a file: rows with `text`, as the kit reads rubrics elsewhere."""
    if path is None:
        return ()
    from ..data import load_tasks
    from ..data.tables import read_rows

    rows = [row for _, row in read_rows(path)]
    found = load_tasks([{"id": "every", "prompt": "every", "rubrics": rows}]).sound()
    return found.tasks[0].criteria


def _write(args: Options) -> Output:
    from ..data.logs import write_back
    from ..people import read_grades

    if not args.grades or not args.out:
        raise KitError(
            "GRADES and --out are needed",
            where="kit logs write",
            fix="kit logs write LOG GRADES --out NEW",
        )
    n = write_back(args.log, read_grades(args.grades), args.out, tokenizer=args.tokenizer)
    text = f"{n['graded']} rows have a grade, {n['without']} have none: {args.out}"
    astray = f"\n{n['unplaced']} grades go nowhere: the text they are of is not where it was"
    return Output({"out": args.out, **n}, text + astray * bool(n["unplaced"]))
