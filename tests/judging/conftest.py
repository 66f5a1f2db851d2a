"""Tests of judging: the helpers' folder is importable, and no key of the user is used."""

import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from judged_words import KEY

# A background shell ignores Ctrl-C, and its children would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def no_keys(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("KIT_JUDGE_KEY", KEY)


@pytest.fixture
def ledger(tmp_path):
    return tmp_path / "ledger.sqlite"
