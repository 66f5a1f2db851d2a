"""What others can use: the adapter, the merged model, and both on the hub with a card made of the run's record."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from ..errors import DataError, MissingError
from ..evaluation import (
    SMOL,
    Result,
    base,
    resolve,
    tokenizer_of,
    with_adapter,
)
from ..stats import format_number
from ..system.device import choose


@contextmanager
def complete_folder(folder: Path) -> Iterator[str]:
    """A folder to write into, which takes the name of `folder` at the end: a kill leaves no half of it."""
    part = folder.with_name(f".{folder.name}")
    shutil.rmtree(part, ignore_errors=True)
    yield str(part)
    shutil.rmtree(folder, ignore_errors=True)
    part.rename(folder)


def save_adapter(model: Any, tokenizer: Any, folder: Path) -> None:
    """Write an adapter."""
    with complete_folder(folder) as part:
        # with beta > 0 unsloth's model has a second adapter, the reference
        model.save_pretrained(part, selected_adapters=["default"])
        tokenizer.save_pretrained(part)


def merge(
    model: str, adapter: str | Path, out: str | Path, *, first: str | None = None
) -> Path:
    """The model with the adapter added to its weights, a folder that `from_pretrained` loads.

    The sum is made and stored in float32. first : an adapter that was merged before this one was trained.
    """
    source, out = resolve(model), Path(out)
    # a sum in bfloat16 would round the adapter away
    merged = base(source, choose("float32"))
    for folder in filter(None, (first, adapter)):
        merged = with_adapter(merged, folder).merge_and_unload()
    with complete_folder(out) as part:
        merged.save_pretrained(part)
        tokenizer_of(source).save_pretrained(part)
    return out


def export(
    run: str | Path,
    to: Literal["adapter", "merged"] = "merged",
    out: str | Path | None = None,
) -> Path:
    """Write a finished run's adapter or merged model (float32) into a folder, with a model card.

    out : default RUN/export/TO. A GGUF file is made of the merged folder by llama.cpp's own converter:
    `python convert_hf_to_gguf.py RUN/export/merged`.
    """
    stage = _stage(run)
    place = Path(out) if out is not None else stage.folder / "export" / to
    # an export of another run must not be mixed in
    if place.exists():
        raise DataError(
            "there is something already", where=str(place), fix="write another out"
        )
    if to == "merged":
        first = stage.settings["adapter"]
        merge(stage.settings["model"], stage.adapter, place, first=first)
    elif to == "adapter":
        shutil.copytree(stage.adapter, place)
    else:
        raise DataError(
            f"there is no export {to!r}", where="to", fix="adapter or merged"
        )
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


def _stage(run: str | Path) -> Result:
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
    stage = _stage(run)
    settings, metrics = stage.settings, stage.metrics
    facts = "steps seconds engine device dtype judge judge_calls judge_cost"
    rows = {k: metrics.get(k) for k in facts.split()} | settings
    # the hub refuses a base model that is no name of its own, such as the folder of the stage before
    model = SMOL[1] if settings["model"] in SMOL else settings["model"]
    is_hub = model.count("/") == 1 and not Path(model).expanduser().exists()
    lines = [
        "---",
        *([f"base_model: {model}"] if is_hub else []),
        f"tags: [rubric-rewards, {metrics['stage']}]",
        "---",
        "",
        f"# {Path(metrics['base']).name} after {metrics['config']}, stage {metrics['name']}",
        "",
        # a card must not claim what was not measured
        *(stage.gain.sentence, *metrics["notes"]),
        "",
        "| | |",
        "|---|---|",
        *(
            f"| {k} | {str(v).replace('|', '/')} |".replace("\n", " ")
            for k, v in rows.items()
            if v not in (None, [], {}, "")
        ),
    ]
    if stage.trivial:
        lines += ["", "Held-out reward of policies without skill:", ""]
        lines += [f"- {k}: {format_number(v)}" for k, v in stage.trivial.items()]
    return "\n".join(lines) + "\n"
