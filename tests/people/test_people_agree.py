"""Grades beside labels by people: `kit agree TASKS LABELS GRADES`, its numbers, its errors."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys

import pytest
from answered import made, rows_of, write

import kit
from kit import people, stats
from kit.__main__ import main
from kit.errors import DataError
from kit.tables import averaged


def test_overall_and_each_criterion_by_hand(tmp_path, capsys):
    """`kit judge` ignored labels and `kit agree` could not read its grades: 17 lines of Python."""
    assert main(["agree", *made(tmp_path), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["n"] == 119 and data["unknown"] == 1  # 3 judged criteria of 40, one unknown
    by = {r["id"]: r for r in data["criteria"]}
    wrong = sum(i % 3 == 0 for i in range(40))
    assert by["c1"]["accuracy"]["value"] == pytest.approx(1 - wrong / 40)
    assert by["c0"]["n"] == 39 and by["c0"]["unknown"] == 1 and "k" not in by
    truth = [int(i % 4 < 2) for i in range(40)]
    said = [x ^ (i % 3 == 0) for i, x in enumerate(truth)]
    kappa = stats.kappa(said, truth, cluster=[i // 2 for i in range(40)])
    got = by["c1"]["kappa"]
    assert (got["value"], got["low"], got["high"]) == (kappa.value, kappa.low, kappa.high)
    assert got["n_clusters"] == 20
    assert len(data["worst"]) == 10 and data["worst"][0]["reason"].startswith("because")
    assert any("code are left out" in n for n in data["notes"])


def test_the_same_as_a_verb_and_whole_texts(tmp_path):
    paths = made(tmp_path)
    found = kit.agreement(*paths)
    tasks, labels = kit.load(paths[0]), kit.load(paths[1])
    again = kit.agreement(tasks, labels, kit.people.read_grades(paths[2]))
    assert found.overall == again.overall and "c1: text of c1" in str(found)
    assert kit.agreement(*paths, code=True).overall.n == 159
    assert "<td" in found._repr_html_()


def test_too_kind_goes_by_the_sign_of_the_weight(tmp_path):
    """ "met" on a fault that an answer must not have is strict, not kind."""
    tasks, labels, grades = made(tmp_path, prompts=2)
    rows = rows_of(grades)
    for row in rows:
        row["verdicts"] = [{"criterion_id": "n", "status": "met", "reason": "x"}]
    found = kit.agreement(tasks, labels, kit.people.read_grades(write(tmp_path / "g", rows)))
    assert found.overall.too_strict == 2 and found.overall.too_kind == 0


def test_five_levels_against_yes_and_no_are_cut_and_said(tmp_path):
    """`stats.agree` compared a table of 4 x 4 in silence."""
    tasks, labels, grades = made(tmp_path)
    rows = rows_of(grades)
    for row in rows:
        for v in row["verdicts"]:
            v["status"], v["value"] = "level", 0.75 if v["status"] == "met" else 0.25
            v.pop("failure", None)
    path = write(tmp_path / "levels.jsonl", rows)
    found = kit.agreement(tasks, labels, path)
    assert any("0.5 and more is met" in n for n in found.notes)
    assert kit.agreement(tasks, labels, path, cut=0.8).overall.too_kind < found.overall.n


def test_raters_that_are_split_evenly_give_no_label(tmp_path):
    tasks, labels, grades = made(tmp_path)
    rows = rows_of(labels)
    rows[0]["labels"]["c0"] = [1, 0]
    found = kit.agreement(tasks, write(tmp_path / "l.jsonl", rows), grades)
    assert any("split evenly" in n for n in found.notes) and found.overall.unsaid == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda row: row.pop("verdicts"), "there is no 'verdicts'"),
        (lambda row: row.update(task_id="t99"), "no task 't99'"),
        (lambda row: row.update(schema=2), "this kit reads up to 1"),
        (lambda row: row["verdicts"][0].update(status="perhaps"), "perhaps"),
    ],
)
def test_errors_say_where(tmp_path, capsys, change, said):
    tasks, labels, grades = made(tmp_path)
    rows = rows_of(grades)
    change(rows[3])
    path = write(tmp_path / "bad.jsonl", rows)
    assert main(["agree", tasks, labels, path]) == 2
    err = capsys.readouterr().err
    assert said in err and "where:" in err


def test_labels_of_other_answers_are_an_error_not_an_empty_table(tmp_path):
    tasks, labels, grades = made(tmp_path)
    rows = [r | {"response_id": "other-" + r["response_id"]} for r in rows_of(labels)]
    with pytest.raises(DataError, match="no label is on anything that was graded"):
        kit.agreement(tasks, write(tmp_path / "l.jsonl", rows), grades)


@pytest.mark.parametrize(
    ("field", "person", "models"),
    [
        ("rater", "ann", ["gpt-4o", "claude-3"]),
        ("judge_model", "human", ["gpt-4o", "claude-3"]),
        ("rater_type", "human", ["model"]),
    ],
)
def test_labels_of_models_in_a_table_of_labels_are_nobodys(tmp_path, capsys, field, person, models):
    """Models that always said the opposite were averaged with the people: kappa -.43 for .45, in
    every command that was given the file, and without a word."""
    tasks, labels, grades = made(tmp_path)
    flat = [
        {"task_id": r["task_id"], "response_id": r["response_id"], "criterion_id": c, "label": x}
        for r in rows_of(labels)
        for c, x in r["labels"].items()
    ]
    rows = [{**r, field: person} for r in flat]
    rows += rows[:3] if field == "rater" else []  # two exports put together: they count once
    rows += [{**r, field: m, "label": int(not r["label"])} for r in flat for m in models]
    path = write(tmp_path / "mixed.jsonl", rows)
    said = [main(["agree", tasks, x, grades]) or capsys.readouterr().out for x in (labels, path)]
    assert said[0] == said[1] and "kappa" in said[0]
    found = kit.agreement(tasks, kit.load(path), grades)
    assert found.overall.kappa == kit.agreement(tasks, path, grades).overall.kappa


def test_labels_named_by_their_prompt_are_on_the_tasks_that_ask_it(tmp_path, capsys):
    """A file that kit.load(tasks).joined reads was refused: its tasks were called row-1."""
    tasks, labels, grades = made(tmp_path)
    asked = {t["id"]: t["prompt"] for t in rows_of(tasks)}
    rows = [{"prompt": asked[r.pop("task_id")], **r} for r in rows_of(labels)[::-1]]
    rows.append(rows[0] | {"prompt": "Who else?"})
    path = write(tmp_path / "l.jsonl", rows)
    for command in (["agree"], ["rate", "--design", "random"]):
        said = [
            main([*command, tasks, x, grades]) or capsys.readouterr().out for x in (labels, path)
        ]
        note = "4 of 164 labels are on no verdict here: labelled is row-41 / r1 / c0"
        assert note in said[1] and note not in said[0]
        assert [x for x in said[1].splitlines() if note not in x] == said[0].splitlines()


def test_two_files_are_not_enough_and_columns_stay(tmp_path, capsys):
    tasks, labels, grades = made(tmp_path)
    assert main(["agree", tasks, labels]) == 2
    assert "TASKS LABELS GRADES" in capsys.readouterr().err
    assert main(["agree", tasks, labels, grades, "--judge", "x"]) == 2
    assert "--judge" in capsys.readouterr().err


def test_200_answers_of_5_criteria_take_a_second_and_a_half(tmp_path):
    """A real process; processor time, so that a busy machine changes nothing."""
    paths = made(tmp_path, prompts=50, answers=4)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "kit", "agree", *paths, "--code"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert "kappa" in done.stdout and "n=799" in done.stdout
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1.5


def scaled(folder, scale, labels, values):
    """One criterion with a scale, an answer a task: tasks, labels, grades."""
    tasks, given, grades = [], [], []
    for i, (label, value) in enumerate(zip(labels, values, strict=True)):
        ids = {"task_id": f"t{i}", "response_id": "r"}
        tasks.append(
            {"id": f"t{i}", "prompt": "p", "criteria": [{"id": "c", "text": "x", **scale}]}
        )
        given.append({**ids, "response": "x", "labels": {"c": label}})
        ends = {"score": 0.5, "score_low": 0.5, "score_high": 0.5}
        verdicts = [{"criterion_id": "c", "status": "level", "value": value}]
        grades.append({**ids, **ends, "verdicts": verdicts})
    paths = [folder / n for n in ("t.jsonl", "l.jsonl", "g.jsonl")]
    return [write(p, rows) for p, rows in zip(paths, (tasks, given, grades), strict=True)]


def test_labels_by_the_words_of_a_criterions_levels(tmp_path):
    """The command left all of them out: "no row is known to both"; Python's join read them."""
    words = ["bad", "ok", "good"] * 4
    files = scaled(tmp_path, {"scale": "ordinal", "levels": words[:3]}, words, [0, 0.5, 1] * 4)
    rows = people.beside(*files)
    assert rows.label == rows.verdict == [0, 0.5, 1] * 4
    assert people.beside(files[0], kit.load(files[1]), files[2]).label == rows.label


def test_labels_by_a_criterions_points(tmp_path):
    """The kit's own format: 0 to 5 of 5 points were "not understood", and nothing said so."""
    scale, labels = {"scale": "points", "points": 5}, [0, 1, 2, 3, 4, 5]
    files = scaled(tmp_path, scale, labels, [x / 5 for x in labels])
    rows = people.beside(*files)
    assert rows.label == rows.verdict and not rows.notes()
    drawn = kit.draw(files[0], files[1], n=6, labels=files[1])
    todo = kit.people.draw.write(drawn.rows, tmp_path / "todo.csv")
    assert sorted(people.read_labels(todo, kit.load(files[0]).tasks).values.values()) == rows.label


def test_labels_that_are_not_understood_are_said(tmp_path):
    """50 labels were left out as "people 50", and why stood in `kit.load` alone."""
    scale = {"scale": "points", "points": 5}
    files = scaled(tmp_path, scale, [0, 1, 2, 9, 4, 5], [0] * 6)
    found = kit.agreement(*files)
    assert found.overall.unsaid == 1 and "label '9' is none of 0 to 5 points" in str(found)


def test_raters_whose_mean_is_the_middle_that_they_say_are_not_split():
    """bad, ok, ok, ok, good of three levels had no label: just the rows in the middle were lost."""
    assert averaged([0.0, 0.5, 0.5, 0.5, 1.0]) == averaged([0.5, 0.5]) == 0.5
    assert averaged([0.0, 1.0]) is None


def test_words_in_another_case_are_the_same_words():
    """Good and Ok beside good and ok were one category, and 17 disagreements agreement."""
    said, meant = ["bad", "ok", "good"] * 4, ["bad", "good", "good"] * 4
    same, other = (kit.agree(said, x) for x in (meant, [w.title() for w in meant]))
    assert (other.kappa.value, other.confusion.tolist()) == (
        same.kappa.value,
        same.confusion.tolist(),
    )
