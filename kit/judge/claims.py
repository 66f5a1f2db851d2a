"""Who is asking what now: two processes on one ledger share the work and pay for nothing twice.

Before a question is sent each of its keys is claimed in the ledger, and given back when the answer
is stored. Whoever finds a claim waits for the answer. A claim holds while its process lives: a
kill -9 delays nobody, and no clock can end it (a laptop that wakes, a clock that is set). Only
where that cannot be seen - another machine or container - or where a living process has left its
claim behind, the heartbeat decides: the owner renews its claims every BEAT seconds, and a claim
that an observer, by the observer's own steady clock, has not seen renewed for LEASE seconds is
void.
"""

from __future__ import annotations

import functools
import json
import os
import socket
import sqlite3
import time
from collections.abc import Collection, Sequence
from pathlib import Path

from ..system import processes

BEAT = 20.0  # seconds between two renewals
LEASE = 300.0  # seconds without a renewal after which a claim is void
GAP = 2.0  # seconds; a longer time between two looks is the observer's own sleep, not the owner's


@functools.cache
def _machine() -> str:
    """Where process numbers mean the same: the host and its namespace of processes."""
    try:
        space = str(os.stat("/proc/self/ns/pid").st_ino)
    except OSError:
        space = "0"
    return f"{socket.gethostname()}/{space}"


def _process(pid: int) -> tuple[str, str] | None:
    """(state, start time) of a process; None when there is none; "" where it cannot be told."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError as e:
        gone = isinstance(e, FileNotFoundError) and os.path.exists("/proc/self/stat")
        return None if gone or not processes.alive(pid) else ("", "")
    fields = text.rpartition(")")[2].split()  # the name in brackets may hold anything
    return fields[0], fields[19]


@functools.lru_cache(maxsize=4)
def _owner(pid: int) -> str:
    state = _process(pid)
    return f"{pid} {state[1] if state else ''} {_machine()}"


def me() -> str:
    """This process, as it signs its claims: process number, start time, machine."""
    return _owner(os.getpid())


def life(owner: str) -> str:
    """ "dead", "alive", "stopped" (by a signal), or "unknown" (on another machine).

    >>> life(me()), life("1 0 elsewhere/0"), life("nonsense")
    ('alive', 'unknown', 'dead')
    """
    pid, _, rest = str(owner).partition(" ")  # a damaged file may hold a number
    start, _, machine = rest.partition(" ")
    if not pid.isdecimal() or not machine:
        return "dead"
    if machine != _machine():
        return "unknown"
    found = _process(int(pid))
    if found is None or found[0] in ("Z", "X") or (start and found[1] and found[1] != start):
        return "dead"
    return "stopped" if found[0] in ("T", "t") else "alive"


class Claims:
    """The claims in one ledger as this process sees them; used inside the ledger's lock."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[str, int, float, float]] = {}  # owner, beat, quiet, looked

    def watched(self, keys: Sequence[str]) -> bool:
        """Whether one of these was found in other hands before."""
        return bool(self._seen) and any(k in self._seen for k in keys)

    def others(self, db: sqlite3.Connection, keys: Sequence[str]) -> set[str]:
        """Those of the keys that somebody else holds."""
        rows = _rows(db, keys)
        for key in self._seen.keys() & set(keys).difference(row[0] for row in rows):
            del self._seen[key]
        theirs = [row for row in rows if row[1] != me()]
        states = {owner: life(owner) for owner in {row[1] for row in theirs}}
        return {key for key, owner, beat in theirs if self._holds(key, owner, beat, states[owner])}

    def _holds(self, key: str, owner: str, beat: int, state: str) -> bool:
        if state == "dead":
            return False
        now = time.monotonic()
        old = self._seen.get(key)
        quiet = 0.0
        if old is not None and old[:2] == (owner, beat) and state != "stopped":
            quiet = old[2] + min(now - old[3], GAP)
        self._seen[key] = (owner, beat, quiet, now)
        return state == "stopped" or quiet < LEASE

    def take(self, db: sqlite3.Connection, keys: Collection[str]) -> None:
        """Claim these keys."""
        for key in keys if self._seen else ():
            self._seen.pop(key, None)
        db.executemany("INSERT OR REPLACE INTO claims VALUES(?,?,0)", [(k, me()) for k in keys])


def renew(db: sqlite3.Connection, keys: Collection[str]) -> None:
    """Say that these are still being asked."""
    db.executemany(
        "UPDATE claims SET beat=beat+1 WHERE key=? AND owner=?", [(k, me()) for k in keys]
    )


def give_back(db: sqlite3.Connection, keys: Collection[str]) -> None:
    """These are answered, or given up."""
    db.executemany("DELETE FROM claims WHERE key=? AND owner=?", [(k, me()) for k in keys])


def dead(db: sqlite3.Connection) -> list[str]:
    """The owners of claims whose processes are dead."""
    owners = db.execute("SELECT DISTINCT owner FROM claims").fetchall()
    return [owner for (owner,) in owners if life(owner) == "dead"]


def _rows(db: sqlite3.Connection, keys: Sequence[str]) -> list[tuple[str, str, int]]:
    if db.execute("SELECT 1 FROM claims LIMIT 1").fetchone() is None:
        return []
    return db.execute(
        "SELECT key, owner, beat FROM claims WHERE key IN (SELECT value FROM json_each(?))",
        (json.dumps(list(keys)),),
    ).fetchall()
