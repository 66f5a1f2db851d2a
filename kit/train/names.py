"""Names of other systems for the kit's own settings: the RLVR recipe's, TRL's, open-instruct's and
BioRLHF's.

A config or a command written for one of them is read as it is; `kit train --names` prints this
table.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any

from ..errors import KitError
from ..records import is_number
from ..settings.read import nearest

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
    "max_length": "max_tokens",  # of SFT and DPO
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
    "kl_estimator": ("kl", lambda v: _estimator(str(v).lower())),
    "scale_rewards": ("advantage", lambda v: _SCALES.get(v, v)),
    "mask_truncated_completions": ("truncated", lambda v: "mask" if _on(v) else "keep"),
    "use_4bit": ("quantize", lambda v: "nf4" if _on(v) else "none"),
    "hold_out_tissues": ("holdout", lambda v: v),
    "dataset_mixer_list": ("tasks", lambda v: _file(v)),
    "wandb_project": ("report_to", lambda v: ["wandb"] if v else []),
    "verifier_weights": ("reward", lambda v: _verifiers(v)),
    "use_wandb": ("report_to", lambda v: ["wandb"] if _on(v) else []),
}
_VERIFIERS = {"V1": "direction", "V2": "factual", "V3": "consistency", "V4": "uncertainty"}
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
    "loss_type": "for SFT and DPO say `options: {loss_type: NAME}`",
    "total_episodes": "say `steps`: episodes / (prompts_per_step x group_size)",
}
REFINER = {  # the refiner's flags -> what they change in the reward
    "verification_reward": "scale",
    "refiner_reward_apply_paper_citation_reward": "citations",
    "refiner_reward_paper_citation_weight": "weight",
    "refiner_reward_gate_judge_score_with_format_bonus": "gate",
    "refiner_reward_instance_rubrics_only": "own",
}
ABOUT = {"hold_out_tissues": {"holdout_by": "tissue"}, "kl_penalty_coef": {"kl": "k1"}}


def translate(
    values: Mapping[str, Any], known: Iterable[str], *, where: str = "config"
) -> dict[str, Any]:
    """The values under the kit's own names. A name that the kit has itself keeps its own meaning.

    >>> translate({"learning_rate": 4e-5, "steps": 3}, ["lr", "steps"])
    {'lr': 4e-05, 'steps': 3}
    """
    known, out, said = set(known), {}, {}
    understood = {*known, *usable(known), *CHANGED, *JUDGE, *WITHOUT_USE, *REFINER}
    wrong = [name for name in values if name not in understood]
    if hints := [f"{name}: {REFUSED[name]}" for name in wrong if name in REFUSED]:
        names = ", ".join(map(repr, wrong))
        raise KitError(f"there is no {names} here", where=where, fix="; ".join(hints))
    values = refiner(values, known, where)
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


def _verifiers(weights: Mapping[str, float]) -> dict[str, Any]:
    """BioRLHF's weights as a reward; its files number them: V1 direction, V2 factual."""
    if not isinstance(weights, Mapping) or not weights:
        raise TypeError("it is a mapping, as {V1: 0.35, V2: 0.3}")
    for name, weight in weights.items():
        if name not in _VERIFIERS and name not in _VERIFIERS.values():
            there = [*_VERIFIERS, *_VERIFIERS.values()]
            raise ValueError(f"there is no verifier {name!r}; {nearest(name, there)}")
        if not _number(weight):
            raise TypeError(f"the weight of {name} is not a number of 0 or more")
    parts = [
        {"kind": "verifier", "verifier": _VERIFIERS.get(k, k), "weight": w}
        for k, w in weights.items()
    ]
    return {"name": "verifiers", "components": parts}


def refiner(
    values: Mapping[str, Any], known: Iterable[str] = (), where: str = "config"
) -> Mapping[str, Any]:
    """The values with the refiner's own flags as a reward; a `reward` beside them must be its
    preset.

    >>> refiner({"verification_reward": 5})["reward"]
    {'preset': 'refiner', 'scale': 5.0}
    """
    given = {k: v for k, v in values.items() if k in REFINER and k not in known}
    if not given:
        return values
    name = values.get("reward", "refiner")
    if name not in ("refiner", "refiner_additive"):
        raise KitError(
            f"{next(iter(given))!r} and a reward of its own both say what is paid",
            where=where,
            fix="keep one of them; the flags change the rewards refiner and refiner_additive",
        )
    rest = {k: v for k, v in values.items() if k not in given}
    try:
        return {**rest, "reward": _refined(name, {REFINER[k]: v for k, v in given.items()})}
    except (TypeError, ValueError) as e:
        raise KitError(f"the refiner's flags {', '.join(given)}: {e}", where=where) from None


def _refined(name: str, flags: Mapping[str, Any]) -> dict[str, Any]:
    """The preset with the flags: scale, weight of the citations, gate or bonus, own rubrics
    only.
    """
    out: dict[str, Any] = {"preset": name}
    for key in ("scale", "weight"):
        if key in flags and not _number(flags[key]):
            raise TypeError(f"{flags[key]!r} is not a number of 0 or more")
    if name == "refiner" and flags.get("weight", 0) > 1:
        raise ValueError(f"the weight of citations is a share of the reward, not {flags['weight']}")
    if "scale" in flags:
        out["scale"] = float(flags["scale"])
    if not _on(flags.get("gate", True)):
        out["format"] = {"mode": "bonus", "answer_block": True}
    if flags.keys() & {"citations", "weight", "own"}:
        weight = float(flags.get("weight", 0.2)) if _on(flags.get("citations", True)) else 0.0
        rubric = {"kind": "rubric", "how": "net", "static": "all"}
        rubric["weight"] = 1.0 - weight if name == "refiner" else 1.0
        rubric["instance_rubrics_only"] = _on(flags.get("own", False))
        out["components"] = [rubric, {"kind": "citations", "weight": weight}]
    return out


def _file(value: Any) -> Any:
    """open-instruct's list of files and shares: one file, and all of it."""
    if not isinstance(value, (list, tuple)):
        return value
    if len(value) == 1 or (len(value) == 2 and float(value[1]) == 1.0):
        return value[0]
    raise ValueError("one file is read, and all of it, as [FILE, 1.0]: join several into one")


def _on(value: Any) -> bool:
    """A flag; "false" in quotation marks is a text, and texts are true."""
    if value is None or isinstance(value, bool):
        return bool(value)
    raise TypeError("it is true or false, without quotation marks")


def _estimator(value: str) -> str:
    """Of KL: open-instruct's words begin with kl1, its numbers, of later versions, with 0."""
    if value.isdecimal():
        return f"k{int(value) + 1}"
    return f"k{value.removeprefix('kl').removeprefix('k')}"


def _number(value: Any) -> bool:
    """True for a finite number of 0 or more."""
    return is_number(value) and math.isfinite(value) and value >= 0


def _read(name: str, value: Any, known: set[str], where: str) -> list[tuple[str, Any]]:
    if name in known:
        return [(name, value)]
    if name in CHANGED:
        own, change = CHANGED[name]
        try:
            return [(own, change(value))]
        except (TypeError, ValueError) as e:
            raise KitError(f"{name} is {value!r}: {e}", where=where) from None
    return [(usable(known).get(name, name), value)]


def usable(known: Container[str]) -> dict[str, str]:
    """The aliases of these settings."""
    return {name: own for name, own in ALIASES.items() if own in known}


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
    rows = [
        *ALIASES.items(),
        *((k, v[0]) for k, v in CHANGED.items()),
        *((k, f"judge: {{{v}: ...}}") for k, v in JUDGE.items()),
        *((k, "reward: refiner, changed") for k in REFINER),
    ]
    lines = [f"{k:32} {v}" for k, v in sorted(rows)]
    for what, of in (("no use", WITHOUT_USE), ("refused", REFUSED)):
        for name, why in sorted(of.items()):
            lines.append(f"{name:32} ({what}: {why})")
    return "\n".join(lines)
