"""`kit runs`: list, show, mend, remove."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from kit import runs
from kit.__main__ import main
from kit.records import Run, to_json


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
    assert "gain: up by 0.500 [0.400, 0.600]" in capsys.readouterr().out
    assert main(["runs", "show", "2", "--folder", str(folder)]) == 2
    assert "2 runs fit" in capsys.readouterr().err
    assert main(["runs", "show", "--folder", str(folder)]) == 2


def test_mend_marks_only_what_nobody_runs(folder: Path, capsys) -> None:
    """A killed run said "running" for ever."""
    row = json.loads((folder / "b2/config.json").read_text())
    living = {**row, "id": "d4", "meta": {"pid": os.getpid()}}
    (folder / "d4").mkdir()
    (folder / "d4/config.json").write_text(json.dumps(living))
    assert main(["runs", "mend", "--folder", str(folder)]) == 0
    assert "1 runs mended" in capsys.readouterr().out
    assert runs.load(folder / "b2").status == "stopped"
    assert runs.load(folder / "d4").status == "running"


def test_remove_says_what_first(folder: Path, capsys) -> None:
    assert main(["runs", "remove", "c2", "--folder", str(folder)]) == 0
    assert "--yes" in capsys.readouterr().out and (folder / "c2").is_dir()
    assert main(["runs", "remove", "c2", "--folder", str(folder), "--yes"]) == 0
    assert not (folder / "c2").exists() and (folder / "a1").is_dir()
