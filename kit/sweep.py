"""Many runs of one notebook: a grid or a list of parameters, in local processes or on Ray, finished ones skipped.

Every cell of the grid is `python -m kit run ... --reuse` in a process of its own, so one that dies harms no other
and a sweep that was killed goes on where it was.
"""

from __future__ import annotations

import concurrent.futures
import itertools
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import headless, params, paths, runs
from .errors import BudgetError, DataError, KitError


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One cell of the grid: its parameters and, once done, its folder, status and cost."""

    params: Mapping[str, Any]
    folder: str = ""
    status: str = "waiting"
    seconds: float = 0.0
    cost: float = 0.0
    reused: bool = False
    tail: str = ""


@dataclass(frozen=True, kw_only=True)
class SweepResult:
    """All cells of a sweep in the order of the grid; `stopped` says why it ended early ("" when it did not)."""

    cells: tuple[Cell, ...]
    stopped: str = ""
    seconds: float = 0.0
    counts: Mapping[str, int] = field(default_factory=dict)


def grid(axes: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """All combinations, the last axis fastest.

    >>> grid({"lr": [1, 2], "seed": [0]})
    [{'lr': 1, 'seed': 0}, {'lr': 2, 'seed': 0}]
    """
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


def read_cells(path: str | Path) -> list[dict[str, Any]]:
    """Cells from a file: JSONL or CSV rows, or YAML / JSON that is a list of rows or a dict of axes (a grid)."""
    path = Path(path).expanduser()
    if path.suffix in (".yaml", ".yml"):
        import yaml

        try:
            value = yaml.safe_load(path.read_text(encoding="utf-8"))
        except yaml.YAMLError as e:
            raise DataError(f"broken YAML: {e}", where=str(path)) from None
        if isinstance(value, Mapping):
            return grid({k: v if isinstance(v, list) else [v] for k, v in value.items()})
    elif path.suffix == ".json" and isinstance(value := json.loads(path.read_text(encoding="utf-8")), Mapping):
        return grid({k: v if isinstance(v, list) else [v] for k, v in value.items()})
    else:
        from .sources.tables import read_rows

        value = [row for _, row in read_rows(path)]
    if not isinstance(value, list) or not all(isinstance(r, Mapping) for r in value):
        raise DataError("a sweep file is a list of parameter rows, or a dict of lists", where=str(path))
    return [dict(r) for r in value]


def sweep(notebook: str | Path, cells: Sequence[Mapping[str, Any]], *, profile: str | None = None, out: str | Path | None = None,
          jobs: int = 1, address: str | None = None, gpus: float = 0.0, retries: int = 1, max_cost: float | None = None,
          max_seconds: float | None = None, say: Callable[[str], None] | None = None) -> SweepResult:
    """Run every cell; all parameters are checked before the first one starts.

    jobs : local processes at once; the machine's threads are shared out between them.
    address : a Ray cluster ("auto", "local" or ray://host:port); Ray then places, retries and logs.
    max_cost (US dollars), max_seconds : no further cell starts beyond them; BudgetError-like stop is said in `stopped`.
    """
    say = say or (lambda text: None)
    book = headless.find_notebook(str(notebook))
    if not cells:
        raise DataError("the sweep has no cells", fix="give --grid NAME=A,B or a file of rows")
    for cell in cells:
        params.check(book, dict(cell))
    base = Path(out).expanduser().resolve() if out else paths.runs() / f"sweep-{book.stem}"
    base.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    runner = _on_ray(address, gpus, retries) if address else _locally(jobs)
    done: dict[int, Cell] = {}
    stopped = ""
    command = [_command(book, cell, profile, base) for cell in cells]
    stop = threading.Event()
    try:
        for index, cell in runner(command, jobs, stop):
            done[index] = Cell(params=dict(cells[index]), **cell)
            say(f"[{len(done)}/{len(cells)}] {done[index].status}{' (reused)' if done[index].reused else ''} in {done[index].seconds:.0f} s: "
                f"{', '.join(f'{k}={v}' for k, v in cells[index].items())}")
            stopped = _stop_reason(done.values(), begin, max_cost, max_seconds)
            if stopped:
                stop.set()
    finally:
        stop.set()
    every = tuple(done.get(i, Cell(params=dict(c))) for i, c in enumerate(cells))
    counts = {s: sum(c.status == s for c in every) for s in {c.status for c in every}}
    runs.write_json(base / "sweep.json", [runs.plain(c) for c in every])
    return SweepResult(cells=every, stopped=stopped if len(done) < len(cells) else "", seconds=time.monotonic() - begin, counts=counts)


def _stop_reason(done: Any, begin: float, max_cost: float | None, max_seconds: float | None) -> str:
    cost = sum(c.cost for c in done if not c.reused)
    if max_cost is not None and cost >= max_cost:
        return f"the cost cap of ${max_cost:g} was reached (${cost:.4f} spent)"
    if max_seconds is not None and time.monotonic() - begin >= max_seconds:
        return f"the time cap of {max_seconds:g} s was reached"
    return ""


def _command(book: Path, cell: Mapping[str, Any], profile: str | None, base: Path) -> list[str]:
    given = {k: v for k, v in cell.items() if k not in ("profile", "seed")}
    line = [sys.executable, "-m", "kit", "run", str(book), "--out", str(base), "--reuse", "--json"]
    for flag, value in (("--profile", cell.get("profile", profile)), ("--seed", cell.get("seed"))):
        line += [flag, str(value)] if value is not None else []
    for k, v in given.items():
        line += ["--set", f"{k}={v if isinstance(v, str) else json.dumps(v)}"]
    return line


def execute(command: Sequence[str], threads: int) -> dict[str, Any]:
    """One cell in a process of its own; returns Cell fields. What it printed last is kept when it fails."""
    env = {**os.environ, "OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "PASSIVE", "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    begin = time.time()
    done = subprocess.run(list(command), env=env, capture_output=True, text=True, check=False)
    try:
        row = json.loads(done.stdout)
    except ValueError:
        return {"status": "failed", "seconds": time.time() - begin, "tail": (done.stderr or done.stdout)[-1500:]}
    reused = "finished before" in done.stderr
    run = runs.load(Path(row["folder"]))
    return {"status": row["status"], "folder": row["folder"], "seconds": time.time() - begin, "cost": run.cost, "reused": reused,
            "tail": "" if row["status"] == "done" else done.stderr[-1500:]}


Runner = Callable[[Sequence[Sequence[str]], int, threading.Event], Iterator[tuple[int, dict[str, Any]]]]


def _locally(jobs: int) -> Runner:
    threads = max(1, (os.cpu_count() or 1) // max(1, jobs))

    def runner(commands: Sequence[Sequence[str]], jobs: int, stop: threading.Event) -> Iterator[tuple[int, dict[str, Any]]]:
        waiting = list(enumerate(commands))
        running: dict[concurrent.futures.Future[dict[str, Any]], int] = {}
        with concurrent.futures.ThreadPoolExecutor(max(1, jobs)) as pool:
            while waiting or running:
                while waiting and len(running) < max(1, jobs) and not stop.is_set():  # looked at after every finished cell
                    index, command = waiting.pop(0)
                    running[pool.submit(execute, command, threads)] = index
                if not running:
                    return
                ready, _ = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
                for future in ready:
                    yield running.pop(future), future.result()

    return runner


def _on_ray(address: str, gpus: float, retries: int) -> Runner:
    try:
        import ray
    except ImportError:
        raise KitError("ray is not installed", where="--address", fix="pip install 'rubric-kit[sweep]'") from None

    def runner(commands: Sequence[Sequence[str]], jobs: int, stop: threading.Event) -> Iterator[tuple[int, dict[str, Any]]]:
        started = not ray.is_initialized()
        if started:
            ray.init(address=None if address == "local" else address, include_dashboard=False, log_to_driver=False, ignore_reinit_error=True)
        try:
            remote = ray.remote(num_cpus=1, num_gpus=gpus, max_retries=retries)(execute)
            waiting = list(enumerate(commands))
            running: dict[Any, int] = {}
            while waiting or running:
                while waiting and len(running) < max(1, jobs) and not stop.is_set():
                    index, command = waiting.pop(0)
                    running[remote.remote(command, 1)] = index
                if not running:
                    return
                ready, _ = ray.wait(list(running), num_returns=1)
                yield running.pop(ready[0]), ray.get(ready[0])
        finally:
            if started:
                ray.shutdown()

    return runner


def raise_if_stopped(result: SweepResult) -> None:
    """BudgetError when a cap ended the sweep early; what was done is saved and skipped next time."""
    if result.stopped:
        raise BudgetError(result.stopped, fix="raise the cap and run the same command: finished cells are skipped")
