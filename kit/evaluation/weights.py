"""The weights that a name stands for: a model by name or folder, or the model of a finished training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..judging.local import describe_file
from ..system.device import choose
from .language_models import (
    TEMPLATE_OPTIONS,
    base,
    resolve,
    tokenizer_of,
    with_adapter,
)
from .result import METRICS, Result


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
    adapter: Path | None = None
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
        files: list[str] = []
        for place in (self.source, self.earlier_adapter, self.adapter):
            # A name of the hub has no folder here.
            if place:
                files += map(
                    describe_file, sorted(Path(place).glob("*.safetensors"))
                )
        options = dict(self.template_options)
        return [files or [self.source], self.quantize, options]


def find_weights(name: str | Path) -> Weights:
    """The weights of a model's name or folder, or of the folder of a finished training; of a chain, its last stage."""
    folder = Path(name).expanduser()
    if not (folder / METRICS).is_file():
        return Weights(source=resolve(str(name)))
    run = Result.read(folder)
    last = run.stages[-1] if run.stages else run
    settings = last.settings
    return Weights(
        source=resolve(settings["model"]),
        dtype=settings["dtype"],
        quantize=settings["quantize"],
        earlier_adapter=settings["adapter"],
        adapter=last.folder / "adapter",
        template_options=settings["options"].get(TEMPLATE_OPTIONS) or {},
    )
