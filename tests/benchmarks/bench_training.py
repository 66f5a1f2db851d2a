"""kit beside bare TRL at equal work: CPU seconds of a GRPO step, what the kit itself takes of it, and what is learned.

    python tests/benchmarks/bench_training.py [--steps 2] [--model SmolLM2-135M-Instruct] [--dtype auto]

Both sides run TRL's GRPOTrainer on the same prompts: 2 prompts x 8 answers of exactly 24 tokens, one thread, rewards
that differ in every group. The bare side has fast=False, which leaves both methods of the trainer as TRL wrote them.
CPU seconds are those of the process, so that other processes on the machine do not count. The first step is a warm-up.
What is learned is read from the stored runs in data/: no training of an hour is repeated.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from kit.judging import Judge

GOAL_RATIO, GOAL_OVERHEAD = 2.0, 0.02
# held-out prompts that pass as a whole: mean over seeds, the worst seed, and the control with shuffled rewards
GOAL_MEAN, GOAL_WORST, GOAL_CONTROL = 0.70, 0.60, 0.12


class Lengths(Judge):
    """A judge without a model: an answer is met when its length is even."""

    name = "lengths"

    def readings(self, task: Any, response: Any, criteria: Any) -> Any:
        return [{"status": ("met", "unmet")[len(response.text) % 2]}] * len(criteria)


class Clock:
    """CPU seconds inside some functions."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def watch(self, thing: Any, name: str) -> None:
        """Count the seconds of a method from now on."""
        plain: Callable[..., Any] = getattr(thing, name)

        def timed(*args: Any, **more: Any) -> Any:
            start = time.process_time()
            try:
                return plain(*args, **more)
            finally:
                self.seconds += time.process_time() - start

        setattr(thing, name, timed)


def measure(fast: bool, a: argparse.Namespace, out: Path) -> dict[str, float]:
    """CPU seconds a step, of all of it, of the reward, and of the kit's own bookkeeping."""
    import torch

    import kit.training as training
    from kit import Criterion, Task

    torch.set_num_threads(1)
    criterion = Criterion(id="c", text="an even length")
    asks = "Write one short sentence about {}. Use the word early instead of the word hungry."
    tasks = [
        Task(
            id=str(i),
            prompt=asks.format(x),
            system="Answer with one short sentence.",
            criteria=(criterion,),
        )
        for i, x in enumerate(("apples", "rivers"))
    ]
    settings = training.build(
        {
            "model": a.model,
            "dtype": a.dtype,
            "steps": a.steps + 1,
            "group_size": 8,
            "prompts_per_step": 2,
            "max_answer_tokens": 24,
            "temperature": 0.8,
            "lr": 1e-4,
            "save_every": 0,
            "fast": fast,
            "options": {"generation_kwargs": {"min_new_tokens": 24}},
        },
        profile="cpu",
    )
    reward = training.Reward(tasks, judge=Lengths())
    log = training.Log(out)
    policy = training.policy(settings)
    trainer = training.grpo_trainer(policy, settings, tasks, reward, out=out, log=log)
    marks, judge, own = [], Clock(), Clock()
    judge.watch(reward, "grade")
    for name in ("batch", "write"):
        own.watch(log, name)
    from transformers import TrainerCallback

    class Marks(TrainerCallback):
        def on_step_end(self, *args: Any, **more: Any) -> None:
            marks.append((time.process_time(), judge.seconds, own.seconds))

    trainer.add_callback(Marks())
    trainer.train()
    (t0, j0, o0), (t1, j1, o1) = marks[0], marks[-1]
    return {"step": (t1 - t0) / a.steps, "reward": (j1 - j0) / a.steps, "own": (o1 - o0) / a.steps}


def learning() -> list[tuple[str, str, str]]:
    """What the stored runs of `kit train instructions` learned, beside the bars; gains of the ladders have none."""
    import kit.training as training
    from kit.stats import format_number

    runs = training.stored("instructions")
    table = runs.runs().set_index("run")["after"]
    after, control = table.drop("control"), table["control"]
    rows = [
        (
            f"strict passes, mean of {len(after)} seeds",
            format_number(after.mean()),
            f">= {format_number(GOAL_MEAN, 2)}",
        ),
        (
            "strict passes, worst seed",
            format_number(after.min()),
            f">= {format_number(GOAL_WORST, 2)}",
        ),
        ("strict passes, control", format_number(control), f"<= {format_number(GOAL_CONTROL, 2)}"),
    ]
    for name in ("instructions", "ladder_chain", "ladder_confidence"):
        stored = training.stored(name)
        rows += [
            (f"gain of {name}, over prompts", str(stored.gain()), ""),
            (f"gain of {name}, over seeds", str(stored.over_seeds()), ""),
        ]
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--model", default="SmolLM2-135M-Instruct")
    parser.add_argument("--dtype", default="auto")
    a = parser.parse_args()
    rows = {}
    for name, fast in (("bare TRL", False), ("kit", True)):
        with tempfile.TemporaryDirectory() as folder:
            rows[name] = measure(fast, a, Path(folder))
        r = rows[name]
        print(
            f"{name:9} {r['step']:7.2f} CPU s a step, reward {r['reward']:.3f}, own {r['own']:.4f}",
            flush=True,
        )
    work = {k: r["step"] - r["reward"] for k, r in rows.items()}
    ratio, share = work["bare TRL"] / work["kit"], rows["kit"]["own"] / work["kit"]
    table = [
        ("bare TRL / kit", f"{ratio:.2f}", f">= {GOAL_RATIO}"),
        ("the kit's own share of a step", f"{share:.2%}", f"< {GOAL_OVERHEAD:.0%}"),
        *learning(),
    ]
    for row in [("figure", "measured", "bar"), *table]:
        print(f"{row[0]:40}{row[1]:36}{row[2]}")


if __name__ == "__main__":
    main()
