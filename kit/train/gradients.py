"""The three places of a training step where torch's own gradients cost most, written by hand.

Merged: a product with W + s B A as one matrix, whose gradient goes to A and B; the adapter costs no
products of its own on the way forward and two thin ones on the way back, and none for an input
without gradient (the frozen embedding). Scored: log-probabilities of the answers' tokens alone; of
the vocabulary's probabilities only the mean row of the head under them is kept. Attended: attention
under a block mask, whose gradient torch's fused kernel takes three times as long for.
"""

from __future__ import annotations

from typing import Any

from ..system.device import import_torch

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
        found, spread, falls, rises = [], [], [], []
        for at in range(0, len(labels), ROWS):
            here = hidden[at : at + ROWS]
            label = labels[at : at + ROWS]
            logits = torch.nn.functional.linear(here, head).float().div_(temperature)
            top = logits.amax(-1, keepdim=True)
            own = (logits.gather(-1, label[:, None]) - top)[:, 0]
            p = logits.sub_(top).exp_()  # (n, V), not normalised
            total = p.sum(-1, keepdim=True)
            mean = (p.to(head.dtype) @ head) / total  # (n, H), of the head's rows
            found.append(own - total.log()[:, 0])
            # -sum p log p, where the mean logit is the mean row times the hidden state
            logit = (mean.float() * here.float()).sum(-1) / temperature
            spread.append(total.log()[:, 0] + top[:, 0] - logit)
            falls.append(mean)
            rises.append(head[label])
        ctx.save_for_backward(torch.cat(rises) - torch.cat(falls))
        ctx.temperature = temperature
        entropies = torch.cat(spread)
        ctx.mark_non_differentiable(entropies)
        return torch.cat(found), entropies

    @staticmethod
    def backward(ctx: Any, g: Any, _: Any) -> Any:
        (pull,) = ctx.saved_tensors  # (N, H)
        return (g[:, None] / ctx.temperature * pull).to(pull.dtype), None, None, None


class Attended(torch.autograd.Function):
    """q (heads, P, D) on k, v (kv, P, D), mask (P, P) True = may look -> (heads, P, D).

    The gradient is that of softmax(q k^T / sqrt(D)) v (Dao et al. 2022, algorithm 4), in one block.
    """

    @staticmethod
    def forward(ctx: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
        attention = torch.nn.functional.scaled_dot_product_attention
        grouped = len(q) != len(k)
        out = attention(q[None], k[None], v[None], attn_mask=mask, enable_gqa=grouped)[0]
        ctx.save_for_backward(q, k, v, mask, out)
        return out

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        q, k, v, mask, out = ctx.saved_tensors
        heads, p, d = q.shape
        scale = d**-0.5
        # The queries of one key head stand one below the other.
        rows, pull, said = (t.reshape(len(k), -1, d) for t in (q, g, out))
        scores = torch.bmm(rows, k.mT).view(heads, p, p).float().mul_(scale)
        weights = scores.masked_fill_(~mask, -torch.inf).softmax(-1)
        weights = weights.to(q.dtype).view(len(k), -1, p)
        fall = torch.bmm(pull, v.mT) - (pull * said).sum(-1, keepdim=True)
        fall = fall.mul_(weights).mul_(scale)
        back = torch.bmm(fall, k).view(heads, p, d)
        return back, torch.bmm(fall.mT, rows), torch.bmm(weights.mT, pull), None
