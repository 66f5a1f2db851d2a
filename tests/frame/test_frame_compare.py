"""Comparison of runs, the newest run, and the incidents that shaped them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kit import compare, report, runs
from kit.records import Grade, Run, Verdict, to_json, unknown
from kit.train import policy
from kit.widgets import compare as widgets


def write(folder: Path, name: str, seed: int, value: float, **params: object) -> Path:
    run = Run(id=name, notebook="03_train_grpo", profile="test", seed=seed, params={"seed": seed, **params}, started=f"2026-01-0{seed + 1}T00:00:00",
              metrics={"gain": {"value": value, "low": value - 0.05, "high": value + 0.05, "n": 40, "n_clusters": 20}, "steps": 30, "shown": True})
    (folder / name).mkdir(parents=True)
    runs.write_json(folder / name / "metrics.json", to_json(run))
    return folder / name


@pytest.fixture
def found(tmp_path: Path) -> list[tuple[Path, Run]]:
    for seed, value in enumerate((0.30, 0.10, 0.02)):
        write(tmp_path, f"run{seed}", seed, value, lr=1e-4)
    write(tmp_path, "other", 0, 0.5, lr=5e-4)
    return runs.find(tmp_path)


def test_overview_names_what_differs(found: list[tuple[Path, Run]]) -> None:
    rows = {r["run"]: r["differs in"] for r in compare.overview(found)}
    assert rows["run1"] == "seed=1, lr=0.0001" and rows["other"] == "seed=0, lr=0.0005"


def test_seeds_are_the_sample_and_other_settings_stay_apart(found: list[tuple[Path, Run]]) -> None:
    seeds = {s.metric: s for s in compare.across_seeds(found)}
    gain = seeds["gain"]
    assert gain.runs == 3 and gain.mean.value == pytest.approx(0.14) and gain.mean.low < 0 < gain.mean.high  # three seeds say little
    assert gain.excluded_zero == 2
    assert "shown" not in seeds  # a yes / no is no number


def test_filters(found: list[tuple[Path, Run]]) -> None:
    assert {r["metric"] for r in compare.metrics(found, contains="GAI")} == {"gain"}
    assert compare.metrics(found, notebook="absent") == []
    assert len(compare.shared(found)) == 8


def test_explorer_headless_is_its_figure(found: list[tuple[Path, Run]], monkeypatch: pytest.MonkeyPatch) -> None:
    """A live Output widget made nbclient wait for ever for the end of its cell, once in a few runs."""
    monkeypatch.setenv("KIT_HEADLESS", "1")
    assert widgets.explorer(found).to_plotly_json()["data"]
    monkeypatch.setenv("KIT_HEADLESS", "0")
    assert len(widgets.explorer(found).children) == 2


def test_a_metrics_file_of_a_training_is_no_run(found: list[tuple[Path, Run]], tmp_path: Path) -> None:
    (tmp_path / "run0" / "training").mkdir()
    (tmp_path / "run0" / "training" / "metrics.json").write_text(json.dumps({"steps": 3}))
    assert [r.id for _, r in runs.find(tmp_path)] == [r.id for _, r in found]
    assert "run2" in report.build(tmp_path)


def test_newest(found: list[tuple[Path, Run]], tmp_path: Path) -> None:
    assert runs.newest("03_train_grpo", tmp_path) == tmp_path / "run2"
    assert runs.newest("absent", tmp_path) is None and runs.newest("x", tmp_path / "absent") is None


def test_fulfilled_reads_signs_and_unknown() -> None:
    def grade(*statuses: str) -> Grade:
        verdicts = tuple(unknown("t", "r", f"c{i}", "parse") if s == "unknown" else Verdict(task_id="t", response_id="r", criterion_id=f"c{i}", status=s)
                         for i, s in enumerate(statuses))
        return Grade(task_id="t", response_id="r", score=None, score_low=0, score_high=1, verdicts=verdicts)

    assert policy.fulfilled(grade("met", "met"), {}) is True
    assert policy.fulfilled(grade("met", "met"), {"c1": -1.0}) is False
    assert policy.fulfilled(grade("met", "unmet"), {"c1": -1.0}) is True
    assert policy.fulfilled(grade("met", "unknown"), {}) is None
    assert policy.fulfilled(grade("unmet", "unknown"), {}) is False  # settled whatever the unknown one is
