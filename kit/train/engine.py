"""A Llama-shaped model on a CPU without detours: fused weights with the adapter added, for sampling
and for training.

transformers and peft run each projection and its adapter one by one, in float32 where the adapter
is. Here q, k and v (and gate and up) are one product each, the adapter is added to the weight once
per update, and the same layers serve a prompt, the next token of many answers, and the packed
groups of a training step, whose gradient goes to the adapter (`gradients`). Other models take the
way through transformers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..system.device import import_torch
from .packing import Packed

FEW = 64  # rows up to which W @ x^T is faster than x @ W^T


def base_of(model: Any) -> Any:
    """The plain transformers model below a PEFT wrapper."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def fast_ok(model: Any) -> str | None:
    """None when the engine fits this model and all that is adapted in it, else why not."""
    base = base_of(model)
    kind, act = (getattr(base.config, n, None) for n in ("model_type", "hidden_act"))
    if (kind, act) != ("llama", "silu"):
        return f"model type {kind!r} with {act!r} is not llama with silu"
    if next(base.parameters()).device.type != "cpu":
        return "the model is not on a CPU"
    if getattr(base.config, "attention_bias", False) or getattr(base.config, "mlp_bias", False):
        return "projections have biases"
    if any(a.peft_type != "LORA" for a in getattr(model, "peft_config", {}).values()):
        return "the adapter is no LoRA"
    known = {id(m) for layer in base.model.layers for part in _parts(layer) for m in part}
    found = ((name, _odd(m, id(m) in known)) for name, m in base.named_modules())
    return next((f"{name} {why}" for name, why in found if why), None)


def _odd(module: Any, known: bool) -> str:
    """What the engine would leave out of a module; known : a projection that it reads."""
    torch = import_torch()
    weight = getattr(getattr(module, "base_layer", module), "weight", None)
    plain = (torch.float32, torch.bfloat16, torch.float16)
    if weight is not None and weight.dtype not in plain:
        return "is quantised"
    if hasattr(module, "modules_to_save"):
        return "is trained as a whole"
    if not hasattr(module, "lora_A"):
        return ""
    if not known:
        return "is adapted"
    if getattr(module, "lora_magnitude_vector", None):
        return "has a DoRA"
    if any(b.bias is not None for b in module.lora_B.values()):
        return "has an adapter with a bias"
    return "has several adapters in use" if len(module.active_adapters) > 1 else ""


def state(model: Any) -> tuple[Any, ...]:
    """What decides which weights a model shows beside their values: the adapter in use, or none."""
    adapted = (m for m in base_of(model).model.modules() if hasattr(m, "lora_A"))
    return tuple(_lora(next(adapted, None)))


def trains_ok(model: Any) -> str | None:
    """None when the engine's gradient is that of the model, else the reason why not."""
    names = [n for n, p in model.named_parameters() if p.requires_grad]
    if not names or not all(".layers." in n and ".lora_" in n for n in names):
        return "more is trained than an adapter of the layers"
    drops = (m for d in base_of(model).modules() for m in getattr(d, "lora_dropout", {}).values())
    attention = getattr(base_of(model).config, "attention_dropout", 0.0)
    if attention or any(getattr(m, "p", 0.0) for m in drops):
        return "the adapter or the attention has dropout"
    return None


class Fused:
    """Projections that share an input, as one weight (out, in) with their adapters added."""

    def __init__(self, modules: Sequence[Any]):
        self.modules, self.torch = modules, import_torch()
        first = _plain(modules[0])
        rows = sum(_plain(m).shape[0] for m in modules)
        self.weight = self.torch.empty(rows, first.shape[1], dtype=first.dtype)
        self.refresh()

    def refresh(self) -> None:
        """Take over the current weights: W + scaling * B A for every adapted projection."""
        self.spans, self.pairs, row = [], [], 0
        for m in self.modules:
            end = row + _plain(m).shape[0]
            out = self.weight[row:end].copy_(_plain(m))
            for name in _lora(m):
                a = m.lora_A[name].weight
                b = m.lora_B[name].weight
                out.addmm_(b.to(out.dtype), a.to(out.dtype), alpha=m.scaling[name])
                self.spans.append((row, end, m.scaling[name]))
                self.pairs += [a, b]
            row = end

    def __call__(self, x: Any) -> Any:
        """x (N, in) -> (N, out)."""
        if self.torch.is_grad_enabled():
            from .gradients import Merged

            return Merged.apply(x, self.weight, self.spans, *self.pairs)
        return linear(self.torch, self.weight, x)


class Engine:
    """Merged, fused weights of a Llama-shaped model; `refresh()` after every update of the adapter.

    Memory: one more copy of the layer weights in the model's dtype; embeddings are shared.
    """

    def __init__(self, model: Any):
        self.torch = import_torch()
        base = base_of(model)
        c = base.config
        self.core, self.config = base.model, c
        self.heads, self.kv = c.num_attention_heads, c.num_key_value_heads
        self.dim = getattr(c, "head_dim", None) or c.hidden_size // c.num_attention_heads
        with self.torch.no_grad():
            self.weights = [list(map(Fused, _parts(layer))) for layer in self.core.layers]
        self.head = base.lm_head.weight
        self.dtype = self.head.dtype

    def refresh(self) -> None:
        """Take over the adapter that is active now, as it is now."""
        with self.torch.no_grad():
            for weights in self.weights:
                for w in weights:
                    w.refresh()

    def layer(self, i: int, x: Any, cos: Any, sin: Any, attend: Any) -> Any:
        """One decoder layer on x (N, H); `attend(i, q, k, v)` gets (N, heads, D) and (N, kv, D) and
        gives (N, heads * D).
        """
        torch = self.torch
        block = self.core.layers[i]
        qkv, o, gate_up, down = self.weights[i]
        y = qkv(_norm(torch, block.input_layernorm, x)).reshape(x.shape[0], -1, self.dim)
        turned, v = y.split((self.heads + self.kv, self.kv), dim=1)
        q, k = _rope(torch, turned, cos, sin).split((self.heads, self.kv), dim=1)
        x = x + o(attend(i, q, k, v))
        g, u = gate_up(_norm(torch, block.post_attention_layernorm, x)).chunk(2, dim=-1)
        return x + down(torch.nn.functional.silu(g) * u)

    def rotary(self, positions: Any) -> tuple[Any, Any]:
        """cos and sin (N, 1, D) for positions (N,)."""
        cos, sin = self.core.rotary_emb(self.core.embed_tokens.weight[:1], positions[None])
        return cos[0][:, None], sin[0][:, None]

    def run(self, ids: Any, positions: Any, attend: Any) -> Any:
        """Hidden states (N, H) after the last layer, of tokens (N,) at positions (N,)."""
        x = self.core.embed_tokens.weight.detach()[ids]
        cos, sin = self.rotary(positions)
        for i in range(len(self.core.layers)):
            x = self.layer(i, x, cos, sin, attend)
        return x

    def prefill(self, prompts: Sequence[Sequence[int]]) -> list[tuple[list[Any], list[Any], Any]]:
        """Per prompt of P tokens: keys and values (kv, P, D) per layer, and the last hidden state
        (H,).
        """
        torch = self.torch
        ends = torch.tensor([len(p) for p in prompts]).cumsum(0).tolist()
        parts = [slice(end - len(p), end) for p, end in zip(prompts, ends, strict=True)]
        kept: list[tuple[list[Any], list[Any]]] = [([], []) for _ in prompts]

        def attend(i: int, q: Any, k: Any, v: Any) -> Any:
            out = []
            for at, (keys, values) in zip(parts, kept, strict=True):
                keys.append(k[at].transpose(0, 1).contiguous())
                values.append(v[at].transpose(0, 1).contiguous())
                out.append(self._attend(q[at], keys[-1], values[-1]))
            return torch.cat(out)

        ids = torch.tensor([i for p in prompts for i in p])
        x = self.run(ids, torch.cat([torch.arange(len(p)) for p in prompts]), attend)
        return [(*k, x[end - 1]) for k, end in zip(kept, ends, strict=True)]

    def _attend(self, q: Any, keys: Any, values: Any) -> Any:
        """q (P, heads, D) on keys and values (kv, P, D) before it -> (P, heads * D)."""
        attention = self.torch.nn.functional.scaled_dot_product_attention
        # Contiguous: torch has no fused attention for the transposed query of `linear`.
        q = q.transpose(0, 1).contiguous()
        grouped = self.kv != self.heads
        out = attention(q[None], keys[None], values[None], enable_gqa=grouped, is_causal=True)
        return out[0].transpose(0, 1).flatten(1)

    def logits(self, hidden: Any) -> Any:
        """Next-token logits (B, V) of hidden states (B, H), in float32."""
        torch = self.torch
        hidden = _norm(torch, self.core.norm, hidden)
        return linear(torch, self.head, hidden).float().contiguous()

    def score(self, groups: Sequence[Packed], temperature: float) -> tuple[Any, Any]:
        """Log-probabilities and entropies (N,) of the answers' tokens of packed groups, one after
        the other.
        """
        from .gradients import Attended, Scored

        torch = self.torch
        ends = torch.tensor([g.ids.shape[1] for g in groups]).cumsum(0).tolist()
        starts = [0, *ends[:-1]]

        def attend(i: int, q: Any, k: Any, v: Any) -> Any:
            rows = zip(groups, starts, ends, strict=True)
            cut = ((g, [t[a:b].transpose(0, 1) for t in (q, k, v)]) for g, a, b in rows)
            seen = (Attended.apply(*own, g.mask[0, 0]) for g, own in cut)
            return torch.cat([x.transpose(0, 1).flatten(1) for x in seen])

        ids = torch.cat([g.ids[0] for g in groups])
        x = self.run(ids, torch.cat([g.positions[0] for g in groups]), attend)
        places = torch.cat([g.predict + a for g, a in zip(groups, starts, strict=True)])
        hidden = _norm(torch, self.core.norm, x[places])
        labels = torch.cat([g.labels for g in groups])
        return Scored.apply(hidden, self.head, labels, temperature)


def linear(torch: Any, weight: Any, x: Any) -> Any:
    """x W^T, by the faster way for so many rows."""
    if x.shape[0] > FEW:
        return torch.nn.functional.linear(x, weight)
    return torch.mm(weight, x.t()).t()


def _parts(layer: Any) -> tuple[list[Any], ...]:
    """The projections of a layer, those with one input together."""
    a, m = layer.self_attn, layer.mlp
    return [a.q_proj, a.k_proj, a.v_proj], [a.o_proj], [m.gate_proj, m.up_proj], [m.down_proj]


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
