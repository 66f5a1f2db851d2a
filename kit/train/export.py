"""What others can use: adapter, merged model, GGUF, and a model card from the run's record."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any, Literal

from ..errors import KitError, MissingError
from ..settings.read import nearest
from . import gguf_file
from .device import choose
from .gguf_file import Kind
from .models import base, resolve, tokenizer_of

FORMS = ("adapter", "merged", "gguf")


def merge(
    model: str,
    adapter: str | Path,
    out: str | Path,
    *,
    dtype: Literal["float32", "auto"] = "float32",
) -> Path:
    """The model with the adapter added to its weights, as a folder that `from_pretrained` loads.

    The sum is made in float32; dtype : of the stored weights ("auto": the one this machine computes
    in). The folder appears when it is complete, so that a kill leaves no half of it behind.
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


def export(run: str | Path, to: str, out: str | Path | None = None, *, kind: Kind = "f16") -> Path:
    """A finished run as "adapter", "merged" (a model folder) or "gguf" (one file for llama.cpp).

    out : default RUN/export/adapter, RUN/export/merged, RUN/export/NAME.gguf. kind : see
    gguf_file.write.
    """
    run = Path(run)
    if to not in FORMS:
        raise KitError(f"there is no export {to!r}", where="--to", fix=nearest(to, FORMS))
    model = _settings(run)["model"]
    adapter = run / "adapter"
    if not (adapter / "adapter_config.json").is_file():
        raise MissingError(
            "the run has no adapter yet", where=str(adapter), fix="train it to the end first"
        )
    name = f"{run.name}.gguf" if to == "gguf" else to
    place = run / "export" / name if out is None else Path(out).expanduser()
    if place.exists():
        raise KitError("there is something already", where=str(place), fix="give another --out")
    if to == "adapter":
        return Path(shutil.copytree(write_card(run).parent, place))
    if to == "merged":
        return merge(model, adapter, place)
    with tempfile.TemporaryDirectory(dir=run) as folder:
        whole = merge(model, adapter, Path(folder) / run.name)
        return gguf_file.write(whole, place, kind=kind)


def _settings(run: Path) -> dict[str, Any]:
    try:
        return json.loads((run / "settings.json").read_text("utf-8"))["settings"]
    except OSError:
        raise MissingError(
            "this is no folder of a training", where=str(run), fix="give the run's folder"
        ) from None


def card(run: str | Path) -> str:
    """A model card in Markdown from a run's settings.json and metrics.json; every number is from
    the run.
    """
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
            f"| {name} | {_number(held[key]['value'])} | {_number(held[key]['low'])} to "
            f"{_number(held[key]['high'])} |"
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
