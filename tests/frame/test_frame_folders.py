"""A run's folder is new, however the notebook is started; what cannot run is said before it starts."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from kit import runs
from kit.__main__ import main
from kit.errors import MissingError
from kit.runs import compare, headless, sweep
from kit.settings import params

ROOT = Path(__file__).resolve().parents[2]


def once(seed: int = 0, finish: bool = True, **given: object) -> Path:
    run = runs.start("98_own", profile="test", seed=seed, **given)
    run.record("seed", seed)
    if finish:
        run.finish()
    return run.out


def test_every_start_outside_kit_run_has_a_folder_of_its_own() -> None:
    """Plain papermill wrote all runs of a notebook into one folder: seed 3 was lost."""
    one, two, again = once(3), once(4), once(3)
    assert len({one, two, again}) == 3
    assert [runs.load(p).metrics["seed"] for p in (one, two, again)] == [3, 4, 3]
    assert {runs.load(p).status for p in (one, two, again)} == {"done"}


def test_other_parameters_never_meet_an_earlier_runs_files() -> None:
    """Notebook 02 with another threshold found the sealed test of the first and ended there."""
    assert once(threshold=3.0, finish=False) != once(threshold=4.0, finish=False)


def test_what_a_dead_kernel_left_is_continued_and_a_living_ones_is_not() -> None:
    open_ = once(finish=False)
    assert once(finish=False) == open_, "the cell was run again in the same kernel"
    config = json.loads((open_ / "config.json").read_text())
    config["meta"]["pid"] = 2**22 + 1  # no process has it
    (open_ / "config.json").write_text(json.dumps(config))
    assert once(finish=False) == open_
    config["meta"]["pid"] = os.getppid()
    (open_ / "config.json").write_text(json.dumps(config))
    assert once(finish=False) != open_


def test_a_mended_file_is_another_run(tmp_path: Path, monkeypatch) -> None:
    """A stopped run's folder, or a sweep's finished one, stood for a file that was mended since."""
    rubrics = tmp_path / "mine.jsonl"
    rubrics.write_text("one")
    first = once(rubrics=str(rubrics), finish=False)
    assert once(rubrics=str(rubrics), finish=False) == first
    book = headless.find_notebook("01")
    _, _, digest = headless.plan(book, profile="test", seed=0, given={"rubrics": str(rubrics)})
    read: list[Path] = []
    whole = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda self: (read.append(self), whole(self))[1])
    for seed in range(3):  # each cell of a sweep read the file anew
        headless.plan(book, profile="test", seed=seed, given={"rubrics": str(rubrics)})
    assert rubrics not in read
    rubrics.write_text("two, mended")
    assert once(rubrics=str(rubrics), finish=False) != first
    again = headless.plan(book, profile="test", seed=0, given={"rubrics": str(rubrics)})
    assert again[2] != digest


def test_an_unfinished_run_whose_process_is_gone_is_stopped_not_running(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A papermill run that crashed stood in the table of runs as "running" for ever."""
    open_ = once(finish=False)
    assert runs.load(open_).status == "running"
    config = json.loads((open_ / "config.json").read_text())
    config["meta"]["pid"] = 2**22 + 1  # no process has it
    (open_ / "config.json").write_text(json.dumps(config))
    assert [r["status"] for r in compare.overview([(open_, runs.load(open_))])] == ["stopped"]
    assert main(["runs", "--folder", str(open_.parent)]) == 0
    assert " ? s " in capsys.readouterr().out, "it took 0 s, where nobody knows"
    config["meta"]["host"] = "another machine"
    (open_ / "config.json").write_text(json.dumps(config))
    assert runs.load(open_).status == "running", "nobody here knows"


@pytest.mark.parametrize("book", ["01", "03", "05"])
def test_a_path_that_is_not_there_is_said_before_a_kernel_starts(book: str, monkeypatch) -> None:
    """`--set rubrics=/nope` was found after 28 s."""
    monkeypatch.setattr(headless, "_execute", lambda *a: pytest.fail("a kernel was started"))
    name = {"01": "rubrics", "03": "tasks_file", "05": "runs_dir"}[book]
    with pytest.raises(MissingError, match=f"parameter {name} = '/nope'"):
        headless.run_notebook(book, profile="test", given={name: "/nope"})
    with pytest.raises(MissingError, match="cell 2 of 2, parameter"):
        sweep.check(headless.find_notebook(book), [{}, {name: "/nope"}], "test")


def test_paths_become_absolute_and_names_of_a_hub_stay(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.json").write_text("[]")
    known = params.parameters(ROOT / "notebooks/01_inspect_rubrics.ipynb")
    values = {
        "rubrics": "mine.json",
        "answers": "hf://datasets/owner/name/a.jsonl",
        "format": "auto",
    }
    params.locate(known, values)
    assert values == {
        "rubrics": str(tmp_path / "mine.json"),
        "answers": "hf://datasets/owner/name/a.jsonl",
        "format": "auto",
    }
    values = {"rubrics": "rubrics.json"}  # in the kit's own data
    params.locate(known, values, ROOT / "data")
    assert values["rubrics"] == str(ROOT / "data/rubrics.json")


def test_no_notebook_leaves_a_temporary_folder() -> None:
    """Notebook 02 left one at every run."""
    for book in (ROOT / "notebooks").glob("0*.ipynb"):
        assert "mkdtemp" not in book.read_text(), book


def test_a_full_disk_names_the_file_and_leaves_nothing(tmp_path: Path, monkeypatch) -> None:
    def full(*a: object, **k: object) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "metrics.json").write_text("{}")
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space") as e:
        runs.write_json(tmp_path / "metrics.json", {"a": 1})
    assert e.value.filename == str(tmp_path / "metrics.json")
    assert [p.name for p in tmp_path.iterdir()] == ["metrics.json"]
