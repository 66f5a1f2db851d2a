"""A notebook headless, once or over many settings.

Parameters are checked first. A failed or killed run goes on in its folder. Each cell of a sweep has a kernel, on this
machine or on Ray; finished cells are skipped.
"""

import itertools
import logging
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any, TextIO

import pandas as pd
import psutil
from filelock import FileLock
from msgspec.structs import replace

from ..data.files import read_rows
from ..errors import MissingError
from ..records import count_of
from ..system import paths
from . import folders
from .compare import overview
from .session import lock_of, new_record

Echo = Callable[[str], None]
# a cell of a sweep: its parameters, and the plan of its run
Cell = tuple[Mapping[str, Any], folders.Plan]


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
    base = Path(out or paths.runs()).expanduser().resolve()
    return _run_plan(plan, base, again=again, echo=echo)


def _run_plan(
    plan: folders.Plan,
    base: Path,
    *,
    again: bool = False,
    echo: Echo = lambda line: None,
    variables: Mapping[str, str] = {},
) -> Path:
    """Execute a plan in its folder. variables : of the kernel's environment, where the user sets no others."""
    folder = base / plan.name
    # Two sweeps into one folder share its cells: each cell is run by one of them, and the other waits.
    with FileLock(lock_of(folder)):
        if again:
            _remove_results(folder)
        # Asked under the lock: whoever was waited for may have finished the run.
        if folders.is_done(folder):
            echo(f"finished before: {folder}")
        else:
            _execute_notebook(plan, folder, echo, variables)
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


def _execute_notebook(
    plan: folders.Plan, folder: Path, echo: Echo, variables: Mapping[str, str]
) -> None:
    """Execute a notebook. However it ends, the record of its run says so."""
    from papermill import PapermillExecutionError

    folders.save(folder, new_record(folder, plan.book.stem, plan))
    begin, status, error = time.monotonic(), "stopped", "stopped by a signal"
    # Appended, because the lines of an earlier attempt may say why it ended.
    with open(folder / "run.log", "a", encoding="utf-8") as log:
        try:
            _run_kernel(plan, folder, log, echo, variables)
            status, error = "done", ""
        except PapermillExecutionError as e:
            status, error = "failed", f"cell {e.exec_count}: {e.ename}: {e.evalue}"
        # A kernel that was killed: what it kept is in the folder.
        except Exception as e:
            status, error = "failed", f"{type(e).__name__}: {e}"
        finally:
            # The record that the notebook wrote, or the one above where it wrote none.
            run = folders.load(folder)
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


def _run_kernel(
    plan: folders.Plan,
    folder: Path,
    log: TextIO,
    echo: Echo,
    variables: Mapping[str, str],
) -> None:
    """Execute a notebook with papermill, in a kernel whose working directory is the run's folder."""
    import papermill.engines
    from traitlets.config import Config

    # papermill's own engine passes no environment on.
    class KitEngine(papermill.engines.Engine):  # type: ignore[misc]
        @classmethod
        def execute_managed_notebook(
            cls, nb_man: Any, kernel_name: str, **_: object
        ) -> None:
            with tempfile.TemporaryDirectory(prefix="kit-") as sockets:
                client = papermill.engines.PapermillNotebookClient(
                    nb_man,
                    kernel_name=kernel_name,
                    # A busy machine; a kernel that died is noticed at once.
                    startup_timeout=600,
                    # A cell that trains may take days.
                    timeout=None,
                    stdout_file=log,
                    stderr_file=log,
                    on_cell_start=_cell_echo(nb_man.nb.cells, echo),
                    # Sockets of this user, because others can read TCP ports.
                    config=Config(
                        {
                            "KernelManager": {
                                "transport": "ipc",
                                "ip": f"{sockets}/kernel",
                            }
                        }
                    ),
                )
                client.execute(
                    env={
                        **variables,
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

    # A name of its own, because a sweep runs several at once.
    papermill.engines.papermill_engines.register(str(folder), KitEngine)
    # Parameters were checked before.
    logging.getLogger("papermill").setLevel(logging.ERROR)
    papermill.execute_notebook(
        _without_fields(plan.book),
        _without_fields(folder / plan.book.name),
        parameters=plan.values,
        engine_name=str(folder),
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


def _cell_echo(cells: Sequence[Any], echo: Echo) -> Callable[..., None]:
    """What a person who waits sees of a kernel: a line per cell. Its output goes to the log."""
    begin = time.monotonic()
    numbers = [
        index
        for index, cell in enumerate(cells)
        if cell["cell_type"] == "code"
        # papermill's own cell of parameters is none of the notebook's
        and "injected-parameters" not in cell["metadata"].get("tags", ())
    ]

    def cell_begins(cell: object, cell_index: int) -> None:
        if cell_index in numbers:
            # A cell is named by the heading above it: code says less to whoever waits.
            texts = [
                c["source"] for c in cells[:cell_index] if c["cell_type"] != "code"
            ]
            markdown = "\n".join(["# start", *texts])
            *_, title = re.findall(r"^#+ *(.+)$", markdown, re.M)
            number = numbers.index(cell_index) + 1
            echo(
                f"  [{time.monotonic() - begin:5.0f} s] cell {number} of {len(numbers)}: {title}"
            )

    return cell_begins


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
    return list(dict(read_rows(source)).values())


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
    every = [(c, folders.plan(book, c, profile=profile)) for c in cells]
    places = [base / plan.name for _, plan in every]
    waiting = [
        cell
        for cell, at in zip(every, places, strict=True)
        if not folders.is_done(at)
    ]
    if len(waiting) < len(cells):
        echo(
            f"{len(cells) - len(waiting)} of {count_of(len(cells), 'cell')} finished already"
        )
    ends = (
        _on_ray(base, waiting, address) if address else _here(base, waiting, jobs)
    )
    begin = time.monotonic()
    for number, end in enumerate(ends, 1):
        echo(
            f"[{number} of {len(waiting)}, {time.monotonic() - begin:.0f} s] {end}"
        )
    frame = overview(list(zip(places, map(folders.load, places), strict=True)))
    paths.write(base / "table.csv", frame.to_csv(index=False))
    return frame


def _run_cell(base: Path, variables: Mapping[str, str], cell: Cell) -> str:
    """Run a cell, and say how it ended. It has a kernel: a crash or a full GPU leaves the others."""
    values, plan = cell
    folder = _run_plan(plan, base, variables=variables)
    status = folders.load(folder).status
    if status != "done":
        status += f", see {folder / 'run.log'}"
    return f"{', '.join(f'{k}={v}' for k, v in values.items())}: {status}"


def _here(base: Path, cells: Sequence[Cell], jobs: int) -> Iterator[str]:
    """Execute cells on this machine, `jobs` at once. Yields how each one ended."""
    # Cells share the cores: more threads than cores make all of them slow.
    threads = max(1, (os.cpu_count() or 1) // max(jobs, 1))
    execute = partial(_run_cell, base, {"OMP_NUM_THREADS": str(threads)})
    try:
        with ThreadPool(max(jobs, 1)) as pool:
            yield from pool.imap_unordered(execute, cells)
    # The sweep was stopped: no cell begins, and the kernels of those that run end.
    finally:
        for child in psutil.Process().children():
            with suppress(psutil.Error):
                # What a notebook itself started has the notebook's own folder.
                folder = child.environ().get("KIT_RUN_DIR")
                if folder not in (None, os.environ.get("KIT_RUN_DIR")):
                    child.terminate()


def _on_ray(base: Path, cells: Sequence[Cell], address: str) -> Iterator[str]:
    """The same on a Ray cluster: a task per cell, as many at once as fit."""
    import ray

    ray.init(address=address, ignore_reinit_error=True, log_to_driver=False)
    # A worker that died (a lost machine) is tried three times more by Ray itself.
    task = ray.remote(num_cpus=1, max_retries=3)(_run_cell)
    running = [task.remote(base, {}, cell) for cell in cells]
    try:
        while running:
            ready, running = ray.wait(running)
            yield from ray.get(ready)
    except ray.exceptions.RayError as e:
        raise MissingError(
            f"the Ray cluster lost a cell: {type(e).__name__}",
            where=address,
            fix="start it again; the same command goes on",
        ) from e
