"""What others can use: adapter, merged model, GGUF, and a model card from the run's record.

A GGUF file is written by the `gguf` package alone: no git, no build, no network. llama.cpp rotates
neighbouring pairs of a head's values, transformers its two halves: the rows of the query and key
weights are put into that order.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any, Literal

from ..errors import KitError, MissingError
from ..settings.read import load, nearest
from ..system import paths
from ..system.device import choose, import_torch
from .models import base, resolve, tokenizer_of, weights
from .rollouts import CHAIN, SETTINGS

FORMS = ("adapter", "merged", "gguf")
RECORD = "record of a training"


def merge(model: str, adapter: str | Path, out: str | Path) -> Path:
    """The model with the adapter added to its weights, as a folder that `from_pretrained` loads.

    The sum is made, and stored, in float32. The folder appears when it is complete, so that a kill
    leaves no half of it behind.
    """
    from peft import PeftModel

    source, out = resolve(model), Path(out)
    plain, _ = base(source, choose("float32"))
    merged = PeftModel.from_pretrained(plain, str(adapter)).merge_and_unload()
    with paths.whole_folder(out) as part:
        merged.save_pretrained(str(part))
        tokenizer_of(source).save_pretrained(str(part))
    return out


def export(run: str | Path, to: str, out: str | Path | None = None, *, kind: Kind = "f16") -> Path:
    """A finished run as "adapter", "merged" (a model folder) or "gguf" (one file for llama.cpp).

    out : default RUN/export/adapter, RUN/export/merged, RUN/export/NAME.gguf. kind : see
    write_gguf.
    """
    run = Path(run)
    if to not in FORMS:
        raise KitError(f"there is no export {to!r}", where="--to", fix=nearest(to, FORMS))
    _one_stage(run)
    record = load(run / SETTINGS, what=RECORD)
    adapter = run / "adapter"
    _readable(adapter)
    name = f"{run.name}.gguf" if to == "gguf" else to
    place = run / "export" / name if out is None else Path(out).expanduser()
    if place.exists():
        raise KitError("there is something already", where=str(place), fix="give another --out")
    if to == "adapter":
        told = card(run)
        with paths.whole_folder(place) as part:
            shutil.copytree(adapter, part)
            (part / "README.md").write_text(told, "utf-8")
        return place
    model = _trained_on(record, run)
    if to == "merged":
        return merge(model, adapter, place)
    with tempfile.TemporaryDirectory(dir=run) as folder:
        return write_gguf(merge(model, adapter, Path(folder) / run.name), place, kind=kind)


def _one_stage(run: Path) -> None:
    """KitError for the folder of a chain: each of its stages is a run."""
    if (run / CHAIN).exists():
        stages = sorted(p.parent.name for p in run.glob(f"*/{SETTINGS}"))
        fix = f"name a stage of it: {', '.join(stages) or 'none has begun'}"
        raise KitError("this is the folder of a chain", where=str(run), fix=fix)


def _trained_on(record: dict[str, Any], run: Path) -> str:
    """The model's name, which in a chain is relative to the run; KitError where other weights lie
    under it now, or none: merged into them the adapter would be another model.
    """
    settings = record["settings"]
    model = settings["model"]
    if (run / model / "config.json").is_file():
        model = str((run / model).resolve())
    held = record.get("set of weights", [])
    if held and weights(model, settings.get("adapter")) != held:
        raise KitError(
            "the weights under the model's name are not those that the run was trained on",
            where=model,
            fix="put them back, or go to the folder where the training was started (its name is "
            "relative to it)",
        )
    return model


def _readable(adapter: Path) -> None:
    """MissingError for an adapter that is not there, or not whole: a kill cut it short."""
    from safetensors import SafetensorError, safe_open

    try:
        load(adapter / "adapter_config.json", what="adapter of the run")
        with safe_open(adapter / "adapter_model.safetensors", framework="np"):
            pass
    except (OSError, SafetensorError, KitError) as e:
        what = f"the run has no whole adapter: {str(e).splitlines()[0]}"
        raise MissingError(
            what, where=str(adapter), fix="train it to the end first: kit train CONFIG --resume"
        ) from None


def card(run: str | Path) -> str:
    """A model card in Markdown from a run's settings.json and metrics.json; every number is from
    the run.
    """
    run = Path(run)
    settings = load(run / SETTINGS, what=RECORD)["settings"]
    metrics = load(run / "metrics.json", what="record of a training that is finished")
    held = metrics.get("heldout") or {}
    metrics["judge_name"] = (metrics.get("judge") or {}).get("name")
    said = held.get(
        "sentence", "No held-out evaluation was made: nothing is claimed about quality."
    )
    control = settings.get("shuffle_rewards")
    if control:
        said += " This is a control: its rewards were dealt out at random."
    settings = {k: v for k, v in settings.items() if v not in (None, [], {}, "")}
    lines = [
        "---",
        "library_name: peft",
        f"base_model: {settings['model']}",
        f"tags: [rubric-rewards, {metrics['stage']}]",
        "---",
        "",
        f"# {settings['model']} after {metrics['stage'].upper()}{', a control' * bool(control)}",
        "",
        said,
        "",
        "## Training",
        "",
        *(f"- {name}: {metrics[k]}" for k, name in SHOWN.items() if metrics.get(k) is not None),
        f"- seconds of training: {metrics['seconds_training']:.0f}",
        "",
        "| setting | value |",
        "|---|---|",
        *(f"| {k} | {_cell(v)} |" for k, v in settings.items()),
        *(_heldout(held) if held else ()),
    ]
    return "\n".join(lines) + "\n"


SHOWN = {  # of metrics.json
    "steps": "steps",
    "engine": "engine",
    "device": "device",
    "dtype": "number format",
    "seed": "seed",
    "judge_name": "judge",
    "composer": "reward",
    "verdicts": "verdicts",
    "verdicts_unknown": "of these unknown",
    "judge_calls": "judge calls",
    "judge_cost": "judge cost in US dollars",
}


def _heldout(held: dict[str, Any]) -> list[str]:
    trivial = ", ".join(f"{k} {_number(v)}" for k, v in held["trivial"].items())
    rows = [(k, *(_number(held[k][x]) for x in ("value", "low", "high"))) for k in GAIN]
    return [
        "",
        "## Held-out reward",
        "",
        "| what | value | 95% interval |",
        "|---|---|---|",
        *(f"| {name} | {value} | {low} to {high} |" for name, value, low, high in rows),
        "",
        f"Trivial policies on the same prompts: {trivial}.",
    ]


GAIN = ("before", "after", "gain")


def _cell(value: Any) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3f}"


def write_card(run: str | Path) -> Path:
    """Write the card as adapter/README.md of the run."""
    path = Path(run) / "adapter" / "README.md"
    path.write_text(card(run), "utf-8")
    return path


Kind = Literal["f32", "f16", "q8_0"]
NORMAL, CONTROL, USER = 1, 3, 4  # token types of a GGUF


def write_gguf(model: str | Path, out: str | Path, *, kind: Kind = "f16") -> Path:
    """The model of a folder (config.json, *.safetensors, tokenizer.json) as a GGUF file.

    kind : how matrices are stored; vectors stay float32. KitError for models and tokenizers that
    this converter does not know: a file that answers otherwise than its model is worse than none.
    """
    try:
        import gguf
    except ImportError:
        raise MissingError("GGUF files need the gguf package", fix="pip install gguf") from None
    folder, out = Path(model), Path(out)
    config = json.loads((folder / "config.json").read_text("utf-8"))
    if config.get("model_type") != "llama" or config.get("attention_bias"):
        raise KitError(
            f"this converter writes Llama-shaped models, not {config.get('model_type')!r}",
            where=str(folder / "config.json"),
            fix="export --to merged, and convert that folder with llama.cpp's own script",
        )
    out.parent.mkdir(parents=True, exist_ok=True)
    with paths.whole(out) as part, paths.naming(out):
        writer = gguf.GGUFWriter(str(part), "llama")
        _shape(writer, config, folder.name)
        _tokenizer(writer, gguf, folder)
        _weights(writer, gguf, folder, config, kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
    return out


def _shape(writer: Any, c: dict[str, Any], name: str) -> None:
    heads = c["num_attention_heads"]
    rope = c.get("rope_parameters") or {}
    if rope.get("rope_type", "default") != "default" or c.get("rope_scaling"):
        raise KitError("scaled rotary positions are not converted", where="config.json")
    _add(
        writer,
        name=name,
        context_length=c["max_position_embeddings"],
        embedding_length=c["hidden_size"],
        block_count=c["num_hidden_layers"],
        feed_forward_length=c["intermediate_size"],
        head_count=heads,
        head_count_kv=c.get("num_key_value_heads") or heads,
        layer_norm_rms_eps=c["rms_norm_eps"],
        rope_dimension_count=c.get("head_dim") or c["hidden_size"] // heads,
        rope_freq_base=float(rope.get("rope_theta") or c.get("rope_theta") or 10000.0),
        vocab_size=c["vocab_size"],
    )


def _add(writer: Any, **fields: Any) -> None:
    for name, value in fields.items():
        getattr(writer, f"add_{name}")(value)


def _tokenizer(writer: Any, gguf: Any, folder: Path) -> None:
    """Tokens, merges, special ids and chat layout."""
    data = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    model = data["model"]
    if model.get("type") != "BPE":
        raise KitError(f"a {model.get('type')} tokenizer is not converted", where=str(folder))
    special = {a["id"]: a for a in data.get("added_tokens", ())}
    tokens = dict(model["vocab"]) | {a["content"]: i for i, a in special.items()}
    by_id = {i: t for t, i in tokens.items()}
    size = json.loads((folder / "config.json").read_text("utf-8"))["vocab_size"]
    names = [by_id.get(i, f"[unused{i}]") for i in range(size)]
    kinds = [_kind(i, special, i in by_id) for i in range(size)]
    merges = [m if isinstance(m, str) else " ".join(m) for m in model.get("merges", ())]
    if not merges:
        raise KitError(
            "the tokenizer has no merges, and llama.cpp reads none without", where=str(folder)
        )
    _add(
        writer,
        tokenizer_model="gpt2",
        tokenizer_pre=_pre(data.get("pre_tokenizer") or {}, folder),
        token_list=names,
        token_types=kinds,
        token_merges=merges,
    )
    found = gguf.SpecialVocab(folder, load_merges=False, n_vocab=size)
    found.add_to_gguf(writer, quiet=True)
    template = folder / "chat_template.jinja"
    if template.is_file() and not found.chat_template:
        writer.add_chat_template(template.read_text("utf-8"))
    writer.add_add_bos_token(False)


def _kind(number: int, special: dict[int, Any], known: bool) -> int:
    if number in special:
        return CONTROL if special[number].get("special") else USER
    return NORMAL if known else CONTROL


def _pre(spec: dict[str, Any], folder: Path) -> str:
    """llama.cpp's name for the way text is cut before the merges."""
    parts = spec.get("pretokenizers") or [spec]
    kinds = [p.get("type") for p in parts]
    if kinds == ["ByteLevel"]:
        return "gpt-2"
    if kinds == ["Digits", "ByteLevel"] and parts[0].get("individual_digits"):
        return "smollm"
    raise KitError(
        f"the pre-tokenizer {kinds} is not converted",
        where=str(folder / "tokenizer.json"),
        fix="export --to merged, and convert that folder with llama.cpp's own script",
    )


def _weights(writer: Any, gguf: Any, folder: Path, c: dict[str, Any], kind: Kind) -> None:
    from safetensors import safe_open

    torch = import_torch()
    types = gguf.GGMLQuantizationType
    wanted = {"f32": types.F32, "f16": types.F16, "q8_0": types.Q8_0}[kind]
    writer.add_file_type(
        {"f32": gguf.LlamaFileType.ALL_F32, "f16": gguf.LlamaFileType.MOSTLY_F16}.get(
            kind, gguf.LlamaFileType.MOSTLY_Q8_0
        )
    )
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, c["num_hidden_layers"])
    heads = c["num_attention_heads"]
    kv = c.get("num_key_value_heads") or heads
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise MissingError("there are no weights in this folder", where=str(folder))
    for path in files:
        with safe_open(path, framework="pt") as f:
            for key in f.keys():  # noqa: SIM118  not a mapping
                value = f.get_tensor(key).to(torch.float32)
                name = names.get_name(key, try_suffixes=(".weight", ".bias"))
                if name is None:
                    raise KitError(f"the weight {key!r} has no place in a GGUF", where=str(path))
                if key.endswith(("q_proj.weight", "k_proj.weight")):
                    value = _pairs(value, heads if "q_proj" in key else kv)
                fits = value.dim() > 1 and (kind != "q8_0" or value.shape[-1] % 32 == 0)
                use = wanted if fits else types.F32
                packed = gguf.quants.quantize(value.contiguous().numpy(), use)
                writer.add_tensor(name, packed, raw_dtype=use)


def _pairs(weight: Any, heads: int) -> Any:
    """Rows (heads * D, H) reordered within each head: 0, D/2, 1, D/2 + 1, ..."""
    rows, width = weight.shape
    halves = weight.reshape(heads, 2, rows // heads // 2, width)
    return halves.swapaxes(1, 2).reshape(rows, width)
