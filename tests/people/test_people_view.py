"""`kit view`: one page of judgments; nothing of the judged text is code."""

from __future__ import annotations

import json
import re

import pytest
from answered import made, rows_of, write

import kit
from kit.__main__ import main
from kit.errors import DataError
from kit.people import view as views

HOSTILE = '</script><script>alert(1)</script><img src=x onerror="alert(2)">'


def data_of(page: str) -> dict:
    """The data that the page carries, as a browser reads it."""
    found = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.S)
    return json.loads(found[1])


def test_hostile_text_and_half_characters_stay_text(tmp_path):
    tasks, labels, grades = made(tmp_path, prompts=3)
    rows = rows_of(grades)
    rows[0]["verdicts"][0]["reason"] = HOSTILE + "\ud800"
    answers = [r | {"response": HOSTILE, "response_id": r["response_id"]} for r in rows_of(labels)]
    path = kit.view(
        write(tmp_path / "h.jsonl", rows), tasks=tasks, answers=write(tmp_path / "a.jsonl", answers)
    )
    page = path.read_text()
    assert (
        page.count("<script") == 3 and "<img" not in page and "http" not in page.split("<body")[1]
    )
    data = data_of(page)
    assert data["answers"][0]["text"] == HOSTILE and "\ufffd" in data["answers"][0]["v"][0][4]


def test_the_answers_beside_the_grades_are_found(tmp_path, capsys):
    tasks, labels, grades = made(tmp_path, prompts=2)
    (tmp_path / "mine.jsonl").write_text(open(labels).read())
    (tmp_path / "mine.grades.jsonl").write_text(open(grades).read())
    command = ["view", str(tmp_path / "mine.grades.jsonl"), "--tasks", tasks, "--json"]
    assert main(command) == 0
    page = json.loads(capsys.readouterr().out)["page"]
    assert data_of(open(page).read())["answers"][0]["text"] == "An answer."
    assert main([*command, "--out", str(tmp_path / "mine.grades.jsonl")]) == 2
    assert "would be lost" in capsys.readouterr().err
    assert rows_of(str(tmp_path / "mine.grades.jsonl")) == rows_of(grades)


def test_two_hundred_answers_of_five_criteria_are_under_2_mb(tmp_path):
    tasks, labels, grades = made(tmp_path, prompts=100)
    answers = [r | {"response": "words of an answer " * 80} for r in rows_of(labels)]
    rows = rows_of(grades)
    for row in rows:
        for v in row["verdicts"]:
            v["reason"] = "a reason of some length, as judges write them. " * 6
    paths = write(tmp_path / "g", rows), write(tmp_path / "a", answers)
    page = kit.view(paths[0], tasks=tasks, answers=paths[1], labels=paths[1])
    assert page.stat().st_size < 2_000_000


def test_tasks_of_others_are_refused_and_sets_are_joined(tmp_path):
    tasks, _labels, grades = made(tmp_path, prompts=2)
    with pytest.raises(DataError, match="no task"):
        views.judgments(grades, tasks=kit.load(tasks).tasks[:1])
    one, two = (views.judgments(grades, tasks=tasks, set=s) for s in ("before", "after"))
    both = views.joined(one, two)
    assert len(both["tasks"]) == 2 and len(both["answers"]) == 8
    assert [a["set"] for a in both["answers"][:4]] == ["before"] * 2 + ["after"] * 2
    assert {a["t"] for a in both["answers"][:4]} == {0}


def test_answers_of_another_run_are_refused(tmp_path, capsys):
    """A page without a single answer's text was written, and nothing said why."""
    _, _, grades = made(tmp_path)
    other = write(tmp_path / "o.jsonl", [{"task_id": "t0", "response_id": "zz", "response": "A"}])
    assert main(["view", grades, "--answers", other]) == 2
    assert "none of these answers" in capsys.readouterr().err


def test_labels_named_by_their_prompt_or_by_the_text_stand_beside_their_verdicts(tmp_path, caplog):
    """No verdict of the page had a label, and nothing was said of it."""
    tasks, labels, grades = made(tmp_path)
    asked = {t["id"]: t["prompt"] for t in rows_of(tasks)}
    answers = [r | {"response": f"Answer {n}."} for n, r in enumerate(rows_of(labels))]
    by_prompt = [r | {"prompt": asked[r["task_id"]]} for r in answers]
    by_prompt.append(by_prompt[0] | {"prompt": "Who else?"})
    for r in by_prompt:
        del r["task_id"], r["response_id"]
    files = [write(tmp_path / f"{n}.jsonl", x) for n, x in enumerate((answers, by_prompt))]
    both = [views.judgments(grades, tasks=tasks, answers=files[0], labels=x) for x in files]
    assert both[0] == both[1] and None not in [v[5] for a in both[1]["answers"] for v in a["v"]]
    assert "4 of 164 labels are on no verdict here: labelled is row-41 /" in caplog.text


def test_thoughts_are_folded_on_the_page(tmp_path):
    """They stood in the answer, and the judge had not read them: its verdicts looked wrong."""
    tasks, labels, grades = made(tmp_path, prompts=1)
    whole = "<think>Or 17?</think>It is 16."
    rows = [r | {"response": whole} for r in rows_of(labels)[:1]] + rows_of(labels)[1:]
    page = kit.view(grades, tasks=tasks, answers=write(tmp_path / "a.jsonl", rows)).read_text()
    first, second = data_of(page)["answers"]
    assert (first["text"], first["whole"]) == ("It is 16.", whole)
    assert second["text"] == "An answer." and "whole" not in second
    assert "with its thoughts (judged only by criteria that name them)" in page
