"""The run report holds judgments: answers before and after with verdicts and reasons."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from answered import made

import kit
from kit import runs
from kit.errors import DataError
from kit.runs import report

HOSTILE = "</script><img src=x onerror=alert(1)>"


@dataclass
class Policy:
    """Grades and answers of one policy, as an evaluation has them."""

    grades: list
    responses: list


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A finished run that kept judgments."""
    tasks, labels, grades = made(tmp_path, prompts=6)
    answers = kit.load(labels)
    hostile = [kit.Response(task_id=r.task_id, id=r.id, text=HOSTILE) for r in answers.responses]
    found = kit.people.read_grades(grades)
    monkeypatch.setenv("KIT_RUNS", str(tmp_path / "runs"))
    run = kit.start("99_try", profile="test")
    before, after = Policy(found, answers.responses), Policy(found, hostile)
    assert run.judgments(kit.load(tasks), labels=answers, before=before, after=after) == 24
    run.record("gain", kit.mean([0.5, 0.6]))
    run.finish()
    return tmp_path / "runs"


def test_the_report_shows_judgments_and_stays_small(folder):
    page = report.build(folder)
    assert 'id="judged"' in page and "kitJudgments(" in page and "because 3" in page
    assert HOSTILE not in page and page.count("function kitRecompute") == 1
    assert len(page.encode()) < 8_000_000


def test_judgments_that_are_too_large_are_left_out_and_said(folder, monkeypatch):
    monkeypatch.setattr(report, "JUDGED_CAP", 100)
    page = report.build(folder)
    assert "left out, too large" in page and "because 3" not in page


def test_a_newer_form_is_refused_by_name(folder):
    run = next(p for p in folder.iterdir() if p.is_dir())
    path = run / runs.JUDGMENTS
    path.write_text(json.dumps({**json.loads(path.read_text()), "schema": 9}))
    with pytest.raises(DataError, match="form 9 of judgments"):
        report.build(folder)
    metrics = run / "metrics.json"
    row = json.loads(metrics.read_text())
    assert row["schema"] == 1
    metrics.write_text(json.dumps({**row, "schema": 2}))
    with pytest.raises(DataError, match="form 2 of run"):
        runs.load(run)


def test_a_report_without_judgments_has_no_such_part(folder):
    run = next(p for p in folder.iterdir() if p.is_dir())
    (run / runs.JUDGMENTS).unlink()
    page = report.build(folder)
    assert 'id="judged"' not in page and "kitRecompute" not in page
