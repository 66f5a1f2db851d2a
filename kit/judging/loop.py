"""The kit's own event loop, in one daemon thread: cells, scripts and trainers share it.

One loop, because an HTTP client that two loops share fails every call.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def get() -> asyncio.AbstractEventLoop:
    """The loop; it starts at the first use."""
    global _loop
    with _lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            run = _loop.run_forever
            threading.Thread(target=run, daemon=True, name="kit-loop").start()
        return _loop


def _forget() -> None:
    # The thread does not exist in a forked child.
    global _loop, _lock
    _loop, _lock = None, threading.Lock()


os.register_at_fork(after_in_child=_forget)


def wait(
    coroutine: Coroutine[Any, Any, Any], stop: Callable[[], None] = lambda: None
) -> Any:
    """Run a coroutine on the loop from synchronous code and return its result.

    Ctrl-C calls `stop`, which forbids new calls, and waits for the calls in flight: they
    are paid. A second Ctrl-C cancels them.
    """
    # On its own thread the loop would wait for itself for ever.
    if threading.current_thread().name == "kit-loop":
        coroutine.close()
        raise RuntimeError(
            "code on the kit's loop needs the async form (kit.ajudge)"
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
    """The same for code on any event loop. A cancelled caller ends no call in flight."""
    future = asyncio.run_coroutine_threadsafe(coroutine, get())
    # Shielded, because cancelling the caller must not cancel a call that is paid.
    try:
        return await asyncio.shield(asyncio.wrap_future(future))
    except asyncio.CancelledError:
        get().call_soon_threadsafe(stop)
        raise
