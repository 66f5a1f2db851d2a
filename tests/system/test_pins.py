"""The pins of constraints.txt fit together on every Python that the kit supports."""

from __future__ import annotations

import subprocess
import sys
import tomllib

import pytest

from kit.system import paths

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13"])
def test_the_pins_resolve(python, tmp_path):
    project = tomllib.loads((paths.ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    needs = list(project["dependencies"])
    for extra in ("train", "server", "tune", "test"):
        needs += project["optional-dependencies"][extra]
    dry_run = [sys.executable, "-m", "pip", "install", "-q", "--dry-run", "--ignore-installed"]
    there = ["--python-version", python, "--only-binary", ":all:", "--target", str(tmp_path)]
    pins = ["-c", str(paths.ROOT / "constraints.txt")]
    result = subprocess.run([*dry_run, *there, *pins, *needs], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[-3000:]
