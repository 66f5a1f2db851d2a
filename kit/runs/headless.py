"""Run a notebook headless through papermill: checked parameters, a folder of its own, readable
whatever happens.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shlex
import shutil
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .. import page, runs
from ..data.files import is_url
from ..data.schemas import stamped
from ..errors import DataError, KitError, MissingError
from ..records import Run, to_json
from ..settings import params, profiles
from ..system import paths, processes, progress
from .board import mark_unfinished, mend_table, remove_sockets

Say = Callable[[str], None]
UNREADABLE = "run again; its folder cannot be read and is kept"


def find_notebook(name: str) -> Path:
    """A notebook by path, file name, stem or number ("3" or "03")."""
    path = Path(name).expanduser()
    if path.suffix == ".ipynb" and path.exists():
        return path.resolve()
    books = sorted(paths.notebooks().glob("*.ipynb"))
    hits = [
        b
        for b in books
        if name in (b.name, b.stem)
        or (
            name.isdigit()
            and re.match(r"0*(\d+)_", b.name)
            and int(b.name.split("_")[0]) == int(name)
        )
    ]
    if len(hits) == 1:
        return hits[0]
    raise MissingError(
        f"there is no notebook {name!r}",
        where=str(paths.notebooks()),
        fix="one of: " + ", ".join(b.stem for b in books),
    )


def plan(
    notebook: Path, *, profile: str | None, seed: int | None, given: dict[str, Any]
) -> tuple[dict[str, Any], list[str], str]:
    """Checked parameters (profile and seed among them), notes of what was coerced, and the
    run's hash.
    """
    values, notes = params.check(notebook, given)
    known = params.parameters(notebook)
    for name, said in (("profile", profile), ("seed", seed)):
        if said not in (None, "") and values.get(name, said) != said:
            raise KitError(
                f"{name} is given twice: {said!r} and {values[name]!r}",
                where=f"--{name} and --set {name}=",
                fix="give it once",
            )
    params.locate(known, values, paths.data())
    chosen = profiles.resolve(profile or values.get("profile") or None).name
    if "profile" in known:
        values["profile"] = chosen
    if "seed" in known and seed is not None:
        values["seed"] = params.coerce(known["seed"], seed)[0]
    full = {n: values.get(n, p.default) for n, p in known.items()}
    text = "\n".join(params.source(c) for c in params.load(notebook)["cells"])
    return (
        values,
        notes,
        runs.run_hash(
            notebook.stem, text + runs.code_fingerprint(), chosen, int(full.get("seed") or 0), full
        ),
    )


def run_notebook(
    notebook: str | Path,
    *,
    profile: str | None = None,
    seed: int | None = None,
    given: dict[str, Any] | None = None,
    out: str | Path | None = None,
    reuse: bool = False,
    say: Say = lambda text: None,
) -> tuple[Path, Run]:
    """Execute a notebook into a run folder and return (folder, record).

    profile, seed, given : parameters; refused before anything starts when unknown or of another
    type.
    out : where run folders go; default: kit.system.paths.runs().
    reuse : return a finished run of the same notebook, code, data and parameters instead.
    A failing cell leaves the executed notebook, its HTML and config.json (status "failed") and is
    returned, not raised.
    """
    book = find_notebook(str(notebook))
    values, notes, digest = plan(book, profile=profile, seed=seed, given=given or {})
    for note in notes:
        say(f"  {note}")
    base = folder_of(out) or paths.runs()
    base.mkdir(parents=True, exist_ok=True)
    key = f"{book.stem}-{digest}"
    if not reuse:
        return _execute_alone(book, runs.new_folder(base, key), values, say)
    with processes.alone(base, key, say):  # two sweeps into one folder run each cell once
        if old := finished(base, key, say):
            say(f"  finished before: {old}")
            return old, runs.load(old)
        unfinished = sorted(
            p
            for p in base.glob(f"*-{key}")
            if runs.status(p) not in (None, "done") or not any(p.iterdir())
        )
        folder = unfinished[-1] if unfinished else runs.new_folder(base, key)
        return _execute_alone(book, folder, values, say)


def folder_of(out: str | Path | None) -> Path | None:
    """The folder that a user names; None for none. KitError for an address."""
    if out and is_url(out):
        raise KitError(
            "runs are written to a folder, not to an address",
            where=str(out),
            fix="give a folder, and copy it when it is done (aws s3 cp --recursive, rclone)",
        )
    return Path(out).expanduser().resolve() if out else None


def resume(folder: str | Path, *, say: Say = lambda text: None) -> tuple[Path, Run]:
    """Run a failed or killed run again in its own folder: ledgers and checkpoints there are
    used.
    """
    folder = Path(folder).expanduser().resolve()
    config = runs.load(folder)
    book = find_notebook(str(config.meta.get("path") or config.notebook))
    return _execute_alone(book, folder, runs.given(folder), say)


def _execute_alone(book: Path, folder: Path, values: dict[str, Any], say: Say) -> tuple[Path, Run]:
    """Execute unless another process, whose end was waited for, finished the same folder
    meanwhile.
    """
    with processes.alone(folder.parent, folder.name, say):
        if runs.status(folder) == "done":
            return folder, runs.load(folder)
        try:
            with paths.naming(folder):
                return folder, _execute(book, folder, values, say)
        except (OSError, KeyboardInterrupt) as e:
            # a full disk; a signal before the first cell, or while the last page was written
            status = "failed" if isinstance(e, OSError) else "stopped"
            mark_unfinished(folder, status, f"{status} by {str(e) or 'Ctrl-C'}")
            raise


def finished(base: Path, key: str, say: Say) -> Path | None:
    """The newest folder of a run that ended without an error, or None; it may have no metrics.

    One that cannot be read (cut, or of a newer kit) is named and stays as it is.
    """
    for folder in sorted(base.glob(f"*-{key}"), reverse=True):
        try:
            if runs.status(folder) == "done" and runs.load(folder):
                return folder
        except DataError as e:
            say(f"  {UNREADABLE}: {e}")
    return None


def _execute(book: Path, folder: Path, values: dict[str, Any], say: Say) -> Run:
    import papermill

    folder.mkdir(parents=True, exist_ok=True)
    target = folder / book.name
    known = params.parameters(book)
    config = Run(
        id=folder.name,
        notebook=book.stem,
        profile=str(values.get("profile", "")),
        seed=int(values.get("seed") or 0),
        params=values,
        versions=runs.versions(),
        status="running",
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        commit=runs.commit(),
        meta={
            "path": str(book),
            "defaults": {n: p.default for n, p in known.items()},
            "files": runs.digests(values),
        },
    )
    (folder / "metrics.json").unlink(missing_ok=True)
    remove_sockets(folder)
    runs.write_json(folder / "config.json", stamped("run", to_json(config)))
    begin, error, stopped = time.monotonic(), "", None
    logging.getLogger("asyncio").addFilter(_told)
    with (
        processes.stoppable(),
        processes.environment(
            KIT_RUN_DIR=str(folder),
            KIT_HEADLESS="1",
            KIT_PROFILE=str(values.get("profile") or ""),
            PYTHONUNBUFFERED="1",
        ),
        (folder / "run.log").open("a", encoding="utf-8") as log,
    ):
        try:
            papermill.execute_notebook(
                str(book),
                str(target),
                parameters=values,
                engine_name=_engine(say, log),
                progress_bar=False,
                kernel_name="python3",
                language="python",
                cwd=str(folder),
                stdout_file=log,
                stderr_file=_Tee(log, say),
                autosave_cell_every=10,
                start_timeout=600,  # a busy machine; a kernel that died is noticed at once
            )
        except papermill.PapermillExecutionError as e:
            error = f"cell {e.exec_count}: {e.ename}: {e.evalue}"
            log.write("\n".join(e.traceback) if isinstance(e.traceback, list) else str(e.traceback))
        except KeyboardInterrupt as e:
            stopped, error = e, f"stopped by {str(e) or 'Ctrl-C'}"
            log.write(error)
        except Exception as e:  # a dead kernel, say: what it had is saved and readable
            error = f"{type(e).__name__}: {e}"
            log.write(error)
    remove_sockets(folder)
    if stopped and (folder / "metrics.json").exists():  # it came after the notebook's last word
        error = ""
    ended = "stopped" if stopped else "failed"
    status = ended if error else "done"
    if target.exists():
        with contextlib.suppress(Exception):
            page.settle(target)
            page.write_notebook_html(target)
    row = {
        **stamped("run", to_json(config)),
        "status": status,
        "seconds": round(time.monotonic() - begin, 2),
        "metrics": {},
        "meta": {**config.meta, "error": error},
    }
    runs.write_json(folder / "config.json", row)
    if not error and not (folder / "metrics.json").exists():
        say("  note: the notebook recorded no metrics (run.finish() in its last cell)")
    if error:
        again = f"python -m kit run --resume {shlex.quote(str(folder))}"
        failed = "" if stopped else "FAILED at "
        say(f"  {failed}{error[:400]}\n  what it had: {target}\n  to continue: {again}")
    if stopped:
        raise stopped
    return runs.load(folder)


def _told(record: logging.LogRecord) -> bool:
    """False for a task of nbclient that ended with its kernel: the run says so itself."""
    return type((record.exc_info or (None, None))[1]).__name__ != "DeadKernelError"


def _engine(say: Say, log: Any) -> str:
    """Register a papermill engine that reports each cell as it starts; returns its name."""
    from papermill.engines import NBClientEngine, papermill_engines

    class Engine(NBClientEngine):
        @classmethod
        def execute_managed_notebook(cls, nb_man: Any, kernel_name: str, **kwargs: Any) -> Any:
            code = [
                i
                for i, c in enumerate(nb_man.nb.cells)
                if c.cell_type == "code" and "injected-parameters" not in c.metadata.get("tags", [])
            ]
            begin, start = time.monotonic(), nb_man.cell_start

            def cell_start(cell: Any, cell_index: int | None = None, **more: Any) -> Any:
                if cell.cell_type == "code" and cell_index in code:
                    say(
                        f"  [{time.monotonic() - begin:5.0f} s] cell "
                        f"{code.index(cell_index) + 1}/{len(code)}: "
                        f"{_title(nb_man.nb.cells, cell_index)}"
                    )
                return start(cell, cell_index, **more)

            nb_man.cell_start = cell_start
            return super().execute_managed_notebook(
                nb_man, kernel_name, kernel_manager_class=_kernel_manager(log), **kwargs
            )

    papermill_engines.register("kit", Engine)
    return "kit"


def _kernel_manager(log: Any) -> Any:
    """A kernel manager that talks through files of this user where it can, not through TCP ports
    that others could read.

    What the kernel itself complains of (its parent is gone, a cell was interrupted) goes to `log`,
    not to the terminal.
    """
    from jupyter_client.manager import AsyncKernelManager

    class LocalKernelManager(AsyncKernelManager):
        def __init__(self, **kwargs: Any):
            super().__init__(**({"transport": "ipc"} if os.name == "posix" else {}), **kwargs)

        async def _async_launch_kernel(self, kernel_cmd: list[str], **kw: Any) -> None:
            await super()._async_launch_kernel(
                kernel_cmd, **{"stdout": log.fileno(), "stderr": log.fileno(), **kw}
            )

    return LocalKernelManager


def _title(cells: list[Any], index: int) -> str:
    heads = (
        re.search(r"^#+\s*(.+)$", c.source, re.M)
        for c in reversed(cells[: index + 1])
        if c.cell_type == "markdown"
    )
    return next((m[1].strip() for m in heads if m), "start")


class _Tee:
    """The kernel's stderr into the log; its progress lines (from tqdm) also to the person who
    waits.
    """

    def __init__(self, log: Any, say: Say):
        self.log, self.say = log, say

    def write(self, text: str) -> None:
        self.log.write(text)
        for line in re.split(r"[\r\n]+", text):
            if line.startswith(progress.ROW):
                self.say(line)
            elif re.search(r"\d+%\|| it/s|s/it|\d+it ", line):
                self.say("      " + line.strip()[:110])

    def flush(self) -> None:
        self.log.flush()


def interactive(run: Run) -> bool:
    """True while the process of Jupyter that began a run is alive; `kit run` holds a lock."""
    return run.status == "running" and processes.alive(int(run.meta.get("pid") or 0))


def remove(folders: Sequence[Path]) -> None:
    """Delete runs, all or none; KitError for one that is going on, or is a link to a run."""
    with contextlib.ExitStack() as held:
        for folder in folders:
            if folder.is_symlink():
                raise KitError(
                    "this is a link to a run",
                    where=str(folder),
                    fix="remove the link itself, or the run where it is",
                )
            going = KitError(
                "the run is going on; nothing is removed",
                where=str(folder),
                fix="stop it first, or wait for its end",
            )
            held.enter_context(processes.alone(folder.parent, folder.name, print, busy=going))
            if interactive(runs.load_or_broken(folder)):
                raise going
        for folder in folders:
            shutil.rmtree(folder)
            processes.lock_file(folder.parent, folder.name).unlink(missing_ok=True)


def tidy(base: Path) -> list[Path]:
    """Remove what killed runs leave behind: their empty folders, which are returned, and the locks
    where nobody holds one; no cell of the table of a killed sweep is running then.
    """
    empty = [p for p in base.glob("[0-9]*T[0-9]*-*") if p.is_dir() and not any(p.iterdir())]
    for folder in empty:
        folder.rmdir()
    if not any(processes.busy(base, path.stem) for path in base.glob(".locks/*.lock")):
        mend_table(base)
        shutil.rmtree(base / ".locks", ignore_errors=True)
    return empty
