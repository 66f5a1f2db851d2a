"""Right answers that name nothing of what is asked: read, or unread with the reason, never wrong;
and what is wrong in such words stays wrong."""

import json

import pytest

from kit.claims import known_names, verify
from kit.records import Response, Task
from kit.rewards import evolve

PAIR = "How do air pressure and temperature change with altitude?"
ONE = "How does the freezing point change when salt is added?"
RISE = "Does the freezing point rise when salt is added?"


def directed(text, prompt, **ways):
    """The value of an answer in [0, 1], or why it is not read; ways: freezing_point="down"."""
    rows = [
        {"subject": k.replace("_", " "), "direction": v, "aliases": []} for k, v in ways.items()
    ]
    task = Task(id="t", prompt=prompt, truth={"claims": rows, "verifiers": ["direction"]})
    return read("direction", task, text)


def fact(text, prompt, name, **more):
    facts = [{"id": "f", "text": name, **more}]
    return read("factual", Task(id="t", prompt=prompt, truth={"facts": facts}), text)


def read(verifier, task, text):
    part = verify(verifier, task, Response(task_id="t", id="r", text=text))
    return part.details["unread"] or part.value


@pytest.mark.parametrize(
    "text",
    ["Both decrease.", "Both fall.", "They both go down.", "They decrease.", "Both of them fall."],
)
def test_both_or_they_stand_for_all_that_is_asked_about(text):
    """Of two things that both fall "Both decrease." earned what "Both increase." did: nothing."""
    assert directed(text, PAIR, air_pressure="down", temperature="down") > 0.89
    assert directed(text, PAIR, air_pressure="up", temperature="up") == 0
    assert directed(text, PAIR, air_pressure="up", temperature="down") == 0


@pytest.mark.parametrize(
    "text",
    [
        "They rise and fall, respectively.",
        "The former rises and the latter falls.",
        "The first rises; the second falls.",
    ],
)
def test_respectively_and_the_former_are_unread_not_wrong(text):
    """With a confidence, "The former rises and the latter falls." cost like the opposite."""
    assert "names nothing that is asked about" in directed(
        text, PAIR, air_pressure="up", temperature="down"
    )
    assert directed("They rise.", PAIR, air_pressure="up", temperature="down") == 0


def test_what_they_do_to_something_else_is_not_paid():
    assert isinstance(
        directed("They increase humidity.", PAIR, air_pressure="up", temperature="up"), str
    )
    assert directed("They increase humidity.", PAIR, air_pressure="down", temperature="down") == 0


@pytest.mark.parametrize(
    "text",
    [
        "No, it falls.",
        "No - it falls.",
        "No, the freezing point falls.",
        "No it falls.",
        "No, rather it falls.",
        "No. It falls.",
        "No, it's lowered.",
    ],
)
def test_no_in_front_of_a_direction_answers_the_question(text):
    """To "Does it rise?", "No, it falls." was "it does not fall"; "No. It falls." was not."""
    assert directed(text, RISE, freezing_point="down") > 0.89
    assert directed(text, RISE, freezing_point="up") == 0
    assert directed(text, RISE, freezing_point="none") == 0


@pytest.mark.parametrize(
    "text", ["No, it stays the same.", "No, no change.", "No, it does not change."]
)
def test_no_in_front_of_no_change_says_no_change(text):
    """Nothing was read from "No, it stays the same."."""
    assert directed(text, RISE, freezing_point="none") > 0.89
    assert directed(text, RISE, freezing_point="up") == 0


@pytest.mark.parametrize(
    "text", ["No, it rises.", "No. It rises.", "No; the freezing point rises."]
)
def test_no_and_what_the_question_asks_say_two_things(text):
    """To "Does it rise?", "No. It rises." was paid."""
    assert "which direction stands is not said" in directed(text, RISE, freezing_point="up")


@pytest.mark.parametrize(
    ("text", "way"),
    [
        ("It's falling.", "down"),
        ("It’s lower.", "down"),
        ("It'll rise.", "up"),
        ("It'd rise.", "up"),
        ("It's going up.", "up"),
        ("It's unchanged.", "none"),
    ],
)
def test_a_contraction_says_what_it_says_written_out(text, way):
    """Where "It is falling." earned all, "It's falling." earned nothing."""
    for truth in ("up", "down", "none"):
        value = directed(text, ONE, freezing_point=truth)
        assert (value > 0.89) if truth == way else value == 0, (text, truth)


@pytest.mark.parametrize(
    "text", ["Yes.", "Definitely yes.", "Yes indeed.", "It does.", "Yes, both do."]
)
def test_yes_to_a_question_for_a_direction_is_unread_where_it_may_be_right(text):
    """To "Does it rise?", "Yes." cost as much as "No." did; where it falls, it is wrong."""
    assert isinstance(directed(text, RISE, freezing_point="up"), str)
    assert text == "Yes, both do." or directed(text, RISE, freezing_point="down") == 0


def test_words_without_a_known_subject_are_unread_only_where_they_may_be_right():
    """Where it rises, "A slight rise." earned nothing; a wrong guess in such words still does."""
    told = [directed("A slight rise.", ONE, freezing_point=way) for way in ("up", "down", "none")]
    assert isinstance(told[0], str) and told[1:] == [0, 0]
    told = [directed("None.", ONE, freezing_point=way) for way in ("none", "up", "down")]
    assert isinstance(told[0], str) and told[1:] == [0, 0]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Yes.",
        "No.",
        "Certainly.",
        "Salt is a mineral.",
        "I do not know.",
        "It depends.",
        "asdf qwer zxcv",
        "It may go up, it may go down, or it might not change at all.",
        ONE,
    ],
)
def test_silence_is_wrong_and_does_not_hide(text):
    assert directed(text, ONE, freezing_point="up") == 0


@pytest.mark.parametrize(
    "text", ["Certainly.", "Yep", "Yeah", "Sure.", "Absolutely.", "Nope.", "Certainly not."]
)
def test_a_yes_or_no_in_a_word_that_is_not_known_is_unread(text):
    """Where yes is right, "Certainly." was wrong."""
    for pole in ("yes", "no"):
        assert "yes or no" in fact(text, "Is a whale a mammal?", pole)


def test_true_and_false_are_yes_and_no():
    """Where yes is right "True." earned nothing, where no is "False."."""
    asked = "Is a whale a mammal?"
    assert [fact(t, asked, "yes") for t in ("True.", "False.", "Of course it is.")] == [1, 0, 1]
    assert [fact(t, asked, "no") for t in ("True.", "False.", "Of course it is.")] == [0, 1, 0]
    assert [fact(t, asked, "yes") for t in ("Not sure.", "Banana.", "", asked)] == [0, 0, 0, 0]


def test_yes_and_no_is_neither():
    """Where yes is right "Yes and no." was paid, and where no is."""
    assert [fact("Yes and no.", "Is a whale a mammal?", pole) for pole in ("yes", "no")] == [0, 0]


@pytest.mark.parametrize(
    "text",
    [
        "That's right, the left.",
        "Right, the left.",
        "The left, that's right.",
        "All right, it is the left side.",
    ],
)
def test_right_may_say_that_something_is_so(text):
    """Where the right side is meant, "That's right, the left." was paid."""
    asked = "Which side of the heart pumps blood to the lungs?"
    assert "whether the right side is meant" in fact(text, asked, "right side", aliases=["right"])
    assert fact(text, asked, "left side", aliases=["left"]) == 1
    assert fact("Right, not left.", asked, "right side", aliases=["right"]) == 1


def test_what_one_doubts_in_short_is_not_said():
    """Other than "I doubt that it is Canberra.", "I doubt it's Canberra." was paid."""
    asked = "Which city is the capital of Australia?"
    rows = (("a", asked, "Canberra"), ("b", "Which city of Australia is the largest?", "Sydney"))
    task = known_names([Task(id=i, prompt=p, truth={"facts": [{"text": t}]}) for i, p, t in rows])[
        0
    ]
    for text in (
        "I doubt it's Canberra.",
        "I doubt it.",
        "Everyone says Canberra, but it's Sydney.",
    ):
        assert read("factual", task, text) == 0, text
    for text in (
        "It's Canberra.",
        "I have no doubt it's Canberra.",
        "Everyone says Sydney, but it's Canberra.",
    ):
        assert read("factual", task, text) == 1, text


def test_what_is_counted_in_brackets_is_no_other_number():
    """A quarter was what "Four strings (G, D, A and E)." earned."""
    asked = "How many strings does a violin have?"
    four = {"text": "four strings", "number": 4}
    task = Task(id="t", prompt=asked, truth={"facts": [four]})
    assert read("factual", task, "Four strings (G, D, A and E).") == 1
    assert read("factual", task, "Four strings (or 5, or 6).") < 1


@pytest.mark.parametrize(
    "more",
    [
        {"polarity": "negative"},
        {"negative": True},
        {"sign": "-"},
        {"polarity": "fault"},
        {"fault": True},
        {"points": -2},
        {"weight": 2, "polarity": "negative"},
        {"weight": -2, "polarity": "positive"},
    ],
)
def test_a_proposal_with_another_sign_than_its_weight_is_refused(more):
    """A proposal "The answer shouts." with "polarity": "negative" made the fault pay."""
    reply = json.dumps({"criteria": [{"text": "The answer shouts.", **more}]})
    [(criterion, why)] = evolve.read(reply, 5)
    assert criterion is None and "speaks of the sign" in why


@pytest.mark.parametrize(
    "more",
    [{"weight": -2, "negative": True}, {"polarity": "positive"}, {"type": "style"}, {"id": 3}],
)
def test_a_proposal_whose_fields_agree_is_taken(more):
    [(criterion, _)] = evolve.read(json.dumps({"criteria": [{"text": "It shouts.", **more}]}), 5)
    assert criterion.weight == more.get("weight", 1)
