"""The forms of the files that the kit writes, made from the code: fields, types, schema numbers.

A file of a newer form than this kit knows is refused by name; one without a number is form 1.
"""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

from .. import records
from ..data.schemas import SCHEMAS
from .common import Options, Output

HELP = "the forms of the files that the kit writes: fields, types, schema numbers"
RECORDS = ("Task", "Criterion", "Response", "Verdict", "Grade", "Run")
HELD = {
    "record": "tasks, answers, verdicts as JSONL: `record` names which (Task, Response, Verdict)",
    "grades": "what `kit judge` writes: a Grade a line, its verdicts without the answer's ids",
    "labels": "what `kit label` writes: a row a verdict to give (CSV or JSONL)",
    "run": "metrics.json and config.json of a run: a Run",
    "sweep": "sweep.json of a sweep: its cells; table.json, table.csv: parameters beside metrics",
    "judgments": "judgments.json of a run: tasks, and answers with a row for each verdict",
}


ARGS = ()


def run(args: Options) -> Output:
    """Print the page."""
    data = page()
    lines = [
        *("# Files", "", "| form | schema | holds |", "|---|---|---|"),
        *(f"| {f['form']} | {f['schema']} | {f['holds']} |" for f in data["files"]),
    ]
    for record in data["records"]:
        lines += [
            "",
            f"# {record['name']}",
            "",
            record["about"],
            "",
            "| field | type | default |",
            "|---|---|---|",
            *(f"| {f['name']} | {f['type']} | {f['default']} |" for f in record["fields"]),
        ]
    lines += ["", "# Read besides", "", *(f"- {n}: {t}" for n, t in data["readers"].items())]
    return Output(data, "\n".join(lines))


def page() -> dict[str, Any]:
    """Files with their numbers, records with their fields, and the formats of others."""
    from ..data.detect import READERS

    files = [{"form": k, "schema": n, "holds": HELD[k]} for k, n in SCHEMAS.items()]
    kinds = [_record(getattr(records, name)) for name in RECORDS]
    return {
        "files": files,
        "records": kinds,
        "readers": {k: _first(f) for k, f in READERS.items() if k != "kit"},
    }


def _record(kind: type) -> dict[str, Any]:
    rows = []
    for f in dataclasses.fields(kind):
        needed = f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
        default = f.default if f.default is not dataclasses.MISSING else "empty"
        rows.append(
            {
                "name": f.name,
                "type": str(f.type).replace("|", "or"),
                "default": "needed" if needed else repr(default),
            }
        )
    return {"name": kind.__name__, "about": _first(kind), "fields": rows}


def _first(thing: Any) -> str:
    """The first line of what is said of it."""
    return (inspect.getdoc(thing) or "").split("\n\n")[0].replace("\n", " ")
