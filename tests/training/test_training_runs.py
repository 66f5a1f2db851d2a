"""Whole runs with the tiny model: files, resume, dead judges, stages, chains, exports, the reward for others."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec.structs import replace
from training_cases import (
    TINY,
    FakeServer,
    Judge,
    Stop,
    demonstrations,
    farthest,
    preferences,
    stop_at,
    tasks,
    texts_of,
)

import kit
import kit.training as training
from kit import Criterion, Response, Task
from kit.data import TaskSet, load
from kit.errors import DataError, JudgeDownError, MissingError


def test_a_run_leaves_its_files_and_its_numbers(tmp_path):
    rows = []
    result = training.train(tasks(), TINY, eval_every=2, out=tmp_path / "r", on_step=rows.append)
    names = {p.name for p in result.folder.iterdir()}
    assert {"settings.json", "metrics.json", "steps.jsonl", "rollouts.jsonl"} <= names
    assert {"ledger.sqlite", "training.html", "trivial.json", "adapter"} <= names
    assert {"eval_before.json", "eval_step2.json", "eval_after.json"} <= names
    steps, rollouts = result.steps(), result.rollouts()
    assert steps["step"].tolist() == [1, 2, 3, 4] == [r["step"] for r in rows]
    assert len(rollouts) == 4 * 8
    assert set(rollouts["task_id"]) <= {"t0", "t1", "t2", "t3"}
    assert rollouts.groupby("step")["reward"].mean().tolist() == pytest.approx(
        steps["reward"].tolist()
    )
    assert {v["id"] for v in rollouts["verdicts"][0]} == {"c"}
    prompts = {t.id: t.prompt for t in tasks()}
    assert rollouts["prompt"].tolist() == [prompts[i] for i in rollouts["task_id"]]
    assert result.gain.n == 2 and "held-out reward" in result.gain.sentence
    assert {r.task_id for r in result.after.responses} == {"t4", "t5"}
    assert result.by_kind()["kind"].tolist() == ["all", "even", "odd"]
    assert "empty" in result.trivial
    page = (result.folder / "training.html").read_text()
    assert "Held-out answers" in page and "without skill on 2 prompts" in page
    again = training.train(tasks(), TINY, eval_every=2, out=tmp_path / "r", on_step=rows.append)
    assert len(rows) == 4 and again.gain == result.gain


def test_a_second_judge_pays_nothing_and_is_compared(tmp_path):
    """Both judges grade the same held-out answers; both curves are in log, page and report, with one sentence."""
    rows, other = [], Judge(lambda text: "a" in text)
    options = {**TINY, "eval_every": 2, "eval_samples": 2}
    some = tasks(check=None, n=14, held=10)
    plain = training.train(some, options, judge=Judge(), out=tmp_path / "plain")
    result = training.train(
        some, options, judge=Judge(), second=other, out=tmp_path / "r", on_step=rows.append
    )
    assert farthest(plain.adapter, result.adapter) == 0  # it pays nothing
    for name in ("before", "step2", "after"):
        look = json.loads((result.folder / f"eval_{name}.json").read_text())
        scores = [[g["score"] for g in look[grades]] for grades in ("grades", "second")]
        assert scores[0] == [len(r["text"]) % 2 == 0 for r in look["responses"]]
        assert scores[1] == ["a" in r["text"] for r in look["responses"]]
    # before, on the way, after: 10 prompts x 2 answers each
    calls = result.metrics["judge_calls"] - plain.metrics["judge_calls"]
    assert calls == other.calls == 3 * 20
    curve = result.curve()
    assert curve["step"].tolist() == [0, 2, 4] and curve.notna().all(axis=None)
    column = "heldout_reward_second"
    assert column in rows[1] and column not in rows[0]
    assert rows[1][column] == curve[column][1]
    second = result.metrics["second"]
    assert second["gain"]["value"] == pytest.approx(curve[column][2] - curve[column][0])
    assert second["difference"]["value"] == pytest.approx(
        result.gain.value - second["gain"]["value"]
    )
    is_open = second["difference"]["low"] <= 0 <= second["difference"]["high"]
    assert ("no disagreement is shown" in second["sentence"]) == is_open
    assert second["difference"]["n"] == 10
    page = kit.runs.report(tmp_path).read_text()
    for text in ((result.folder / "training.html").read_text(), page):
        assert "Gain by the second judge" in text and "the second judge" in text
        assert column in text  # a line of the figure


def test_a_resumed_run_keeps_its_second_judge_and_a_chain_has_one(tmp_path):
    some = tasks(check=None)
    seconds = [Judge(lambda text: "a" in text) for _ in range(3)]
    options = {**TINY, "eval_every": 1}
    whole = training.train(some, options, judge=Judge(), second=seconds[0], out=tmp_path / "w")
    with pytest.raises(Stop):
        training.train(
            some, options, judge=Judge(), second=seconds[1], out=tmp_path / "p", on_step=stop_at(3)
        )
    parts = training.train(some, options, judge=Judge(), second=seconds[1], out=tmp_path / "p")
    assert parts.metrics["second"] == whole.metrics["second"]
    assert parts.curve().equals(whole.curve()) and seconds[1].calls == seconds[0].calls
    with pytest.raises(DataError, match="other values of second"):
        training.train(some, options, judge=Judge(), out=tmp_path / "p")
    chain = {**TINY, "steps": 1, "stages": [{"stage": "grpo"}, {"stage": "grpo", "name": "more"}]}
    result = training.train(some, chain, judge=Judge(), second=seconds[2], out=tmp_path / "c")
    assert result.curve()["step"].tolist() == [0, 1, 1, 2]
    assert "second judge" in result.metrics["second"]["sentence"]
    ends = [
        result.stages[i].metrics["curve"][j]["heldout_reward_second"] for i, j in ((0, 0), (1, 1))
    ]
    assert result.metrics["second"]["gain"]["value"] == pytest.approx(ends[1] - ends[0])


def test_a_forecast_counts_the_second_judge(tmp_path):
    values, second = {**TINY, "eval_every": 1}, Judge()
    options = {"judge": Judge(), "second": second, "profile": "test"}
    ahead = training.forecast(tasks(check=None), values, **options)
    # one group shows what it takes, and it sees no answer that the model does not give anyway
    assert second.calls == TINY["group_size"] and "held-out ones" in str(ahead)


def test_the_updates_on_one_batch_count_its_answers_once(tmp_path):
    options = {**TINY, "iterations": 2, "eval_samples": 1}
    result = training.train(tasks(), options, out=tmp_path / "r")
    steps = result.steps()
    assert len(steps) == 4 and len(result.rollouts()) == 2 * 8
    assert sum(result.metrics["groups"].values()) == 2 * 2
    assert result.metrics["seconds_judge"] == pytest.approx(steps["seconds_judge"][::2].sum())


def test_nothing_held_out_and_cut_answers_are_reported(tmp_path):
    result = training.train(tasks(held=0), TINY, steps=1, max_answer_tokens=2, out=tmp_path / "r")
    assert "Nothing is held out" in str(result) and "cut off" in str(result)
    assert math.isnan(result.gain.value) and "nothing is held out" in result.gain.sentence
    assert "Nothing is held out" in (result.folder / "training.html").read_text()


def test_the_control_shuffles_rewards_within_groups(tmp_path):
    paid = {}
    for control in (False, True):
        options = {**TINY, "steps": 1, "control": control, "group_size": 8}
        made = training.train(
            tasks(check=None), options, judge=Judge(), out=tmp_path / str(control)
        )
        paid[control] = made.rollouts()["reward"].tolist()
    assert paid[False] == paid[True]  # the log holds what each answer earned
    assert farthest(tmp_path / "False" / "adapter", tmp_path / "True" / "adapter") > 0
    assert "control" in json.loads((tmp_path / "True" / "metrics.json").read_text())["notes"][-1]


RESUMES = [
    ("grpo", {"beta": 0.0}, 3),
    ("grpo", {"beta": 0.1}, 3),
    # step 3 is inside a batch
    ("grpo", {"iterations": 2, "beta": 0.1}, 4),
    pytest.param("grpo", {"iterations": 2, "fast": False}, 4, marks=pytest.mark.slow),
    ("sft", {}, 3),
    ("dpo", {"lr": 1e-3}, 3),
]


@pytest.mark.parametrize(("stage", "values", "stop"), RESUMES)
def test_a_resumed_run_equals_the_uninterrupted_one(tmp_path, stage, values, stop):
    source = {"grpo": tasks(), "sft": demonstrations(), "dpo": preferences()}[stage]
    options = {**TINY, **values, "stage": stage}
    whole = training.train(source, options, out=tmp_path / "whole")
    with pytest.raises(Stop):
        training.train(source, options, out=tmp_path / "parts", on_step=stop_at(stop))
    parts = training.train(source, options, out=tmp_path / "parts")
    assert farthest(whole.adapter, parts.adapter) == 0
    assert parts.steps()["loss"].tolist() == whole.steps()["loss"].tolist()
    assert parts.steps()["step"].tolist() == [1, 2, 3, 4]
    if stage == "grpo":
        assert parts.rollouts()["text"].tolist() == whole.rollouts()["text"].tolist()


def test_a_folder_holds_one_run(tmp_path):
    training.train(tasks(), TINY, steps=1, out=tmp_path / "r")
    chain = {**TINY, "steps": 1, "stages": [{"stage": "grpo"}]}
    with pytest.raises(DataError, match="another run"):
        training.train(tasks(), chain, out=tmp_path / "r")
    training.train(tasks(), chain, out=tmp_path / "c")
    with pytest.raises(DataError, match="another run"):
        training.train(tasks(), TINY, steps=1, out=tmp_path / "c")
    with pytest.raises(DataError, match="other values of lr"):
        training.train(tasks(), TINY, steps=1, lr=0.5, out=tmp_path / "r")
    some = tasks(held=0)  # the same tasks with another border
    training.train(some[:4], TINY, steps=1, heldout=some[4:], out=tmp_path / "h")
    with pytest.raises(DataError, match="other values of heldout"):
        training.train(some[:3], TINY, steps=1, heldout=some[3:], out=tmp_path / "h")
    with pytest.raises(DataError, match="already holds a run"):
        training.train(tasks(), TINY, steps=1, out=tmp_path / "r", resume=False)


def test_a_folder_holds_the_run_of_one_judge_wherever_it_is(tmp_path):
    """(prompt, prompt of the second judge, address, whether the run may go on)"""
    cases = (("a", "s", "x", 1), ("a", "s", "y", 1), ("b", "s", "x", 0), ("a", "t", "x", 0))
    for system, other, address, may_go_on in cases:
        judge, second = Judge(), Judge()
        judge.identity = {"system": system, "base_url": address}
        second.identity = {"system": other}
        options = {**TINY, "steps": 1, "second": second}
        with nullcontext() if may_go_on else pytest.raises(DataError, match="of judge_settings"):
            training.train(tasks(check=None), options, judge=judge, out=tmp_path)


KILLED = """
import sys; sys.path[:0] = [{tests!r}]
from training_cases import TINY, tasks
import kit.training as training
training.train(tasks(), TINY, steps=12, out={out!r}, on_step=lambda row: print("step", row["step"], flush=True))
"""


@pytest.mark.slow
def test_a_run_goes_on_after_kill_9(tmp_path):
    script = KILLED.format(tests=str(Path(__file__).parent), out=str(tmp_path / "killed"))
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        if line.strip() == "step 5":
            break
    time.sleep(0.1)  # somewhere inside a step, or inside a save point
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    killed = training.train(tasks(), TINY, steps=12, out=tmp_path / "killed")
    whole = training.train(tasks(), TINY, steps=12, out=tmp_path / "whole")
    assert farthest(whole.adapter, killed.adapter) == 0
    assert killed.rollouts()["text"].tolist() == whole.rollouts()["text"].tolist()


def test_a_dead_judge_is_asked_once_more_then_the_run_stops_and_goes_on(tmp_path, caplog):
    some = tasks(held=0, check=None)
    options = {**TINY, "patience_s": 0.0}
    dead = Judge(dead=range(18, 10**6))
    with pytest.raises(JudgeDownError, match=r"--resume") as e:
        training.train(some, options, judge=dead, out=tmp_path / "r")
    assert e.value.exit_code == 5
    assert "one more try" in caplog.text
    assert (tmp_path / "r" / "checkpoints" / "checkpoint-2").is_dir()
    result = training.train(some, options, judge=Judge(), out=tmp_path / "r")
    whole = training.train(some, options, judge=Judge(), out=tmp_path / "whole")
    assert farthest(whole.adapter, result.adapter) == 0
    paid = [r.metrics["judge_calls"] for r in (whole, result)]
    assert 0 < paid[0] < paid[1]  # what was paid in the step that stopped counts, too
    short = Judge(dead=range(3, 4))  # a short outage costs one wait, not the run
    training.train(some, options, steps=1, judge=short, out=tmp_path / "short")


def test_an_evaluation_in_which_the_judge_died_is_graded_again(tmp_path):
    some, judge = tasks(check=None), Judge()
    judge.failure = "transport"

    def die(row):
        judge.decide = lambda text: None if row["step"] == 4 else len(text) % 2 == 0

    first = training.train(some, TINY, judge=judge, out=tmp_path / "r", on_step=die)
    assert math.isnan(first.gain.value)
    whole = training.train(some, TINY, judge=Judge(), out=tmp_path / "whole")
    again = training.train(some, TINY, judge=Judge(), out=tmp_path / "r")
    assert again.gain == whole.gain and again.trivial == whole.trivial
    assert again.metrics["gain"] == whole.metrics["gain"]


def test_a_prompt_that_comes_twice_in_a_step_has_two_groups():
    answers = [Response(task_id="t", id=f"a{n}", text="x") for n in range(4)]
    grades = [
        kit.Grade(task_id="t", response_id=f"a{n}", score=s, score_low=s, score_high=s, parts={})
        for n, s in enumerate([0.0, 0.0, 1.0, 1.0])
    ]
    groups = training.summary(answers, grades, 2)["groups"]
    assert groups == {"mixed": 0, "good": 1, "bad": 1, "unknown": 0}


def test_steps_without_a_known_reward_are_reported_and_stop_the_run(tmp_path, caplog):
    with pytest.raises(JudgeDownError, match="no reward was known in 3 steps"):
        training.train(
            tasks(held=0, check=None), TINY, judge=Judge(lambda text: None), out=tmp_path / "r"
        )
    assert "step 1: no reward is known (abstain)" in caplog.text


def test_unknown_rewards_are_counted_and_are_no_zero(tmp_path):
    judge = Judge(lambda text: None if len(text) % 3 == 0 else len(text) % 2 == 0)
    result = training.train(tasks(held=0, check=None), TINY, judge=judge, out=tmp_path / "r")
    rollouts = result.rollouts()
    unknown = rollouts["reward"].isna()
    assert 0 < unknown.sum() == result.steps()["unknown_rewards"].sum()
    assert set(rollouts["reward"].dropna()) <= {0.0, 1.0}


def test_the_forecast_stops_a_run_that_cannot_learn(tmp_path):
    some = tasks(held=0, check={"name": "contains", "any": ["never said"]})
    with pytest.raises(DataError, match="nothing can be learned") as e:
        training.train(some, TINY, forecast=True, out=tmp_path / "r")
    assert "easier prompts" in str(e.value) and "all earn the same teach nothing" in str(e.value)
    ahead = training.forecast(tasks(held=0), TINY, profile="test")
    assert sum(ahead.groups.values()) == 6 and ahead.size == 4 and ahead.answers == 32
    assert 0 <= ahead.pass_1.value <= ahead.pass_k.value <= 1
    assert ahead.others == 0
    # before and after, and each policy without skill
    policies = len(kit.rewards.trivial_answers(tasks()[0]))
    assert training.forecast(tasks(), TINY, profile="test").others == 2 * (2 + policies)


def test_sft_learns_its_rows_in_the_chat_layout_and_never_a_held_out_one(tmp_path):
    text = "### Instruction:\nSay {i}.\n\n### Response:\nab"
    rows = [
        {"id": f"s{i}", "text": text.format(i=i), "split": "test" if i > 5 else "train"}
        for i in range(8)
    ]
    result = training.train(
        load(rows), TINY, stage="sft", steps=20, lr=4e-2, save_every=0, out=tmp_path / "r"
    )
    loss = result.steps()["loss"].tolist()
    assert loss[-1] < loss[0] / 2
    learned = json.loads((result.folder / "rows.json").read_text())
    assert len(learned) == 6 and learned[0]["prompt"] == [{"role": "user", "content": "Say 0."}]
    assert [text[:1] for text in texts_of(result.folder, tasks()[:2])] == ["a", "a"]


def test_a_file_teaches_no_held_out_prompt_of_a_config_that_asks_more(tmp_path):
    path, ask = tmp_path / "sft.jsonl", "Be short."
    prompts = [f"Say {i}." for i in range(6)] + [f"Say 5. {ask}"]
    rows = [json.dumps({"prompt": p, "completion": "ab"}) + "\n" for p in prompts]
    path.write_text("".join(rows))
    options = {**TINY, "stage": "sft", "rows": str(path), "ask": ask, "steps": 1}
    result = training.train(tasks(), options, out=tmp_path / "r")
    assert {t.prompt for t in result.heldout} == {f"Say {i}. {ask}" for i in (4, 5)}
    learned = json.loads((result.folder / "rows.json").read_text())
    asked = [row["prompt"][-1]["content"] for row in learned]
    assert asked == [f"{p} {ask}" for p in prompts[:4]]


def test_dpo_prefers_what_was_chosen(tmp_path):
    result = training.train(preferences(), TINY, stage="dpo", steps=8, out=tmp_path / "r")
    assert result.steps()["rewards/margins"].iloc[-1] > result.steps()["rewards/margins"].iloc[0]
    with pytest.raises(DataError, match="no row for sft"):
        training.train(preferences(), TINY, stage="sft", out=tmp_path / "s")


def exact(n=10):
    check = {"name": "exact", "answers": ["ab"]}
    criterion = Criterion(id="right", text="it is ab", check=check)
    return [
        Task(id=f"e{i}", prompt=f"Q{i}", criteria=(criterion,), split="heldout" if i > 6 else None)
        for i in range(n)
    ]


def test_a_chain_builds_each_stage_on_the_one_before(tmp_path):
    stages = [
        {"stage": "sft", "rows": {"source": "exact", "tasks": 4}, "steps": 10},
        {"stage": "dpo", "name": "dpo alone", "aside": True, "rows": {"source": "own"}, "steps": 2},
        {"stage": "dpo", "rows": {"source": "own"}, "steps": 2, "lr": 1e-3},
        {"stage": "grpo", "steps": 2, "lr": 1e-3},
    ]
    options = {**TINY, "lr": 3e-2, "stages": stages, "max_answer_tokens": 4}
    result = training.train(exact(), options, out=tmp_path / "c")
    assert result.table()["stage"].tolist() == ["start", "sft", "dpo alone", "dpo", "grpo"]
    assert [r.metrics["stage"] for r in result.stages] == ["sft", "dpo", "dpo", "grpo"]
    names = [p.name for p in sorted(result.folder.iterdir()) if p.is_dir()]
    assert names == ["1_sft", "2_dpo_alone", "3_dpo", "4_grpo"]
    read = [
        json.loads((result.folder / n / "settings.json").read_text())["settings"]["model"]
        for n in names
    ]
    assert [Path(m).parent.name for m in read[1:]] == ["1_sft", "1_sft", "3_dpo"]
    assert not (result.folder / "2_dpo_alone" / "merged").exists()
    assert result.before == result.stages[0].before and result.after == result.stages[-1].after
    page = (result.folder / "training.html").read_text()
    assert "Training: tiny-random" in page and "4_grpo/rollouts.jsonl" in page
    assert set(result.stages[-1].metrics["notes"]) <= set(result.metrics["notes"])
    (result.folder / "4_grpo" / "metrics.json").unlink()  # as if killed in the last stage
    again = training.train(exact(), options, out=tmp_path / "c")
    assert again.after.rewards == result.after.rewards
    with pytest.raises(
        DataError, match="another run.*\\n.*4_grpo"
    ):  # its table would be written over
        training.train(exact(), {**options, "stages": stages[:3]}, out=tmp_path / "c")
    card = training.card(result.folder / "4_grpo")
    assert "# tiny-random after training, stage grpo" in card
    with pytest.raises(MissingError, match="name a stage: 1_sft, 2_dpo_alone, 3_dpo, 4_grpo"):
        training.export(result.folder)
    import store_runs

    store_runs.main("ladder_chain", {"seed 0": result.folder}, tmp_path / "runs.json")
    stored = json.loads((tmp_path / "runs.json").read_text())["ladder_chain"]["0"]
    assert list(stored) == ["start", "sft", "dpo alone", "dpo", "grpo"]
    last = result.after.responses[0]
    assert stored["grpo"]["answers"][0] == [last.task_id, last.text, last.confidence]


def test_a_trained_run_its_base_and_an_endpoint_stand_in_one_table(tmp_path):
    some = tasks()
    result = training.train(some, TINY, steps=2, lr=1.0, out=tmp_path / "trained")
    options = {"max_tokens": 6, "ledger": tmp_path / "answers.sqlite", "progress": False}
    with FakeServer() as server:
        models = {
            "base": TINY["model"],
            "trained": result.folder,
            "endpoint": {"endpoint": "fake", "base_url": server.url},
        }
        answers = {name: kit.answer(some, model, **options) for name, model in models.items()}
        assert len(server.calls) == len(some)
    texts = {name: [r.text for r in found.responses] for name, found in answers.items()}
    assert texts["base"] != texts["trained"] and texts["endpoint"][0] == "echo: Say 0."
    comparison = kit.compare(some, answers, progress=False)
    rows = comparison.table().set_index("model")
    assert list(rows.index) == list(models) and (rows["answers"] == len(some)).all()
    assert rows.loc["base", "difference"] == "" and "n=6" in rows.loc["trained", "difference"]
    assert comparison.rewards["endpoint"].n == 6


def test_sft_learns_from_the_best_of_the_models_own_answers(tmp_path, caplog):
    options = {**TINY, "stage": "sft", "max_answer_tokens": 200, "max_length": 600, "steps": 2}
    rows = {"source": "best", "n": 6}
    # one prompt pays nothing
    judge = Judge(lambda text: text.count("a") > 1 or None)
    some = tasks(check=None, n=10, held=2)
    result = training.train(some, options, rows=rows, judge=judge, out=tmp_path / "r")
    made = json.loads((result.folder / "rows.json").read_text())
    texts = {row["prompt"][-1]["content"]: row["completion"][0]["content"] for row in made}
    assert 0 < len(texts) < 8 and all(text.count("a") > 1 for text in texts.values())
    assert f"{kit.records.count_of(len(made), 'row')} from own answers to 8 prompts" in caplog.text
    with pytest.raises(DataError, match="cannot teach dpo"):
        training.train(some, options, stage="dpo", rows=rows, judge=judge, out=tmp_path / "d")
    calls = judge.calls
    training.train(some, options, rows=rows, judge=judge, out=tmp_path / "r")
    assert judge.calls == calls


BEST = [
    # rewards of a task's answers -> the answer that is taught
    ((0.0, 1.0, 0.5), 1),
    ((0.4, 0.4), 1),  # equal, and good
    ((0.0, 0.0), None),
    ((-1.0, -0.5), 1),  # above the mean
    ((-0.5, -0.5), None),
    ((None, None), None),
    ((None, 0.2), 1),
    ((0.9, 0.3, "cut"), 1),  # the first answer is cut off
]


@pytest.mark.parametrize(("rewards", "taught"), BEST)
def test_the_best_answer_is_whole_known_and_better_than_the_others(rewards, taught):
    task = tasks()[0]
    first = rewards[-1] == "cut"
    answers = []
    for n, reward in enumerate(r for r in rewards if r != "cut"):
        response = Response(task_id="t0", id=str(n), text=f"a{n}", truncated=first and n == 0)
        grade = kit.Grade(
            task_id="t0", response_id=str(n), score=reward, score_low=0.0, score_high=1.0
        )
        answers.append((task, response, grade))
    made = [row["completion"][0]["content"] for row in training.best_answers(answers)]
    assert made == ([] if taught is None else [f"a{taught}"])


def test_a_judge_that_costs_sees_policies_without_skill_on_two_prompts(tmp_path):
    some, judge = tasks(16, 12, check=None), Judge()
    policies = len(kit.rewards.trivial_answers(some[0]))
    ahead = training.forecast(some, TINY, judge=judge, profile="test")
    assert ahead.others == 12 * 2 + 2 * policies
    result = training.train(some, TINY, steps=1, judge=judge, out=tmp_path / "r")
    assert result.metrics["trivial_prompts"] == 2 and len(result.trivial) == policies
    assert "without skill on 2 prompts" in (result.folder / "training.html").read_text()
    # equal answers are judged once
    assert result.metrics["judge_calls"] <= 8 + 2 * 12 and judge.calls <= 16 + 8 + 24 + 2 * policies


def test_a_judge_that_costs_sees_policies_without_skill_once_in_a_chain(tmp_path):
    stages = [{"stage": "grpo", "name": name} for name in ("first", "second")]
    some = tasks(16, 4, check=None)
    settings = {**TINY, "steps": 1, "stages": stages}
    result = training.train(some, settings, judge=Judge(), out=tmp_path / "r")
    assert [bool(r.trivial) for r in result.stages] == [False, True] and result.trivial
    assert result.metrics["trivial_prompts"] == 2


def test_the_report_and_the_view_read_trainings(tmp_path, capsys, monkeypatch):
    from kit.cli import main

    monkeypatch.chdir(tmp_path)
    for seed in (0, 1):
        training.train(tasks(), TINY, steps=2, seed=seed, out=tmp_path / f"all/{seed}")
        metrics = tmp_path / f"all/{seed}/metrics.json"  # the seeds differ in something
        metrics.write_text(json.dumps(json.loads(metrics.read_text()) | {"seconds": seed + 9.2}))
    chain = {**TINY, "steps": 1, "stages": [{"stage": "grpo"}, {"stage": "grpo", "name": "b"}]}
    training.train(tasks(), chain, out=tmp_path / "all/chain")
    (tmp_path / "all/dead").mkdir()
    (tmp_path / "all/dead/steps.jsonl").write_text("")
    titles = ("Gain on held-out prompts", "Strict passes", "Best without skill", "Seconds")
    for folder in ("all/0", "all/chain", "all/chain/1_grpo", "all"):
        assert main(["report", folder]) == 0
        page = (tmp_path / folder / "report.html").read_text()
        assert all(f">{title}<" in page for title in titles) and "train training" in page
        assert folder.endswith("1_grpo") or "training.html" in page
        assert "Profile: cpu. Judges: code." in page and "Data" not in page
    assert "Mean over 2 seeds, which gave 9.000 to 10.000" in page and "dead is broken" in page
    assert [f.name for f, r in kit.runs.find("all") if r.status == "done"] == ["0", "1", "chain"]
    for folder in ("all/1", "all/chain"):
        assert main(["view", folder, "--out", "v.html"]) == 0
        page = (tmp_path / "v.html").read_text().split('id="data">')[1]
        answers = json.loads(page.split("</script>")[0])["answers"]
        made = training.Result.read(folder).answers()
        assert sorted(a["text"] for a in answers) == sorted(made["answer"])
        assert {a["source"] for a in answers} == {"before", "after"}
        assert all(v["status"] in ("met", "unmet") for a in answers for v in a["verdicts"])
    training.train(tasks(held=0), TINY, steps=1, out=tmp_path / "none")
    assert (
        main(["view", "none"]) == 2 and "rollouts.jsonl has the answers" in capsys.readouterr().err
    )


@pytest.mark.slow
@pytest.mark.parametrize("config", ["ladder_chain", "ladder_confidence"])
def test_the_ladders_run_to_their_end(tmp_path, config):
    result = training.train(config, profile="test", out=tmp_path / config)
    assert len(result.table()) == len(result.stages) + 1 and result.page().exists()


def test_own_answers_become_pairs_and_confidences():
    some = exact(3)

    def answered(i, text, score, p=0.5):
        response = Response(task_id=some[i].id, id=text, text=text, confidence=p)
        verdict = verdict_on(some[i].id, text, score)
        return some[i], response, training.Reward(some).composer.grade(some[i], response, [verdict])

    pairs = training.pairs([answered(0, "xx", 0.0), answered(0, "yy", 0.0), answered(1, "ab", 1.0)])
    assert [(p["chosen"][0]["content"], p["rejected"][0]["content"]) for p in pairs] == [
        ("ab", "xx")
    ]
    decided = [(some[i % 3], "ab", i % 3 == 0, 0.9 if i % 3 == 0 else 0.1) for i in range(30)]
    levels = [row["completion"][0]["content"] for row in training.estimates(decided)]
    assert levels[0] > levels[1] and all(x.startswith("ab. Confidence: ") for x in levels)


def test_answers_that_are_all_cut_off_teach_nothing_and_say_so(tmp_path):
    stages = [{"stage": "sft", "rows": {"source": "estimates"}}]
    with pytest.raises(DataError, match="answers is whole") as e:
        training.train(exact(), {**TINY, "max_answer_tokens": 2, "stages": stages}, out=tmp_path)
    assert "raise max_answer_tokens" in str(e.value)


def verdict_on(task_id, response_id, value):
    from kit import Verdict

    status = "met" if value else "unmet"
    return Verdict(
        task_id=task_id, response_id=response_id, criterion_id="right", status=status, judge="code"
    )


def test_the_ledger_pays_nothing_twice_and_a_merged_export_answers_alike(tmp_path):
    result = training.train(tasks(), TINY, steps=2, out=tmp_path / "r")
    merged = training.export(result.folder, "merged")
    card = (merged / "README.md").read_text()
    assert result.gain.sentence in card and "| model | tiny-random |" in card
    direct = texts_of(result.folder, tasks())
    again = training.train(
        tasks(),
        {**TINY, "model": str(merged)},
        steps=1,
        lr=1e-9,
        out=tmp_path / "s",
        eval_temperature=0,
    )
    assert [r.text for r in again.before.responses] == direct[4:]
    card = training.card(again.folder)
    assert "| model | merged |" in card and str(tmp_path) not in card
    assert (
        training.export(result.folder, "adapter", tmp_path / "a") / "adapter_config.json"
    ).exists()
    with pytest.raises(MissingError, match="no finished run"):
        training.export(tmp_path)
    resumed = training.train(
        tasks(), TINY, steps=1, adapter=str(result.adapter), out=tmp_path / "t", eval_temperature=0
    )
    assert [r.text for r in resumed.before.responses] == direct[4:]


RLVR = {
    "prompt": "Greet me.",
    "rubric - 1. criterion": "It greets.",
    "rubric - 1. check": {"name": "contains", "any": ["hello"]},
    "rubric - 2. criterion": "It is short.",
    "rubric - 2. check": {"name": "words", "max": 5},
    "rubric - 3. criterion": "",
}
REFINER = {
    "prompt": "How far does it go?",
    "sources": {"S1": "It goes 85 km.", "S2": "It weighs 34 kg."},
    "positive_rubrics": [{"title": "range", "description": "States 85 km."}],
    "negative_rubrics": [{"title": "weight", "description": "States the weight."}],
}
TRUTH = {"Liver": "UP", "eye": "down"}
BIORLHF = {
    "prompt": "How does the pathway change in the liver?",
    "ground_truth": json.dumps({"pathway": "oxphos", "direction": "DOWN", "tissue": "liver"}),
    "question_type": "direction",
    "applicable_verifiers": json.dumps(["V1", "V4"]),
    "source": "made up",
    "difficulty": "easy",
}


@pytest.mark.parametrize(
    ("config", "row", "theirs"),
    [
        ("rlvr", RLVR, {"groups_per_batch": 2, "learning_rate": 1e-3, "max_tokens": 6}),
        (
            "refiner",
            REFINER,
            {"num_unique_prompts_rollout": 2, "kl_estimator": "kl3", "verification_reward": 5},
        ),
        ("biorlhf", BIORLHF, {"num_generations": 4, "hold_out_tissues": ["eye"]}),
    ],
)
def test_the_three_systems_train_on_rows_of_their_own_shape(tmp_path, config, row, theirs):
    own = [{"task_id": f"r{i}", "prompt": f"{row['prompt']} ({i})"} for i in range(10)]
    tissues = [
        {"tissue": ("liver", "eye")[i % 2]} if "ground_truth" in row else {} for i in range(10)
    ]
    rows = [{**row, **o, **t} for o, t in zip(own, tissues, strict=True)]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    out = tmp_path / config
    result = training.train(
        config, data_path=str(tmp_path / "rows.json"), profile="test", out=out, **theirs
    )
    passes = 2 if config == "biorlhf" else 1  # over a batch
    assert len(result.steps()) == 2 and len(result.rollouts()) == 2 * 8 / passes
    held = {r.task_id for r in result.after.responses}
    assert held and not held & set(result.rollouts()["task_id"])
    if config == "biorlhf":
        assert held == {f"r{i}" for i in range(1, 10, 2)}


def test_the_reward_function_fits_trl_verl_and_coroutines(tmp_path):
    import asyncio

    path = tmp_path / "rows.jsonl"
    rows = [
        {
            "id": "t",
            "prompt": "Greet.",
            "rubrics": [{"text": "short", "check": {"name": "words", "max": 3}}, "kind"],
        }
    ]
    path.write_text(json.dumps(rows[0]) + "\n")
    known = training.reward_function(
        [Task(id="t", prompt="p", criteria=load(rows).tasks[0].criteria[:1])]
    )
    logged = {}
    chat = [[{"role": "assistant", "content": "Hello!"}], "one two three four"]
    assert known(chat, task_id=["t", "t"], log_metric=logged.__setitem__) == [1.0, 0.0]
    assert logged["unknown_rewards"] == 0 and logged["part/rubric"] == 0.5
    assert known.compute_score("x", "Hello!", None, {"task_id": "t"}) == 1.0
    assert asyncio.run(known.acall(["Hello!"], ["t"])) == [1.0]
    calls = [[{"role": "assistant", "content": None, "tool_calls": []}], [{"role": "tool"}], []]
    assert known(calls, task_id=["t"] * 3) == known(["", "", ""], task_id=["t"] * 3)
    unknown = training.reward_function(str(path))  # no judge decides "kind"
    assert unknown(["Hello!"], task_id=["t"]) == [None]
    assert math.isnan(unknown.compute_score("t", "Hello!", None))
    with pytest.raises(DataError, match="no column `task_id`"):
        known(["Hello!"])
    with pytest.raises(DataError, match="did you mean"):
        known(["Hello!"], task_id=["tt"])


def test_stored_runs_are_graded_again():
    runs = training.stored("ladder_chain")
    table = runs.table()
    assert table["stage"].tolist()[-1] == "grpo" and table["mean"].iloc[-1] > 0.5
    assert runs.over_seeds().n == 3 and runs.gain().n == 120
    for column in ("right", "reward"):
        nouns = {runs.gain(column=column).noun, runs.over_seeds(column=column).noun}
        assert nouns == {f"{column}, grpo less start"}
    with pytest.raises(DataError, match="did you mean"):
        training.stored("ladder_chains")


NOTE = {"id": "n", "text": "recorded only", "weight": 0.0}
FAULTS = [{"id": "f", "text": "faults", "weight": -1.0}, {"id": "n", "text": "one", "parent": "f"}]


@pytest.mark.parametrize(
    ("more", "verdicts", "value", "failed"),
    [
        ([NOTE], {"a": ["met"], "n": ["unmet"]}, 1, "n (unmet)"),
        ([NOTE], {"a": ["met"]}, 1, ""),
        ([NOTE], {"a": ["unmet"], "n": ["met"]}, 0, "a (unmet)"),
        ([NOTE], {"a": ["unmet", "met"], "n": ["met"]}, None, ""),
        ([NOTE], {"n": ["met"]}, None, ""),
        ([{**NOTE, "required": True}], {"a": ["met"], "n": ["unmet"]}, 0, "n (unmet)"),
        ([{**NOTE, "weight": -1.0}], {"a": ["met"], "n": ["met"]}, 0, "n (met)"),
        ([{**NOTE, "weight": -1.0}], {"a": ["met"], "n": ["unmet"]}, 1, ""),
        (FAULTS, {"a": ["unmet"], "n": ["met"]}, 0, "a (unmet), n (met)"),
        (FAULTS, {"a": ["met"], "n": ["unmet"]}, 1, ""),
    ],
)
def test_an_answer_passes_by_what_is_scored(more, verdicts, value, failed):
    criteria = tuple(Criterion(**row) for row in [{"id": "a", "text": "x"}, *more])
    task = Task(id="t", prompt="p", criteria=criteria)
    rows = [
        kit.Verdict(task_id="t", response_id="r", criterion_id=c, status=s)
        for c, every in verdicts.items()
        for s in every
    ]
    answer = Response(task_id="t", id="r", text="x")
    grade = kit.grade([task], rows, responses=[answer])[0]
    assert training.passes(task, answer, grade) == value
    assert value is None or (grade.score == 1) == bool(value)
    look = training.Evaluation(name="before", responses=(answer,), grades=(grade,))
    none = training.Evaluation(name="after", responses=(), grades=())
    result = training.Result(folder=".", metrics={}, heldout=(task,), before=look, after=none)
    assert set(result.answers()["failed"]) == {failed}


def test_the_calibration_of_ten_answers_is_in_the_metrics_with_an_interval():
    check = {"name": "exact", "answers": ["ab"]}
    some = [
        Task(id=f"t{i}", prompt="p", criteria=(Criterion(id="c", text="x", check=check),))
        for i in range(12)
    ]
    answers = [
        Response(task_id=t.id, id="r", text="ab" if n % 3 else "b", confidence=0.9)
        for n, t in enumerate(some)
    ]
    verdicts = kit.judge(some, answers, ledger=False, progress=False)
    grades = tuple(kit.grade(some, verdicts, responses=answers))
    look = training.Evaluation(name="after", responses=tuple(answers), grades=grades)
    metrics = training.comparison(look, look, some)
    error = metrics["calibration_after"]["tokens"]
    assert error["low"] <= error["value"] <= error["high"] and error["n"] == 12
    assert metrics["gain"]["value"] == 0 and metrics["strict_after"]["value"] == pytest.approx(
        2 / 3
    )


def test_what_is_not_met_is_known_and_bad():
    weights = {"good": 1.0, "unknown": 1.0, "unmet": 1.0, "absent fault": -1.0, "fault": -1.0}
    criteria = tuple(Criterion(id=i, text=i, weight=w) for i, w in weights.items())
    statuses = ["met", "unknown", "unmet", "unmet", "met"]
    verdicts = [
        kit.Verdict(
            task_id="t",
            response_id="r",
            criterion_id=c,
            status=s,
            failure="abstain" if s == "unknown" else None,
        )
        for c, s in zip(weights, statuses, strict=True)
    ]
    task = Task(id="t", prompt="p", criteria=criteria)
    grade = kit.grade([task], verdicts, responses=[Response(task_id="t", id="r", text="x")])[0]
    assert training.failures(task, grade) == ["unmet", "fault"]


def test_a_gain_on_other_prompts_is_refused(tmp_path):
    result = training.train(tasks(), TINY, steps=1, out=tmp_path / "r")
    look = result.after
    part = training.Evaluation(name="after", responses=look.responses[:1], grades=look.grades[:1])
    with pytest.raises(DataError, match="other prompts"):
        training.gain(result.before, part)


TRACKED = """
import sys; sys.path[:0] = [{tests!r}]
from training_cases import TINY, tasks
import kit.training as training
training.train(tasks(), TINY, steps=1, report_to={name!r}, out={out!r})
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["wandb", "trackio"])
def test_a_tracker_gets_parts_and_verdicts(tmp_path, name):
    pytest.importorskip(name)
    script = TRACKED.format(tests=str(Path(__file__).parent), name=name, out=str(tmp_path / "r"))
    offline = {"WANDB_MODE": "offline", "HF_HUB_OFFLINE": "1"}
    folders = dict.fromkeys(("WANDB_DIR", "TRACKIO_DIR"), str(tmp_path / "t"))
    # trackers read their folders when they are imported, and write the last rows at the end
    subprocess.run([sys.executable, "-c", script], env=os.environ | offline | folders, check=True)
    written = b"".join(p.read_bytes() for p in (tmp_path / "t").rglob("*") if p.is_file())
    assert b"train/part/rubric" in written and b"verdicts" in written


def test_extra_columns_and_metrics_reach_the_trainers_table(tmp_path):
    import pandas as pd

    options = {"log_completions": True}
    result = training.train(tasks(), TINY, steps=1, options=options, out=tmp_path / "r")
    table = pd.read_parquet(next(tmp_path.rglob("completions_*.parquet")))
    assert set(table["verdicts"]) <= {"c: met", "c: unmet"}
    assert result.steps()[["part/rubric", "unknown_rewards"]].notna().all(axis=None)


def test_a_tracker_that_is_missing_is_named_before_the_model_is_loaded():
    name = next(n for n in ("mlflow", "trackio", "wandb") if importlib.util.find_spec(n) is None)
    with pytest.raises(MissingError, match=f"pip install {name}"):
        training.build({"report_to": name}, profile="test")
    assert training.build({"report_to": "none"}, profile="test").report_to == ()
    with pytest.raises(DataError, match="wandbb"):
        training.build({"report_to": "wandbb"}, profile="test")


class FakeHub:
    """huggingface_hub.HfApi as `push_to_hub` uses it; `down` : as without a network."""

    down, repos, files = False, {}, {}

    def create_repo(self, name, **options):
        if self.down:
            raise ConnectionError("offline mode is enabled")
        self.repos[name] = options

    def upload_folder(self, *, repo_id, folder_path):
        self.files[repo_id] = {p.name: p for p in Path(folder_path).iterdir()}
        return f"https://hub/{repo_id}"


def test_a_push_to_the_hub_brings_files_and_card(tmp_path, monkeypatch):
    result = training.train(tasks(), TINY, steps=1, out=tmp_path / "r")
    monkeypatch.setattr("huggingface_hub.HfApi", FakeHub)
    for to, file in (("adapter", "adapter_model.safetensors"), ("merged", "model.safetensors")):
        assert training.push_to_hub(result.folder, f"me/{to}", to) == f"https://hub/me/{to}"
        assert FakeHub.repos[f"me/{to}"]["private"] and file in FakeHub.files[f"me/{to}"]
        card = FakeHub.files[f"me/{to}"]["README.md"].read_text()
        # the hub refuses a base model that is no name of its own
        assert result.gain.sentence in card and "base_model" not in card
    monkeypatch.setattr(FakeHub, "down", True)
    with pytest.raises(MissingError, match="HF_TOKEN") as e:
        training.push_to_hub(result.folder, "me/x")
    assert "offline mode is enabled" in str(e.value) and "export/adapter" in str(e.value)
    path = result.folder / "settings.json"
    path.write_text(path.read_text().replace("tiny-random", "SmolLM2-135M-Instruct"))
    assert "base_model: HuggingFaceTB/SmolLM2-135M-Instruct" in training.card(result.folder)


def test_a_full_disk_ends_with_a_sentence_and_the_run_goes_on(tmp_path, monkeypatch):
    def full(row):
        if row["step"] == 3:
            raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=4096))
        with pytest.raises(MissingError, match="the disk is full") as e:
            training.train(tasks(), TINY, out=tmp_path / "r", on_step=full)
    assert e.value.exit_code == 3 and "--resume goes on" in str(e.value)
    result = training.train(tasks(), TINY, out=tmp_path / "r")
    whole = training.train(tasks(), TINY, out=tmp_path / "whole")
    assert farthest(whole.adapter, result.adapter) == 0


def test_a_task_set_without_tasks_says_what_is_missing(tmp_path):
    with pytest.raises(DataError, match="no tasks to train on"):
        training.train(TaskSet(tasks=[]), TINY, out=tmp_path / "r")


REFUSES = (
    "{% if messages[0]['role'] == 'system' %}"
    "{{ raise_exception('System role not supported') }}{% endif %}"
)
ALTERNATES = (
    "{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}{{ m['content'] }}{% endfor %}"
)
DROPS = "{% for m in messages if m['role'] != 'system' %}{{ m['content'] }}{% endfor %}"


@pytest.mark.parametrize(
    ("template", "more", "reason"),
    [
        (REFUSES, {"system": "Be brief."}, "System role not supported"),
        (
            ALTERNATES,
            {"history": ({"role": "developer", "content": "Be brief."},)},
            "must alternate",
        ),
        (DROPS, {"system": "Be brief."}, "does not take these turns"),
    ],
)
def test_a_template_without_a_system_role_ends_before_the_model_loads(
    tmp_path, template, more, reason
):
    # A folder without weights: loading the model would be another error.
    tokenizer = training.tiny_tokenizer()
    tokenizer.chat_template = template
    tokenizer.save_pretrained(tmp_path / "model")
    (tmp_path / "model" / "config.json").write_text("{}")
    rows = [replace(t, **more) for t in tasks()]
    with pytest.raises(DataError, match=reason) as error:
        training.train(rows, {**TINY, "model": str(tmp_path / "model")}, out=tmp_path / "r")
    assert "t0" in error.value.where and "into the prompt" in error.value.fix


def test_a_start_that_failed_does_not_block_its_folder(tmp_path):
    dead = Judge(dead=range(10**6))
    with pytest.raises(JudgeDownError):
        training.train(tasks(check=None), TINY, judge=dead, patience_s=0.0, out=tmp_path / "r")
    options = {**TINY, "steps": 1, "lr": 0.5}
    result = training.train(
        tasks(check=None), options, judge=Judge(), out=tmp_path / "r", resume=False
    )
    assert result.settings["lr"] == 0.5 and len(result.steps()) == 1
    with pytest.raises(DataError, match="already holds a run"):
        training.train(tasks(check=None), options, judge=Judge(), out=tmp_path / "r", resume=False)


THINKS = """{% for m in messages %}{{ m['role'] + ': ' + m['content'] + '\n' }}{% endfor %}\
{% if add_generation_prompt %}{{ 'a:' if think is false else 'think:' }}{% endif %}"""


@pytest.mark.parametrize("stage", ["grpo", "sft", "dpo"])
def test_options_of_the_chat_template_hold_in_training_and_evaluation(tmp_path, monkeypatch, stage):
    from transformers import PreTrainedTokenizerFast

    seen, whole = [], PreTrainedTokenizerFast.apply_chat_template

    def watch(self, conversation, **options):
        first = conversation[0] if isinstance(conversation[0], list) else conversation
        if first[-1]["role"] == "user" and options.get("tokenize") is not False:
            seen.append(options.get("think"))
        return whole(self, conversation, **{**options, "chat_template": THINKS})

    monkeypatch.setattr(PreTrainedTokenizerFast, "apply_chat_template", watch)
    source = {"grpo": tasks(), "sft": demonstrations(), "dpo": preferences()}[stage]
    options = {**TINY, "stage": stage, "steps": 1, "save_every": 0}
    options["options"] = {"chat_template_kwargs": {"think": False}}
    held_out = None if stage == "grpo" else tasks()[4:]
    training.train(source, options, heldout=held_out, out=tmp_path / "r")
    assert set(seen) == {False}


@pytest.mark.parametrize(("micro_rows", "sizes"), [(0, [8]), (2, [4, 4])])
def test_answers_are_generated_in_parts(tmp_path, monkeypatch, micro_rows, sizes):
    from transformers import GenerationMixin

    seen, whole = [], GenerationMixin.generate

    def watch(self, *args, **more):
        seen.append(len(more["input_ids"]))
        return whole(self, *args, **more)

    monkeypatch.setattr(GenerationMixin, "generate", watch)
    texts = []
    for fast in (False, True):
        seen.clear()
        options = {**TINY, "steps": 1, "micro_rows": micro_rows, "fast": fast}
        out = tmp_path / f"{fast}"
        texts.append(training.train(tasks(held=0), options, out=out).rollouts()["text"].tolist())
        assert seen == sizes
    assert texts[0] == texts[1]
