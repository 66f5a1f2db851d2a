"""A resumed run equals the uninterrupted one, to the bit, on a CPU. Offline, tiny random model, float32.

The incident: with beta > 0 trl saves a second adapter, and transformers then loads the folder "ref" alone:
|lora_B| at step 4 was .530 uninterrupted and .114 resumed, and nothing said so.
"""

from __future__ import annotations

import dataclasses
import errno
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from kit.errors import JudgeDownError, KitError
from kit.records import Criterion, Task, Verdict
from kit.train import grpo, line, monitor, resume, rollouts, stages
from kit.train.config import DPOSettings, GRPOSettings, SFTSettings, build
from kit.train.presets import preset

CODE = Criterion(
    id="c1", text="Contains a letter of a-j.", check={"name": "contains", "any": list("abcdefghij")}
)
CODE2 = Criterion(
    id="c2",
    text="Contains one of k-t or 0-3.",
    check={"name": "contains", "any": list("klmnopqrst0123")},
)
TASKS = [Task(id=f"t{i}", prompt=f"say {i}", criteria=(CODE, CODE2)) for i in range(5)]
ROWS = [{"prompt": f"say {i}", "response": "abc" * (1 + i % 3)} for i in range(10)]
PAIRS = [{"prompt": f"say {i}", "chosen": "abc", "rejected": "xyz" * (1 + i % 2)} for i in range(8)]


class Stop(Exception):
    pass


def stop_at(step):
    def call(row):
        if row["step"] == step:
            raise Stop

    return call


def settings(**changes):
    base = dict(steps=4, save_every=2, group_size=4, prompts_per_step=2, max_answer_tokens=4)
    return build(GRPOSettings, {**preset("test"), **base, "keep": 9, **changes})


def weights(result):
    from safetensors.torch import load_file

    return load_file(result.adapter / "adapter_model.safetensors")


def same(a, b):
    import torch

    a, b = weights(a), weights(b)
    assert a.keys() == b.keys() and not any("ref" in k for k in a)
    assert any(v.abs().sum() > 0 for k, v in a.items() if "lora_B" in k)
    return all(torch.equal(a[k], b[k]) for k in a)


def told(rows):
    """What two runs must share, in their logs too."""
    return [
        {
            k: v
            for k, v in r.items()
            if "second" not in k and k not in ("time", "judge_calls", "judge_bill")
        }
        for r in rows
    ]


def check(whole, resumed):
    assert same(whole, resumed)
    a, b = told(whole.steps()), told(resumed.steps())
    for x, y in zip(a, b, strict=True):
        assert x == y
    assert [(r["text"], r["reward"], r["advantage"]) for r in whole.rollouts()] == [
        (r["text"], r["reward"], r["advantage"]) for r in resumed.rollouts()
    ]


def both(tmp_path, s, *, stop, **more):
    whole = grpo.train(s, TASKS, out=tmp_path / "whole", **more)
    with pytest.raises(Stop):
        grpo.train(s, TASKS, out=tmp_path / "cut", on_step=stop_at(stop), **more)
    return whole, grpo.train(s, TASKS, out=tmp_path / "cut", resume=True, **more)


@pytest.mark.parametrize(
    "changes",
    [
        dict(beta=0.1),
        dict(beta=0.1, iterations=2, save_every=3),
        dict(iterations=2, lora_dropout=0.2, save_every=1),
    ],
)
def test_resumed_equals_uninterrupted(tmp_path, changes):
    check(*both(tmp_path, settings(**changes), stop=3 if changes.get("save_every") == 1 else 4))


@pytest.mark.slow  # 48 pairs of runs, about a second each
@pytest.mark.parametrize(
    ("beta", "kl", "iterations", "save_every", "stop", "more"),
    [
        (beta, kl, iterations, save_every, stop, more)
        for (beta, kl), iterations, (save_every, stop), more in itertools.product(
            [(0.0, "k3"), (0.1, "k3"), (0.1, "k2"), (0.1, "k1")],
            [1, 2],
            [(2, 4), (3, 5)],
            [{}, {"substeps": 2, "micro_rows": 2, "lora_dropout": 0.1}, {"fast": False}],
        )
    ],
)
def test_the_whole_matrix(tmp_path, beta, kl, iterations, save_every, stop, more):
    s = settings(beta=beta, kl=kl, iterations=iterations, save_every=save_every, steps=6, **more)
    check(*both(tmp_path, s, stop=stop))


@pytest.mark.slow  # three trainings
@pytest.mark.parametrize("beta", [0.0, 0.1])
def test_with_an_adapter_to_go_on_from(tmp_path, beta):
    """The reference of the KL term is the adapter that the run started from, also after a stop."""
    first = grpo.train(settings(lr=1e-2), TASKS, out=tmp_path / "first")
    s = settings(beta=beta, adapter=str(first.adapter), iterations=2, save_every=3)
    whole, resumed = both(tmp_path, s, stop=4)
    check(whole, resumed)
    if beta:
        assert whole.steps()[0]["kl"] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.slow  # two trainings with a KL term
def test_after_a_dead_judge(tmp_path, monkeypatch):
    from test_train_grpo import FakeJudge
    from test_train_grpo import tasks as judged

    monkeypatch.setattr("kit.train.reward.Reward.pause_s", 0.01)
    s = settings(beta=0.1, save_every=0, lora_dropout=0.2, patience_s=0.05)
    whole = grpo.train(s, judged(4), judge=FakeJudge(), out=tmp_path / "whole")
    with pytest.raises(JudgeDownError):
        down = FakeJudge(down_calls=range(16, 10_000))
        grpo.train(s, judged(4), judge=down, out=tmp_path / "cut")
    check(whole, grpo.train(s, judged(4), judge=FakeJudge(), out=tmp_path / "cut", resume=True))


@pytest.mark.parametrize("beta", [0.1, pytest.param(0.0, marks=pytest.mark.slow)])
def test_an_evaluation_in_which_the_judge_died_is_done_again(tmp_path, monkeypatch, beta):
    """Half judged it was kept as finished: "before" was .807 of 5 prompts for .589 of 6. One while
    training left its step out of steps.jsonl."""
    from test_train_grpo import FakeJudge
    from test_train_grpo import tasks as judged

    class Unkept:  # without a key: each evaluation asks
        name = "unkept"

        def __init__(self, **more):
            self.fake = FakeJudge(**more)

        async def verdicts(self, *asked):
            return await self.fake.verdicts(*asked)

    def evaluated(out):
        files = {p.name: grpo.evaluation.read(p) for p in out.glob("eval_*.json")}
        return {k: (e.responses, e.scores) for k, e in files.items()}

    monkeypatch.setattr("kit.train.reward.Reward.pause_s", 0.001)
    changes = dict(beta=beta, steps=2, group_size=2, save_every=0, patience_s=0.002, eval_every=1)
    s, some, held = settings(**changes), judged(2), judged(1, prefix="h")
    judge = Unkept()
    whole = grpo.train(s, some, judge=judge, heldout=held, out=tmp_path / "whole")
    n, trivial = judge.fake.calls, len(whole.gain.trivial)
    begins = {"before": 0, "trivial": 2, "step1": 2 + trivial + 4, "after": n - 2}
    for name, begin in begins.items():
        out, down = tmp_path / name, Unkept(down_calls=range(begin + 1, 10_000))
        with pytest.raises(JudgeDownError):
            grpo.train(s, some, judge=down, heldout=held, out=out)
        assert not (out / f"eval_{name}.json").exists()
        cut = grpo.train(s, some, judge=Unkept(), heldout=held, out=out, resume=True)
        check(whole, cut)
        assert evaluated(out) == evaluated(whole.out)
        assert rollouts.read(out / "evals.jsonl") == rollouts.read(whole.out / "evals.jsonl")


def test_what_was_spent_before_an_interruption_is_counted(tmp_path):
    """The bill and the seconds of a resumed run were the last process's: cost 1.62 for 2.06."""
    whole = grpo.train(settings(), TASKS, out=tmp_path / "whole").metrics
    with pytest.raises(Stop):
        grpo.train(settings(), TASKS, out=tmp_path / "cut", on_step=stop_at(3))
    early = sum(s["seconds"] for s in rollouts.read_steps(tmp_path / "cut")[:2])
    cut = grpo.train(settings(), TASKS, out=tmp_path / "cut", resume=True)
    assert cut.metrics["verdicts"] == whole["verdicts"] > 0
    assert cut.metrics["seconds_training"] > early
    bills = [s["judge_calls"] for s in cut.steps()]
    assert bills == sorted(bills) and cut.metrics["seconds_training"] >= cut.steps()[-1]["seconds"]


class Counting:
    """A judge of one's own, whose verdicts cannot be looked up."""

    def __init__(self, name="one"):
        self.name, self.asked = name, 0

    async def verdicts(self, task, response, criteria):
        self.asked += 1
        named = dict(task_id=task.id, response_id=response.id, judge=self.name)
        return [Verdict(criterion_id=c.id, status="met", **named) for c in criteria]


def test_a_run_counts_the_same_after_a_stop(tmp_path):
    """A finished run resumed with nothing to train counted 124 verdicts for 79, one that was cut 138
    for 87: evaluations were left out and the trivial policies graded again."""
    from test_train_grpo import tasks as judged

    s, judge = settings(eval_every=3), Counting()
    more = dict(heldout=judged(6)[4:], judge=judge)
    whole = grpo.train(s, judged(4), out=tmp_path / "whole", **more).metrics
    assert whole["judge_calls"] == judge.asked > 0
    again = grpo.train(s, judged(4), out=tmp_path / "whole", resume=True, **more).metrics
    assert whole["judge_calls"] == judge.asked == again["judge_calls"]
    with pytest.raises(Stop):
        grpo.train(s, judged(4), out=tmp_path / "cut", on_step=stop_at(3), **more)
    cut = grpo.train(s, judged(4), out=tmp_path / "cut", resume=True, **more).metrics
    assert cut["verdicts"] == again["verdicts"] == whole["verdicts"] > 0
    assert whole["judge_calls"] + cut["judge_calls"] == judge.asked  # step 3, judged twice, is paid


def test_a_run_is_not_resumed_with_another_reward_judge_or_task(tmp_path):
    """A run stopped at step 2 went on with its reward times ten: gain +1.500, of which 0 was learned;
    with another judge +.833, with other held-out tasks and texts likewise, without a word."""
    from test_train_grpo import tasks as judged

    tasks, held, out = judged(4), judged(6)[4:], tmp_path / "cut"
    run = dict(tasks=tasks, heldout=held, judge=Counting(), composer="rubric", out=out)
    with pytest.raises(Stop):
        grpo.train(settings(), **run, on_step=stop_at(3))
    other = [dataclasses.replace(t, prompt=f"X {t.prompt}") for t in tasks]
    for what, change in {
        "reward": dict(composer={"preset": "rubric", "scale": 10.0}),
        "judge": dict(judge=Counting("two")),
        "held-out": dict(heldout=held[:1]),
        "text": dict(tasks=other),
    }.items():
        with pytest.raises(KitError, match=f"another .*{what}"):
            grpo.train(settings(), **{**run, **change}, resume=True)
    mark = json.loads((out / "settings.json").read_text())
    old = {k: mark[k] for k in ("settings", "tasks")}  # as a run before these digests left it
    (out / "settings.json").write_text(json.dumps(old))
    assert grpo.train(settings(), **run, resume=True).metrics["steps"] == 4


class Warm(Counting):
    """A judge that is known by its temperature."""

    def __init__(self, temperature):
        super().__init__()
        self.temperature = temperature

    def key(self, task, response, criterion):
        return f"{self.temperature} {criterion.text}"


@pytest.mark.parametrize("criteria", [(), (CODE,)])
def test_a_judge_is_told_from_another_where_the_first_task_has_no_criterion(criteria):
    """A task with citations alone stood first: a resumed run took a judge of another temperature."""
    tasks = [Task(id="a", prompt="A"), Task(id="b", prompt="B", criteria=criteria)]
    hot, cold = resume.identity(Warm(1.0), tasks), resume.identity(Warm(0.0), tasks)
    assert hot != cold and resume.identity(Warm(0.0), tasks) == cold


@pytest.mark.parametrize(
    ("cls", "rows", "changes"),
    [(SFTSettings, ROWS, {"lora_dropout": 0.2}), (DPOSettings, PAIRS, {"lr": 1e-3})],
)
def test_supervised_stages_too(tmp_path, cls, rows, changes):
    values = {**preset("test", cls.stage), "steps": 4, "save_every": 2, **changes}
    s = build(cls, values)
    whole = stages.train(s, rows, out=tmp_path / "whole")
    with pytest.raises(Stop):
        stages.train(s, rows, out=tmp_path / "cut", on_step=stop_at(3))
    resumed = stages.train(s, rows, out=tmp_path / "cut", resume=True)
    assert same(whole, resumed)
    assert [x["loss"] for x in whole.steps()] == [x["loss"] for x in resumed.steps()]
    with pytest.raises(KitError, match="another lr"):
        stages.train(build(cls, {**values, "lr": 0.5}), rows, out=tmp_path / "cut", resume=True)


def test_a_run_killed_after_its_last_step_trains_no_step_more(tmp_path):
    """With two passes over a batch a fifth of four steps was trained, and with it another policy was reported."""
    import shutil

    s = settings(iterations=2)
    whole = grpo.train(s, TASKS, out=tmp_path / "whole")
    taught = build(SFTSettings, {**preset("test", "sft"), "steps": 1, "batch": 2})
    sft = stages.train(taught, ROWS, out=tmp_path / "whole_sft")
    for name in ("whole", "whole_sft"):
        shutil.copytree(tmp_path / name, tmp_path / f"{name}_cut")
        shutil.rmtree(tmp_path / f"{name}_cut" / "adapter")
    check(whole, grpo.train(s, TASKS, out=tmp_path / "whole_cut", resume=True))
    again = stages.train(taught, ROWS, out=tmp_path / "whole_sft_cut", resume=True)
    assert same(sft, again) and len(again.steps()) == 1


CHAIN = """
import sys
sys.path.insert(0, {here!r})
from test_train_resume import chain_of
chain_of({out!r})
"""


def chain_of(out):
    common = dict(steps=3, save_every=2)
    made = (
        build(SFTSettings, {**preset("test", "sft"), **common}),
        build(DPOSettings, {**preset("test", "dpo"), **common}),
        settings(beta=0.1, iterations=2, **common),
    )
    return line.run(
        line.Chain(
            stages=tuple(line.Stage(name=s.stage, settings=s) for s in made),
            out=Path(out),
            rows=ROWS,
            pairs=PAIRS,
            tasks=TASKS[:3],
            heldout=TASKS[3:],
        )
    )


@pytest.mark.slow  # a process per kill, killed in each stage
def test_a_chain_killed_in_every_stage(tmp_path):
    """kill -9 as soon as a stage has logged its second step; the chain that goes on ends where the other does."""
    import torch
    from safetensors.torch import load_file

    chain_of(tmp_path / "whole")
    out, here = tmp_path / "cut", str(Path(__file__).parent)
    code = CHAIN.format(here=here, out=str(out))
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    for folder in ("1_sft", "2_dpo", "3_grpo"):
        run = subprocess.Popen([sys.executable, "-c", code], env=env)
        while run.poll() is None and len(rollouts.read_steps(out / folder)) < 2:
            time.sleep(0.005)
        run.send_signal(signal.SIGKILL)
        run.wait()
    chain_of(out)
    for folder in ("1_sft", "2_dpo", "3_grpo"):
        a, b = (
            load_file(p / folder / "merged" / "model.safetensors")
            for p in (tmp_path / "whole", out)
        )
        assert all(torch.equal(a[k], b[k]) for k in a), folder


def test_a_checkpoint_that_was_cut_short_is_passed_over(tmp_path):
    for n, text in ((2, "{}"), (4, '{"global_'), (10, None)):
        folder = tmp_path / "checkpoints" / f"checkpoint-{n}"
        folder.mkdir(parents=True)
        if text is not None:
            (folder / "trainer_state.json").write_text(text)
    assert resume.last_checkpoint(tmp_path).name == "checkpoint-2"
    assert resume.last_checkpoint(tmp_path / "nothing") is None


def test_every_pass_over_a_batch_is_logged_and_counted_once(tmp_path):
    """`iterations: 2` wrote every other step, and half the steps were reported."""
    s = settings(iterations=2, steps=4, save_every=0)
    r = grpo.train(s, TASKS, out=tmp_path)
    assert [(x["step"], x["batch"]) for x in r.steps()] == [(1, 1), (2, 1), (3, 3), (4, 3)]
    assert r.metrics["steps"] == 4 and len(r.rollouts()) == 2 * 8
    hits = sum(len(x["sentinels"]) for x in r.rollouts())
    assert sum(r.metrics["sentinels"].values()) == hits


def test_answers_with_line_separators_stay_in_the_log(tmp_path):
    """A policy could hide its answers from every reader of the log with one character."""
    log = rollouts.Log(tmp_path / rollouts.ROLLOUTS)
    for n, mark in enumerate("\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e\r", 1):
        log.append([{"step": n, "text": f"a{mark}b"}])
    assert [r["text"][1] for r in rollouts.read(tmp_path)] == list(
        "\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e\r"
    )


def test_the_interval_of_a_step_is_over_prompts():
    """Eight equal answers to each of two prompts are two values, not sixteen."""
    rows = [
        {"task_id": t, "reward": x, "text": "a b", "tokens": 2, "truncated": False, "verdicts": []}
        for t, x in (("a", 0.2), ("b", 0.6))
        for _ in range(8)
    ]
    s = monitor.summary(rows)
    assert s["reward"] == pytest.approx(0.4)
    assert s["reward_high"] - s["reward"] == pytest.approx(12.706 * 0.2, rel=1e-3)
    assert monitor.summary(rows[:8])["reward_low"] is None


def test_group_health_knows_the_range_of_the_reward(tmp_path):
    """At scale 10 every bad group above .1 counted as all good."""
    reward = {"scale": 10.0, "components": [{"kind": "rubric", "how": "mean"}]}
    r = grpo.train(settings(save_every=0), TASKS, composer=reward, out=tmp_path)
    rows = r.rollouts()
    assert {tuple(x["range"]) for x in rows} == {(0.0, 10.0)}
    good = 0
    for step, task in {(x["step"], x["task_id"]) for x in rows}:
        found = {x["reward"] for x in rows if (x["step"], x["task_id"]) == (step, task)}
        good += found == {10.0}
    assert sum(s["good"] for s in r.steps()) == good
    assert any(s["bad"] + s["flat"] for s in r.steps())


def test_the_log_of_a_resumed_run_reads_as_json(tmp_path):
    path = tmp_path / "steps.jsonl"
    path.write_text(json.dumps({"step": 1}) + "\n" + json.dumps({"step": 2})[:7])
    rollouts.Log(path).append([{"step": 2}])
    assert rollouts.read_steps(tmp_path) == [{"step": 1}, {"step": 2}]


def test_a_full_disk_names_the_folder_whatever_library_writes(tmp_path):
    """safetensors, tokenizers and torch raise classes of their own: a raw traceback."""

    class FakeTrainer:
        def _save_checkpoint(self, model, trial):
            raise RuntimeError(f"Error while serializing: {model} (os error 28)")

    class Full(resume.Resumable, FakeTrainer):
        args = SimpleNamespace(output_dir=str(tmp_path / "checkpoints"))

    torchs = "[enforce fail at inline_container.cc:672] . unexpected pos 44160 vs 44052"
    for words in ("No space left on device", torchs):
        with pytest.raises(OSError) as e:
            Full()._save_checkpoint(words, None)
        assert e.value.errno == errno.ENOSPC
        assert e.value.filename == str(tmp_path / "checkpoints")
    with pytest.raises(RuntimeError, match="another fault"):
        Full()._save_checkpoint("another fault", None)
