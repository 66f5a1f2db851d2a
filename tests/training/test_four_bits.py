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
    texts_of,
    weights,
)
from transformers import TrainerCallback

import kit.training as training
from kit.data import load, small_model
from kit.errors import MissingError

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
    options = {**NF4, "lr": 5e-6, "steps": 4, "save_every": 1}
    options |= {"options": {"lr_scheduler_type": "constant"}}
    result = training.train(tasks(held=0), options, out=tmp_path / "r")
    first, second = (weights(result.folder / f"checkpoints/checkpoint-{n}") for n in (3, 4))
    assert {w.dtype for w in second.values()} == {torch.float32}
    moved = {k: float((first[k] != second[k]).float().mean()) for k in first}
    lora_a = [share for name, share in moved.items() if "lora_A" in name]
    assert min(lora_a) > 0.9 and sum(lora_a) / len(lora_a) > 0.99, moved


@pytest.mark.parametrize("beta", [0.0, 0.1])
def test_a_gradient_scaler_takes_the_gradients_of_a_float16_training(tmp_path, beta):
    """A T4 trains in float16 with a GradScaler, which refuses float16 gradients and has no kernel for bfloat16 ones."""
    options = training.build({**NF4, "dtype": "float16", "beta": beta, "steps": 2}, profile="cpu")
    policy = training.policy(options)
    trainer = training.grpo_trainer(
        policy, options, tasks(held=0), training.Reward(tasks(held=0)), out=tmp_path, log=training.Log(tmp_path)
    )  # fmt: skip
    scaler, dtypes = torch.amp.GradScaler("cpu"), []

    class Scale(TrainerCallback):
        def on_pre_optimizer_step(self, *_, optimizer, **more):
            scaler.scale(torch.ones(()))
            scaler.unscale_(optimizer)
            dtypes.extend(p.grad.dtype for g in optimizer.param_groups for p in g["params"])
            scaler.update()

    trainer.add_callback(Scale())
    trainer.train()
    assert policy.device.dtype == "float16" and dtypes and {*dtypes} == {torch.float32}


def test_a_stage_in_4_bits_begins_where_the_last_one_ended(tmp_path):
    """SmolLM2 learns four lines. Merged into 4-bit weights they would be gone: loss 2.7, as before the training."""
    try:
        small_model()
    except MissingError as e:
        pytest.skip(str(e))
    codes = [f"The code is {i * 37 + 11}." for i in range(4)]
    rows = [
        {"id": f"s{i}", "prompt": f"What is the code of room {i}?", "completion": code}
        for i, code in enumerate(codes)
    ]
    sft = {**NF4, "model": "SmolLM2-135M-Instruct", "stage": "sft", "lr": 5e-4, "save_every": 0}
    first = training.train(load(rows), {**sft, "steps": 8}, out=tmp_path / "a")
    start, *_, end = first.steps()["loss"]
    assert end < start - 1.5
    again = {**sft, "steps": 1, "lr": 1e-9, "adapter": str(first.adapter)}
    second = training.train(load(rows), again, out=tmp_path / "b")
    assert second.steps()["loss"].iloc[0] == pytest.approx(end, abs=0.15)


def test_a_chain_in_4_bits_evaluates_each_stage_as_it_is_quantised(tmp_path):
    stages = [
        {"stage": "sft", "rows": {"source": "exact"}},
        {"stage": "dpo", "rows": {"source": "own"}},
    ]
    stages.append({"stage": "grpo"})
    check = {"name": "exact", "answers": ["ab"]}
    options = {**NF4, "steps": 2, "save_every": 0, "eval_temperature": 0.0, "stages": stages}
    result = training.train(tasks(check=check), options, out=tmp_path / "c")
    assert [r.metrics["stage"] for r in result.stages] == ["sft", "dpo", "grpo"]
    assert all("4 bits" in " ".join(r.metrics["notes"]) for r in result.stages)
    # each stage has its own look at the model before it, and others read its model as it was trained
    for stage in result.stages:
        assert {r.source for r in stage.before.responses} == {"before"}
        answers = [r.text for r in stage.after.responses]
        assert texts_of(stage.folder, result.heldout) == answers
