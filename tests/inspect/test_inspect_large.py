"""Large files: a minute for 100,000 rows, and memory that does not grow with the text. Run by `make test-slow`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(1800)  # memory and CPU time are asserted; a busy machine may wait
BENCH = Path(__file__).resolve().parents[1] / "benchmarks"
MEASURE = f"""
import json, sys
sys.path.insert(0, {str(BENCH)!r})
import bench_sources
"""


def fresh(code: str) -> dict:
    """What the code prints as JSON, run in an interpreter of its own: peak memory is that of one thing only."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURE + code],
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.mark.slow
def test_hundred_thousand_rows_in_a_minute():
    """The promise is a minute of a user's time. The scan is one process that waits for nothing but the disk, so on an idle machine that time
    is its CPU time, and CPU time is what is asserted: on a busy machine the clock also counts what others do. (A neighbour on the same
    physical core makes CPU time longer too, by half as seen here, never shorter: the test is strict there.) Where the machine is idle at
    the start, the clock is asserted as well, so that a scan which sleeps or waits is caught.
    """
    idle = os.getloadavg()[0] < 0.5
    got = fresh("print(json.dumps(bench_sources.measure(100_000, criteria=5)))")
    assert got["rows"] == 100_000 and got["criteria"] == 500_000
    assert got["cpu_seconds"] < 60, got
    assert got["children_cpu_seconds"] == 0, got  # no time is hidden in other processes
    assert not idle or got["seconds"] < 60, got
    assert got["peak_mib"] < 400, got


@pytest.mark.slow
@pytest.mark.parametrize(("what", "most"), [("read", 16), ("inspect", 80)])
@pytest.mark.parametrize("array", [False, True])
def test_memory_does_not_grow_with_the_file(what, most, array):
    """90 MB against 6 MB: reading keeps 20 bytes a row (ids), a scan also hashes and tables that end at a fixed size (most of the 80 MiB)."""
    small, large = (
        fresh(f"print(json.dumps(bench_sources.memory({n}, what={what!r}, array={array})))")
        for n in (6_000, 90_000)
    )
    assert large["megabytes"] > 14 * small["megabytes"] > 80
    assert large["rows"] == 90_000 and large["peak_mib"] - small["peak_mib"] < most, (small, large)
