"""Training in 4 bits (NF4) on a CPU: small steps move, resume is exact, a stage begins where the last one ended.

These tests need bitsandbytes: `make setup-gpu`, then `make test-gpu-paths`.
"""

from __future__ import annotations

import pytest
import torch
from training_cases import (
    TINY,
    Stop,
    demonstrations,
    farthest,
    preferences,
    stop_at,
    tasks,
    weights,
)

import kit.training as training

pytest.importorskip("bitsandbytes")
pytestmark = [pytest.mark.slow, pytest.mark.gpu_paths]
NF4 = {**TINY, "quantize": "nf4"}
SOURCES = {"grpo": tasks, "sft": demonstrations, "dpo": preferences}


@pytest.mark.parametrize(
    ("stage", "values"),
    [("sft", {}), ("dpo", {}), ("grpo", {"beta": 0.0}), ("grpo", {"beta": 0.1})],
)
def test_a_resumed_run_in_4_bits_equals_the_uninterrupted_one(tmp_path, stage, values):
    source, options = SOURCES[stage](), {**NF4, **values, "stage": stage}
    held_out = {} if stage == "grpo" else {"heldout": tasks()[4:]}
    whole = training.train(source, options, **held_out, out=tmp_path / "whole")
    with pytest.raises(Stop):
        training.train(source, options, **held_out, out=tmp_path / "parts", on_step=stop_at(3))
    parts = training.train(source, options, **held_out, out=tmp_path / "parts")
    assert farthest(whole.adapter, parts.adapter) == 0
    assert parts.steps()["loss"].tolist() == whole.steps()["loss"].tolist()


def test_a_step_of_5e_6_moves_every_weight(tmp_path):
    """TRL's bfloat16 adapter stays where it is: a step of 5e-6 is below its rounding."""
    options = {**NF4, "lr": 5e-6, "steps": 2, "save_every": 1}
    options |= {"options": {"lr_scheduler_type": "constant"}}
    result = training.train(tasks(held=0), options, out=tmp_path / "r")
    first, second = (weights(result.folder / f"checkpoints/checkpoint-{n}") for n in (1, 2))
    assert {w.dtype for w in second.values()} == {torch.float32}
    moved = {k: float((first[k] != second[k]).float().mean()) for k in first}
    lora_a = [share for name, share in moved.items() if "lora_A" in name]
    assert min(lora_a) > 0.9 and sum(lora_a) / len(lora_a) > 0.99, moved


def test_a_stage_in_4_bits_begins_where_the_last_one_ended(tmp_path):
    sft = {**NF4, "stage": "sft", "steps": 30, "lr": 2e-2, "save_every": 0}
    first = training.train(demonstrations(), sft, out=tmp_path / "a")
    last = first.steps()["loss"].iloc[-3:].mean()
    # as an adapter, and as the stage of a chain
    again = {**sft, "steps": 1, "lr": 1e-9, "adapter": str(first.adapter)}
    second = training.train(demonstrations(), again, out=tmp_path / "b")
    stages = [{"stage": "sft", "steps": 30}, {"stage": "sft", "name": "b", "steps": 1, "lr": 1e-9}]
    chain = {k: v for k, v in sft.items() if k not in ("stage", "steps")} | {"stages": stages}
    third = training.train(demonstrations(), chain, out=tmp_path / "c").stages[1]
    start = first.steps()["loss"].iloc[0]
    for loss in (second.steps()["loss"].iloc[0], third.steps()["loss"].iloc[0]):
        assert loss < last + 0.1 * (start - last), (start, last, loss)
