"""Write one self-contained HTML report over all runs below a folder."""

from __future__ import annotations

from pathlib import Path

from .common import Options, Output, arg

HELP = "one self-contained HTML report over a folder of runs"


ARGS = (
    arg("runs_dir", nargs="?", help="folder of runs (default: the kit's)"),
    arg("--out", help="where to write (default: RUNS_DIR/report.html)"),
    arg("--title", default="Rubric rewards: report"),
)


def run(args: Options) -> Output:
    """Write the report and print its path (or, with --json, the runs with their metrics)."""
    from .. import runs
    from ..records import to_json
    from ..runs import report
    from ..system import paths

    folder = Path(args.runs_dir) if args.runs_dir else paths.runs()
    path = report.write(folder, args.out, title=args.title)
    data = {
        "report": str(path),
        "bytes": path.stat().st_size,
        "runs": [to_json(r) for _, r in runs.find(folder)] if args.json else [],
    }
    return Output(data, str(path))
