"""Tests of tuning: the fake endpoint is importable, and readings of tests go to a private folder."""

import sys
from pathlib import Path

import pytest

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[1] / "judging")]


@pytest.fixture(autouse=True)
def private_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("KIT_RUNS", str(tmp_path / "runs"))
