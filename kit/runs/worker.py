"""A process that runs one cell of a sweep after the other, so that papermill is loaded once.

Each cell's kernel is a process of its own: nothing of a cell is left to the next one. A worker
that dies harms its cell only; the next cell gets a new one.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .. import runs
from ..errors import KitError
from ..system import processes, progress
from . import headless

TAIL = 1500  # characters of what was said last, kept of a cell that failed


class Worker:
    """The sweep's side: `do` gives the process a job and waits for its end.

    threads : of OpenMP, for the kernels.
    """

    def __init__(self, threads: int = 1):
        self.threads, self.closed, self._lock = threads, False, threading.Lock()
        self.process: subprocess.Popen[str] | None = None

    def do(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """Run a cell; returns fields of a Cell.

        job : the arguments of `headless.run_notebook`.
        """
        begin = time.time()
        with self._lock:  # none may start behind the back of `close`
            if not self.closed and (self.process is None or self.process.poll() is not None):
                self._start()
        line = "" if self.closed else self._ask(job)
        if not line:
            words = self._last_words()
            return {
                "status": "failed",
                "seconds": time.time() - begin,
                "tail": words,
                "reason": words.partition("\n")[0],
            }
        found = json.loads(line) | {"seconds": time.time() - begin}
        if found.get("folder"):
            run = runs.load(Path(found["folder"]))
            took = run.seconds or 0.0 if found["reused"] else found["seconds"]
            found |= {"cost": run.cost, "seconds": took}
        return found

    def _start(self) -> None:
        self._errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "kit.runs.worker"],
            env={
                **os.environ,
                "OMP_NUM_THREADS": str(self.threads),
                "OMP_WAIT_POLICY": "PASSIVE",
                "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
                processes.PARENT: str(os.getpid()),
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            start_new_session=True,  # Ctrl-C of the terminal reaches the sweep alone
        )

    def _ask(self, job: Mapping[str, Any]) -> str:
        try:
            self.process.stdin.write(json.dumps(job) + "\n")
            self.process.stdin.flush()
            return self.process.stdout.readline()
        except OSError:  # it is gone
            return ""

    def _last_words(self) -> str:
        if self.process is None:
            return ""
        code = self.process.wait()
        self._errors.seek(0)
        words = self._errors.read().decode(errors="replace")[-TAIL:]
        return f"its process ended with {code}\n{words}".strip()

    def close(self) -> None:
        """Take no more jobs; `processes.stop` ends what runs."""
        with self._lock:
            self.closed = True


@functools.cache
def kept() -> Worker:
    """The one worker of a process that itself is given cell after cell (Ray's)."""
    return Worker()


def main() -> None:
    """The other side: jobs as lines of stdin, an answer a line; ends with the sweep."""
    processes.end_with_parent()
    progress.quiet()
    with contextlib.suppress(KeyboardInterrupt), processes.stoppable():
        jobs = os.fdopen(os.dup(0))
        answers = os.fdopen(os.dup(1), "w")
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # nothing else reads jobs or writes answers
        os.dup2(2, 1)
        for line in jobs:
            answers.write(json.dumps(_answer(json.loads(line))) + "\n")
            answers.flush()


def _answer(job: Mapping[str, Any]) -> dict[str, Any]:
    said: list[str] = []
    try:
        folder, run = headless.run_notebook(**job, reuse=True, say=said.append)
    except (KitError, OSError) as e:
        return {"status": "failed", "tail": str(e)[-TAIL:], "reason": " ".join(str(e).split())}
    tail = "" if run.status == "done" else "\n".join(said)[-TAIL:]
    reused = any("finished before" in line for line in said)
    again = [line.strip() for line in said if headless.UNREADABLE in line]
    return {
        "status": run.status,
        "reused": reused,
        "tail": tail,
        "reason": " ".join((run.meta.get("error") or "; ".join(again)).split()),
        "folder": str(folder),
    }


if __name__ == "__main__":
    main()
