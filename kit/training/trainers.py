"""TRL's own trainers under the kit's settings: GRPO on graded answers, SFT on good ones, DPO on pairs."""

import logging
import math
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..errors import DataError, JudgeDownError
from ..evaluation import (
    STEPS,
    TEMPLATE_OPTIONS,
    Log,
    eos_ids,
    known_scores,
    messages,
    prompt_ids,
)
from ..records import Grade, Response, Task, count_of
from ..system import ranks
from . import fast_cpu
from .policies import Policy
from .reward import Reward, text_of, track
from .settings import Settings, config_class

logger = logging.getLogger(__name__)
MOST_UNKNOWN = 3  # steps in a row without a known reward, after which a run stops


def arguments(settings: Settings, policy: Policy, out: Path) -> dict[str, Any]:
    """What all three of TRL's configs receive."""
    # each process takes its share of a step's rows
    share = settings.rows // (settings.substeps * ranks.world())
    micro = min(settings.micro_rows or share, share)
    is_cuda = policy.device.kind == "cuda"
    return {
        "output_dir": str(out / "checkpoints"),
        "seed": settings.seed,
        "max_steps": settings.steps,
        "learning_rate": settings.lr,
        "per_device_train_batch_size": micro,
        "gradient_accumulation_steps": share // micro,
        # TRL's default of None would save at every 500 steps
        "save_strategy": "steps" if settings.save_every else "no",
        # inside a batch a resumed run would have no answers to go on with
        "save_steps": math.ceil((settings.save_every or 1) / settings.updates)
        * settings.updates,
        "save_total_limit": 2,
        # those of transformers; unsloth's are 8 bits, a decay of .001 and a first step with a rate of 0
        "optim": "adamw_torch_fused",
        "weight_decay": 0.0,
        "warmup_steps": 0,
        "logging_steps": 1,
        "use_cpu": policy.device.kind == "cpu",
        # on a CPU the weights themselves are bfloat16, autocast would only add copies
        "bf16": is_cuda and policy.device.dtype == "bfloat16",
        "fp16": is_cuda and policy.device.dtype == "float16",
        # TRL turns it on; on a CPU it costs a third of the time and saves nothing that is scarce
        "gradient_checkpointing": False,
        "report_to": list(settings.report_to) or "none",
        "disable_tqdm": True,
        "dataloader_pin_memory": is_cuda,
    }


def order(tasks: Sequence[Task], settings: Settings) -> list[Task]:
    """The prompts of all steps, pass after pass, each in an order that seed and pass decide.

    They are written out as one epoch, so that a resumed run goes on with the same prompts.
    """
    # a batch serves several updates
    need = math.ceil(settings.steps / settings.updates) * settings.prompts_per_step
    out: list[Task] = []
    for n in range(math.ceil(need / len(tasks))):
        out += random.Random(f"{settings.seed}/{n}").sample(tasks, len(tasks))
    return out[:need]


def grpo_arguments(settings: Settings, policy: Policy, out: Path) -> dict[str, Any]:
    """What TRL's GRPOConfig receives beside the weights of the rewards."""
    values = arguments(settings, policy, out)
    return values | {
        "temperature": settings.temperature,
        "beta": settings.beta or 0.0,
        "num_generations": settings.group_size,
        "max_completion_length": settings.max_answer_tokens,
        "num_iterations": settings.iterations,
        "steps_per_generation": values["gradient_accumulation_steps"]
        * settings.substeps,
        "scale_rewards": {"std": "group", "centred": "none", "batch": "batch"}[
            settings.advantage
        ],
        "multi_objective_aggregation": "normalize_then_sum"
        if settings.gdpo
        else "sum_then_normalize",
        # plain k3, as the three systems have it; TRL's default multiplies it by the ratio
        "use_bias_correction_kl": False,
        "top_k": 0,
        # `order` has decided, so that a resumed run sees the same prompts
        "shuffle_dataset": False,
        # a tracker gets the answers with their verdicts, the terminal does not
        "log_completions": bool(settings.report_to),
        "num_completions_to_print": 0,
    }


def grpo_trainer(
    policy: Policy,
    settings: Settings,
    tasks: Sequence[Task],
    reward: Reward,
    *,
    out: Path,
    log: Log,
) -> Any:
    """TRL's GRPOTrainer on these tasks; on a CPU with the three methods of kit.training.fast_cpu."""
    import trl

    # TRL has no limit of its own: a long prompt would take all memory
    for t in tasks:
        n = len(
            prompt_ids(policy.tokenizer, messages(t), settings.template_options)
        )
        if n > settings.max_prompt_tokens:
            raise DataError(
                f"a prompt has {n} tokens, more than max_prompt_tokens: {settings.max_prompt_tokens}",
                where=f"task {t.id!r}",
                fix="raise max_prompt_tokens, or leave the task out",
            )
    # with GDPO there is a reward function for each part
    weights = reward.composer.gdpo_weights() if settings.gdpo else {"rubric": 1.0}
    values = grpo_arguments(settings, policy, out)
    values["reward_weights"] = list(map(float, weights.values()))
    return build_trainer(
        type(
            "GRPOTrainer",
            (fast_cpu.CpuGRPOMixin, trl.GRPOTrainer),
            {
                # the copy is made before TRL puts an adapter into the model
                "kit_merged": fast_cpu.MergedModel(policy.model)
                if fast_cpu.fast_path_applies(policy, settings)
                else None,
                "kit_part": max(
                    values["per_device_train_batch_size"], settings.group_size
                ),
            },
        ),
        policy,
        trl.GRPOConfig(**{**values, **settings.options}),
        [
            {"prompt": messages(task), "task_id": task.id}
            for task in order(tasks, settings)
        ],
        reward_funcs=list(
            map(
                RewardAdapter(
                    reward,
                    settings,
                    log,
                    ends={
                        *eos_ids(policy.model, policy.tokenizer),
                        policy.tokenizer.pad_token_id,
                    },
                ).function,
                weights,
            )
        ),
    )


def build_trainer(
    kind: Any,
    policy: Policy,
    arguments: Any,
    rows: list[dict[str, Any]],
    **more: Any,
) -> Any:
    """A trainer of TRL, with its trained weights in float32.

    For a model in 4 bits TRL casts them to bfloat16. There a small step rounds to nothing, a float16 training
    cannot scale the gradients, and a resumed run, whose adapter peft loads as float32, differs.
    """
    from datasets import Dataset

    trainer = kind(
        model=policy.model,
        args=arguments,
        train_dataset=Dataset.from_list(rows),
        processing_class=policy.tokenizer,
        peft_config=policy.lora,
        **more,
    )
    # DeepSpeed wants one type for all weights, and has a float32 copy of its own
    if not trainer.is_deepspeed_enabled:
        for weight in trainer.model.parameters():
            if weight.requires_grad:
                weight.data = weight.data.float()
    return trainer


class RewardAdapter:
    """The reward functions of TRL: one, or one for each part of the reward, which share the grades of a batch."""

    def __init__(
        self, reward: Reward, settings: Settings, log: Log, *, ends: set[int]
    ):
        self.reward, self.settings, self.log, self.ends = (
            reward,
            settings,
            log,
            ends,
        )
        self.grades: tuple[int, list[Grade]] = (-1, [])
        self.unknown = 0

    def function(self, name: str) -> Callable[..., list[float | None]]:
        """The reward function of TRL by the name of a part, "rubric" for the whole reward."""

        from accelerate.utils import gather_object

        def rewards_of(
            completions: list[Any],
            completion_ids: list[list[int]],
            task_id: list[str],
            trainer_state: Any,
            **more: Any,
        ) -> list[float | None]:
            step = trainer_state.global_step + 1
            # with GDPO there is a function for each part: the first one judges for all
            if self.grades[0] != step:
                rows = gather_object(
                    [*zip(completions, completion_ids, task_id, strict=True)]
                )
                # one process judges the answers of all: a group may be spread over several
                grades = self.batch(step, rows) if ranks.rank() == 0 else []
                self.grades = (step, ranks.broadcast(grades))
                track(ranks.local_part(self.grades[1]), more)
            rewards = [g.score for g in self.grades[1]]
            if self.settings.gdpo:
                # an answer whose whole reward is unknown is paid in no part
                rewards = [
                    None if g.score is None else g.parts.get(name)
                    for g in self.grades[1]
                ]
            if self.settings.control:
                rewards = self.shuffle(rewards, step)
            return list(ranks.local_part(rewards))

        rewards_of.__name__ = name
        return rewards_of

    def batch(self, step: int, rows: Sequence[tuple[Any, Any, str]]) -> list[Grade]:
        """Judge the answers of a step and log them. rows : (completion, its token ids, id of the task)."""
        answers = [
            Response(
                task_id=t,
                id=f"s{step}-{n}",
                text=text_of(c),
                truncated=ids[-1] not in self.ends,
            )
            for n, (c, ids, t) in enumerate(rows)
        ]
        # only this step's share
        before = self.reward.seconds
        grades = self.reward.grade(answers)
        self.log.batch(
            step,
            answers,
            grades,
            tasks=self.reward.by_id,
            size=self.settings.group_size,
            judge_calls=self.reward.budget.calls_made,
            judge_cost=self.reward.cost,
            seconds_judge=self.reward.seconds - before,
        )
        self.unknown = 0 if known_scores(grades) else self.unknown + 1
        if not self.unknown:
            return grades
        causes = (
            ", ".join(
                sorted({v.failure for g in grades for v in g.verdicts if v.failure})
            )
            or "no verdicts"
        )
        logger.warning("step %d: no reward is known (%s)", step, causes)
        if self.unknown >= MOST_UNKNOWN:
            # without a reward nothing is learned, and each step costs time and money
            raise JudgeDownError(
                f"no reward was known in {self.unknown} steps in a row",
                where=f"judge {self.reward.name!r}, step {step}",
                fix=f"look at the causes in rollouts.jsonl ({causes})",
            )
        return grades

    def shuffle(self, rewards: list[float | None], step: int) -> list[float | None]:
        """The control: the rewards of each group change hands at random."""
        # within groups: shuffled between them, easy prompts would still pay more
        size, out = self.settings.group_size, []
        for at in range(0, len(rewards), size):
            out += random.Random(f"{self.settings.seed}/{step}/{at}").sample(
                rewards[at : at + size], size
            )
        return out


def supervised_trainer(
    policy: Policy, settings: Settings, rows: Sequence[dict[str, Any]], *, out: Path
) -> Any:
    """TRL's SFTTrainer or DPOTrainer on rows {prompt, completion} or {prompt, chosen, rejected} of messages."""
    import trl

    beta = 0.1 if settings.beta is None else settings.beta
    values = {
        **arguments(settings, policy, out),
        "max_length": settings.max_length,
        # nothing is learned of the question
        **(
            {"beta": beta}
            if settings.stage == "dpo"
            else {"completion_only_loss": True}
        ),
        **settings.options,
    }
    values.pop(TEMPLATE_OPTIONS, None)
    return build_trainer(
        {"sft": trl.SFTTrainer, "dpo": trl.DPOTrainer}[settings.stage],
        policy,
        config_class(settings.stage)(**values),
        fitting_rows(policy, settings, rows),
    )


def fitting_rows(
    policy: Policy, settings: Settings, rows: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """The rows whose prompt leaves room for an answer; a warning counts the others."""
    limit, options = settings.max_length, settings.template_options
    some = [
        # TRL reads the options of the template from each row
        {**r, "chat_template_kwargs": options} if options else r
        for r in rows
        if len(prompt_ids(policy.tokenizer, r["prompt"], options)) < limit
    ]
    if len(some) < len(rows):
        logger.warning(
            "%d of %s left out: the prompt alone fills max_length=%d",
            len(rows) - len(some),
            count_of(len(rows), "row"),
            limit,
        )
    if not some:
        raise DataError(
            "there is no row to learn from",
            where="rows",
            fix="raise max_length, or give other rows",
        )
    return some


def step_callback(
    log: Log,
    progress: Callable[[], Any],
    at_end: Callable[[int], None],
    *,
    adapter: Path | None = None,
) -> Any:
    """TRL's view of the log: a row and a call of `progress` for each step, and a call of `at_end` after it.

    adapter : of a save point. It is loaded after transformers loaded the rest: unsloth's model has its adapter
        already, so that TRL adds a "ref" adapter, and transformers loads only that one.
    """
    from peft import set_peft_model_state_dict
    from safetensors.torch import load_file
    from transformers import TrainerCallback

    class StepCallback(TrainerCallback):  # type: ignore[misc]
        def on_train_begin(self, *_: Any, model: Any = None, **more: Any) -> None:
            if adapter:
                weights = load_file(str(adapter / "adapter_model.safetensors"))
                set_peft_model_state_dict(model, weights, adapter_name="default")

        def on_step_begin(self, *_: Any, **more: Any) -> None:
            self.start = time.perf_counter()

        def on_log(
            self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any
        ) -> None:
            # the last log of a run has totals and no loss
            if logs and "loss" in logs and state.is_world_process_zero:
                row = {
                    **logs,
                    **log.latest,
                    "step": state.global_step,
                    "seconds": time.perf_counter() - self.start,
                }
                log.write(STEPS, [row])
                progress()
                log.on_step(row)

        def on_step_end(
            self, args: Any, state: Any, control: Any, **_: Any
        ) -> None:
            at_end(state.global_step)

    return StepCallback()
