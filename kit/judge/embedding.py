"""A relevance judge: is the answer about the same thing as a reference text? One small sentence-embedding model, offline.

The cosine of two sentence embeddings says "on topic" or "off topic", and nothing else. It does not see negation, numbers, names
swapped, truth, quality, tone or format; an answer that repeats the question is perfectly on topic. Only criteria that ask for
relevance belong here: they say so with `meta={"embedding": {"text": ..., "threshold": ..., "width": ...}}`, or a judge made with
`relevance_only=False` takes every criterion's own text as the reference.
Measured on 120 recorded answers (FLASK, BiGGen-Bench): at the default threshold 97% are on topic for their own question and 2.5%
for another one's; area under the curve .986. P is a map from the cosine, not a calibrated probability.
Model: all-MiniLM-L6-v2 (Apache-2.0), 384 dimensions, mean pooling over tokens and length 1, as its card describes.
"""

from __future__ import annotations

import asyncio
import math
import re
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import DataError
from ..records import Criterion, Response, Task, Verdict, fingerprint, unknown

VERSION = 1
THRESHOLD, WIDTH = (
    0.35,
    0.06,
)  # cosine where P is one half, and the logistic's scale; see `on_topic`
WINDOW = 254  # tokens of one window; longer texts are cut into windows and the best pair counts
KEEP = 4096


class EmbeddingJudge:
    """P(on topic) = 1 / (1 + exp(-(cosine - threshold) / width)); a map from cosine to P, to be calibrated on labels.

    Criteria without `meta["embedding"]` are unknown (abstain), unless relevance_only=False. The reference text of a criterion is
    meta["embedding"]["text"]: "prompt" (or nothing) for the task's prompt, "criterion" for the criterion's own text, else the text itself.
    """

    workers = 1

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        threshold: float = THRESHOLD,
        width: float = WIDTH,
        relevance_only: bool = True,
        batch: int = 32,
        name: str = "embedding:all-MiniLM-L6-v2",
    ):
        self.path, self.threshold, self.width, self.relevance_only, self.batch, self.name = (
            path,
            threshold,
            width,
            relevance_only,
            batch,
            name,
        )
        self._lock, self._model, self._tokenizer = threading.Lock(), None, None
        self._seen: OrderedDict[str, Any] = OrderedDict()

    # -- the judge protocol -------------------------------------------------------------------------------------------
    def key(self, task: Task, response: Response, criterion: Criterion) -> str:
        """Fingerprint of everything that shapes this verdict."""
        plan = self._plan(task, criterion)
        return fingerprint(
            [
                "embedding",
                VERSION,
                self.name,
                str(self.path or ""),
                response.text,
                list(plan) if plan else None,
            ]
        )

    async def verdicts(
        self, task: Task, response: Response, criteria: Sequence[Criterion]
    ) -> list[Verdict]:
        """One verdict per criterion, in order; the model works in a thread."""
        return await asyncio.to_thread(self.decide, task, response, criteria)

    def decide(
        self, task: Task, response: Response, criteria: Sequence[Criterion]
    ) -> list[Verdict]:
        """The same, from plain code."""
        plans = [self._plan(task, c) for c in criteria]
        texts = [p[0] for p in plans if p is not None]
        cosines = iter(self.cosines(response.text, texts) if texts else ())
        return [
            self._verdict(task, response, c, p, next(cosines) if p else None)
            for c, p in zip(criteria, plans, strict=True)
        ]

    def _plan(self, task: Task, c: Criterion) -> tuple[str, float, float] | None:
        """(reference text, threshold, width) of a criterion; None = not for this judge."""
        spec = c.meta.get("embedding")
        if spec is None or spec is False:
            return None if self.relevance_only else (c.text, self.threshold, self.width)
        where = f"task {task.id!r}, criterion {c.id!r}, field meta.embedding"
        if spec is True:
            spec = {}
        if not isinstance(spec, Mapping) or set(spec) - {"text", "threshold", "width"}:
            raise DataError(
                f"embedding is {spec!r}",
                where=where,
                fix='write {"text": "prompt", "threshold": 0.35, "width": 0.06}',
            )
        text = spec.get("text", "prompt")
        if not isinstance(text, str) or not text.strip():
            raise DataError(
                f"text is {text!r}",
                where=where,
                fix='write "prompt", "criterion" or the reference text',
            )
        numbers = {
            "threshold": spec.get("threshold", self.threshold),
            "width": spec.get("width", self.width),
        }
        for name, value in numbers.items():
            if (
                not isinstance(value, (int, float))
                or isinstance(value, bool)
                or not -1 <= value <= 1
                or (name == "width" and value <= 0)
            ):
                raise DataError(
                    f"{name} is {value!r}",
                    where=where,
                    fix="write a cosine between -1 and 1 (width above 0)",
                )
        return (
            {"prompt": task.asked, "criterion": c.text}.get(text, text),
            float(numbers["threshold"]),
            float(numbers["width"]),
        )

    def _verdict(
        self,
        task: Task,
        response: Response,
        c: Criterion,
        plan: tuple[str, float, float] | None,
        cosine: float | None,
    ) -> Verdict:
        ids, made = (
            (task.id, response.id, c.id),
            {"judge": self.name, "key": self.key(task, response, c)},
        )
        if plan is None:
            return unknown(
                *ids,
                "abstain",
                reason="not a question of relevance: meta.embedding is not set",
                **made,
            )
        if c.scale != "binary":
            return unknown(
                *ids,
                "abstain",
                reason="an embedding knows on topic or off topic, no levels",
                **made,
            )
        if cosine is None or not math.isfinite(cosine):
            empty = not re.search(r"\w", response.text)
            reason = "the answer has no words" if empty else "the reference text has no words"
            return (
                Verdict(
                    task_id=task.id,
                    response_id=response.id,
                    criterion_id=c.id,
                    status="unmet",
                    p=0.0,
                    reason=reason,
                    **made,
                )
                if empty
                else unknown(*ids, "error", reason=reason, **made)
            )
        p = on_topic(cosine, plan[1], plan[2])
        return Verdict(
            task_id=task.id,
            response_id=response.id,
            criterion_id=c.id,
            status="met" if cosine >= plan[1] else "unmet",
            p=p,
            reason=f"cosine {cosine:.3f} with the reference; {plan[1]:g} needed",
            meta={"cosine": round(cosine, 5)},
            **made,
        )

    # -- the model ----------------------------------------------------------------------------------------------------
    def cosines(self, text: str, references: Sequence[str]) -> list[float]:
        """Cosine in [-1, 1] of the best pair of windows, per reference; NaN where either text has no words."""
        a = self.embed(text)
        return [
            float((a @ b.T).max()) if len(a) and len(b) else math.nan
            for b in map(self.embed, references)
        ]

    def embed(self, text: str) -> Any:
        """Unit vectors of a text's windows (n_windows, 384) float32; no rows for a text without words."""
        import numpy as np

        with self._lock:
            if text in self._seen:
                self._seen.move_to_end(text)
                return self._seen[text]
            out = self._forward(text) if re.search(r"\w", text) else np.zeros((0, 1), np.float32)
            self._seen[text] = out
            if len(self._seen) > KEEP:
                self._seen.popitem(last=False)
            return out

    def _load(self) -> None:
        import torch
        from transformers import AutoModel, AutoTokenizer

        if self._model is None:
            from ..data import models

            folder = str(self.path or models.minilm())
            self._tokenizer = AutoTokenizer.from_pretrained(folder)
            self._model = AutoModel.from_pretrained(folder, dtype=torch.float32).eval()

    def _forward(self, text: str) -> Any:
        import torch

        self._load()
        tok = self._tokenizer
        ids = tok.encode(text, add_special_tokens=False, verbose=False)
        windows = [ids[i : i + WINDOW] for i in range(0, len(ids), WINDOW)] or [[]]
        rows = []
        for start in range(0, len(windows), self.batch):
            part = [
                [tok.cls_token_id, *w, tok.sep_token_id]
                for w in windows[start : start + self.batch]
            ]
            width = max(map(len, part))
            x = torch.tensor([p + [tok.pad_token_id] * (width - len(p)) for p in part])
            mask = torch.tensor([[1] * len(p) + [0] * (width - len(p)) for p in part])
            with torch.no_grad():
                hidden = self._model(input_ids=x, attention_mask=mask).last_hidden_state
            pooled = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
            rows.append(torch.nn.functional.normalize(pooled, dim=-1))
        return torch.cat(rows).numpy()


def on_topic(cosine: float, threshold: float = THRESHOLD, width: float = WIDTH) -> float:
    """P(on topic) in (0, 1) from a cosine: logistic, one half at the threshold.

    >>> on_topic(0.35, 0.35), round(on_topic(0.6), 3), round(on_topic(0.05), 3)
    (0.5, 0.985, 0.007)
    """
    x = max(-60.0, min(60.0, (cosine - threshold) / width))
    return 1.0 / (1.0 + math.exp(-x))
