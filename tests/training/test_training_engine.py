"""The numbers: loss and gradient by hand, unknown rewards, the fast CPU path beside TRL's own."""

from __future__ import annotations

import copy

import pytest
import torch
from training_cases import TINY, Judge, farthest, tasks
from transformers import GenerationConfig

import kit
import kit.training as training
from kit.errors import DataError
from kit.training import Reward, build


def trainer_of(tmp_path, rewards, **values):
    """TRL's trainer on the tiny model whose reward function pays `rewards`, and the tensors of its first batch."""
    settings = build({**TINY, **values}, profile="test")
    some = tasks()
    pay = Reward(some, judge=Judge())

    class Paid(Reward):
        def grade(self, answers):
            return [
                kit.Grade(
                    task_id=a.task_id,
                    response_id=a.id,
                    score=r,
                    score_low=0,
                    score_high=1,
                    parts={"rubric": n / 8},
                )
                for n, (a, r) in enumerate(zip(answers, rewards, strict=True))
            ]

    pay.__class__ = Paid
    policy = training.policy(settings)
    log = training.Log(tmp_path)
    trainer = training.grpo_trainer(policy, settings, some[:4], pay, out=tmp_path, log=log)
    rows = [trainer.train_dataset[i // settings.group_size] for i in range(settings.rows)]
    trainer.model.train()
    trainer.current_gradient_accumulation_steps = 1
    # an adapter that already moved: B is 0 at the start, and all gradients of A with it
    for name, p in trainer.model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(p, std=0.1)
    return trainer, trainer._generate_and_score_completions(rows)


def gradients(model):
    return {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}


def padded_logps(trainer, batch):
    """Log-probabilities of the answers, a padded row each, written out."""
    ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], 1)
    mask = torch.cat([batch["prompt_mask"], batch["completion_mask"]], 1)
    width = batch["completion_ids"].shape[1]
    position = (mask.cumsum(-1) - 1).clamp(min=0)
    logits = trainer.model(input_ids=ids, attention_mask=mask, position_ids=position).logits[:, :-1]
    logp = (logits.float() / trainer.temperature).log_softmax(-1)
    return logp.gather(-1, ids[:, 1:, None])[..., 0][:, -width:]


REWARDS = [1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0]


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("rewards", [REWARDS, [1.0, 0.0, None, 0.0, 1.0, None, None, None]])
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_loss_and_gradient_are_those_written_out_by_hand(tmp_path, fast, rewards, temperature):
    trainer, batch = trainer_of(tmp_path, rewards, fast=fast, temperature=temperature)
    groups = [[r for r in rewards[i : i + 4] if r is not None] for i in (0, 4)]
    wanted = []
    for i, r in enumerate(rewards):
        group = torch.tensor(groups[i // 4])
        known = r is not None and len(group) > 1
        wanted.append((r - group.mean()) / (group.std() + 1e-4) if known else torch.tensor(0.0))
    advantages = torch.stack(wanted)
    assert torch.allclose(batch["advantages"], advantages, atol=1e-5)

    mask = batch["completion_mask"]
    logp = padded_logps(trainer, batch)
    # the ratio to the sampling policy is 1, with the gradient of the log-probability
    ratio = (logp - logp.detach()).exp()
    by_hand = -(ratio * advantages[:, None] * mask).sum() / mask.sum()
    by_hand.backward()
    expected = gradients(trainer.model)
    trainer.model.zero_grad()
    loss = trainer.compute_loss(trainer.model, batch)
    loss.backward()
    assert loss.item() == pytest.approx(by_hand.item(), abs=1e-5)
    for name, g in gradients(trainer.model).items():
        assert torch.allclose(g, expected[name], atol=1e-5), name
    assert any(g.abs().max() > 1e-4 for g in expected.values())


@pytest.mark.parametrize("values", [{"fast": True}, {"fast": False}, {"gdpo": True}])
def test_no_known_reward_leaves_no_gradient(tmp_path, values):
    trainer, batch = trainer_of(tmp_path, [None] * 8, **values)
    trainer.compute_loss(trainer.model, batch).backward()
    assert all(float(g.abs().max()) == 0 for g in gradients(trainer.model).values())


def test_an_unknown_answer_leaves_the_gradient_whatever_it_says(tmp_path):
    trainer, batch = trainer_of(tmp_path, [1.0, 0.0, None, 0.0, *[1.0] * 4])
    other = copy.deepcopy(batch)
    other["completion_ids"][2] = (other["completion_ids"][2] + 3) % 250 + 3
    grads = []
    for b in (batch, other):
        trainer.model.zero_grad()
        trainer.compute_loss(trainer.model, b).backward()
        grads.append(gradients(trainer.model))
    assert all(torch.equal(grads[0][k], grads[1][k]) for k in grads[0])


def test_the_kl_term_is_k3_and_pulls_to_the_start(tmp_path):
    trainer, batch = trainer_of(tmp_path, [1.0] * 8, beta=0.5)
    logp = padded_logps(trainer, batch)
    with trainer.model.disable_adapter():
        reference = padded_logps(trainer, batch).detach()
    assert torch.allclose(
        batch["ref_per_token_logps"] * batch["completion_mask"],
        reference * batch["completion_mask"],
        atol=1e-4,
    )
    d = reference - logp
    mask = batch["completion_mask"]
    kl = ((d.exp() - 1 - d) * mask).sum() / mask.sum()
    loss = trainer.compute_loss(trainer.model, batch)
    assert loss.item() == pytest.approx(0.5 * kl.item(), abs=1e-5)


def test_packed_log_probabilities_and_greedy_answers_are_the_plain_ones(tmp_path):
    trainer, batch = trainer_of(tmp_path, REWARDS)
    ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], 1)
    mask = torch.cat([batch["prompt_mask"], batch["completion_mask"]], 1)
    width = batch["completion_ids"].shape[1]
    packed, entropy = training.packed_logps(trainer.model, ids, mask, width, temperature=1.0)
    plain = padded_logps(trainer, batch) * batch["completion_mask"]
    assert (packed - plain).abs().max().item() < 1e-4
    assert bool((entropy >= 0).all()) and packed.shape == entropy.shape == plain.shape
    config = GenerationConfig(max_new_tokens=5, do_sample=False, pad_token_id=0, eos_token_id=2)
    trainer.kit_merged.refresh(trainer.model)
    prompts = [[5, 9, 30, 31], [5, 9, 30, 31], [7, 8], [7, 8]]
    for rows in (prompts, prompts[:3], [[4]]):  # equal groups, unequal ones, a single row
        padded = trainer.processing_class.pad({"input_ids": rows}, return_tensors="pt")
        with torch.no_grad():
            plain = trainer.model.eval().generate(**padded, generation_config=config)
            fast = trainer.kit_merged.generate(rows, config)
        assert fast.tolist() == plain[:, padded["input_ids"].shape[1] :].tolist()


def test_a_whole_run_learns_the_same_with_the_fast_path_and_without(tmp_path):
    made = [
        training.train(tasks(), {**TINY, "fast": fast, "steps": 3}, out=tmp_path / str(fast))
        for fast in (True, False)
    ]
    assert made[0].metrics["fast"] and not made[1].metrics["fast"]
    assert farthest(made[0].adapter, made[1].adapter) < 1e-4
    assert made[0].rollouts()["text"].tolist() == made[1].rollouts()["text"].tolist()


def test_parts_of_a_reward_are_normalised_one_by_one_with_gdpo(tmp_path):
    reward = {
        "components": [
            {"kind": "rubric", "name": "half", "weight": 0.7},
            {"kind": "verifier", "verifier": "factual", "weight": 0.3},
        ]
    }
    result = training.train(
        tasks(), {**TINY, "gdpo": True, "steps": 1}, reward=reward, out=tmp_path / "r"
    )
    steps = result.steps()
    assert "rewards/half/mean" in steps and "rewards/factual/mean" in steps
    assert result.rollouts()["parts"][0]["factual"] is None
    with pytest.raises(DataError, match="setting gdpo"):
        training.train(
            tasks(),
            {**TINY, "gdpo": True},
            reward={"preset": "rubric", "cap": 1},
            out=tmp_path / "cap",
        )
