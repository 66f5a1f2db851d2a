"""The playground: edits of criteria, weights and the prompt, judged beside the old ones; nothing is paid twice."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

import kit
from kit.data import TaskSet
from kit.records import Criterion, Response, Task, Verdict
from kit.system import paths
from kit.tuning import Playground

PATH = Path(__file__).parents[1] / "judging" / "fake_server.py"
spec = importlib.util.spec_from_file_location("fake_server_of_tuning", PATH)
fake = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fake)
EVIL = "<img src=x onerror=alert(1)> river"


@pytest.fixture
def server():
    # It says met where the last word of the criterion is in the answer.
    with fake.FakeServer() as running:
        yield running


@pytest.fixture
def play(server, tmp_path, monkeypatch):
    monkeypatch.setenv("KIT_JUDGE_KEY", "test")
    criteria = (Criterion(id="a", text="Names a river"), Criterion(id="b", text="Names a hill"))
    tasks = [Task(id=f"t{i}", prompt="Where?", criteria=criteria) for i in range(12)]
    answers = [Response(task_id=t.id, id=f"r-{t.id}", text=f"{EVIL} {t.id}") for t in tasks]
    label = Verdict(task_id="t0", response_id="r-t0", criterion_id="b", status="met", judge="human")
    return Playground(
        TaskSet(tasks=tasks, responses=answers, verdicts=[label]),
        judge={"endpoint": "fake", "base_url": server.url},
        out=tmp_path / "edited",
        ledger=tmp_path / "ledger.db",
    )


def test_an_edit_flips_a_verdict_and_is_paid_once(play, server):
    answers = play.choose_answers("t0", 1)
    play.edit("t0", "b", text="Names no river", weight=3.0)
    assert play.estimate(answers).calls == 2
    text = play.compare(answers).text
    assert "1 of 2 verdicts flipped" in text and "Score of r-t0: .50, now 1.00." in text
    assert all(f"verdicts: {who}" in text for who in ("before", "now", "human"))
    assert "<img" not in text and "&lt;img" in text
    assert (len(server.calls), play.estimate(answers).calls) == (2, 0)
    play.compare(answers)
    assert len(server.calls) == 2


def test_a_weight_changes_the_score_and_no_verdict(play):
    answers = play.choose_answers("t3", 1)
    play.edit("t3", "a", weight=3.0)
    text = play.compare(answers).text
    assert "0 of 2 verdicts flipped" in text and "Score of r-t3: .50, now .75." in text


def test_ten_answers_begin_with_those_of_the_task(play):
    answers = play.choose_answers("t11", 10)
    assert len(answers) == 10 and answers[0].task_id == "t11"


def test_what_is_kept_can_be_read(play):
    play.edit("t0", "b", text="Names no river", weight=-2.0)
    play.prompt = "Be strict."
    folder = play.keep()
    criterion = kit.load(folder / "rubrics.jsonl").tasks[0].criteria[1]
    assert (criterion.text, criterion.weight) == ("Names no river", -2.0)
    assert (folder / "prompt.txt").read_text() == "Be strict.\n"
    judge = kit.judge_of({"endpoint": "m", "prompt": str(folder / "prompt.txt")})
    assert "Be strict." in judge.system


def test_the_fields_edit_and_the_button_says_the_cost(play, server):
    menu, number, _, fields, _, prompt, buttons, result = play.controls().children
    run, keep = buttons.children
    assert run.description.startswith("Judge: at most 2 calls")
    run.click()
    assert run.description == "Judge: free, all stored" and "0 of 2" in result.value
    fields.children[1].children[1].value = "Names no river"
    assert run.description.startswith("Judge: at most 1 call,")
    number.value = 10
    assert run.description.startswith("Judge: at most 19 calls")
    prompt.value = "Be strict."
    assert run.description.startswith("Judge: at most 19 calls")
    run.click()
    # 9 more answers before, 10 now
    assert len(server.calls) == 20 and run.description == "Judge: free, all stored"
    menu.value = "t5"
    assert fields.children[1].children[1].value == "Names a hill" and len(server.calls) == 20
    keep.click()
    assert "rubrics.jsonl" in result.value and (play.out / "prompt.txt").exists()


def test_a_recorded_judge_says_where_it_has_no_verdict():
    play = Playground(
        kit.load(paths.data("judge_labels.jsonl")), judge="replay:small", ledger=False
    )
    answer = play.tasks.responses[0]
    run = play.controls().children[-2].children[0]
    assert run.description == "Judge: free, all stored"
    play.edit(answer.task_id, play.tasks.by_id[answer.task_id].criteria[0].id, text="Is new.")
    assert play.cost([answer]) == "this judge has no verdict for a changed text"


def test_a_judge_that_is_down_is_shown(play, server):
    play.judge = {"endpoint": "fake", "base_url": "http://127.0.0.1:9/v1"}
    *_, buttons, result = play.controls().children
    buttons.children[0].click()
    assert "127.0.0.1:9" in result.value and result.value.startswith("<pre>")


def test_a_judge_without_a_prompt_is_refused(play):
    with pytest.raises(kit.DataError, match="no prompt to begin with"):
        Playground(play.tasks, judge="code")
