"""kit.reward_function: a rubric reward that TRL, verl and open-instruct call."""

from __future__ import annotations

import asyncio
import inspect
import json
import math
import time

import pytest

import kit
from kit.__main__ import main
from kit.errors import DataError, KitError
from kit.records import Criterion, Response, Task, Verdict, fingerprint, unknown
from kit.train import evaluation


class Fake:
    """Says "met" when the criterion's text occurs in the answer; "away" gives no verdict."""

    name, workers = "fake", 64

    def __init__(self, wait=0.0):
        self.wait, self.asked, self.slowest = wait, 0, 0.0

    def key(self, task, response, c):
        return fingerprint(["fake", task.prompt, response.text, c.text])

    async def verdicts(self, task, response, criteria):
        self.asked += 1
        start = time.monotonic()
        await asyncio.sleep(self.wait)
        self.slowest = max(self.slowest, time.monotonic() - start)
        ids = dict(task_id=task.id, response_id=response.id)
        if "away" in response.text:
            return [unknown(**ids, criterion_id=c.id, failure="parse") for c in criteria]
        said = {True: "met", False: "unmet"}
        return [
            Verdict(**ids, criterion_id=c.id, status=said[c.text in response.text])
            for c in criteria
        ]


TASKS = [
    Task(id=f"t{i}", prompt=f"Say {w}.", criteria=(Criterion(id="c", text=w),))
    for i, w in enumerate(("red", "blue"))
]


def test_a_row_with_the_id_of_one_task_and_the_prompt_of_another_was_paid_by_the_first():
    """Rows that a data set numbers from 1 beside tasks numbered from 0: each was scored by the next
    task, in silence."""
    tasks = [Task(id=str(i), prompt=t.prompt, criteria=t.criteria) for i, t in enumerate(TASKS)]
    reward = kit.reward_function(tasks, Fake(), "rubric")
    said = {"prompts": ["Say red.", "Say blue."], "completions": ["red", "blue"]}
    assert reward(**said, id=[0, 1]) == reward(**said) == [1.0, 1.0]
    with pytest.raises(KitError, match="row 1 has the id 1 and the prompt of task '0'"):
        reward(**said, id=[1, 2])
    assert reward(prompts=["In short: red?"], completions=["red"], id=[0]) == [1.0]


FORM = {"mode": "gate", "answer_block": True}
FAULT = Task(
    id="f",
    prompt="Say red.",
    criteria=(Criterion(id="c", text="red"), Criterion(id="n", text="blue", weight=-2.0)),
)


@pytest.mark.parametrize("per_answer", [False, True])
def test_no_call_is_paid_for_an_answer_without_the_required_form(per_answer):
    """Every answer without <answer> was judged, criterion by criterion, for what its form decides."""
    parts = [{"kind": "rubric", "how": "net"}]
    if per_answer:
        parts.append({"kind": "rubric", "name": "more", "static": "all", "weight": 0.0})
    composer = kit.Composer.from_config({"components": parts, "format": FORM, "scale": 10})
    judge = Fake()
    f = kit.reward_function([FAULT], judge, composer)
    said = ["red", "blue", "", "<answer>red</answer>", "<answer>blue</answer>"]
    assert f(prompts=["x"] * 5, completions=said, task_id=["f"] * 5) == [-20, -20, -20, 10, -20]
    assert judge.asked == 2 and f.bill.verdicts and f.grades[0].verdicts == ()
    # The static rubrics name bad things: an answer free of them counted as missing them all.
    passed = [evaluation.fulfilled(g, {"n": -2.0}) for g in f.grades]
    assert passed == [False, False, False, True, False]  # not judged is not passed
    assert f.grades[1].parts["rubric"] is None and math.fsum(
        p for p in f.grades[4].parts.values() if p is not None
    ) == pytest.approx(-20)


def chat(text, role="assistant"):
    return [{"role": role, "content": text}]


def test_trl_calls_it_with_text_chats_and_columns():
    f = kit.reward_function(TASKS, Fake(), "rubric")
    seen = {}
    more = dict(completion_ids=[[1]] * 3, trainer_state=None, log_metric=seen.__setitem__)
    got = f(
        prompts=["x", "y", "z"],
        completions=["red", "red", "away"],
        task_id=["t0", "t1", "t0"],
        **more,
    )
    assert got == [1.0, 0.0, None] and seen == {"rubric/unknown": pytest.approx(1 / 3)}
    asked = [chat("Say red.", "user"), chat("Say blue.", "user")]
    assert f(prompts=asked, completions=[chat("red"), chat("red")]) == [1.0, 0.0]  # by prompt
    parts = [{"role": "assistant", "content": [{"type": "text", "text": "blue"}]}]
    assert f(prompts=None, completions=[parts], id=["t1"]) == [1.0]
    assert f.__name__ == "rubric" and f.bill.verdicts == 6 and len(f.grades) == 1


def test_it_is_a_coroutine_function_where_a_trainer_awaits():
    f = kit.reward_function(TASKS, Fake(), "rubric")
    assert inspect.iscoroutinefunction(f.asynchronous) and f.asynchronous.__name__ == "rubric"

    async def both():
        one = f.asynchronous(prompts=["Say red."], completions=["red"])
        two = f.asynchronous(prompts=["Say red."], completions=["away"])
        return await asyncio.gather(one, two)

    assert asyncio.run(both()) == [[1.0], [None]]

    async def cell():  # a trainer that calls it from inside its own running loop
        return f(prompts=["Say red."], completions=["red"])

    assert asyncio.run(cell()) == [1.0]


def test_verl_and_open_instruct_call_it():
    f = kit.reward_function(TASKS, Fake(), "rubric")
    row = dict(data_source="d", ground_truth="", extra_info={"task_id": "t0", "index": 3})
    assert f(solution_str="red", **row) == 1.0 and math.isnan(f(solution_str="away", **row))
    got = f(
        data_sources=["d"] * 2,
        solution_strs=["red", "red"],
        ground_truths=["t0", "t1"],
        extra_infos=[{}, None],
    )
    assert got == [1.0, 0.0]
    said = f(tokenized_prediction=[1], prediction="blue", label=["t1"], query="Say blue.")
    assert said.score == 1.0 and "c met" in said.reasoning
    assert math.isnan(f(prediction="away", label=None, query="Say blue.").score)


def test_a_row_without_a_task_and_a_call_without_answers_say_what_to_do():
    f = kit.reward_function(TASKS, Fake(), "rubric")
    with pytest.raises(KitError, match="row 2 belongs to no task"):
        f(prompts=["Say red.", "Say what?"], completions=["a", "b"])
    with pytest.raises(KitError, match="solution_str"):
        f(predictions=["a"])
    with pytest.raises(KitError, match="no column 'rubric_id'"):
        g = kit.reward_function(TASKS, Fake(), "rubric", column="rubric_id")
        g(prompts=["Say red."], completions=["a"])
    twins = [TASKS[0], Task(id="t9", prompt="Say red.", criteria=TASKS[1].criteria)]
    with pytest.raises(KitError, match="column task_id"):  # two tasks ask the same
        kit.reward_function(twins, Fake(), "rubric")(prompts=["Say red."], completions=["red"])


def test_nothing_is_paid_twice_and_a_batch_is_asked_at_once(tmp_path):
    """A fresh batch of 64 within 1.5 times its slowest call."""
    who = Fake(wait=1.0)
    f = kit.reward_function(TASKS, who, "rubric", ledger=tmp_path / "l.sqlite")
    batch = dict(prompts=["Say red."] * 64, completions=[f"red {i}" for i in range(64)])
    start = time.monotonic()
    assert f(**batch) == [1.0] * 64
    assert time.monotonic() - start <= 1.5 * who.slowest
    assert f(**batch) == [1.0] * 64 and who.asked == 64 and f.bill.cached == 64


def test_its_data_set_is_what_trl_reads():
    f = kit.reward_function(
        [Task(id="t", prompt="p", system="s", criteria=TASKS[0].criteria)], Fake()
    )
    turns = [{"role": "system", "content": "s"}, {"role": "user", "content": "p"}]
    assert list(f.dataset()) == [{"prompt": turns, "task_id": "t"}]
    assert f.dataset(chat=False)[0]["prompt"] == "p"


@pytest.mark.slow  # a real training, two steps
def test_three_lines_under_plain_trl(tmp_path):
    from kit.system.device import import_torch

    import_torch()
    from trl import GRPOConfig, GRPOTrainer

    from kit.train.config import GRPOSettings, build
    from kit.train.models import load
    from kit.train.presets import preset

    loaded = load(build(GRPOSettings, preset("test")))
    options = GRPOConfig(
        output_dir=str(tmp_path),
        max_steps=2,
        num_generations=4,
        per_device_train_batch_size=4,
        max_completion_length=8,
        report_to=[],
        use_cpu=True,
        bf16=False,
        logging_steps=1,
    )
    for asynchronous in (False, True):
        reward = kit.reward_function(TASKS, Fake(), "rubric")
        given = reward.asynchronous if asynchronous else reward
        data = reward.dataset(chat=False)
        trainer = GRPOTrainer(
            loaded.model,
            reward_funcs=given,
            args=options,
            train_dataset=data,
            processing_class=loaded.tokenizer,
        )
        trainer.train()
        logged = trainer.state.log_history[0]
        assert reward.bill.verdicts == 8 and "rewards/rubric/mean" in logged


def test_held_out_rows_are_in_no_dataset_to_train_on():
    """The README's `train_dataset=reward.dataset()` held the rows marked test and validation."""
    pytest.importorskip("datasets")
    splits = ["train", None, "test", "validation_matched", "held out", "test_sft", "train_sft"]
    tasks = [
        Task(id=f"t{i}", prompt=f"say {i}", criteria=(Criterion(id="c", text="x"),), split=s)
        for i, s in enumerate(splits)
    ]
    reward = kit.reward_function(tasks, Fake())
    assert reward.dataset()["task_id"] == ["t0", "t1", "t6"]
    assert len(reward.tasks) == 7


def test_a_file_half_read_is_refused_and_a_set_of_one_warns(tmp_path):
    """The reward trained on 7 of 8 rows, with a weight of −2 that counted 0, and said nothing."""
    check = {"name": "words", "max": 5}
    row = {"prompt": "p", "rubrics": [{"criterion": "short", "weight": "−2", "check": check}]}
    (tmp_path / "a.jsonl").write_text(json.dumps(row) + "\n" + json.dumps(row)[:30])
    with pytest.raises(DataError):
        kit.reward_function(tmp_path / "a.jsonl")
    assert main(["rewards", "rubric", str(tmp_path / "a.jsonl")]) == 2
    found = kit.load(tmp_path / "a.jsonl")
    with pytest.warns(UserWarning, match="could not be read"):
        kit.judge(found, [Response(task_id=found[0].id, id="r", text="a")])
    with pytest.warns(UserWarning, match="could not be read"):
        assert len(kit.reward_function(found).tasks) == 1
    with pytest.warns(UserWarning, match="could not be read"), pytest.raises(DataError):
        kit.train(found, "test")


@pytest.mark.parametrize("kind", ["list", "DataFrame", "Dataset", "none"])
def test_a_reward_takes_plain_rows_or_says_what_to_give(kind):
    """Rows, a datasets.Dataset and a DataFrame were an AttributeError: 'str' has no 'id'."""
    import datasets
    import pandas as pd

    check = {"name": "words", "max": 3}
    rows = [{"id": "a", "prompt": "Say hi.", "criteria": [{"text": "short", "check": check}]}]
    make = {"list": list, "DataFrame": pd.DataFrame, "Dataset": datasets.Dataset.from_list}
    given = make[kind](rows) if kind in make else None
    if kind in ("list", "Dataset"):
        assert [t.id for t in kit.reward_function(given, config="rubric").reward.tasks] == ["a"]
        assert kit.trivial(given).shape[1] > 1
        return
    for call in (kit.reward_function, kit.trivial, kit.train):
        with pytest.raises(KitError, match="DataFrame" if kind == "DataFrame" else "NoneType"):
            call(given)


def test_a_prompt_that_one_task_holds_out_is_in_no_dataset():
    """`halves` and kit.train left its twin out of the training; the reward's own dataset had it."""
    rows = [{"id": "t", "split": "test"}, {"id": "twin"}, {"id": "own", "prompt": "Say no."}]
    check = {"name": "words", "max": 3}
    given = [{"prompt": "Say hi.", "criteria": [{"text": "x", "check": check}], **r} for r in rows]
    reward = kit.reward_function(given, config="rubric")
    assert reward.dataset()["task_id"] == ["own"]
