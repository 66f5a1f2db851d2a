"""Tests of judging: the fake server's folder is importable, and no key of the user is used."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

KEY = "zq9f0e1d2c3b4a59687/+abcdefghij"  # no form that a pattern would find


@pytest.fixture(autouse=True)
def no_keys(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("KIT_JUDGE_KEY", KEY)
