"""Sampling answers on a CPU: one prefill per prompt, adapters merged, finished answers dropped, the
same distribution.

The plain path (`model.generate`) spends its time in small matrix products, in a slow multinomial
draw, and in padding finished rows. Here, for Llama-shaped models (`engine`): a token is drawn by
inverting the cumulative distribution with one uniform number (exact for the full softmax, summed in
float64); rows that ended leave the batch. Other models fall back to `model.generate`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..system.device import import_torch
from .engine import Engine

BLOCK = 256  # places of the vocabulary that a draw sums up at once
TOGETHER = 8  # prompts that go through the model at once


@dataclass(frozen=True, kw_only=True)
class Sampled:
    """Answers as token ids (the end token included when reached), their log-probabilities, and
    which were cut off.

    logprobs : under temperature 1 / `temperature` scaled logits, as the trainer computes them.
    """

    ids: list[list[int]]
    logprobs: list[list[float]]
    truncated: list[bool]


def sample(
    engine: Engine,
    prompts: Sequence[Sequence[int]],
    *,
    max_new_tokens: int,
    eos_ids: Sequence[int],
    temperature: float = 1.0,
    top_p: float = 1.0,
    top_k: int = 0,
    generator: Any = None,
) -> Sampled:
    """One answer per prompt; equal prompts share one prefill. temperature 0 = greedy.

    Random numbers come from `generator`, or from torch's global one (which checkpoints save and
    restore).
    """
    torch = import_torch()
    with torch.no_grad():
        state = _Batch(engine, prompts, max_new_tokens)
        ids: list[list[int]] = [[] for _ in prompts]
        logprobs: list[list[float]] = [[] for _ in prompts]
        ends = torch.tensor(list(eos_ids))
        for t in range(max_new_tokens):
            tokens, logp = draw(
                engine.logits(state.hidden),
                temperature=temperature,
                top_p=top_p,
                top_k=top_k,
                generator=generator,
            )
            for row, token, lp in zip(state.rows, tokens.tolist(), logp.tolist(), strict=True):
                if not state.done[row]:
                    ids[row].append(token)
                    logprobs[row].append(lp)
            for row, end in zip(state.rows, torch.isin(tokens, ends).tolist(), strict=True):
                state.done[row] = state.done[row] or end
            if all(state.done) or t == max_new_tokens - 1:
                break
            tokens = state.compact(tokens)
            state.step(tokens, t)
    return Sampled(ids=ids, logprobs=logprobs, truncated=[not d for d in state.done])


def draw(
    logits: Any, *, temperature: float, top_p: float = 1.0, top_k: int = 0, generator: Any = None
) -> tuple[Any, Any]:
    """Tokens (B,) drawn from softmax(logits / temperature), and their log-probabilities before any
    cut by top_p or top_k.
    """
    torch = import_torch()
    if temperature == 0:
        tokens = logits.argmax(-1)
        return tokens, logits.log_softmax(-1).gather(-1, tokens[:, None])[:, 0]
    scaled = logits / temperature if temperature != 1.0 else logits
    full = (scaled - scaled.amax(-1, keepdim=True)).exp_()  # (B, V), not normalised
    mass = full.sum(-1)
    p = _cut(torch, full / mass[:, None], top_p, top_k) if top_p < 1.0 or top_k else full
    tokens = _invert(torch, p, generator)
    return tokens, (full.gather(-1, tokens[:, None])[:, 0] / mass).clamp_min(1e-45).log()


def _invert(torch: Any, p: Any, generator: Any) -> Any:
    """Tokens (B,) at a uniform place of the cumulative sum of p (B, V): first its block, then the
    place inside.
    """
    rows, width = p.shape
    p = torch.nn.functional.pad(p, (0, -width % BLOCK)).view(rows, -1, BLOCK)
    blocks = p.sum(-1).cumsum(-1, dtype=torch.float64)  # (B, V / BLOCK)
    u = torch.rand(rows, 1, dtype=torch.float64, generator=generator) * blocks[:, -1:]
    block = torch.searchsorted(blocks, u, right=True).clamp_(max=blocks.shape[1] - 1)
    inside = p[torch.arange(rows), block[:, 0]].cumsum(-1, dtype=torch.float64)  # (B, BLOCK)
    before = torch.nn.functional.pad(blocks, (1, 0)).gather(-1, block)
    last = (inside < inside[:, -1:]).sum(-1, keepdim=True)  # the last place that has any weight
    place = torch.searchsorted(inside, u - before, right=True).minimum(last)
    return (block * BLOCK + place)[:, 0].clamp_(max=width - 1)


class _Batch:
    """Key-value cache and hidden states of the answers that still run."""

    def __init__(self, engine: Engine, prompts: Sequence[Sequence[int]], room: int):
        torch = engine.torch
        self.engine, self.torch = engine, torch
        unique: dict[tuple[int, ...], int] = {}
        self.which = torch.tensor([unique.setdefault(tuple(p), len(unique)) for p in prompts])
        lengths = torch.tensor([len(p) for p in unique])
        self.start = int(lengths.max())
        layers = len(engine.core.layers)
        count = len(prompts)
        dtype = engine.dtype
        shape = (count, engine.kv, self.start + room, engine.dim)
        self.keys = [torch.zeros(shape, dtype=dtype) for _ in range(layers)]
        self.values = [torch.zeros(shape, dtype=dtype) for _ in range(layers)]
        hidden = torch.empty(len(unique), engine.config.hidden_size, dtype=dtype)
        for at in range(0, len(unique), TOGETHER):
            some = list(unique)[at : at + TOGETHER]
            for j, (keys, values, last) in enumerate(engine.prefill(some), at):
                mine = (self.which == j).nonzero()[:, 0]
                hidden[j] = last
                for i in range(layers):
                    self.keys[i][mine, :, : keys[i].shape[1]] = keys[i]
                    self.values[i][mine, :, : keys[i].shape[1]] = values[i]
        self.hidden = hidden[self.which]
        self.length = lengths[self.which]
        self.rows = list(range(count))
        self.done = [False] * count

    def compact(self, tokens: Any) -> Any:
        """Drop the rows that ended, when they are a quarter of the batch or more; gives the tokens
        of the rows kept.
        """
        keep = [j for j, row in enumerate(self.rows) if not self.done[row]]
        if len(keep) > 0.75 * len(self.rows):
            return tokens
        at = self.torch.tensor(keep)
        self.keys, self.values = [k[at] for k in self.keys], [v[at] for v in self.values]
        self.length, self.rows = self.length[at], [self.rows[j] for j in keep]
        return tokens[at]

    def step(self, tokens: Any, t: int) -> None:
        """Run the new tokens (B,) through the model and store their keys and values at place start
        + t.
        """
        torch, e = self.torch, self.engine
        place, width, b = self.start + t, self.start + t + 1, len(self.rows)
        seen = torch.arange(width)
        mask = ((seen[None] < self.length[:, None]) | (seen[None] >= self.start))[:, None, None]

        def attend(i: int, q: Any, k: Any, v: Any) -> Any:
            self.keys[i][:, :, place], self.values[i][:, :, place] = k, v
            out = torch.nn.functional.scaled_dot_product_attention(
                q.contiguous()[:, :, None],
                self.keys[i][:, :, :width],
                self.values[i][:, :, :width],
                attn_mask=mask,
                enable_gqa=True,
            )
            return out.reshape(b, -1)

        self.hidden = e.run(tokens, self.length + t, attend)


def _cut(torch: Any, p: Any, top_p: float, top_k: int) -> Any:
    ordered, index = p.sort(-1, descending=True)
    drop = (ordered.cumsum(-1) - ordered) >= top_p
    if top_k:
        drop[:, top_k:] = True
    return torch.zeros_like(p).scatter_(-1, index, ordered.masked_fill(drop, 0.0))
