"""Names of other systems for the kit's own settings: the RLVR recipe's, TRL's, open-instruct's and
BioRLHF's.

A config or a command written for one of them is read as it is; `kit train --names` prints this
table.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..errors import KitError

logger = logging.getLogger(__name__)

ALIASES: dict[str, str] = {
    # the RLVR recipe
    "model_name": "model",
    "groups_per_batch": "prompts_per_step",
    "learning_rate": "lr",
    "max_tokens": "max_answer_tokens",
    "kl_penalty_coef": "beta",
    "num_substeps": "substeps",
    "data_path": "tasks",
    "data": "tasks",
    "log_path": "out",
    # TRL and BioRLHF
    "model_name_or_path": "model",
    "num_generations": "group_size",
    "num_iterations": "iterations",
    "max_completion_length": "max_answer_tokens",
    "max_prompt_length": "max_prompt_tokens",
    "lora_r": "lora_rank",
    "lora_target_modules": "lora_targets",
    "lr_scheduler_type": "schedule",
    "warmup_steps": "warmup",
    "max_steps": "steps",
    "save_steps": "save_every",
    "eval_steps": "eval_every",
    "save_total_limit": "keep",
    "loss_type": "loss",
    "importance_sampling_level": "importance",
    "per_device_train_batch_size": "micro_rows",
    "output_dir": "out",
    "dataset_path": "tasks",
    "sft_model_path": "adapter",
    "use_multi_reward": "per_component",
    # open-instruct
    "num_unique_prompts_rollout": "prompts_per_step",
    "num_samples_per_prompt_rollout": "group_size",
    "response_length": "max_answer_tokens",
    "max_prompt_token_length": "max_prompt_tokens",
}
# names whose values change too: (the kit's name, how the value is read)
CHANGED: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "kl_estimator": ("kl", lambda v: f"k{str(v).lower().removeprefix('kl').removeprefix('k')}"),
    "scale_rewards": ("advantage", lambda v: _SCALES.get(v, v)),
    "mask_truncated_completions": ("truncated", lambda v: "mask" if _on(v) else "keep"),
    "use_4bit": ("quantize", lambda v: "nf4" if _on(v) else "none"),
    "hold_out_tissues": ("holdout", lambda v: v),
    "wandb_project": ("report_to", lambda v: ["wandb"] if v else []),
    "use_wandb": ("report_to", lambda v: ["wandb"] if _on(v) else []),
}
_SCALES = {True: "std", "group": "std", False: "centred", "none": "centred"}
JUDGE = {
    "judge_model": "endpoint",
    "judge_temperature": "temperature",
    "judge_max_retries": "tries",
}
WITHOUT_USE = {
    "pack_length": "answers are packed by group",
    "max_token_length": "prompt and answer have limits of their own",
    "deepspeed_stage": "launch with kit/train/configs/zero3.yaml",
    "non_stop_penalty": "say `truncated: mask`, or let a criterion count the words",
    "active_verifiers": "the weights of the reward say which are in use",
    "eval_batch_size": "answers of an evaluation are batched by themselves",
    "logging_steps": "every step is logged",
    "log_completions": "every answer is logged",
    "wandb_name": "set WANDB_NAME",
    "wandb_run_name": "set WANDB_NAME",
    "bf16": "the number format is chosen, or say `dtype`",
}
EPOCHS = "say `steps`: passes x prompts / prompts_per_step (for SFT and DPO: passes x rows / batch)"
REFUSED = {
    "num_epochs": EPOCHS,
    "num_train_epochs": EPOCHS,
    "gradient_accumulation_steps": "say `micro_rows`: the rows that go through the model at once",
    "total_episodes": "say `steps`: episodes / (prompts_per_step x group_size)",
    "dataset_mixer_list": "say `tasks: FILE`; join several files into one",
}
REFUSED |= dict.fromkeys(
    (
        "verifier_weights",
        "verification_reward",
        "refiner_reward_apply_paper_citation_reward",
        "refiner_reward_paper_citation_weight",
        "refiner_reward_gate_judge_score_with_format_bonus",
        "refiner_reward_instance_rubrics_only",
    ),
    "say `reward`: a mapping with its components, their weights, its scale and format",
)
ABOUT = {"hold_out_tissues": {"holdout_by": "tissue"}, "kl_penalty_coef": {"kl": "k1"}}


def translate(
    values: Mapping[str, Any], known: Iterable[str], *, where: str = "config"
) -> dict[str, Any]:
    """The values under the kit's own names. A name that the kit has itself keeps its own meaning.

    >>> translate({"learning_rate": 4e-5, "steps": 3}, ["lr", "steps"])
    {'lr': 4e-05, 'steps': 3}
    """
    known, out, said = set(known), {}, {}
    understood = {*known, *ALIASES, *CHANGED, *JUDGE, *WITHOUT_USE}
    wrong = [name for name in values if name not in understood]
    if hints := [f"{name}: {REFUSED[name]}" for name in wrong if name in REFUSED]:
        names = ", ".join(map(repr, wrong))
        raise KitError(f"there is no {names} here", where=where, fix="; ".join(hints))
    for name, value in values.items():
        if name in WITHOUT_USE and name not in known:
            logger.warning("%s: %s has no use here: %s", where, name, WITHOUT_USE[name])
            continue
        for own, read in _read(name, value, known, where):
            if own in said and out[own] != read:
                raise KitError(
                    f"{said[own]!r} and {name!r} both set {own!r}",
                    where=where,
                    fix="keep one of them",
                )
            out[own], said[own] = read, name
    for name, more in ABOUT.items():
        if name in values and name not in known:
            out = {**more, **out}
    return _judge(out, where)


def _on(value: Any) -> bool:
    """A flag; "false" in quotation marks is a text, and texts are true."""
    if value is None or isinstance(value, bool):
        return bool(value)
    raise TypeError("it is true or false, without quotation marks")


def _read(name: str, value: Any, known: set[str], where: str) -> list[tuple[str, Any]]:
    if name in known:
        return [(name, value)]
    if name in CHANGED:
        own, change = CHANGED[name]
        try:
            return [(own, change(value))]
        except (TypeError, ValueError) as e:
            raise KitError(f"{name} is {value!r}: {e}", where=where) from None
    return [(ALIASES.get(name, name), value)]


def _judge(values: dict[str, Any], where: str) -> dict[str, Any]:
    """judge_model and its options as one judge."""
    options = {JUDGE[k]: values.pop(k) for k in JUDGE if k in values}
    if not options:
        return values
    if "judge" in values or "endpoint" not in options:
        raise KitError(
            "judge_model, judge_temperature and judge_max_retries make one judge",
            where=where,
            fix="give judge_model and its options, or `judge` alone",
        )
    return {**values, "judge": options}


def table() -> str:
    """The aliases as text, one a line."""
    rows = [*ALIASES.items(), *((k, v[0]) for k, v in CHANGED.items())]
    rows += [(k, f"judge: {{{v}: ...}}") for k, v in JUDGE.items()]
    lines = [f"{k:32} {v}" for k, v in sorted(rows)]
    rest = [("no use", WITHOUT_USE), ("refused", REFUSED)]
    return "\n".join(
        [*lines, *(f"{k:32} ({what}: {v})" for what, of in rest for k, v in sorted(of.items()))]
    )
