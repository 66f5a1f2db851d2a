"""Settings of the three stages: one frozen dataclass each, from YAML, JSON or notebook parameters,
checked before anything loads.

Unknown or mistyped names raise with the nearest name; numbers written as text ("1e-5" in YAML)
raise with the way to write them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal, TypeVar

from ..errors import KitError
from ..settings.read import ABOVE_0, COUNT, SHARE, known_names, make, nearest, within
from .names import ALIASES, CHANGED
from .presets import preset

S = TypeVar("S", bound="Settings")
# those of transformers that need nothing else: no minimum, no metric, no second length
Schedule = Literal[
    "linear", "cosine", "cosine_with_restarts", "polynomial", "constant", "constant_with_warmup",
    "inverse_sqrt",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What all stages share.

    model : "SmolLM2-135M-Instruct", "tiny-random", a folder, or a hub name; adapter : folder of an
    adapter to go on from.
    engine : "transformers" or "unsloth"; "auto" = unsloth on a CUDA device where it is installed.
    quantize : "none" or "nf4" (bitsandbytes, 4-bit base weights); dtype : "auto" gives the reason
    in the run record.
    lr : peak learning rate; schedule : a name that transformers knows; warmup : steps.
    lora_rank, lora_alpha : update = alpha / rank * B A; lora_targets : "all-linear", or module
    names.
    micro_rows : rows that go through the model at once (0 = all); smaller saves memory, the
    gradient stays the same, but for what trl averages over just these rows: the loss "bnpo", and
    the "sft" part of a DPO loss.
    save_every : steps between checkpoints (0 = only at the end); keep : checkpoints kept.
    options : further arguments of the installed trainer's config, by its own names.
    """

    model: str = "SmolLM2-135M-Instruct"
    adapter: str | None = None
    engine: Literal["auto", "transformers", "unsloth"] = "auto"
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    quantize: Literal["none", "nf4"] = "none"
    seed: int = 0
    steps: int = 40
    lr: float = 1e-4
    schedule: Schedule = "constant"
    warmup: int = 0
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    lora_rank: int = 16
    lora_alpha: float = 32.0
    lora_dropout: float = 0.0
    lora_targets: str | tuple[str, ...] = "all-linear"
    micro_rows: int = 0
    gradient_checkpointing: bool = False
    save_every: int = 10
    keep: int = 2
    report_to: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    stage: ClassVar[str] = ""
    bounds: ClassVar[dict[str, tuple[float, float, str]]] = {}  # beside BOUNDS

    def __post_init__(self) -> None:
        within(vars(self), BOUNDS | self.bounds)
        _set_elsewhere(self)
        targets = self.lora_targets
        KitError.first(
            (not self.model, "no model is named", "setting model", "a name or a folder"),
            (
                not targets or targets not in ("all-linear", tuple(targets)),
                f"lora_targets is {targets!r}",
                "setting lora_targets",
                "all-linear, or a list of module names: [q_proj, v_proj]",
            ),
            (
                self.warmup and self.warmup >= self.steps,
                f"warmup is {self.warmup} of {self.steps} steps: lr would never be reached",
                "setting warmup",
                "fewer than steps",
            ),
        )


@dataclass(frozen=True, kw_only=True)
class SFTSettings(Settings):
    """Supervised fine-tuning on good answers: rows {prompt, response} or {text}.

    batch : rows a step; max_tokens : longer rows are cut; answer_only : the loss looks at the
    answer, not at the prompt; rows {text} are learned whole.
    """

    batch: int = 8
    max_tokens: int = 256
    answer_only: bool = True

    stage: ClassVar[str] = "sft"


@dataclass(frozen=True, kw_only=True)
class DPOSettings(Settings):
    """Direct preference optimisation on pairs {prompt, chosen, rejected}.

    beta : how strongly the policy is held to the reference (the model that the stage starts from);
    batch : pairs a step.
    """

    batch: int = 4
    max_tokens: int = 256
    beta: float = 0.1
    lr: float = 5e-5

    stage: ClassVar[str] = "dpo"
    bounds: ClassVar = {"beta": (ABOVE_0, math.inf, "above 0: with 0 nothing is learned")}


@dataclass(frozen=True, kw_only=True)
class GRPOSettings(Settings):
    """Group-relative policy optimisation on graded answers; what each option does to the gradient:

    group_size : answers per prompt; the mean of a group is the baseline that its rewards are
    compared with.
    prompts_per_step : prompts per batch; more = less noise per update, proportionally more time.
    substeps : updates per batch, each on a part of it; iterations : passes over the batch. Above 1,
        answers are older than the policy and the ratio is clipped at `epsilon` (cispo: at most 5,
        or options: {epsilon_high: 4}).
    eval_temperature : of held-out answers; 0 = greedy, None = as in training.
    temperature, top_p, top_k : sampling; with top_p < 1 or top_k > 0 the trained distribution is
    not the sampled one.
    max_prompt_tokens : longer prompts raise; max_answer_tokens : longer answers are cut and count
    as truncated.
    beta, kl : strength of the pull to the starting model; "k3" adds exp(-d) - 1 + d to the loss,
        "k2" d^2 / 2, "k1" puts -beta d into each token's advantage (as a loss, k1 has no gradient
        on average). d = log pi - log pi_ref. With unsloth only k3 has been run: k1 and k2 are
        tested on the transformers engine.
    advantage : "std" divides by the group's standard deviation (easy and hard prompts weigh the
    same), "centred" does not,
        "batch" divides by the batch's.
    per_component : one reward function per component of the reward, weighted by the trainer (see
        kit.train.reward); to normalise each before the sum: options: {multi_objective_aggregation:
        normalize_then_sum}.
    reweight : from 0 (off) to 1, how far a criterion's weight follows how well it tells a group's
        answers apart, in training alone (kit.rewards.contrast); log and evaluation keep the
        rubric's own weights. An answer with an unknown verdict is not trained on then.
    stratify : "kind" or "group": each step has its share of every task.kind or task.group, as far
        as it can; "" draws without regard to them.
    zero_variance : groups whose answers all got the same reward have no gradient: "drop" spends no
    time on them, nor on single answers without an advantage, so that clip and entropy in
    steps.jsonl are of the others; "keep" does.
    resample : most times that such a group is sampled anew before that (0 = never;
    kit.train.resample).
    truncated : "keep" trains on cut answers with the reward they got, "mask" leaves them out of the
    loss.
    loss : how tokens are averaged ("dapo": over all tokens of the batch; "grpo": per answer;
    "dr_grpo": by a constant; ...).
    importance : ratio per "token" or per "sequence".
    eval_every : steps between evaluations on held-out prompts (0 = before and after only);
    eval_samples : answers per prompt.
    forecast : before the first step, `group_size` answers to each of a few prompts show what can be
        learned at all and what it will cost (kit.train.forecast); where no group has two different
        rewards, the run stops with the remedy.
    shuffle_rewards : a control: each group's rewards change hands at random, so that whatever is
        gained is not learned from them.
    patience_s : how long a step waits for a judge that is down before the run stops, everything
    saved.
    audit_every, audit_share : every N steps this share of the answers goes to the second judge (0 =
        never); audit_stop : an alarm (training reward up, audited reward not) ends the run.
    sentinel_alarm : warn when this share of the last three steps' answers trips a sentinel
        (kit.train.audit); 0 = count only. sentinel_stop : an alarm ends the run, adapter and
        evaluation included.
    fast : the kit's own sampling and packed log-probabilities where they fit (CPU); False = plain
    trl.
    """

    group_size: int = 8
    prompts_per_step: int = 2
    substeps: int = 1
    iterations: int = 1
    epsilon: float = 0.2
    temperature: float = 1.0
    eval_temperature: float | None = None
    top_p: float = 1.0
    top_k: int = 0
    max_prompt_tokens: int = 512
    max_answer_tokens: int = 48
    beta: float = 0.0
    kl: Literal["k1", "k2", "k3"] = "k3"
    advantage: Literal["std", "centred", "batch"] = "std"
    per_component: bool = False
    reweight: float = 0.0
    stratify: Literal["", "kind", "group"] = ""
    zero_variance: Literal["drop", "keep"] = "drop"
    resample: int = 0
    truncated: Literal["keep", "mask"] = "keep"
    loss: Literal["dapo", "grpo", "bnpo", "dr_grpo", "cispo"] = "dapo"
    importance: Literal["token", "sequence"] = "token"
    eval_every: int = 0
    eval_samples: int = 4
    forecast: bool = False
    shuffle_rewards: bool = False
    patience_s: float = 120.0
    audit_every: int = 0
    audit_share: float = 0.25
    audit_stop: bool = False
    sentinel_alarm: float = 0.25
    sentinel_stop: bool = False
    fast: bool = True
    use_vllm: bool = False

    stage: ClassVar[str] = "grpo"

    def __post_init__(self) -> None:
        super().__post_init__()
        unused = [
            k for k in ("audit_share", "audit_stop") if getattr(self, k) != getattr(type(self), k)
        ]
        if unused and not self.audit_every:
            raise KitError(
                f"{unused[0]} has no effect here: audit_every is 0",
                where=f"setting {unused[0]}",
                fix="say audit_every: 10 (steps)",
            )
        rows = self.group_size * self.prompts_per_step
        divided(rows, self.substeps, "substeps")
        if self.micro_rows:
            divided(rows // self.substeps, self.micro_rows, "micro_rows")


BOUNDS: dict[str, tuple[float, float, str]] = {
    "lr": (ABOVE_0, 1, "above 0, at most 1"),
    "lora_alpha": (ABOVE_0, math.inf, "above 0: with 0 the adapter changes nothing"),
    "lora_dropout": (0, 0.999, "from 0 to below 1: with 1 nothing is learned"),
    "epsilon": (ABOVE_0, math.inf, "above 0: with 0 nothing is learned"),
    "top_p": (ABOVE_0, 1, "in (0, 1]"),
    "seed": (0, 2**32 - 1, "below 2**32, where torch's seeds end"),
    "temperature": (ABOVE_0, math.inf, "training needs samples: use 1.0"),
    "group_size": (2, math.inf, "a group of one has no baseline: every advantage would be 0"),
    **dict.fromkeys(("steps", "lora_rank", "keep", "prompts_per_step", "substeps"), COUNT),
    **dict.fromkeys(("iterations", "max_prompt_tokens", "max_answer_tokens"), COUNT),
    **dict.fromkeys(("eval_samples", "batch", "max_tokens"), COUNT),
    "audit_share": SHARE,
    "sentinel_alarm": SHARE,
    "reweight": SHARE,
}
STAGES: dict[str, type[Settings]] = {"sft": SFTSettings, "dpo": DPOSettings, "grpo": GRPOSettings}


def build(cls: type[S], values: Mapping[str, Any], *, where: str = "settings") -> S:
    """Settings of class `cls` from a mapping, every name and type checked.

    >>> build(GRPOSettings, {"lr": 1e-5, "steps": 3}).steps
    3
    >>> build(GRPOSettings, {"group_sise": 4})
    Traceback (most recent call last):
    ...
    kit.errors.KitError: there is no setting 'group_sise'
      where: settings
      to do: did you mean 'group_size'?
    """
    return make(cls, values, where=where)


def from_mapping(values: Mapping[str, Any], *, where: str = "settings") -> Settings:
    """Settings from a mapping: its keys, plus `stage` (sft, dpo or grpo) and `preset` (a name in
    presets.PRESETS).
    """
    values = dict(values)
    stage = values.pop("stage", "grpo")
    if str(stage) not in STAGES:
        fix = nearest(str(stage), list(STAGES))
        if isinstance(stage, list):
            fix = "for a chain: stages: [{stage: sft}, {stage: dpo}]"
        raise KitError(f"there is no stage {stage!r}", where=where, fix=fix)
    if isinstance(values.get("report_to"), str):  # `report_to: wandb`, as in TRL's own configs
        values["report_to"] = values["report_to"].replace(",", " ").split()
    if "preset" in values:
        values = {**preset(values.pop("preset"), stage), **values}
    return build(STAGES[stage], values, where=where)


def to_mapping(settings: Settings) -> dict[str, Any]:
    """Plain JSON values, `stage` included; `from_mapping` reads them back."""
    values = {f.name: getattr(settings, f.name) for f in fields(settings)}
    return {"stage": settings.stage, **{k: _plain(v) for k, v in values.items()}}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value


def _set_elsewhere(settings: Settings) -> None:
    """KitError for an entry of `options` that a setting of the kit's own says: two words for one
    thing would be two masters.
    """
    own = {f.name for f in fields(settings)}
    changed = {name: kit for name, (kit, _) in CHANGED.items()}
    for name in settings.options:
        ours = name if name in own else {**ALIASES, **changed}.get(name)
        if ours in own:
            raise KitError(
                f"options sets {name!r}, which is the setting {ours!r}",
                where="setting options",
                fix=f"say {ours} in its own place",
            )


def merged(
    ours: Mapping[str, Any], options: Mapping[str, Any], config_class: type
) -> dict[str, Any]:
    """What the kit tells the trainer, and the user's options beside it; KitError where an option
    would overrule the kit or has a name that the trainer does not know.
    """
    known_names(
        {**ours, **options},
        [f.name for f in fields(config_class)],
        where="training options",
        what=f"{config_class.__name__} field",
    )
    both = sorted(set(ours) & set(options))
    if both:
        raise KitError(
            f"options sets {', '.join(both)}, which the kit sets itself",
            where="training options",
            fix="leave it out",
        )
    return {**ours, **options}


def divided(rows: int, by: int, name: str) -> None:
    """KitError where a step's rows cannot be shared out evenly."""
    if rows % by:
        raise KitError(
            f"{rows} answers a step cannot be split by {name}: {by}",
            where=f"setting {name}",
            fix=f"a divisor of {rows}",
        )
