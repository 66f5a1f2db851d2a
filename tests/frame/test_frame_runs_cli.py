"""`kit runs`: list, show, mend, remove."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from kit import runs
from kit.__main__ import main
from kit.records import Run, to_json
from kit.runs.board import Board, Cell
from kit.system import processes


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, status, pid in (("a1", "done", 0), ("b2", "running", 2**22 + 1), ("c2", "failed", 0)):
        gain = {"value": 0.5, "low": 0.4, "high": 0.6, "n": 20}
        run = Run(
            id=name,
            notebook="99_try",
            profile="test",
            seed=1,
            metrics={"gain": gain} if status == "done" else {},
            status=status,
            meta={"pid": pid},
        )
        (tmp_path / name).mkdir()
        runs.write_json(tmp_path / name / "config.json", to_json(run))
    return tmp_path


def test_list_and_show(folder: Path, capsys) -> None:
    assert main(["runs", "--folder", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "3 runs" in out and "failed" in out
    assert main(["runs", "show", "a1", "--folder", str(folder)]) == 0
    assert "gain: 0.500 [0.400, 0.600], n = 20" in capsys.readouterr().out
    assert main(["runs", "show", "2", "--folder", str(folder)]) == 2
    assert "2 runs fit" in capsys.readouterr().err
    assert main(["runs", "show", "--folder", str(folder)]) == 2


def test_trainings_that_lie_beside_the_runs_are_named(folder: Path, capsys) -> None:
    """The list said "0 runs" of a folder that held finished trainings, and nothing more."""
    for name, mark in (("rA", "settings.json"), ("facts", "chain.json")):
        (folder / name).mkdir()
        (folder / name / mark).write_text("{}", "utf-8")
    assert main(["runs", "list", "--folder", str(folder)]) == 0
    said = capsys.readouterr().out
    assert "not listed: 2 of `kit train` (facts, rA)" in said


def test_mend_marks_only_what_nobody_runs(folder: Path, capsys) -> None:
    """A killed run said "running" for ever."""
    row = json.loads((folder / "b2/config.json").read_text())
    living = {**row, "id": "d4", "meta": {"pid": os.getpid()}}
    (folder / "d4").mkdir()
    (folder / "d4/config.json").write_text(json.dumps(living))
    (folder / "b2/kernel-ipc-1").touch()  # a killed kernel's
    assert main(["runs", "mend", "--folder", str(folder)]) == 0
    assert not (folder / "b2/kernel-ipc-1").exists() and (folder / "b2").exists()
    assert "1 runs mended" in capsys.readouterr().out
    assert runs.load(folder / "b2").status == "stopped"
    assert runs.load(folder / "d4").status == "running"


def test_mend_leaves_no_cell_of_a_killed_sweep_running(folder: Path) -> None:
    """Its runs were stopped, its table said "running" for ever; not while somebody runs it."""
    row = json.loads((folder / "b2/config.json").read_text())
    runs.write_json(folder / "b2/config.json", {**row, "params": {"n": 2, "seed": 0}})
    cells = [Cell(params={"n": 1}, status="done", folder=str(folder / "a1"))]
    cells += [Cell(params={"n": n}, status="running") for n in (2, 3)]
    Board(folder, cells).write()
    with processes.alone(folder, "c2", print):
        assert main(["runs", "mend", "--folder", str(folder)]) == 0
    table = folder / "table.json"
    assert [r["status"] for r in json.loads(table.read_text())] == ["done", "running", "running"]
    assert main(["runs", "mend", "--folder", str(folder)]) == 0
    found = {r["n"]: (r["status"], r["folder"]) for r in json.loads(table.read_text())}
    assert found == {1: ("done", "a1"), 2: ("stopped", "b2"), 3: ("stopped", "")}


def test_mend_removes_what_a_killed_sweep_left(folder: Path, capsys) -> None:
    """Empty folders of runs that had not begun and a lock for each run stayed for good."""
    empty = folder / "20260101T000000-99_try-b29d00f5"
    empty.mkdir()
    with processes.alone(folder, "a1", print):
        pass
    with processes.alone(folder, "c2", print):
        assert main(["runs", "mend", "--folder", str(folder)]) == 0
        assert "1 runs mended, 1 empty folders removed" in capsys.readouterr().out
        assert not empty.exists() and (folder / ".locks/c2.lock").exists()
    assert main(["runs", "mend", "--folder", str(folder)]) == 0
    assert {p.name for p in folder.iterdir()} == {"a1", "b2", "c2"}


def test_mend_knows_a_run_that_had_written_its_metrics(folder: Path) -> None:
    """metrics.json said done and config.json stopped: its results were in no table."""
    row = json.loads((folder / "b2/config.json").read_text())
    runs.write_json(folder / "b2/metrics.json", {**row, "status": "done"})
    assert main(["runs", "mend", "--folder", str(folder)]) == 0
    assert runs.status(folder / "b2") == "done" and not runs.load(folder / "b2").meta["error"]


def test_remove_says_what_first(folder: Path, capsys) -> None:
    assert main(["runs", "remove", "c2", "--folder", str(folder)]) == 0
    assert "--yes" in capsys.readouterr().out and (folder / "c2").is_dir()
    assert main(["runs", "remove", "c2", "--folder", str(folder), "--yes"]) == 0
    assert not (folder / "c2").exists() and (folder / "a1").is_dir()


def test_a_run_that_is_going_on_is_not_removed(folder: Path, capsys) -> None:
    """`remove --yes` deleted a living run without a word, and the run then died. Of several runs
    all are removed, or none.
    """
    remove = ["runs", "remove", "a1", "c2", "--folder", str(folder), "--yes"]
    with processes.alone(folder, "c2", print):
        assert main(remove) == 2
    assert "going on" in capsys.readouterr().err and runs.load(folder / "a1")
    row = json.loads((folder / "b2/config.json").read_text())
    runs.write_json(folder / "c2/config.json", {**row, "meta": {"pid": os.getpid()}})
    assert main(remove) == 2 and runs.load(folder / "a1")


def test_an_id_given_twice_is_one_run(folder: Path, capsys) -> None:
    """The second said that there is no such run, after the first had removed it."""
    assert main(["runs", "remove", "c2", "c2", "--folder", str(folder), "--yes"]) == 0
    assert "1 runs removed" in capsys.readouterr().out
    assert not list(folder.rglob("*.lock"))


def test_a_run_is_listed_once_however_many_links_lead_to_it(folder: Path, capsys) -> None:
    """A link "latest", or to the folder itself, counted runs twice, and none could be removed."""
    (folder / "loop").symlink_to(folder)
    (folder / "latest").symlink_to(folder / "c2")
    assert [f.name for f, _ in runs.find(folder)] == ["a1", "b2", "c2"]
    assert main(["runs", "remove", "c2", "--yes", "--folder", str(folder)]) == 0
    assert [f.name for f, _ in runs.find(folder)] == ["a1", "b2"]


def test_a_link_to_a_run_is_not_followed(folder: Path, capsys) -> None:
    """It said "Cannot call rmtree on a symbolic link, where: unknown file"."""
    away = folder / "too/deep/to/be"
    away.mkdir(parents=True)
    (folder / "c2").rename(away / "found")
    (folder / "d4").symlink_to(away / "found")
    assert main(["runs", "remove", "d4", "--folder", str(folder), "--yes"]) == 2
    said = capsys.readouterr().err
    assert "link to a run" in said and "d4" in said and (away / "found").is_dir()


def test_a_parameter_of_two_lines_stays_on_its_line(folder: Path, capsys) -> None:
    """It broke the list's row in two."""
    for name in ("a1", "c2"):
        row = json.loads((folder / name / "config.json").read_text())
        runs.write_json(folder / name / "config.json", {**row, "params": {"x": f"{name}\nb"}})
    assert main(["runs", "--folder", str(folder)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4


def test_options_stand_before_the_names_too(folder: Path, capsys) -> None:
    """`runs show --folder F ID` was refused, with the usage of all commands; --help shows it so."""
    assert main(["runs", "show", "--folder", str(folder), "a1"]) == 0
    assert main(["runs", "--folder", str(folder)]) == 0 and "3 runs" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["runs", "show", "--folder", str(folder), "a1", "--nope"])
    said = capsys.readouterr().err
    assert "usage: python -m kit runs [-h]" in said and "unrecognized arguments: --nope" in said
    with pytest.raises(SystemExit):
        main(["runs", "shew"])
    assert "there is no 'shew'; did you mean 'show'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    "content",
    [
        b'{"id": "\xe9"}',
        b'{"id": "x", "metr',
        b"[1, 2]",
        b'{"notebook": "n", "id": "x", "profile": "", "seed": 0, "params": null}',
        b'{"notebook": "n", "id": "x", "profile": "", "seed": 0, "seconds": "long"}',
    ],
)
def test_one_broken_run_is_listed_and_removed_and_hides_no_other(tmp_path, capsys, content):
    """A metrics.json in Latin-1 ended list, show, mend, remove and report of the whole folder."""
    for name in ("good", "bad"):
        (tmp_path / name).mkdir()
        row = {"id": name, "notebook": "n", "profile": "", "seed": 0}
        (tmp_path / name / "config.json").write_text(json.dumps(row))
    (tmp_path / "bad" / "metrics.json").write_bytes(content)
    here = ["--folder", str(tmp_path)]
    assert main(["runs", "list", *here]) == 0
    said = capsys.readouterr().out
    assert "broken" in said and "good" in said and "2 runs" in said
    assert main(["report", str(tmp_path)]) == 0
    assert main(["runs", "remove", "bad", *here, "--yes"]) == 0
    assert [p.name for p in tmp_path.iterdir() if p.is_dir() and p.name[0] != "."] == ["good"]
