"""Training on rubric rewards with TRL's own trainers: SFT, DPO, GRPO, and what they gained on held-out prompts."""

from importlib import import_module
from typing import Any

# no module has the name of a function: importing it would hide the function
_HOME = {
    "settings": "CONFIGS Settings NAMES build import_unsloth nest places presets renames",
    "config": "read_job reference",
    "policies": "policy card export merge push_to_hub",
    "fast_cpu": "MergedModel packed_logps",
    "reward": "Reward reward_function",
    "rows": "best_answers pairs estimates of_answers",
    "trainers": "grpo_trainer supervised_trainer order",
    "forecasting": "Forecast",
    "run": "train forecast",
    # the room of evaluation: a training's users find its names here, too
    ".evaluation": "Evaluation gain passes failures by_kind comparison messages tiny_model tiny_tokenizer Log health "
    "summary Result Stored stored",
}
_MODULE = {
    name: module for module, names in _HOME.items() for name in names.split()
}
__all__ = list(_MODULE)


def __getattr__(name: str) -> Any:
    """Names load their module at the first use, so that `import kit.training` is cheap."""
    if name not in _MODULE:
        raise AttributeError(f"module 'kit.training' has no attribute {name!r}")
    return getattr(import_module(f".{_MODULE[name]}", __name__), name)
