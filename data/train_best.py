"""SFT on a model's own best answers before GRPO: `python data/train_best.py SEED [OUT]`.

The GRPO is that of `kit train instructions`, whose stored runs of the same seeds are the comparison.
"""

import sys
from pathlib import Path

import kit
from kit.system import paths


def main(seed: int, folder: Path) -> None:
    """SFT on the best of 8 answers to each training prompt, then 60 steps of GRPO: half an hour on one core."""
    best = {
        "stage": "sft",
        "rows": {"source": "best", "n": 8},
        "steps": 24,
        "batch": 8,
        "lr": 2e-4,
    }
    chain = {
        "preset": "instructions", "tasks": str(paths.data("instructions.jsonl")), "seed": seed,
        "stages": [best, {"stage": "grpo"}],
    }  # fmt: skip
    print(kit.train(chain, judge="code", out=folder / f"best-{seed}"))


if __name__ == "__main__":
    seed, *out = sys.argv[1:]
    main(int(seed), Path(*out) if out else paths.runs() / "best")
