"""The wheel holds all that the kit needs: it works in an empty environment, away from the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

import kit
from kit.system import paths

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder)]
    subprocess.run([*command, str(paths.ROOT)], check=True)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def run(wheel, tmp_path_factory):
    """Runs a command of the installed wheel. The packages that it depends on are those of the tests."""
    folder = tmp_path_factory.mktemp("installed")
    environment = folder / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    python = environment / "bin" / "python"
    place = next(environment.glob("lib/python*/site-packages"))
    others = [entry for entry in sys.path if entry.endswith("site-packages")]
    (place / "others.pth").write_text("\n".join(others))
    install = ["-m", "pip", "install", "-q", "--no-deps", "--force-reinstall", str(wheel)]
    subprocess.run([python, *install], check=True)
    shared = {
        "JUPYTER_PATH": str(Path(sysconfig.get_path("data")) / "share" / "jupyter"),
        "KIT_RUNS": str(folder / "runs"),
        "KIT_PROFILE": "test",
    }

    def command(*words: str) -> str:
        result = subprocess.run(
            [environment / "bin" / "kit", *words],
            cwd=folder,
            env={**os.environ, **shared},
            capture_output=True,
            text=True,
        )
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout + result.stderr

    return command


def test_it_carries_types_data_and_notebooks(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {"kit/py.typed", "kit/_data/rubrics.json"} <= set(names)
    assert f"-{kit.__version__}-" in wheel.name
    assert sum(name.endswith(".ipynb") for name in names) == 6
    assert not [name for name in names if name.startswith("tests/")]


def test_it_explains_itself_and_the_machine(run):
    assert run("--version").strip() == f"kit {kit.__version__}"
    assert "kit" in run("check")


def test_it_runs_its_own_first_notebook(run):
    assert ".html" in run("demo", "1")
