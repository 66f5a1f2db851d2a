"""Real sweeps that are killed in the middle and go on: in local processes, and on a real Ray. No finished cell runs twice."""

from __future__ import annotations

import importlib.util
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

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
    spec = importlib.util.spec_from_file_location(
        "tests_frame_book", Path(__file__).with_name("test_frame_headless.py")
    )
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
    pytest.skip(
        "ray is not installed (pip install -e '.[sweep]' in the checkout, or an environment of its own in build/ray-venv that also sees the kit's packages)"
    )


def start(python: str, folder: Path, *more: str) -> subprocess.Popen[str]:
    env = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(ROOT),
        "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    line = [
        python,
        "-m",
        "kit",
        "sweep",
        str(folder / "99_try.ipynb"),
        "--profile",
        "test",
        "--grid",
        "amount=1,2",
        "--grid",
        "seed=0,1",
        "--out",
        str(folder / "s"),
        "--json",
        *more,
    ]
    return subprocess.Popen(
        line,
        env=env,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def lines(folder: Path) -> list[str]:
    path = folder / "log.txt"
    return path.read_text().splitlines() if path.exists() else []


def children(folder: Path) -> list[str]:
    """Command lines of processes that still work on runs in this folder: `kit run` and, by their working directory, kernels."""
    out = []
    for entry in Path("/proc").iterdir():
        try:
            words = (
                (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if entry.name.isdigit()
                else ""
            )
            if words and (
                (" kit run " in words and str(folder) in words)
                or os.readlink(entry / "cwd").startswith(str(folder / "s"))
            ):
                out.append(words[:200])
        except OSError:
            continue
    return out


def kill_driver(process: subprocess.Popen[str], folder: Path, name: int = signal.SIGKILL) -> None:
    """A signal to the sweep alone. Its runs and their kernels went on writing for minutes once, beside those of the next sweep: now they end."""
    os.kill(process.pid, name)
    process.communicate(timeout=120)
    end = time.monotonic() + 30
    while children(folder) and time.monotonic() < end:
        time.sleep(0.2)
    assert not children(folder), children(folder)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a real Ray with two CPUs on this machine, with a token of its own; stopped, with all it started, at the end.

    Without a token in the environment the user's ~/.ray would decide whether the cluster asks for one that the sweep does not send.
    """
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(16))
    ray = Path(ray_python()).with_name("ray")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    folder = tempfile.mkdtemp(
        prefix="ray"
    )  # Ray's sockets have long names: pytest's folders are too deep for them
    env = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}
    head = subprocess.Popen(
        [
            str(ray),
            "start",
            "--head",
            "--block",
            "--node-ip-address",
            "127.0.0.1",
            "--port",
            str(port),
            "--num-cpus",
            "2",
            "--include-dashboard",
            "false",
            "--temp-dir",
            folder,
        ],
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        end = time.monotonic() + 200
        while time.monotonic() < end:
            if (
                subprocess.run(
                    [str(ray), "status", "--address", f"127.0.0.1:{port}"],
                    env=env,
                    capture_output=True,
                    timeout=100,
                    check=False,
                ).returncode
                == 0
            ):
                break
            time.sleep(0.5)
        yield f"127.0.0.1:{port}"
    finally:
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and (
                    os.getsid(int(entry.name)) == head.pid
                    or folder.encode() in (entry / "cmdline").read_bytes()
                ):
                    os.kill(int(entry.name), signal.SIGKILL)
            except OSError:
                continue
        head.wait(timeout=20)
        shutil.rmtree(folder, ignore_errors=True)


def killed_and_continued(python: str, folder: Path, *more: str) -> dict:
    notebook(folder)
    first = start(python, folder, *more)
    deadline = time.monotonic() + 200
    while (
        time.monotonic() < deadline
        and first.poll() is None
        and not {"start 2 0", "end 1 0", "end 1 1"} <= set(lines(folder))
    ):
        time.sleep(0.2)
    seen = lines(folder)
    assert {"start 2 0", "end 1 0", "end 1 1"} <= set(seen), (
        seen,
        first.poll() is not None and first.communicate(),
    )
    finished = [p for p, r in runs.find(folder / "s") if r.status == "done"]
    while (
        len(finished) < 2 and time.monotonic() < deadline
    ):  # the end of the notebook, then its pages
        time.sleep(0.2)
        finished = [p for p, r in runs.find(folder / "s") if r.status == "done"]
    kill_driver(first, folder)
    assert len(finished) == 2 and not [line for line in lines(folder) if line.startswith("end 2")]
    (folder / "released").touch()
    second = start(python, folder, *more)
    out, err = second.communicate(timeout=280)
    assert second.returncode == 0, err[-3000:]
    return json.loads(out)


def check(result: dict, folder: Path) -> None:
    assert result["counts"] == {"done": 4}, result
    by = {(c["params"]["amount"], c["params"]["seed"]): c for c in result["cells"]}
    assert [by[k]["reused"] for k in ((1, 0), (1, 1), (2, 0), (2, 1))] == [True, True, False, False]
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
    check(
        killed_and_continued(ray_python(), tmp_path, "--address", "local", "--jobs", "1"), tmp_path
    )


@pytest.mark.slow
def test_ray_runs_two_cells_at_once_and_says_what_failed(tmp_path: Path) -> None:
    notebook(tmp_path)
    (tmp_path / "released").touch()
    line = start(
        ray_python(),
        tmp_path,
        "--address",
        "local",
        "--jobs",
        "2",
        "--grid",
        "fail=false,true",
        "--retries",
        "0",
    )
    # `book` with a body of its own has no failing cell: all eight must be done
    out, err = line.communicate(timeout=290)
    assert line.returncode == 0 and json.loads(out)["counts"] == {"done": 8}, err[-2000:]


def sweep_03(python: str, folder: Path, *more: str) -> subprocess.Popen[str]:
    line = [
        python,
        "-m",
        "kit",
        "sweep",
        "03_train_grpo",
        "--profile",
        "test",
        "--grid",
        "learning_rate=1e-5,5e-4",
        "--grid",
        "seed=0,1",
        "--out",
        str(folder / "s"),
        "--json",
        *more,
    ]
    env = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(ROOT),
        "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    return subprocess.Popen(
        line,
        env=env,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # ignored where pytest runs in the background


def when(folder: Path, ready: Callable[[list[Any]], bool], process: subprocess.Popen[str]) -> None:
    """Wait until the runs in the folder are as `ready` wants them."""
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        found = [r for _, r in runs.find(folder / "s")] if (folder / "s").exists() else []
        if ready(found):
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.2)
    raise AssertionError(found)


def killed_twice(python: str, folder: Path, *more: str) -> None:
    """Notebook 03, 2 learning rates x 2 seeds: killed in its second cell, stopped in its third, then finished; no finished cell runs again."""

    def kept() -> dict[str, int]:
        return {
            p.name: (p / "metrics.json").stat().st_mtime_ns
            for p, r in runs.find(folder / "s")
            if r.status == "done"
        }

    def in_the_middle_after(count: int) -> Callable[[list[Any]], bool]:
        def ready(found: list[Any]) -> bool:
            going = [folder / "s" / r.id for r in found if r.status == "running"]
            return sum(r.status == "done" for r in found) >= count and any(
                (p / "ledger.sqlite").exists() for p in going
            )

        return ready

    first = sweep_03(python, folder, *more)
    when(folder, in_the_middle_after(1), first)
    kill_driver(first, folder)
    one = kept()
    assert 1 <= len(one) <= 2
    second = sweep_03(python, folder, *more)
    when(folder, in_the_middle_after(len(one) + 1), second)
    kill_driver(second, folder, signal.SIGINT)
    assert second.returncode == 130
    two = kept()
    assert len(two) < 4 and {k: two[k] for k in one} == one, "a finished cell ran again"
    out, err = sweep_03(python, folder, *more).communicate(timeout=600)
    result = json.loads(out)
    assert result["counts"] == {"done": 4}, err[-3000:]
    assert {Path(c["folder"]).name for c in result["cells"] if c["reused"]} == set(two)
    assert {k: v for k, v in kept().items() if k in two} == two, "a finished cell ran again"
    assert len(kept()) == len(list((folder / "s").glob("*-03_train_grpo-*"))) == 4, (
        "a killed cell left a second folder"
    )
    assert {(c["params"]["learning_rate"], c["params"]["seed"]) for c in result["cells"]} == {
        (1e-5, 0),
        (1e-5, 1),
        (5e-4, 0),
        (5e-4, 1),
    }
    page = Path(result["report"]).read_text()
    assert (
        "learning_rate=1e-05, seed=1" in page
        and "Over seeds" in page
        and "in 4 clusters" in page
        and "<script src" not in page
    )
    again = json.loads(sweep_03(python, folder, *more).communicate(timeout=300)[0])
    assert all(c["reused"] for c in again["cells"]) and len(again["cells"]) == 4


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_a_sweep_of_notebook_03_is_killed_and_continues(tmp_path: Path) -> None:
    killed_twice(sys.executable, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_a_sweep_of_notebook_03_on_a_ray_cluster_is_killed_and_continues(
    tmp_path: Path, cluster: str
) -> None:
    """Two cells at once: what fits on the cluster."""
    killed_twice(ray_python(), tmp_path, "--address", cluster)


@pytest.mark.slow
def test_no_ray_at_the_address_is_said_at_once(tmp_path: Path) -> None:
    """Ray itself waited for more than two minutes and warned of GCS servers."""
    notebook(tmp_path)
    begin = time.monotonic()
    process = start(ray_python(), tmp_path, "--address", "127.0.0.1:9")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2 and "nothing answers" in err and time.monotonic() - begin < 30
