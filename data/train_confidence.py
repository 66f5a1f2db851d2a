"""Teach a small model how sure it may be, by GRPO: `python data/train_confidence.py ARM SEED [OUT]`.

Both arms begin with the same SFT: right answers with a confidence drawn at random. Then ARM "proper" is paid
by the proper score of answer and confidence (Damani et al. 2025, RLCR: right - (confidence - right)^2), and ARM
"right" by the right answer alone. The questions are those of ladder.jsonl that have an answer: SFT sees all kinds,
GRPO an easy and a hard one, which look different. With all six kinds, one run ended at "90%" whatever the question.
"""

import json
import random
import sys
from pathlib import Path

from msgspec.structs import replace

import kit
from kit.system import paths
from kit.training.rows import exact_answer

SYSTEM = "Give the answer, and your confidence from 0% to 100%."
KINDS = ("sum 1", "reverse 5")
PERCENT = (10, 30, 50, 70, 90)
VERIFIERS = {"proper": "uncertainty", "right": "factual"}


def questions() -> list[kit.Task]:
    """The questions with their answer as a fact, for the verifiers of the stated form."""
    return [
        replace(
            t,
            criteria=(),
            system=SYSTEM,
            truth={"facts": [{"text": exact_answer(t)}]},
        )
        for t in kit.load(paths.data("ladder.jsonl"))
        if t.kind != "unknown"
    ]


def demonstrations(tasks: list[kit.Task], seed: int, file: Path) -> Path:
    """Right answers with a confidence that says nothing, as rows for SFT."""
    rng, rows = random.Random(seed), []
    for task in tasks:
        text = f"Answer: {task.truth['facts'][0]['text']}\nConfidence: {rng.choice(PERCENT)}%"
        rows.append(
            {
                "id": task.id,
                "prompt": task.prompt,
                "system": task.system,
                "completion": text,
            }
        )
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return file


def main(arm: str, seed: int, folder: Path, **changes) -> None:
    """SFT on 140 questions once a seed, then GRPO paid by the arm's verifier."""
    tasks = questions()
    examples = [t for t in tasks if not t.held_out][:140]
    common = {
        "model": "SmolLM2-135M-Instruct", "seed": seed, "max_answer_tokens": 20,
        "eval_samples": 1, "eval_temperature": 1.0, "temperature": 1.0, "save_every": 0,
    }  # fmt: skip
    paid = {
        "reward": {"components": [{"kind": "verifier", "verifier": VERIFIERS[arm]}]}
    }
    rows = demonstrations(examples, seed, folder / f"demonstrations-{seed}.jsonl")
    sft = {"stage": "sft", "rows": str(rows), "steps": 24, "batch": 16, "lr": 5e-4}
    first = kit.train(
        tasks, **{**common, **paid, **sft, **changes}, out=folder / f"sft-{seed}"
    )
    grpo = {
        "steps": 40,
        "group_size": 8,
        "prompts_per_step": 6,
        "lr": 2e-4,
        "eval_samples": 2,
    }
    grpo["options"] = {"lr_scheduler_type": "constant"}
    settings = {**common, **paid, **grpo, "adapter": str(first.adapter), **changes}
    two_kinds = [t for t in tasks if t.kind in KINDS]
    print(kit.train(two_kinds, **settings, out=folder / f"{arm}-{seed}"))


if __name__ == "__main__":
    arm, seed, *out = sys.argv[1:]
    main(arm, int(seed), Path(*out) if out else paths.runs() / "confidence")
