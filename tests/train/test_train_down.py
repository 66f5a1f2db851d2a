"""What a run does when things outside fail: the second judge too, and trackers get the numbers that the log gets. Offline."""

from __future__ import annotations

import asyncio
import dataclasses
import signal
import threading
import time

import pytest

from kit.errors import JudgeDownError
from kit.judge import loop
from kit.judge.panel import Panel
from kit.records import Criterion, Response, Task, Verdict, unknown
from kit.rewards.composer import Composer
from kit.system.device import choose
from kit.train import grpo, inputs, rollouts
from kit.train.config import DPOSettings, GRPOSettings, SFTSettings, build
from kit.train.models import Loaded
from kit.train.presets import preset
from kit.train.reward import Reward

TASKS = [
    Task(
        id=f"t{i}",
        prompt=f"say {i}",
        criteria=(Criterion(id="c", text="x", check={"name": "contains", "any": list("aeiou")}),),
    )
    for i in range(4)
]


def test_report_to_reaches_the_trainer(monkeypatch, tmp_path):
    """A tracker is a callback of transformers under a name; a fake one of the name "fake_tracker" sees setup and every log."""
    from transformers import TrainerCallback, integrations
    from transformers.integrations import integration_utils

    seen = []

    class FakeTracker(TrainerCallback):
        def on_log(self, args, state, control, logs=None, **kwargs):
            seen.append((state.global_step, logs.get("reward")))

    monkeypatch.setitem(integration_utils.INTEGRATION_TO_CALLBACK, "fake_tracker", FakeTracker)
    monkeypatch.setitem(inputs.REPORTERS, "fake_tracker", "transformers")
    assert integrations.integration_utils is integration_utils
    s = build(GRPOSettings, {**preset("test"), "report_to": ["fake_tracker"]})
    r = grpo.train(s, TASKS, out=tmp_path)
    assert [(x["step"], pytest.approx(x["reward"], abs=1e-4)) for x in r.steps()] == [
        x for x in seen if x[1] is not None
    ]


def test_a_dead_auditor_stops_no_training(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("kit.train.reward.Reward.pause_s", 0.01)

    class FakeDown:
        name = "second"

        async def verdicts(self, task, response, criteria):
            return [
                unknown(task.id, response.id, c.id, "transport", judge=self.name) for c in criteria
            ]

    class FakeUp(FakeDown):
        name = "first"

        async def verdicts(self, task, response, criteria):
            return [
                Verdict(
                    task_id=task.id,
                    response_id=response.id,
                    criterion_id=c.id,
                    status="met",
                    judge=self.name,
                )
                for c in criteria
            ]

    judged = [
        dataclasses.replace(t, criteria=(Criterion(id="j", text="Is pleasant."),)) for t in TASKS
    ]
    s = build(
        GRPOSettings, {**preset("test"), "audit_every": 1, "audit_stop": True, "patience_s": 0.02}
    )
    r = grpo.train(s, judged, judge=FakeUp(), audit=FakeDown(), out=tmp_path)
    rows = rollouts.read(tmp_path / "audits.jsonl")
    assert len(r.steps()) == 2 == len(rows) and r.metrics["audit_alarm"] is None
    assert all(x["audit"] is None and x["answers"] == 0 and x["unknown"] == 2 for x in rows)
    assert sum("has not answered" in m for m in caplog.messages) == 2


@pytest.mark.parametrize(
    "names, want", [((), []), (("none",), []), (("wandb", "trackio"), ["wandb", "trackio"])]
)
def test_report_to_is_passed_through(names, want):
    from kit.train.trainer import arguments

    loaded = Loaded(model=None, tokenizer=None, engine="transformers", why="", device=choose())
    assert arguments(GRPOSettings(report_to=names), loaded, "x").report_to == want
    assert all(c(report_to=names).report_to == names for c in (SFTSettings, DPOSettings))


def test_a_judge_that_is_back_in_time_is_waited_for(monkeypatch):
    """Each pause was counted twice: after 10 of 16 s the run stopped, "not answered for 19 s"."""
    monkeypatch.setattr(Reward, "pause_s", 0.05)
    task = dataclasses.replace(TASKS[0], criteria=(Criterion(id="j", text="Is pleasant."),))
    answer, began = Response(task_id="t0", id="r", text="a"), time.monotonic()

    class FakeDown:
        name = "down"
        back = 0.85

        async def verdicts(self, task, response, criteria):
            ids = dict(task_id=task.id, response_id=response.id, criterion_id="j")
            if time.monotonic() - began < self.back:
                return [unknown(*ids.values(), "transport")]
            return [Verdict(**ids, status="met")]

    rubric = {"components": [{"kind": "rubric"}]}
    reward = Reward(
        tasks=[task], judge=FakeDown(), composer=Composer.from_config(rubric), patience_s=1.0
    )
    (grade,) = asyncio.run(reward.grade([answer]))
    assert grade.score is not None
    FakeDown.back, reward.patience_s, then = 60.0, 0.3, time.monotonic()
    with pytest.raises(JudgeDownError, match="for 0 s"):
        asyncio.run(reward.grade([answer]))
    assert time.monotonic() - then >= 0.3


@pytest.mark.parametrize("alive", [True, False])
def test_a_judge_that_dies_in_a_batch_stops_it_and_one_that_refuses_a_text_does_not(
    monkeypatch, tmp_path, alive
):
    """12 of 16 verdicts of a step were "transport": the step went on with the 4 that were left."""
    monkeypatch.setattr(Reward, "pause_s", 0.01)
    task = dataclasses.replace(TASKS[0], criteria=(Criterion(id="j", text="Is pleasant."),))
    some = [Response(task_id="t0", id=x, text=x) for x in ("fine", "odd")]

    class FakeJudge:
        name, calls, said = "fake", 0, 0

        def key(self, task, response, criterion):
            return response.text

        async def verdicts(self, task, response, criteria):
            self.calls += 1
            ids = (task.id, response.id, "j")
            if response.text == "odd" or (self.calls > 1 and not alive):
                return [unknown(*ids, "transport")]
            self.said += 1
            return [Verdict(task_id=ids[0], response_id=ids[1], criterion_id="j", status="met")]

    composer = Composer.from_config({"components": [{"kind": "rubric"}]})
    more = dict(judge=FakeJudge(), composer=composer, patience_s=0.03, ledger=tmp_path / "kept")
    reward = Reward(tasks=[task], **more)
    if alive:
        grades = asyncio.run(reward.grade(some))
        assert [g.score is None for g in grades] == [False, True]
        assert reward.bill.calls == more["judge"].said  # what did not come is not paid
        return
    for _ in range(2):  # what the ledger knows is no sign of life
        with pytest.raises(JudgeDownError, match="has not answered"):
            asyncio.run(reward.grade(some))


@pytest.mark.parametrize("alive", [True, False])
def test_a_server_that_dies_in_a_steps_last_calls_leaves_no_panel_with_half_its_votes(
    monkeypatch, tmp_path, alive
):
    """Three models on one server: the last answer kept 2 of 3 votes, the step learned from them, and
    the run that was resumed was another one. A panel with one dead server of several goes on."""
    monkeypatch.setattr(Reward, "pause_s", 0.01)
    task = dataclasses.replace(TASKS[0], criteria=(Criterion(id="j", text="Is pleasant."),))
    some = [Response(task_id="t0", id=f"r{i}", text=f"answer {i}") for i in range(3)]
    calls = []

    @dataclasses.dataclass
    class FakeMember:
        name: str

        def key(self, task, response, criterion):
            return self.name + response.text

        async def verdicts(self, task, response, criteria):
            calls.append(self.name)
            ids = (task.id, response.id, "j")
            last = len(calls) > 8 if not alive else self.name == "c"
            if last:
                return [unknown(*ids, "transport")]
            return [Verdict(task_id=ids[0], response_id=ids[1], criterion_id="j", status="met")]

    reward = Reward(
        tasks=[task],
        judge=Panel([FakeMember(n) for n in "abc"]),
        composer=Composer.from_config({"components": [{"kind": "rubric"}]}),
        patience_s=0.03,
        ledger=tmp_path / "kept",
    )
    if alive:
        grades = asyncio.run(reward.grade(some))
        assert [g.score for g in grades] == [1.0] * 3
        return
    with pytest.raises(JudgeDownError, match="has not answered"):
        asyncio.run(reward.grade(some))
    calls.clear()  # it is up again: nothing that was answered is asked a second time
    grades = asyncio.run(reward.grade(some))
    assert len(calls) == 1 and all(len(v.meta["members"]) == 3 for g in grades for v in g.verdicts)
    assert not any(v.meta.get("passing") for g in grades for v in g.verdicts)


@pytest.fixture
def interruptible():
    """A shell starts what runs in its background deaf to Ctrl-C, and CI may run there."""
    old = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, old)


def press_ctrl_c():
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)


def test_ctrl_c_in_a_batch_stops_its_judging(tmp_path, interruptible):
    """trl awaited the reward in a thread of its own: in a notebook calls were begun, and paid,
    behind the cell that had ended."""
    begun, ended = [], []

    class FakeSlow:
        name = "slow"

        def key(self, task, response, criterion):
            return f"{response.id} {response.text} {criterion.id}"

        async def verdicts(self, task, response, criteria):
            begun.append(response.id)
            if len(begun) == 2:
                asyncio.get_running_loop().call_later(0.05, press_ctrl_c)
            await asyncio.sleep(1.5)
            ended.append(response.id)
            ids = dict(task_id=task.id, response_id=response.id)
            return [Verdict(**ids, criterion_id=c.id, status="met") for c in criteria]

    tasks = [
        Task(id=f"t{i}", prompt=f"q {i}", criteria=(Criterion(id="c", text="Is polite."),))
        for i in range(2)
    ]
    s = build(GRPOSettings, {**preset("test"), "steps": 1})
    with pytest.raises(KeyboardInterrupt):
        grpo.train(s, tasks, judge=FakeSlow(), out=tmp_path / "run")
    known = list(begun)
    time.sleep(1.6)
    assert begun == known and not ended


def test_a_run_that_is_interrupted_ends_after_the_calls_that_it_had_begun(interruptible):
    """Started again at once, two wrote one bill: 73 calls were paid, 67 told."""
    answered = []

    async def call():
        await asyncio.sleep(0.3)
        answered.append("paid")

    async def batch():
        asyncio.get_running_loop().call_later(0.05, press_ctrl_c)
        await loop.hop(call(), lambda: 1)

    with pytest.raises(KeyboardInterrupt):
        loop.run(batch())
    assert answered == ["paid"]
