"""What others can use: the merged model, a GGUF where the engine offers it, and a model card written from the run's record."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, Literal

from ..errors import KitError, MissingError
from .device import choose
from .models import base, resolve, tokenizer_of


def merge(
    model: str,
    adapter: str | Path,
    out: str | Path,
    *,
    dtype: Literal["float32", "auto"] = "float32",
) -> Path:
    """The model with the adapter added to its weights, as a folder that `from_pretrained` loads.

    The sum is made in float32; dtype : of the stored weights ("auto": the one this machine computes in).
    The folder appears when it is complete, so that a kill leaves no half of it behind.
    """
    from peft import PeftModel

    source, out = resolve(model), Path(out)
    plain, _ = base(source, choose("float32"))
    merged = PeftModel.from_pretrained(plain, str(adapter)).merge_and_unload()
    partial = out.with_name(out.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    merged.to(choose(dtype).torch_dtype()).save_pretrained(str(partial))
    tokenizer_of(source).save_pretrained(str(partial))
    shutil.rmtree(out, ignore_errors=True)
    partial.rename(out)
    return out


def gguf(loaded: Any, out: str | Path, *, method: str = "q4_k_m") -> Path:
    """A GGUF of the trained model, through unsloth; KitError with other engines."""
    if not hasattr(loaded.model, "save_pretrained_gguf"):
        raise KitError(
            "only the unsloth engine writes GGUF files",
            where=f"engine {loaded.engine!r}",
            fix="export the merged model and convert it with llama.cpp's convert_hf_to_gguf.py",
        )
    loaded.model.save_pretrained_gguf(str(out), loaded.tokenizer, quantization_method=method)
    return Path(out)


def card(run: str | Path) -> str:
    """A model card in Markdown from a run's settings.json and metrics.json; every number is from the run."""
    run = Path(run)
    try:
        metrics = json.loads((run / "metrics.json").read_text("utf-8"))
        settings = json.loads((run / "settings.json").read_text("utf-8"))["settings"]
    except OSError:
        raise MissingError(
            "the run has no record yet", where=str(run), fix="train it to the end first"
        ) from None
    held = metrics.get("heldout") or {}
    metrics["judge_name"] = (metrics.get("judge") or {}).get("name")
    lines = [
        "---",
        "library_name: peft",
        f"base_model: {settings['model']}",
        f"tags: [rubric-rewards, {metrics['stage']}]",
        "---",
        "",
        f"# {settings['model']} after {metrics['stage'].upper()}",
        "",
        held.get(
            "sentence", "No held-out evaluation was made, so nothing is claimed about quality."
        ),
        "",
        "## Training",
        "",
    ]
    lines += [
        f"- {name}: {metrics[key]}"
        for name, key in (
            ("steps", "steps"),
            ("engine", "engine"),
            ("device", "device"),
            ("number format", "dtype"),
            ("seed", "seed"),
            ("judge", "judge_name"),
            ("reward", "composer"),
            ("verdicts", "verdicts"),
            ("of these unknown", "verdicts_unknown"),
            ("judge calls", "judge_calls"),
            ("judge cost in US dollars", "judge_cost"),
        )
        if metrics.get(key) is not None
    ]
    lines += [
        f"- seconds of training: {metrics['seconds_training']:.0f}",
        "",
        "| setting | value |",
        "|---|---|",
    ]
    lines += [f"| {k} | {_cell(v)} |" for k, v in settings.items()]
    if held:
        lines += ["", "## Held-out reward", "", "| what | value | 95% interval |", "|---|---|---|"]
        lines += [
            f"| {name} | {_number(held[key]['value'])} | {_number(held[key]['low'])} to {_number(held[key]['high'])} |"
            for name, key in (("before", "before"), ("after", "after"), ("gain", "gain"))
        ]
        lines += [
            "",
            "Trivial policies on the same prompts: "
            + ", ".join(f"{k} {_number(v)}" for k, v in held["trivial"].items())
            + ".",
        ]
    return "\n".join(lines) + "\n"


def write_card(run: str | Path) -> Path:
    """Write the card as adapter/README.md of the run."""
    path = Path(run) / "adapter" / "README.md"
    path.write_text(card(run), "utf-8")
    return path


def _cell(value: Any) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3f}"
