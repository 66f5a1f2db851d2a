"""A large file: a minute, and memory that does not grow with the text. Run by `make test-slow`."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))


@pytest.mark.slow
def test_hundred_thousand_rows_in_a_minute():
    import bench_sources

    got = bench_sources.measure(100_000, criteria=5)
    assert got["rows"] == 100_000 and got["criteria"] == 500_000
    assert got["cpu_seconds"] < 60, got  # not met yet: 106 s measured on one 2.5 GHz core
    assert got["peak_mib"] - got["mib_before"] < 400
