"""What others can use: the adapter, the merged model, and both on the hub with a card made of the run's record."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, Literal

from ..errors import DataError, MissingError
from ..system.device import choose
from .models import SMOL, base, resolve, tokenizer_of, with_adapter


def save_adapter(model: Any, tokenizer: Any, folder: Path) -> None:
    """Write an adapter whole or not at all: a kill leaves no half of it."""
    part = folder.with_name(f".{folder.name}")
    shutil.rmtree(part, ignore_errors=True)
    # with beta > 0 unsloth's model has a second adapter, the reference
    model.save_pretrained(str(part), selected_adapters=["default"])
    tokenizer.save_pretrained(str(part))
    shutil.rmtree(folder, ignore_errors=True)
    part.rename(folder)


def merge(
    model: str, adapter: str | Path, out: str | Path, *, first: str | None = None
) -> Path:
    """The model with the adapter added to its weights, a folder that `from_pretrained` loads.

    The sum is made and stored in float32. first : an adapter that was merged before this one was trained.
    """
    source, out = resolve(model), Path(out)
    # a sum in bfloat16 would round the adapter away
    whole = base(source, choose("float32"))
    for folder in (first, adapter):
        whole = with_adapter(whole, folder).merge_and_unload() if folder else whole
    part = out.with_name(f".{out.name}")
    shutil.rmtree(part, ignore_errors=True)
    whole.save_pretrained(str(part))
    tokenizer_of(source).save_pretrained(str(part))
    shutil.rmtree(out, ignore_errors=True)
    part.rename(out)
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
    run = Path(run)
    record, adapter = _record(run), run / "adapter"
    place = Path(out) if out is not None else run / "export" / to
    # an export of another run must not be mixed in
    if place.exists():
        raise DataError(
            "there is something already", where=str(place), fix="write another out"
        )
    place.parent.mkdir(parents=True, exist_ok=True)
    if to == "merged":
        merge(
            record["settings"]["model"],
            adapter,
            place,
            first=record["settings"]["adapter"],
        )
    elif to == "adapter":
        shutil.copytree(adapter, place)
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


def _record(run: Path) -> dict[str, Any]:
    """settings.json of a finished run of one stage."""
    if (
        not (run / "settings.json").exists()
        or not (run / "adapter" / "adapter_config.json").exists()
    ):
        stages = sorted(p.parent.name for p in run.glob("*/adapter"))
        raise MissingError(
            "there is no adapter of a finished stage",
            where=str(run),
            fix=f"name a stage of the chain: {', '.join(stages)}"
            if stages
            else "train it to the end first",
        )
    return json.loads((run / "settings.json").read_text("utf-8"))  # type: ignore[no-any-return]


def card(run: str | Path) -> str:
    """A model card in Markdown; every number is from the run's own files."""
    run = Path(run)
    settings = _record(run)["settings"]
    metrics = json.loads((run / "metrics.json").read_text("utf-8"))
    # a card must not claim what was not measured
    sentence = metrics.get(
        "sentence",
        "No held-out evaluation was made: nothing is claimed about quality.",
    )
    facts = "steps seconds engine device dtype judge judge_calls judge_cost"
    rows = {k: metrics.get(k) for k in facts.split()} | settings
    # the hub refuses a card whose base model is no name of its own, such as a folder
    model = SMOL[1] if settings["model"] in SMOL else settings["model"]
    is_hub = model.count("/") == 1 and not Path(model).expanduser().exists()
    lines = [
        "---",
        *([f"base_model: {model}"] if is_hub else []),
        f"tags: [rubric-rewards, {metrics['stage']}]",
        "---",
        "",
        f"# {Path(settings['model']).name} after {metrics['stage'].upper()}",
        "",
        *(sentence, *metrics["notes"]),
        "",
        "| | |",
        "|---|---|",
        *(
            f"| {k} | {str(v).replace('|', '/')} |".replace("\n", " ")
            for k, v in rows.items()
            if v not in (None, [], {}, "")
        ),
    ]
    if metrics.get("trivial"):
        lines += ["", "Held-out reward of policies without skill:", ""]
        lines += [
            f"- {k}: {'unknown' if v is None else round(v, 3)}"
            for k, v in metrics["trivial"].items()
        ]
    return "\n".join(lines) + "\n"
