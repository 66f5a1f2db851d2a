"""Train a small model to answer complaints, paid by a judge: `python data/train_support.py ARM SEED [OUT]`.

ARM is `tuned` (one word, a short text, a cutoff learned on labels), `untuned` (the same model with the kit's own text)
or `control` (a coin decides each criterion). Every arm of a seed begins with the same SFT on support_answers.jsonl.
The judge takes most of the time: about half an hour a run on two idle cores. A run that was stopped goes on.
"""

import hashlib
import json
import sys
from pathlib import Path

import kit
from kit.judging import Judge
from kit.system import paths

SHORT = (
    "You check whether a reply meets a criterion. Reply with one word: yes or no."
)
SMALL = {"small": None, "how": "word"}
JUDGES = {
    "tuned": {"cutoff": {**SMALL, "system": SHORT}, "at": 0.43},
    "untuned": SMALL,
}


class Coin(Judge):
    """The control: a coin decides each criterion, by the answer's text."""

    name = "coin"
    concurrency = 8

    def __init__(self, seed: int):
        self.seed = seed

    def readings(self, task, response, criteria):
        rows = [f"{self.seed}|{task.id}|{response.text}|{c.id}" for c in criteria]
        heads = [hashlib.sha256(row.encode()).digest()[0] % 2 for row in rows]
        return [{"status": "met" if head else "unmet"} for head in heads]


def demonstrations(folder: Path) -> Path:
    """The replies as rows for SFT."""
    data = kit.load(paths.data("support.jsonl")).joined(
        kit.load(paths.data("support_answers.jsonl"))
    )
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        {"id": r.id, "prompt": data.by_id[r.task_id].prompt, "completion": r.text}
        for r in data.responses
    ]
    file = folder / "demonstrations.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return file


def main(arm: str, seed: int, folder: Path, **changes) -> None:
    """SFT once a seed, then GRPO paid by the arm's judge."""
    common = {
        "tasks": str(paths.data("support.jsonl")), "model": "SmolLM2-135M-Instruct", "seed": seed,
        "max_answer_tokens": 32, "eval_samples": 1, "eval_temperature": 1.0,
        "options": {"lr_scheduler_type": "constant"},
    }  # fmt: skip
    sft = {
        "stage": "sft",
        "rows": str(demonstrations(folder)),
        "steps": 24,
        "batch": 8,
        "lr": 5e-4,
    }
    first = kit.train(
        {**common, **sft, "judge": "code", **changes}, out=folder / f"sft-{seed}"
    )
    grpo = {
        "steps": 16,
        "group_size": 6,
        "prompts_per_step": 2,
        "lr": 3e-4,
        "save_every": 4,
        "temperature": 1.0,
    }
    judge = Coin(seed) if arm == "control" else JUDGES[arm]
    settings = {**common, **grpo, "adapter": str(first.adapter), **changes}
    print(kit.train(settings, judge=judge, out=folder / f"{arm}-{seed}"))


if __name__ == "__main__":
    arm, seed, *out = sys.argv[1:]
    main(arm, int(seed), Path(*out) if out else paths.runs() / "support")
