"""The kit's own event loop, in one daemon thread: cells, scripts and trainers share it.

One loop, because an HTTP client that two loops share fails every call.
"""

import asyncio
import contextlib
import functools
import os
import threading
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")
THREAD = "kit-loop"
_lock = threading.Lock()
# A fork while another thread starts the loop would leave the child a lock that is taken.
os.register_at_fork(
    before=_lock.acquire,
    after_in_parent=_lock.release,
    after_in_child=_lock.release,
)


def background_loop() -> asyncio.AbstractEventLoop:
    """The loop; it starts at the first use."""
    with _lock:
        return _start_thread(os.getpid())


@functools.cache
def _start_thread(process: int) -> asyncio.AbstractEventLoop:
    # The thread of a parent does not exist in a forked child, so each process has its own.
    made = asyncio.new_event_loop()
    threading.Thread(target=made.run_forever, daemon=True, name=THREAD).start()
    return made


def wait(
    coroutine: Coroutine[Any, Any, T], stop: Callable[[], None] = lambda: None
) -> T:
    """Run a coroutine on the loop from synchronous code and return its result.

    Ctrl-C calls `stop` and those of the runs in the coroutine, which forbids new calls, and
    waits for the calls in flight: they are paid. A second Ctrl-C cancels them.
    """
    # On its own thread the loop would wait for itself for ever.
    if threading.current_thread().name == THREAD:
        coroutine.close()
        raise RuntimeError(
            "code on the kit's loop needs the async form (kit.ajudge)"
        )
    future = asyncio.run_coroutine_threadsafe(coroutine, background_loop())
    try:
        return future.result()
    except KeyboardInterrupt:
        for each in (stop, *_stops):
            background_loop().call_soon_threadsafe(each)
        future.exception()
        raise
    finally:
        future.cancel()


# What stops each run that goes on inside a coroutine: Ctrl-C ends them, too.
_stops: list[Callable[[], None]] = []


async def wait_elsewhere(
    coroutine: Coroutine[Any, Any, T], stop: Callable[[], None]
) -> T:
    """The same for code on any event loop. A cancelled caller ends no call in flight."""
    future = asyncio.run_coroutine_threadsafe(coroutine, background_loop())
    _stops.append(stop)
    # Shielded, because cancelling the caller must not cancel a call that is paid.
    try:
        return await asyncio.shield(asyncio.wrap_future(future))
    except asyncio.CancelledError:
        background_loop().call_soon_threadsafe(stop)
        raise
    finally:
        _stops.remove(stop)


def close_soon(http: Any, here: asyncio.AbstractEventLoop) -> None:
    """Close connections of this loop that nobody uses any more, before the interpreter complains."""
    # A forked child has another loop, and no connections to close.
    if here is not background_loop():
        return
    future = asyncio.run_coroutine_threadsafe(http.close(), here)
    # The loop cannot wait for itself.
    if threading.current_thread().name != THREAD:
        with contextlib.suppress(TimeoutError):
            future.result(2)


async def every(coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """All results. The first error is raised when all have ended: each may be paid."""
    tasks = []
    for coroutine in coroutines:
        tasks.append(asyncio.ensure_future(coroutine))
        # Each begins to wait for its server before the next one prepares its call.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    await asyncio.gather(*tasks, return_exceptions=True)
    return [task.result() for task in tasks]
