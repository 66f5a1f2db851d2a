"""Log-probabilities of a group's answers with its prompt computed once, and no padding.

A group shares its prompt. Instead of one padded row per answer, each group becomes one row: prompt,
answer 1, answer 2, ... Each answer sees the prompt and itself (a block mask), at the positions it
would have alone, so that every token's log-probability is the same number, for a third to a half of
the work. SFT and DPO rows share their system text and the head of the question in the same way
(`pack_rows`; CPU, Llama-shaped models), and only answer tokens get logits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..records import grouped
from ..system.device import import_torch


@dataclass(frozen=True, kw_only=True)
class Packed:
    """One group in one row.

    ids, positions : (1, L); mask : (1, 1, L, L), True = may look; predict : (N,) places whose
    logits predict the answers' tokens; labels : (N,); rows, columns : (N,) where each label sits in
    the (B, C) completions.
    """

    ids: Any
    positions: Any
    mask: Any
    predict: Any
    labels: Any
    rows: Any
    columns: Any


def pack(input_ids: Any, attention_mask: Any, completion: int) -> list[Packed]:
    """Rows (B, P + C) of left-padded prompts and right-padded answers of width C = `completion`, as
    one Packed per prompt.

    Rows whose answer is empty (masked as a whole) are left out: nothing of them is predicted.
    """
    width = input_ids.shape[1] - completion
    prompt_mask = attention_mask[:, :width].bool()
    answer_mask = attention_mask[:, width:].bool()
    groups = grouped(
        (tuple(input_ids[row, :width][prompt_mask[row]].tolist()), row)
        for row in range(input_ids.shape[0])
        if bool(answer_mask[row].any())
    )
    return [
        _one(prompt, rows, input_ids[:, width:], answer_mask) for prompt, rows in groups.items()
    ]


def _one(prompt: tuple[int, ...], rows: list[int], answers: Any, mask: Any) -> Packed:
    torch = import_torch()
    lengths = [int(mask[r].sum()) for r in rows]
    tails = [answers[r, :k] for r, k in zip(rows, lengths, strict=True)]
    return together(torch.tensor(prompt), tails, rows, [torch.arange(k) for k in lengths])


def together(
    head: Any, tails: Sequence[Any], rows: Sequence[int], columns: Sequence[Any], asked: Any = None
) -> Packed:
    """Rows of a common head (P,) and tails of their own (n,) as one; each sees the head and itself.

    rows, columns : of each tail's tokens; asked : (sum of n,), the tokens whose log-probability is
    wanted (default: all).
    """
    torch, p = import_torch(), len(head)
    lengths = [len(t) for t in tails]
    owner = torch.repeat_interleave(torch.arange(len(tails)), torch.tensor(lengths))
    place = torch.cat([torch.arange(k) for k in lengths])
    look = torch.ones(p + len(owner), p + len(owner), dtype=torch.bool).tril_()
    look[p:, p:] &= owner[:, None] == owner[None]
    here = torch.arange(len(owner)) if asked is None else asked.nonzero()[:, 0]
    return Packed(
        ids=torch.cat([head, *tails])[None],
        positions=torch.cat([torch.arange(p), p + place])[None],
        mask=look[None, None],
        predict=torch.where(place[here] == 0, p - 1, p + here - 1),
        labels=torch.cat(list(tails))[here],
        rows=torch.tensor(rows)[owner][here],
        columns=torch.cat(list(columns))[here],
    )


def spread(
    model: Any,
    input_ids: Any,
    attention_mask: Any,
    completion: int,
    *,
    through: Callable[[Sequence[Packed]], tuple[Any, Any]],
) -> tuple[Any, Any]:
    """What `through` gives for the packed answers' tokens, two (N,), at their places in (B, C); 0
    where masked.
    """
    torch = import_torch()
    groups = pack(input_ids, attention_mask, completion)
    blank = torch.zeros(input_ids.shape[0], completion, device=input_ids.device)
    if not groups:  # 0, in a way that keeps backward() possible
        nothing = sum((p.sum() for p in model.parameters() if p.requires_grad), torch.zeros(()))
        return blank + nothing * 0.0, blank
    at = (torch.cat([g.rows for g in groups]), torch.cat([g.columns for g in groups]))
    values, entropies = through(groups)
    blank = blank.to(values.dtype)
    return blank.index_put(at, values), blank.index_put(at, entropies.to(values.dtype))


MOST = 1536  # tokens from which attention across the packed row costs more than padding does
SAVES = 0.8  # packed where it has at most this share of the padded tokens


def pack_rows(ids: Any, mask: Any, wanted: Any) -> Packed | None:
    """Rows (B, W) as one; wanted : (B, W), True where the token's log-probability is asked for.
    None where that saves no work: without a long common start or much padding, or too long.

    rows, columns of the result say where in (B, W) each of the N wanted tokens stands.
    """
    if not bool(wanted.any(-1).all()) or bool(wanted[:, 0].any()):
        return None
    lines = [ids[i][mask[i].bool()] for i in range(len(ids))]
    asked = [wanted[i][mask[i].bool()] for i in range(len(ids))]
    places = [mask[i].bool().nonzero()[:, 0] for i in range(len(ids))]
    p = _shared(lines, asked)
    total = p + sum(len(line) - p for line in lines)
    if p == 0 or total > min(MOST, SAVES * ids.numel()):
        return None
    return together(
        lines[0][:p],
        [line[p:] for line in lines],
        range(len(lines)),
        [at[p:] for at in places],
        import_torch().cat([a[p:] for a in asked]),
    )


def _shared(lines: list[Any], asked: list[Any]) -> int:
    """Tokens that all rows begin with, at least one left in each and none of them asked for."""
    room = min(int(a.nonzero()[0, 0]) if bool(a.any()) else len(a) - 1 for a in asked)
    heads = import_torch().stack([line[:room] for line in lines])  # (B, room)
    return int((heads == heads[:1]).all(0).cumprod(0).sum())


def logps(model: Any, g: Packed, shape: Sequence[int]) -> tuple[Any, Any]:
    """Log-probabilities and entropies of the wanted tokens, in (B, W); 0 elsewhere."""
    torch = import_torch()
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
    blank = torch.zeros(shape)
    at = (g.rows, g.columns)
    found = all_logps.gather(-1, g.labels[:, None])[:, 0]
    return blank.index_put(at, found), blank.index_put(at, entropy)


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
        fits = self.kit_packs and not return_outputs and mask is not None
        packed = pack_rows(ids, mask, wanted) if fits else None
        if packed is None:
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        found, entropy = logps(model, packed, ids.shape)
        self._metrics["train"]["entropy"].append(float(entropy.sum() / wanted.sum()))
        return -found.sum() / (wanted.sum() if num_items_in_batch is None else num_items_in_batch)


MEANS = ("rewards/", "logps/")  # over the pairs of a micro-batch


class DPOHooks:
    """trl's DPOTrainer, whose path without whole logits asks here for log-probabilities."""

    kit_packs = False

    def kit_setup(self) -> None:
        """Take the path that needs no logits of the whole batch."""
        self.kit_packs = self.use_liger_kernel = True

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """trl's loss; no kernel of the other library is involved.

        The trainer weighs the micro-batches of a step alike; the last one of an epoch may have
        fewer pairs, and each of these would count for more.
        """
        if self.kit_packs:
            loss = self._compute_loss(model, inputs, return_outputs)
        else:
            loss = super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        if return_outputs:
            return loss
        share = len(inputs["input_ids"]) * len(self.kit_rows) / sum(self.kit_rows)
        for name, values in self._metrics["train"].items():
            if name.startswith(MEANS):
                values[-1] *= share
        return loss * share

    def get_batch_samples(self, *args: Any) -> Any:
        """The micro-batches of a step; how many rows each has is kept."""
        batches, items = super().get_batch_samples(*args)
        self.kit_rows = [len(b["input_ids"]) for b in batches]
        return batches, items

    def _get_per_token_logps_and_entropies(
        self, model: Any, model_kwargs: Any, input_ids: Any, completion_mask: Any
    ) -> Any:
        packed = pack_rows(input_ids, model_kwargs["attention_mask"], completion_mask.bool())
        if packed is None:
            return super()._get_per_token_logps_and_entropies(
                model, model_kwargs, input_ids, completion_mask
            )
        found, entropy = logps(model, packed, input_ids.shape)
        return found[:, 1:], entropy[:, 1:], None
