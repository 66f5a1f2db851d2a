"""Sentence vectors from all-MiniLM-L6-v2, when they are asked for."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataError, MissingError

Embed = Callable[[Sequence[str]], np.ndarray]


def embedder(similarity: str = "words") -> Embed | None:
    """None for "words"; for "minilm" a function texts -> (n, 384) unit vectors. Never fetches, and
    never falls back.

    MissingError where the model, torch or transformers is not here; DataError for another name.
    """
    from ..data.models import minilm_cached

    if similarity == "words":
        return None
    if similarity != "minilm":
        raise DataError(
            f"there is no similarity {similarity!r}", where="similarity", fix="use words or minilm"
        )
    folder = minilm_cached()
    if folder is None or not all(importlib.util.find_spec(m) for m in ("torch", "transformers")):
        raise MissingError(
            "the sentence model is not in the cache, or torch or transformers is not installed",
            where='similarity "minilm"',
            fix="run `rubric-kit fetch` first, or compare by words",
        )
    return lambda texts: embed(texts, folder)


@lru_cache(maxsize=1)
def _model(folder: Path) -> tuple[Any, Any]:
    from transformers import AutoModel, AutoTokenizer

    return AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()


def embed(texts: Sequence[str], folder: Path, *, batch: int = 64) -> np.ndarray:
    """Unit vectors (n, 384) of texts: mean over tokens (at most 128 each); short and long texts are
    batched apart."""
    import torch

    from ..system.progress import bar

    tokenizer, model = _model(folder)
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    out = np.zeros((len(texts), 384), dtype=np.float32)
    for start in bar(range(0, len(order), batch), desc="embed", disable=len(order) < 4 * batch):
        part = order[start : start + batch]
        clean = [texts[i].encode("utf-8", "replace").decode() for i in part]
        with torch.inference_mode():
            fed = tokenizer(
                clean, padding=True, truncation=True, max_length=128, return_tensors="pt"
            )
            states = model(**fed).last_hidden_state
            mask = fed["attention_mask"].unsqueeze(-1)
            mean = (states * mask).sum(1) / mask.sum(1).clamp(min=1)
            out[part] = torch.nn.functional.normalize(mean, dim=1).numpy()
    return out
