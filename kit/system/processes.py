"""Processes that run notebooks: they end with whoever started them, stop readably on a signal, and
never share a run's folder.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ..errors import KitError

PARENT = "KIT_PARENT_PID"  # set by a sweep for the runs that it starts
GRACE = 20.0  # seconds between asking a process to stop and killing it


class Stopped(KeyboardInterrupt):
    """SIGTERM arrived: handled as Ctrl-C is, so that the state left behind is the same."""


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Inside, SIGTERM raises Stopped and Ctrl-C KeyboardInterrupt (in the main thread; elsewhere
    signals cannot be caught and nothing changes).
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: object) -> None:
        raise Stopped(signal.Signals(number).name)

    old = signal.signal(signal.SIGTERM, stop), signal.getsignal(signal.SIGINT)
    if callable(old[1]):  # not where it is ignored
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, old[0])
        signal.signal(signal.SIGINT, old[1])


@contextlib.contextmanager
def environment(**values: str) -> Iterator[None]:
    """Inside, these variables stand in the environment; an empty one stays as it was."""
    old = {k: os.environ.get(k) for k in values}
    os.environ.update({k: v for k, v in values.items() if v})
    try:
        yield
    finally:
        for k, v in old.items():
            os.environ.pop(k, None) if v is None else os.environ.__setitem__(k, v)


def alive(pid: int) -> bool:
    """True while a process of this machine with that id runs (whoever owns it).

    >>> alive(os.getpid()), alive(0)
    (True, False)
    """
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        pass  # another user's
    return True


def end_with_parent() -> None:
    """Stop this process when the sweep that started it is gone, however it died; does nothing for a
    run started by hand.

    A sweep that was killed with SIGKILL tells nobody: its runs would go on writing beside those of
    the next sweep.
    """
    parent = int(os.environ.pop(PARENT, "0"))
    if parent and os.name == "posix":
        threading.Thread(target=_watch, args=(parent,), daemon=True, name="kit-parent").start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE)
    os._exit(1)  # its kernel notices within a second and ends as well


def lock_file(folder: Path, name: str) -> Path:
    """Where `alone` locks. The empty file stays: without it, two waiters on a network file system
    may both hold the lock.
    """
    return folder / ".locks" / f"{name}.lock"


@contextlib.contextmanager
def alone(
    folder: Path, name: str, say: Callable[[str], None], *, busy: Exception | None = None
) -> Iterator[None]:
    """Hold the lock `name` of a folder of runs; waits, and says so, while another process of any
    user holds it. Dies with its holder.

    busy : raised instead of waiting.
    """
    from filelock import FileLock, Timeout

    path = lock_file(folder, name)
    lock = FileLock(str(path))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout:
        if busy is not None:
            raise busy from None
        say("  another process runs this now; waiting for it")
        lock.acquire()
    except NotImplementedError:  # a network file system without locks, as Lustre is often mounted
        say("  this file system has no locks: start nothing twice in this folder")
    except OSError as e:
        raise KitError(
            f"the folder cannot be written: {e.strerror}",
            where=str(folder / name),
            fix="name one that can",
        ) from e
    try:
        yield
    finally:
        lock.release()


def busy(folder: Path, name: str) -> bool:
    """True while another process holds that lock of `alone`."""
    from filelock import FileLock, Timeout

    path = lock_file(folder, name)
    if not path.exists():
        return False
    try:
        with FileLock(str(path)).acquire(timeout=0):
            return False
    except Timeout:
        return True
    except (NotImplementedError, OSError):
        return False


def stop(processes: Sequence[subprocess.Popen[str]]) -> None:
    """Ask processes to stop, and kill those that still run after GRACE seconds."""
    for p in processes:
        with contextlib.suppress(OSError):
            p.terminate()
    end = time.monotonic() + GRACE
    while any(p.poll() is None for p in processes) and time.monotonic() < end:
        time.sleep(0.1)
    for p in processes:
        with contextlib.suppress(OSError):
            p.kill()
