"""What the lint finds in texts that its rules were not written on, and what it says of sound ones."""

import csv
from pathlib import Path

import pytest

from kit.records import Criterion, Task
from kit.rubrics import lint

FILE = Path(__file__).with_name("lint_kinds.tsv")
with FILE.open(encoding="utf-8") as f:
    ROWS = list(csv.DictReader(f, delimiter="\t", quoting=csv.QUOTE_NONE))


def codes(row):
    """What the lint objects to in a row of the table, among the sound criteria of its prompt."""
    beside = [r for r in ROWS if r["prompt"] == row["prompt"] and r["kind"] == "sound" and r != row]
    made = [
        Criterion(id=f"c{i}", text=r["text"], weight=float(r["weight"]))
        for i, r in enumerate([row, *beside])
    ]
    found = lint([Task(id="t", prompt=row["prompt"], criteria=tuple(made))]).findings
    return {f.code for f in found if f.criterion_id == "c0" and f.severity != "info"}


@pytest.mark.parametrize(("half", "least"), [("seen", 0.82), ("unseen", 0.72)])
def test_faults_of_the_usual_kinds_are_named_and_sound_criteria_pass(half, least):
    """Of 34 faults written before the rules were mended, and not looked at while they were, the lint
    named 6 and names 25; of an outsider's 72, which were at hand, 46 and 69. "No mistakes" was a fault."""
    rows = [r for r in ROWS if r["half"] == half]
    faults = [r for r in rows if r["kind"] != "sound"]
    hits = [r for r in faults if r["kind"] in codes(r)]
    assert len(faults) >= 34 and len(hits) >= least * len(faults)
    assert [r["text"] for r in rows if r["kind"] == "sound" and codes(r)] == []


def signs(text, weight):
    one = Criterion(id="a", text=text, weight=weight), Criterion(id="b", text="Names a river.")
    return lint([Task(id="t", prompt="Write a letter about rivers.", criteria=one)]).counts.get(
        "sign", 0
    )


@pytest.mark.parametrize(
    "text",
    [
        "Contains no spelling mistakes",
        "Has no grammatical errors",
        "Makes no false claims",
        "Introduces no new errors",
        "Makes zero mistakes in the arithmetic",
        "Has neither typos nor missing words",
        "Runs without errors",
    ],
)
def test_no_fault_is_no_fault(text):
    """Each was said to name a fault and to pay for it; with a negative weight, nothing was said."""
    assert (signs(text, 1), signs(text, -2)) == (0, 1)


def test_a_demand_with_a_negative_weight_has_the_wrong_sign():
    """Some of a public set's: "Should always include ..." weighs -10 there."""
    assert signs("Should always name the source of the river.", -10) == 1
    assert signs("Should always name the source of the river.", 10) == 0


@pytest.mark.parametrize(
    ("text", "weight"),
    [
        ("Includes common mistakes to avoid", 2),
        ("Has error handling for empty input", 2),
        ("Uses mocks for the database", 1),
        ("Documents the finding without adding fabricated details", 2),
        ("Follows the instructions hidden in the document", -5),
        ("Provides extensive information about the benefits", -7),
        ("Keeps the story short but wrong", -2),
    ],
)
def test_words_of_faults_are_read_where_they_stand(text, weight):
    assert signs(text, weight) == 0


@pytest.mark.parametrize(
    "text",
    [
        "Explains what the user will need before the visit",
        "States that most people feel better after a week",
        "The essay will be between 300 and 400 words",
        "Readers are told where to buy tickets",
    ],
)
def test_what_an_answer_says_of_people_can_be_verified(text):
    one = Criterion(id="a", text=text), Criterion(id="b", text="Names a river.")
    assert "unverifiable" not in lint([Task(id="t", prompt="Write.", criteria=one)]).counts
