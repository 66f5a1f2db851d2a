"""Answers that need no skill: what they look like, and what rewards pay for them."""

import sys
from pathlib import Path

import pytest

import kit
from kit.records import Criterion, Task
from kit.rewards import Composer, parse_citations, trivial_answers

sys.path.insert(0, str(Path(__file__).parents[1] / "judging"))
DATA = Path(__file__).parents[2] / "data"
CODE = Criterion(id="short", text="short", check={"name": "words", "max": 200})
JUDGED = Criterion(id="nice", text="The answer is about penguins")
CITING = Task(id="c", prompt="Why is it?", criteria=(JUDGED,), sources={"a": "Rain.", "b": "x"})
WAYS = [{"subject": "ros", "direction": "up"}, {"subject": "fox", "direction": "down"}]
CLAIMS = Task(id="v", prompt="Is ros up or down?", truth={"claims": WAYS})
IN_FORM = "constant parrot hedge rubric_echo injection citation_stuffing sources_copied".split()


def texts(task, **more):
    return {r.source.removeprefix("trivial:"): r.text for r in trivial_answers(task, **more)}


def test_about_twenty_policies_and_your_own():
    task = Task(id="t", prompt='Write about "ice": is it ice or snow?', criteria=(JUDGED,))
    mine = texts(task, extra={"mine": lambda t: t.prompt.upper()})
    assert len(mine) == 21 and len(texts(CITING)) == 24
    assert mine["mine"] == task.prompt.upper()
    assert (mine["empty"], mine["parrot"], mine["quoted_words"]) == ("", task.prompt, "ice.")
    assert (mine["first_choice"], mine["last_choice"]) == ("ice.", "snow.")
    assert JUDGED.text in mine["rubric_echo"]
    answers = trivial_answers(task)
    assert len({r.id for r in answers}) == len(answers) and {r.task_id for r in answers} == {"t"}


def test_policies_keep_the_form_that_a_task_asks_for():
    assert [parse_citations(texts(CITING)[name]).fault for name in IN_FORM] == [""] * len(IN_FORM)
    for name, text in texts(CLAIMS).items():
        assert name == "empty" or kit.checks.AnswerForm().read_answer(text).answer, name


def rewards(tasks, **options):
    table = kit.trivial(tasks, **options)
    return table.set_index("policy")["reward"]


def test_what_neither_code_nor_judge_decides_is_unknown_never_zero():
    task = Task(id="t", prompt="Write.", criteria=(JUDGED,))
    table = kit.trivial([task]).set_index("policy")
    assert table["reward"].isna().all()
    assert (table[["low", "high", "unknown"]] == [0, 1, 1]).all(axis=None)
    # one task that code decides does not hide the other one
    assert rewards([task, Task(id="u", prompt="Write.", criteria=(CODE,))]).isna().all()


def test_the_judge_is_asked_about_what_code_cannot_decide(tmp_path):
    from fake_server import FakeServer

    tasks = [Task(id=i, prompt=f"Write {i}.", criteria=(CODE, JUDGED)) for i in "ab"]
    with FakeServer() as server:
        judge = {"endpoint": "fake", "base_url": server.url}
        table = rewards(tasks, judge=judge, ledger=tmp_path / "ledger.db")
        calls = len(server.calls)
        again = rewards(tasks, judge=judge, ledger=tmp_path / "ledger.db")
        assert len(server.calls) == calls > 0
    assert table.equals(again)
    # the fake judge falls for an echo of the rubric, and the table shows it
    assert (table["rubric_echo"], table["constant"], table["empty"]) == (1.0, 0.5, 0.0)
    assert table.index[0] == "rubric_echo"


def test_a_shut_gate_asks_no_judge():
    from fake_server import FakeServer

    composer = Composer.from_config("refiner")
    with FakeServer() as server:
        judge = {"endpoint": "fake", "base_url": server.url}
        table, empty = rewards([CITING], judge=judge, reward=composer), trivial_answers(CITING)[0]
        assert not any(c.answer == "" for c in server.calls)
    assert table["empty"] == table.min() == composer.grade(CITING, empty, []).meta["range"][0]


# the best of them says "unknown, 10%", which is right of the questions that nobody can answer
BEST = {"verifiers": 0.2, "biorlhf_published": 0.45}


@pytest.mark.parametrize("reward", BEST)
def test_policies_stay_below_right_answers_on_the_fact_tasks(reward):
    tasks = kit.load(DATA / "facts.jsonl").tasks
    answers = [r for r in kit.load(DATA / "fact_answers.jsonl").responses if r.id.endswith("-good")]
    good = kit.grade(tasks, [], reward=reward, responses=answers).estimate.value
    table = rewards(tasks, reward=reward)
    assert good > 0.9 and table.notna().all()
    assert table.max() < good - 0.4 and table.max() < BEST[reward]
    assert table["empty"] == table.min()
    assert table["parrot"] <= 0 and table["rubric_echo"] <= 0.01


def test_policies_stay_low_on_the_instructions():
    tasks = [t for t in kit.load(DATA / "instructions.jsonl").tasks if t.held_out]
    assert rewards(tasks).max() < 0.05
