"""Tests of judging: the helpers' folder is importable, and no key of the user is used."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from judged_words import KEY


@pytest.fixture(autouse=True)
def no_keys(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("KIT_JUDGE_KEY", KEY)


@pytest.fixture
def ledger(tmp_path):
    return tmp_path / "ledger.sqlite"
