"""The policy: model and tokenizer by name, in 4-bit where wanted, with the device and the reason for each choice."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ..errors import DataError, MissingError
from ..records import Task
from ..system.device import Device, choose, import_torch
from .engines import import_unsloth, pick_engine
from .settings import Settings

TINY = "tiny-random"
SMOL = ("SmolLM2-135M-Instruct", "HuggingFaceTB/SmolLM2-135M-Instruct")
CHAT = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


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
        model = _pretrained(source, **more)
    else:
        # a sum in 4 or 16 bits would round the adapter away
        whole = (
            tiny_model() if source == TINY else _pretrained(source, dtype="float32")
        )
        if adapter:
            whole = with_adapter(whole, adapter).merge_and_unload()
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


def _pretrained(source: str, **options: Any) -> Any:
    from transformers import AutoModelForCausalLM

    try:
        return AutoModelForCausalLM.from_pretrained(source, **options)
    # transformers raises ValueError for files that it cannot read
    except (OSError, ValueError) as e:
        raise _missing(source, e) from None


def _missing(source: str, error: Exception) -> MissingError:
    return MissingError(
        f"the model {source!r} cannot be loaded: {str(error).splitlines()[0]}",
        where="setting model",
        fix="write a folder, or a name that is cached or reachable",
    )


def tokenizer_of(source: str) -> Any:
    """The tokenizer of a model, padding on the left."""
    from transformers import AutoTokenizer

    if source == TINY:
        return tiny_tokenizer()
    try:
        return _complete(AutoTokenizer.from_pretrained(source))
    # transformers raises ValueError for files that it cannot read
    except (OSError, ValueError) as e:
        raise _missing(source, e) from None


def _complete(tokenizer: Any) -> Any:
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
    return model, _complete(tokenizer)


def messages(task: Task) -> list[dict[str, str]]:
    """The chat that a task asks: system, turns before, and the prompt with the sources that it may cite."""
    # templates differ in what they make of an empty system turn
    first = [{"role": "system", "content": task.system}] if task.system else []
    text, sources = task.prompt, task.meta.get("tool_output", "")
    if (
        task.sources
        and not sources
        and f"<snippet id={next(iter(task.sources))}>" not in text
    ):
        sources = "\n".join(
            f"<snippet id={k}>{v}</snippet>" for k, v in task.sources.items()
        )
    last = {"role": "user", "content": f"{text}\n\n{sources}".strip()}
    return [*first, *map(dict, task.history), last]


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


def prompt_ids(
    tokenizer: Any,
    chat: Sequence[dict[str, str]],
    template_options: Mapping[str, Any] = MappingProxyType({}),
) -> list[int]:
    """Token ids of a chat in the model's layout, with the words that begin an answer."""
    out = tokenizer.apply_chat_template(
        list(chat),
        add_generation_prompt=True,
        tokenize=True,
        return_dict=True,
        **template_options,
    )
    return list(out["input_ids"])


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
    return _complete(tokenizer)
