"""What trl refuses is found before anything is trained: one step with a stage's own options, on the
tiny model and rows made up.

trl looks at some options only when it makes the trainer, and at some when it computes the first
loss: hours later, in the last stage of a chain.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import KitError
from ..system.device import choose
from . import models, world
from .config import GRPOSettings, Settings

SAID = {"prompt": "Say yes.", "response": "yes", "chosen": "yes", "rejected": "no"}
_TAKEN: set[str] = set()  # a chain asks before its first stage, and again at each one's turn


def rehearse(settings: Settings, trainer: Callable[..., Any]) -> None:
    """KitError with trl's own words where it refuses the options of these settings.

    Only entries of `options` can be refused there: the kit's own settings are checked by
    themselves. trainer : makes the stage's from settings, model and folder. With unsloth or
    several processes the first step itself must tell.
    """
    engine, _ = models.pick_engine(settings.engine)
    if not settings.options or engine != "transformers" or world.size() > 1:
        return
    small: dict[str, Any] = dict(
        model=models.TINY,
        adapter=None,
        quantize="none",
        lora_targets="all-linear",
        lora_rank=1,
        steps=1,
        warmup=0,
        save_every=0,
        report_to=(),
    )
    if isinstance(settings, GRPOSettings):
        small.update(max_answer_tokens=2, use_vllm=False)
    else:
        small.update(max_tokens=1024)  # what is made up must fit, in any chat template
    tiny = dataclasses.replace(settings, **small)
    tokenizer = models.tokenizer_of(models.resolve(settings.model))
    tried = repr((tiny, len(tokenizer), tokenizer.special_tokens_map, tokenizer.chat_template))
    if tried in _TAKEN:
        return
    loaded = models.Loaded(
        model=models.adapt(models.tiny_model(len(tokenizer)), tiny),
        tokenizer=tokenizer,
        engine=engine,
        why="a rehearsal",
        device=choose("float32"),
    )
    try:
        with (
            tempfile.TemporaryDirectory() as out,
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            trainer(tiny, loaded, Path(out)).train()
    except KitError:
        raise
    except Exception as e:  # whatever trl raises
        first = (str(e).splitlines() or [type(e).__name__])[0]
        raise KitError(
            f"trl refuses the options of the stage {settings.stage}: {first}",
            where="setting options",
            fix="correct or remove the entry",
        ) from e
    _TAKEN.add(tried)
