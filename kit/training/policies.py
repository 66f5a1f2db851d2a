"""The policy: a model that is ready to train, and what becomes of it: an adapter, a merged model, files on the hub."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import jinja2

from ..errors import DataError, MissingError
from ..evaluation import (
    SMOL,
    TINY,
    Result,
    Weights,
    base,
    complete_tokenizer,
    is_folder,
    messages,
    resolve,
    tokenizer_of,
)
from ..records import Task
from ..stats import format_number
from ..system.device import Device, choose, import_torch
from ..system.settings import require_name
from .settings import CONFIGS, Settings, import_unsloth, pick_engine


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
    for task in tasks:
        turns, reason = messages(task), ""
        try:
            text = tokenizer.apply_chat_template(turns, tokenize=False)
        except jinja2.TemplateError as error:
            text, reason = "", f": {error}"
        if reason or (task.system or "").strip() not in text:
            raise DataError(
                f"the chat template does not take these turns ({', '.join(turn['role'] for turn in turns)}){reason}",
                where=f"task {task.id!r}, model {model}",
                fix="write the system text into the prompt, or choose a model whose template has a system role",
            )


@contextmanager
def complete_folder(folder: Path) -> Iterator[str]:
    """A folder to write into, which takes the name of `folder` at the end: a kill leaves no half of it."""
    part = folder.with_name(f".{folder.name}")
    shutil.rmtree(part, ignore_errors=True)
    yield str(part)
    shutil.rmtree(folder, ignore_errors=True)
    part.rename(folder)


def merge(
    model: str, adapter: str | Path, out: str | Path, *, first: str | None = None
) -> Path:
    """The model with the adapter added to its weights, a folder that `from_pretrained` loads.

    The sum is made and stored in float32. first : an adapter that was merged before this one was trained.
    """
    weights = Weights(
        source=resolve(model),
        # a sum in bfloat16 would round the adapter away
        dtype="float32",
        earlier_adapter=first,
        adapter=str(adapter),
    )
    with complete_folder(Path(out)) as part:
        for half in weights.load():
            half.save_pretrained(part)
    return Path(out)


def export(
    run: str | Path,
    to: Literal["adapter", "merged"] = "merged",
    out: str | Path | None = None,
) -> Path:
    """Write a finished run's adapter or merged model (float32) into a folder, with a model card.

    out : default RUN/export/TO. A GGUF file is made of the merged folder by llama.cpp's own converter:
    `python convert_hf_to_gguf.py RUN/export/merged`.
    """
    stage = finished_stage(run)
    require_name("export", to, ("adapter", "merged"), where="to")
    place = Path(out) if out is not None else stage.folder / "export" / to
    # an export of another run must not be mixed in
    if place.exists():
        raise DataError(
            "there is something already", where=str(place), fix="write another out"
        )
    if to == "merged":
        merge(
            stage.settings["model"],
            stage.adapter,
            place,
            first=stage.settings["adapter"],
        )
    else:
        shutil.copytree(stage.adapter, place)
    (place / "README.md").write_text(card(run), "utf-8")
    return place


def push_to_hub(
    run: str | Path,
    name: str,
    to: Literal["adapter", "merged"] = "adapter",
    *,
    private: bool = True,
) -> str:
    """Upload a finished run to the hub as OWNER/NAME, with its card; the token comes from HF_TOKEN."""
    from huggingface_hub import HfApi

    # what was exported before is what is uploaded
    folder = Path(run) / "export" / to
    folder = folder if folder.exists() else export(run, to)
    api = HfApi()
    try:
        api.create_repo(name, private=private, exist_ok=True)
        return str(api.upload_folder(repo_id=name, folder_path=str(folder)))
    # no network, no token, no rights, a card that is refused: each has a class of its own
    except Exception as e:
        raise MissingError(
            f"the hub did not take the files: {type(e).__name__}: {str(e)[:200]}",
            where=f"{name}, from {folder}",
            fix="check the network, OWNER/NAME and HF_TOKEN; then the same call goes on",
        ) from e


def finished_stage(run: str | Path) -> Result:
    """A finished training of one stage."""
    result = Result.read(run)
    if result.stages:
        raise MissingError(
            "a chain has an adapter for each stage",
            where=str(run),
            fix=f"name a stage: {', '.join(r.folder.name for r in result.stages)}",
        )
    return result


def card(run: str | Path) -> str:
    """A model card in Markdown; every number is from the run's own files."""
    stage = finished_stage(run)
    settings, metrics = stage.settings, stage.metrics
    model = SMOL[1] if settings["model"] in SMOL else settings["model"]
    # where a folder lies on this machine is no reader's business
    if is_folder(model):
        settings["model"] = Path(model).name
    if settings["adapter"]:
        settings["adapter"] = "/".join(Path(settings["adapter"]).parts[-2:])
    # a card must not claim what was not measured
    return str(
        jinja2.Template((CONFIGS / "card.md").read_text("utf-8")).render(
            # the hub refuses a base model that is no name of its own
            base_model="" if is_folder(model) or model.count("/") != 1 else model,
            base_name=Path(metrics["base"]).name,
            sentence=stage.gain.sentence,
            metrics=metrics,
            rows={
                k: metrics.get(k)
                for k in "steps seconds engine device dtype judge judge_calls judge_cost".split()
            }
            | settings,
            trivial=stage.trivial,
            format_number=format_number,
        )
    )
