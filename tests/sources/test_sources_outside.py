"""What an outsider met with files of his own: wrong readings and losses that nothing told him of."""

from __future__ import annotations

import csv
import json

import pytest

import kit
from kit.data import load_tasks, write_tasks
from kit.errors import DataError, KitError
from kit.records import Criterion, Task

TREE = {
    "id": "r",
    "requirements": "Reproduce X",
    "weight": 1,
    "sub_tasks": [
        {"id": "a", "requirements": "A is done", "weight": 3, "sub_tasks": []},
        {
            "id": "g",
            "requirements": "Group",
            "weight": 1,
            "sub_tasks": [
                {"id": "b", "requirements": "B is done", "weight": 1, "sub_tasks": []},
                {"id": "c", "requirements": "C is done", "weight": 1, "sub_tasks": []},
            ],
        },
    ],
}


def _codes(found) -> set[str]:
    return {f.code for f in found.findings if f.severity != "info"}


def _jsonl(path, rows):
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    return path


def test_a_weighted_tree_can_be_graded():
    """Its leaves named parents that were no criteria: grading failed after the paid calls."""
    tasks = load_tasks([TREE])
    answer = kit.Response(task_id="r", id="x", text="done")
    verdicts = [
        kit.Verdict(task_id="r", response_id="x", criterion_id=i, status=s)
        for i, s in (("a", "met"), ("b", "unmet"), ("c", "met"))
    ]
    grade = kit.grade(tasks, verdicts, responses=[answer])[0]
    assert grade.score == pytest.approx(3 / 4 + 1 / 8)
    assert [c.meta["node"] for c in tasks.tasks[0].criteria] == ["r", "g", "g"]
    assert not [f for f in kit.lint(tasks).findings if f.code == "extreme-weight"]


def test_verdicts_without_their_answers_are_not_graded_as_nothing():
    """A judged tree has verdicts and no answer: kit.grade gave an empty list."""
    leaf = {"id": "a", "requirements": "A", "weight": 1, "sub_tasks": [], "score": 1.0}
    graded = {"requirements": "R", "id": "r", "weight": 1, "sub_tasks": [leaf]}
    tasks = load_tasks([{"paper_id": "p", "graded_task_tree": graded}])
    assert len(tasks.verdicts) == 1
    with pytest.raises(KitError, match="none of the 1 answers"):
        kit.grade(tasks, tasks.verdicts)


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_numeric_labels_have_one_scale_in_a_file(tmp_path, kind):
    """A 1 of 1-5 was read as met (1.0) beside a 2 that was 0.25: the worst label was the best."""
    rows = [
        {
            "task_id": f"t{i}",
            "prompt": f"p{i}",
            "criterion": "x",
            "response": "r",
            "label": str(1 + i % 5),
        }
        for i in range(120)
    ]
    rows = sorted(rows, key=lambda r: r["label"])  # no other label in the first 50 rows ... but 1-3
    path = tmp_path / f"h.{kind}"
    if kind == "csv":
        with path.open("w", newline="") as f:
            w = csv.DictWriter(f, list(rows[0]))
            w.writeheader()
            w.writerows(rows)
    else:
        _jsonl(path, rows)
    found = load_tasks(path)
    assert {(v.meta["label"], v.value) for v in found.verdicts} == {
        (str(1 + k), k / 4) for k in range(5)
    }
    assert {v.value for v in load_tasks(rows[:20]).verdicts} == {1.0}  # a file of ones alone is 0/1


def test_labels_of_an_unclear_scale_are_unknown():
    """0 and 5 in one column: a 1 may be the best or nearly the worst."""
    rows = [
        {"task_id": f"t{x}", "response_id": "r", "response": "a", "labels": {"c": x}}
        for x in (0, 1, 5)
    ]
    found = load_tasks(rows)
    assert [v.status for v in found.verdicts] == ["unknown"] * 3
    assert "unreadable-label" in _codes(found)
    whole = [{**r, "labels": {"c": 1 if r["labels"]["c"] < 5 else 5}} for r in rows]
    assert [v.value for v in load_tasks(whole).verdicts] == [0.0, 0.0, 1.0]


def test_a_task_of_our_own_without_its_record_field_is_read_whole():
    """Read as a checklist: truth, history and a 0-5 scale became meta, the criterion yes / no."""
    row = {
        "id": "t",
        "prompt": "p",
        "criteria": [{"id": "c", "text": "x", "scale": "points", "points": 5, "weight": 2}],
        "history": [{"role": "user", "content": "earlier"}],
        "truth": {"answer": "4"},
    }
    found = load_tasks([row])
    task = found.tasks[0]
    assert found.format == "kit"
    assert (task.criteria[0].scale, task.criteria[0].points) == ("points", 5)
    assert task.truth == {"answer": "4"} and task.history and not task.meta
    plain = {"id": "t", "prompt": "p", "criteria": [{"text": "x", "points": 5}]}
    assert load_tasks([plain]).format == "checklist"


def test_a_flat_table_with_one_id_for_two_prompts_says_so():
    """The second prompt's criteria were judged on the first prompt's answer."""
    rows = [{"task_id": "t", "prompt": p, "criterion": f"about {p}"} for p in ("one", "two")]
    found = load_tasks(rows)
    assert [(t.id, t.prompt, t.criteria[0].text) for t in found.tasks] == [
        ("t", "one", "about one"),
        ("t#2", "two", "about two"),
    ]
    with pytest.raises(DataError, match="occurs again"):
        found.sound()


def test_a_criterion_with_two_weights_says_so():
    rows = [{"task_id": "t", "prompt": "p", "criterion": "x", "weight": w} for w in ("1", "5")]
    found = load_tasks(rows)
    assert any("weights 1 and 5" in f.message for f in found.findings)
    same = [{**r, "weight": "5"} for r in rows]
    assert not _codes(load_tasks(same)) and load_tasks(same).tasks[0].criteria[0].weight == 5


@pytest.mark.parametrize("format", ["rlvr", "rlvr-list", "refiner", "flat"])
def test_a_history_is_not_dropped_by_a_writer(tmp_path, format):
    turns = ({"role": "user", "content": "u"}, {"role": "assistant", "content": "a"})
    task = Task(id="t", prompt="p", history=turns, criteria=(Criterion(id="c1", text="x"),))
    with pytest.raises(DataError, match="history"):
        write_tasks(tmp_path / "out", [task], format=format)
    write_tasks(tmp_path / "o.jsonl", [task], format="open-instruct")
    assert load_tasks(tmp_path / "o.jsonl").tasks[0].history == turns
