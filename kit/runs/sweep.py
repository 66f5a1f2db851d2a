"""Many runs of one notebook: a grid or a list of parameters, in local processes or on Ray, finished
ones skipped.

Every cell of the grid has a kernel of its own, started by one of a few warm workers (worker.py), so
one that dies harms no other and a sweep that was killed goes on where it was. All processes end
with the sweep, however it ends.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import itertools
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import runs
from ..errors import BudgetError, DataError, KitError, at
from ..settings import params, read
from ..system import packages, paths, processes
from . import headless
from .board import Board, Cell, mark_unfinished
from .compare import setting
from .worker import Worker


@dataclass(frozen=True, kw_only=True)
class SweepResult:
    """All cells of a sweep in the order of the grid.

    stopped : why it ended early ("" when it did not); interrupted : by Ctrl-C or a signal.
    """

    cells: tuple[Cell, ...]
    stopped: str = ""
    interrupted: bool = False
    seconds: float = 0.0
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def error(self) -> BaseException | None:
        """What ended it early; what was done is saved, and skipped next time."""
        if self.interrupted:
            return KeyboardInterrupt(self.stopped)
        return (
            BudgetError(
                self.stopped,
                fix="raise the cap and run the same command: finished cells are skipped",
            )
            if self.stopped
            else None
        )


def grid(axes: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """All combinations, the last axis fastest.

    >>> grid({"lr": [1, 2], "seed": [0]})
    [{'lr': 1, 'seed': 0}, {'lr': 2, 'seed': 0}]
    """
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


def read_cells(path: str | Path) -> list[dict[str, Any]]:
    """Cells from a file: JSONL or CSV rows, or YAML / JSON that is a list of rows or a dict of
    axes (a grid).
    """
    from ..data.tables import read_rows

    path = Path(path).expanduser()
    whole = path.suffix in (".yaml", ".yml", ".json")
    value = read.value(path, what="sweep file") if whole else [row for _, row in read_rows(path)]
    if isinstance(value, Mapping):
        return grid({k: v if isinstance(v, list) else [v] for k, v in value.items()})
    if not isinstance(value, list) or not all(isinstance(r, Mapping) for r in value):
        raise DataError(
            "a sweep file is a list of parameter rows, or a dict of lists", where=str(path)
        )
    return [dict(r) for r in value]


def sweep(
    notebook: str | Path,
    cells: Sequence[Mapping[str, Any]],
    *,
    profile: str | None = None,
    out: str | Path | None = None,
    jobs: int | None = None,
    address: str | None = None,
    gpus: float = 0.0,
    retries: int = 1,
    max_cost: float | None = None,
    max_seconds: float | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> SweepResult:
    """Run every cell; all parameters and profiles are checked before the first one starts, and a
    cell that is there twice runs once.

    jobs : cells at once; default: 1 locally (the machine's threads are shared out between jobs),
    all that fit on Ray.
    address : a Ray cluster ("auto", "local", HOST:PORT or ray://HOST:PORT); Ray then places,
    retries and logs.
    max_cost (US dollars), max_seconds : no further cell starts beyond them; `stopped` of the result
    says so.
    """
    book = headless.find_notebook(str(notebook))
    if jobs is not None and jobs < 1:
        raise KitError(f"{jobs} jobs at once cannot run", where="jobs", fix="give 1 or more")
    checked = check(book, cells, profile, say)
    if not any(".finish(" in params.source(c) for c in params.load(book)["cells"]):
        say("  note: the notebook records no metrics (run.finish() in its last cell does)")
    base = headless.folder_of(out) or paths.runs() / f"sweep-{book.stem}"
    base.mkdir(parents=True, exist_ok=True)
    board = Board(base, [Cell(params=c) for c in checked], say=say)
    runner = _on_ray(address, gpus, retries, jobs, say) if address else _locally(jobs or 1)
    queue = Queue(book, checked, profile, base)
    stopped, interrupt, stop = "", "", threading.Event()
    starts: dict[int, float] = {}

    def started(index: int) -> None:
        starts[index] = time.monotonic()
        board.change(index, status="running")
        say(f"[{index + 1}/{len(checked)}] starts: {text(checked[index])}")

    results = runner(queue, stop, started)
    try:
        with processes.stoppable(), contextlib.closing(results):
            for index, fields in results:
                if "folder" not in fields:  # its process died, or Ray's
                    fields |= queue.ended(index, "failed", fields["reason"])
                cell = board.change(index, **fields)
                before = " (finished before)" if cell.reused else ""
                say(
                    f"[{index + 1}/{len(checked)}] {cell.status}{before} in {cell.seconds:.0f} s: "
                    f"{text(checked[index])}  ({board.progress()})"
                )
                stopped = _stop_reason(board.ended(), board.began, max_cost, max_seconds)
                if stopped:
                    stop.set()
    except KeyboardInterrupt as e:
        interrupt = str(e) or "Ctrl-C"
        say(f"stopped by {interrupt}; what was done is in {base / 'table.csv'}")
    finally:
        stop.set()
        open_ = [i for i, c in enumerate(board.cells) if c.status == "running"]
        reason = interrupt or stopped or "an error of the sweep"
        for i in open_:
            fields = queue.ended(i, "stopped", reason)
            board.change(i, seconds=time.monotonic() - starts[i], **fields)
        board.write()  # the interrupt may have come while a change was being written
    every = tuple(board.cells)
    counts = {s: sum(c.status == s for c in every) for s in dict.fromkeys(c.status for c in every)}
    early = len(board.ended()) < len(checked)
    return SweepResult(
        cells=every,
        stopped=(interrupt or stopped) if early else "",
        interrupted=bool(interrupt),
        seconds=time.monotonic() - board.began,
        counts=counts,
    )


@dataclass
class Queue:
    """Cells that wait for a process. One that another sweep runs just now is passed over while
    others are left, so that two sweeps into one folder share the work.
    """

    book: Path
    cells: Sequence[Mapping[str, Any]]
    profile: str | None
    base: Path

    def __post_init__(self) -> None:
        self.waiting = list(range(len(self.cells)))
        self.keys: dict[int, str] = {}

    def __bool__(self) -> bool:
        return bool(self.waiting)

    def next(self) -> int:
        """The first cell that nobody runs, else the first."""
        free = (i for i in self.waiting if not processes.busy(self.base, self._key(i)))
        index = next(free, self.waiting[0])
        self.waiting.remove(index)
        return index

    def job(self, index: int) -> dict[str, Any]:
        """What a worker runs: arguments of `headless.run_notebook`."""
        cell = dict(self.cells[index])
        where = {"notebook": str(self.book), "out": str(self.base)}
        return {**where, "given": cell, "profile": None if "profile" in cell else self.profile}

    def ended(self, index: int, status: str, reason: str) -> dict[str, Any]:
        """What a cell left that was stopped or lost its process, as fields of a Cell; it may just
        have been done, and another sweep may run it now.
        """
        if not processes.busy(self.base, self._key(index)):
            for folder in self.folders(index):
                said = f"stopped by {reason}" if status == "stopped" else reason
                mark_unfinished(folder, status, said)
        if done := headless.finished(self.base, self._key(index), lambda text: None):
            return {"status": "done", "folder": str(done), "cost": runs.load(done).cost}
        folder = str(next(reversed(self.folders(index)), ""))
        return {"status": status, "reason": reason, "folder": folder}

    def folders(self, index: int) -> list[Path]:
        """The run folders of a cell."""
        return sorted(self.base.glob(f"*-{self._key(index)}"))

    def _key(self, index: int) -> str:
        if index not in self.keys:
            job = self.job(index)
            _, _, digest = headless.plan(
                self.book, profile=job["profile"], seed=None, given=job["given"]
            )
            self.keys[index] = f"{self.book.stem}-{digest}"
        return self.keys[index]


def check(
    book: Path,
    cells: Sequence[Mapping[str, Any]],
    profile: str | None,
    say: Callable[[str], None] = lambda text: None,
) -> list[dict[str, Any]]:
    """The cells with their values in the declared types, each once; KitError for the first that
    cannot run.

    A cell that says a default is the same as one that leaves it out.
    """
    if not cells:
        raise DataError("the sweep has no cells", fix="give --grid NAME=A,B or a file of rows")
    out: dict[str, dict[str, Any]] = {}
    said: set[str] = set()
    for i, cell in enumerate(cells, 1):
        with at(f"cell {i} of {len(cells)}", "profile"):
            full, notes, digest = headless.plan(book, profile=profile, seed=None, given=dict(cell))
        for note in notes:
            if note not in said:
                say(f"  {note}")
            said.add(note)
        values = {k: v for k, v in full.items() if k in cell}
        if digest in out:
            say(f"  cell {i} is there before and runs once: {text(values)}")
        out.setdefault(digest, values)
    return list(out.values())


def text(cell: Mapping[str, Any]) -> str:
    """All parameters of a cell on one line."""
    return setting(cell, cell)


def _stop_reason(done: Any, begin: float, max_cost: float | None, max_seconds: float | None) -> str:
    cost = sum(c.cost for c in done if not c.reused)
    if max_cost is not None and cost >= max_cost:
        return f"the cost cap of ${max_cost:g} was reached (${cost:.4f} spent)"
    if max_seconds is not None and time.monotonic() - begin >= max_seconds:
        return f"the time cap of {max_seconds:g} s was reached"
    return ""


Runner = Callable[
    [Queue, threading.Event, Callable[[int], None]],
    Iterator[tuple[int, dict[str, Any]]],
]


def _locally(jobs: int) -> Runner:
    threads = max(1, (os.cpu_count() or 1) // jobs)

    def runner(
        queue: Queue, stop: threading.Event, started: Callable[[int], None]
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        running: dict[concurrent.futures.Future[dict[str, Any]], tuple[int, Worker]] = {}
        workers = [Worker(threads) for _ in range(min(jobs, len(queue.cells)))]
        free = list(workers)
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            try:
                while queue or running:
                    while queue and free and not stop.is_set():  # looked at after every cell
                        index, worker = queue.next(), free.pop()
                        started(index)
                        running[pool.submit(worker.do, queue.job(index))] = index, worker
                    if not running:
                        return
                    ready, _ = concurrent.futures.wait(
                        running, return_when=concurrent.futures.FIRST_COMPLETED
                    )
                    for future in ready:
                        index, worker = running.pop(future)
                        free.append(worker)
                        yield index, future.result()
            finally:
                for worker in workers:
                    worker.close()
                processes.stop([w.process for w in workers if w.process])

    return runner


def _on_ray(
    address: str, gpus: float, retries: int, jobs: int | None, say: Callable[[str], None]
) -> Runner:
    try:
        import ray
    except ImportError:
        raise KitError(
            "ray is not installed", where="--address", fix=packages.extra("sweep")
        ) from None

    root = str(paths.ROOT)

    def cell(job: Mapping[str, Any]) -> dict[str, Any]:
        # a closure: Ray sends its code, so a server that has no kit can pass it on
        import sys

        sys.path[:0] = [root] if root not in sys.path else []
        from kit.runs.worker import kept

        return kept().do(job)  # Ray's processes live on, and with them the worker

    def runner(
        queue: Queue, stop: threading.Event, started: Callable[[int], None]
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        mine = not ray.is_initialized()
        if mine:
            _connect(ray, address)
        if ray.cluster_resources().get("GPU", 0.0) < gpus:
            say(
                f"  the cluster has {ray.cluster_resources().get('GPU', 0.0):g} GPUs and a "
                f"cell needs {gpus:g}: it waits until one joins (Ctrl-C stops)"
            )
        try:
            remote = ray.remote(num_cpus=1, num_gpus=gpus, max_retries=retries)(cell)
            running: dict[Any, int] = {}
            while queue or running:
                while (
                    queue
                    and len(running) < (jobs or _places(ray.cluster_resources(), gpus))
                    and not stop.is_set()
                ):
                    index = queue.next()
                    started(index)
                    running[remote.remote(queue.job(index))] = index
                if not running:
                    return
                ready, _ = ray.wait(list(running), num_returns=1)
                index = running.pop(ready[0])
                try:
                    yield index, ray.get(ready[0])
                except (
                    ray.exceptions.RayError
                ) as e:  # its worker died more often than it may be tried again
                    said = f"{type(e).__name__}: {e}"
                    yield (
                        index,
                        {
                            "status": "failed",
                            "tail": said[-1500:],
                            "reason": said.partition("\n")[0],
                        },
                    )
        finally:
            if mine:
                ray.shutdown()

    return runner


def _connect(ray: Any, address: str) -> None:
    wrong = (
        "start one with `ray start --head`, or give --address local; where the cluster asks for a "
        "token, set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN here as there"
    )
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if port.isdigit():  # Ray itself waits for minutes
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
        except OSError as e:
            raise KitError(
                f"nothing answers: {e}", where=f"--address {address}", fix=wrong
            ) from None
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address == "local":
        options["include_dashboard"] = False
    try:
        ray.init(address=address, **options)
    except (ConnectionError, RuntimeError, ValueError, ImportError) as e:
        lines = [x for x in str(e).splitlines() if x.strip()] or [type(e).__name__]
        raise KitError(
            f"no Ray answers: {' ... '.join(dict.fromkeys((lines[0], lines[-1])))}",
            where=f"--address {address}",
            fix=wrong,
        ) from None


def _places(resources: Mapping[str, float], gpus: float) -> int:
    """Cells that a cluster can run at once; at least 1, so that Ray itself says what is missing.

    >>> _places({"CPU": 16.0, "GPU": 4.0}, 1.0), _places({"CPU": 16.0}, 0.0), _places({}, 0.0)
    (4, 16, 1)
    """
    fit = [resources.get("CPU", 0.0)] + ([resources.get("GPU", 0.0) / gpus] if gpus else [])
    return max(1, int(min(fit)))
