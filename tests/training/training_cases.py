"""Small tasks, judges and runs for the tests of kit.training."""

from __future__ import annotations

from typing import Any

from kit import Criterion, Task, Verdict
from kit.data import load
from kit.errors import JudgeDownError
from kit.judging import Judge as BaseJudge

LETTERS = {"name": "regex", "pattern": "[a-m]", "min": 2}
TINY = {
    "model": "tiny-random",
    "engine": "transformers",
    "dtype": "float32",
    "steps": 4,
    "group_size": 4,
    "prompts_per_step": 2,
    "max_answer_tokens": 6,
    "max_prompt_tokens": 400,
    "lora_rank": 4,
    "lr": 1e-2,
    "save_every": 1,
    "eval_samples": 1,
    "batch": 4,
    "max_length": 200,
}


def tasks(n: int = 6, held: int = 2, check: dict[str, Any] | None = LETTERS) -> list[Task]:
    """Tasks with one criterion, the last ones held out."""
    criterion = Criterion(id="c", text="it has letters of the first half", check=check)
    return [
        Task(
            id=f"t{i}",
            prompt=f"Say {i}.",
            criteria=(criterion,),
            kind="odd" if i % 2 else "even",
            split="heldout" if i >= n - held else "train",
        )
        for i in range(n)
    ]


class Judge(BaseJudge):
    """A judge of the tests. `decide` : answer text -> True, False or None; `dead` : calls that fail, from-to."""

    concurrency = 4
    failure = "abstain"  # of an answer on which it does not decide

    def __init__(self, decide: Any = lambda text: len(text) % 2 == 0, dead: range = range(0)):
        self.name, self.decide, self.dead, self.calls = "test", decide, dead, 0

    async def verdicts(self, task: Any, answers: Any, criteria: Any, run: Any) -> list[Verdict]:
        self.calls += 1
        if self.calls in self.dead:
            raise JudgeDownError("no answer", where="judge 'test'", fix="start it")
        await run.before_call()
        run.after_call(0.0, {"cost": 0.0, "tokens_in": 0, "tokens_out": 0})
        decision = self.decide(answers[0].text)
        status = "unknown" if decision is None else "met" if decision else "unmet"
        failure = self.failure if decision is None else None
        return [run.verdict(answers[0], c, status=status, failure=failure) for c in criteria]


class Stop(Exception):
    """Raised in the middle of a run."""


def stop_at(step: int) -> Any:
    """A callback that stops a run after a step."""

    def on_step(row):
        if row["step"] == step:
            raise Stop

    return on_step


def demonstrations(n: int = 8) -> Any:
    """Rows for SFT."""
    return load(
        [
            {"id": f"s{i}", "prompt": f"Say {i}.", "completion": "abc" * (i % 3 + 1)}
            for i in range(n)
        ]
    )


def preferences(n: int = 8) -> Any:
    """Rows for DPO."""
    return load(
        [
            {"id": f"d{i}", "prompt": f"Say {i}.", "chosen": "abc", "rejected": "xyz" * (i % 3 + 1)}
            for i in range(n)
        ]
    )


def weights(folder: Any) -> dict[str, Any]:
    """The tensors of an adapter."""
    from safetensors.torch import load_file

    return load_file(str(folder / "adapter_model.safetensors"))


def farthest(a: Any, b: Any) -> float:
    """The largest difference between two adapters."""
    one, two = weights(a), weights(b)
    assert one.keys() == two.keys()
    return max(float((one[k] - two[k]).abs().max()) for k in one)
