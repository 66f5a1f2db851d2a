"""Real sweeps that are killed in the middle and go on: in local processes, and on a real Ray. No finished cell runs twice."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kit import runs

ROOT = Path(__file__).resolve().parents[2]
RAY_VENV = ROOT / "build" / "ray-venv" / "bin" / "python"
# Each cell writes a line when it starts and one when it ends; amount 2 and 4 wait, so that there is a middle to be killed in.
BODY = """import os, pathlib, time
log = pathlib.Path({log!r})
def line(text):
    with log.open("a") as f:
        f.write(text + f" {{amount}} {{seed}}\\n")
line("start")
if amount > 1 and not log.with_name("released").exists():
    time.sleep(120)
line("end")"""


def notebook(folder: Path) -> Path:
    from tests_frame_book import book

    return book(folder / "99_try.ipynb", BODY.format(log=str(folder / "log.txt")))


@pytest.fixture(autouse=True)
def _helper(monkeypatch: pytest.MonkeyPatch) -> None:
    """`book` of test_frame_headless, loaded by path: tests folders are no packages."""
    spec = importlib.util.spec_from_file_location("tests_frame_book", Path(__file__).with_name("test_frame_headless.py"))
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setitem(sys.modules, "tests_frame_book", module)


def ray_python() -> str:
    """A Python that has Ray and the kit: this one, or build/ray-venv (see the README, Ray)."""
    if importlib.util.find_spec("ray"):
        return sys.executable
    if RAY_VENV.exists():
        return str(RAY_VENV)
    pytest.skip("ray is not installed (pip install 'rubric-kit[sweep]', or an environment of its own in build/ray-venv)")


def start(python: str, folder: Path, *more: str) -> subprocess.Popen[str]:
    env = {**os.environ, "OMP_NUM_THREADS": "1", "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    line = [python, "-m", "kit", "sweep", str(folder / "99_try.ipynb"), "--profile", "test", "--grid", "amount=1,2", "--grid", "seed=0,1",
            "--out", str(folder / "s"), "--json", *more]
    return subprocess.Popen(line, env=env, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def lines(folder: Path) -> list[str]:
    path = folder / "log.txt"
    return path.read_text().splitlines() if path.exists() else []


def kill_all(process: subprocess.Popen[str], marker: str) -> None:
    """SIGKILL to the sweep and to everything that it started (found by the folder in the command line, or by its session)."""
    session = os.getsid(process.pid)
    process.kill()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if os.getsid(int(entry.name)) == session or marker in words:
                    os.kill(int(entry.name), signal.SIGKILL)
            except (OSError, ProcessLookupError):
                continue
    process.communicate()


def killed_and_continued(python: str, folder: Path, *more: str) -> dict:
    notebook(folder)
    first = start(python, folder, *more)
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline and first.poll() is None and not {"start 2 0", "end 1 0", "end 1 1"} <= set(lines(folder)):
        time.sleep(0.2)
    seen = lines(folder)
    assert {"start 2 0", "end 1 0", "end 1 1"} <= set(seen), (seen, first.poll() is not None and first.communicate())
    finished = [p for p, r in runs.find(folder / "s") if r.status == "done"]
    while len(finished) < 2 and time.monotonic() < deadline:  # the end of the notebook, then its pages
        time.sleep(0.2)
        finished = [p for p, r in runs.find(folder / "s") if r.status == "done"]
    kill_all(first, str(folder))
    assert len(finished) == 2 and not [line for line in lines(folder) if line.startswith("end 2")]
    (folder / "released").touch()
    second = start(python, folder, *more)
    out, err = second.communicate(timeout=280)
    assert second.returncode == 0, err[-3000:]
    return json.loads(out)


def check(result: dict, folder: Path) -> None:
    assert result["counts"] == {"done": 4}, result
    by = {(c["params"]["amount"], c["params"]["seed"]): c for c in result["cells"]}
    assert [by[k]["reused"] for k in (("1", "0"), ("1", "1"), ("2", "0"), ("2", "1"))] == [True, True, False, False]
    seen = lines(folder)
    assert seen.count("start 1 0") == seen.count("start 1 1") == 1, "a finished cell ran again"
    assert seen.count("end 2 0") == seen.count("end 2 1") == 1
    assert len([p for p, _ in runs.find(folder / "s")]) == 4, "the killed cell left a second folder"
    page = Path(result["report"]).read_text()
    assert "<script src" not in page and "[0.4, 0.7]" in page


@pytest.mark.slow
def test_a_killed_local_sweep_continues(tmp_path: Path) -> None:
    check(killed_and_continued(sys.executable, tmp_path, "--jobs", "1"), tmp_path)


@pytest.mark.slow
def test_a_killed_sweep_on_a_real_ray_continues(tmp_path: Path) -> None:
    check(killed_and_continued(ray_python(), tmp_path, "--address", "local", "--jobs", "1"), tmp_path)


@pytest.mark.slow
def test_ray_runs_two_cells_at_once_and_says_what_failed(tmp_path: Path) -> None:
    notebook(tmp_path)
    (tmp_path / "released").touch()
    line = start(ray_python(), tmp_path, "--address", "local", "--jobs", "2", "--grid", "fail=false,true", "--retries", "0")
    # `book` with a body of its own has no failing cell: all eight must be done
    out, err = line.communicate(timeout=290)
    assert line.returncode == 0 and json.loads(out)["counts"] == {"done": 8}, err[-2000:]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_sweep_of_notebook_03_is_killed_and_continues(tmp_path: Path) -> None:
    """2 learning rates x 2 seeds in profile `test`: killed when the first cell is done, then continued."""
    line = [sys.executable, "-m", "kit", "sweep", "03_train_grpo", "--profile", "test", "--grid", "learning_rate=1e-4,5e-4", "--grid", "seed=0,1",
            "--out", str(tmp_path / "s"), "--json", "--jobs", "1"]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    first = subprocess.Popen(line, env=env, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)

    def done() -> list[str]:
        return [p.name for p, r in runs.find(tmp_path / "s") if r.status == "done"] if (tmp_path / "s").exists() else []

    deadline = time.monotonic() + 400
    while not done() and first.poll() is None and time.monotonic() < deadline:
        time.sleep(0.3)
    kept = done()
    kill_all(first, str(tmp_path))
    assert kept
    out, err = subprocess.Popen(line, env=env, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True).communicate(timeout=480)
    result = json.loads(out)
    assert result["counts"] == {"done": 4}, err[-3000:]
    assert {Path(c["folder"]).name for c in result["cells"] if c["reused"]} == set(kept)
    assert len({c["folder"] for c in result["cells"]}) == 4
    page = Path(result["report"]).read_text()
    assert "held-out gain" in page and "<script src" not in page
