"""The kit's own event loop, in one daemon thread: cells, scripts, papermill and trainers share it.

One loop, because an HTTP client that two loops share fails every call.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
# Questions in flight, by (ledger, key). They belong to the loop.
flights: dict[tuple[str, str], asyncio.Future[Any]] = {}


def get() -> asyncio.AbstractEventLoop:
    """The loop; it starts at the first use."""
    global _loop
    with _lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(
                target=_loop.run_forever, daemon=True, name="kit-loop"
            ).start()
        return _loop


def _forget() -> None:
    # The thread does not exist in a forked child.
    global _loop, _lock
    _loop, _lock = None, threading.Lock()
    flights.clear()


os.register_at_fork(after_in_child=_forget)


def wait(
    coroutine: Coroutine[Any, Any, Any], stop: Callable[[], None] = lambda: None
) -> Any:
    """Run a coroutine on the loop from synchronous code and return its result.

    Ctrl-C calls `stop`, which forbids new calls, and waits for the calls in flight: they are paid.
    A second Ctrl-C cancels them.
    """
    if threading.current_thread().name == "kit-loop":
        coroutine.close()
        raise RuntimeError(
            "call the async form (kit.ajudge) from code that runs on the kit's loop"
        )
    future = asyncio.run_coroutine_threadsafe(coroutine, get())
    try:
        return future.result()
    except KeyboardInterrupt:
        get().call_soon_threadsafe(stop)
        future.exception()
        raise
    finally:
        future.cancel()


async def hop(coroutine: Coroutine[Any, Any, Any], stop: Callable[[], None]) -> Any:
    """The same for code on any event loop.

    When the caller is cancelled, calls in flight end and are stored.
    """
    loop = get()
    future = asyncio.run_coroutine_threadsafe(coroutine, loop)
    # Shielded, because cancelling the caller must not cancel a call that is paid.
    try:
        return await asyncio.shield(asyncio.wrap_future(future))
    except asyncio.CancelledError:
        loop.call_soon_threadsafe(stop)
        raise
