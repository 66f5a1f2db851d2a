"""A notebook headless, once or over many settings.

Parameters are checked first. A failed or killed run goes on in its folder. Each cell of a sweep is a process of
`kit run`, on this machine or on Ray; finished cells are skipped.
"""

from __future__ import annotations

import itertools
import json
import logging
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd

from ..data.files import read_rows
from ..errors import MissingError
from ..records import Run
from ..system import paths
from . import folders
from .compare import overview
from .folders import is_done
from .session import lock_of, new_record

Echo = Callable[[str], None]
PARENT = "KIT_PARENT"  # a sweep sets it for the runs that it starts
GRACE = 20  # seconds that a run has to stop readably
LEDGER = re.compile(r"\.(db|sqlite3?)(-(wal|shm|journal))?$")


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

    plan = folders.plan(
        folders.find_notebook(notebook), values or {}, profile=profile
    )
    base = Path(out).expanduser().resolve() if out else paths.runs()
    folder = base / plan.name
    # A sweep's cell watches its sweep from the first moment on.
    _end_with_parent()
    lock = FileLock(lock_of(folder))
    try:
        # Two sweeps into one folder share its cells: each cell is run by one of them.
        lock.acquire(timeout=0)
    except Timeout:
        echo(f"another process runs {folder.name}; waiting for it")
        lock.acquire()
    try:
        # Asked under the lock: whoever was waited for may have finished the run.
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
    """Remove what a run made, except ledgers, at any depth: their verdicts were paid for."""
    # What is in a folder sorts behind it, so backwards a folder comes after all of it.
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_symlink() or not path.is_dir():
            if not LEDGER.search(path.name):
                path.unlink()
        elif not any(path.iterdir()):
            path.rmdir()


def _execute(plan: folders.Plan, folder: Path, echo: Echo) -> None:
    import papermill

    logging.getLogger("papermill").setLevel(
        logging.ERROR
    )  # parameters were checked here
    record = new_record(folder, plan.book.stem, plan.profile.name, plan.values)
    folders.save(folder, record)
    begin, error, status = time.monotonic(), "", "done"
    # Appended, because the lines of an earlier attempt may say why it ended.
    with open(folder / "run.log", "a", encoding="utf-8") as log:
        try:
            papermill.execute_notebook(
                _literal(plan.book),
                _literal(folder / plan.book.name),
                parameters=plan.values,
                engine_name=_engine(folder, plan.profile.name, log, echo),
                # A notebook may name a kernel of the machine on which it was saved.
                kernel_name="python3",
                language="python",
                progress_bar=False,
                # what a killed run had is readable
                autosave_cell_every=10,
            )
        except papermill.PapermillExecutionError as e:
            error, status = f"cell {e.exec_count}: {e.ename}: {e.evalue}", "failed"
        except KeyboardInterrupt:
            error, status = "stopped by a signal", "stopped"
            raise
        except (
            Exception
        ) as e:  # a kernel that was killed: what it kept is in the folder
            error, status = f"{type(e).__name__}: {e}", "failed"
        finally:
            log.write(f"{status} {error}\n")
            _close(folder, record, status, error, time.monotonic() - begin)
    echo(
        f"{status} in {time.monotonic() - begin:.0f} s"
        + f": {error[:600]}" * bool(error)
    )


def _close(
    folder: Path, record: Run, status: str, error: str, seconds: float
) -> None:
    """Complete the record that the notebook wrote, or the runner's own where it wrote none."""
    run = folders.load(folder)
    if (
        status == "stopped" and run.status == "done"
    ):  # the signal came after the last cell
        status, error = "done", ""
    meta = {**run.meta, "error": error}
    folders.save(
        folder,
        msgspec.structs.replace(
            run, status=status, seconds=round(seconds, 2), meta=meta
        ),
    )


def _literal(path: Path) -> str:
    """A path whose braces papermill does not fill with parameters."""
    return str(path).replace("{", "{{").replace("}", "}}")


def _engine(folder: Path, profile: str, log: Any, echo: Echo) -> str:
    """Register a papermill engine: a kernel in the run's folder that echoes each cell as it starts."""
    from papermill.clientwrap import PapermillNotebookClient
    from papermill.engines import Engine, papermill_engines
    from traitlets.config import Config

    variables = {
        "KIT_RUN_DIR": str(folder),
        "KIT_HEADLESS": "1",
        "KIT_PROFILE": profile,
        # The default renderer would store plotly.js, megabytes, in the notebook.
        "PLOTLY_RENDERER": "plotly_mimetype",
        "PYTHONUNBUFFERED": "1",
    }

    class KitEngine(Engine):
        @classmethod
        def execute_managed_notebook(
            cls, nb_man: Any, kernel_name: str, **_: Any
        ) -> None:
            cells, begin, start = (
                nb_man.nb.cells,
                time.monotonic(),
                nb_man.cell_start,
            )
            # papermill's own cell of parameters is none of the notebook's
            code = [
                c
                for c in cells
                if c.cell_type == "code"
                and "injected-parameters" not in c.metadata["tags"]
            ]
            # A line names the heading above the cell: code says less to whoever waits.
            number, title = 0, "start"

            def cell_start(
                cell: Any, cell_index: int | None = None, **more: Any
            ) -> Any:
                nonlocal number, title
                if cell in code:
                    number += 1
                    seconds = time.monotonic() - begin
                    echo(
                        f"  [{seconds:5.0f} s] cell {number} of {len(code)}: {title}"
                    )
                elif heading := re.search(r"^#+\s*(.+)$", cell.source, re.M):
                    title = heading[1].strip()
                return start(cell, cell_index, **more)

            nb_man.cell_start = cell_start
            with tempfile.TemporaryDirectory(prefix="kit-") as sockets:
                # Sockets of this user, where the system has them: others can read TCP ports.
                manager = (
                    {"transport": "ipc", "ip": f"{sockets}/kernel"}
                    if os.name == "posix"
                    else {}
                )
                client = PapermillNotebookClient(
                    nb_man,
                    kernel_name=kernel_name,
                    startup_timeout=600,  # a busy machine; a kernel that died is noticed at once
                    # A cell that trains may take days.
                    timeout=None,
                    stdout_file=log,
                    stderr_file=_Progress(log, echo),
                    config=Config({"KernelManager": manager}),
                )
                environment = {**os.environ, **variables}
                client.execute(
                    env=environment, cwd=str(folder), stdout=log, stderr=log
                )

    papermill_engines.register("kit", KitEngine)
    return "kit"


class _Progress:
    """The kernel's stderr goes to the log; lines of progress bars also to the person who waits."""

    def __init__(self, log: Any, echo: Echo):
        self.log, self.echo = log, echo

    def write(self, text: str) -> None:
        self.log.write(text)
        # tqdm writes \r to move back to the beginning of its line
        for line in re.split(r"[\r\n]+", text):
            if re.search(r"\d+%\||it/s|s/it", line):
                self.echo(f"      {line.strip()[:110]}")

    def flush(self) -> None:
        self.log.flush()


def _end_with_parent() -> None:
    """Stop this process when the sweep that started it is gone. A sweep killed with -9 tells nobody."""
    # Taken out: what this process starts has another parent to watch.
    parent = int(os.environ.pop(PARENT, "0"))
    if not parent:
        return

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        # An interrupt first, so that the record says how the run ended.
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(GRACE)
        os._exit(130)  # the kernel notices within a second and ends as well

    threading.Thread(target=watch, daemon=True).start()


def cells_of(
    source: Mapping[str, Sequence[Any]] | str | Path,
) -> list[dict[str, Any]]:
    """The cells of a sweep: all combinations of a grid, or the rows of a table (CSV, JSONL, JSON, Parquet).

    >>> cells_of({"seed": [0, 1], "steps": [5]})
    [{'seed': 0, 'steps': 5}, {'seed': 1, 'steps': 5}]
    """
    if isinstance(source, Mapping):
        combinations = itertools.product(*source.values())
        return [dict(zip(source, values, strict=True)) for values in combinations]
    return [row for _, row in read_rows(source)]


def sweep(
    notebook: str | Path,
    cells: Sequence[Mapping[str, Any]],
    *,
    profile: str | None = None,
    out: str | Path | None = None,
    jobs: int = 1,
    address: str | None = None,
    echo: Echo = lambda line: None,
) -> pd.DataFrame:
    """Run every cell and return the overview of their runs, written to `table.csv` too.

    All cells are checked before the first one starts. The same call goes on where it stopped.
    jobs : processes at once. address : a Ray cluster ("auto", "ray://HOST:PORT") that sees the same files.
    """
    book = folders.find_notebook(notebook)
    base = (
        Path(out).expanduser().resolve()
        if out
        else paths.runs() / f"sweep-{book.stem}"
    )
    base.mkdir(parents=True, exist_ok=True)
    plans = [folders.plan(book, cell, profile=profile) for cell in cells]
    waiting = {
        i: p for i, p in enumerate(plans) if not folders.is_done(base / p.name)
    }
    if len(waiting) < len(plans):
        echo(
            f"{len(plans) - len(waiting)} of {len(plans)} cells are finished already"
        )
    # A process per cell: a crash or a full GPU ends one cell and leaves the others.
    commands = {i: _command(p, base) for i, p in waiting.items()}
    ends = _on_ray(commands, address) if address else _processes(commands, jobs)
    begin = time.monotonic()
    for number, (index, code) in enumerate(ends, 1):
        state = (
            "done"
            if code == 0
            else f"failed, see {base / plans[index].name / 'run.log'}"
        )
        words = ", ".join(f"{k}={v}" for k, v in cells[index].items())
        echo(
            f"[{number} of {len(waiting)}, {time.monotonic() - begin:.0f} s] {words}: {state}"
        )
    places = [base / p.name for p in plans]
    frame = overview(
        [(f, folders.load(f)) for f in places if (f / folders.RECORD).is_file()]
    )
    paths.write(base / "table.csv", frame.to_csv(index=False))
    return frame


def _command(plan: folders.Plan, base: Path) -> list[str]:
    sets = [
        # JSON keeps the text "1" and the number 1 apart on a command line.
        f"--set={name}={json.dumps(value)}"
        for name, value in plan.values.items()
    ]
    return [
        *(sys.executable, "-m", "kit", "run", str(plan.book)),
        *("--profile", plan.profile.name, "--out", str(base)),
        *sets,
    ]


def _processes(
    commands: Mapping[int, list[str]], jobs: int
) -> Iterator[tuple[int, int]]:
    """Run commands, `jobs` at once. Yields the number and the exit code of each one that ends."""
    # Cells share the cores: more threads than cores make all of them slow.
    env = {
        "OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // max(jobs, 1))),
        # After the default above, so that a user's own number of threads wins.
        **os.environ,
        PARENT: str(os.getpid()),
        folders.CODE: folders.code_fingerprint(),
    }
    waiting, running = dict(commands), {}
    try:
        while waiting or running:
            while waiting and len(running) < max(jobs, 1):
                index = next(iter(waiting))
                running[index] = subprocess.Popen(
                    waiting.pop(index),
                    # A pipe that nobody reads would fill up and block the run.
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env=env,
                )
            for index in [
                i for i, process in running.items() if process.poll() is not None
            ]:
                yield index, running.pop(index).returncode
            time.sleep(0.1)
    finally:  # the sweep was stopped: its cells stop readably
        for process in running.values():
            # All are told before one is waited for, so that they stop at once.
            process.terminate()
        for process in running.values():
            process.wait()


def _on_ray(
    commands: Mapping[int, list[str]], address: str
) -> Iterator[tuple[int, int]]:
    """The same on a Ray cluster: a task per command, as many at once as fit."""
    try:
        import ray
    except ImportError:
        raise MissingError(
            "Ray is not installed", fix="pip install 'ray[client]'"
        ) from None

    def execute(index: int, command: list[str]) -> tuple[int, int]:
        env = {**os.environ, PARENT: str(os.getpid())}
        return index, subprocess.run(
            command, capture_output=True, env=env
        ).returncode

    ray.init(address=address, ignore_reinit_error=True, log_to_driver=False)
    # A worker that died (a lost machine) is tried three times more by Ray itself.
    task = ray.remote(num_cpus=1, max_retries=3)(execute)
    running = [task.remote(index, command) for index, command in commands.items()]
    while running:
        ready, running = ray.wait(running)
        yield from ray.get(ready)
