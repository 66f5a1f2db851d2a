"""How many calls may be in flight: as many as the server bears, found out while running and
remembered across batches.

The rule, per round trip (as many replies as the limit): over 10% of them 429 -> the limit is cut
once, by that share but at most by half; a few -> nothing, a lone 429 is that call's own affair; a
timed-out share over 5% -> halved; else growth, doubling at first, then by half a square root. Where
a doubling brings no more replies per second (a queueing server, which never sends a 429), the limit
goes back and stays. A call that waits for its Retry-After gives its slot back meanwhile.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter, deque


class Limiter:
    """An adaptive semaphore for one endpoint. `ceiling`: never more; `start`: the first guess
    (default: the ceiling).
    """

    def __init__(self, ceiling: int = 256, start: int | None = None):
        self.ceiling = ceiling
        self.limit = float(min(start or ceiling, ceiling))
        self.used, self.slow_start = 0, True
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._ends: Counter[str] = Counter()
        self._round = time.monotonic()
        self._rate, self._before = 0.0, self.limit
        self.cuts, self.queues = 0, False

    # -- slots -----------------------------------------------------------------
    async def acquire(self, first: bool = False) -> None:
        """Wait for a slot; `first`: before the others (a call that has waited for its
        Retry-After must not end the run late).
        """
        if self.used < int(self.limit) and not self._waiting:
            self.used += 1
            return
        future = asyncio.get_running_loop().create_future()
        (self._waiting.appendleft if first else self._waiting.append)(future)
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():  # the slot had been given: pass it on
                self.release()
            raise

    def release(self) -> None:
        """Give a slot back."""
        self.used -= 1
        self._wake()

    def _wake(self) -> None:
        while self._waiting and self.used < int(self.limit):
            future = self._waiting.popleft()
            if not future.done():
                self.used += 1
                future.set_result(None)

    # -- what the server says --------------------------------------------------
    def told(self, what: str) -> None:
        """A call came to an end: "ok", "limited" (429), "late" (its deadline). Once per round
        trip the limit is cut, kept or grows.
        """
        self._ends[what] += 1
        n = self._ends.total()
        if n < max(8, int(self.limit)):
            return
        now = time.monotonic()
        share = self._ends["limited"] / n
        late = self._ends["late"] / n
        rate = self._ends["ok"] / max(now - self._round, 1e-9)
        if share > 0.10 or late > 0.05:
            self.limit = max(
                1.0, self.limit * max(0.5, 1 - max(share, 0.5 if late > 0.05 else 0.0))
            )
            self.slow_start, self.cuts = False, self.cuts + 1
        elif self.limit < self.ceiling and (self.used >= int(self.limit) - 1 or self._waiting):
            self._grow(rate)
        self._rate = rate
        self._ends.clear()
        self._round = now
        self._wake()

    def _grow(self, rate: float) -> None:
        if (
            self.slow_start
            and self._rate
            and self.limit > self._before
            and rate < 1.15 * self._rate
        ):
            self.limit, self.slow_start = (
                self._before,
                False,
            )  # twice the calls, no more replies: the server queues
            self.queues = True
            return
        if self.queues:
            return
        self._before = self.limit
        self.limit = min(
            float(self.ceiling),
            self.limit * 2 if self.slow_start else self.limit + math.sqrt(self.limit) / 2,
        )
