"""Answers of a model to tasks: the chat that a task asks, its tokens, and how likely the model found each answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

from ..records import Response, Task
from ..system.device import import_torch
from ..system.progress import bar

# of the chat template, an option of a training
TEMPLATE_OPTIONS = "chat_template_kwargs"
BATCH = 32  # prompts that are answered at once


def sample(
    model: Any,
    tokenizer: Any,
    tasks: Sequence[Task],
    *,
    name: str,
    samples: int,
    temperature: float,
    max_new_tokens: int,
    seed: int,
    template_options: Mapping[str, Any] = MappingProxyType({}),
    generate: Callable[..., list[list[int]]] | None = None,
) -> list[Response]:
    """Answers to each task, with exp(mean log-probability of the tokens) as their confidence.

    temperature : 0 is greedy. template_options : of the chat template, as in training.
    generate : a faster way than model.generate, called with
        prompts, a GenerationConfig and a logits processor.
    The random numbers are the evaluation's own: a run with and without evaluations trains alike.
    """
    torch = import_torch()
    from transformers import GenerationConfig

    config = GenerationConfig(
        max_new_tokens=max_new_tokens,
        do_sample=temperature > 0,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=eos_ids(model, tokenizer),
        **({"temperature": temperature, "top_k": 0} if temperature else {}),
    )
    todo = [
        (t, prompt_ids(tokenizer, messages(t), template_options))
        for t in tasks
        for _ in range(samples)
    ]
    out: list[Response] = []
    generate = generate or partial(generate_padded, model, tokenizer)
    training = model.training
    model.eval()
    # the numbers of the training itself are left as they were
    with torch.no_grad(), torch.random.fork_rng():
        torch.manual_seed(seed)
        for at in bar(range(0, len(todo), BATCH), desc=f"answers, {name}"):
            part, watch = todo[at : at + BATCH], LogprobRecorder()
            prompts = [ids for _, ids in part]
            answers = generate(prompts, config, watch)
            for (task, _), ids, chance in zip(
                part, answers, watch.chances(answers), strict=True
            ):
                out.append(
                    Response(
                        task_id=task.id,
                        id=f"{name}-{len(out)}",
                        text=tokenizer.decode(
                            ids, skip_special_tokens=True
                        ).strip(),
                        source=name,
                        truncated=ids[-1] not in config.eos_token_id,
                        confidence=chance,
                    )
                )
    model.train(training)
    return out


class LogprobRecorder:
    """A logits processor that changes nothing and keeps the log-probability of each token."""

    def __init__(self) -> None:
        self.last: Any = None
        self.logps: list[Any] = []

    def __call__(self, ids: Any, logits: Any) -> Any:
        # the token that was drawn is known one call later
        if self.last is not None:
            self.logps.append(self.last.gather(-1, ids[:, -1:])[:, 0])
        self.last = logits.float().log_softmax(-1)
        return logits

    def chances(self, answers: Sequence[list[int]]) -> list[float]:
        """exp(mean log-probability) of each answer's tokens, at temperature 1."""
        out = []
        for i, ids in enumerate(answers):
            # no call comes after the last token, so the longest answers end in what was kept last
            logps = [float(step[i]) for step in self.logps[: len(ids)]]
            logps += [float(self.last[i, ids[-1]])] * (len(ids) - len(logps))
            out.append(min(1.0, math.exp(sum(logps) / len(logps))))
        return out


def eos_ids(model: Any, tokenizer: Any) -> list[int]:
    """Every id that ends an answer."""
    ids = model.generation_config.eos_token_id
    return sorted(
        {*([ids] if isinstance(ids, int) else ids or []), tokenizer.eos_token_id}
    )


def generate_padded(
    model: Any,
    tokenizer: Any,
    prompts: Sequence[Sequence[int]],
    config: Any,
    recorder: LogprobRecorder,
) -> list[list[int]]:
    """Answers as token ids, each up to and with its first end token, by transformers' own `generate`."""
    # unsloth pads on the right while it trains
    rows = tokenizer.pad(
        {"input_ids": [list(p) for p in prompts]},
        padding_side="left",
        return_tensors="pt",
    ).to(model.device)
    new = model.generate(
        **rows,
        generation_config=config,
        logits_processor=[recorder],
        # one process evaluates: it must not wait for the others at every token
        synced_gpus=False,
    )[:, rows["input_ids"].shape[1] :]
    return [truncate_at_eos(row, config.eos_token_id) for row in new.tolist()]


def truncate_at_eos(row: list[int], ends: Sequence[int]) -> list[int]:
    """The tokens up to and with the first end token."""
    return row[: next((i + 1 for i, t in enumerate(row) if t in ends), len(row))]


def messages(task: Task) -> list[dict[str, str]]:
    """The chat that a task asks: system, turns before, and the prompt with the sources that it may cite."""
    # templates differ in what they make of an empty system turn
    first = [{"role": "system", "content": task.system}] if task.system else []
    text, sources = task.prompt, task.meta.get("tool_output", "")
    if (
        task.sources
        and not sources
        and f"<snippet id={next(iter(task.sources))}>" not in text
    ):
        sources = "\n".join(
            f"<snippet id={k}>{v}</snippet>" for k, v in task.sources.items()
        )
    last = {"role": "user", "content": f"{text}\n\n{sources}".strip()}
    return [*first, *map(dict, task.history), last]


def prompt_ids(
    tokenizer: Any,
    chat: Sequence[dict[str, str]],
    template_options: Mapping[str, Any] = MappingProxyType({}),
) -> list[int]:
    """Token ids of a chat in the model's layout, with the words that begin an answer."""
    out = tokenizer.apply_chat_template(
        list(chat),
        add_generation_prompt=True,
        tokenize=True,
        return_dict=True,
        **template_options,
    )
    return list(out["input_ids"])
