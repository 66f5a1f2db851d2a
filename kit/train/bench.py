"""What GRPO needs on a GPU, measured in minutes, and the rows of the notebooks' profile tables.

Each part is a process of its own, so that memory is its own and unsloth is imported first: "kit"
(the kit's step), "bare" (trl's own trainer, which is unsloth's where unsloth is the engine: the
same model, batch, lengths and prompts) and "notebook" (a short run of notebook 3).
"""

from __future__ import annotations

import json
import math
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from ..runs import peak_memory
from ..system import device, paths, processes
from . import answers, config, grpo, inputs, models, presets, rollouts

PARTS = ("kit", "bare", "notebook")
LIMIT = 180.0  # seconds for each part, under ten minutes together


def measure(part: str, preset: str, steps: str, folder: str) -> None:
    """Train in this process by "kit" or "bare": steps.jsonl, memory.txt (most GiB held)."""
    from ..data import load_tasks

    values = {**presets.preset(preset), "steps": int(steps), "eval_every": 0}
    given = config.build(config.GRPOSettings, values)
    loaded, torch, out = models.load(given), device.import_torch(), Path(folder)
    tasks = load_tasks(paths.data("instructions.jsonl")).halves()[0]

    def on_step(row: Mapping[str, Any]) -> None:
        cuda = torch.cuda.is_available()
        held = torch.cuda.max_memory_reserved() / 2**30 if cuda else peak_memory() or math.nan
        (out / "memory.txt").write_text(f"{held:.1f}", "utf-8")

    train: Any = grpo.train if part == "kit" else _bare
    train(given, tasks, out=out, on_step=on_step, loaded=loaded)


def _bare(
    given: config.GRPOSettings,
    tasks: Sequence[Any],
    *,
    out: Path,
    on_step: Callable[[Mapping[str, Any]], None],
    loaded: models.Loaded,
) -> None:
    """trl's own trainer, with a reward that costs nothing and differs within a group."""
    from datasets import Dataset
    from transformers import TrainerCallback
    from trl import GRPOTrainer

    from .trainer import arguments

    class Steps(TrainerCallback):
        def on_log(self, *args: Any, logs: Any = None, **kwargs: Any) -> None:
            if "loss" in (logs or {}):
                row = {"time": time.time(), "tokens": logs["completions/mean_length"]}
                row["answers"] = given.group_size * given.prompts_per_step
                rollouts.Log(out / rollouts.STEPS).append([row])
                on_step(row)

    ordered = inputs.order(list(tasks), given)
    asked = [answers.messages(t, loaded.tokenizer, given.max_prompt_tokens) for t in ordered]
    GRPOTrainer(
        model=loaded.model,
        reward_funcs=lambda completions, **_: [len(set(str(c))) / 100 for c in completions],
        args=arguments(given, loaded, str(out / "checkpoints")),
        train_dataset=Dataset.from_list([{"prompt": p} for p in asked]),
        processing_class=loaded.tokenizer,
        callbacks=[Steps()],
    ).train()


def plan(preset: str, steps: int, out: Path) -> dict[str, list[str]]:
    """The process of each part."""
    code = f"import sys; from {__name__} import measure; measure(*sys.argv[1:])"
    own = {p: ["-c", code, p, preset, str(steps), str(out / p)] for p in PARTS[:2]}
    short = ["--set", "steps=2", "--set", "heldout_limit=4", "--out", str(out / "notebook")]
    book = ["-m", "kit", "run", "3", "--profile", preset, *short]
    return {p: [sys.executable, *c] for p, c in (own | {"notebook": book}).items()}


def run(command: Sequence[str], folder: Path) -> dict[str, Any]:
    """Run a part for at most LIMIT seconds: exit code (None: stopped), and what it measured."""
    folder.mkdir(parents=True)
    with open(folder / "output.txt", "w", encoding="utf-8") as said:
        process = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT, text=True)
        try:
            process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            return {"exit": None, **read(folder)}
        finally:
            processes.stop([process])
    return {"exit": process.returncode, **read(folder)}


def read(folder: Path) -> dict[str, Any]:
    """Median step in s, tokens per second and most memory of a part's steps, without the first."""
    rows = rollouts.read_steps(folder)
    seconds = [b["time"] - a["time"] for a, b in pairwise(rows)]
    if not seconds:
        return {}
    tokens = sum(r["tokens"] * r["answers"] for r in rows[1:])
    found = {"step_s": statistics.median(seconds), "tokens_per_s": tokens / sum(seconds)}
    return {"steps": len(seconds), **found, "memory": (folder / "memory.txt").read_text("utf-8")}


def write(
    notebooks: Path, found: Mapping[str, Mapping[str, Any]], preset: str, name: str
) -> list[str]:
    """Put time and memory into a profile's row of every notebook that has one; the files changed.

    Nothing is written where a part failed or was stopped. name : the GPU's.
    """
    if any(p["exit"] != 0 for p in found.values()):
        return []
    kit, steps, done = found["kit"], presets.preset(preset)["steps"], []
    new = json.dumps(
        f" {steps * kit['step_s'] / 60:.0f} minutes of training ({steps} steps of "
        f"{kit['step_s']:.1f} s; bare trainer {found['bare']['step_s']:.1f} s; "
        f"{kit['tokens_per_s']:.0f} tokens/s; {name}) | {kit['memory']} GB |",
        ensure_ascii=False,
    )
    row = re.compile(rf"(\| `{re.escape(preset)}` \|[^|\n]*\|)[^|\n]*\|[^|\n]*\|")
    for path in sorted(notebooks.glob("*.ipynb")):
        text, n = row.subn(lambda m: m[1] + new[1:-1], path.read_text("utf-8"))
        if n:
            paths.write_text(path, text)
            done.append(path.name)
    return done
