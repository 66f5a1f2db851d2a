"""The main job end to end: all notebooks headless, in order, then one HTML report.

Offline after the first fetch.
"""

from __future__ import annotations

import time

from ..errors import KitError
from .common import Options, Output, arg

HELP = "run the notebooks headless and write one HTML report"


ARGS = (
    arg("--profile", default="cpu", help="default: cpu"),
    arg("--seed", type=int, default=0),
    arg("--out", help="folder of runs (default: the kit's runs/demo)"),
    arg("--fresh", action="store_true", help="run again what is already finished"),
    arg("--only", nargs="*", default=[], metavar="N", help="only these notebooks, by number"),
)


def run(args: Options) -> Output:
    """Run; finished notebooks of the same code, data and parameters are kept.

    So a second demo pays nothing again.
    """
    from ..runs import headless, report
    from ..settings import params
    from ..system import paths, progress

    base = headless.folder_of(args.out) or paths.runs() / "demo"
    books = [
        b
        for b in sorted(paths.notebooks().glob("[0-9]*.ipynb"))
        if not args.only or str(int(b.name[:2])) in args.only
    ]
    if not books:
        raise KitError("no such notebook", where="--only", fix="numbers as in notebooks/")
    base.mkdir(parents=True, exist_ok=True)
    begin, done = time.monotonic(), []
    for i, book in enumerate(books, 1):
        progress.say(f"[{i}/{len(books)}] {book.stem}  ({time.monotonic() - begin:.0f} s so far)")
        folder, result = headless.run_notebook(
            book,
            profile=args.profile,
            seed=args.seed,
            given={"runs_dir": str(base)} if "runs_dir" in params.parameters(book) else {},
            out=base,
            reuse=not args.fresh,
            say=progress.say,
        )
        done.append((folder, result))
        if result.status != "done":
            break
    path = report.write(base, only={f.name for f, _ in done}, title="Rubric rewards: the demo")
    failed = [r for _, r in done if r.status != "done"]
    seconds = time.monotonic() - begin
    end = f"FAILED: {failed[0].notebook}" if failed else "done"
    data = {
        "report": str(path),
        "seconds": seconds,
        "runs": [str(f) for f, _ in done],
        "failed": [r.notebook for r in failed],
    }
    return Output(data, f"{end} in {seconds:.0f} s\nreport: {path}", 1 if failed else 0)
