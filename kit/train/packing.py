"""Log-probabilities of a group's answers with its prompt computed once, and no padding.

A group shares its prompt. Instead of one padded row per answer, each group becomes one row: prompt,
answer 1, answer 2, ... Each answer sees the prompt and itself (a block mask), at the positions it
would have alone, so that every token's log-probability is the same number, for a third to a half of
the work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .device import import_torch


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
    prompt_mask, answer_mask = attention_mask[:, :width].bool(), attention_mask[:, width:].bool()
    groups: dict[tuple[int, ...], list[int]] = {}
    for row in range(input_ids.shape[0]):
        if bool(answer_mask[row].any()):
            groups.setdefault(tuple(input_ids[row, :width][prompt_mask[row]].tolist()), []).append(
                row
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
