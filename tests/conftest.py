"""Shared by all tests: threads that wait passively, a place for runs that is not the user's, no network by accident."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("KIT_HEADLESS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("JUPYTER_PLATFORM_DIRS", "1")

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared" / "data"


@pytest.fixture(autouse=True)
def _own_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of a test go to its own folder; OPENAI_API_KEY is never the user's."""
    monkeypatch.setenv("KIT_RUNS", str(tmp_path / "runs"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real files beside the checkout; tests that need it are skipped where it is absent."""
    if not SHARED.is_dir():
        pytest.skip(f"the real files are not at {SHARED}")
    return SHARED


@pytest.fixture(scope="session")
def interpreter() -> Callable[[str], str]:
    """Path of a working Python of a version ("3.13"): on the path, or one that pyenv keeps."""

    def find(version: str) -> str:
        kept = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}"))
        for path in [shutil.which(f"python{version}"), *map(str, kept)]:
            if path and not subprocess.run([path, "-c", ""], capture_output=True).returncode:
                return path
        pytest.skip(f"there is no Python {version} on this machine")

    return find
