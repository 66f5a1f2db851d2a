"""The job file for a cluster: syntax, fields, words; and (slow) two real processes that train one policy."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from kit.errors import KitError
from kit.system import paths
from kit.train import world

ROOT = Path(__file__).resolve().parents[2]
CONFIGS = ROOT / "kit/train/configs"


@pytest.mark.parametrize("judge", ["", "org/judge"])
def test_the_shell_hands_kit_train_what_was_meant(tmp_path: Path, judge: str) -> None:
    """The script is really run, with stand-ins for srun, scontrol, curl and accelerate that write down their words."""
    tools, said, config = tmp_path / "tools", tmp_path / "said", tmp_path / "my run.yaml"
    tools.mkdir()
    stands_in = {
        "scontrol": "printf 'n1\\nn2\\nn3\\n'",
        "curl": "exit 0",
        "srun": 'while [[ "$1" == --* ]]; do echo "srun $1" >> "$SAID"; shift; done\nSLURM_PROCID=1 exec "$@"',
        "accelerate": 'printf "%s\\0" "$@" > "$SAID.train"',
        "trl": 'echo "$CUDA_VISIBLE_DEVICES trl $*" >> "$SAID"',
        "vllm": 'echo "$CUDA_VISIBLE_DEVICES vllm $*" >> "$SAID"',
    }
    for name, body in stands_in.items():
        (tools / name).write_text(f"#!/bin/bash\n{body}\n")
        (tools / name).chmod(0o755)
    env = {
        "PATH": f"{tools}:{os.environ['PATH']}",
        "SAID": str(said),
        "SLURM_JOB_NODELIST": "n[1-3]",
        "SLURM_GPUS_ON_NODE": "4",
        "SETUP": "true",
        "CONFIG": str(config),
        "ACCELERATE": str(CONFIGS / "zero3.yaml"),
        "JUDGE": judge,
    }
    line = ["bash", str(CONFIGS / "job.slurm")]
    done = subprocess.run(line, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    words = Path(f"{said}.train").read_bytes().decode().split("\0")[:-1]
    assert words[words.index("--machine_rank") + 1] == "1"
    assert words[words.index("--main_process_ip") + 1] == "n1"
    assert words[words.index("--num_processes") + 1] == "8"
    assert words[words.index("kit.train") + 1] == str(config)
    pairs = zip(words[1:], words, strict=False)
    sets = dict(w.split("=", 1) for w, before in pairs if before == "--set")
    assert yaml.safe_load(sets["use_vllm"]) is True and sets["engine"] == "transformers"
    assert yaml.safe_load(sets["options"]) == {
        "vllm_mode": "server",
        "vllm_server_base_url": "http://n3:8000",
    }
    log = said.read_text()
    assert "srun --nodelist=n1,n2\n" in log and "srun --nodelist=n3\n" in log
    if judge:
        wanted = {"endpoint": judge, "base_url": "http://n3:8001/v1"}
        assert yaml.safe_load(sets["judge"]) == wanted
        assert "0,1 trl vllm-serve --model Qwen/Qwen3-4B-Instruct-2507" in log
        assert "2,3 vllm serve org/judge" in log
    else:
        assert "0,1,2,3 trl vllm-serve" in log and "judge" not in sets


def test_the_accelerate_configs_are_what_accelerate_reads() -> None:
    config_args = pytest.importorskip("accelerate.commands.config.config_args")
    for name in ("zero3.yaml", "two_cpus.yaml"):
        # unknown keys are an error there
        read = config_args.ClusterConfig.from_yaml_file(str(CONFIGS / name))
        assert read.num_processes >= 2
    read = config_args.ClusterConfig.from_yaml_file(str(CONFIGS / "zero3.yaml"))
    assert read.deepspeed_config["zero_stage"] == 3
    fields = (ROOT / "kit/train/configs/zero3.yaml").read_text()
    source = Path(config_args.__file__).parents[1].joinpath("launch.py").read_text()
    for key in re.findall(r"^  (\w+):", fields, re.M):
        assert f"--{key}" in source, f"accelerate launch no longer knows {key}"


def test_the_vllm_options_exist_in_the_installed_trainer() -> None:
    from importlib import metadata

    try:
        text = Path(
            str(metadata.distribution("trl").locate_file("trl/trainer/grpo_config.py"))
        ).read_text()
        serve = Path(
            str(metadata.distribution("trl").locate_file("trl/scripts/vllm_serve.py"))
        ).read_text()
    except metadata.PackageNotFoundError:
        pytest.skip("trl is not installed")
    for name in ("vllm_mode", "vllm_server_base_url", "vllm_server_timeout"):
        assert re.search(rf"^    {name}: ", text, re.M)
    for name in ("model", "tensor_parallel_size", "port"):
        assert re.search(rf"^    {name}: ", serve, re.M)


def test_answers_are_shared_out_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "3")
    assert world.share(24, 8) == 8
    with pytest.raises(KitError, match="16 answers a step"):
        world.share(16, 8)
    monkeypatch.setenv("RANK", "2")
    assert not world.main()
    monkeypatch.delenv("WORLD_SIZE")
    monkeypatch.delenv("RANK")
    assert world.main() and world.gather([1]) == [1] and world.wait() is None


LAUNCHERS = {
    "accelerate": [
        "accelerate.commands.launch",
        "--config_file",
        str(CONFIGS / "two_cpus.yaml"),
        "-m",
    ],
    "torchrun": ["torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m"],
}


@pytest.mark.slow
def test_accelerate_starts_two_processes_that_talk(tmp_path: Path) -> None:
    """With distributed_type MULTI_CPU or --cpu it started one, silently: the dry run of a cluster was none."""
    pytest.importorskip("accelerate")
    (tmp_path / "probe.py").write_text(
        "import torch, accelerate\ns = accelerate.PartialState(cpu=True)\nx = torch.ones(1)\ntorch.distributed.all_reduce(x)\n"
        "print(f'{s.num_processes} {s.backend} {x.item()}' if s.is_main_process else '')\n"
    )
    line = [sys.executable, "-m", *LAUNCHERS["accelerate"][:-1], str(tmp_path / "probe.py")]
    done = subprocess.run(
        line,
        env={**os.environ, "ACCELERATE_USE_CPU": "true"},
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert "2 gloo 2.0" in done.stdout, done.stderr[-3000:]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_two_processes_train_one_policy(tmp_path: Path, launcher: str) -> None:
    """Two processes with gloo: answers are shared out, written once, evaluated once; a killed run's folder is resumed by two as well."""
    pytest.importorskip("trl")
    rows = [
        {k: v for k, v in r.items() if not k.startswith("rubric - 6")}
        for r in json.loads(paths.data("short_answers.json").read_text())
    ]
    some = [r for r in rows if r["split"] == "train"][:6] + [
        r for r in rows if r["split"] != "train"
    ][:2]
    (tmp_path / "tasks.json").write_text(json.dumps(some))
    (tmp_path / "c.yaml").write_text(
        yaml.safe_dump(
            {"stage": "grpo", "preset": "test", "tasks": "tasks.json", "out": str(tmp_path / "run")}
        )
    )
    env = {**os.environ, "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"}
    line = [
        sys.executable,
        "-m",
        *LAUNCHERS[launcher],
        "kit.train",
        str(tmp_path / "c.yaml"),
        "--json",
    ]
    done = subprocess.run(
        line, env=env, cwd=ROOT, capture_output=True, text=True, timeout=800, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert json.loads(done.stdout)["processes"] == 2, "one process reports, once"
    logged = [json.loads(x) for x in (tmp_path / "run" / "rollouts.jsonl").read_text().splitlines()]
    steps = [json.loads(x) for x in (tmp_path / "run" / "steps.jsonl").read_text().splitlines()]
    assert (
        [s["step"] for s in steps] == [1, 2]
        and [s["answers"] for s in steps] == [8, 8]
        and len(logged) == 16
    )
    for step in (1, 2):
        for task in {r["task_id"] for r in logged if r["step"] == step}:
            group = [r["advantage"] for r in logged if r["step"] == step and r["task_id"] == task]
            assert len(group) == 4 and abs(sum(group)) < 1e-3, (
                "a group's advantages are centred over both processes"
            )
    assert (tmp_path / "run" / "adapter" / "adapter_config.json").exists() and (
        tmp_path / "run" / "eval_after.json"
    ).exists()
