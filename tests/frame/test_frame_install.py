"""The documented installs, run: make, pip, and the command that conda issues (slow)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
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
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "KIT_HOME", "KIT_RUNS")}
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


@pytest.mark.parametrize("version", ["3.11.0", "3.12.0", "3.13.0"])
def test_the_pins_resolve_against_the_index_alone(tmp_path: Path, version: str) -> None:
    """soupsieve 4 refused the 3.11.2 that Debian ships, and torch from the index wants triton
    3.7.1 where 3.9 was pinned: no install worked but on the machine that made the pins, whose pip
    also looked into a folder of wheels."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = (project["optional-dependencies"][k] for k in ("train", "server", "tune", "test"))
    wanted = tmp_path / "wanted.txt"
    wanted.write_text("\n".join([*project["dependencies"], *(x for e in extras for x in e)]))
    done(
        *(sys.executable, "-m", "pip", "install", "-q", "--dry-run", "--only-binary=:all:"),
        *("--target", str(tmp_path / "none"), "--python-version", version),
        *("-r", str(wanted), "-c", str(ROOT / "constraints.txt")),
        cwd=tmp_path,
        PIP_FIND_LINKS="",
        PIP_CONFIG_FILE=os.devnull,
    )


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that another user may write to (pytest's are closed to others)."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_a_user_who_is_not_root_installs_with_make(open_folder: Path) -> None:
    """Also what `make setup-gpu` asks for: it can be had, and fits what is installed."""
    python, switch = Path("/usr/bin/python3"), shutil.which("setpriv")
    if os.geteuid() != 0 or switch is None or not python.exists():
        pytest.skip("needs root, setpriv, and a Python that other users may run")
    folder = checkout(open_folder / "kit")
    for path in (open_folder, folder, *folder.rglob("*")):
        os.chown(path, 65534, 65534, follow_symlinks=False)
    nobody = (switch, "--reuid=65534", "--regid=65534", "--clear-groups")
    home = {"HOME": str(open_folder), "KIT_OFFLINE": "1"}
    done(*nobody, "make", "setup", f"PY={python}", cwd=folder, **home)
    own = str(folder / ".venv/bin/python")
    run = (*nobody, own, "-m", "kit", "run", "01", "--profile", "test")
    assert "done in" in done(*run, cwd=folder, **home)
    trial = ("make", "setup-gpu", f"PIP={own} -m pip install --dry-run")
    assert "unsloth-" in done(*nobody, *trial, cwd=folder, **home)


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
