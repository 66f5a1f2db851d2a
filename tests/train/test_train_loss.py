"""The loss and its gradient, row by row and token by token, beside what the trainer computed. Offline."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace

import pytest

from kit.records import Criterion, Task
from kit.train import grpo
from kit.train.config import GRPOSettings, build
from kit.train.presets import preset

BETA, EPSILON = 0.3, 0.2
CODE = Criterion(id="c", text="Has one.", check={"name": "contains", "any": list("aeiou")})


def token_logps(model, prompt, answer, temperature):
    """Log-probabilities (C,) of one answer, alone in its batch, without padding."""
    import torch

    ids = torch.cat([prompt, answer])[None]
    logits = model(input_ids=ids).logits[0, len(prompt) - 1 : -1].float() / temperature
    return logits.log_softmax(-1)[torch.arange(len(answer)), answer]


def hand_terms(x, logp, ref, i, keep, settings):
    """(loss, factor of each token's log-probability in the gradient) of one answer."""
    import torch

    old = x.get("old_per_token_logps")
    old = logp if old is None else old[i][keep]
    a = torch.full_like(logp, float(x["advantages"][i]))
    if settings.kl == "k1":  # a price per token on the policy that wrote it, a constant
        a = a - settings.beta * (old - ref)
    ratio, d = (logp - old).exp(), logp - ref
    clipped = ratio.clamp(1 - EPSILON, 1 + EPSILON)
    loss = -torch.minimum(ratio * a, clipped * a)
    free = ~(((a > 0) & (ratio > 1 + EPSILON)) | ((a < 0) & (ratio < 1 - EPSILON)))
    factor = -a * ratio * free
    if settings.loss == "cispo":
        factor = -a * ratio.clamp(max=5.0)
        loss = factor * logp
    if settings.kl == "k2":
        loss, factor = loss + settings.beta * d**2 / 2, factor + settings.beta * d
    if settings.kl == "k3":
        loss = loss + settings.beta * ((-d).exp() - 1 + d)
        factor = factor + settings.beta * (1 - (-d).exp())
    return loss, factor


def by_hand(model, parts, settings):
    """Loss, gradient and KL of one step; parts : its micro-batches."""
    import torch

    tokens = int(parts[0]["num_items_in_batch"]) / settings.substeps  # of the batch, shared out
    if settings.substeps == 1:
        assert tokens == sum(int(x["completion_mask"].sum()) for x in parts)
    rows = sum(int(x["completion_mask"].any(-1).sum()) for x in parts)  # with a known reward
    scale = {"dapo": tokens, "cispo": tokens, "dr_grpo": rows * settings.max_answer_tokens}
    params = [p for p in model.parameters() if p.requires_grad]
    loss, total, apart = 0.0, [torch.zeros_like(p) for p in params], []
    for x in parts:
        for i in range(len(x["advantages"])):
            keep = x["completion_mask"][i].bool()
            if not keep.any():
                continue
            text = x["prompt_ids"][i][x["prompt_mask"][i].bool()], x["completion_ids"][i][keep]
            logp = token_logps(model, *text, settings.temperature)
            with torch.no_grad(), model.disable_adapter():
                ref = token_logps(model, *text, settings.temperature)
            terms, factor = hand_terms(x, logp.detach(), ref, i, keep, settings)
            d = logp.detach() - ref
            apart += {"k1": d, "k2": d**2 / 2, "k3": (-d).exp() - 1 + d}[settings.kl].tolist()
            n = scale.get(settings.loss, rows * len(terms))
            loss += float(terms.sum()) / n
            grads = torch.autograd.grad((factor * logp).sum() / n, params)
            total = [t + g for t, g in zip(total, grads, strict=True)]
    return loss, torch.cat([t.flatten() for t in total]), sum(apart) / max(len(apart), 1)


def leave_unknown(monkeypatch):
    """The rewards of some answers are not known."""
    from kit.train.reward import Reward

    score = Reward._score

    def some(self, response, verdicts):
        grade = score(self, response, verdicts)
        return replace(grade, score=None) if len(response.text) % 3 == 0 else grade

    monkeypatch.setattr(Reward, "_score", some)


def slow(*values):
    """More of the same formulas: 2 s each."""
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("kl", "loss", "more"),
    [
        ("k2", "dapo", {"micro_rows": 4}),
        ("k3", "dapo", {"micro_rows": 2, "unknown": True, "lr": 0.05}),
        ("k3", "grpo", {}),
        ("k1", "dapo", {}),
        ("k3", "cispo", {}),
        slow("k2", "dapo", {}),
        slow("k2", "grpo", {"micro_rows": 4}),
        slow("k2", "dr_grpo", {}),
        slow("k2", "dapo", {"substeps": 2, "iterations": 1}),
        slow("k3", "dapo", {"micro_rows": 4}),
        ("k2", "dr_grpo", {"unknown": True}),
        slow("k3", "grpo", {"unknown": True, "micro_rows": 4}),
        ("k2", "dr_grpo", {"unknown": True, "resample": 2}),
        ("k3", "grpo", {"truncated": "mask", "max_answer_tokens": 24}),
        slow("k2", "dapo", {"unknown": True}),
    ],
)
def test_loss_and_gradient_are_those_of_the_formulas(tmp_path, monkeypatch, kl, loss, more):
    """k2 ignored how the loss averages tokens; k3 was multiplied by the ratio of policies; cispo's
    ratio was held at epsilon, .2, where nearly every one lies above. Answers without a known reward
    stayed in the size of dr_grpo and grpo: 6/8 of the gradient where 2 of 8 were unknown; so did
    cut ones that `truncated: mask` leaves out, and where groups were sampled anew the size was that
    of the first sampling. The KL that is logged was a mean of micro-batches, not of tokens.
    """
    import torch

    from kit.train.trainer import GRPOHooks

    more = dict(more)
    if more.pop("unknown", False):
        leave_unknown(monkeypatch)

    s = build(
        GRPOSettings,
        {
            **preset("test"),
            **dict(beta=BETA, kl=kl, loss=loss, epsilon=EPSILON, lr=0.02, temperature=0.9),
            **dict(steps=4, iterations=2, save_every=0, max_grad_norm=1e9),
            **more,
        },
    )
    seen, found, original = defaultdict(list), defaultdict(list), GRPOHooks._compute_loss
    apart: dict[int, float] = {}

    def spy(self, model, inputs):
        out = original(self, model, inputs)
        params = [p for p in model.parameters() if p.requires_grad]
        grads = torch.autograd.grad(out, params, retain_graph=True)
        step = self.state.global_step
        seen[step].append({k: v.clone() if torch.is_tensor(v) else v for k, v in inputs.items()})
        found[step].append((float(out.detach()), torch.cat([g.flatten() for g in grads])))
        if len(seen[step]) == self.args.gradient_accumulation_steps:
            value, gradient, apart[step] = by_hand(model, seen[step], s)
            assert math.isclose(sum(v for v, _ in found[step]), value, rel_tol=1e-3, abs_tol=1e-5)
            mine = sum(g for _, g in found[step])
            assert (mine - gradient).norm() <= 1e-3 * gradient.norm() + 1e-7
            read = any(x["completion_mask"].any() for x in seen[step])  # else all were cut
            assert step == 0 or not read or gradient.norm() > 1e-3  # it says something
        return out

    monkeypatch.setattr(GRPOHooks, "_compute_loss", spy)
    every = [Task(id=f"t{i}", prompt=f"say {i}", criteria=(CODE,)) for i in range(2)]
    logged = [row["kl"] or 0.0 for row in grpo.train(s, every, out=tmp_path).steps()]
    assert logged == pytest.approx([apart[i] for i in range(4)], rel=1e-3, abs=1e-6)
    assert sorted(seen) == [0, 1, 2, 3]
    drift = [x["ref_per_token_logps"] for x in seen[3]]
    assert all(d.shape == x["completion_mask"].shape for d, x in zip(drift, seen[3], strict=True))


@pytest.mark.parametrize("target", ["q_proj", "v_proj", "up_proj"])
def test_the_reference_is_told_from_the_policy_wherever_the_adapter_sits(target):
    """Only layer 0's q_proj was looked at: with an adapter elsewhere KL was 0 and pulled nothing."""
    from kit.train import engine, models

    model = models.load(build(GRPOSettings, {**preset("test"), "lora_targets": [target]})).model
    trained = engine.state(model)
    with model.disable_adapter():
        assert engine.state(model) != trained
    assert engine.state(model) == trained != ()


def test_what_the_engine_would_leave_out_takes_the_slow_way():
    """An adapted embedding, a bias of the adapter, another activation: evaluations were of another model."""
    import torch
    from peft import LoraConfig, get_peft_model

    from kit.train import engine, models

    def reason(act="silu", **how):
        base = models.tiny_model(64)
        base.config.hidden_act = act
        return engine.fast_ok(get_peft_model(base, LoraConfig(r=2, **how)))

    assert reason(target_modules=["v_proj", "up_proj"]) is None
    assert "embed_tokens is adapted" in reason(target_modules=["embed_tokens", "q_proj"])
    assert "lm_head is adapted" in reason(target_modules=["lm_head", "q_proj"])
    assert "a bias" in reason(target_modules=["q_proj"], lora_bias=True)
    assert "as a whole" in reason(target_modules=["q_proj"], modules_to_save=["embed_tokens"])
    assert "a DoRA" in reason(target_modules=["q_proj"], use_dora=True)
    assert "'gelu'" in reason("gelu", target_modules=["q_proj"])
    late = models.tiny_model(64)
    up = late.model.layers[1].mlp.up_proj
    up.weight = torch.nn.Parameter(up.weight.data.to(torch.int8), requires_grad=False)
    assert "up_proj is quantised" in engine.fast_ok(late)
