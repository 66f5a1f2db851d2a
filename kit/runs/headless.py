"""A notebook headless: parameters first, then each cell with a line; a failed or killed run goes on in its folder."""

from __future__ import annotations

import os
import re
import shutil
import signal
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from ..records import Run
from ..system import paths
from . import folders
from .folders import is_done
from .session import lock_of, new_record

Echo = Callable[[str], None]
PARENT = "KIT_PARENT"  # a sweep sets it for the runs that it starts
GRACE = 20  # seconds that a run has to stop readably


def run(
    notebook: str | Path,
    values: Mapping[str, Any] | None = None,
    *,
    profile: str | None = None,
    out: str | Path | None = None,
    again: bool = False,
    echo: Echo = lambda line: None,
) -> Path:
    """Execute a notebook in its run folder, once, and return the folder.

    values : parameters. A wrong name or type is an error before anything starts.
    again : run from the start although the same run is finished. echo : receives a line per cell.
    A cell that fails leaves the executed notebook; `load(folder).status` is then "failed".
    """
    from filelock import FileLock, Timeout

    plan = folders.plan(folders.find_notebook(notebook), values or {}, profile=profile)
    base = Path(out).expanduser().resolve() if out else paths.runs()
    folder = base / plan.name
    _end_with_parent()
    lock = FileLock(lock_of(folder))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        echo(f"another process runs {folder.name}; waiting for it")
        lock.acquire()
    try:
        if is_done(folder) and not again:
            echo(f"finished before: {folder}")
        else:
            if again:
                _clear(folder)
            folder.mkdir(parents=True, exist_ok=True)
            _execute(plan, folder, echo)
    finally:
        lock.release()
    return folder


def _clear(folder: Path) -> None:
    """Remove what a run made, except ledgers: their verdicts were paid for."""
    for path in folder.glob("*"):
        if path.is_dir():
            shutil.rmtree(path)
        elif not re.search(r"\.db(-wal|-shm)?$", path.name):
            path.unlink()


def _execute(plan: folders.Plan, folder: Path, echo: Echo) -> None:
    import papermill

    record = new_record(folder, plan.book.stem, plan.profile.name, plan.values)
    folders.save(folder, record)
    begin, error, status = time.monotonic(), "", "done"
    variables = {
        "KIT_RUN_DIR": str(folder),
        "KIT_HEADLESS": "1",
        "KIT_PROFILE": plan.profile.name,
        "PLOTLY_RENDERER": "plotly_mimetype",
        "PYTHONUNBUFFERED": "1",
    }
    with _environment(variables), open(folder / "run.log", "a", encoding="utf-8") as log:
        try:
            papermill.execute_notebook(
                str(plan.book),
                str(folder / plan.book.name),
                parameters=plan.values,
                engine_name=_engine(echo),
                kernel_name="python3",
                language="python",
                progress_bar=False,
                cwd=str(folder),
                stdout_file=log,
                stderr_file=_Progress(log, echo),
                autosave_cell_every=10,
                start_timeout=600,  # a busy machine; a kernel that died is noticed at once
            )
        except papermill.PapermillExecutionError as e:
            error, status = f"cell {e.exec_count}: {e.ename}: {e.evalue}", "failed"
        except KeyboardInterrupt:
            error, status = "stopped by a signal", "stopped"
            raise
        except Exception as e:  # a kernel that was killed: what it kept is in the folder
            error, status = f"{type(e).__name__}: {e}", "failed"
        finally:
            log.write(f"{status} {error}\n")
            _close(folder, record, status, error, time.monotonic() - begin)
    echo(f"{status} in {time.monotonic() - begin:.0f} s" + f": {error[:600]}" * bool(error))


def _close(folder: Path, record: Run, status: str, error: str, seconds: float) -> None:
    """Complete the record that the notebook wrote, or the runner's own where it wrote none."""
    run = folders.load(folder)
    if status == "stopped" and run.status == "done":  # the signal came after the last cell
        status, error = "done", ""
    meta = {**run.meta, **folders.process(), "error": error}
    folders.save(
        folder, msgspec.structs.replace(run, status=status, seconds=round(seconds, 2), meta=meta)
    )


def _engine(echo: Echo) -> str:
    """Register a papermill engine that echoes each cell as it starts."""
    from papermill.engines import NBClientEngine, papermill_engines

    class Engine(NBClientEngine):
        @classmethod
        def execute_managed_notebook(cls, nb_man: Any, kernel_name: str, **options: Any) -> Any:
            cells, begin, start = nb_man.nb.cells, time.monotonic(), nb_man.cell_start
            total = sum(cell.cell_type == "code" for cell in cells)
            number, title = 0, "start"

            def cell_start(cell: Any, cell_index: int | None = None, **more: Any) -> Any:
                nonlocal number, title
                if cell.cell_type == "code":
                    number += 1
                    seconds = time.monotonic() - begin
                    echo(f"  [{seconds:5.0f} s] cell {number} of {total}: {title}")
                elif heading := re.search(r"^#+\s*(.+)$", cell.source, re.M):
                    title = heading[1].strip()
                return start(cell, cell_index, **more)

            nb_man.cell_start = cell_start
            return super().execute_managed_notebook(nb_man, kernel_name, **options)

    papermill_engines.register("kit", Engine)
    return "kit"


class _Progress:
    """The kernel's stderr goes to the log; lines of progress bars also to the person who waits."""

    def __init__(self, log: Any, echo: Echo):
        self.log, self.echo = log, echo

    def write(self, text: str) -> None:
        self.log.write(text)
        for line in re.split(r"[\r\n]+", text):
            if re.search(r"\d+%\||it/s|s/it", line):
                self.echo(f"      {line.strip()[:110]}")

    def flush(self) -> None:
        self.log.flush()


@contextmanager
def _environment(variables: Mapping[str, str]) -> Any:
    """Inside, these variables are set: the kernel inherits them."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            os.environ.pop(name)
        os.environ.update({k: v for k, v in before.items() if k in variables})


def _end_with_parent() -> None:
    """Stop this process when the sweep that started it is gone. A sweep killed with -9 tells nobody."""
    parent = int(os.environ.pop(PARENT, "0"))
    if not parent:
        return

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(GRACE)
        os._exit(130)  # the kernel notices within a second and ends as well

    threading.Thread(target=watch, daemon=True).start()
