"""A sweep's table while it runs, after Ctrl-C, and when two sweeps share a folder."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kit import runs
from kit.cli.sweep import axes
from kit.errors import KitError
from kit.records import Run, to_json
from kit.runs import headless, sweep, worker
from kit.runs.board import Board, Cell, as_csv, mark_unfinished
from kit.system import processes

BOOK = {
    "cells": [
        {
            "cell_type": "code",
            "metadata": {"tags": ["parameters"]},
            "source": ['profile = ""\n', "seed = 0\n", "amount = 1  # of it\n"],
        }
    ]
}


@pytest.fixture
def book(tmp_path: Path) -> Path:
    path = tmp_path / "99_try.ipynb"
    path.write_text(json.dumps(BOOK))
    return path


def finished(folder: Path, name: str, **metrics: Any) -> str:
    (folder / name).mkdir(parents=True)
    run = Run(id=name, notebook="99_try", profile="test", seed=0, metrics=metrics, status="done")
    runs.write_json(folder / name / "metrics.json", to_json(run))
    return str(folder / name)


def test_the_table_is_tidy_and_written_after_every_cell(tmp_path: Path) -> None:
    board = Board(tmp_path, [Cell(params={"lr": x, "seed": 0}) for x in (0.1, 0.2, 0.3)])
    gain = {"value": 0.5, "low": 0.4, "high": 0.6, "n": 20}
    board.change(0, status="done", folder=finished(tmp_path, "r0", gain=gain, steps=3), seconds=2.0)
    board.change(1, status="failed", tail="oops", reason="oops")
    rows = list(csv.DictReader((tmp_path / "table.csv").open()))
    assert [r["status"] for r in rows] == ["done", "failed", "waiting"]
    assert rows[0]["gain"] == "0.5" and rows[0]["gain low"] == "0.4" and rows[0]["steps"] == "3"
    assert rows[1]["gain"] == "" and rows[1]["lr"] == "0.2", "unknown is empty, never 0"
    assert json.loads((tmp_path / "table.json").read_text())[0]["gain high"] == 0.6
    assert "2 of 3 done, about" in board.progress() and "s left" in board.progress()


def test_a_metric_named_like_a_parameter_has_a_column_of_its_own(tmp_path: Path) -> None:
    board = Board(tmp_path, [Cell(params={"steps": 5})])
    board.change(0, status="done", folder=finished(tmp_path, "r", steps=3))
    row = json.loads((tmp_path / "table.json").read_text())[0]
    assert row["steps"] == 5 and row["metric steps"] == 3
    assert as_csv([{"a": [1, 2]}]) == 'a\n"[1, 2]"\n'


def test_no_parameter_and_no_metric_is_lost_to_another_column(tmp_path: Path) -> None:
    """Parameters named seconds and status were nowhere, a metric named schema held the table's
    number, one named seed stood where the parameter stands in other rows.
    """
    given = {"seconds": 5, "status": "mine", "x": 1}
    board = Board(tmp_path, [Cell(params=given), Cell(params={"x": 2, "steps": 4})])
    metrics = {"schema": 5, "seed": 77, "cost": 0.5, "steps": 3}
    board.change(0, status="done", folder=finished(tmp_path, "r", **metrics), seconds=2.0)
    row = json.loads((tmp_path / "table.json").read_text())[0]
    assert (row["parameter seconds"], row["seconds"]) == (5, 2.0)
    assert (row["parameter status"], row["status"]) == ("mine", "done")
    assert (row["metric schema"], row["metric seed"], row["metric cost"]) == (5, 77, 0.5)
    assert row["metric steps"] == 3 and "seed" not in row and "steps" not in row


def test_a_small_dict_has_a_column_for_each_of_its_values(tmp_path: Path) -> None:
    """`record` takes a small dict; the table left it out without a word."""
    board = Board(tmp_path, [Cell(params={"x": 1})])
    metrics = {"share": {"a": 0.5, "b": None, "c": {"value": 0.1, "low": 0.0}}, "share a": 9}
    board.change(0, status="done", folder=finished(tmp_path, "r", **metrics))
    row = json.loads((tmp_path / "table.json").read_text())[0]
    assert row["share a"] == 0.5 and row["metric share a"] == 9
    assert "share b" in row and row["share c"] == 0.1 and row["share c low"] == 0.0


def test_a_column_means_the_same_in_every_row(tmp_path: Path) -> None:
    """ "gain low" was the gain's limit in rows that recorded the gain first, else another metric."""
    gain, other = {"value": 0.5, "low": 0.4, "high": 0.6, "n": 20}, {"gain low": 7}
    each = ({"gain": gain, **other}, {**other, "gain": gain}, other)
    board = Board(tmp_path, [Cell(params={"x": i}) for i in range(len(each))])
    for i, metrics in enumerate(each):
        board.change(i, status="done", folder=finished(tmp_path, f"r{i}", **metrics))
    rows = json.loads((tmp_path / "table.json").read_text())
    assert [r["metric gain low"] for r in rows] == [7, 7, 7]
    assert [r.get("gain low") for r in rows] == [0.4, 0.4, None]


def test_a_cell_that_says_a_default_is_no_second_row(book: Path, tmp_path: Path) -> None:
    """It stood twice in the table, with one folder; so did that of an earlier sweep."""
    said: list[str] = []
    cells = [{"amount": 2}, {"amount": 2, "seed": 0}, {"amount": 2, "seed": 1}]
    assert sweep.check(book, cells, None, said.append) == [cells[0], cells[2]]
    assert "runs once" in said[0]
    folder = finished(tmp_path, "r")
    Board(tmp_path, [Cell(params=cells[1])]).change(0, status="done", folder=folder)
    Board(tmp_path, [Cell(params=cells[0])]).change(0, status="done", folder=folder)
    assert len(json.loads((tmp_path / "table.json").read_text())) == 1


def test_a_failed_cell_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table's reason was empty, while the run's own folder knew it."""
    folder = Path(finished(tmp_path, "r", gain=1.0))  # it had finished, then a last cell failed
    error = {"error": "cell 3: ValueError: boom"}
    row = {**json.loads((folder / "metrics.json").read_text()), "status": "failed", "meta": error}
    runs.write_json(folder / "config.json", row)
    monkeypatch.setattr(headless, "run_notebook", lambda **job: (folder, runs.load(folder)))
    assert worker._answer({})["reason"] == error["error"]


def test_an_infinite_metric_is_unknown_with_a_word(tmp_path: Path) -> None:
    """It became null in metrics.json, as if it had not been measured."""
    chosen = runs.profiles.resolve("test")
    session = runs.Session("99_try", out=tmp_path, profile=chosen, seed=0, params={})
    with pytest.warns(UserWarning, match="metric 'odds' is inf"):
        session.record("odds", float("inf"))
    assert session.metrics == {"odds": None}


def test_after_ctrl_c_the_table_says_what_was_done_and_what_was_stopped(
    book: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason was recorded as "stopped by " and nothing; no table, no report was left."""
    base = tmp_path / "s"
    left = base / "20260101T000000-99_try-left"

    def runner(queue: sweep.Queue, stop: Any, started: Any) -> Iterator[Any]:
        started(queue.next())
        yield 0, {"status": "done", "folder": finished(base, "r0", gain=1.0), "seconds": 1.0}
        started(queue.next())
        raise KeyboardInterrupt

    left.mkdir(parents=True)
    row = to_json(Run(id=left.name, notebook="99_try", profile="", seed=0, status="running"))
    runs.write_json(left / "config.json", row)
    monkeypatch.setattr(sweep, "_locally", lambda jobs: runner)
    monkeypatch.setattr(sweep.Queue, "folders", lambda self, index: [left])
    said: list[str] = []
    cells = sweep.grid({"amount": [1, 2, 3]})
    result = sweep.sweep(book, cells, out=base, say=said.append)
    assert result.interrupted and result.stopped == "Ctrl-C"
    assert result.counts == {"done": 1, "stopped": 1, "waiting": 1}
    rows = list(csv.DictReader((base / "table.csv").open()))
    assert [r["status"] for r in rows] == ["done", "stopped", "waiting"]
    assert rows[1]["reason"] == "Ctrl-C" and rows[0]["gain"] == "1.0"
    assert rows[1]["folder"] == left.name and result.cells[1].seconds > 0
    assert runs.load(left).status == "stopped"
    assert runs.load(left).meta["error"] == "stopped by Ctrl-C"
    assert any("table.csv" in line for line in said)


def test_a_cell_that_ended_as_ctrl_c_came_is_done(
    book: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """metrics.json said done, config.json and the table stopped: the results were thrown away."""

    def runner(queue: sweep.Queue, stop: Any, started: Any) -> Iterator[Any]:
        started(queue.next())
        folder = runs.new_folder(tmp_path, queue._key(0))
        run = Run(id=folder.name, notebook="99_try", profile="", seed=0, status="running")
        runs.write_json(folder / "config.json", to_json(run))
        done = dataclasses.replace(run, status="done", metrics={"gain": 1.5}, cost=0.25)
        runs.write_json(folder / "metrics.json", to_json(done))
        yield from ()
        raise KeyboardInterrupt

    monkeypatch.setattr(sweep, "_locally", lambda jobs: runner)
    result = sweep.sweep(book, [{"amount": 1}], out=tmp_path)
    assert result.interrupted and result.counts == {"done": 1} and result.cells[0].cost == 0.25
    (row,) = csv.DictReader((tmp_path / "table.csv").open())
    assert row["status"] == "done" and row["gain"] == "1.5" and row["reason"] == ""
    assert runs.status(tmp_path / row["folder"]) == "done"


@pytest.mark.parametrize("theirs", [False, True])
def test_a_killed_worker_leaves_a_failed_run_and_no_sockets(
    book: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, theirs: bool
) -> None:
    """The table named no folder, the run said "running", five sockets stayed. A cell that another
    sweep has taken up meanwhile is left to it.
    """
    held = contextlib.ExitStack()

    def runner(queue: sweep.Queue, stop: Any, started: Any) -> Iterator[Any]:
        started(queue.next())
        folder = runs.new_folder(tmp_path, queue._key(0))
        run = Run(id=folder.name, notebook="99_try", profile="", seed=0, status="running")
        runs.write_json(folder / "config.json", to_json(run))
        (folder / "kernel-ipc-1").touch()
        if theirs:
            held.enter_context(processes.alone(tmp_path, queue._key(0), print))
        yield 0, {"status": "failed", "reason": "its process ended with -9", "seconds": 1.0}

    monkeypatch.setattr(sweep, "_locally", lambda jobs: runner)
    with held:
        (cell,) = sweep.sweep(book, [{"amount": 1}], out=tmp_path).cells
    assert cell.status == "failed" and "-9" in cell.reason and cell.seconds == 1.0
    folder = Path(cell.folder)
    assert runs.status(folder) == ("running" if theirs else "failed")
    assert (folder / "kernel-ipc-1").exists() == theirs
    assert theirs or "-9" in runs.load(folder).meta["error"]


@pytest.mark.parametrize("said", [True, False])
def test_ctrl_c_after_the_last_word_leaves_a_done_run(
    book: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: bool
) -> None:
    """The kernel was going down: config.json said stopped beside a metrics.json that said done."""
    import papermill

    def ends(*_: Any, **__: Any) -> None:
        if said:
            run = Run(id=folder.name, notebook="99_try", profile="", seed=0)
            runs.write_json(folder / "metrics.json", to_json(run))
        raise processes.Stopped("SIGTERM")

    folder = tmp_path / "20260101T000000-99_try-x"
    monkeypatch.setattr(papermill, "execute_notebook", ends)
    with pytest.raises(KeyboardInterrupt):
        headless._execute_alone(book, folder, {}, lambda text: None)
    error = "" if said else "stopped by SIGTERM"
    assert runs.status(folder) == ("done" if said else "stopped")
    assert runs.load(folder).meta["error"] == error


def test_a_run_that_was_stopped_before_it_began_leaves_no_folder(
    book: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After kill -9 of a sweep in its first seconds two empty folders stayed for good; one that
    stays (its worker was killed, too) is used by the same run."""

    def loading(*_: Any) -> None:
        raise processes.Stopped("SIGTERM")

    monkeypatch.setattr(headless, "_execute", loading)
    with pytest.raises(KeyboardInterrupt):
        headless.run_notebook(book, profile="test", out=tmp_path / "r", reuse=True)
    assert [p.name for p in (tmp_path / "r").iterdir()] == [".locks"]
    _, _, digest = headless.plan(book, profile="test", seed=None, given={})
    left = runs.new_folder(tmp_path / "r", f"99_try-{digest}")
    used: list[Path] = []
    monkeypatch.setattr(headless, "_execute_alone", lambda b, f, *_: (used.append(f), None))
    headless.run_notebook(book, profile="test", out=tmp_path / "r", reuse=True)
    assert used == [left]


def test_a_cell_that_another_sweep_runs_is_passed_over(book: Path, tmp_path: Path) -> None:
    """Two drivers into one folder waited for each other's cells one after the other."""
    cells = sweep.grid({"amount": [1, 2]})
    queue = sweep.Queue(book, cells, None, tmp_path)
    _, _, digest = headless.plan(book, profile=None, seed=None, given=cells[0])
    held, go = threading.Event(), threading.Event()

    def hold() -> None:
        with processes.alone(tmp_path, f"99_try-{digest}", lambda text: None):
            held.set()
            go.wait(20)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(20)
    try:
        assert queue.next() == 1
        assert queue.next() == 0 and not queue
    finally:
        go.set()
        thread.join()


def test_on_a_full_disk_a_run_is_marked_failed_and_the_file_is_named(
    book: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """config.json said "running" for ever, and the message "unknown file"."""
    folder = tmp_path / "20260101T000000-99_try-full"
    folder.mkdir()
    row = to_json(Run(id=folder.name, notebook="99_try", profile="", seed=0, status="running"))
    runs.write_json(folder / "config.json", row)
    size = (folder / "config.json").stat().st_size

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(headless, "_execute", full)
    monkeypatch.setattr(runs, "write_json", full)
    with pytest.raises(OSError) as e:
        headless._execute_alone(book, folder, {}, lambda text: None)
    assert e.value.filename == str(folder) and e.value.errno == 28
    assert runs.status(folder) == "failed"
    assert (folder / "config.json").stat().st_size == size, "no room was needed"


def test_a_run_that_could_not_begin_leaves_no_folder(tmp_path: Path) -> None:
    """On a full disk every try left an empty folder."""
    (tmp_path / "r").mkdir()
    mark_unfinished(tmp_path / "r", "failed", "No space left on device")
    assert not (tmp_path / "r").exists()


def test_a_parameter_cannot_write_to_the_terminal() -> None:
    """A line end or an escape in a value broke the lines of progress."""
    shown = sweep.text({"lr": 1e-05, "word": "a\nb\x1b[2J\u2028", "name": "ü"})
    assert shown == r"lr=1e-05, word='a\nb\x1b[2J\u2028', name=ü"


def worker_book(folder: Path, body: str) -> Path:
    """A notebook whose one cell runs `body` and records a metric."""
    import nbformat

    head = nbformat.v4.new_code_cell("amount = 1", metadata={"tags": ["parameters"]})
    code = "from kit import runs\nrun = runs.start('99_work', amount=amount)\n"
    cells = [head, nbformat.v4.new_code_cell(f"{code}{body}\nrun.finish()")]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    path = folder / "99_work.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel}), path)
    return path


@pytest.mark.slow  # five kernels start
def test_one_worker_runs_cell_after_cell_and_one_that_dies_harms_its_cell_only(
    tmp_path: Path,
) -> None:
    """Each cell loaded papermill anew, in a process of its own: half of a short cell's time."""
    log = tmp_path / "log"
    kill = "import os, time\nif amount == 3: os.kill(os.getppid(), 9), time.sleep(60)\n"
    write = f"open({str(log)!r}, 'a').write(f'{{os.getppid()}} ')\nimport sys\n"
    book = worker_book(tmp_path, kill + write + "run.record('plotly', 'plotly' in sys.modules)")
    result = sweep.sweep(book, sweep.grid({"amount": [1, 2, 3, 4]}), out=tmp_path / "s")
    assert [c.status for c in result.cells] == ["done", "done", "failed", "done"]
    assert "its process ended with -9" in result.cells[2].tail
    first, second, last = log.read_text().split()
    assert first == second != last
    row = json.loads((tmp_path / "s/table.json").read_text())[0]
    assert row["plotly"] is False, "a run without figures does not load plotly"


def ended(folder: Path, key: str) -> Path:
    """A folder whose notebook ran to its end, as the runner leaves it."""
    out = folder / f"20260101T000000-{key}"
    out.mkdir(parents=True)
    run = Run(id=out.name, notebook="99_try", profile="test", seed=0, status="done")
    runs.write_json(out / "config.json", to_json(run))
    return out


def executed(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders in which a notebook runs; none does."""
    ran: list[Path] = []

    def run(book: Path, folder: Path, values: Any, say: Any) -> Run:
        ran.append(folder)
        return Run(id=folder.name, notebook=book.stem, profile="", seed=0, status="done")

    monkeypatch.setattr(headless, "_execute", run)
    return ran


def answer(book: Path, base: Path) -> dict[str, Any]:
    """What a worker says of the cell amount=1."""
    return worker._answer(
        {"notebook": str(book), "out": str(base), "given": {"amount": 1}, "profile": None}
    )


def test_a_notebook_that_records_nothing_runs_each_cell_once(
    book: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without run.finish() done cells ran again, and of two drivers each ran every cell."""
    ran, base = executed(monkeypatch), tmp_path / "s"
    _, _, digest = headless.plan(book, profile=None, seed=None, given={"amount": 1})
    old = ended(base, f"99_try-{digest}")
    found = answer(book, base)
    assert not ran and found["reused"] and found["folder"] == str(old)
    said: list[str] = []
    monkeypatch.setattr(
        sweep, "_locally", lambda jobs: lambda queue, stop, started: (x for x in ())
    )
    sweep.sweep(book, [{"amount": 1}], out=base, say=said.append)
    assert "records no metrics" in said[0]


@pytest.mark.parametrize("metrics", ['{"id": "r", "note', '{"notebook": "n", "schema": 99}'])
def test_a_run_that_cannot_be_read_is_kept_and_its_cell_runs_again(
    book: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, metrics: str
) -> None:
    """A cut metrics.json, or one of a newer kit, left the cell failed at every sweep."""
    ran, base = executed(monkeypatch), tmp_path / "s"
    _, _, digest = headless.plan(book, profile=None, seed=None, given={"amount": 1})
    old = ended(base, f"99_try-{digest}")
    (old / "metrics.json").write_text(metrics)
    found = answer(book, base)
    assert found["status"] == "done" and ran == [Path(found["folder"])] and ran != [old]
    assert str(old) in found["reason"] and (old / "metrics.json").read_text() == metrics


def test_fewer_cells_into_a_folder_keep_the_other_rows(tmp_path: Path) -> None:
    """A sweep of one cell more forgot a table of hundreds."""
    first = Board(tmp_path, [Cell(params={"lr": x}) for x in (0.1, 0.2)])
    first.change(0, status="done", folder=finished(tmp_path, "r0", gain=0.5))
    first.change(1, status="failed")
    second = Board(tmp_path, [Cell(params={"lr": x}) for x in (0.3, 0.2)])
    second.change(1, status="done", folder=finished(tmp_path, "r1", gain=0.7))
    rows = list(csv.DictReader((tmp_path / "table.csv").open()))
    assert [(r["lr"], r["status"], r["gain"]) for r in rows] == [
        ("0.3", "waiting", ""),
        ("0.2", "done", "0.7"),
        ("0.1", "done", "0.5"),
    ]
    assert (
        list(rows[0])[-1] == "schema"
        and len(json.loads((tmp_path / "sweep.json").read_text())) == 3
    )


def test_two_sweeps_of_different_grids_keep_each_others_rows(tmp_path: Path) -> None:
    """Both began before either had written: who wrote last threw the other's rows away."""
    first = Board(tmp_path, [Cell(params={"lr": x}) for x in (0.1, 0.2)])
    second = Board(tmp_path, [Cell(params={"lr": x}) for x in (0.2, 0.3)])
    first.change(0, status="done", folder=finished(tmp_path, "r0", gain=0.5))
    second.change(1, status="failed")
    first.change(1, status="running")
    second.change(0, status="done", folder=finished(tmp_path, "r1", gain=0.7), reused=True)
    rows = json.loads((tmp_path / "table.json").read_text())
    assert {r["lr"]: (r["status"], r.get("gain")) for r in rows} == {
        0.1: ("done", 0.5),
        0.2: ("done", 0.7),
        0.3: ("failed", None),
    }


def test_an_interrupt_while_the_table_is_written_leaves_no_cell_running(
    book: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C just as a cell ended: the run was done, the table said "running" for good."""
    old, write = finished(tmp_path / "s", "r0", gain=0.5), Board.write

    def one(queue: Any, stop: Any, started: Any) -> Any:
        started(queue.next())
        yield 0, {"status": "done", "folder": old}

    def interrupted(board: Board) -> None:
        if board.cells[0].status == "done":
            monkeypatch.setattr(Board, "write", write)
            raise KeyboardInterrupt
        write(board)

    monkeypatch.setattr(sweep, "_locally", lambda jobs: one)
    monkeypatch.setattr(Board, "write", interrupted)
    sweep.sweep(book, [{"amount": 1}], out=tmp_path / "s")
    (row,) = json.loads((tmp_path / "s" / "table.json").read_text())
    assert (row["status"], row["gain"]) == ("done", 0.5)


@pytest.mark.parametrize("text", ['[{"params": {"lr": 0', '{"a": 1}', '[{"odd": 1}]', "[3]"])
def test_a_cut_sweep_file_is_put_aside_and_the_sweep_goes_on(tmp_path: Path, text: str) -> None:
    """A raw JSONDecodeError, and no sweep into that folder any more."""
    (tmp_path / "sweep.json").write_text(text)
    said: list[str] = []
    Board(tmp_path, [Cell(params={"lr": 0.1})], say=said.append).write()
    assert "sweep.json is damaged" in said[0]
    assert (tmp_path / "sweep.json.damaged").read_text() == text
    assert json.loads((tmp_path / "sweep.json").read_text())[0]["params"] == {"lr": 0.1}


def test_a_spreadsheet_runs_no_text_of_the_table(tmp_path: Path) -> None:
    """A parameter `=SUM(A1)` was a formula in table.csv; JSON and numbers stay as they are."""
    Board(tmp_path, [Cell(params={"word": "=SUM(A1)", "n": -1})]).write()
    row = next(csv.DictReader((tmp_path / "table.csv").open()))
    assert row["word"] == "'=SUM(A1)" and row["n"] == "-1"
    assert json.loads((tmp_path / "table.json").read_text())[0]["word"] == "=SUM(A1)"


@pytest.mark.parametrize(
    "text", ["- {n: 1, n: 2}", "seed: [0, 1]\nseed: [2]", '[{"n": 1, "n": 2}]']
)
def test_a_key_given_twice_in_a_sweeps_file_drops_no_value(tmp_path: Path, text: str) -> None:
    """The last one counted: a third of the sweep ran, without a word."""
    path = tmp_path / ("q.json" if text.startswith("[") else "q.yaml")
    path.write_text(text)
    with pytest.raises(KitError, match="stands there twice"):
        sweep.read_cells(path)


def test_what_is_wrong_in_a_cell_is_said_in_the_users_words(book: Path) -> None:
    """ "--set takes NAME=VALUE" of a --grid, "None" of an empty cell."""
    with pytest.raises(KitError, match="--grid takes NAME=VALUE"):
        axes(["score"])
    with pytest.raises(KitError, match=r"amount = nothing \(an empty cell\) is not an int"):
        sweep.check(book, [{"amount": None}], None)
