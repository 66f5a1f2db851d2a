"""Language models by name, in 4 bits where wanted, and their answers to tasks, each with its probability."""

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ..errors import MissingError
from ..records import Response, Task
from ..system.device import Device, choose, import_torch
from ..system.paths import describe_file
from ..system.progress import bar
from .result import METRICS, Result

TINY = "tiny-random"
# of the chat template, an option of a training
TEMPLATE_OPTIONS = "chat_template_kwargs"
BATCH = 32  # prompts that are answered at once
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
    return str(Path(name).expanduser()) if is_folder(name) else name


def is_folder(name: str) -> bool:
    """True where a model's name is that of a folder, which may be missing."""
    return name.startswith((".", "/", "~")) or Path(name).is_dir()


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
        # a sum in 4 or 16 bits would round the adapter away
        whole = load_pretrained(CAUSAL, source, dtype="float32")
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


def load_pretrained(kind: str, source: str, **options: Any) -> Any:
    """What transformers' class of this name loads; MissingError with what to do where it cannot."""
    import transformers

    if source == TINY:
        return tiny_tokenizer() if kind == "AutoTokenizer" else tiny_model()
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
    """The model with a stored adapter; MissingError where there is none."""
    from peft import PeftModel

    if not (Path(adapter) / "adapter_config.json").is_file():
        raise MissingError(
            "there is no adapter in this folder",
            where=str(adapter),
            fix="write the folder `adapter` of a finished run",
        )
    return PeftModel.from_pretrained(model, str(adapter))


def tiny_model() -> Any:
    """A Llama with 2 layers of width 32 and random weights, for tests."""
    torch = import_torch()
    from transformers import LlamaConfig, LlamaForCausalLM

    # the same weights in each test, and no draw taken from the run's own numbers
    with torch.random.fork_rng():
        torch.manual_seed(0)
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
    from tokenizers.pre_tokenizers import ByteLevel
    from transformers import GPT2Tokenizer

    # bytes alone: every text can be read
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    tokens = [*special, *sorted(ByteLevel.alphabet())]
    return complete_tokenizer(
        GPT2Tokenizer(
            vocab=dict(zip(tokens, range(len(tokens)), strict=True)),
            merges=[],
            pad_token=special[0],
            bos_token=special[1],
            eos_token=special[2],
        )
    )


def sample(
    model: Any,
    tokenizer: Any,
    tasks: Sequence[Task],
    *,
    name: str,
    samples: int,
    temperature: float,
    max_new_tokens: int,
    seed: int,
    template_options: Mapping[str, Any] = MappingProxyType({}),
    generate: Callable[..., list[list[int]]] | None = None,
    progress: bool = True,
) -> list[Response]:
    """Answers to each task, with exp(mean log-probability of the tokens) as their confidence.

    temperature : 0 is greedy. template_options : of the chat template, as in training.
    generate : a faster way than model.generate, called with
        prompts, a GenerationConfig and a logits processor.
    The random numbers are the evaluation's own: a run with and without evaluations trains alike.
    """
    torch = import_torch()
    config = generation_config(model, tokenizer, temperature, max_new_tokens)
    generate = generate or partial(generate_padded, model, tokenizer)
    todo = [task for task in tasks for _ in range(samples)]
    answers: list[Response] = []
    is_training = model.training
    model.eval()
    # the numbers of the training itself are left as they were
    with torch.no_grad(), torch.random.fork_rng():
        torch.manual_seed(seed)
        for at in bar(
            range(0, len(todo), BATCH),
            desc=f"answers, {name}",
            disable=not progress,
        ):
            batch, recorder = todo[at : at + BATCH], LogprobRecorder()
            rows = generate(
                [
                    prompt_ids(tokenizer, messages(task), template_options)
                    for task in batch
                ],
                config,
                recorder,
            )
            for task, ids, p in zip(
                batch, rows, recorder.probabilities(rows), strict=True
            ):
                answers.append(
                    Response(
                        task_id=task.id,
                        id=f"{name}-{len(answers)}",
                        text=tokenizer.decode(
                            ids, skip_special_tokens=True
                        ).strip(),
                        source=name,
                        truncated=ids[-1] not in config.eos_token_id,
                        confidence=p,
                    )
                )
    model.train(is_training)
    return answers


def generation_config(
    model: Any, tokenizer: Any, temperature: float, max_new_tokens: int
) -> Any:
    """What transformers' `generate` needs to know; temperature 0 is greedy."""
    from transformers import GenerationConfig

    return GenerationConfig(
        max_new_tokens=max_new_tokens,
        do_sample=temperature > 0,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=eos_ids(model, tokenizer),
        **({"temperature": temperature, "top_k": 0} if temperature else {}),
    )


@dataclass
class LogprobRecorder:
    """A logits processor that changes nothing and keeps the log-probability of each token.

    last : of all tokens at the last place. logps : of the drawn tokens at the places before.
    """

    last: Any = None
    logps: list[Any] = field(default_factory=list)

    def __call__(self, ids: Any, logits: Any) -> Any:
        # the token that was drawn is known one call later
        if self.last is not None:
            self.logps.append(self.last.gather(-1, ids[:, -1:])[:, 0])
        self.last = logits.float().log_softmax(-1)
        return logits

    def probabilities(self, answers: Sequence[list[int]]) -> list[float]:
        """exp(mean log-probability) of each answer's tokens, at temperature 1."""
        probabilities = []
        for i, ids in enumerate(answers):
            # no call comes after the last token, so the longest answers end in what was kept last
            logps = [float(step[i]) for step in self.logps[: len(ids)]]
            if len(logps) < len(ids):
                logps.append(float(self.last[i, ids[-1]]))
            probabilities.append(min(1.0, math.exp(sum(logps) / len(logps))))
        return probabilities


def eos_ids(model: Any, tokenizer: Any) -> list[int]:
    """Every id that ends an answer."""
    ids = model.generation_config.eos_token_id or []
    return sorted(
        {*([ids] if isinstance(ids, int) else ids), tokenizer.eos_token_id}
    )


def generate_padded(
    model: Any,
    tokenizer: Any,
    prompts: Sequence[Sequence[int]],
    config: Any,
    recorder: LogprobRecorder,
) -> list[list[int]]:
    """Answers as token ids, each up to and with its first end token, by transformers' own `generate`."""
    # unsloth pads on the right while it trains
    rows = tokenizer.pad(
        {"input_ids": list(map(list, prompts))},
        padding_side="left",
        return_tensors="pt",
    ).to(model.device)
    # one process evaluates: it must not wait for the others at every token
    return [
        truncate_at_eos(row, config.eos_token_id)
        for row in model.generate(
            **rows,
            generation_config=config,
            logits_processor=[recorder],
            synced_gpus=False,
        )[:, rows["input_ids"].shape[1] :].tolist()
    ]


def truncate_at_eos(row: list[int], ends: Sequence[int]) -> list[int]:
    """The tokens up to and with the first end token."""
    return row[
        : next((n for n, token in enumerate(row, 1) if token in ends), len(row))
    ]


def messages(task: Task) -> list[dict[str, str]]:
    """The chat that a task asks: system, turns before, and the prompt with the sources that it may cite."""
    text, sources = task.prompt, task.meta.get("tool_output", "")
    # a prompt may have them already
    if not sources and not any(f"<snippet id={k}>" in text for k in task.sources):
        sources = "\n".join(
            f"<snippet id={k}>{v}</snippet>" for k, v in task.sources.items()
        )
    return [
        # templates differ in what they make of an empty system turn
        *([{"role": "system", "content": task.system}] if task.system else []),
        *map(dict, task.history),
        {"role": "user", "content": f"{text}\n\n{sources}".strip()},
    ]


def prompt_ids(
    tokenizer: Any,
    chat: Sequence[dict[str, str]],
    template_options: Mapping[str, Any] = MappingProxyType({}),
) -> list[int]:
    """Token ids of a chat in the model's layout, with the words that begin an answer."""
    return list(
        tokenizer.apply_chat_template(
            list(chat),
            add_generation_prompt=True,
            tokenize=True,
            return_dict=True,
            **template_options,
        )["input_ids"]
    )


@dataclass(frozen=True, kw_only=True)
class Weights:
    """What a model is loaded from.

    source : folder or hub name. adapter : of a training, beside the weights; earlier_adapter : of the training before
        it, a part of the weights. template_options : of the chat template, as in the training.
    """

    source: str
    dtype: str = "auto"
    quantize: str = "none"
    earlier_adapter: str | None = None
    adapter: str | None = None
    template_options: Mapping[str, Any] = field(default_factory=dict)

    def load(self) -> tuple[Any, Any]:
        """Model and tokenizer. A model in 4 bits keeps its adapter beside the quantised weights, as it was trained."""
        model = base(
            self.source,
            choose(self.dtype),
            quantize=self.quantize,
            adapter=self.earlier_adapter,
        )
        if self.adapter:
            model = with_adapter(model, self.adapter)
            if self.quantize == "none":
                model = model.merge_and_unload()
        return model, tokenizer_of(self.source)

    @property
    def identity(self) -> list[Any]:
        """What tells weights apart: name and size of their files, and a digest of each one's end."""
        # A name of the hub has no folder here.
        files = [
            describe_file(file)
            for place in (self.source, self.earlier_adapter, self.adapter)
            if place
            for file in sorted(Path(place).glob("*.safetensors"))
        ]
        return [files or [self.source], self.quantize, dict(self.template_options)]


def find_weights(name: str | Path) -> Weights:
    """The weights of a model's name or folder, or of the folder of a finished training; of a chain, its last stage."""
    folder = Path(name).expanduser()
    if not (folder / METRICS).is_file():
        return Weights(source=resolve(str(name)))
    run = Result.read(folder)
    settings = run.settings
    return Weights(
        source=resolve(settings["model"]),
        dtype=settings["dtype"],
        quantize=settings["quantize"],
        earlier_adapter=settings["adapter"],
        adapter=str(run.adapter),
        template_options=settings["options"].get(TEMPLATE_OPTIONS) or {},
    )
