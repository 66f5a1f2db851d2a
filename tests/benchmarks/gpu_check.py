"""make gpu-check: is the 4-bit path right on this machine, and how fast? At most ten minutes on a T4 or an H100.

    python tests/benchmarks/gpu_check.py [--size test|t4|gpu] [--model NAME] [--only PART ...] [--out FILE]

Each part runs in a process of its own, because unsloth must be imported first. Together they write data/gpu_check.json:
machine          versions, compute capability, number format and why
kit, kit_unsloth tokens per second of generation and of the update, and peak memory, of `kit train` with both engines
trl, unsloth     the same numbers of a script as the documentation of TRL and of unsloth has it, without the kit
gain             20 steps on the shipped instructions, and the gain on held-out prompts
resume           is a run that was stopped and resumed equal to the uninterrupted one?
judge            verdicts per second of a vLLM server, where vllm is installed
On a CPU the size is `test`: all parts run, the seconds of steps are CPU seconds, and the numbers say nothing of a GPU.
A part that fails is recorded with its error, and the command ends with exit code 1.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = "torch transformers trl peft accelerate bitsandbytes unsloth unsloth_zoo vllm triton"
SECONDS = {"test": 3600, "t4": 600, "gpu": 600}  # of the whole check, after which a part is stopped
# tokens: of each answer in the timed steps; steps: timed ones; held: held-out prompts of the gain; judged: answers
SIZES: dict[str, dict[str, Any]] = {
    "test": {
        "model": "SmolLM2-135M-Instruct", "group": 4, "prompts": 1, "micro": 4, "tokens": 8, "steps": 1,
        "held": 42, "judged": 24, "train": {"quantize": "none"},
    },
    "t4": {
        "model": "Qwen/Qwen3-1.7B", "group": 8, "prompts": 2, "micro": 4, "tokens": 128, "steps": 3,
        "held": 42, "train": {"quantize": "nf4", "prompts_per_step": 4, "group_size": 8, "lr": 1e-4},
    },
    "gpu": {
        "model": "Qwen/Qwen3-1.7B", "group": 8, "prompts": 4, "micro": 16, "tokens": 256, "steps": 3,
        "held": 84, "train": {"quantize": "nf4", "prompts_per_step": 6, "group_size": 8, "lr": 1e-4},
    },
}  # fmt: skip
PARTS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {}


def part(function: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[..., Any]:
    """Make a function a part of the check, under its own name."""
    PARTS[function.__name__] = function
    return function


def own_size() -> str:
    """The size for this machine."""
    from kit.system import profiles

    return {"t4": "t4", "gpu": "gpu", "cluster": "gpu"}.get(profiles.resolve().name, "test")


def source_of(model: str) -> str:
    """The folder of the model that `make data` converts, or the name itself."""
    from kit.data import small_model

    return str(small_model()) if model == "SmolLM2-135M-Instruct" else model


def versions() -> dict[str, str]:
    """Installed packages that decide the numbers."""
    out = {}
    for name in PACKAGES.split():
        try:
            out[name] = version(name)
        except PackageNotFoundError:
            out[name] = "not installed"
    return out


@part
def machine(size: dict[str, Any]) -> dict[str, Any]:
    """The device, its number format and why, and the versions."""
    from kit.system import device as devices

    device = devices.choose()
    import torch

    out = {"kind": device.kind, "device": device.name, "dtype": device.dtype, "why": device.why}
    if device.kind == "cuda":
        out["capability"] = ".".join(map(str, torch.cuda.get_device_capability(0)))
        out["memory_gib"] = round(torch.cuda.get_device_properties(0).total_memory / 2**30, 1)
        out["cuda"] = torch.version.cuda
    return out | {
        "python": sys.version.split()[0],
        "threads": torch.get_num_threads(),
        "versions": versions(),
    }


class Clock:
    """Seconds and tokens of generation and update in a trainer's steps; the first step is a warm-up."""

    def __init__(self, trainer: Any):
        import torch
        from transformers import TrainerCallback

        is_cuda = torch.cuda.is_available()
        self.wait = torch.cuda.synchronize if is_cuda else lambda: None
        # on a CPU other processes must not count
        self.now = time.perf_counter if is_cuda else time.process_time
        self.generation = self.start = 0.0
        self.rows: list[tuple[float, float]] = []
        plain, clock = trainer._generate_single_turn, self

        def generate(*args: Any, **more: Any) -> Any:
            clock.wait()
            start = clock.now()
            out = plain(*args, **more)
            clock.wait()
            clock.generation += clock.now() - start
            return out

        class Steps(TrainerCallback):
            def on_step_begin(self, *args: Any, **more: Any) -> None:
                clock.wait()
                clock.start, clock.generation = clock.now(), 0.0

            def on_step_end(self, *args: Any, **more: Any) -> None:
                clock.wait()
                seconds = clock.now() - clock.start
                clock.rows.append((clock.generation, seconds - clock.generation))

        trainer._generate_single_turn = generate
        trainer.add_callback(Steps())

    def numbers(self, size: dict[str, Any]) -> dict[str, Any]:
        """Tokens of answers per second, and the peak of memory."""
        import resource

        import torch

        made, updated = (sum(x) / len(self.rows[1:]) for x in zip(*self.rows[1:], strict=True))
        tokens = size["group"] * size["prompts"] * size["tokens"]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        if torch.cuda.is_available():
            peak = torch.cuda.max_memory_allocated()
        return {
            "generation_tokens_per_s": round(tokens / made, 1),
            "update_tokens_per_s": round(tokens / updated, 1),
            "seconds_a_step": round(made + updated, 2),
            "peak_memory_gib": round(peak / 2**30, 2),
        }


def short_tasks(size: dict[str, Any]) -> list[Any]:
    """The prompts of the timed steps; an answer passes when its length is even, so that groups are mixed."""
    from kit import Criterion, Task

    check = {"name": "regex", "pattern": "[a-m]", "min": 20}
    criterion = Criterion(id="c", text="it has letters", check=check)
    asks = "Write a short story about the number {}."
    n = size["prompts"] * (size["steps"] + 1)
    return [Task(id=f"t{i}", prompt=asks.format(i), criteria=(criterion,)) for i in range(n)]


def of_kit(size: dict[str, Any], engine: str) -> dict[str, Any]:
    """The kit's own trainer."""
    import kit.training as training

    values = {
        "model": size["model"],
        "engine": engine,
        "quantize": "nf4",
        "steps": size["steps"] + 1,
    }
    values |= {
        "group_size": size["group"],
        "prompts_per_step": size["prompts"],
        "micro_rows": size["micro"],
    }
    values |= {"max_answer_tokens": size["tokens"], "lr": 1e-5, "save_every": 0}
    values["options"] = {"generation_kwargs": {"min_new_tokens": size["tokens"]}}
    settings = training.build(values, profile="cpu")
    tasks = short_tasks(size)
    with tempfile.TemporaryDirectory() as folder:
        policy = training.policy(settings)
        trainer = training.grpo_trainer(
            policy,
            settings,
            tasks,
            training.Reward(tasks),
            out=Path(folder),
            log=training.Log(Path(folder)),
        )
        clock = Clock(trainer)
        trainer.train()
    return clock.numbers(size) | {
        "engine": engine,
        "model": size["model"],
        "dtype": policy.device.dtype,
    }


@part
def kit(size: dict[str, Any]) -> dict[str, Any]:
    """`kit train` with transformers and bitsandbytes."""
    return of_kit(size, "transformers")


@part
def kit_unsloth(size: dict[str, Any]) -> dict[str, Any]:
    """`kit train` with unsloth."""
    from kit.training import import_unsloth

    import_unsloth()
    return of_kit(size, "unsloth")


def arguments(size: dict[str, Any], folder: str, dtype: str) -> dict[str, Any]:
    """What a user of TRL writes, for the same work."""
    import torch

    is_cuda = torch.cuda.is_available()
    return {
        "output_dir": folder,
        "max_steps": size["steps"] + 1,
        "per_device_train_batch_size": size["micro"],
        "gradient_accumulation_steps": size["group"] * size["prompts"] // size["micro"],
        "num_generations": size["group"],
        "max_completion_length": size["tokens"],
        "generation_kwargs": {"min_new_tokens": size["tokens"]},
        "learning_rate": 1e-5,
        "beta": 0.0,
        "logging_steps": 1,
        "save_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
        "use_cpu": not is_cuda,
        "bf16": is_cuda and dtype == "bfloat16",
        "fp16": is_cuda and dtype == "float16",
        "gradient_checkpointing": False,
    }


def letters(completions: Any, **_: Any) -> list[float]:
    """A reward in a line, as in TRL's quick start."""
    return [float(len(set(c[0]["content"]))) for c in completions]


def of_library(
    size: dict[str, Any], model: Any, tokenizer: Any, dtype: str, **more: Any
) -> dict[str, Any]:
    """A GRPOTrainer without the kit on the same prompts."""
    import trl
    from datasets import Dataset

    rows = [{"prompt": [{"role": "user", "content": t.prompt}]} for t in short_tasks(size)]
    with tempfile.TemporaryDirectory() as folder:
        trainer = trl.GRPOTrainer(
            model=model,
            reward_funcs=letters,
            args=trl.GRPOConfig(**arguments(size, folder, dtype)),
            train_dataset=Dataset.from_list(rows),
            processing_class=tokenizer,
            **more,
        )
        clock = Clock(trainer)
        trainer.train()
    return clock.numbers(size) | {"model": size["model"], "dtype": dtype}


@part
def trl(size: dict[str, Any]) -> dict[str, Any]:
    """TRL with a 4-bit model and a LoraConfig."""
    import torch
    from peft import LoraConfig
    from transformers import AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig

    from kit.system import device as devices

    device = devices.choose()
    dtype, name = getattr(torch, device.dtype), source_of(size["model"])
    bits = BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_compute_dtype=dtype,
        bnb_4bit_use_double_quant=True,
    )
    place = {"device_map": {"": 0}} if device.kind == "cuda" else {}
    model = AutoModelForCausalLM.from_pretrained(
        name, dtype=dtype, quantization_config=bits, **place
    )
    lora = LoraConfig(r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM")
    tokenizer = AutoTokenizer.from_pretrained(name, padding_side="left")
    return of_library(size, model, tokenizer, device.dtype, peft_config=lora)


@part
def unsloth(size: dict[str, Any]) -> dict[str, Any]:
    """unsloth as its notebooks use it."""
    from kit.system import device as devices
    from kit.training import import_unsloth

    fast = import_unsloth().FastLanguageModel
    import torch

    device, name = devices.choose(), source_of(size["model"])
    model, tokenizer = fast.from_pretrained(
        model_name=name, max_seq_length=1024, load_in_4bit=True, dtype=getattr(torch, device.dtype)
    )
    model = fast.get_peft_model(model, r=16, lora_alpha=32, use_gradient_checkpointing=False)
    return of_library(size, model, tokenizer, device.dtype)


def instructions(size: dict[str, Any], folder: Path, held: int, **more: Any) -> Any:
    """A training on the shipped instructions."""
    import kit.training as training
    from kit import load
    from kit.system import paths

    learn, kept = load(paths.data("instructions.jsonl")).halves()
    values = {"model": size["model"], "max_answer_tokens": 24, "save_every": 2, **size["train"]}
    return training.train(
        [*learn],
        "instructions",
        heldout=[*kept][:held],
        out=folder,
        profile="cpu",
        **{**values, **more},
    )


@part
def gain(size: dict[str, Any]) -> dict[str, Any]:
    """20 steps, and what they gained on held-out prompts."""
    with tempfile.TemporaryDirectory() as folder:
        more = {"steps": 20, "save_every": 0, "options": {"lr_scheduler_type": "constant"}}
        result = instructions(size, Path(folder), size["held"], **more)
        numbers = {
            k: result.metrics[k]
            for k in ("engine", "dtype", "steps", "seconds", "gain", "sentence")
        }
    return numbers | size["train"] | {"model": size["model"]}


class Stop(Exception):
    """Raised in the middle of a run."""


@part
def resume(size: dict[str, Any]) -> dict[str, Any]:
    """A run of four steps in 4 bits that is stopped at the third, beside one that is not."""
    from safetensors.torch import load_file

    def stop(row: dict[str, Any]) -> None:
        if row["step"] == 3:
            raise Stop

    small = {
        "steps": 4,
        "prompts_per_step": 1,
        "group_size": 4,
        "max_answer_tokens": 8,
        "quantize": "nf4",
    }
    with tempfile.TemporaryDirectory() as folder:
        whole, parts = Path(folder) / "whole", Path(folder) / "parts"
        instructions(size, whole, 0, **small)
        with contextlib.suppress(Stop):
            instructions(size, parts, 0, on_step=stop, **small)
        result = instructions(size, parts, 0, **small)
        a, b = (load_file(p / "adapter" / "adapter_model.safetensors") for p in (whole, parts))
        far = max(float((a[k].float() - b[k].float()).abs().max()) for k in a)
    return {
        "equal": far == 0,
        "largest_difference": far,
        "engine": result.metrics["engine"],
        "quantize": "nf4",
    }


@part
def judge(size: dict[str, Any]) -> dict[str, Any]:
    """A vLLM server that judges the shipped answers. KIT_VLLM_PYTHON : the Python of an environment that has vllm."""
    python = os.environ.get("KIT_VLLM_PYTHON", sys.executable)
    if python == sys.executable and find_spec("vllm") is None:
        return {"skipped": "vllm is not installed, and KIT_VLLM_PYTHON is not set"}
    import kit as front
    from kit.system import paths

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    serve = ["serve", source_of(size["model"]), "--served-model-name", "judge", "--port", str(port)]
    limits = ["--max-model-len", "2048", "--gpu-memory-utilization", "0.6"]
    with subprocess.Popen([python, "-m", "vllm.entrypoints.cli.main", *serve, *limits]) as server:
        try:
            wait_for(port, server)
            url = f"http://127.0.0.1:{port}/v1"
            asked = {"endpoint": "judge", "base_url": url, "how": "one", "timeout": 600.0}
            labels = front.load(paths.data("judge_labels.jsonl"))
            answers = labels.responses[: size.get("judged")]
            start = time.perf_counter()
            verdicts = front.judge(labels, answers, judge=asked, ledger=False, progress=False)
            seconds = time.perf_counter() - start
        finally:
            server.terminate()
    unknown = sum(not v.is_known for v in verdicts)
    return {
        "verdicts": len(verdicts),
        "verdicts_per_s": round(len(verdicts) / seconds, 1),
        "unknown": unknown,
    }


def wait_for(port: int, server: Any) -> None:
    """Until the server answers; an error where it ended."""
    for _ in range(400):
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                return
        if server.poll() is not None:
            raise RuntimeError(f"the vLLM server ended with exit code {server.returncode}")
        time.sleep(0.5)
    raise RuntimeError("the vLLM server does not answer")


def run_part(name: str, a: argparse.Namespace, seconds: float) -> dict[str, Any]:
    """A part in a process of its own; what went wrong is part of the result. seconds : left for it."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "part.json"
        command = [sys.executable, __file__, "--part", name, "--size", a.size, "--out", str(file)]
        command += ["--model", a.model] if a.model else []
        environment = os.environ | {"PYTHONPATH": str(ROOT), "KIT_HEADLESS": "1"}
        try:
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=seconds
            )
            out = (
                json.loads(file.read_text())
                if file.exists()
                else {"error": done.stderr.strip()[-800:]}
            )
        except subprocess.TimeoutExpired:
            out = {"error": f"stopped after {seconds:.0f} s"}
    return out | {"seconds_of_part": round(time.perf_counter() - start, 1)}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--size", choices=[*SIZES], help="default: as this machine is")
    parser.add_argument("--model", help="in place of the size's model")
    parser.add_argument(
        "--only", nargs="+", choices=[*PARTS], default=[*PARTS], help="others stay in the file"
    )
    parser.add_argument(
        "--seconds", type=int, help="of the whole check, after which a part is stopped"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "data" / "gpu_check.json")
    parser.add_argument("--part", choices=[*PARTS], help=argparse.SUPPRESS)
    a = parser.parse_args()
    a.size = a.size or own_size()
    a.seconds = a.seconds or SECONDS[a.size]
    if a.part:
        size = SIZES[a.size] | ({"model": a.model} if a.model else {})
        a.out.write_text(json.dumps(PARTS[a.part](size)))
        return 0
    start, out = time.perf_counter(), {"size": a.size}
    if a.out.exists() and {*a.only} < {*PARTS}:
        out = json.loads(a.out.read_text()) | out
    for name in a.only:
        left = a.seconds - (time.perf_counter() - start)
        out[name] = run_part(name, a, max(left, 0.0))
        print(f"{name}: {json.dumps(out[name])}", flush=True)
    out["seconds"] = round(sum(out[name]["seconds_of_part"] for name in PARTS if name in out))
    a.out.write_text(json.dumps(out, indent=1, ensure_ascii=False) + "\n")
    print(f"{out['seconds']} s; written to {a.out}")
    return int(any("error" in out[name] for name in a.only))


if __name__ == "__main__":
    sys.exit(main())
