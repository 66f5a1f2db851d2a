"""Small tasks, judges and runs for the tests of kit.training."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "judging"))
sys.path.insert(0, str(Path(__file__).parents[2] / "data"))
from fake_server import FakeServer

from kit import Criterion, Task, answer
from kit.data import load
from kit.errors import JudgeDownError
from kit.judging import LLMJudge, Plan, Question, unknown

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


def texts_of(folder: Path, tasks: list[Task]) -> list[str]:
    """Greedy answers of a finished run's model."""
    options = {"max_tokens": TINY["max_answer_tokens"], "ledger": False, "progress": False}
    return [a.text for a in answer(tasks, folder, **options).responses]


class Judge(LLMJudge):
    """A judge of the tests. `decide` : answer text -> True, False or None; `dead` : questions that fail, from-to.

    Each question is one call of a server that says nothing of interest, so that budgets count it.
    """

    failure = "abstain"  # of an answer on which it does not decide

    def __init__(self, decide: Any = lambda text: len(text) % 2 == 0, dead: range = range(0)):
        self.http = FakeServer().__enter__()
        super().__init__("test", base_url=self.http.url, concurrency=4)
        # Nothing is stored: a run that goes on asks again.
        self.identity = None
        self.decide, self.dead, self.calls = decide, dead, 0

    def plan(self, question: Question) -> Plan:
        self.calls += 1
        if self.calls in self.dead:
            raise JudgeDownError("no answer", where="judge 'test'", fix="start it")
        text = question.answer.text
        yield self.request([{"role": "user", "content": f"{text} "}])
        decision = self.decide(text)
        if decision is None:
            return [unknown("it cannot tell", self.failure)] * len(question.places)
        return [{"status": "met" if decision else "unmet"}] * len(question.places)


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
