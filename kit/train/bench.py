"""What GRPO needs on a GPU, measured in minutes, and the rows of the notebooks' profile tables.

Each part is a process of its own, so that memory is its own and unsloth is imported first: "kit"
(the kit's step), "bare" (trl's own trainer, which is unsloth's where unsloth is the engine: the
same model, batch, lengths and prompts) and "notebook" (a short run of notebook 3).
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..runs import peak_memory
from ..system import paths, processes
from . import answers, config, device, grpo, inputs, models, presets, rollouts

PARTS = ("kit", "bare", "notebook")
LIMIT = 180.0  # seconds for each part, under ten minutes together
LOG = "bench.jsonl"


def settings(preset: str, steps: int) -> config.GRPOSettings:
    """A preset's settings for a few steps, without evaluation."""
    values = {**presets.preset(preset), "steps": steps, "eval_every": 0}
    return config.build(config.GRPOSettings, values)


def measure(part: str, given: config.GRPOSettings, out: Path) -> None:
    """Train in this process; one row (seconds, tokens, GiB held) for each step in out/bench.jsonl.

    part : "kit" or "bare".
    """
    from ..data import load_tasks

    tasks = [t for t in load_tasks(paths.data("instructions.jsonl")) if t.split != "heldout"]
    log, loaded = rollouts.Log(out / LOG), models.load(given)

    def keep(seconds: float, tokens: float) -> None:
        log.append([{"seconds": seconds, "tokens": tokens, "memory": _memory()}])

    if part == "bare":
        _bare(given, tasks, loaded, out, keep)
        return

    def on_step(row: Mapping[str, Any]) -> None:
        keep(row["seconds"], row["tokens"] * row["answers"])

    grpo.train(given, tasks, out=out / "run", on_step=on_step, loaded=loaded)


def _bare(
    given: config.GRPOSettings,
    tasks: Sequence[Any],
    loaded: models.Loaded,
    out: Path,
    keep: Callable[[float, float], None],
) -> None:
    from datasets import Dataset
    from transformers import TrainerCallback
    from trl import GRPOTrainer

    from .trainer import arguments

    rows = given.group_size * given.prompts_per_step

    class Clock(TrainerCallback):
        def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            self.began = time.perf_counter()

        def on_log(
            self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any
        ) -> None:
            if "loss" in (logs or {}):
                now = time.perf_counter()
                keep(now - self.began, logs["completions/mean_length"] * rows)
                self.began = now

    ordered = inputs.order(list(tasks), given)
    asked = [answers.messages(t, loaded.tokenizer, given.max_prompt_tokens) for t in ordered]
    GRPOTrainer(
        model=loaded.model,
        reward_funcs=_letters,
        args=arguments(given, loaded, str(out / "checkpoints")),
        train_dataset=Dataset.from_list([{"prompt": p} for p in asked]),
        processing_class=loaded.tokenizer,
        callbacks=[Clock()],
    ).train()


def _letters(completions: Sequence[Any], **kwargs: Any) -> list[float]:
    """A reward that costs nothing and differs within a group."""
    return [len(set(str(c))) / 100 for c in completions]


def _memory() -> float | None:
    """Most GiB held so far: of the GPU where there is one, else of the process."""
    torch = device.import_torch()
    if torch.cuda.is_available():
        return round(torch.cuda.max_memory_reserved() / 2**30, 2)
    return peak_memory()


def command(part: str, preset: str, steps: int, out: Path) -> list[str]:
    """The process of a part."""
    start = [sys.executable, "-m", "kit"]
    if part == "notebook":
        short = ["--set", "steps=2", "--set", "heldout_limit=4"]
        return [*start, "run", "3", "--profile", preset, *short, "--out", str(out / part)]
    more = ["--preset", preset, "--steps", str(steps), "--out", str(out)]
    return [*start, "bench", "gpu", "--worker", part, *more]


def run(part: str, preset: str, steps: int, out: Path, *, kind: str) -> dict[str, Any]:
    """Run a part for at most LIMIT seconds: exit code (None: stopped), seconds, what it measured.

    kind : "cuda" or "cpu", which hides the GPU.
    """
    folder, began = out / part, time.perf_counter()
    folder.mkdir(parents=True)
    hidden = {} if kind == "cuda" else {"CUDA_VISIBLE_DEVICES": ""}
    with open(folder / "output.txt", "w", encoding="utf-8") as said:
        process = subprocess.Popen(
            command(part, preset, steps, out),
            stdout=said,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, **hidden},
        )
        try:
            code = process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            processes.stop([process])
    took = {"part": part, "exit": code, "wall_s": round(time.perf_counter() - began, 1)}
    return took | read(folder)


def read(folder: Path) -> dict[str, Any]:
    """Median step, tokens per second and most memory of a part's steps, without the first."""
    rows = rollouts.read(folder / LOG)[1:]
    if not rows:
        return {"steps": 0, "step_s": None, "tokens_per_s": None, "memory": None}
    seconds = [r["seconds"] for r in rows]
    return {
        "steps": len(rows),
        "step_s": statistics.median(seconds),
        "tokens_per_s": sum(r["tokens"] for r in rows) / sum(seconds),
        "memory": max((r["memory"] for r in rows if r["memory"]), default=None),
    }


def cells(found: Mapping[str, Mapping[str, Any]], preset: str, name: str) -> tuple[str, str] | None:
    """Time and memory for a profile's row; None where the kit's step was not measured, or the
    notebook did not run through.
    """
    kit, bare = found.get("kit", {}), found.get("bare", {})
    if not kit.get("step_s") or found.get("notebook", {}).get("exit") != 0:
        return None
    steps = presets.PRESETS[preset]["steps"]
    beside = f"; bare trainer {bare['step_s']:.1f} s" if bare.get("step_s") else ""
    minutes = f"{steps * kit['step_s'] / 60:.0f} minutes of training"
    return (
        f"{minutes} ({steps} steps of {kit['step_s']:.1f} s{beside}; "
        f"{kit['tokens_per_s']:.0f} tokens/s; {name.replace('|', '/')})",
        f"{kit['memory']:.1f} GB" if kit["memory"] else "unknown",
    )


def write_rows(folder: Path, preset: str, spent: str, memory: str) -> list[Path]:
    """Put both cells into a profile's row, in every notebook that has one; the files changed."""
    done = []
    new = json.dumps(f" {spent} | {memory} |", ensure_ascii=False)[1:-1]
    for path in sorted(folder.glob("*.ipynb")):
        old = path.read_text("utf-8")
        row = re.compile(rf"(\| `{re.escape(preset)}` \|[^|\n]*\|)[^|\n]*\|[^|\n]*\|")
        text = row.sub(lambda m: m[1] + new, old)
        if text != old:
            paths.write_text(path, text)
            done.append(path)
    return done
