"""One background event loop per process: it owns the clients and the limiters, so that scripts,
notebooks and trainers share them.

A notebook already runs a loop, a script runs none, a trainer brings its own; all of them hop over
to this one. Ctrl-C in the caller cancels the work here and waits until it has really ended, so that
nothing is paid behind the user's back.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import contextvars
import gc
import os
import threading
import time
import weakref
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future, wait
from typing import Any, TypeVar

from ..errors import KitError
from ..system import progress

T = TypeVar("T")

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_thread: threading.Thread | None = None
_closers: weakref.WeakSet[Any] = weakref.WeakSet()
_left: set[Future[Any]] = set()  # work that goes on though its caller was cancelled
# seconds; a Ctrl-C that comes just before a thread begins to wait is seen only when it wakes
SLICE = 0.5
EASE = 10.0  # seconds that a first Ctrl-C leaves to calls on their way; batch systems kill soon
YOUNG = 20_000  # new objects until a collection, during a run
_runs, _before = 0, gc.get_threshold()


def get() -> asyncio.AbstractEventLoop:
    """The kit's loop, started in a daemon thread at first use."""
    global _loop, _thread
    with _lock:
        if _loop is None or _loop.is_closed() or _thread is None or not _thread.is_alive():
            _loop = asyncio.new_event_loop()
            ready = threading.Event()
            _thread = threading.Thread(
                target=_serve, args=(_loop, ready), name="kit-judge-loop", daemon=True
            )
            _thread.start()
            ready.wait()
        return _loop


def _serve(loop: asyncio.AbstractEventLoop, ready: threading.Event) -> None:
    asyncio.set_event_loop(loop)
    loop.call_soon(ready.set)
    loop.run_forever()


def _forget() -> None:
    """After a fork the child has no such thread: start afresh."""
    global _loop, _thread, _lock, _runs
    _loop, _thread, _lock, _runs = None, None, threading.Lock(), 0
    _closers.clear()
    _left.clear()


def at_exit(owner: Any) -> None:
    """Await `owner.close()` on the kit's loop when the process ends; it is weakly held."""
    _closers.add(owner)


async def _close_all() -> None:
    for owner in list(_closers):
        with contextlib.suppress(Exception):
            await owner.close()


@atexit.register
def _end() -> None:
    wait(set(_left), EASE)  # its calls are paid
    if _loop is not None and _thread is not None and _thread.is_alive() and _closers:
        with contextlib.suppress(Exception):
            asyncio.run_coroutine_threadsafe(_close_all(), _loop).result(5)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


@contextlib.contextmanager
def fewer_collections() -> Iterator[None]:
    """Let the garbage collector come by less often meanwhile, and as before when the last run ends.

    Hundreds of calls in flight make thousands of objects that all die by themselves; walking them,
    and everything that torch holds, in vain again and again costs an eighth of a call's CPU.
    """
    global _runs, _before
    with _lock:
        _runs += 1
        if _runs == 1:
            _before = gc.get_threshold()
            if _before[0]:  # 0: somebody has switched it off
                gc.set_threshold(max(_before[0], YOUNG), *_before[1:])
    try:
        yield
    finally:
        with _lock:
            _runs -= 1
            if _runs == 0 and gc.get_threshold()[0] == YOUNG:
                gc.set_threshold(*_before)


def inside() -> bool:
    """True when the caller runs on the kit's loop."""
    return _thread is not None and threading.current_thread() is _thread


def _submit(work: Coroutine[Any, Any, T], done: Future[T], over: threading.Event) -> None:
    """Start `work` on the kit's loop with the caller's context variables: its result goes to
    `done`, and `over` is set when it has ended.
    """
    loop = get()
    context = contextvars.copy_context()

    def ended(task: asyncio.Task[T]) -> None:
        over.set()
        fault = None if task.cancelled() else task.exception()  # else asyncio prints it
        if task.cancelled():
            done.cancel()
        elif done.set_running_or_notify_cancel():
            done.set_exception(fault) if fault else done.set_result(task.result())

    def start() -> None:
        task = loop.create_task(work, context=context)
        task.add_done_callback(ended)
        done.add_done_callback(lambda f: f.cancelled() and loop.call_soon_threadsafe(task.cancel))

    loop.call_soon_threadsafe(start)


def run(work: Coroutine[Any, Any, T], ease: Callable[[], int] | None = None) -> T:
    """Run a coroutine on the kit's loop and wait for it; also from inside a notebook's running
    loop.

    ease : called at a first Ctrl-C: the work is to begin nothing new; how many calls are on their
        way. They are waited for, as they are paid; a second Ctrl-C drops them.
    """
    if inside():
        work.close()
        raise KitError(
            "judge() was called from the kit's own event loop",
            fix="use `await ajudge(...)` in asynchronous code",
        )
    done: Future[T] = Future()
    over = threading.Event()
    try:
        _submit(work, done, over)
        try:
            while not done.done():
                wait([done], timeout=SLICE)
            return done.result()
        except KeyboardInterrupt:
            if ease is not None and not done.done():
                _eased(done, ease)
            raise
    except BaseException:
        done.cancel()
        over.wait(10.0)  # until the work has really stopped: no task stays behind
        wait(set(_left), EASE)  # nor a call that it had begun
        raise


def _eased(done: Future[Any], ease: Callable[[], int]) -> None:
    end, left = time.monotonic() + EASE, ease()
    if left:
        progress.say(
            f"stopping: {left} calls are on their way and are paid; their replies are waited for, "
            f"{EASE:.0f} s at most (Ctrl-C once more drops them)"
        )
    while not done.done() and left and time.monotonic() < end:
        wait([done], timeout=SLICE)
        left = ease()
    wait([done], timeout=SLICE)  # the last reply is being written down


async def hop(work: Coroutine[Any, Any, T], ease: Callable[[], int] | None = None) -> T:
    """Await a coroutine that runs on the kit's loop, from any other loop.

    ease : called where the caller is cancelled; where calls are on their way, the work goes on
        until they are answered.
    """
    if inside() and ease is None:
        return await work
    done: Future[T] = Future()
    over = threading.Event()
    _submit(work, done, over)
    got = asyncio.wrap_future(done)
    try:
        return await asyncio.shield(got)
    except asyncio.CancelledError:
        if ease is not None and not done.done() and ease():
            _left.add(done)
            done.add_done_callback(_left.discard)
            got.add_done_callback(lambda f: f.cancelled() or f.exception())  # nobody waits for it
            raise
        done.cancel()
        if inside():  # which is not to be kept waiting
            raise
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.get_running_loop().run_in_executor(None, over.wait, 10.0)
        raise
