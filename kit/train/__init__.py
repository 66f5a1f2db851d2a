"""Training on rubric rewards: SFT, DPO, GRPO; engines, rollout log, evaluation before and after,
export.

Nothing heavy is imported here: torch, transformers, trl, peft and unsloth load when a training
starts.
"""

from ..verb import verb

verb(__name__, "..verbs", "train")
