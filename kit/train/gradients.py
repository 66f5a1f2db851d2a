"""The two places of a training step where torch's own gradients cost most, written by hand.

Merged: a product with W + s B A as one matrix, whose gradient goes to A and B; the adapter costs no
products of its own on the way forward and two thin ones on the way back, and none for an input
without gradient (the frozen embedding). Scored: log-probabilities of the answers' tokens alone; the
vocabulary's probabilities are kept once, in the model's dtype.
"""

from __future__ import annotations

from typing import Any

from .device import import_torch

torch = import_torch()
ROWS = 256  # tokens whose logits over the whole vocabulary are in memory at once


class Merged(torch.autograd.Function):
    """x (N, in) -> x W^T (N, out); spans : (first row, end, scaling) of each adapter; pairs : A (r,
    in), B (rows, r), ...
    """

    @staticmethod
    def forward(ctx: Any, x: Any, weight: Any, spans: Any, *pairs: Any) -> Any:
        ctx.save_for_backward(x, *pairs)
        ctx.weight, ctx.spans = weight, spans
        return torch.nn.functional.linear(x, weight)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, *pairs = ctx.saved_tensors
        grads = []
        for (first, end, scaling), a, b in zip(ctx.spans, pairs[::2], pairs[1::2], strict=True):
            part = g[:, first:end]
            below = part @ b.to(g.dtype)  # (N, r)
            inner = x @ a.to(x.dtype).t()  # (N, r)
            grads += [
                scaling * (below.t() @ x).to(a.dtype),
                scaling * (part.t() @ inner).to(b.dtype),
            ]
        back = g @ ctx.weight if ctx.needs_input_grad[0] else None
        return back, None, None, *grads


class Scored(torch.autograd.Function):
    """Hidden states (N, H), head (V, H), labels (N,) -> log-probabilities and entropies (N,) at a
    temperature, float32.
    """

    @staticmethod
    def forward(ctx: Any, hidden: Any, head: Any, labels: Any, temperature: float) -> Any:
        found, spread, kept, totals = [], [], [], []
        for at in range(0, len(labels), ROWS):
            logits = torch.nn.functional.linear(hidden[at : at + ROWS], head).float()
            logits.div_(temperature).sub_(logits.amax(-1, keepdim=True))
            p = logits.exp()  # (n, V), not normalised
            total = p.sum(-1)
            found.append(logits.gather(-1, labels[at : at + ROWS, None])[:, 0] - total.log())
            spread.append(total.log() - torch.einsum("nv,nv->n", p, logits) / total)
            if ctx.needs_input_grad[0]:
                kept.append(p.to(hidden.dtype))
                totals.append(total)
        ctx.save_for_backward(labels, *kept)
        ctx.head, ctx.temperature, ctx.totals = head, temperature, totals
        entropies = torch.cat(spread)
        ctx.mark_non_differentiable(entropies)
        return torch.cat(found), entropies

    @staticmethod
    def backward(ctx: Any, g: Any, _: Any) -> Any:
        labels, *kept = ctx.saved_tensors
        out = []
        for at, p, total in zip(range(0, len(labels), ROWS), kept, ctx.totals, strict=True):
            pull = g[at : at + ROWS, None] / ctx.temperature  # (n, 1)
            fall = p @ ctx.head  # (n, H)
            rise = ctx.head[labels[at : at + ROWS]]
            out.append((pull * rise - (pull / total[:, None]) * fall).to(p.dtype))
        return torch.cat(out), None, None, None
