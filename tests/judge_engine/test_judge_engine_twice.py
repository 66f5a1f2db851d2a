"""Paid once while an owner lives: several processes on one ledger, killed, stopped, with wrong clocks.

A server of this file's own counts what it was paid for, per (answer, criterion).
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter

import pytest
from judge_stub import StubServer, asked, completion, content

from kit.judge import Ledger

HERE = os.path.dirname(__file__)
HOWS = ("all", "one", 2, "repair")
WORK = """
import json, sys, time
opts = json.loads(sys.argv[1])
if opts["jump"]:  # a laptop that wakes, a clock that is set: by an hour, forth and back
    real, began = time.time, time.monotonic()
    time.time = lambda: real() + opts["jump"] * (1 if int((time.monotonic() - began) * 4) % 2 else -1)
from kit.judge import EndpointJudge, judge
from kit.judge import claims
from kit.records import Criterion, Response, Task
claims.LEASE, claims.BEAT = opts["lease"], opts["lease"] / 6
task = Task(id="t", prompt="p", criteria=tuple(Criterion(id=f"c{i}", text=f"says w{i}") for i in range(4)))
rs = [Response(task_id="t", id=f"r{i}", text=f"w{i % 3} number {i} end") for i in range(opts["n"])]
rs = rs[opts["at"]:] + rs[:opts["at"]]
how = "all" if opts["how"] == "repair" else opts["how"]
who = EndpointJudge("m", base_url=opts["url"], how=how, concurrency=opts["slots"], timeout=60)
print("go", flush=True)
got = judge(task, rs, judge=who, ledger=opts["ledger"], progress=False)
print(sum(v.known for v in got), got.spent.calls, flush=True)
"""


class Paid:
    """Replies per (answer, criterion); with `repair`, the last criterion is left out at first."""

    def __init__(self, repair=False):
        self.repair, self.paid = repair, Counter()

    def __call__(self, body, n):
        answer, rows = asked(body)
        given = rows[:-1] if self.repair and len(rows) > 1 else rows
        self.paid.update((answer, r["criterion"]) for r in given)
        return completion(content(answer, given, "response_format" in body))

    @property
    def twice(self):
        return sum(n - 1 for n in self.paid.values())


def start(stub, ledger, how, n=60, at=0, lease=300.0, jump=0.0, slots=8):
    opts = dict(url=stub.url, ledger=str(ledger), how=how, n=n, at=at, lease=lease)
    opts |= {"jump": jump, "slots": slots}
    return subprocess.Popen(
        [sys.executable, "-c", WORK, json.dumps(opts)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def ended(processes, n):
    """All of them have every verdict; how many calls they made."""
    out = [p.communicate(timeout=240)[0].split() for p in processes]
    assert [o[1] for o in out] == [str(4 * n)] * len(processes)
    return sum(int(o[2]) for o in out)


def unclaimed(ledger):
    return sqlite3.connect(ledger).execute("SELECT count(*) FROM claims").fetchone()[0] == 0


def shared(tmp_path, how, processes, n):
    count, ledger = Paid(how == "repair"), tmp_path / "l.sqlite"
    with StubServer(latency=0.05, handler=count) as stub:
        ended([start(stub, ledger, how, n, at=i) for i in range(processes)], n)
    assert len(count.paid) == 4 * n and count.twice == 0
    assert len(Ledger(ledger)) == 4 * n and unclaimed(ledger)


@pytest.mark.parametrize("how", ["one", "repair"])
def test_two_processes_pay_for_nothing_twice(tmp_path, how):
    """Only a question's first key was claimed: 200-290 of 1,200 were paid twice."""
    shared(tmp_path, how, 2, 30)


@pytest.mark.slow  # twelve rounds of several processes
@pytest.mark.parametrize("processes", [1, 2, 3])
@pytest.mark.parametrize("how", HOWS)
def test_any_number_of_processes_pays_once(tmp_path, how, processes):
    shared(tmp_path, how, processes, 300)


@pytest.mark.slow  # processes that wait for each other
def test_clocks_that_jump_end_no_claim(tmp_path):
    """A wall clock 1,000 s ahead made every claim void: 1,844 of 2,000 were paid twice."""
    count, ledger = Paid(), tmp_path / "l.sqlite"
    with StubServer(latency=0.3, handler=count) as stub:
        ended([start(stub, ledger, "all", 100, jump=j) for j in (0.0, 4000.0, -4000.0)], 100)
    assert len(count.paid) == 400 and count.twice == 0


@pytest.mark.slow  # a queue that outlasts the lease: 20 s
def test_a_queue_longer_than_the_lease_is_waited_for(tmp_path):
    """Leases were never renewed: behind a server with 4 slots, 380 of 600 were paid twice."""
    count, ledger = Paid(), tmp_path / "l.sqlite"

    class Queue(StubServer):
        async def _post(self, request, raw, n):
            async with self.queued:
                return await super()._post(request, raw, n)

    with Queue(latency=0.5, handler=count, slots=4) as stub:
        ended([start(stub, ledger, "all", 60, lease=4.0, slots=64) for _ in range(2)], 60)
    assert len(count.paid) == 240 and count.twice == 0


@pytest.mark.slow  # 10 s of standing still
def test_a_stopped_owner_keeps_its_claims(tmp_path):
    count, ledger = Paid(), tmp_path / "l.sqlite"
    with StubServer(latency=1.0, handler=count) as stub:
        first = start(stub, ledger, "one", 40, lease=6.0, slots=40)
        assert first.stdout.readline() == "go\n"
        time.sleep(0.5)
        first.send_signal(signal.SIGSTOP)
        second = start(stub, ledger, "one", 40, lease=6.0, slots=40)
        time.sleep(10)
        first.send_signal(signal.SIGCONT)
        assert first.communicate(timeout=120)[0].split()[0] == "160"
        assert second.communicate(timeout=120)[0].split()[1] == "160"
    assert len(count.paid) == 160 and count.twice == 0


def kills(tmp_path, how, times, n, slots=8):
    """Two processes, one of them killed again and again; what is stored is never paid again."""
    rng, count, ledger = random.Random(5), Paid(how == "repair"), tmp_path / "l.sqlite"
    with StubServer(latency=0.05, handler=count) as stub:
        steady = start(stub, ledger, how, n, slots=slots)
        for i in range(times):
            p = start(stub, ledger, how, n, at=(i * n) // max(times, 1), slots=slots)
            assert p.stdout.readline() == "go\n"
            time.sleep(rng.uniform(0.05, 0.4))
            p.send_signal(signal.SIGKILL)
            p.wait()
        assert steady.communicate(timeout=240)[0].split()[1] == str(4 * n)
    assert len(Ledger(ledger)) == len(count.paid) == 4 * n and unclaimed(ledger)
    per_call = {"all": 4, "one": 1, 2: 2, "repair": 4}[how]
    assert count.twice <= times * slots * per_call  # only what was on its way to a killed process


def test_a_kill_loses_only_what_was_on_its_way(tmp_path):
    kills(tmp_path, "one", 1, 30)


@pytest.mark.slow  # twenty kills
@pytest.mark.parametrize("how", HOWS)
def test_twenty_kills_lose_only_what_was_on_its_way(tmp_path, how):
    kills(tmp_path, how, 20, 800 if how == "all" else 300)
