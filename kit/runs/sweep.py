"""A notebook over many settings: each cell is a process of `kit run`, here or on Ray. Finished cells are skipped."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ..errors import DataError, MissingError
from ..system import paths, settings
from . import folders
from .compare import overview
from .headless import PARENT, Echo

Command = list[str]


def cells_of(source: Mapping[str, Sequence[Any]] | str | Path) -> list[dict[str, Any]]:
    """The cells of a sweep: all combinations of a grid, or the rows of a CSV, JSONL or YAML file.

    >>> cells_of({"seed": [0, 1], "steps": [5]})
    [{'seed': 0, 'steps': 5}, {'seed': 1, 'steps': 5}]
    """
    if isinstance(source, Mapping):
        combinations = itertools.product(*source.values())
        return [dict(zip(source, values, strict=True)) for values in combinations]
    path = Path(source)
    if not path.is_file():
        raise MissingError("there is no such file of cells", where=str(path))
    if path.suffix == ".csv":
        return pd.read_csv(path).to_dict("records")
    if path.suffix == ".jsonl":
        rows = [settings.parse(line, str(path)) for line in path.read_text("utf-8").splitlines()]
    else:
        rows = settings.parse(path.read_text("utf-8"), str(path))
    if isinstance(rows, Mapping):  # a grid: each name has a list
        return cells_of(rows)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise DataError("this is no list of cells", where=str(path), fix="one mapping per cell")
    return rows


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
    """Run every cell and return the overview of the folder's runs, written to `table.csv` too.

    All cells are checked before the first one starts. The same call goes on where it stopped.
    jobs : processes at once. address : a Ray cluster ("auto", "ray://HOST:PORT") that sees the same files.
    """
    book = folders.find_notebook(notebook)
    base = Path(out).expanduser().resolve() if out else paths.runs() / f"sweep-{book.stem}"
    base.mkdir(parents=True, exist_ok=True)
    plans = [folders.plan(book, cell, profile=profile) for cell in cells]
    waiting = {i: p for i, p in enumerate(plans) if not folders.is_done(base / p.name)}
    if len(waiting) < len(plans):
        echo(f"{len(plans) - len(waiting)} of {len(plans)} cells are finished already")
    commands = {i: _command(p, base) for i, p in waiting.items()}
    ends = _on_ray(commands, address) if address else _processes(commands, jobs)
    begin = time.monotonic()
    for number, (index, code) in enumerate(ends, 1):
        state = "done" if code == 0 else f"failed, see {base / plans[index].name / 'run.log'}"
        words = ", ".join(f"{k}={v}" for k, v in cells[index].items())
        seconds = time.monotonic() - begin
        echo(f"[{number} of {len(waiting)}, {seconds:.0f} s] {words}: {state}")
    frame = overview(base)
    paths.write(base / "table.csv", frame.to_csv(index=False))
    return frame


def _command(plan: folders.Plan, base: Path) -> Command:
    sets = [f"--set={name}={json.dumps(value)}" for name, value in plan.values.items()]
    head = [sys.executable, "-m", "kit", "run", str(plan.book), "--profile", plan.profile.name]
    return [*head, "--out", str(base), *sets]


def _processes(commands: Mapping[int, Command], jobs: int) -> Iterator[tuple[int, int]]:
    """Run commands, `jobs` at once. Yields the number and the exit code of each one that ends."""
    threads = str(max(1, (os.cpu_count() or 1) // max(jobs, 1)))
    env = {"OMP_NUM_THREADS": threads, **os.environ, PARENT: str(os.getpid())}
    waiting, running = dict(commands), {}
    try:
        while waiting or running:
            while waiting and len(running) < max(jobs, 1):
                index = next(iter(waiting))
                running[index] = subprocess.Popen(
                    waiting.pop(index),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env=env,
                )
            for index in [i for i, process in running.items() if process.poll() is not None]:
                yield index, running.pop(index).returncode
            time.sleep(0.1)
    finally:  # the sweep was stopped: its cells stop readably
        for process in running.values():
            process.terminate()
        for process in running.values():
            process.wait()


def _on_ray(commands: Mapping[int, Command], address: str) -> Iterator[tuple[int, int]]:
    """The same on a Ray cluster: a task per command, as many at once as fit."""
    try:
        import ray
    except ImportError:
        raise MissingError("Ray is not installed", fix="pip install 'ray[client]'") from None

    def execute(index: int, command: Command) -> tuple[int, int]:
        process = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return index, process.returncode

    ray.init(address=address, ignore_reinit_error=True, log_to_driver=False)
    # A worker that died (a lost machine) is tried three times more by Ray itself.
    task = ray.remote(num_cpus=1, max_retries=3)(execute)
    running = [task.remote(index, command) for index, command in commands.items()]
    while running:
        ready, running = ray.wait(running)
        yield from ray.get(ready)
