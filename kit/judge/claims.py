"""Who is asking what at this moment: two processes on one ledger share the work instead of paying for a question twice.

Before a question is sent its key is claimed in the ledger, and given back in the transaction that stores the answer. Whoever
finds a claim waits for the answer. A claim whose process has died is void at once (on another machine after LEASE seconds), so
that a kill -9 delays nobody.
"""

from __future__ import annotations

import functools
import os
import secrets
import socket
import sqlite3
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .ledger import Ledger

LEASE = 900.0  # seconds after which a claim from another machine is void


@functools.lru_cache(maxsize=4)
def _owner(pid: int) -> str:
    return f"{pid} {secrets.token_hex(4)} {socket.gethostname()}"


def me() -> str:
    """This process, as it signs its claims: process number, a random word, machine."""
    return _owner(os.getpid())


def alive(owner: str, until: float, now: float) -> bool:
    """Whether a claim still holds.

    >>> alive(me(), 10.0, 0.0), alive(me(), 10.0, 11.0), alive("nonsense", 10.0, 0.0)
    (True, False, False)
    """
    if until < now:
        return False
    if owner == me():
        return True
    try:
        pid, _, host = owner.split(" ", 2)
        if host != socket.gethostname():
            return True
        if int(pid) == os.getpid():  # a forked parent's number, used again
            return False
        os.kill(int(pid), 0)
    except (ValueError, ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # somebody else's process, alive
        return True
    return True


def take(ledger: Ledger, keys: Sequence[str]) -> set[str]:
    """Claim these keys; those that are ours now (the others are being asked elsewhere)."""
    now, ours = time.time(), me()
    with ledger.lock:
        if len(_held(ledger.connection(), keys, ours, now)) == len(
            keys
        ):  # looked at without the write lock: whoever waits does so often
            return set()
    with ledger.transaction() as db:
        mine = set(keys) - _held(db, keys, ours, now)
        db.executemany(
            "INSERT OR REPLACE INTO claims VALUES(?,?,?)", [(k, ours, now + LEASE) for k in mine]
        )
    return mine


def _held(db: sqlite3.Connection, keys: Sequence[str], ours: str, now: float) -> set[str]:
    """Those of the keys that somebody else holds."""
    rows = db.execute(
        f"SELECT key, owner, until FROM claims WHERE key IN ({','.join('?' * len(keys))})", keys
    )
    return {key for key, owner, until in rows if owner != ours and alive(owner, until, now)}
