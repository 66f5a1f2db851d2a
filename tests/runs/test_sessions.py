"""What a notebook keeps, which folder it gets, and how runs are found and compared."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import kit
from kit import runs
from kit.errors import DataError, MissingError
from kit.stats import Estimate

PARAMS = {"profile": "test", "seed": 0, "steps": 2, "rate": 1e-3, "tasks_file": ""}


@pytest.fixture
def session(notebook, tmp_path, monkeypatch):
    notebook()
    monkeypatch.chdir(tmp_path)
    return kit.start("07_small", {**PARAMS, "_x": 1, "pd": pd})


def results(session, kind):
    record = json.loads((session.folder / "run.json").read_text())
    return [r for r in record["meta"]["results"] if r["kind"] == kind]


def test_first_line_names_profile_device_and_versions(session, capsys):
    assert "profile test (it was requested)" in repr(session)
    assert "python 3." in repr(session) and "torch" in repr(session) and "CPU with" in repr(session)


def test_only_declared_variables_are_parameters(session):
    assert session.params == PARAMS


@pytest.mark.parametrize(
    ("thing", "value"),
    [
        (3, 3),
        (0.5, 0.5),
        (np.float64(0.25), 0.25),
        (np.int64(4), 4),
        (True, True),
        (None, None),
        (math.nan, None),
        (math.inf, None),
        (Estimate(0.5, 0.4, 0.6, n=9), 0.5),
        (Estimate(math.nan, n=0), None),
    ],
)
def test_numbers_and_estimates_become_metrics(session, thing, value):
    assert session.keep("x", thing) is thing
    metric = runs.load(session.folder).metrics["x"]
    assert metric["value"] == value
    if isinstance(thing, Estimate):
        assert metric["n"] == thing.n and "sentence" in metric


def test_a_mapping_is_kept_one_by_one(session):
    session.keep("kappa", {"a": Estimate(0.1), "b": 0.2})
    assert set(runs.load(session.folder).metrics) == {"kappa: a", "kappa: b"}


def test_tables_figures_and_sentences_are_kept(session):
    import plotly.express as px

    frame = pd.DataFrame({"text": ["<b>", "x"], "n": [1, np.nan]})
    session.keep("frame", frame, "Rows.")
    session.keep("styled", frame.style)
    session.keep("list", [{"a": 1}, {"a": 2}])
    session.keep("line", px.line(y=[1, 2]))
    session.keep("words", "It rained.")
    assert [r["name"] for r in results(session, "table")] == ["frame", "styled", "list"]
    assert [r["name"] for r in results(session, "figure")] == ["line"]
    assert [r["text"] for r in results(session, "sentence")] == ["It rained."]
    stored = json.loads((session.folder / results(session, "table")[0]["file"]).read_text())
    assert stored["data"] == [["<b>", 1.0], ["x", None]]


def test_a_result_with_an_interval_and_a_picture_is_kept_as_both(session):
    curve = kit.reliability([0.9, 0.8, 0.3, 0.6] * 10, [1, 1, 0, 0] * 10)
    session.keep("curve", curve, "The diagram.")
    assert results(session, "figure")


@pytest.mark.parametrize("thing", [object(), {1, 2}, 1j, np.array([1.0, 2.0])])
def test_other_things_are_refused(session, thing):
    with pytest.raises(DataError, match="cannot be kept"):
        session.keep("x", thing)


def test_the_last_value_of_a_name_counts(session):
    session.keep("x", 1)
    session.keep("x", 2)
    session.keep("t", [{"a": 1}])
    session.keep("t", [{"a": 2}])
    assert runs.load(session.folder).metrics["x"]["value"] == 2
    assert len(results(session, "table")) == 1


def test_path_makes_folders(session):
    path = session.path("a", "b.txt")
    path.write_text("x")
    assert path.parent.parent == session.folder


def test_finish_completes_the_record(session, capsys):
    session.keep("x", 1)
    session.finish()
    run = runs.load(session.folder)
    assert run.status == "done" and run.seconds >= 0 and run.versions["kit"] == kit.__version__
    assert run.meta["memory"] > 0.01
    assert str(session.folder) in capsys.readouterr().out


def test_a_cell_that_runs_again_takes_the_same_folder(session):
    again = kit.start("07_small", PARAMS)
    assert again.folder == session.folder
    again.finish()
    third = kit.start("07_small", PARAMS)
    assert third.folder == session.folder


def test_a_finished_run_stays_readable_until_the_next_ends(session):
    session.keep("x", 1)
    session.finish()
    again = kit.start("07_small", PARAMS)
    again.keep("x", 2)
    assert runs.load(session.folder).metrics["x"]["value"] == 1
    again.finish()
    assert runs.load(session.folder).metrics["x"]["value"] == 2


def test_another_process_gets_a_folder_beside_it(session):
    code = f"import kit; print(kit.start('07_small', {PARAMS!r}).folder)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip().splitlines()[-1] == f"{session.folder}-2"


def test_other_parameters_give_another_folder(session):
    folders = {kit.start("07_small", {**PARAMS, "seed": s}).folder for s in (0, 1, 2)}
    assert len(folders) == 3 and session.folder in folders


def test_a_file_that_changed_gives_another_folder(session, tmp_path):
    file = tmp_path / "t.jsonl"
    file.write_text("a")
    first = kit.start("07_small", {**PARAMS, "tasks_file": str(file)}).folder
    file.write_text("b")
    assert kit.start("07_small", {**PARAMS, "tasks_file": str(file)}).folder != first


@pytest.mark.parametrize("name", ["kit/a.py", "kit/a.yaml", "kit/deep/a.toml", "data/deep/a.json"])
def test_code_or_data_that_changed_gives_another_folder(session, tmp_path, monkeypatch, name):
    monkeypatch.delenv("KIT_CODE_FINGERPRINT")
    monkeypatch.setenv("KIT_DATA", str(tmp_path / "data"))
    monkeypatch.setattr("kit.system.paths.PACKAGE", tmp_path / "kit")
    file, names = tmp_path / name, []
    file.parent.mkdir(parents=True)
    for text in ("a", "b"):
        file.write_text(text)
        names.append(kit.start("mine", {"steps": 3}).folder.name)
        file.with_suffix(".pyc").write_text(text)
        names.append(kit.start("mine", {"steps": 3}).folder.name)
    assert len(set(names)) == 2


def test_a_text_in_place_of_a_number_is_refused(session):
    with pytest.raises(DataError, match="rate is the text '1e-5'"):
        kit.start("07_small", {**PARAMS, "rate": "1e-5"})


def test_a_notebook_that_lies_elsewhere_starts_too(tmp_path):
    session = kit.start("mine", {"steps": 3, "pd": pd, "_i": "x", "In": ["x"]})
    assert session.params == {"steps": 3}


def test_find_reads_all_runs_and_marks_the_broken(session, tmp_path):
    session.finish()
    bad = session.folder.parent / "broken-1"
    bad.mkdir()
    (bad / "run.json").write_text("{")
    inner = session.folder / "training"
    inner.mkdir()
    (inner / "run.json").write_text('{"step": 1}')
    assert {f.name: r.status for f, r in runs.find()} == {
        session.folder.name: "done",
        "broken-1": "broken",
    }
    with pytest.raises(MissingError):
        runs.find(tmp_path / "nowhere")
    with pytest.raises(MissingError):
        runs.load(tmp_path)


def test_a_run_whose_process_is_gone_is_stopped(session):
    record = json.loads((session.folder / "run.json").read_text())
    record["meta"]["pid"] = 2**22 + 1
    (session.folder / "run.json").write_text(json.dumps(record))
    assert runs.load(session.folder).status == "stopped"


def make(seed, steps, value):
    s = kit.start("07_small", {**PARAMS, "seed": seed, "steps": steps})
    s.keep("gain", Estimate(value, value - 0.1, value + 0.1, n=20, scale=1.0))
    # a share whose last digit is rounding
    s.keep("share", Estimate(1 + 1e-15 if seed else 0.7, n=20, bounds=(0.0, 1.0)))
    s.keep("count", steps)
    s.finish()


def test_compare_overview_and_seeds(session):
    for seed in (0, 1, 2):
        make(seed, 2, 0.5 + seed / 10)
        make(seed, 3, 0.2)
    frame = runs.compare(contains="gain")
    assert len(frame) == 6 and set(frame["setting"]) == {
        f"seed={s}, steps={n}" for s in (0, 1, 2) for n in (2, 3)
    }
    table = runs.overview()
    assert set(table["status"]) == {"done"} and "gain" in table and len(table) == 6
    means = runs.over_seeds(contains="gain").set_index("setting")
    assert means.loc["steps=2", "mean"] == pytest.approx(0.6)
    assert means.loc["steps=2", "low"] < 0.6 < means.loc["steps=2", "high"]
    assert means.loc["steps=2", ["seeds", "worst", "best"]].tolist() == [3, 0.5, 0.7]
    shares = runs.over_seeds(contains="share")
    assert shares["high"].tolist() == [1, 1] and (shares["low"] > 0).all()


def test_one_seed_says_nothing_about_others(session):
    make(0, 2, 0.5)
    assert runs.over_seeds().empty
