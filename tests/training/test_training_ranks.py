"""Several processes that train one model: as one process does, whole files, one judge, a clean end."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from training_cases import TINY, Judge, farthest, tasks

import kit.training as training
from kit.cli import main
from kit.data import load
from kit.errors import DataError

TRAIN = """
import sys; sys.path[:0] = [{tests!r}]
from training_cases import TINY, Judge, tasks
import kit.training as training
from kit.data import load

class Stop(Exception):
    pass

def on_step(row):
    if row["step"] == {stop!r}:
        raise Stop

values = {values!r}
rows = load({rows!r}) if values.get("stage") == "sft" else tasks(check=None)
more = dict(eval_every=2, judge=Judge(), on_step=on_step)
result = training.train(rows, TINY, out={out!r}, **more, **values)
print("done", result.metrics["steps"], flush=True)
"""
QUIET = {"OMP_NUM_THREADS": "1", "TORCH_CPP_LOG_LEVEL": "ERROR", "TORCH_LOGS": "-all"}


ROWS = [{"id": f"s{i}", "prompt": f"Say {i}.", "completion": "abc" * (i % 3 + 1)} for i in range(8)]


def script(tmp_path: Path, out: str, stop_at: int = 0, **values: object) -> Path:
    """A script that trains the tiny model into a folder. stop_at : the step after which it fails."""
    path = tmp_path / f"{out}.py"
    tests = str(Path(__file__).parent)
    text = TRAIN.format(
        tests=tests, out=str(tmp_path / out), values=values, stop=stop_at, rows=ROWS
    )
    path.write_text(text)
    return path


def in_two(*command: object) -> subprocess.CompletedProcess[str]:
    """Run a Python command in two processes, as torchrun does."""
    torchrun = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc_per_node",
        "2",
    ]
    line = [*torchrun, *map(str, command)]
    return subprocess.run(line, env=os.environ | QUIET, capture_output=True, text=True)


@pytest.mark.slow
def test_two_processes_train_as_one(tmp_path):
    one = training.train(tasks(check=None), TINY, eval_every=2, judge=Judge(), out=tmp_path / "one")
    done = in_two(script(tmp_path, "two"))
    assert done.stdout.count("done 4") == 2, done.stderr
    two = training.Result.read(tmp_path / "two")
    columns = ["step", "task_id", "text", "reward"]
    assert two.rollouts()[columns].equals(one.rollouts()[columns])
    steps = ["step", "reward", "answers", "loss", "grad_norm", "judge_calls"]
    assert two.steps()[steps].to_dict("list") == {
        k: pytest.approx(v, rel=1e-4, abs=1e-6)
        for k, v in one.steps()[steps].to_dict("list").items()
    }
    assert (one.steps()["grad_norm"] > 0).sum() > 1
    assert farthest(one.adapter, two.adapter) < 1e-4
    assert two.gain == one.gain and two.metrics["judge_calls"] == one.metrics["judge_calls"]
    names = {p.name for p in one.folder.iterdir()}
    assert {p.name for p in two.folder.iterdir()} == names and "eval_step2.json" in names


@pytest.mark.parametrize(
    ("values", "processes"),
    [
        ({}, "3"),
        ({"substeps": 8}, "2"),
        ({"micro_rows": 4, "group_size": 6}, "2"),
        ({"substeps": 3}, "1"),
    ],
)
def test_rows_that_cannot_be_split_over_the_processes_are_refused(monkeypatch, values, processes):
    monkeypatch.setenv("WORLD_SIZE", processes)
    with pytest.raises(
        DataError, match=f"rows a step cannot be split .* and {processes} processes"
    ):
        training.build({**TINY, **values})


def test_one_process_in_place_of_several_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    with pytest.raises(DataError, match="one process runs, although several") as e:
        training.train(tasks(), TINY, out=tmp_path / "r")
    assert "torchrun --nproc_per_node 2" in str(e.value)


def test_four_bits_are_not_split_and_the_engine_of_several_processes_is_transformers(monkeypatch):
    with pytest.raises(DataError, match="does not split 4-bit weights"):
        training.build({**TINY, "quantize": "nf4", "options": {"deepspeed": "zero3.json"}})
    monkeypatch.setenv("WORLD_SIZE", "2")
    auto = training.policy(training.build({**TINY, "engine": "auto"}))
    assert auto.engine == "transformers"


def launch_lines(capsys, *options):
    """The lines that the profile cluster prints, by what they start."""
    assert main(["train", "instructions", "--profile", "cluster", *options]) == 0
    lines = capsys.readouterr().out.splitlines()
    return {lines[n].strip(":"): lines[n + 1].strip() for n in range(0, 10, 2)}


def read_by_the_launcher(words):
    """(processes, module, words of `kit`) as accelerate or torchrun understand a line."""
    if words[0] == "torchrun":
        from torch.distributed.run import get_args_parser

        a = get_args_parser().parse_args(words[1:])
        return int(a.nproc_per_node), a.module, [a.training_script, *a.training_script_args]
    from accelerate.commands.launch import launch_command_parser

    a = launch_command_parser().parse_args(words[2:])
    assert a.multi_gpu
    return a.num_processes, a.module, [a.training_script, *a.training_script_args]


def test_the_profile_cluster_prints_lines_that_start_several_processes(capsys):
    lines = launch_lines(capsys, "--set", "steps=3", "--set", "judge=endpoint:m")
    trains = [shlex.split(line) for line in lines.values() if "kit train" in line]
    processes = []
    for words in trains:
        number, is_module, command = read_by_the_launcher(words)
        processes.append(number)
        assert is_module and command[:9] == [
            *("kit", "train", "instructions", "--profile", "cluster"),
            *("--set", "steps=3", "--set", "judge=endpoint:m"),
        ]
        assert len(command) == 9 or json.loads(Path(command[10].split("=")[1]).read_text())
    assert processes == [8, 16, 8, 2]
    sweep = shlex.split(lines[next(k for k in lines if "Ray" in k)])
    assert main([*sweep[1:3], "--help"]) == 0 and sweep[0] == "kit"


@pytest.mark.slow
def test_a_killed_process_ends_all_with_a_sentence_and_the_run_goes_on(tmp_path):
    line = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    process = subprocess.Popen(
        [*line, script(tmp_path, "killed", steps=30)],
        env=os.environ | QUIET, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    steps = tmp_path / "killed" / "steps.jsonl"
    while process.poll() is None and not (steps.exists() and steps.read_text().count("\n") > 5):
        time.sleep(0.05)
    import psutil

    children = psutil.Process(process.pid).children()
    rank_of = {int(c.environ()["RANK"]): c for c in children}
    os.kill(rank_of[1].pid, signal.SIGKILL)
    errors = process.communicate(timeout=60)[1]
    assert process.returncode != 0
    assert "another process of this training ended" in errors and "--resume" in errors
    assert in_two(script(tmp_path, "killed", steps=30)).stdout.count("done 30") == 2
    assert in_two(script(tmp_path, "whole", steps=30)).stdout.count("done 30") == 2
    killed, whole = (training.Result.read(tmp_path / n) for n in ("killed", "whole"))
    assert killed.rollouts()["text"].tolist() == whole.rollouts()["text"].tolist()
    assert killed.steps()["step"].tolist() == [*range(1, 31)]
    assert farthest(whole.adapter, killed.adapter) == 0


@pytest.mark.slow
@pytest.mark.parametrize("config", ["instructions", "ladder_chain"])
def test_a_config_trains_in_two_processes_from_the_command_line(tmp_path, config):
    folders = [tmp_path / "one", tmp_path / "two"]
    command = ["-m", "kit", "train", config, "--profile", "test", "--set", "fast=false", "--set"]
    alone = subprocess.run([sys.executable, *command, f"out={folders[0]}"], env=os.environ | QUIET)
    done = in_two(*command, f"out={folders[1]}")
    assert alone.returncode == done.returncode == 0, done.stderr
    assert done.stdout.count("run: ") == 1
    one, two = map(training.Result.read, folders)
    for a, b in zip(one.stages or [one], two.stages or [two], strict=True):
        assert farthest(a.adapter, b.adapter) < 1e-3
    assert two.after.rewards == one.after.rewards


@pytest.mark.slow
def test_accelerate_on_cpus_is_refused_with_the_line_that_works(tmp_path):
    launch = [sys.executable, "-m", "accelerate.commands.launch", "--cpu", "--num_processes", "2"]
    train = ["--module", "kit", "train", "instructions", "--profile", "test"]
    done = subprocess.run([*launch, *train], env=os.environ | QUIET, capture_output=True, text=True)
    assert done.returncode != 0
    assert "one process runs, although several" in done.stderr
    assert "torchrun --nproc_per_node 2" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["grpo", "sft"])
def test_zero_3_in_two_processes_trains_as_one_process(tmp_path, stage):
    pytest.importorskip("deepspeed", reason="pip install deepspeed")
    file = str(training.CONFIGS / "zero3.json")
    values = {"stage": stage, "beta": 0.1} if stage == "grpo" else {"stage": stage}
    one = training.train(
        tasks(check=None) if stage == "grpo" else load(ROWS),
        {**TINY, **values}, eval_every=2, judge=Judge(), out=tmp_path / "one",
    )  # fmt: skip
    zero3 = {**values, "options": {"deepspeed": file}}
    # a run that is stopped goes on from the parts that each process saved
    stopped = in_two(script(tmp_path, "two", stop_at=3, **zero3))
    assert "Stop" in stopped.stderr
    done = in_two(script(tmp_path, "two", **zero3))
    assert done.stdout.count("done 4") == 2, done.stderr
    two = training.Result.read(tmp_path / "two")
    assert farthest(one.adapter, two.adapter) < 1e-4
    assert two.steps()["loss"].tolist() == pytest.approx(one.steps()["loss"].tolist(), abs=1e-4)
    if stage == "grpo":
        assert two.rollouts()["text"].tolist() == one.rollouts()["text"].tolist()
        assert two.gain == one.gain
