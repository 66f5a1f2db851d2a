"""Formats, progress as JSON lines, the log file: what batch users watch."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

import kit
from kit import runs
from kit.__main__ import main
from kit.cli import formats
from kit.data.load import load_tasks, save_tasks
from kit.data.schemas import SCHEMAS
from kit.records import Criterion, Task
from kit.runs import headless, sweep
from kit.runs.board import Board, Cell
from kit.system import progress

TASK = Task(id="t", prompt="Hi?", criteria=(Criterion(id="c", text="x"),))


def test_the_page_of_formats_is_made_from_the_code(capsys):
    assert main(["formats"]) == 0
    text = capsys.readouterr().out
    assert set(formats.HELD) == set(SCHEMAS) and "| weight | float | 1.0 |" in text
    assert main(["formats", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert {"Grade", "Verdict"} <= {r["name"] for r in data["records"]}
    assert "rlvr" in data["readers"]


def test_our_jsonl_carries_its_number_and_a_newer_one_is_refused(tmp_path):
    path = tmp_path / "t.jsonl"
    save_tasks(path, [TASK])
    row = json.loads(path.read_text())
    assert row["schema"] == SCHEMAS["record"] and load_tasks(path).tasks == [TASK]
    path.write_text(json.dumps({**row, "schema": 99}) + "\n")
    with pytest.raises(kit.DataError, match="form 99 of record"):
        load_tasks(path).sound()


def test_a_users_own_field_named_schema_is_no_number_of_ours(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text(
        json.dumps(
            {
                "id": "t",
                "prompt": "p",
                "truth": {},
                "meta": {},
                "schema": "v2",
                "criteria": [{"id": "c", "text": "x"}],
            }
        )
        + "\n"
    )
    assert load_tasks(path, "kit").sound().tasks[0].meta["schema"] == "v2"


def test_progress_as_json_lines(capsys):
    with progress.watched("json", None, False):
        assert list(progress.bar(range(3), desc="work", unit="row", mininterval=0)) == [0, 1, 2]
    lines = [json.loads(x) for x in capsys.readouterr().err.splitlines()]
    assert lines[-1] | {"seconds": 0} == {
        "progress": "work",
        "unit": "row",
        "n": 3,
        "total": 3,
        "seconds": 0,
        "left": 0.0,
        "done": True,
    }
    assert sum(x["done"] for x in lines) == 1
    with progress.watched("none", None, False):
        assert list(progress.bar([1], desc="x")) == [1]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("kind", ["none", "json"])
def test_bars_of_libraries_stand_in_no_line_of_ours(kind):
    """`kit judge --judge local --progress json` began with "Loading weights:   0%|" of another."""
    code = (
        "from kit.system import progress\n"
        f"with progress.watched({kind!r}, None, False):\n"
        "    from tqdm import tqdm\n"
        "    list(tqdm(range(3), desc='theirs'))\n"
        "    list(progress.bar(range(3), desc='ours'))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    said = {json.loads(line)["progress"] for line in done.stderr.splitlines()}
    assert said == ({"ours"} if kind == "json" else set())


def test_what_was_stopped_is_not_done(capsys):
    """After Ctrl-C the last line said n 50 of 300 and `"done": true`."""

    def stopped(total):
        with contextlib.suppress(KeyboardInterrupt), progress.bar(total=total, desc="x") as bar:
            bar.update(1)
            raise KeyboardInterrupt

    with progress.watched("json", None, False):
        stopped(2)
        stopped(None)
    lines = [json.loads(x) for x in capsys.readouterr().err.splitlines()]
    assert lines and not any(x["done"] for x in lines)


def test_what_is_said_is_a_line_of_json_too(capsys):
    """`kit sweep` and `kit run` wrote text with --progress json."""
    board = Board(Path(), [Cell(params={}, status="done", cost=0.5), Cell(params={})])
    log = io.StringIO()
    with progress.watched("json", None, False):
        progress.say("  [1/2] starts: x=1")
        board.progress()
        headless._Tee(log, progress.say).write('{"progress": "training", "n": 1}\n')
    first, cells, kernel = map(json.loads, capsys.readouterr().err.splitlines())
    assert first == {"progress": "message", "message": "[1/2] starts: x=1"}
    assert (cells["progress"], cells["n"], cells["total"], cells["cost"]) == ("sweep", 1, 2, 0.5)
    assert cells["left"] >= 0 and not cells["done"] and kernel["progress"] == "training"
    with progress.watched("none", None, False):
        progress.say("nobody asked")
        progress.say("FAILED", always=True)
    assert capsys.readouterr().err == "FAILED\n"


def test_what_verbose_says_is_a_line_of_json_too(capsys):
    """`kit judge --verbose --progress json` wrote "judge begins" between the lines."""
    with progress.watched("json", None, True):
        logging.getLogger("kit").info("judge begins")
    assert json.loads(capsys.readouterr().err) == {"progress": "message", "message": "judge begins"}


@pytest.mark.parametrize("log", [False, True])
def test_a_warning_is_a_line_of_progress_and_stays_beside_a_log(capsys, tmp_path, log):
    """It stood as plain text between the lines; with --log-file nobody saw it any more."""
    path = str(tmp_path / "kit.log") if log else None
    with progress.watched("json", path, False):
        logging.getLogger("kit.data").warning("the last value is used")
        logging.getLogger("kit.data").info("no news")
        logging.getLogger("kit.command").error("said at the end")
    (line,) = capsys.readouterr().err.splitlines()
    assert json.loads(line)["message"] == "the last value is used"
    assert not path or len(Path(path).read_text().splitlines()) == 3


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_log_on_a_full_disk_says_so_once_and_the_command_ends_well(capsys):
    """Two raw tracebacks, and exit code 2 after all answers were judged."""
    assert main(["formats", "--log-file", "/dev/full"]) == 0
    said = capsys.readouterr().err
    assert said.count("No space left") == 1 and "/dev/full" in said and "Traceback" not in said


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_full_standard_output_is_named():
    """The message named an "unknown file"."""
    command = [sys.executable, "-m", "kit", "formats", "--json"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2 and "where: standard output" in done.stderr
    assert "Exception ignored" not in done.stderr


def test_the_log_file_tells_start_error_and_end_and_no_command_line(tmp_path):
    log = tmp_path / "kit.log"
    command = [
        "kit",
        "agree",
        "/nope.csv",
        "--judge",
        "SECRET",
        "--human",
        "h",
        "--log-file",
        str(log),
    ]
    done = subprocess.run(
        [sys.executable, "-m", *command], capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    assert [r["level"] for r in rows] == ["info", "error"] and "SECRET" not in log.read_text()
    assert rows[0]["message"] == "agree begins" and rows[0]["time"].endswith("+00:00")
    assert main(["formats", "--json", "--log-file", str(log)]) == 0
    assert json.loads(log.read_text().splitlines()[-1])["message"] == "formats ends with 0"
    assert main(["formats", "--log-file", str(tmp_path / "no" / "log")]) == 2


def test_the_log_file_holds_the_error_of_a_cell_and_of_a_full_disk(tmp_path, monkeypatch):
    """A failed cell's error stood in table.csv only, that of a full disk on stderr only."""
    log, book = tmp_path / "kit.log", tmp_path / "b.ipynb"
    cell = {"cell_type": "code", "metadata": {"tags": ["parameters"]}, "source": "seed = 0"}
    book.write_text(json.dumps({"cells": [cell]}))
    failed = Cell(params={"seed": 1}, status="failed", reason="cell 4: ValueError: boom")
    done = sweep.SweepResult(cells=(failed,), counts={"failed": 1})
    monkeypatch.setattr(sweep, "sweep", lambda *_, **__: done)
    command = ["sweep", str(book), "--grid", "seed=1", "--log-file", str(log)]
    assert main([*command, "--out", str(tmp_path / "s")]) == 1

    def full(*_, **__):
        raise OSError(28, "No space left on device", "table.csv")

    monkeypatch.setattr(sweep, "sweep", full)
    assert main([*command, "--out", str(tmp_path / "s")]) == 2
    said = [r["message"] for r in map(json.loads, log.read_text().splitlines())]
    assert "cell 4: ValueError: boom" in said[1] and said[2] == "sweep ends with 1"
    assert "No space left" in said[4] and "table.csv" in said[4]


def test_a_sweep_and_a_runs_config_carry_their_numbers_and_newer_ones_stay(tmp_path, monkeypatch):
    """They had none: a newer kit's sweep was written over, its running runs were misread."""
    board = Board(tmp_path, [Cell(params={"lr": 0.1})])
    board.write()
    for name in ("sweep.json", "table.json"):
        (row,) = json.loads((tmp_path / name).read_text())
        assert row["schema"] == SCHEMAS["sweep"]
    assert (tmp_path / "table.csv").read_text().startswith("lr,status,")
    assert "schema" in (tmp_path / "table.csv").read_text().splitlines()[0]
    kept = Board(tmp_path, [Cell(params={"lr": 0.1})])
    kept.write()
    newer = json.dumps([{**row, "schema": 99}])
    (tmp_path / "sweep.json").write_text(newer)
    with pytest.raises(kit.DataError, match="form 99 of sweep"):
        Board(tmp_path, [Cell(params={"lr": 0.1})])
    assert (tmp_path / "sweep.json").read_text() == newer
    monkeypatch.setenv("KIT_RUNS", str(tmp_path / "runs"))
    session = runs.start("99_try", profile="test")
    config = session.out / "config.json"
    config_row = json.loads(config.read_text())
    assert config_row["schema"] == SCHEMAS["run"]
    config.write_text(json.dumps({**config_row, "schema": 99}))
    with pytest.raises(kit.DataError, match="form 99 of run"):
        runs.load(session.out)
