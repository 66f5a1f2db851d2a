"""The documented installs, run: make, pip, and the very command that conda issues for environment.yml (slow)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def checkout(folder: Path) -> Path:
    """A clean clone of what is committed, as a newcomer has it."""
    subprocess.run(["git", "clone", "-q", str(ROOT), str(folder)], check=True)
    return folder


def done(*command: str, cwd: Path, **env: str) -> str:
    """The output of a command that must succeed; a machine without the index skips."""
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "KIT_HOME")}
    got = subprocess.run(
        command, cwd=cwd, env={**kept, **env}, capture_output=True, text=True, check=False
    )
    if "Temporary failure in name resolution" in got.stderr:
        pytest.skip("the package index cannot be reached")
    assert got.returncode == 0, got.stdout[-2000:] + got.stderr[-3000:]
    return got.stdout + got.stderr


def runs_a_notebook(python: Path, folder: Path) -> None:
    out = done(
        *(str(python), "-m", "kit", "run", "01", "--profile", "test"), cwd=folder, KIT_OFFLINE="1"
    )
    assert "done in" in out


def megabytes(folder: Path) -> float:
    files = (p for p in folder.rglob("*") if p.is_file() and not p.is_symlink())
    return sum(p.stat().st_size for p in files) / 1e6


def test_make_setup_takes_less_than_two_gigabytes_and_works(tmp_path: Path) -> None:
    folder = checkout(tmp_path / "kit")
    done("make", "setup", f"PY={sys.executable}", cwd=folder)
    assert megabytes(folder / ".venv") < 2000
    python = folder / ".venv/bin/python"
    said = done(str(python), "-m", "kit", "check", cwd=folder)
    assert "make setup-gpu" in said and "torchao" not in said
    runs_a_notebook(python, folder)


def test_the_command_that_conda_issues(tmp_path: Path) -> None:
    """pip refused `--no-deps` in the list that conda hands it, and the pins did not resolve."""
    folder = checkout(tmp_path / "kit")
    listed = yaml.safe_load((folder / "environment.yml").read_text())["dependencies"]
    lines = next(d["pip"] for d in listed if isinstance(d, dict))
    (folder / "condaenv.txt").write_text("\n".join(lines) + "\n")
    done(sys.executable, "-m", "venv", "conda", cwd=folder)
    python = folder / "conda/bin/python"
    # conda: python -m pip install -U -r condaenv.XXXX.requirements.txt --exists-action=b
    done(
        *(str(python), "-m", "pip", "install", "-U", "-r", "condaenv.txt", "--exists-action=b"),
        cwd=folder,
    )
    done(str(python), "-m", "pip", "check", cwd=folder)
    runs_a_notebook(python, folder)


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_pip_without_the_training_extra(
    tmp_path: Path, version: str, interpreter: Callable[[str], str]
) -> None:
    """The pins have wheels for every Python that pyproject.toml promises (torch apart)."""
    folder = checkout(tmp_path / "kit")
    done(interpreter(version), "-m", "venv", "own", cwd=folder)
    python = folder / "own/bin/python"
    done(
        *(str(python), "-m", "pip", "install", "-q", "-c", "constraints.txt"),
        *("-e", ".[server,tune,test]"),
        cwd=folder,
    )
    done(str(python), "-m", "pip", "check", cwd=folder)
    runs_a_notebook(python, folder)
