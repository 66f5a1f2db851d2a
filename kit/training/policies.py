"""The policy: model and tokenizer by name, in 4-bit where wanted, with the device and the reason for each choice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import DataError
from ..evaluation import (
    TINY,
    base,
    complete_tokenizer,
    messages,
    resolve,
    tokenizer_of,
)
from ..records import Task
from ..system.device import Device, choose, import_torch
from .engines import import_unsloth, pick_engine
from .settings import Settings


@dataclass(frozen=True, kw_only=True)
class Policy:
    """A model that is ready to train.

    model : the base model, for a LoraConfig (`lora`); unsloth's has its adapter already (`lora` is None).
    engine, why : which engine, and the reason. device : with its number format and the reason.
    """

    model: Any
    tokenizer: Any
    lora: Any
    engine: str
    why: str
    device: Device

    @property
    def about(self) -> dict[str, Any]:
        """What metrics.json records. Results of one seed differ between numbers of threads."""
        return {
            "engine": self.engine,
            "engine_why": self.why,
            "device": self.device.name,
            "dtype": self.device.dtype,
            "dtype_why": self.device.why,
            "threads": import_torch().get_num_threads(),
        }


def policy(settings: Settings, tasks: Sequence[Task] = ()) -> Policy:
    """Model, tokenizer and LoraConfig for these settings. The chat template must take the chats of the tasks."""
    engine, why = pick_engine(settings.engine)
    device = choose(settings.dtype)
    source = resolve(settings.model)
    # the adapter's first weights are drawn from this seed
    import_torch().manual_seed(settings.seed)
    if engine == "unsloth":
        lora, (model, tokenizer) = None, _unsloth(settings, source, device)
        check_template(tokenizer, tasks, settings.model)
    else:
        from peft import LoraConfig

        tokenizer = tokenizer_of(source)
        # asked before the model loads, which may take minutes
        check_template(tokenizer, tasks, settings.model)
        # TRL gets a base model and a fresh adapter: only so a resumed run is the same
        model = base(
            source,
            device,
            quantize=settings.quantize,
            adapter=settings.adapter,
            split="deepspeed" in settings.options,
        )
        lora = LoraConfig(
            r=settings.lora_rank,
            lora_alpha=settings.lora_alpha,
            target_modules="all-linear",
            task_type="CAUSAL_LM",
        )
    return Policy(
        model=model,
        tokenizer=tokenizer,
        lora=lora,
        engine=engine,
        why=why,
        device=device,
    )


def _unsloth(settings: Settings, source: str, device: Device) -> tuple[Any, Any]:
    """Model with its LoRA adapter, through unsloth's own loader."""
    fast = import_unsloth().FastLanguageModel
    if source == TINY or settings.adapter:
        raise DataError(
            "unsloth loads a model folder or a hub name, without an adapter of a run before",
            where="settings model and adapter",
            fix="engine: transformers, or export the adapter merged and write that folder as model",
        )
    model, tokenizer = fast.from_pretrained(
        model_name=source,
        max_seq_length=max(
            settings.max_length,
            settings.max_prompt_tokens + settings.max_answer_tokens,
        ),
        dtype=getattr(import_torch(), device.dtype),
        load_in_4bit=settings.quantize == "nf4",
        fast_inference=bool(settings.options.get("use_vllm")),
        # vLLM allows 16 where it is not told
        max_lora_rank=settings.lora_rank,
    )
    model = fast.get_peft_model(
        model,
        r=settings.lora_rank,
        lora_alpha=settings.lora_alpha,
        lora_dropout=0.0,
        target_modules="q_proj k_proj v_proj o_proj gate_proj up_proj down_proj".split(),
        use_gradient_checkpointing="unsloth"
        if settings.options.get("gradient_checkpointing")
        else False,
        random_state=settings.seed,
    )
    return model, complete_tokenizer(tokenizer)


def check_template(tokenizer: Any, tasks: Sequence[Task], model: str) -> None:
    """DataError where the chat template refuses a task's turns, or leaves its system text out."""
    from jinja2 import TemplateError

    for task in tasks:
        turns, reason = messages(task), ""
        try:
            text = tokenizer.apply_chat_template(turns, tokenize=False)
        except TemplateError as error:
            text, reason = "", f": {error}"
        if reason or (task.system or "").strip() not in text:
            roles = ", ".join(turn["role"] for turn in turns)
            raise DataError(
                f"the chat template does not take these turns ({roles}){reason}",
                where=f"task {task.id!r}, model {model}",
                fix="write the system text into the prompt, or choose a model whose template has a system role",
            )
