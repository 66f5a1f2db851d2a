"""Train on instructions.jsonl with its gates as a soft bonus: `python data/train_gates.py SEED [OUT]`.

In instructions.jsonl, six *required* criteria are gates: an answer that misses one earns nothing. Here the same six
are ordinary criteria, and together they weigh as much as the others. All else is as in `kit train instructions`.
"""

import sys
from pathlib import Path

from msgspec.structs import replace

import kit
from kit.system import paths


def soft(task: kit.Task) -> kit.Task:
    """The task with its gates as criteria that pay."""
    gates = [c for c in task.criteria if c.required]
    paid = sum(c.weight for c in task.criteria)
    criteria = [
        replace(c, required=False, weight=paid / len(gates)) if c.required else c
        for c in task.criteria
    ]
    return replace(task, criteria=tuple(criteria))


def main(seed: int, folder: Path) -> None:
    """One training of 60 steps: some 16 minutes on two cores."""
    tasks = list(map(soft, kit.load(paths.data("instructions.jsonl"))))
    print(kit.train(tasks, "instructions", seed=seed, out=folder / f"soft-{seed}"))


if __name__ == "__main__":
    seed, *out = sys.argv[1:]
    main(int(seed), Path(*out) if out else paths.runs() / "gates")
