"""List, show, mend and remove runs. Mend marks runs as stopped whose process is gone,
and removes empty folders and locks that killed runs left.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import KitError
from ..system import paths, processes
from .common import Options, Output, arg

HELP = "list, show, mend or remove runs"
SHOWN = 5  # names of trainings
ACTIONS = ("list", "show", "mend", "remove")


ARGS = (
    arg("action", nargs="?", default="list", choices=ACTIONS),
    arg("ids", nargs="*", help="run ids or their ends (show, remove)"),
    arg("--folder", help="folder of runs (default: the kit's)"),
    arg("--yes", action="store_true", help="remove: do it, not only say what"),
)


def run(args: Options) -> Output:
    """Do it; exit code 3 when there is no such run."""
    from .. import runs

    base = Path(args.folder).expanduser().resolve() if args.folder else paths.runs()
    found, args.folder = runs.find(base), base
    do = {"list": _list, "show": _show, "mend": _mend, "remove": _remove}[args.action]
    return do(found, args)


def _list(found: list[tuple[Path, Any]], args: Options) -> Output:
    from ..runs import compare

    rows = compare.overview(found)
    lines = []
    for r in rows:
        took = "?" if r["seconds"] is None else round(r["seconds"])
        done = f"{r['status']:8} {took:>7} s"
        what = f"seed {r['seed']:<3} {r['profile']:5} {r['run']}"
        lines.append(f"{done}  {what}  {r['differs in']}".rstrip())
    return Output(rows, "\n".join([*lines, f"{len(rows)} runs", *_trained(found, args.folder)]))


def _trained(found: list[tuple[Path, Any]], base: Path) -> list[str]:
    """A line on what `kit train` left here: its folders are no runs of a notebook."""
    from ..train.rollouts import CHAIN, SETTINGS

    marked = {p.parent for name in (SETTINGS, CHAIN) for p in base.glob(f"*/{name}")}
    names = sorted(p.name for p in marked - {folder for folder, _ in found})
    if not names:
        return []
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return [
        f"not listed: {len(names)} of `kit train` ({', '.join(names[:SHOWN])}{more}); "
        f"their numbers are in metrics.json, and `kit export` takes them"
    ]


def _show(found: list[tuple[Path, Any]], args: Options) -> Output:
    from ..records import to_json
    from ..runs import findings

    chosen = _chosen(found, args.ids)
    parts = []
    for folder, r in chosen:
        head = [
            str(folder),
            f"{r.notebook}: {r.status}, {findings.number(r.seconds)} s, ${r.cost:.4f}",
        ]
        error = [f"  {r.meta['error']}"] if r.meta.get("error") else []
        params = [f"  {k} = {v!r}" for k, v in r.params.items()]
        said = [f"  {s}" for s in findings.of_run(r, most=100)]
        parts.append("\n".join([*head, *error, *params, *said]))
    return Output([to_json(r) for _, r in chosen], "\n\n".join(parts))


def _mend(found: list[tuple[Path, Any]], args: Options) -> Output:
    """Runs that say "running" though nobody runs them (a kill, a lost machine) become stopped."""
    from ..runs import headless, status
    from ..runs.board import mark_unfinished

    mended = []
    for folder, r in found:
        held = processes.busy(folder.parent, folder.name) or headless.interactive(r)
        if status(folder) == "running" and not held:
            mark_unfinished(folder, "stopped", "stopped by its process being gone")
            mended.append(str(folder))
    places = {args.folder, *(folder.parent for folder, _ in found)}
    empty = [str(p) for base in sorted(places) for p in headless.tidy(base)]
    advice = "\nto continue one: python -m kit run --resume FOLDER" if mended else ""
    count = f"{len(mended)} runs mended, {len(empty)} empty folders removed"
    return Output([*mended, *empty], "\n".join([*mended, *empty, count]) + advice)


def _remove(found: list[tuple[Path, Any]], args: Options) -> Output:
    from ..runs import headless

    chosen = [folder for folder, _ in _chosen(found, args.ids)]
    if args.yes:
        headless.remove(chosen)
    done = "removed" if args.yes else "would be removed; say --yes to do it"
    return Output(chosen, "\n".join([*map(str, chosen), f"{len(chosen)} runs {done}"]))


def _chosen(found: list[tuple[Path, Any]], ids: list[str]) -> list[tuple[Path, Any]]:
    """The runs with those ids, or whose ids end so, each once; KitError for one that fits none or
    several.
    """
    if not ids:
        raise KitError("which run?", where="command line", fix="python -m kit runs list names them")
    out = {}
    for name in ids:
        fits = [(f, r) for f, r in found if r.id == name or r.id.endswith(name)]
        if len(fits) != 1:
            raise KitError(
                f"{len(fits)} runs fit {name!r}", where="command line", fix="give its id"
            )
        out |= fits
    return list(out.items())
