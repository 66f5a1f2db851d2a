"""Groups whose answers all earned the same are sampled anew, a bounded number of times, instead of
being dropped.

Such a group has no gradient. As in the dynamic sampling of DAPO (Yu et al. 2025, section 3.2), but
for the same prompts: the batch keeps its size and its order. A group that stays alike keeps its
last answers; one whose rewards are unknown is left alone. Answers that were put aside stand in
discarded.jsonl: they were sampled, judged and paid for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import KitError
from ..system.device import import_torch
from . import rollouts, world
from .config import GRPOSettings

DISCARDED = "discarded.jsonl"


def check(settings: GRPOSettings) -> None:
    """KitError where groups cannot be exchanged one by one."""
    reason = None
    if settings.advantage == "batch":
        reason = "advantage: batch divides by the deviation of the whole batch"
    elif world.size() > 1:
        reason = "several processes train together"
    if settings.resample and reason:
        raise KitError(
            f"resample is {settings.resample}, and {reason}",
            where="setting resample",
            fix="say resample: 0, or advantage: std in one process",
        )


class Resampling:
    """Stands before the kit's hooks in the order of base classes; without `resample` it does
    nothing.
    """

    kit_try = 0  # the sampling that is going on: 0 the first

    def _kit_seed(self, number: int) -> int:
        return super()._kit_seed(number) + self.kit_try

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        score = super()._generate_and_score_completions
        if not (self.kit.resample and self.model.training):
            return score(inputs)
        self.kit_kept = None
        output, kept = score(inputs), self.kit_kept
        try:
            for attempt in range(1, self.kit.resample + 1):
                rows = self._kit_alike(kept)
                if not rows or kept is None:
                    break
                self.kit_try = attempt
                fresh = score([inputs[i] for i in rows])
                paid = self.kit_kept
                self._kit_discard([kept[i] for i in rows])
                splice(output, fresh, rows, self.processing_class.pad_token_id)
                for i, row in zip(rows, paid, strict=True):
                    kept[i] = row
        finally:
            self.kit_try = 0
        self._kit_size(output)
        self._kit_put(kept)
        return output

    def _kit_write(self, advantages: Sequence[float]) -> None:
        """Keep what was graded until it is known what is trained on."""
        if not self.kit.resample:
            super()._kit_write(advantages)
            return
        self.kit_kept = list(zip(self.kit_pending, advantages, strict=True))
        self.kit_pending = []

    def _kit_alike(self, kept: Sequence[Any] | None) -> list[int]:
        """The rows of the groups whose rewards are known and without any advantage."""
        size, out = self.num_generations, []
        for at in range(0, len(kept or ()), size):
            known = [a for (_, g, *_), a in kept[at : at + size] if g.score is not None]
            if known and not any(abs(a) > 1e-9 for a in known):
                out += range(at, at + size)
        return out

    def _kit_discard(self, rows: Sequence[Any]) -> None:
        """Write answers that are not trained on."""
        log, on_batch = self.kit_log, self.kit_on_batch
        self.kit_log, self.kit_on_batch = rollouts.Log(log.path.with_name(DISCARDED)), None
        self._kit_put(rows)
        self.kit_log, self.kit_on_batch = log, on_batch

    def _kit_put(self, rows: Sequence[Any] | None) -> None:
        if rows:
            self.kit_pending = [row[0] for row in rows]
            super()._kit_write([row[1] for row in rows])


def splice(output: dict[str, Any], fresh: Mapping[str, Any], rows: Sequence[int], pad: int) -> None:
    """Put the rows of `fresh` (R, ...) at `rows` of `output` (B, ...), in place; widths grow where
    they must.

    Prompts are padded on the left, all that belongs to answers on the right.
    """
    torch, n = import_torch(), output["advantages"].shape[0]
    at = torch.tensor(list(rows), device=output["advantages"].device)
    for key, value in output.items():
        if not (torch.is_tensor(value) and value.dim() and value.shape[0] == n):
            continue
        new = fresh[key]
        if value.dim() == 2:
            width = max(value.shape[1], new.shape[1])
            left = key.startswith("prompt")
            fill = pad if key.endswith("ids") else 0
            value, new = (_wide(v, width, left, fill) for v in (value, new))
        output[key] = value.index_copy(0, at, new.to(value.dtype))


def _wide(value: Any, width: int, left: bool, fill: float) -> Any:
    """(B, W) padded to (B, width)."""
    more = width - value.shape[1]
    pad = (more, 0) if left else (0, more)
    return import_torch().nn.functional.pad(value, pad, value=fill)
