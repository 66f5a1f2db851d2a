"""Shared by all tests: runs and caches of their own, no key, no network by accident, threads that wait passively."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# Workers share the cores: one thread for each is faster, and a number is the same with any count of workers.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("KIT_HEADLESS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("JUPYTER_PLATFORM_DIRS", "1")

# Deterministic, and a busy machine is no error.
settings.register_profile("kit", deadline=None, derandomize=True)
settings.load_profile("kit")

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def _own_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KIT_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("KIT_LEDGER", str(tmp_path / "default_ledger.db"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real files beside the checkout. Tests that need them are skipped where they are absent."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"the real files are not at {folder}")
    return folder
