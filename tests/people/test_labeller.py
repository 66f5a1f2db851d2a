"""The labeller: each click is in the file, a second sitting goes on, two people share one file."""

import pandas as pd
import pytest

import kit
from kit.data import TaskSet
from kit.errors import DataError
from kit.people import Labeller, label, save_labels
from kit.records import Criterion, Response, Task, Verdict

CRITERIA = (
    Criterion(id="a", text="Names the <b>river</b>."),
    Criterion(id="b", text="How polite?", scale="ordinal", levels=("rude", "plain", "kind")),
    Criterion(id="c", text="How full?", scale="points", points=2.0),
)


def rows(n=4, criteria=CRITERIA):
    tasks = [Task(id=f"t{i}", prompt=f"Question {i}?", criteria=criteria) for i in range(n)]
    answers = [Response(task_id=t.id, id="r", text="=An answer.") for t in tasks]
    return label(TaskSet(tasks=tasks, responses=answers), n=100)


def test_the_choices_follow_the_criterion(tmp_path):
    ann = Labeller(rows(1), out=tmp_path / "labels.csv", rater="ann")
    seen = []
    for _ in range(3):
        seen.append(ann.choices())
        ann.answer(ann.choices()[-2])
    assert seen == [
        ["met", "unmet", "partly", "unknown"],
        ["rude", "plain", "kind", "unknown"],
        ["0/2", "1/2", "2/2", "unknown"],
    ]
    assert [v.value for v in kit.load(tmp_path / "labels.csv").verdicts] == [0.5, 1.0, 1.0]


def test_every_click_is_saved_and_a_second_sitting_goes_on(tmp_path):
    file = tmp_path / "labels.csv"
    ann = Labeller(rows(), out=file, rater="ann")
    ann.answer("met", note="plain")
    ann.answer("kind")
    ann.back()
    ann.answer("rude")
    again = Labeller(rows(), out=file, rater="ann")
    assert (again.progress, again.place) == ("2 of 12", 2)
    labels = kit.load(file).verdicts
    assert [(v.judge, v.value, v.meta.get("note")) for v in labels] == [
        ("human:ann", 1.0, "plain"),
        ("human:ann", 0.0, None),
    ]


def test_two_people_share_a_file_and_their_agreement_is_shown(tmp_path):
    file, some = tmp_path / "labels.csv", rows(20, CRITERIA[:1])
    verdicts = [
        Verdict(task_id=f"t{i}", response_id="r", criterion_id="a", judge="j",
                status="met" if i % 2 else "unmet")
        for i in range(30)
    ]  # fmt: skip
    for name in ("ann", "ben"):
        person = Labeller(some, out=file, rater=name, verdicts=verdicts)
        assert "judge" not in person.question_html() and "&lt;b&gt;" in person.question_html()
        for i in range(20):
            person.answer("met" if i % 2 or (name == "ben" and i == 0) else "unmet")
    results = person.agreement()
    assert list(results) == ["human:ann and human:ben", "human:ann and j", "human:ben and j"]
    assert results["human:ann and j"].n == 20  # not what the judge gave on other questions
    assert results["human:ann and j"].value == 1 > results["human:ben and j"].value > 0.8
    assert "human:ann and human:ben" in person.question_html()
    assert len(kit.load(file).verdicts) == 40
    with pytest.raises(DataError, match="not a label"):
        person.answer("met")  # there is no question left


def test_a_file_of_kit_label_is_taken_up(tmp_path):
    file = save_labels(rows(), tmp_path / "labels.csv")
    ann = Labeller(rows(), out=file, rater="ann")
    ann.answer("unmet")
    assert (ann.progress, len(pd.read_csv(file))) == ("1 of 12", 12)


@pytest.mark.parametrize(
    ("choice", "other", "fault"),
    [("yes", rows(), "not a label"), ("met", rows(1), "other questions")],
)
def test_what_is_refused(tmp_path, choice, other, fault):
    file = tmp_path / "labels.csv"
    with pytest.raises(DataError, match=fault):
        ann = Labeller(rows(), out=file, rater="ann")
        for _ in range(4):
            ann.answer(choice if choice == "yes" else ann.choices()[0])
        Labeller(other, out=file, rater="ann")


def test_the_buttons_label_and_go_back(tmp_path):
    ann = Labeller(rows(1), out=tmp_path / "labels.csv", rater="ann")
    text, note, buttons = ann.controls().children
    assert "<p style='white-space:pre-wrap'>=An answer.</p>" in text.value
    assert [b.description for b in buttons.children] == [*ann.choices(), "back"]
    note.value = "why"
    buttons.children[1].click()
    assert ann.rows["label"].tolist() == ["unmet", "", ""] and note.value == ""
    assert "1 of 3" in text.value
    buttons.children[-1].click()
    assert ann.place == 0


def test_headless_it_shows_the_question(tmp_path, monkeypatch):
    displayed = []
    monkeypatch.setattr("IPython.display.display", displayed.append)
    Labeller(rows(1), out=tmp_path / "labels.csv", rater="ann")._ipython_display_()
    assert "Question 0?" in displayed[0].data and not (tmp_path / "labels.csv").exists()
