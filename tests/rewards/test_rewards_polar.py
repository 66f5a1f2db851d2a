"""Yes/no questions: what a statement says, and that saying both, or asking back, pays no more."""

from collections import Counter
from pathlib import Path

import pytest

from kit.claims import verify
from kit.claims.polar import UNREAD, said
from kit.data.formats.biorlhf import truth_of
from kit.records import Response, Task

TABLE = Path(__file__).with_name("yes_no_sentences.tsv")  # written before the reader
ROWS = [line.split("\t") for line in TABLE.read_text("utf-8").splitlines()]
ASKED = "Does KMP rescue OXPHOS in the heart?"
YES, NO = "KMP rescues OXPHOS in the heart", "KMP does not rescue OXPHOS in the heart"


def part(question, pole, text):
    truth = {**truth_of({"key_facts": [pole]}), "verifiers": ["factual"]}
    task = Task(id="t", prompt=question, truth=truth)
    return verify("factual", task, Response(task_id="t", id="r", text=text))


def test_a_right_statement_earned_nothing_without_the_word_yes_or_no():
    """ "KMP rescues OXPHOS in the heart." and "It does." earned what the wrong answer earns."""
    other = {"yes": "no", "no": "yes"}
    right = Counter(part(q, pole, text).low for pole, q, text in ROWS)
    assert right[1.0] >= 130, right  # of 160; most of the others are unread
    for pole, q, text in ROWS:
        wrong = part(q, other[pole], text)
        assert wrong.low == 0.0, text
        unread = part(q, pole, text).details["unread"]
        assert bool(unread) == bool(wrong.details["unread"]), text


@pytest.mark.parametrize(
    ("text", "pole"),
    [
        ("OXPHOS in the heart is rescued by KMP.", "yes"),
        ("Correct, KMP rescues it.", "yes"),
        ("Incorrect: it does not.", "no"),
        ("In the mouse, KMP fails to rescue OXPHOS.", "no"),
        ("KMP rescues OXPHOS in the heart, but not in the liver.", "yes"),
        ("KMP restores OXPHOS in the heart.", UNREAD),
        ("OXPHOS rescues KMP in the heart.", UNREAD),
        ("KMP may rescue OXPHOS in the heart.", ""),
        ("It is unclear whether KMP rescues OXPHOS.", ""),
        ("The heart beats.", ""),
        ("", ""),
    ],
)
def test_what_a_sentence_says_to_a_yes_no_question(text, pole):
    assert said(ASKED, text) == pole


@pytest.mark.parametrize("text", [".", "...", "!", "Hm.", "x.", "The heart.", "KMP."])
def test_nothing_said_was_yes(text):
    """A full stop alone earned 1.0 on each question whose truth is yes."""
    assert said(ASKED, text) in ("", UNREAD)
    assert said("Does Bergen have a harbour?", text) in ("", UNREAD)


def test_a_comparison_turned_round_is_not_yes():
    asked = "Do male mice lose more bone than female mice?"
    assert said(asked, "Male mice lose more bone than female mice.") == "yes"
    assert said(asked, "Female mice lose more bone than male mice.") == UNREAD


FORMS = """{y}.|{n}.|{q}|{q} {y}.|{q} {n}.|{y}. {n}.|{n}. {y}.|{y}, but {n}.|{y}; {n}.|{y} and {n}.
|{n} and {y}.|{y} or {n}.|Either {y} or {n}.|Whether {y} is open.|It does. It doesn't.|Correct.|Not so.
|It does and it doesn't.|That is correct. That is not correct.|Correct, {n}.|Incorrect: {y}.|Yes. {n}.
|No. {y}.|You ask: {q}|{y}. This is false.|{y}, whereas the cat: {n}.|It may be that {y}.|It depends.
|I do not know.|{y} = {n}|{y} / {n}|Yes and no.|Both yes and no: {y}.|{y}? {n}?"""


@pytest.mark.parametrize("form", FORMS.replace("\n", "").split("|"))
def test_both_or_the_question_back_pay_no_more_than_a_guess(form):
    text = form.format(q=ASKED, y=YES, n=NO)
    parts = [part(ASKED, pole, text) for pole in ("yes", "no")]
    assert sum(p.low for p in parts) <= 1.0
    assert not any(p.details["unread"] for p in parts), "no way out for the unsure"


LEADS = (
    "I think|I believe that|We know that|I am confident that|I would say|I expect|Yes, I think that"
)


@pytest.mark.parametrize("lead", LEADS.split("|"))
def test_what_one_thinks_believes_or_knows_is_said(lead):
    """ "I believe that KMP rescues OXPHOS." earned what the confidently wrong answer did."""
    assert [said(ASKED, f"{lead} {x}.") for x in (YES, "it does")] == ["yes", "yes"]
    if "Yes" not in lead:
        assert [said(ASKED, f"{lead} {x}.") for x in (NO, "it doesn't")] == ["no", "no"]
    assert said(ASKED, f"{lead} it does, but {lead} it doesn't.") == ""
    assert said(ASKED, f"{lead} {YES}. {lead} {NO}.") == ""


@pytest.mark.parametrize(
    "text",
    ["I don't think it does.", "I wonder whether it does.", "I know if it does.", "I think."],
)
def test_what_one_does_not_think_is_not_said(text):
    assert said(ASKED, text) not in ("yes", "no")
