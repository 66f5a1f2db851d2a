"""SFT and DPO rows in one row: what they share at their start is computed once, and there is no
padding.

Short tasks share their system text and the head of the question. Each row sees that head and itself
at the positions that it would have alone, and only answer tokens get logits: the same loss for half
of the work (CPU, Llama-shaped models).
"""

from __future__ import annotations

from typing import Any

from .device import import_torch
from .packing import Packed, together

MOST = 1536  # tokens from which attention across the packed row costs more than padding does
SAVES = 0.8  # packed where it has at most this share of the padded tokens


def pack(ids: Any, mask: Any, wanted: Any) -> Packed:
    """Rows (B, W) as one; wanted : (B, W), True where the token's log-probability is asked for.

    rows, columns of the result say where in (B, W) each of the N wanted tokens stands.
    """
    torch = import_torch()
    lines = [ids[i][mask[i].bool()] for i in range(len(ids))]
    asked = [wanted[i][mask[i].bool()] for i in range(len(ids))]
    places = [mask[i].bool().nonzero()[:, 0] for i in range(len(ids))]
    p = _shared(lines, asked)
    return together(
        lines[0][:p],
        [line[p:] for line in lines],
        range(len(lines)),
        [at[p:] for at in places],
        torch.cat([a[p:] for a in asked]),
    )


def _shared(lines: list[Any], asked: list[Any]) -> int:
    """Tokens that all rows begin with, at least one left in each and none of them asked for."""
    room = min(int(a.nonzero()[0, 0]) if bool(a.any()) else len(a) - 1 for a in asked)
    heads = import_torch().stack([line[:room] for line in lines])  # (B, room)
    same = (heads == heads[:1]).all(0)
    return int(same.cumprod(0).sum())


def logps(model: Any, ids: Any, mask: Any, wanted: Any) -> tuple[Any, Any]:
    """Log-probabilities and entropies (B, W) of the wanted tokens, 0 elsewhere."""
    torch = import_torch()
    g = pack(ids, mask, wanted)
    logits = model(
        input_ids=g.ids,
        attention_mask=g.mask,
        position_ids=g.positions,
        logits_to_keep=g.predict,
        use_cache=False,
    ).logits[0]
    all_logps = logits.float().log_softmax(-1)  # (N, V)
    with torch.no_grad():
        entropy = -(all_logps.exp() * all_logps).sum(-1)
    blank, at = torch.zeros(ids.shape), (g.rows, g.columns)
    found = all_logps.gather(-1, g.labels[:, None])[:, 0]
    return blank.index_put(at, found), blank.index_put(at, entropy)


def worth(ids: Any, mask: Any, wanted: Any) -> bool:
    """True where packing saves work: rows with a long common start, or much padding, and not too
    long.
    """
    if not bool(wanted.any(-1).all()) or bool(wanted[:, 0].any()):
        return False
    lines = [ids[i][mask[i].bool()] for i in range(len(ids))]
    asked = [wanted[i][mask[i].bool()] for i in range(len(ids))]
    p = _shared(lines, asked)
    total = p + sum(len(line) - p for line in lines)
    return p > 0 and total <= min(MOST, SAVES * ids.numel())


class SFTHooks:
    """trl's SFTTrainer with packed rows where they fit (`kit_packs`, set after it was made)."""

    kit_packs = False

    def kit_setup(self) -> None:
        """The model fits: pack."""
        self.kit_packs = True

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """Mean over the batch's answer tokens of -log p, as trl's."""
        ids, mask = inputs["input_ids"], inputs.get("attention_mask")
        wanted = inputs["labels"] != -100
        if not self.kit_packs or return_outputs or mask is None or not worth(ids, mask, wanted):
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        found, entropy = logps(model, ids, mask, wanted)
        self._metrics["train"]["entropy"].append(float(entropy.sum() / wanted.sum()))
        return -found.sum() / (wanted.sum() if num_items_in_batch is None else num_items_in_batch)


class DPOHooks:
    """trl's DPOTrainer, whose path without whole logits asks here for log-probabilities."""

    kit_packs = False

    def kit_setup(self) -> None:
        """Take the path that needs no logits of the whole batch."""
        self.kit_packs = self.use_liger_kernel = True

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """trl's loss; no kernel of the other library is involved."""
        if not self.kit_packs:
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        return self._compute_loss(model, inputs, return_outputs)

    def _get_per_token_logps_and_entropies(
        self, model: Any, model_kwargs: Any, input_ids: Any, completion_mask: Any
    ) -> Any:
        wanted, mask = completion_mask.bool(), model_kwargs["attention_mask"]
        if not worth(input_ids, mask, wanted):
            return super()._get_per_token_logps_and_entropies(
                model, model_kwargs, input_ids, completion_mask
            )
        found, entropy = logps(model, input_ids, mask, wanted)
        return found[:, 1:], entropy[:, 1:], None
