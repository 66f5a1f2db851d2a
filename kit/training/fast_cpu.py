"""GRPO on a CPU in half of TRL's time: three methods of its trainer, with the same loss and gradient.

Generation uses a copy of the model with the adapter merged, and computes each prompt once for its group.
The update packs a group into one row: prompt, answer 1, answer 2, ... with a mask by which each answer
sees the prompt and itself. Every log-probability is the same number as in a padded row of its own. Rows without a
gradient are skipped; in the mean entropy that TRL logs, they count as the mean of the others.
"""

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from random import Random
from typing import Any

from ..evaluation import LogprobRecorder, truncate_at_eos
from ..records import group
from ..system import ranks
from ..system.device import import_torch
from .policies import Policy
from .settings import Settings

torch = import_torch()
# models whose attention takes a whole mask and whose logits can be restricted to chosen places
LIKE_LLAMA = ("llama", "qwen2", "qwen3")
LONGEST_ROW = 4096  # tokens of a packed row from which attention across it costs more than padding


def fast_path_applies(policy: Policy, settings: Settings) -> bool:
    """True on one CPU with LoRA on a whole (not quantised) model of a shape that is known here."""
    # several processes would call the model unequally often, and wait for each other for ever
    return (
        policy.engine == "transformers"
        and settings.quantize == "none"
        and settings.fast
        and ranks.world() == 1
        and policy.device.kind == "cpu"
        and policy.model.config.model_type in LIKE_LLAMA
        and settings.max_prompt_tokens
        + (settings.group_size * settings.max_answer_tokens)
        <= LONGEST_ROW
    )


class MergedModel:
    """A copy of the base model whose weights are base + adapter, made anew for each generation."""

    def __init__(self, model: Any):
        # memory is cheap at these sizes, and merging back and forth would add rounding
        self.model = copy.deepcopy(model).eval().requires_grad_(False)

    def refresh(self, model: Any) -> None:
        """Take over the adapter of the model that is trained."""
        from peft.tuners.lora import LoraLayer

        for name, module in model.get_base_model().named_modules():
            if isinstance(module, LoraLayer):
                # in float32: in bfloat16 a small update would be rounded away
                self.model.get_submodule(name).weight.copy_(
                    module.base_layer.weight.float()
                    + module.get_delta_weight("default").float()
                )

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        config: Any,
        recorder: LogprobRecorder | None = None,
    ) -> Any:
        """Token ids (n, new) after these prompts; equal neighbours share one prefill."""
        pad = partial(
            torch.nn.utils.rnn.pad_sequence, batch_first=True, padding_side="left"
        )
        rows = list(map(torch.tensor, prompts))
        ids = pad(rows, padding_value=config.pad_token_id or 0)
        mask = pad(list(map(torch.ones_like, rows)))
        return self.model.generate(
            input_ids=ids,
            attention_mask=mask,
            past_key_values=self.prefill(ids, mask),
            generation_config=config,
            logits_processor=[recorder] if recorder else None,
        )[:, ids.shape[1] :]

    def prefill(self, ids: Any, mask: Any) -> Any:
        """Keys and values of the prompts, computed once a group; None where groups differ in size or have one row."""
        prompts, sizes = torch.unique_consecutive(
            torch.stack([ids, mask], 1), dim=0, return_counts=True
        )
        size = int(sizes[0])
        if size == 1 or bool((sizes != size).any()):
            return None
        # the last token is left out: generate needs one to go on from
        heads = prompts[:, 1, :-1]
        cache = self.model(
            input_ids=prompts[:, 0, :-1],
            attention_mask=heads,
            position_ids=(heads.cumsum(-1) - 1).clamp(min=0),
            logits_to_keep=1,
            use_cache=True,
        ).past_key_values
        cache.batch_repeat_interleave(size)
        return cache


def pack(prompt: Any, answers: Sequence[Any]) -> dict[str, Any]:
    """One row of a prompt (p,) and its answers (k_i,), as arguments of the model's forward.

    attention_mask : (1, 1, L, L), True = may look. logits_to_keep : the places that predict answer tokens.
    """
    p = len(prompt)
    lengths = torch.tensor(list(map(len, answers)))
    owner = torch.repeat_interleave(torch.arange(len(answers)), lengths)
    place = torch.cat(list(map(torch.arange, lengths.tolist())))
    # causal as usual, and between answers nothing
    look = torch.ones(p + len(owner), p + len(owner), dtype=torch.bool).tril_()
    look[p:, p:] &= owner[:, None] == owner[None]
    return {
        "input_ids": torch.cat([prompt, *answers])[None],
        "position_ids": torch.cat([torch.arange(p), p + place])[None],
        "attention_mask": look[None, None],
        # the first token of each answer is predicted by the prompt's last place
        "logits_to_keep": torch.where(
            place == 0, p - 1, p + torch.arange(len(owner)) - 1
        ),
    }


def packed_logps(
    model: Any,
    ids: Any,
    mask: Any,
    width: int,
    *,
    temperature: float,
    rows: Any = None,
) -> tuple[Any, Any]:
    """Log-probabilities and entropies (B, width) of the answers in ids (B, P + width); 0 where masked.

    rows : (B,) True for rows that are computed; the others are 0, connected to no weight.
    """
    chosen = mask[:, -width:].bool()
    if rows is not None:
        chosen = chosen & rows[:, None]
    entropies = torch.zeros(len(ids), width)
    # 0 times the weights keeps backward() possible where no row is computed
    values = entropies + 0.0 * sum(
        [p.sum() for p in model.parameters() if p.requires_grad]
    )
    # an answer that was cut off may be masked as a whole
    computed = chosen.any(-1)
    # TRL shuffles the rows of a batch
    groups = group(
        (tuple(ids[i, :-width][mask[i, :-width].bool()].tolist()), i)
        for i in computed.nonzero()[:, 0].tolist()
    )
    for prompt, members in groups.items():
        answers = [ids[i, -width:][chosen[i]] for i in members]
        places = torch.zeros_like(chosen)
        places[members] = chosen[members]
        logps, entropies[places] = group_logps(model, prompt, answers, temperature)
        values = values.masked_scatter(places, logps)
    # rows that are left out count in TRL's mean entropy: they get the mean of the others
    entropies[~computed] = entropies[chosen].sum() / chosen.sum().clamp(min=1)
    return values, entropies


def group_logps(
    model: Any, prompt: Sequence[int], answers: Sequence[Any], temperature: float
) -> tuple[Any, Any]:
    """Log-probabilities and entropies (N,) of all tokens of one group's answers."""
    # one group after the other: all logits at once would take gigabytes
    logps = (
        model(**pack(torch.tensor(prompt), answers), use_cache=False)
        .logits[0]
        .float()
        / temperature
    ).log_softmax(-1)  # (N, V)
    with torch.no_grad():
        entropies = -(logps.exp() * logps).sum(-1)
    return logps.gather(-1, torch.cat(list(answers))[:, None])[:, 0], entropies


@contextmanager
def draws(key: str, first: int, rows: int) -> Iterator[None]:
    """Let each row draw its tokens from numbers of its own, so that one process and several draw alike.

    key : of the batch. first : number of the first row in the batch.
    """
    streams = [
        torch.Generator().manual_seed(Random(f"{key}/{n}").getrandbits(32))
        for n in range(first, first + rows)
    ]

    def multinomial(chances: Any, num_samples: int) -> Any:
        # the shortest of exponential waiting times: torch's own way to draw one
        return (
            chances
            / torch.stack(
                [
                    torch.empty_like(row).exponential_(generator=stream)
                    for row, stream in zip(chances, streams, strict=True)
                ]
            )
        ).argmax(-1, keepdim=True)

    # generate of transformers takes no generator
    plain, torch.multinomial = torch.multinomial, multinomial
    try:
        yield
    finally:
        torch.multinomial = plain


# TRL's GRPOTrainer: whoever mixes it in imports it, since that takes seconds
TRAINER_BASE: Any = object


class CpuGRPOMixin(TRAINER_BASE):  # type: ignore[misc]
    """Mixed into TRL's GRPOTrainer. `kit_merged` is None where the fast path does not apply.

    kit_part : rows that are generated at once, so that a large batch does not fill the memory.
    """

    kit_merged: MergedModel | None = None
    kit_rows: Any = None
    kit_part: int = 0

    def _generate_single_turn(
        self, prompt_ids: Any, images: Any, *args: Any, **more: Any
    ) -> Any:
        plain = super()._generate_single_turn
        if images or self.use_vllm:
            return plain(prompt_ids, images, *args, **more)
        rows: list[list[int]] = []
        for at in range(0, len(prompt_ids), self.kit_part):
            part = prompt_ids[at : at + self.kit_part]
            # on a CPU each row has random numbers of its own
            with (
                draws(
                    f"{self.args.seed}/{self.state.global_step}",
                    ranks.rank() * len(prompt_ids) + at,
                    len(part),
                )
                if self.accelerator.device.type == "cpu"
                else nullcontext()
            ):
                if self.kit_merged is None:
                    rows += plain(part, images, *args, **more)[0]
                else:
                    rows += generate_merged(self, part, self.generation_config)
        return rows, None

    def _compute_loss(self, model: Any, inputs: Any) -> Any:
        # Without a KL term a row whose advantage is 0 has no gradient. An older policy's ratio would need it.
        if (
            self.kit_merged is not None
            and self.beta == 0
            and "old_per_token_logps" not in inputs
            and not self._entropy_bonus_enabled
            and self.top_entropy_quantile == 1.0
        ):
            self.kit_rows = inputs["advantages"] != 0
        try:
            return super()._compute_loss(model, inputs)
        finally:
            self.kit_rows = None

    def _get_per_token_logps_and_entropies(
        self,
        model: Any,
        input_ids: Any,
        attention_mask: Any,
        logits_to_keep: int,
        *args: Any,
        **more: Any,
    ) -> Any:
        # the reference of the KL term comes this way, too, with the adapter off
        if self.kit_merged is None:
            # unsloth's trainer has more arguments than TRL's
            return super()._get_per_token_logps_and_entropies(
                model, input_ids, attention_mask, logits_to_keep, *args, **more
            )
        return *packed_logps(
            model,
            input_ids,
            attention_mask,
            logits_to_keep,
            temperature=self.temperature,
            rows=self.kit_rows,
        ), None


def generate_merged(
    trainer: Any,
    prompts: Sequence[Sequence[int]],
    config: Any,
    recorder: LogprobRecorder | None = None,
) -> list[list[int]]:
    """Answers of the merged model as token ids, each up to and with its first end token."""
    with torch.no_grad():
        trainer.kit_merged.refresh(trainer.model)
        return [
            truncate_at_eos(row, trainer.eos_token_ids)
            for row in trainer.kit_merged.generate(
                prompts, config, recorder
            ).tolist()
        ]
