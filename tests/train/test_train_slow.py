"""Slow: real SmolLM2, NF4 on a CPU, unsloth in a process of its own, kill -9 at random steps. `make test-slow`."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kit.train import grpo, job, rollouts
from kit.train.config import GRPOSettings, build
from kit.train.presets import preset

pytestmark = pytest.mark.slow
ENV = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE", "KIT_HEADLESS": "1", "HF_HUB_OFFLINE": "1"}

KILLED = """
import hashlib, json, sys, time
from kit.records import Criterion, Task, Verdict
from kit.train import grpo
from kit.train.config import GRPOSettings, build
from kit.train.presets import preset

class FakeJudge:
    name = "fake"
    def key(self, task, response, criterion):
        return hashlib.sha256(json.dumps([task.id, response.text]).encode()).hexdigest()
    async def verdicts(self, task, response, criteria):
        with open(sys.argv[2], "a") as f:
            f.write(self.key(task, response, criteria[0]) + "\\n")
        met = sum(map(ord, response.text)) % 2 == 0
        return [Verdict(task_id=task.id, response_id=response.id, criterion_id=c.id, status="met" if met else "unmet", judge="fake") for c in criteria]

tasks = [Task(id=f"t{i}", prompt=f"say {i}", criteria=(Criterion(id="c", text="x"),)) for i in range(5)]
s = build(GRPOSettings, {**preset("test"), "steps": 12, "save_every": 2, "max_answer_tokens": 16})
grpo.train(s, tasks, judge=FakeJudge(), out=sys.argv[1], resume=len(sys.argv) > 3, on_step=lambda row: time.sleep(0.15))
print("DONE")
"""


def test_killed_five_times_the_run_goes_on_and_pays_no_verdict_twice(tmp_path):
    script = tmp_path / "killed.py"
    script.write_text(KILLED)
    picks = random.Random(0)

    def start(name, *more):
        return subprocess.Popen(
            [
                sys.executable,
                str(script),
                str(tmp_path / name),
                str(tmp_path / f"{name}.calls"),
                *more,
            ],
            env=ENV,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    whole = start("whole")
    assert "DONE" in whole.communicate(timeout=300)[0]
    log, resume = tmp_path / "run" / "steps.jsonl", []
    for _ in range(5):
        p, before = start("run", *resume), len(rollouts.read_steps(tmp_path / "run"))
        goal = before + picks.randint(1, 3)
        until = time.monotonic() + 200
        while (
            p.poll() is None
            and time.monotonic() < until
            and (not log.exists() or len(rollouts.read(log)) < min(goal, 11))
        ):
            time.sleep(0.02)
        p.send_signal(signal.SIGKILL)
        p.wait()
        resume = ["resume"]
    assert "DONE" in start("run", "resume").communicate(timeout=300)[0]
    a, b = rollouts.read(tmp_path / "run"), rollouts.read(tmp_path / "whole")
    assert [(x["step"], x["task_id"], x["text"], x["reward"]) for x in a] == [
        (x["step"], x["task_id"], x["text"], x["reward"]) for x in b
    ]
    calls = (tmp_path / "run.calls").read_text().split()
    # a verdict may be asked again only if the kill came between the reply and the ledger's commit: at most one batch per kill
    assert len(calls) - len(set(calls)) <= 5


def test_nf4_trains_on_a_cpu(tmp_path):
    pytest.importorskip("bitsandbytes", reason="not installed (make setup-gpu)")
    from kit.system import paths

    folder = paths.home() / "models" / "SmolLM2-135M-Instruct"
    if not (folder / "config.json").exists():
        pytest.skip("SmolLM2-135M is not in the cache")
    s = build(
        GRPOSettings,
        {
            **preset("cpu"),
            "engine": "transformers",
            "quantize": "nf4",
            "steps": 1,
            "group_size": 4,
            "prompts_per_step": 1,
            "max_answer_tokens": 8,
            "save_every": 0,
        },
    )
    r = grpo.train(s, _code_tasks(), out=tmp_path)
    assert len(r.rollouts()) == 4 and "quantised" in r.metrics["fast_path"]


def test_unsloth_trains_on_a_cpu_in_a_process_of_its_own(tmp_path):
    pytest.importorskip("importlib.util").find_spec("unsloth") or pytest.skip(
        "unsloth is not installed (make setup-gpu)"
    )
    from kit.system import paths

    if not (paths.home() / "models" / "SmolLM2-135M-Instruct" / "config.json").exists():
        pytest.skip("SmolLM2-135M is not in the cache")
    path = tmp_path / "c.json"
    path.write_text(
        json.dumps(
            {
                "preset": "cpu",
                "engine": "unsloth",
                "tasks": "short_answers.json",
                "steps": 1,
                "group_size": 4,
                "prompts_per_step": 1,
                "max_answer_tokens": 8,
                "save_every": 0,
                "out": str(tmp_path / "run"),
                "judge": "code",
                "heldout": None,
            }
        )
    )
    code = f"""
from kit.train import job
import sys
j = job.read({str(path)!r})
import dataclasses
r = job.run(dataclasses.replace(j, heldout=()))
print("DONE", "unsloth" in sys.modules, r.metrics["engine"], len(r.rollouts()))
"""
    got = subprocess.run(
        [sys.executable, "-c", code],
        env=ENV,
        capture_output=True,
        text=True,
        timeout=900,
        cwd=tmp_path,
    )
    assert "DONE True unsloth 4" in got.stdout, got.stderr[-2000:]


def test_unsloth_after_trl_is_refused(tmp_path):
    code = (
        "import trl\nfrom kit.train.models import import_unsloth\nfrom kit.errors import KitError\n"
        "try:\n    import_unsloth()\nexcept KitError as e:\n    print('REFUSED', e.what)"
    )
    got = subprocess.run(
        [sys.executable, "-c", code], env=ENV, capture_output=True, text=True, timeout=300
    )
    assert "REFUSED" in got.stdout and "before unsloth" in got.stdout


def test_the_cpu_preset_learns(tmp_path):
    """The claim of notebook 03, for one seed: about five minutes on two idle cores."""
    j = job.build({"preset": "cpu", "tasks": "short_answers.json", "seed": 1, "out": str(tmp_path)})
    r = grpo.train(
        j.settings,
        j.tasks,
        judge="code",
        composer="rubric",
        out=tmp_path / "run",
        heldout=j.heldout,
    )
    assert r.gain.shown and r.gain.reward.value > 0.1, r.gain.sentence
    assert r.gain.after.value > max(v for v in r.gain.trivial.values() if v is not None)


def _code_tasks():
    import dataclasses

    from kit.data import load_tasks
    from kit.system import paths

    rows = load_tasks(paths.data("short_answers.json")).tasks
    return [
        dataclasses.replace(t, criteria=tuple(c for c in t.criteria if c.by_code))
        for t in rows
        if t.split == "train"
    ][:4]


def test_presets_fit_the_installed_trainer():
    from trl import GRPOConfig

    from kit.system.device import choose
    from kit.train.models import Loaded
    from kit.train.presets import PRESETS
    from kit.train.trainer import arguments

    for name in PRESETS:
        s = build(GRPOSettings, preset(name))
        args = arguments(
            s,
            Loaded(
                model=None,
                tokenizer=None,
                engine="transformers",
                why="",
                device=choose(),
            ),
            str(Path("x")),
        )
        assert isinstance(args, GRPOConfig) and args.num_generations == s.group_size
