"""One training with unsloth, in a process of its own: unsloth must be imported first, and changes other modules.

python unsloth_run.py MODE FOLDER OUT SETTINGS. MODE "plain" is unsloth on a CPU. MODE "patched" has the trainers of a
GPU, too, which unsloth writes when its Llama module loads.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys

import kit.training as training

mode, model, out, text = sys.argv[1:]
values = json.loads(text)
stop, config = values.pop("stop", None), values.pop("config", None)
if mode == "patched":
    training.import_unsloth()
    importlib.import_module("unsloth.models.llama")
# TRL reads options: in the plain mode the kit must import unsloth before
settings = {"engine": "unsloth", "options": {"lr_scheduler_type": "constant"}, **values}


def on_step(row):
    print("step", row["step"], "rate", row["learning_rate"], flush=True)
    if row["step"] == stop:
        os.kill(os.getpid(), signal.SIGKILL)


if config:
    result = training.train(config, settings, profile="t4", model=model, out=out, on_step=on_step)
else:
    from training_cases import TINY, Judge, demonstrations, preferences, tasks

    stage = settings.setdefault("stage", "grpo")
    source = {"grpo": lambda: tasks(check=None), "sft": demonstrations, "dpo": preferences}[stage]()
    held_out = None if stage == "grpo" else tasks()[4:]
    settings = {**TINY, **settings, "model": model}
    result = training.train(
        source,
        settings,
        judge=Judge(),
        heldout=held_out,
        eval_temperature=0,
        out=out,
        on_step=on_step,
    )

trl = importlib.import_module("trl")
for path in sorted(result.folder.glob("checkpoints/checkpoint-*/training_args.bin"))[:1]:
    # only here are the classes that unsloth made
    args = importlib.import_module("torch").load(path, weights_only=False)
    print("optimiser", args.optim, "decay", args.weight_decay, "warm-up", args.warmup_steps)
print("trainers", [c.__name__ for c in trl.GRPOTrainer.__mro__], result.metrics["engine"])
