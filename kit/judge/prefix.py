"""Many short continuations of one long prefix through a causal language model: the prefix is computed once.

Three ways, the same numbers: "packed" (all tails in one row behind the prefix, a mask keeps them apart: nothing is padded or
copied), "batched" (one row each behind a widened cache, padded on the left), "single" (every prompt whole). The first that a
model supports is taken; it is checked once against "single", because patched models sometimes ignore masks or positions.
"""

from __future__ import annotations

import contextlib
import copy
import logging
from collections.abc import Iterator, Sequence
from typing import Any

WAYS = ("packed", "batched", "single")
PACKED_TOKENS = 2048  # tokens of tails in one packed row: bounds the mask, (T, P + T)
TOLERANCE = {
    "float32": 1e-3,
    "float16": 0.05,
    "bfloat16": 0.25,
}  # of the log-probabilities that matter
log = logging.getLogger(__name__)


class Continuations:
    """Next-token log-probabilities after prefix + tail, for many tails of one prefix.

    way : one of WAYS, or None to take the fastest that agrees with "single". batch : rows at once in "batched".
    """

    def __init__(self, model: Any, *, way: str | None = None, batch: int = 32, pad: int = 0):
        self.model, self.way, self.batch, self.pad = model, way, batch, pad

    def logprobs(
        self, prefix: list[int], tails: Sequence[list[int]], watch: Sequence[int] = ()
    ) -> Any:
        """Log-probabilities (n_tails, V), float32. `watch`: token ids on which the first call compares the ways."""
        import torch

        with torch.no_grad(), _judging(self.model):
            if self.way is None and len(tails) > 1:
                self.way = self._choose(prefix, tails, watch)
            return self._run(self.way or "single", prefix, tails)

    def _run(self, way: str, prefix: list[int], tails: Sequence[list[int]]) -> Any:
        import torch

        if way == "single":
            return torch.cat([self._forward([prefix + t]) for t in tails])
        ids = torch.tensor([prefix], device=self.model.device)
        cache = self.model(input_ids=ids, use_cache=True, logits_to_keep=1).past_key_values
        lengths = [len(t) for t in tails]
        parts = (
            _batches(lengths, PACKED_TOKENS, tokens=True)
            if way == "packed"
            else _batches(lengths, self.batch, padded=_plain_layers(cache))
        )
        rows: dict[int, Any] = {}
        for part in parts:
            step = self._packed if way == "packed" else self._batched
            rows.update(zip(part, step(len(prefix), [tails[i] for i in part], cache), strict=True))
        return torch.stack([rows[i] for i in range(len(tails))])

    def _choose(self, prefix: list[int], tails: Sequence[list[int]], watch: Sequence[int]) -> str:
        """The first way whose log-probabilities of the watched tokens are those of whole prompts, on three tails."""
        by_length = sorted(tails, key=len)
        probe = [by_length[0], by_length[-1], by_length[len(tails) // 2]][: len(tails)]
        true = self._run("single", prefix, probe)
        columns = sorted(set(watch)) or slice(None)
        slack = TOLERANCE.get(str(self.model.dtype).removeprefix("torch."), 0.25)
        for way in WAYS[:-1]:
            try:
                gap = float(
                    (self._run(way, prefix, probe)[:, columns] - true[:, columns]).abs().max()
                )
            except (
                RuntimeError,
                TypeError,
                ValueError,
                AttributeError,
                IndexError,
                NotImplementedError,
            ) as e:
                log.info("%s continuations do not work with this model: %s", way, e)
                continue
            if gap <= slack:
                return way
            log.warning("%s continuations are off by %.2g with this model; not used", way, gap)
        return "single"

    def _forward(self, rows: list[list[int]], **more: Any) -> Any:
        import torch

        ids = torch.tensor(rows, device=self.model.device)
        logits = self.model(
            input_ids=ids, **{"use_cache": False, "logits_to_keep": 1, **more}
        ).logits
        return (
            torch.log_softmax(logits.float(), -1)[:, -1]
            if isinstance(more.get("logits_to_keep", 1), int)
            else torch.log_softmax(logits.float(), -1)[0]
        )

    def _packed(self, p: int, tails: list[list[int]], cache: Any) -> Any:
        """All tails in one row: each sees the prefix and itself."""
        import torch

        if not _plain_layers(cache) or getattr(
            self.model.config, "_attn_implementation", ""
        ) not in ("sdpa", "eager"):
            raise NotImplementedError("needs plain attention layers with a free mask")
        lengths = torch.tensor([len(t) for t in tails])
        owner = torch.repeat_interleave(torch.arange(len(tails)), lengths)
        ends = lengths.cumsum(0) - 1
        positions = p + torch.arange(len(owner)) - (ends + 1 - lengths)[owner]
        own = (owner[:, None] == owner[None, :]).tril()
        seen = torch.cat([torch.ones(len(owner), p, dtype=torch.bool), own], 1)
        mask = torch.zeros(seen.shape, dtype=self.model.dtype).masked_fill(
            ~seen, torch.finfo(self.model.dtype).min
        )[None, None]
        put = {"attention_mask": mask, "position_ids": positions[None], "logits_to_keep": ends}
        return self._forward(
            [[i for t in tails for i in t]],
            past_key_values=_widen(cache, 1),
            use_cache=True,
            **{k: v.to(self.model.device) for k, v in put.items()},
        )

    def _batched(self, p: int, tails: list[list[int]], cache: Any) -> Any:
        """One tail a row, padded on the left, between prefix and tail, and masked there."""
        import torch

        width = max(map(len, tails))
        mask = torch.tensor([[1] * p + [0] * (width - len(t)) + [1] * len(t) for t in tails])
        positions = (mask.cumsum(-1) - 1)[:, p:].clamp(min=0)
        put = {"attention_mask": mask, "position_ids": positions}
        return self._forward(
            [[self.pad] * (width - len(t)) + t for t in tails],
            past_key_values=_widen(cache, len(tails)),
            use_cache=True,
            **{k: v.to(self.model.device) for k, v in put.items()},
        )


def _plain_layers(cache: Any) -> bool:
    """True when every layer keeps all keys; sliding windows count padding as positions, so their batches must need none."""
    layers = getattr(cache, "layers", None)
    return bool(layers) and all(type(layer).__name__ == "DynamicLayer" for layer in layers)


def _batches(
    lengths: Sequence[int], size: int, *, padded: bool = True, tokens: bool = False
) -> list[list[int]]:
    """Indices by length in batches of `size` rows (or of `size` tokens); of equal length only when padding is not allowed.

    >>> _batches([5, 2, 5], 2), _batches([5, 2, 5], 2, padded=False), _batches([5, 2, 5], 7, tokens=True)
    ([[1, 0], [2]], [[1], [0, 2]], [[1, 0], [2]])
    """
    out: list[list[int]] = []
    for i in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        full = not out or (
            sum(lengths[j] for j in out[-1]) + lengths[i] > size if tokens else len(out[-1]) >= size
        )
        if full or not (padded or tokens or lengths[out[-1][0]] == lengths[i]):
            out.append([i])
        else:
            out[-1].append(i)
    return out


def _widen(cache: Any, rows: int) -> Any:
    """The prefix cache for a batch, the original untouched; plain layers are views, others real copies."""
    if _plain_layers(cache):
        out = copy.copy(cache)
        out.layers = [copy.copy(layer) for layer in cache.layers]
        for layer in out.layers:
            layer.keys, layer.values = (
                layer.keys.expand(rows, -1, -1, -1),
                layer.values.expand(rows, -1, -1, -1),
            )
        return out
    out = copy.deepcopy(cache)
    out.batch_repeat_interleave(rows)
    return out


@contextlib.contextmanager
def _judging(model: Any) -> Iterator[None]:
    """Evaluation mode and no adapters; both as before afterwards."""
    training = model.training
    model.eval()
    try:
        with (
            model.disable_adapter()
            if hasattr(model, "disable_adapter")
            else contextlib.nullcontext()
        ):
            yield
    finally:
        model.train(training)
