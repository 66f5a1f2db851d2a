"""A model and its tokenizer by name: a folder, the hub's, in 4 bits where wanted, or a tiny one for tests."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..errors import DataError, MissingError
from ..system.device import Device, import_torch

TINY = "tiny-random"
CAUSAL = "AutoModelForCausalLM"
SMOL = ("SmolLM2-135M-Instruct", "HuggingFaceTB/SmolLM2-135M-Instruct")
CHAT = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def resolve(name: str) -> str:
    """The folder or hub name behind a model's name; SmolLM2 is the one that `kit fetch` converts."""
    # the hub's name is read offline, too
    if name in SMOL:
        from ..data import small_model

        return str(small_model())
    path = Path(name).expanduser()
    if name.startswith((".", "/", "~")) or path.is_dir():
        if not (path / "config.json").is_file():
            raise MissingError(
                "there is no model in this folder (no config.json)", where=str(path)
            )
        return str(path)
    return name


def base(
    source: str,
    device: Device,
    *,
    quantize: str = "none",
    adapter: str | Path | None = None,
    split: bool = False,
) -> Any:
    """The base model in eval mode.

    adapter : one that is added to its weights before they are quantised. split : DeepSpeed will move it to the GPUs.
    """
    from transformers import BitsAndBytesConfig

    dtype = getattr(import_torch(), device.dtype)
    more: dict[str, Any] = {"dtype": dtype}
    if quantize == "nf4":
        more["quantization_config"] = BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_compute_dtype=dtype,
            bnb_4bit_use_double_quant=True,
        )
    # each process of a distributed run has a GPU of its own
    if device.kind == "cuda" and not split:
        more["device_map"] = {"": int(os.environ.get("LOCAL_RANK", 0))}
    if source != TINY and not adapter:
        model = load_pretrained(CAUSAL, source, **more)
    else:
        whole = whole_model(source, adapter)
        model = type(whole).from_pretrained(
            None, config=whole.config, state_dict=whole.state_dict(), **more
        )
        # the folder's name, and its ids that end an answer
        model.name_or_path = model.config._name_or_path = source
        model.generation_config = whole.generation_config
    # some CPUs answer with scales in bfloat16, and would train on them after the first evaluation
    for layer in model.modules() if device.kind == "cpu" else ():
        if hasattr(layer, "support_avx512bf16_for_cpu"):
            layer.support_avx512bf16_for_cpu = False
    return model.eval()


def whole_model(source: str, adapter: str | Path | None) -> Any:
    """The model in float32, with an adapter added to its weights: a sum in 4 or 16 bits would round it away."""
    is_tiny = source == TINY
    model = (
        tiny_model()
        if is_tiny
        else load_pretrained(CAUSAL, source, dtype="float32")
    )
    return with_adapter(model, adapter).merge_and_unload() if adapter else model


def load_pretrained(kind: str, source: str, **options: Any) -> Any:
    """What transformers' class of this name loads; MissingError with what to do where it cannot."""
    import transformers

    try:
        return getattr(transformers, kind).from_pretrained(source, **options)
    # transformers raises ValueError for files that it cannot read
    except (OSError, ValueError) as e:
        raise MissingError(
            f"the model {source!r} cannot be loaded: {str(e).splitlines()[0]}",
            where="setting model",
            fix="write a folder, or a name that is cached or reachable",
        ) from None


def tokenizer_of(source: str) -> Any:
    """The tokenizer of a model, padding on the left."""
    if source == TINY:
        return tiny_tokenizer()
    return complete_tokenizer(load_pretrained("AutoTokenizer", source))


def complete_tokenizer(tokenizer: Any) -> Any:
    """The tokenizer with what it lacks: padding on the left, a padding token, a chat layout."""
    # answers are generated behind the prompt, so prompts must end at the same place
    tokenizer.padding_side = "left"
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    # a base model has no layout of its own: it learns the one that is asked later
    tokenizer.chat_template = tokenizer.chat_template or CHAT
    return tokenizer


def with_adapter(model: Any, adapter: str | Path) -> Any:
    """The model with a stored adapter; an error where there is none, or one of another model."""
    from peft import PeftModel

    if not (Path(adapter) / "adapter_config.json").is_file():
        raise MissingError(
            "there is no adapter in this folder",
            where=str(adapter),
            fix="write the folder `adapter` of a finished run",
        )
    try:
        return PeftModel.from_pretrained(model, str(adapter))
    except RuntimeError as e:  # torch's own error for weights of other shapes
        raise DataError(
            "the adapter does not fit the model: its weights have other shapes",
            where=str(adapter),
            fix="write as `model` what the adapter was trained on",
        ) from e


def tiny_model(*, seed: int = 0) -> Any:
    """A Llama with 2 layers of width 32 and random weights, for tests."""
    torch = import_torch()
    from transformers import LlamaConfig, LlamaForCausalLM

    # the same weights in each test, and no draw taken from the run's own numbers
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = LlamaForCausalLM(
            LlamaConfig(
                vocab_size=259,
                hidden_size=32,
                intermediate_size=64,
                num_hidden_layers=2,
                num_attention_heads=4,
                num_key_value_heads=2,
                max_position_embeddings=2048,
                tie_word_embeddings=True,
                initializer_range=0.3,  # with the default of 0.02 nothing could be learned
                bos_token_id=1,
                eos_token_id=2,
                pad_token_id=0,
            )
        )
    # the adapter's config and the model card name it
    model.config._name_or_path = TINY
    return model.eval()


def tiny_tokenizer() -> Any:
    """A byte-level tokenizer of 259 ids with SmolLM2's chat layout; nothing is downloaded."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    # bytes alone: every text can be read
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    vocabulary = {t: i for i, t in enumerate([*special, *alphabet])}
    inner = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner,
        pad_token=special[0],
        bos_token=special[1],
        eos_token=special[2],
    )
    return complete_tokenizer(tokenizer)
