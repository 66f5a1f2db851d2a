"""The kit's GRPO trainer: trl's, with sampling, log-probabilities, log and time split of our own where they fit.

The class is made by a function, because unsloth replaces trl's trainer when it is imported: the parent must be looked up
after the engine was chosen. trl's loss, optimiser, scheduler, checkpoints and distributed parts stay trl's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from ..records import Grade, Response
from . import kl, packing, rollouts, sampling, world
from .config import GRPOSettings, check_options
from .device import import_torch
from .models import Loaded, eos_ids


def arguments(settings: GRPOSettings, loaded: Loaded, out: str) -> Any:
    """trl's GRPOConfig for these settings; every option is checked against the installed class."""
    from trl import GRPOConfig

    rows = world.share(
        settings.group_size * settings.prompts_per_step, settings.group_size
    )  # of this process; one alone takes all
    part = rows // settings.substeps
    micro = settings.micro_rows or part
    values: dict[str, Any] = dict(
        output_dir=out,
        seed=settings.seed,
        max_steps=settings.steps,
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
        epsilon=settings.epsilon,
        loss_type=settings.loss,
        importance_sampling_level=settings.importance,
        mask_truncated_completions=settings.truncated == "mask",
        scale_rewards={"std": "group", "centred": "none", "batch": "batch"}[settings.advantage],
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
        use_vllm=settings.use_vllm,
        remove_unused_columns=False,
        shuffle_dataset=False,
        dataloader_pin_memory=False,
        logging_nan_inf_filter=False,
        **settings.options,
    )
    check_options(values, GRPOConfig)
    return GRPOConfig(**values)


def trainer_class() -> type:
    """A subclass of the installed GRPOTrainer (unsloth's, where unsloth was imported first)."""
    import trl

    class KitGRPOTrainer(trl.GRPOTrainer):  # type: ignore[misc, name-defined]
        """GRPOTrainer with the kit's hooks; see the module."""

        def kit_setup(
            self,
            settings: GRPOSettings,
            loaded: Loaded,
            log: rollouts.Log,
            on_batch: Callable[..., None] | None = None,
        ) -> None:
            """Attach settings and log; choose the fast paths that fit this model."""
            self.kit, self.kit_loaded, self.kit_log, self.kit_on_batch = (
                settings,
                loaded,
                log,
                on_batch,
            )
            self.kit_times = dict.fromkeys(("generation", "judge", "kit"), 0.0)
            self.kit_pending: list[tuple[Response, Grade, tuple[str, ...]]] = []
            self.kit_engine: Any = None
            reason = (
                "fast is off"
                if not settings.fast
                else "several processes train together"
                if world.size() > 1
                else "the engine is unsloth"
                if loaded.engine != "transformers"
                else sampling.fast_ok(self.model)
            )
            self.kit_slow = reason
            self.kit_kl = settings.kl if settings.beta and settings.kl != "k3" else None
            self.kit_skipped = 0

        def _generate_single_turn(self, prompt_ids: Any, *args: Any, **kwargs: Any) -> Any:
            """The random numbers of a step depend on seed, step and process alone: a resumed run samples the same answers."""
            started, torch = time.perf_counter(), import_torch()
            seed = (
                self.kit.seed * 1_000_003 + self.state.global_step
            ) * 1009 + self.accelerator.process_index
            try:
                if self.kit_slow is not None:
                    with torch.random.fork_rng():
                        torch.manual_seed(seed)
                        return super()._generate_single_turn(prompt_ids, *args, **kwargs)
                if self.kit_engine is None:
                    self.kit_engine = sampling.Engine(self.model)
                else:
                    self.kit_engine.refresh()
                got = sampling.sample(
                    self.kit_engine,
                    prompt_ids,
                    max_new_tokens=self.max_completion_length,
                    temperature=self.temperature,
                    top_p=self.kit.top_p,
                    top_k=self.kit.top_k,
                    eos_ids=eos_ids(self.model, self.processing_class),
                    generator=torch.Generator().manual_seed(seed),
                )
                return got.ids, None
            finally:
                self.kit_times["generation"] += time.perf_counter() - started

        def _get_per_token_logps_and_entropies(
            self,
            model: Any,
            input_ids: Any,
            attention_mask: Any,
            logits_to_keep: int,
            *args: Any,
            **kwargs: Any,
        ) -> Any:
            if self.kit_slow is not None or any(
                v is not None for k, v in kwargs.items() if k.endswith(("values", "thw", "sizes"))
            ):
                return super()._get_per_token_logps_and_entropies(
                    model, input_ids, attention_mask, logits_to_keep, *args, **kwargs
                )
            values, entropies = packing.logps(
                model, input_ids, attention_mask, logits_to_keep, score=self._kit_score
            )
            return values, entropies, None

        def _kit_score(self, logits: Any, labels: Any) -> tuple[Any, Any]:
            logp = (logits.float() / self.temperature).log_softmax(-1)
            with import_torch().no_grad():
                entropy = -(logp.exp() * logp).sum(-1)
            return logp.gather(-1, labels[..., None])[..., 0], entropy

        def _generate_and_score_completions(self, inputs: Any) -> Any:
            output = super()._generate_and_score_completions(inputs)
            if self.kit_kl == "k1" and self.model.training:
                ids = import_torch().cat([output["prompt_ids"], output["completion_ids"]], dim=1)
                mask = import_torch().cat([output["prompt_mask"], output["completion_mask"]], dim=1)
                with import_torch().no_grad():
                    old = self._get_per_token_logps_and_entropies(
                        self.model, ids, mask, output["completion_ids"].size(1)
                    )[0]
                output["kit_k1"] = (
                    kl.estimate(old, output["ref_per_token_logps"], "k1")
                    * output["completion_mask"]
                )
            if self.model.training and self.kit_pending:
                self._kit_write(
                    output["advantages"].tolist(), output["completion_mask"].sum(-1).tolist()
                )
            return output

        def _kit_write(self, advantages: Sequence[float], tokens: Sequence[int]) -> None:
            started, step = time.perf_counter(), self.state.global_step + 1
            rows = [
                rollouts.row(
                    step,
                    r,
                    g,
                    advantage=None if g.score is None else a,
                    tokens=int(n),
                    seconds=time.time(),
                    sentinels=flags,
                )
                for (r, g, flags), a, n in zip(self.kit_pending, advantages, tokens, strict=True)
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
            every = self.args.steps_per_generation * self.num_iterations
            if self._step % every == 0 or self._buffered_inputs is None:
                batch = self._generate_and_score_completions(generation_batch)
                self._buffered_inputs = _split(batch, self.args.steps_per_generation)
            return self._buffered_inputs[self._step % self.args.steps_per_generation]

        def _compute_loss(self, model: Any, inputs: Any) -> Any:
            torch = import_torch()
            if self.kit_kl is not None:
                return self._kit_loss_with_kl(model, inputs)
            live = inputs["advantages"] != 0
            can_drop = (
                self.kit.zero_variance == "drop"
                and self.beta == 0.0
                and self.loss_type in ("dapo", "cispo")
                and self.kit_slow is None
            )
            if not can_drop or bool(live.all()):
                return super()._compute_loss(model, inputs)
            self.kit_skipped += int((~live).sum())
            if not bool(live.any()):
                return sum(p.sum() for p in model.parameters() if p.requires_grad) * 0.0
            rows = live.shape[0]
            kept = {
                k: v[live] if torch.is_tensor(v) and v.dim() and v.shape[0] == rows else v
                for k, v in inputs.items()
            }
            return super()._compute_loss(model, kept)

        def _kit_loss_with_kl(self, model: Any, inputs: Any) -> Any:
            """trl's loss without its own k3 term, and the chosen estimator instead: k1 in the advantages, k2 in the loss."""
            ref, mask, beta, seen = (
                inputs["ref_per_token_logps"],
                inputs["completion_mask"],
                self.beta,
                [],
            )
            if self.kit_kl == "k1":
                inputs = {
                    **inputs,
                    "advantages": inputs["advantages"][:, None] - beta * inputs["kit_k1"],
                }
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
            value = kl.estimate(seen[0][0], ref, self.kit_kl)
            self._metrics["train"]["kl"].append(
                float((value.detach() * mask).sum() / mask.sum().clamp(min=1))
            )
            if self.kit_kl == "k1":
                return loss
            normal = (
                inputs["num_items_in_batch"].clamp(min=1.0)
                * self.current_gradient_accumulation_steps
                / self.args.steps_per_generation
            )
            return loss + beta * (value * mask).sum() / normal

    return KitGRPOTrainer


def _split(batch: dict[str, Any], parts: int) -> list[dict[str, Any]]:
    """Groups stay together (their prompt is computed once per part), so the rows are cut in order, not shuffled."""
    torch = import_torch()
    if parts == 1:
        return [batch]
    rows = batch["advantages"].shape[0]
    size = rows // parts

    def cut(v, i):
        return (
            v[i * size : (i + 1) * size]
            if torch.is_tensor(v) and v.dim() and v.shape[0] == rows
            else v
        )

    return [{k: cut(v, i) for k, v in batch.items()} for i in range(parts)]
