"""A notebook headless, once or over many settings.

Parameters are checked first. A failed or killed run goes on in its folder. Each cell of a sweep is a process of
`kit run`, on this machine or on Ray; finished cells are skipped.
"""

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
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, TextIO

import pandas as pd
from filelock import FileLock
from msgspec.structs import replace

from ..data.files import read_rows
from ..errors import MissingError
from ..system import paths
from . import folders, parameters
from .compare import overview
from .folders import is_done
from .session import lock_of, new_record

Echo = Callable[[str], None]
PARENT = "KIT_PARENT"  # a sweep sets it for the runs that it starts


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
    plan = folders.plan(
        folders.find_notebook(notebook), values or {}, profile=profile
    )
    folder = Path(out or paths.runs()).expanduser().resolve() / plan.name
    # A sweep's cell watches its sweep from the first moment on.
    _end_with_parent()
    # Two sweeps into one folder share its cells: each cell is run by one of them, and the other waits.
    with FileLock(lock_of(folder)):
        # Asked under the lock: whoever was waited for may have finished the run.
        if is_done(folder) and not again:
            echo(f"finished before: {folder}")
            return folder
        if again:
            _remove_results(folder)
        folder.mkdir(parents=True, exist_ok=True)
        _execute_notebook(plan, folder, echo)
    return folder


def _remove_results(folder: Path) -> None:
    """Remove what a run made, except ledgers, at any depth: their verdicts were paid for."""
    # What is in a folder sorts behind it, so backwards a folder comes after all of it.
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_symlink() or not path.is_dir():
            if not re.search(r"\.(db|sqlite3?)(-(wal|shm|journal))?$", path.name):
                path.unlink()
        elif not any(path.iterdir()):
            path.rmdir()


def _execute_notebook(plan: folders.Plan, folder: Path, echo: Echo) -> None:
    """Execute a notebook. However it ends, the record of its run says so."""
    from papermill import PapermillExecutionError

    folders.save(
        folder, new_record(folder, plan.book.stem, plan.profile.name, plan.values)
    )
    begin, status, error = time.monotonic(), "stopped", "stopped by a signal"
    # Appended, because the lines of an earlier attempt may say why it ended.
    with open(folder / "run.log", "a", encoding="utf-8") as log:
        try:
            _run_kernel(plan, folder, log, echo)
            status, error = "done", ""
        except PapermillExecutionError as e:
            status, error = "failed", f"cell {e.exec_count}: {e.ename}: {e.evalue}"
        # A kernel that was killed: what it kept is in the folder.
        except Exception as e:
            status, error = "failed", f"{type(e).__name__}: {e}"
        finally:
            # The record that the notebook wrote, or the one above where it wrote none.
            run = folders.load(folder)
            # The signal came after the last cell.
            if status == "stopped" and run.status == "done":
                status, error = "done", ""
            log.write(f"{status} {error}\n")
            seconds = round(time.monotonic() - begin, 2)
            folders.save(
                folder,
                replace(
                    run,
                    status=status,
                    seconds=seconds,
                    meta={**run.meta, "error": error},
                ),
            )
    echo(f"{status} in {seconds:.0f} s: {error[:600]}".removesuffix(": "))


def _run_kernel(plan: folders.Plan, folder: Path, log: TextIO, echo: Echo) -> None:
    """Execute a notebook with papermill, in a kernel whose working directory is the run's folder."""
    import papermill.engines
    from traitlets.config import Config

    kernel_echo = KernelEcho(plan.book, echo)

    # papermill's own engine passes no environment on.
    class KitEngine(papermill.engines.Engine):  # type: ignore[misc]
        @classmethod
        def execute_managed_notebook(
            cls, nb_man: object, kernel_name: str, **_: object
        ) -> None:
            with tempfile.TemporaryDirectory(prefix="kit-") as sockets:
                # Sockets of this user, because others can read TCP ports.
                manager = {"transport": "ipc", "ip": f"{sockets}/kernel"}
                client = papermill.engines.PapermillNotebookClient(
                    nb_man,
                    kernel_name=kernel_name,
                    # A busy machine; a kernel that died is noticed at once.
                    startup_timeout=600,
                    # A cell that trains may take days.
                    timeout=None,
                    stdout_file=log,
                    stderr_file=log,
                    on_cell_start=kernel_echo.cell_begins,
                    config=Config({"KernelManager": manager}),
                )
                client.execute(
                    env={
                        **os.environ,
                        "KIT_RUN_DIR": str(folder),
                        "KIT_HEADLESS": "1",
                        "KIT_PROFILE": plan.profile.name,
                        # The default renderer would store plotly.js, megabytes, in the notebook.
                        "PLOTLY_RENDERER": "plotly_mimetype",
                        "PYTHONUNBUFFERED": "1",
                    },
                    cwd=str(folder),
                    stdout=log,
                    stderr=log,
                )

    papermill.engines.papermill_engines.register("kit", KitEngine)
    # Parameters were checked before.
    logging.getLogger("papermill").setLevel(logging.ERROR)
    papermill.execute_notebook(
        _without_fields(plan.book),
        _without_fields(folder / plan.book.name),
        parameters=plan.values,
        engine_name="kit",
        # A notebook may name a kernel of the machine on which it was saved.
        kernel_name="python3",
        language="python",
        progress_bar=False,
        # What a killed run had is readable.
        autosave_cell_every=10,
    )


def _without_fields(path: Path) -> str:
    """A path whose braces papermill does not fill with parameters."""
    return str(path).replace("{", "{{").replace("}", "}}")


class KernelEcho:
    """What a person who waits sees of a kernel: a line per cell. Its output goes to the log."""

    def __init__(self, book: Path, echo: Echo):
        self.echo = echo
        self.begin, self.number, self.title = time.monotonic(), 0, "start"
        self.n_cells = len(parameters.code_cells(book))

    def cell_begins(self, cell: Mapping[str, Any], cell_index: int) -> None:
        """Name the cell that begins by the heading above it: code says less to whoever waits."""
        if cell["cell_type"] != "code":
            headings = re.findall(r"^#+\s*(.+)$", cell["source"], re.M)
            self.title = (headings or [self.title])[0].strip()
        # papermill's own cell of parameters is none of the notebook's
        elif "injected-parameters" not in cell["metadata"].get("tags", ()):
            self.number += 1
            self.echo(
                f"  [{time.monotonic() - self.begin:5.0f} s] cell {self.number} of {self.n_cells}: {self.title}"
            )


def _end_with_parent() -> None:
    """Stop this process when the sweep that started it is gone. A sweep killed with -9 tells nobody."""
    # Taken out: what this process starts has another parent to watch.
    parent = int(os.environ.pop(PARENT, "0"))

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        # An interrupt first, so that the record says how the run ended.
        os.kill(os.getpid(), signal.SIGINT)
        # So many seconds has a run to stop readably.
        time.sleep(20)
        os._exit(130)  # the kernel notices within a second and ends as well

    if parent:
        threading.Thread(target=watch, daemon=True).start()


def cells_of(
    source: Mapping[str, Sequence[Any]] | str | Path,
) -> list[dict[str, Any]]:
    """The cells of a sweep: all combinations of a grid, or the rows of a table (CSV, JSONL, JSON, Parquet).

    >>> cells_of({"seed": [0, 1], "steps": [5]})
    [{'seed': 0, 'steps': 5}, {'seed': 1, 'steps': 5}]
    """
    if isinstance(source, Mapping):
        return [
            dict(zip(source, values, strict=True))
            for values in itertools.product(*source.values())
        ]
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
    base = Path(out or paths.runs() / f"sweep-{book.stem}").expanduser().resolve()
    plans = [folders.plan(book, cell, profile=profile) for cell in cells]
    places = [base / plan.name for plan in plans]
    commands = {}
    for index, (plan, place) in enumerate(zip(plans, places, strict=True)):
        if not is_done(place):
            # A process per cell: a crash or a full GPU ends one cell and leaves the others.
            commands[index] = [
                *(sys.executable, "-m", "kit", "run", str(plan.book)),
                *("--profile", plan.profile.name, "--out", str(base)),
                # JSON keeps the text "1" and the number 1 apart on a command line.
                *(f"--set={k}={json.dumps(v)}" for k, v in plan.values.items()),
            ]
    if len(commands) < len(plans):
        echo(
            f"{len(plans) - len(commands)} of {len(plans)} cells are finished already"
        )
    ends = _on_ray(commands, address) if address else _processes(commands, jobs)
    begin = time.monotonic()
    for number, (index, code) in enumerate(ends, 1):
        words = ", ".join(f"{k}={v}" for k, v in cells[index].items())
        state = f"failed, see {places[index] / 'run.log'}" if code else "done"
        echo(
            f"[{number} of {len(commands)}, {time.monotonic() - begin:.0f} s] {words}: {state}"
        )
    frame = overview(
        [(f, folders.load(f)) for f in places if (f / folders.RECORD).is_file()]
    )
    paths.write(base / "table.csv", frame.to_csv(index=False))
    return frame


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
    processes = []

    def execute(index: int) -> tuple[int, int]:
        # A pipe that nobody reads would fill up and block the run.
        process = subprocess.Popen(
            commands[index],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=env,
        )
        processes.append(process)
        return index, process.wait()

    with ThreadPoolExecutor(max(jobs, 1)) as pool:
        try:
            waiting = [pool.submit(execute, index) for index in commands]
            for end in as_completed(waiting):
                yield end.result()
        # The sweep was stopped: no cell begins, and those that run stop readably.
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in processes:
                process.terminate()


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
