"""Settings of a training: what the kit decides, and `options`, which TRL's own trainer reads.

A config names a preset (configs/presets.yaml). The profile of the machine sets the sizes. What the config or the
caller writes wins over both. The systems' own names are translated by configs/names.yaml.
"""

import dataclasses
import logging
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal, get_args

import msgspec

from ..errors import DataError, MissingError
from ..evaluation import TEMPLATE_OPTIONS
from ..system import paths, profiles, ranks
from ..system.device import has_nvidia, import_torch, is_too_old_for_vllm
from ..system.settings import (
    Count,
    NonNegative,
    Positive,
    check_names,
    load,
    make,
    require_name,
)

logger = logging.getLogger(__name__)
CONFIGS = Path(__file__).parent / "configs"
Method = Literal["sft", "dpo", "grpo"]
Whole = Annotated[int, msgspec.Meta(ge=0)]
Tracker = Literal["wandb", "trackio", "tensorboard", "mlflow"]


class Settings(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """What the kit decides. `options` are further arguments of TRL's config, by TRL's own names.

    stage : "sft", "dpo" or "grpo". model : "SmolLM2-135M-Instruct", "tiny-random", a folder or a hub name.
    adapter : folder of an adapter that is merged into the model before the training begins.
    engine : "auto" is unsloth on a CUDA device where it is installed. quantize : "nf4" is 4-bit (bitsandbytes).
    lr : peak learning rate (1e-5 is a number). micro_rows : rows that go through the model at once; 0 = all of a
        substep.
    beta : weight of the KL term (k3) in GRPO, inverse temperature in DPO.
    batch, max_length : rows a step and tokens a row, of SFT and DPO.
    group_size : answers to one prompt. substeps : updates on parts of a batch. iterations : passes over it.
    advantage : "std" divides by the group's standard deviation, "centred" does not, "batch" by the batch's.
    gdpo : each part of the reward is normalised by itself (multi_objective_aggregation of TRL). A reward with
        gates, a cap or a format bonus is refused.
    eval_temperature : of answers to held-out prompts; 0 is greedy, None is the training's.
    save_every, eval_every : steps; 0 is only at the end. Where a batch serves several steps, a save point waits for
        the last of them. patience_s : one wait for a judge that is down.
    control : the rewards of each group change hands at random, so that nothing can be learned from them.
    forecast : 64 answers first; where no group is mixed, the run stops. fast : the CPU path of kit.training.fast_cpu.
    """

    stage: Method = "grpo"
    model: str = "SmolLM2-135M-Instruct"
    adapter: str | None = None
    engine: Literal["auto", "transformers", "unsloth"] = "auto"
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    quantize: Literal["none", "nf4"] = "none"
    seed: Whole = 0
    steps: Count = 40
    lr: Positive = 1e-4
    lora_rank: Count = 16
    lora_alpha: Positive = 32.0
    beta: NonNegative | None = None
    micro_rows: Whole = 0
    batch: Count = 8
    max_length: Count = 256
    group_size: int = 8
    prompts_per_step: Count = 2
    substeps: Count = 1
    iterations: Count = 1
    temperature: Positive = 1.0
    max_prompt_tokens: Count = 512
    max_answer_tokens: Count = 48
    advantage: Literal["std", "centred", "batch"] = "std"
    gdpo: bool = False
    save_every: Whole = 10
    eval_every: Whole = 0
    eval_samples: Count = 4
    eval_temperature: NonNegative | None = None
    control: bool = False
    forecast: bool = False
    patience_s: NonNegative = 60.0
    fast: bool = True
    report_to: tuple[Tracker, ...] = ()
    options: dict[str, Any] = {}

    def __post_init__(self) -> None:
        # TRL checks it too, after a minute of loading
        if self.group_size < 2:
            raise DataError(
                "a group of one answer has no baseline: every advantage would be 0",
                where="setting group_size",
                fix="2 or more",
            )
        if self.quantize != "none" and self.options.get("deepspeed"):
            raise DataError(
                "DeepSpeed does not split 4-bit weights",
                where="settings quantize and options.deepspeed",
                fix="quantize: none",
            )
        share, rest = divmod(self.rows, self.substeps * ranks.world())
        if rest or share % min(self.micro_rows or share, share):
            raise DataError(
                f"{self.rows} rows a step cannot be split by substeps: {self.substeps}, "
                f"micro_rows: {self.micro_rows} and {ranks.world()} processes",
                where="settings substeps and micro_rows",
                fix=f"substeps x processes: a divisor of {self.rows}; micro_rows: a divisor of what is left",
            )

    @property
    def template_options(self) -> dict[str, Any]:
        """What the chat template takes beside the chat, such as enable_thinking; in training and evaluation."""
        return dict(self.options.get(TEMPLATE_OPTIONS) or {})

    @property
    def rows(self) -> int:
        """Rows of a batch."""
        return (
            self.group_size * self.prompts_per_step
            if self.stage == "grpo"
            else self.batch
        )

    @property
    def updates(self) -> int:
        """Steps that one batch serves."""
        return self.iterations * self.substeps


NAMES = Settings.__struct_fields__


def pick_engine(engine: str) -> tuple[str, str]:
    """The engine and the reason for it."""
    if engine != "auto":
        return engine, f"{engine} was requested"
    if ranks.world() > 1:
        return "transformers", "several processes train"
    # without a driver torch is not imported: this is asked whenever settings are read
    if not (has_nvidia() and import_torch().cuda.is_available()):
        return "transformers", "there is no CUDA device"
    if find_spec("unsloth") is None:
        return "transformers", "unsloth is not installed"
    return "unsloth", "a CUDA device and unsloth are present"


def import_unsloth() -> ModuleType:
    """unsloth, which must be imported before trl, transformers and peft, or its patches are lost."""
    # unsloth rewrites these modules while they load
    late = [m for m in ("trl", "transformers", "peft") if m in sys.modules]
    if "unsloth" not in sys.modules and late:
        raise DataError(
            f"{', '.join(late)} was imported before unsloth, whose patches would be lost",
            where="engine unsloth",
            fix="restart the kernel and write `import unsloth` first, or set engine: transformers",
        )
    import_torch()
    os.environ.setdefault("UNSLOTH_DISABLE_STATISTICS", "1")
    # else unsloth writes into the working directory
    os.environ.setdefault(
        "UNSLOTH_COMPILE_LOCATION", str(paths.home() / "unsloth_compiled_cache")
    )
    return import_module("unsloth")


@cache
def presets() -> dict[str, Any]:
    """The presets by name, from configs/presets.yaml."""
    return load(CONFIGS / "presets.yaml")


@cache
def renames() -> dict[str, Any]:
    """The systems' own names, from configs/names.yaml: renames, no_use, refused."""
    return load(CONFIGS / "names.yaml")


def build(
    values: Mapping[str, Any],
    *,
    profile: str | None = None,
    where: str = "settings",
) -> Settings:
    """Settings from a mapping: its `preset`, sizes of the profile, and its own values.

    >>> build({"preset": "refiner", "lr": 1e-5}, profile="gpu").beta
    0.001
    >>> build({"group_sise": 4, "stepz": 2}, profile="cpu")
    Traceback (most recent call last):
    ...
    kit.errors.DataError: unknown names: group_sise, stepz
      where: settings
      to do: 'group_sise': did you mean 'group_size'?; 'stepz': did you mean 'steps'?
    """
    # sizes come first, so that every written value wins
    base = sizes(values.get("preset"), profile)
    values = {
        **base,
        **values,
        "options": {**base.pop("options", {}), **values.get("options", {})},
    }
    values.pop("preset", None)
    # `report_to: wandb` or `none`, as TRL's own configs write it
    if isinstance(names := values.get("report_to"), str):
        values["report_to"] = names.replace(",", " ").replace("none", "").split()
    # msgspec would name neither the valid stages nor the nearest
    stages = get_args(Method)
    place = f"{where}, stage (one of {', '.join(stages)})"
    require_name("stage", values.get("stage", "grpo"), stages, where=place)
    settings = make(Settings, values, where=where)
    for name in settings.report_to:
        # a folder that a tracker left here has a spec, too, but no origin
        if getattr(find_spec(name), "origin", None) is None:
            raise MissingError(
                f"the tracker {name} is not installed",
                where=f"{where}, report_to",
                fix=f"pip install {name}, or report_to: none",
            )
    # before trl, which reads the options, or unsloth's patches are lost
    if pick_engine(settings.engine)[0] == "unsloth":
        import_unsloth()
    check_options(settings, where)
    return settings


def sizes(preset: str | None, profile: str | None) -> dict[str, Any]:
    """The values of a preset (None: "plain") with the sizes of the profile."""
    name = preset or "plain"
    require_name("preset", name, presets(), where="setting preset")
    values: dict[str, Any] = dict(presets()[name])
    by_profile: dict[str, dict[str, Any]] = values.pop("profiles", {})
    return values | by_profile.get(profiles.resolve(profile).name, {})


def config_class(stage: Method) -> Any:
    """TRL's config class of a stage."""
    import_torch()  # before trl imports it, with OpenMP still spinning
    import trl

    return {"sft": trl.SFTConfig, "dpo": trl.DPOConfig, "grpo": trl.GRPOConfig}[
        stage
    ]


# TRL's names of what the kit sets itself: two names for one thing would be two masters
OURS = (
    "output_dir", "seed", "max_steps", "learning_rate", "per_device_train_batch_size", "save_steps",
    "gradient_accumulation_steps", "report_to", "beta", "temperature", "num_generations",
    "max_completion_length", "num_iterations", "scale_rewards", "steps_per_generation",
    "multi_objective_aggregation", "max_length", "shuffle_dataset", "reward_weights", "use_cpu",
)  # fmt: skip


def check_options(settings: Settings, where: str) -> None:
    """DataError for an option that TRL does not know, or that the kit sets itself."""
    # trl takes seconds to import
    if not settings.options:
        return
    fields = dataclasses.fields(config_class(settings.stage))
    check_names(
        settings.options,
        # TRL's configs of SFT and DPO lack it: it goes into their rows
        [TEMPLATE_OPTIONS, *(f.name for f in fields)],
        where=f"{where}, options",
    )
    if settings.options.get("use_vllm") and is_too_old_for_vllm():
        raise DataError(
            "vLLM cannot run on this GPU: its attention needs compute capability 8.0, and a T4 has 7.5",
            where=f"{where}, options, use_vllm",
            fix="use_vllm: false (--set use_vllm=false)",
        )
    if both := sorted(settings.options.keys() & {*OURS, *NAMES}):
        raise DataError(
            f"options sets {', '.join(both)}, which the kit sets itself",
            where=f"{where}, options",
            fix="; ".join(
                f"{n}: use the setting {renames()['renames'].get(n, n)!r}"
                for n in both
            ),
        )


def places(
    values: Mapping[str, Any], names: Iterable[str], *, where: str
) -> dict[str, Any]:
    """The values by place: a name of the kit ("lr"), or a place inside one ("options.warmup_steps").

    A system's own name is translated; a name of the kit keeps its meaning. An entry of configs/names.yaml is a place,
    or {to: ..., values: {old: new}, also: {...}}. Every name that nothing reads is reported at once.
    Options, and the fields of a judge at an endpoint, have a place each, so that layers can be joined.
    Two names that set one place must agree.

    >>> places({"judge": "endpoint:m", "judge_base_url": "http://a/v1"}, ["judge"], where="config")
    {'judge.endpoint': 'm', 'judge.base_url': 'http://a/v1'}
    """
    # A list of names is no preset; `options: 3` would fail far away from its line.
    try:
        layer = msgspec.convert(values, dict[str, Any])
        msgspec.convert(
            [layer.get("options", {}), *layer.get("profiles", {}).values()],
            list[dict[str, Any]],
        )
        msgspec.convert(layer.get("preset"), str | None)
    except (msgspec.ValidationError, AttributeError):
        raise DataError(
            "a setting has the wrong form",
            where=where,
            fix="write a mapping of names to values, also for `options` and each of `profiles`; preset is a name",
        ) from None
    check_setting_names(values, set(names), where)
    out: dict[str, Any] = {}
    for name, value in values.items():
        if name in renames()["no_use"]:
            continue
        entry = rename_of(name)
        for place, inner in (
            own_places(entry["to"], translated_value(entry, value, name, where))
            | entry.get("also", {})
        ).items():
            if out.get(place, inner) != inner:
                raise DataError(
                    f"{name!r} and another name both set {place!r}",
                    where=where,
                    fix="keep one",
                )
            out[place] = inner
    return out


def check_setting_names(
    values: Mapping[str, Any], names: set[str], where: str
) -> None:
    """A warning for names without a use here; DataError for those that cannot be used, and for unknown ones."""
    no_use, refused = renames()["no_use"], renames()["refused"]
    for name in values.keys() & no_use.keys():
        logger.warning("%s: %s has no use here: %s", where, name, no_use[name])
    if wrong := sorted(values.keys() & refused.keys()):
        raise DataError(
            "some settings cannot be used",
            where=where,
            fix="; ".join(f"{name}: {refused[name]}" for name in wrong),
        )
    check_names(
        values,
        names
        | no_use.keys()
        | {
            n
            for n in renames()["renames"]
            if rename_of(n)["to"].split(".")[0] in names
        },
        where=where,
    )


def rename_of(name: str) -> dict[str, Any]:
    """The table's entry of a system's name, always a mapping. A name of the kit stays."""
    entry = renames()["renames"].get(name, name)
    return entry if isinstance(entry, dict) else {"to": entry}


def overlay(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> dict[str, Any]:
    """Two layers of `places` joined; the upper one wins.

    >>> overlay({"judge.endpoint": "a", "judge.base_url": "http://a/v1"}, {"judge.endpoint": "b"})
    {'judge.endpoint': 'b', 'judge.base_url': 'http://a/v1'}
    """
    out = dict(lower)
    if "judge.endpoint" in upper:
        out.pop("judge", None)
    elif "judge" in upper:
        # another kind of judge has no use for the fields of an endpoint
        for place in lower:
            if place.startswith("judge."):
                logger.warning(
                    "another judge replaces %s: %s", place, out.pop(place)
                )
    return {**out, **upper}


def nest(values: Mapping[str, Any], *, where: str) -> dict[str, Any]:
    """The settings out of `places`; DataError where one has no place for what is set inside it."""
    out: dict[str, Any] = {}
    # a setting comes before its own places
    for place, value in sorted(values.items()):
        head, *path = place.split(".")
        if path:
            # the flags that change a reward are the refiner's; `reward: NAME` beside them is that preset, changed
            inner = out.get(head, "refiner" if head == "reward" else {})
            if head == "reward" and isinstance(inner, str):
                inner = {"preset": inner}
            if not isinstance(inner, Mapping) or (
                head == "judge" and head in values
            ):
                raise DataError(
                    f"the {head} {inner!r} has no {'.'.join(path)}, which is set to {value!r}",
                    where=where,
                    fix=f"write the {head} as a mapping that says all, or leave {'.'.join(path)} out",
                )
            value = with_inner(inner, path, value, f"{where}, {place}")
        out[head] = value
    return out


def own_places(name: str, value: Any) -> dict[str, Any]:
    """A value of the kit's own name, taken apart where its fields are settings of their own."""
    if name == "judge" and isinstance(value, str) and value.startswith("endpoint:"):
        value = {"endpoint": value.removeprefix("endpoint:")}
    if (
        name == "judge" and isinstance(value, Mapping) and "endpoint" in value
    ) or name == "options":
        return {f"{name}.{k}": v for k, v in value.items()}
    return {name: value}


def with_inner(inner: Any, path: Sequence[str], value: Any, place: str) -> Any:
    """A mapping with a value at a path inside it; DataError where it has another one there."""
    if path:
        return {
            **inner,
            path[0]: with_inner(inner.get(path[0], {}), path[1:], value, place),
        }
    if inner not in ({}, value):
        raise DataError(
            f"a mapping and another name set it, to {inner!r} and {value!r}",
            where=place,
            fix="keep one",
        )
    return value


def translated_value(
    entry: Mapping[str, Any], value: Any, name: str, where: str
) -> Any:
    """The value as the kit writes it; a table of values that lacks it is an error."""
    # YAML has true, shells have True
    key = str(value).lower()
    meanings = entry.get("values", {key: value})
    if key not in meanings:
        raise DataError(
            f"{name} is {value!r}",
            where=where,
            fix=f"one of {', '.join(meanings)}: {entry.get('why', '')}",
        )
    return meanings[key]
