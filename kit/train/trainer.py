"""The kit's GRPO trainer: trl's, with sampling, log-probabilities, log and time split of our own
where they fit.

The class is put together by a function, because unsloth replaces trl's trainer when it is imported:
the parent must be looked up after the engine was chosen. trl's loss, optimiser, scheduler,
checkpoints and distributed parts stay trl's.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..records import Grade, Response
from ..system.device import import_torch
from . import engine, packing, resample, resume, rollouts, sampling, world
from .config import GRPOSettings, Settings, merged
from .models import Loaded, eos_ids

PER_TOKEN = {"kl", "entropy"}  # what trl measures in each micro-batch, as a mean of its tokens
CLIPPED = {"clip_ratio/region_mean", "cispo_clip_ratio"}  # per token too, or per answer
CISPO_BOUND = 5.0  # of the ratio itself, not of its distance from 1 (ScaleRL, arXiv 2510.13786)


def common_options(settings: Settings, loaded: Loaded, out: str) -> dict[str, Any]:
    """What every stage tells trl: steps, optimiser, checkpoints, device."""
    return dict(
        output_dir=out,
        seed=settings.seed,
        max_steps=settings.steps,
        learning_rate=settings.lr,
        lr_scheduler_type=settings.schedule,
        warmup_steps=settings.warmup,
        weight_decay=settings.weight_decay,
        max_grad_norm=settings.max_grad_norm,
        gradient_checkpointing=settings.gradient_checkpointing,
        logging_steps=1,
        save_strategy="steps" if settings.save_every else "no",
        save_steps=settings.save_every or settings.steps,
        save_total_limit=settings.keep,
        report_to=list(settings.report_to) or "none",
        disable_tqdm=True,
        bf16=loaded.device.kind == "cuda" and loaded.device.dtype == "bfloat16",
        fp16=loaded.device.kind == "cuda" and loaded.device.dtype == "float16",
        use_cpu=loaded.device.kind == "cpu",
        dataloader_pin_memory=False,
    )


def arguments(
    settings: GRPOSettings, loaded: Loaded, out: str, weights: list[float] | None = None
) -> Any:
    """trl's GRPOConfig for these settings; every option is checked against the installed class.

    weights : of the reward functions, where there are several (kit.train.reward).
    """
    from trl import GRPOConfig

    rows = world.share(
        settings.group_size * settings.prompts_per_step, settings.group_size
    )  # of this process; one alone takes all
    part = rows // settings.substeps
    micro = settings.micro_rows or part
    values = common_options(settings, loaded, out) | dict(
        per_device_train_batch_size=micro,
        gradient_accumulation_steps=part // micro,
        steps_per_generation=rows // micro,
        num_generations=settings.group_size,
        num_iterations=settings.iterations,
        max_completion_length=settings.max_answer_tokens,
        temperature=settings.temperature,
        top_p=settings.top_p,
        top_k=settings.top_k,
        beta=settings.beta,
        reward_weights=weights,
        epsilon=settings.epsilon,
        loss_type=settings.loss,
        importance_sampling_level=settings.importance,
        mask_truncated_completions=settings.truncated == "mask",
        scale_rewards={"std": "group", "centred": "none", "batch": "batch"}[settings.advantage],
        use_vllm=settings.use_vllm,
        remove_unused_columns=False,
        shuffle_dataset=False,
        logging_nan_inf_filter=False,
        use_bias_correction_kl=False,  # the documented k3, not k3 times the ratio
    )
    if settings.loss == "cispo" and "epsilon_high" not in settings.options:
        values["epsilon_high"] = CISPO_BOUND
    return GRPOConfig(**merged(values, settings.options, GRPOConfig))


class GRPOHooks:
    """What the kit does differently from trl's GRPOTrainer, which stands behind it in the order of
    base classes.
    """

    def kit_setup(
        self,
        settings: GRPOSettings,
        loaded: Loaded,
        log: rollouts.Log,
        on_batch: Callable[..., None] | None = None,
    ) -> None:
        """Attach settings and log; choose the fast paths that fit this model."""
        self.kit = settings
        self.kit_log, self.kit_on_batch = log, on_batch
        self.kit_times = dict.fromkeys(("generation", "judge", "kit"), 0.0)
        self.kit_pending: list[tuple[Response, Grade, tuple[str, ...], int]] = []
        self.kit_engine: Any = None
        self.kit_merged: Any = None  # the step and adapter that the engine's weights are of
        self.kit_slow = _slow(settings, loaded, self.model)
        self.kit_kl = settings.kl if settings.beta and settings.kl != "k3" else None
        self.kit_skipped = 0
        self.kit_tokens: dict[str, list[int]] = defaultdict(list)  # of each value of PER_TOKEN

    @property
    def kit_parts(self) -> int:
        """Micro-batches that one batch of answers is trained on, all passes together."""
        return self.args.steps_per_generation * self.num_iterations

    def kit_resume(self, checkpoint: Path) -> None:
        """Go on inside the batch that was in use at the checkpoint."""
        self._step = resume.step_of(checkpoint) * self.args.gradient_accumulation_steps
        self._buffered_inputs = resume.read_batch(checkpoint)

    def _save_rng_state(self, output_dir: str) -> None:
        """Called for every checkpoint, before the file that marks it as complete."""
        if self._step % self.kit_parts and self._buffered_inputs is not None:
            resume.write_batch(Path(output_dir), self._buffered_inputs)
        super()._save_rng_state(output_dir)

    def training_step(self, *args: Any, **kwargs: Any) -> Any:
        """Random numbers depend on seed, micro-batch and process alone, also after a stop (dropout,
        order of rows).
        """
        import_torch().manual_seed(self._kit_seed(self._step))
        return super().training_step(*args, **kwargs)

    def _kit_seed(self, number: int) -> int:
        return (self.kit.seed * 1_000_003 + number) * 1009 + self.accelerator.process_index

    def _generate_single_turn(self, prompt_ids: Any, *args: Any, **kwargs: Any) -> Any:
        """Answers of a step, the same ones in a resumed run."""
        started, torch = time.perf_counter(), import_torch()
        seed = self._kit_seed(self.state.global_step)
        try:
            if self.kit_slow is not None:
                with torch.random.fork_rng():
                    torch.manual_seed(seed)
                    return super()._generate_single_turn(prompt_ids, *args, **kwargs)
            found = sampling.sample(
                self._kit_now(),
                prompt_ids,
                max_new_tokens=self.max_completion_length,
                temperature=self.temperature,
                top_p=self.kit.top_p,
                top_k=self.kit.top_k,
                eos_ids=eos_ids(self.model, self.processing_class),
                generator=torch.Generator().manual_seed(seed),
            )
            return found.ids, None
        finally:
            self.kit_times["generation"] += time.perf_counter() - started

    def _kit_now(self) -> engine.Engine:
        """The engine with the weights of this step and of the adapter in use (the reference,
        say).
        """
        now = (self.state.global_step, engine.state(self.model))
        if self.kit_engine is None:
            self.kit_engine = engine.Engine(self.model)
        elif self.kit_merged != now:
            self.kit_engine.refresh()
        self.kit_merged = now
        return self.kit_engine

    def _get_per_token_logps_and_entropies(
        self,
        model: Any,
        input_ids: Any,
        attention_mask: Any,
        logits_to_keep: int,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        pictures = (v for k, v in kwargs.items() if k.endswith(("values", "thw", "sizes")))
        if self.kit_slow is not None or any(v is not None for v in pictures):
            return super()._get_per_token_logps_and_entropies(
                model, input_ids, attention_mask, logits_to_keep, *args, **kwargs
            )
        now = self._kit_now()
        found = packing.spread(
            model,
            input_ids,
            attention_mask,
            logits_to_keep,
            through=lambda groups: now.score(groups, self.temperature),
        )
        return *found, None

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        output = super()._generate_and_score_completions(inputs)
        if not self.model.training:
            return output
        self._kit_leave_out(output)
        if self.kit_kl == "k1":
            d = estimate(self._kit_old(output), output["ref_per_token_logps"], "k1")
            output["kit_k1"] = d * output["completion_mask"]  # (B, C)
        if self.kit_pending:
            self._kit_write(output["advantages"].tolist())
        return output

    def _calculate_rewards(self, *args: Any, **kwargs: Any) -> Any:
        self.kit_rewards = super()._calculate_rewards(*args, **kwargs)  # (B of all processes, F)
        return self.kit_rewards

    def _kit_leave_out(self, output: Any) -> None:
        """An answer without a known reward is in no term of the loss."""
        unknown = self.kit_rewards.isnan().all(-1)  # (B of all processes,)
        here = unknown.view(world.size(), -1)[self.accelerator.process_index]
        output["completion_mask"][here] = 0
        self._kit_size(output)

    def _kit_size(self, output: Any) -> None:
        """What the loss is divided by: the answers, and the tokens, that are in a term of it."""
        mask = output["completion_mask"]
        live = self.accelerator.gather(mask.any(-1).long())  # (B of all processes,)
        output["kit_scale"] = len(live) / live.sum().clamp(min=1)
        output["num_items_in_batch"] = self.accelerator.gather(mask.sum()).sum()

    def _kit_old(self, output: Any) -> Any:
        """Log-probabilities (B, C) of the answers under the policy that wrote them."""
        if output.get("old_per_token_logps") is not None:
            return output["old_per_token_logps"]
        torch = import_torch()
        ids = torch.cat([output["prompt_ids"], output["completion_ids"]], dim=1)
        mask = torch.cat([output["prompt_mask"], output["completion_mask"]], dim=1)
        with torch.no_grad():
            return self._get_per_token_logps_and_entropies(
                self.model, ids, mask, output["completion_ids"].size(1)
            )[0]

    def _kit_write(self, advantages: Sequence[float]) -> None:
        started = time.perf_counter()
        step = self.state.global_step + 1
        rows = [
            rollouts.row(
                step,
                r,
                g,
                advantage=None if g.score is None else a,
                tokens=n,
                seconds=time.time(),
                sentinels=flags,
            )
            for (r, g, flags, n), a in zip(self.kit_pending, advantages, strict=True)
        ]
        rows = world.gather(rows)
        if world.main():
            self.kit_log.append(rows)
        if self.kit_on_batch is not None:
            self.kit_on_batch(step, rows)
        self.kit_pending = []
        self.kit_times["kit"] += time.perf_counter() - started

    def _prepare_inputs(self, generation_batch: Any) -> Any:
        if self.kit_slow is not None or not self.model.training:
            return super()._prepare_inputs(generation_batch)
        if self._step % self.kit_parts == 0 or self._buffered_inputs is None:
            batch = self._generate_and_score_completions(generation_batch)
            self._buffered_inputs = _split(batch, self.args.steps_per_generation)
        return self._buffered_inputs[self._step % self.args.steps_per_generation]

    def _compute_loss(self, model: Any, inputs: Any) -> Any:
        loss = self._kit_loss(model, inputs)
        self._kit_count(inputs)
        by_answer = self.loss_type in ("grpo", "dr_grpo")  # trl takes the mean over all answers
        return loss * inputs["kit_scale"] if by_answer else loss

    def _kit_count(self, inputs: Any) -> None:
        """Keep over how many tokens each mean of this micro-batch was taken."""
        tokens = int(inputs["completion_mask"][self._kit_live(inputs)].sum())
        each = PER_TOKEN | (CLIPPED if self.kit.importance == "token" else set())
        for name in each & self._metrics["train"].keys():
            known = self.kit_tokens[name]
            known += [tokens] * (len(self._metrics["train"][name]) - len(known))

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """As trl; the means of a step are of its tokens, not of its micro-batches."""
        if self.model.training:
            for name, tokens in self.kit_tokens.items():
                values = zip(self._metrics["train"][name], tokens, strict=True)
                whole = sum(v * n for v, n in values) / max(sum(tokens), 1)
                self._metrics["train"][name] = [whole]
            self.kit_tokens.clear()
        super().log(logs, start_time)

    def _kit_live(self, inputs: Any) -> Any:
        """(B,): the rows that have a term in the loss."""
        live = inputs["completion_mask"].any(-1) | (world.size() > 1)
        return live & (inputs["advantages"] != 0) if self._kit_drops() else live

    def _kit_loss(self, model: Any, inputs: Any) -> Any:
        live = self._kit_live(inputs)
        if self._kit_drops():
            self.kit_skipped += int((~live).sum())
        if not bool(live.any()):  # and nothing is measured
            return sum(p.sum() for p in model.parameters() if p.requires_grad) * 0.0
        if self.kit_kl is not None:
            return self._kit_loss_with_kl(model, inputs)
        if not self._kit_drops() or bool(live.all()):
            return super()._compute_loss(model, inputs)
        rows, is_tensor = live.shape[0], import_torch().is_tensor
        kept = {
            k: v[live] if is_tensor(v) and v.dim() and v.shape[0] == rows else v
            for k, v in inputs.items()
        }
        return super()._compute_loss(model, kept)

    def _kit_drops(self) -> bool:
        """True where rows without advantage can be left out and the loss stays the same."""
        return (
            self.kit.zero_variance == "drop"
            and self.beta == 0.0
            and self.loss_type in ("dapo", "cispo")
            and self.kit_slow is None
        )

    def _kit_loss_with_kl(self, model: Any, inputs: Any) -> Any:
        """trl's loss without its own k3 term, and the chosen estimator instead: k1 in the
        advantages, k2 in the loss.
        """
        mask, beta, seen = inputs["completion_mask"], self.beta, []
        if self.kit_kl == "k1":
            paid = inputs["advantages"][:, None] - beta * inputs["kit_k1"]  # (B, C)
            inputs = {**inputs, "advantages": paid}
        original = self._get_per_token_logps_and_entropies
        self._get_per_token_logps_and_entropies = lambda *a, **k: (
            seen.append(original(*a, **k)) or seen[-1]
        )
        self.beta = 0.0
        try:
            loss = super()._compute_loss(model, inputs)
        finally:
            self.beta = beta
            del self._get_per_token_logps_and_entropies
        value = estimate(seen[0][0], inputs["ref_per_token_logps"], self.kit_kl)
        shown = (value.detach() * mask).sum() / mask.sum().clamp(min=1)
        self._metrics["train"]["kl"].append(float(shown))
        return loss if self.kit_kl == "k1" else loss + beta * self._kit_mean(value, mask, inputs)

    def _kit_mean(self, value: Any, mask: Any, inputs: Any) -> Any:
        """A term per token (B, C) averaged as the loss averages its own, shared out to the
        micro-batches of a step.
        """
        parts, total = self.current_gradient_accumulation_steps, (value * mask).sum()
        if self.loss_type == "grpo":
            each = (value * mask).sum(-1) / mask.sum(-1).clamp(min=1.0)  # (B,)
            return each.mean() / parts
        if self.loss_type == "bnpo":
            return total / mask.sum().clamp(min=1.0) / parts
        if self.loss_type == "dr_grpo":
            return total / (value.size(0) * self.max_completion_length) / parts
        tokens = inputs["num_items_in_batch"].clamp(min=1.0) / self.accelerator.num_processes
        return total / (tokens * parts / self.args.steps_per_generation)


def _slow(settings: GRPOSettings, loaded: Loaded, model: Any) -> str | None:
    """Why the fast path is not taken; None where it is."""
    if not settings.fast:
        return "fast is off"
    if world.size() > 1:
        return "several processes train together"
    if loaded.engine != "transformers":
        return "the engine is unsloth"
    if settings.gradient_checkpointing:
        return "activations are computed twice to save memory"
    return engine.fast_ok(model) or engine.trains_ok(model)


def trainer_class() -> type:
    """The hooks before the installed GRPOTrainer (unsloth's, where unsloth was imported first)."""
    import trl

    bases = (resample.Resampling, GRPOHooks, resume.Resumable, trl.GRPOTrainer)
    return type("KitGRPOTrainer", bases, {})


def _split(batch: dict[str, Any], parts: int) -> list[dict[str, Any]]:
    """Groups stay together (their prompt is computed once per part): rows are cut in order, not
    shuffled.
    """
    torch = import_torch()
    if parts == 1:
        return [batch]
    rows = batch["advantages"].shape[0]
    size = rows // parts

    def cut(v: Any, i: int) -> Any:
        by_row = torch.is_tensor(v) and v.dim() and v.shape[0] == rows
        return v[i * size : (i + 1) * size] if by_row else v

    return [{k: cut(v, i) for k, v in batch.items()} for i in range(parts)]


ESTIMATES = {
    "k1": lambda d: d,
    "k2": lambda d: d * d / 2,
    "k3": lambda d: (-d).exp() - 1 + d,
}
CLAMP = 40.0


def estimate(logp: Any, ref_logp: Any, name: str) -> Any:
    """Per-token estimate of KL(pi || pi_ref), same shape as the log-probabilities (natural
    logarithm).
    """
    return ESTIMATES[name]((logp - ref_logp).clamp(-CLAMP, CLAMP))
