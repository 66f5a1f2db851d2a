"""The unsloth engine: its patches work only when it is imported before trl, transformers and peft."""

from __future__ import annotations

import os
import sys
from typing import Any

from ..errors import KitError
from ..system import paths
from .config import Settings
from .device import choose, import_torch
from .models import TINY, Loaded, resolve

LATE = ("trl", "transformers", "peft")


def import_unsloth() -> Any:
    """unsloth, imported first; KitError when trl, transformers or peft came before it, because its patches would be lost silently."""
    if "unsloth" not in sys.modules:
        late = [m for m in LATE if m in sys.modules]
        if late:
            raise KitError(
                f"{', '.join(late)} was imported before unsloth, whose speed-ups would be lost",
                where="engine unsloth",
                fix="restart the kernel and call kit.train.unsloth_engine.import_unsloth() first",
            )
        import_torch()
        os.environ.setdefault("UNSLOTH_DISABLE_STATISTICS", "1")
        os.environ.setdefault(
            "UNSLOTH_COMPILE_LOCATION", str(paths.home() / "unsloth_compiled_cache")
        )  # else in the working directory
    import unsloth

    return unsloth


def load(settings: Settings, why: str) -> Loaded:
    """Model with LoRA through unsloth's FastLanguageModel; 4-bit when `quantize` is "nf4"."""
    unsloth = import_unsloth()
    if settings.model == TINY:
        raise KitError(
            "unsloth loads models from folders or the hub, not the tiny one built in code",
            where="setting model",
            fix="save it to a folder first, or set engine: transformers",
        )
    device, source = choose(settings.dtype), resolve(settings.model)
    room = getattr(settings, "max_prompt_tokens", 0) + getattr(
        settings, "max_answer_tokens", 0
    ) or getattr(settings, "max_tokens", 2048)
    model, tokenizer = unsloth.FastLanguageModel.from_pretrained(
        model_name=settings.adapter or source,
        max_seq_length=room,
        dtype=device.torch_dtype(),
        load_in_4bit=settings.quantize == "nf4",
        fast_inference=bool(getattr(settings, "use_vllm", False)),
    )
    if not settings.adapter:
        targets = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
        targets = targets if settings.lora_targets == "all-linear" else settings.lora_targets
        model = unsloth.FastLanguageModel.get_peft_model(
            model,
            r=settings.lora_rank,
            lora_alpha=settings.lora_alpha,
            lora_dropout=settings.lora_dropout,
            target_modules=list(targets),
            use_gradient_checkpointing="unsloth" if settings.gradient_checkpointing else False,
            random_state=settings.seed,
        )
    tokenizer.padding_side = "left"
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return Loaded(
        model=model, tokenizer=tokenizer, engine="unsloth", why=why, device=device, source=source
    )
