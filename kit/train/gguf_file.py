"""A merged Llama-shaped model as one GGUF file, by the `gguf` package alone: no git, no build, no
network.

llama.cpp rotates neighbouring pairs of a head's values, transformers its two halves: the rows of
the query and key weights are put into that order.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from ..errors import KitError, MissingError
from .device import import_torch

Kind = Literal["f32", "f16", "q8_0"]
NORMAL, CONTROL, USER = 1, 3, 4  # token types of a GGUF


def write(model: str | Path, out: str | Path, *, kind: Kind = "f16") -> Path:
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
    partial = out.with_name(out.name + ".partial")
    writer = gguf.GGUFWriter(str(partial), "llama")
    _shape(writer, config, folder.name)
    _tokenizer(writer, gguf, folder)
    _weights(writer, gguf, folder, config, kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    partial.rename(out)
    return out


def _shape(writer: Any, c: dict[str, Any], name: str) -> None:
    heads = c["num_attention_heads"]
    rope = c.get("rope_parameters") or {}
    if rope.get("rope_type", "default") != "default" or c.get("rope_scaling"):
        raise KitError("scaled rotary positions are not converted", where="config.json")
    writer.add_name(name)
    writer.add_context_length(c["max_position_embeddings"])
    writer.add_embedding_length(c["hidden_size"])
    writer.add_block_count(c["num_hidden_layers"])
    writer.add_feed_forward_length(c["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(c.get("num_key_value_heads") or heads)
    writer.add_layer_norm_rms_eps(c["rms_norm_eps"])
    writer.add_rope_dimension_count(c.get("head_dim") or c["hidden_size"] // heads)
    writer.add_rope_freq_base(float(rope.get("rope_theta") or c.get("rope_theta") or 10000.0))
    writer.add_vocab_size(c["vocab_size"])


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
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(_pre(data.get("pre_tokenizer") or {}, folder))
    writer.add_token_list(names)
    writer.add_token_types(kinds)
    merges = [m if isinstance(m, str) else " ".join(m) for m in model.get("merges", ())]
    if not merges:
        raise KitError(
            "the tokenizer has no merges, and llama.cpp reads none without", where=str(folder)
        )
    writer.add_token_merges(merges)
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
