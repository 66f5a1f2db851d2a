"""What TRL's trainers call on the way: rows of steps.jsonl, evaluations, and the adapter of a save point."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..evaluation import STEPS, Log
from ..system.progress import bar


def callback(
    log: Log, settings: Any, evaluate: Callable[[str], Any] | None = None
) -> Any:
    """TRL's view of the log: a row for each step, a progress bar, and evaluations on the way."""
    from transformers import TrainerCallback

    class Steps(TrainerCallback):
        def on_train_begin(self, args, state, control, **_):
            self.bar = bar(
                total=args.max_steps,
                initial=state.global_step,
                desc=settings.stage,
                disable=not state.is_world_process_zero,
            )

        def on_train_end(self, args, state, control, **_):
            self.bar.close()

        def on_step_begin(self, args, state, control, **_):
            self.start = time.perf_counter()

        def on_log(self, args, state, control, logs=None, **_):
            # the last log of a run has totals and no loss
            if not logs or "loss" not in logs or not state.is_world_process_zero:
                return
            seconds = {"seconds": time.perf_counter() - self.start}
            row = {**logs, **log.latest, "step": state.global_step, **seconds}
            log.write(STEPS, [row])
            self.bar.update()
            log.on_step(row)

        def on_step_end(self, args, state, control, **_):
            # after the last step the run evaluates anyway
            every, step = settings.eval_every, state.global_step
            if evaluate and every and step % every == 0 and step < args.max_steps:
                evaluate(f"step{step}")

    return Steps()


def adapter_callback(save_point: Path) -> Any:
    """A callback that loads the trained adapter of a save point, after transformers loaded the rest."""
    from peft import set_peft_model_state_dict
    from safetensors.torch import load_file
    from transformers import TrainerCallback

    class LoadAdapter(TrainerCallback):
        def on_train_begin(self, args, state, control, model=None, **_):
            weights = load_file(str(save_point / "adapter_model.safetensors"))
            set_peft_model_state_dict(model, weights, adapter_name="default")

    return LoadAdapter()
