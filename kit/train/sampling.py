"""Sampling answers on a CPU: one prefill per prompt, adapters merged, finished answers dropped, the same distribution.

The plain path (`model.generate`) spends its time in small matrix products against row-major weights, in a slow
multinomial draw, and in padding finished rows. Here, for Llama-shaped models: weights with the adapter added are kept
fused; products run as W @ x^T; a token is drawn by inverting the cumulative distribution with one uniform number (exact
for the full softmax, summed in float64); rows that ended leave the batch. Other models fall back to `model.generate`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .device import import_torch


@dataclass(frozen=True, kw_only=True)
class Sampled:
    """Answers as token ids (the end token included when reached), their log-probabilities, and which were cut off.

    logprobs : under temperature 1 / `temperature` scaled logits, as the trainer computes them.
    """

    ids: list[list[int]]
    logprobs: list[list[float]]
    truncated: list[bool]


def base_of(model: Any) -> Any:
    """The plain transformers model below a PEFT wrapper."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def fast_ok(model: Any) -> str | None:
    """None when the fast path fits this model, else the reason why not."""
    torch = import_torch()
    base = base_of(model)
    if getattr(base.config, "model_type", "") != "llama":
        return f"model type {getattr(base.config, 'model_type', '?')!r} is not llama"
    if next(base.parameters()).device.type != "cpu":
        return "the model is not on a CPU"
    if getattr(base.config, "attention_bias", False) or getattr(base.config, "mlp_bias", False):
        return "projections have biases"
    for name, module in base.model.layers[0].named_modules():
        weight = getattr(getattr(module, "base_layer", module), "weight", None)
        if weight is not None and weight.dtype not in (
            torch.float32,
            torch.bfloat16,
            torch.float16,
        ):
            return f"{name} is quantised"
    if any(len(getattr(m, "active_adapters", [])) > 1 for m in base.model.layers[0].modules()):
        return "several adapters are active"
    return None


class Engine:
    """Merged, fused weights of a Llama-shaped model, ready to sample; `refresh()` after every update of the adapter.

    Memory: one more copy of the layer weights in the model's dtype; embeddings are shared.
    """

    def __init__(self, model: Any):
        self.torch = import_torch()
        base = base_of(model)
        self.base, self.core, self.config = base, base.model, base.config
        c = base.config
        self.heads, self.kv = c.num_attention_heads, c.num_key_value_heads
        self.dim = getattr(c, "head_dim", None) or c.hidden_size // c.num_attention_heads
        self.weights: list[list[Any]] = []
        self.refresh()

    def refresh(self) -> None:
        """Take over the current weights: W + scaling * B A for every adapted projection."""
        torch = self.torch
        with torch.no_grad():
            for i, layer in enumerate(self.core.layers):
                a, m = layer.self_attn, layer.mlp
                parts = (
                    (a.q_proj, a.k_proj, a.v_proj),
                    (a.o_proj,),
                    (m.gate_proj, m.up_proj),
                    (m.down_proj,),
                )
                if len(self.weights) <= i:
                    self.weights.append(
                        [
                            torch.empty(
                                sum(_plain(p).shape[0] for p in g),
                                _plain(g[0]).shape[1],
                                dtype=_plain(g[0]).dtype,
                            )
                            for g in parts
                        ]
                    )
                for target, group in zip(self.weights[i], parts, strict=True):
                    row = 0
                    for p in group:
                        rows = _plain(p).shape[0]
                        _merged(p, target[row : row + rows])
                        row += rows
            head = self.base.lm_head
            self.head = (
                _merged(head, torch.empty_like(_plain(head))) if _lora(head) else _plain(head)
            )

    def layer(self, i: int, x: Any, cos: Any, sin: Any, attend: Any) -> Any:
        """One decoder layer on x (N, H); `attend(i, q, k, v)` gets (N, heads, D) and (N, kv, D) and gives (N, heads * D)."""
        torch, block = self.torch, self.core.layers[i]
        qkv, o, gate_up, down = self.weights[i]
        h = _norm(torch, block.input_layernorm, x)
        y = _linear(torch, qkv, h).reshape(x.shape[0], -1, self.dim)
        q, k, v = y.split((self.heads, self.kv, self.kv), dim=1)
        q, k = _rope(torch, q, cos, sin), _rope(torch, k, cos, sin)
        x = x + _linear(torch, o, attend(i, q, k, v))
        g, u = _linear(torch, gate_up, _norm(torch, block.post_attention_layernorm, x)).chunk(
            2, dim=-1
        )
        return x + _linear(torch, down, torch.nn.functional.silu(g) * u)

    def rotary(self, positions: Any) -> tuple[Any, Any]:
        """cos and sin (N, 1, D) for positions (N,)."""
        cos, sin = self.core.rotary_emb(self.core.embed_tokens.weight[:1], positions[None])
        return cos[0][:, None], sin[0][:, None]

    def prefill(self, prompt: Sequence[int]) -> tuple[list[Any], list[Any], Any]:
        """Keys and values (kv, P, D) per layer, and the last hidden state (1, H), of one prompt of P tokens."""
        torch = self.torch
        x = self.core.embed_tokens.weight[torch.tensor(prompt)]
        cos, sin = self.rotary(torch.arange(len(prompt)))
        keys, values = [], []

        def attend(i: int, q: Any, k: Any, v: Any) -> Any:
            keys.append(k.transpose(0, 1).contiguous())
            values.append(v.transpose(0, 1).contiguous())
            out = torch.nn.functional.scaled_dot_product_attention(
                q.transpose(0, 1)[None],
                keys[-1][None],
                values[-1][None],
                is_causal=True,
                enable_gqa=self.kv != self.heads,
            )
            return out[0].transpose(0, 1).reshape(len(prompt), -1)

        for i in range(len(self.core.layers)):
            x = self.layer(i, x, cos, sin, attend)
        return keys, values, x[-1:]

    def logits(self, hidden: Any) -> Any:
        """Next-token logits (B, V) of hidden states (B, H), in float32."""
        torch = self.torch
        return _linear(torch, self.head, _norm(torch, self.core.norm, hidden)).float().contiguous()


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

    Random numbers come from `generator`, or from torch's global one (which checkpoints save and restore).
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
    """Tokens (B,) drawn from softmax(logits / temperature), and their log-probabilities before any cut by top_p or top_k."""
    torch = import_torch()
    if temperature == 0:
        tokens = logits.argmax(-1)
        return tokens, logits.log_softmax(-1).gather(-1, tokens[:, None])[:, 0]
    full = torch.softmax(logits / temperature if temperature != 1.0 else logits, dim=-1)
    p = _cut(torch, full, top_p, top_k) if top_p < 1.0 or top_k else full
    total = p.cumsum(-1, dtype=torch.float64)
    u = torch.rand(p.shape[0], 1, dtype=torch.float64, generator=generator) * total[:, -1:]
    tokens = torch.searchsorted(total, u, right=True).clamp_(max=p.shape[1] - 1)
    return tokens[:, 0], full.gather(-1, tokens)[:, 0].clamp_min(1e-45).log()


class _Batch:
    """Key-value cache and hidden states of the answers that still run."""

    def __init__(self, engine: Engine, prompts: Sequence[Sequence[int]], room: int):
        torch = engine.torch
        self.engine, self.torch = engine, torch
        unique: dict[tuple[int, ...], int] = {}
        self.which = torch.tensor([unique.setdefault(tuple(p), len(unique)) for p in prompts])
        lengths = torch.tensor([len(p) for p in unique])
        self.start = int(lengths.max())
        layers, count = len(engine.core.layers), len(prompts)
        dtype = engine.weights[0][0].dtype
        shape = (count, engine.kv, self.start + room, engine.dim)
        self.keys = [torch.zeros(shape, dtype=dtype) for _ in range(layers)]
        self.values = [torch.zeros(shape, dtype=dtype) for _ in range(layers)]
        hidden = torch.empty(len(unique), engine.config.hidden_size, dtype=dtype)
        for prompt, j in unique.items():
            keys, values, hidden[j] = engine.prefill(prompt)
            mine = (self.which == j).nonzero()[:, 0]
            for i in range(layers):
                self.keys[i][mine, :, : len(prompt)] = keys[i]
                self.values[i][mine, :, : len(prompt)] = values[i]
        self.hidden = hidden[self.which]
        self.length = lengths[self.which]
        self.rows = list(range(count))
        self.done = [False] * count

    def compact(self, tokens: Any) -> Any:
        """Drop the rows that ended, when they are a quarter of the batch or more; gives the tokens of the rows kept."""
        keep = [j for j, row in enumerate(self.rows) if not self.done[row]]
        if len(keep) > 0.75 * len(self.rows):
            return tokens
        at = self.torch.tensor(keep)
        self.keys, self.values = [k[at] for k in self.keys], [v[at] for v in self.values]
        self.length, self.rows = self.length[at], [self.rows[j] for j in keep]
        return tokens[at]

    def step(self, tokens: Any, t: int) -> None:
        """Run the new tokens (B,) through the model and store their keys and values at place start + t."""
        torch, e = self.torch, self.engine
        place, width, b = self.start + t, self.start + t + 1, len(self.rows)
        seen = torch.arange(width)
        mask = ((seen[None] < self.length[:, None]) | (seen[None] >= self.start))[:, None, None]
        cos, sin = e.rotary(self.length + t)

        def attend(i: int, q: Any, k: Any, v: Any) -> Any:
            self.keys[i][:, :, place], self.values[i][:, :, place] = k, v
            q = q.reshape(b, e.kv, e.heads // e.kv, e.dim)
            out = torch.nn.functional.scaled_dot_product_attention(
                q, self.keys[i][:, :, :width], self.values[i][:, :, :width], attn_mask=mask
            )
            return out.reshape(b, -1)

        x = e.core.embed_tokens.weight[tokens]
        for i in range(len(e.core.layers)):
            x = e.layer(i, x, cos, sin, attend)
        self.hidden = x


def _cut(torch: Any, p: Any, top_p: float, top_k: int) -> Any:
    ordered, index = p.sort(-1, descending=True)
    drop = (ordered.cumsum(-1) - ordered) >= top_p
    if top_k:
        drop[:, top_k:] = True
    return torch.zeros_like(p).scatter_(-1, index, ordered.masked_fill(drop, 0.0))


def _linear(torch: Any, weight: Any, x: Any) -> Any:
    return torch.mm(
        weight, x.t()
    ).t()  # W x^T: 2.5 times faster than x W^T for a few rows in float32


def _norm(torch: Any, module: Any, x: Any) -> Any:
    return torch.nn.functional.rms_norm(x, (x.shape[-1],), module.weight, module.variance_epsilon)


def _rope(torch: Any, x: Any, cos: Any, sin: Any) -> Any:
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-b, a), dim=-1) * sin


def _plain(module: Any) -> Any:
    return getattr(module, "base_layer", module).weight


def _lora(module: Any) -> list[str]:
    if (
        not hasattr(module, "lora_A")
        or getattr(module, "disable_adapters", False)
        or getattr(module, "merged", False)
    ):
        return []
    return [n for n in module.active_adapters if n in module.lora_A]


def _merged(module: Any, out: Any) -> Any:
    out.copy_(_plain(module))
    for name in _lora(module):
        a, b = module.lora_A[name].weight, module.lora_B[name].weight
        out.addmm_(b.to(out.dtype), a.to(out.dtype), alpha=module.scaling[name])
    return out
