"""A task of several turns: judge and policy see all of it, and keys of single-turn tasks stay what they were."""

from kit.judge import templates
from kit.judge.templates import Layout
from kit.records import Criterion, Response, Task, task_from_json, to_json
from kit.rubrics.splits import hash_of
from kit.train.answers import messages

TURNS = (
    {"role": "user", "content": "My chest hurts since noon."},
    {"role": "assistant", "content": "Does it spread to the arm?"},
)
TASK = Task(
    id="t",
    prompt="Yes, to the left one.",
    history=TURNS,
    system="Be brief.",
    criteria=(Criterion(id="c", text="Tells the user to call an ambulance."),),
)


def test_the_judge_reads_every_turn_in_order():
    answer = Response(task_id="t", id="r", text="Call 112.")
    text = templates.messages(templates.load(), TASK, answer, TASK.criteria)[1]["content"]
    places = [text.index(x) for x in ("Be brief.", "since noon", "spread to", "to the left one")]
    assert places == sorted(places)


def test_the_policy_is_given_every_turn_in_order():
    assert messages(TASK) == [
        {"role": "system", "content": "Be brief."},
        *TURNS,
        {"role": "user", "content": "Yes, to the left one."},
    ]


def test_other_turns_are_another_question_and_none_leave_old_keys_and_splits_alone():
    single = Task(id="t", prompt=TASK.prompt, system=TASK.system, criteria=TASK.criteria)
    assert Layout(TASK, "all", "x").base != Layout(single, "all", "x").base
    assert Layout(single, "all", "x").base == "b4054a32682737f9a99adf1bedee7cef"  # before turns
    assert hash_of(single) == "055441c761c50ff6b5bc96aed1fb825c" != hash_of(TASK)
    assert task_from_json(to_json(TASK)) == TASK
