"""Headless runs and sweeps: parameters first, a line per cell, found again, killed and continued."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from kit import runs
from kit.errors import DataError, KitError, MissingError

FAIL_ONCE = """mark = run.path("mark")
if not mark.exists():
    mark.write_text("")
    raise ValueError("the first time")
run.keep("x", 1)"""
SLOW = """import time
run.path("began").write_text(str(__import__("os").getpid()))
if not run.path("go").exists():
    time.sleep(60)
run.keep("x", 1)"""


def kit_command(*words: str, **more) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "kit", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **more,
    )


def wait_for(condition, seconds: float = 60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.2)
    raise AssertionError("it did not happen in time")


def ends(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_a_run_is_executed_once_and_found_again(notebook, tmp_path):
    lines: list[str] = []
    book = notebook()
    folder = runs.run(book, {"steps": "3", "rate": "1e-5"}, echo=lines.append)
    record = runs.load(folder)
    assert record.status == "done" and record.params["steps"] == 3 and record.params["rate"] == 1e-5
    assert record.metrics["gain"]["low"] == 0.05 and record.profile == "test"
    assert (folder / book.name).is_file() and "run.log" in {p.name for p in folder.iterdir()}
    cells = [line for line in lines if "cell" in line]
    assert len(cells) == 4 and cells[-1].endswith("of 4: The work")
    assert lines[-1].startswith("done in")
    lines.clear()
    assert runs.run(book, {"steps": 3, "rate": 1.0e-5}, echo=lines.append) == folder
    assert lines == [f"finished before: {folder}"]


WRONG = [
    ({"stepz": 3}, "did you mean 'steps'"),
    ({"steps": "three"}, "steps = 'three'"),
    ({"steps": 1.5}, "steps = 1.5"),
    ({"steps": True}, "steps = True"),
    ({"rate": "nan"}, "not a finite number"),
    ({"profile": "laptop"}, "there is no profile 'laptop'"),
    ({"profile": 3}, "profile = 3"),
    ({"tasks_file": "nowhere.jsonl"}, "there is no such file"),
]


@pytest.mark.parametrize(("values", "words"), WRONG)
def test_nothing_starts_with_a_wrong_parameter(notebook, values, words, tmp_path):
    with pytest.raises(KitError, match=words.replace("(", r"\(")):
        runs.run(notebook(), values)
    assert not [p for p in (tmp_path / "runs").glob("*") if p.is_dir() and p.name != ".locks"]


@pytest.mark.parametrize(
    "text", ["x, y = 1, 2", "x = None", "x = 1 + len('a')", "import os", "x: int = 3"]
)
def test_a_cell_of_parameters_holds_literals_only(notebook, text):
    with pytest.raises(DataError, match="declares no parameter"):
        runs.run(notebook(parameters=f"seed = 0\n{text}\n"))


def test_a_notebook_without_parameters_or_no_notebook(tmp_path, notebook):
    book = notebook()
    whole = json.loads(book.read_text())
    whole["cells"][1]["metadata"] = {}
    book.write_text(json.dumps(whole))
    with pytest.raises(DataError, match="no cell has the tag"):
        runs.run(book)
    book.write_text("{}")
    with pytest.raises(DataError, match="not a notebook"):
        runs.run(book)
    with pytest.raises(MissingError, match="there is no notebook"):
        runs.run("99")


def test_paths_become_absolute(notebook, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.jsonl").write_text("{}")
    folder = runs.run(
        notebook(["run.keep('there', __import__('os').path.isfile(tasks_file))"]),
        {"tasks_file": "own.jsonl"},
    )
    assert runs.load(folder).metrics["there"]["value"] is True


def test_a_folder_may_have_braces_in_its_name(notebook, tmp_path):
    folder = runs.run(notebook(), out=tmp_path / "a {name}")
    assert runs.load(folder).status == "done" and folder.parent == tmp_path / "a {name}"


def test_a_failing_cell_is_named_and_the_run_goes_on_in_its_folder(notebook):
    lines: list[str] = []
    book = notebook([FAIL_ONCE])
    folder = runs.run(book, echo=lines.append)
    record = runs.load(folder)
    assert record.status == "failed" and "ValueError: the first time" in record.meta["error"]
    assert "the first time" in lines[-1] and (folder / book.name).is_file()
    assert runs.run(book) == folder and runs.load(folder).status == "done"


def test_again_starts_anew_but_pays_no_verdict_twice(notebook):
    folder = runs.run(book := notebook())
    made = ["part", "checkpoint/x/part.dbx", "training/adapter/part"]
    paid = ["ledger.db", "training/ledger.sqlite", "training/a/b.sqlite3", "training/b.sqlite-wal"]
    for name in [*made, *paid]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    runs.run(book, again=True)
    assert all((folder / name).read_text() == name for name in paid)
    assert not [
        name for name in [*made, "checkpoint", "training/adapter"] if (folder / name).exists()
    ]


@pytest.mark.slow
def test_a_dead_kernel_is_a_failed_run(notebook):
    folder = runs.run(notebook(["import os; os._exit(9)"]))
    assert runs.load(folder).status == "failed" and "Dead" in runs.load(folder).meta["error"]


def test_plain_papermill_uses_the_same_folder(notebook, tmp_path):
    book = notebook()
    folder = runs.run(book, {"steps": 4})
    (folder / "run.json").unlink()
    command = [
        sys.executable,
        "-m",
        "papermill",
        book.name,
        "out.ipynb",
        "-p",
        "steps",
        "4",
        "-p",
        "rate",
        "1.0e-3",
    ]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert runs.load(folder).metrics["steps"]["value"] == 4
    assert [f for f, _ in runs.find()] == [folder]


def test_kill_minus_9_and_continue(notebook, tmp_path):
    """The runner dies: the kernel ends, the run counts as stopped, and the same command goes on in its folder."""
    book = notebook([SLOW])
    process = kit_command("run", str(book))
    began = wait_for(lambda: next((tmp_path / "runs").glob("*/began"), None))
    kernel = int(wait_for(began.read_text))
    process.kill()
    process.wait()
    wait_for(lambda: ends(kernel), 20)
    folder = began.parent
    assert runs.load(folder).status == "stopped"
    (folder / "go").write_text("")
    assert runs.run(book) == folder and runs.load(folder).status == "done"


@pytest.mark.slow
def test_sigterm_stops_readably(notebook, tmp_path):
    process = kit_command("run", str(notebook([SLOW])))
    began = wait_for(lambda: next((tmp_path / "runs").glob("*/began"), None))
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 130 and "Traceback" not in process.stderr.read()
    assert runs.load(began.parent).status == "stopped"
    wait_for(lambda: ends(int(began.read_text())), 20)


def test_a_sweep_runs_each_cell_once(notebook, tmp_path):
    lines: list[str] = []
    book = notebook()
    cells = runs.cells_of({"seed": [0, 1], "steps": [2]})
    table = runs.sweep(book, cells, jobs=2, out=tmp_path / "sweep", echo=lines.append)
    assert table["status"].tolist() == ["done", "done"] and table["gain"].tolist() == pytest.approx(
        [0.1, 0.11]
    )
    assert (tmp_path / "sweep" / "table.csv").is_file() and len(lines) == 2
    lines.clear()
    more = runs.sweep(
        book, [*cells, {"seed": 2}], jobs=2, out=tmp_path / "sweep", echo=lines.append
    )
    assert len(more) == 3 and lines[0] == "2 of 3 cells finished already" and len(lines) == 2


@pytest.mark.slow
def test_a_stopped_sweep_ends_its_kernels(notebook, tmp_path):
    out = tmp_path / "sweep"
    words = ["--grid", "seed=0,1,2", "--jobs", "2", "--out", str(out)]
    process = kit_command("sweep", str(notebook([SLOW])), *words)
    wait_for(lambda: len([*out.glob("*/began")]) == 2, 120)
    kernels = [int(wait_for(p.read_text)) for p in out.glob("*/began")]
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 130 and "Traceback" not in process.stderr.read()
    for kernel in kernels:
        wait_for(lambda kernel=kernel: ends(kernel), 20)
    assert {record.status for _, record in runs.find(out)} <= {"stopped", "failed"}


def test_all_cells_are_checked_before_the_first_starts(notebook, tmp_path):
    with pytest.raises(DataError, match="seed = 'x'"):
        runs.sweep(notebook(), [{"seed": 0}, {"seed": "x"}], out=tmp_path / "sweep")
    assert not list((tmp_path / "sweep").glob("07*"))


@pytest.mark.slow
def test_a_failed_cell_leaves_the_others(notebook, tmp_path):
    book = notebook(["assert seed != 1", "run.keep('x', 1)"])
    table = runs.sweep(book, [{"seed": s} for s in (0, 1)], jobs=2, out=tmp_path / "sweep")
    assert table["status"].tolist() == ["done", "failed"]


@pytest.mark.parametrize("name", ["cells.csv", "cells.jsonl"])
def test_cells_of_a_file(tmp_path, name):
    path = tmp_path / name
    path.write_text(
        "seed,steps\n0,2\n1,3\n"
        if name.endswith("csv")
        else '{"seed": 0, "steps": 2}\n{"seed": 1, "steps": 3}\n'
    )
    assert [{k: int(v) for k, v in row.items()} for row in runs.cells_of(path)] == [
        {"seed": 0, "steps": 2},
        {"seed": 1, "steps": 3},
    ]


def killed_sweep(book: Path, tmp_path: Path, *more: str) -> None:
    """A sweep of 8 cells that is killed with -9: its cells end; the same command finishes the rest."""
    out = tmp_path / "sweep"
    words = ["sweep", str(book), "--grid", "seed=0,1,2,3,4,5,6,7", "--out", str(out), *more]
    process = kit_command(*words)
    wait_for(lambda: len([f for f, r in _runs(out) if r.status == "done"]) >= 2, 120)
    kernels = [int(p.read_text()) for p in out.glob("*/began")]
    process.kill()
    process.wait()
    wait_for(lambda: all(map(ends, kernels)), 60)
    before = {f.name for f, r in _runs(out) if r.status == "done"}
    again = kit_command(*words)
    table, lines = again.communicate(timeout=240)
    assert f"{len(before)} of 8 cells finished already" in lines
    assert again.returncode == 0, table + lines
    assert sum(r.status == "done" for _, r in _runs(out)) == 8 == len(_runs(out))


def _runs(folder: Path):
    return runs.find(folder) if folder.is_dir() else []


PID = "run.path('began').write_text(str(__import__('os').getpid()));import time; time.sleep(.5)"


@pytest.mark.slow
def test_a_killed_sweep_goes_on(notebook, tmp_path):
    killed_sweep(notebook([PID]), tmp_path, "--jobs", "2")


@pytest.mark.slow
def test_a_sweep_on_ray_is_killed_and_goes_on(notebook, tmp_path):
    pytest.importorskip("ray", reason="the extra `sweep` is not installed")
    killed_sweep(notebook([PID]), tmp_path, "--address", "local")
