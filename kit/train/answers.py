"""Answers of a policy: sampled at the training's temperature with a seed, as records; graded on
held-out prompts; trivial policies beside them.
"""

from __future__ import annotations

import dataclasses
import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..checks.rules import without_confidence
from ..errors import DataError
from ..records import Response, Task, fingerprint, grouped
from ..rewards.trivial import TRIVIAL, policies
from ..system import progress
from ..system.device import import_torch
from . import engine, sampling
from .config import GRPOSettings
from .evaluation import Evaluation
from .inputs import chat_ids
from .models import Loaded, eos_ids, told
from .reward import Reward

logger = logging.getLogger(__name__)


def sample_answers(
    loaded: Loaded,
    tasks: Sequence[Task],
    *,
    samples: int,
    settings: GRPOSettings,
    seed: int,
    name: str = "policy",
    batch: int = 64,
    temperature: float | None = None,
) -> list[Response]:
    """`samples` answers per task; the same seed gives the same random numbers.

    temperature : of the sampling, the training's by default; 0 = the likeliest token each time.
    confidence of an answer: exp(mean log-probability of its tokens at that temperature, at 1 where
    it is 0), in (0, 1]; a confidence that the text states is no part of it.
    """
    heat = settings.temperature if temperature is None else temperature
    torch, limit = import_torch(), settings.max_prompt_tokens
    prompts = [p for t in tasks for p in [prompt_ids(loaded.tokenizer, t, limit)] * samples]
    owners = [(t, j) for t in tasks for j in range(samples)]
    fast = (
        settings.fast and loaded.engine == "transformers" and engine.fast_ok(loaded.model) is None
    )
    quick = engine.Engine(loaded.model) if fast else None
    ends, found = eos_ids(loaded.model, loaded.tokenizer), []
    generator = torch.Generator().manual_seed(seed)
    for at in progress.bar(
        range(0, len(prompts), batch), desc=f"answers of {name}", unit="batch", delay=2.0
    ):
        part = prompts[at : at + batch]
        if quick is not None:
            got = sampling.sample(
                quick,
                part,
                max_new_tokens=settings.max_answer_tokens,
                temperature=heat,
                top_p=settings.top_p,
                top_k=settings.top_k,
                eos_ids=ends,
                generator=generator,
            )
            found += list(zip(got.ids, got.truncated, got.logprobs, strict=True))
        else:
            found += _generate(loaded, part, settings, ends, seed + at, heat)
    return [
        answer(loaded.tokenizer, t, ids, cut, f"{name}-{j}", _sure(loaded.tokenizer, ids, logprobs))
        for (t, j), (ids, cut, logprobs) in zip(owners, found, strict=True)
    ]


def _sure(tokenizer: Any, ids: Sequence[int], logprobs: Sequence[float]) -> float | None:
    """Confidence of the answer's own tokens, without those of a statement such as "Confidence:
    75%".
    """
    whole = tokenizer.decode(ids, skip_special_tokens=True)
    kept = without_confidence(whole).rstrip()
    if not kept or kept == whole.rstrip():
        return sequence_confidence(logprobs)
    ends = (i for i in range(1, len(ids)) if len(tokenizer.decode(ids[:i])) >= len(kept))
    return sequence_confidence(logprobs[: next(ends, len(ids))])


def evaluate(
    loaded: Loaded,
    heldout: Sequence[Task],
    reward: Reward,
    *,
    settings: GRPOSettings,
    name: str,
    step: int = 0,
) -> Evaluation:
    """Graded answers of a policy to held-out prompts, at the settings' eval_temperature and seed.

    The reward sees what it sees in training, the text: the answers' token confidence is recorded,
    not graded.
    """
    answers = sample_answers(
        loaded,
        heldout,
        samples=settings.eval_samples,
        settings=settings,
        seed=settings.seed + 10_000,
        name=name,
        temperature=settings.eval_temperature,
    )
    return graded(name, answers, reward, step)


def graded(name: str, given: Sequence[Response], reward: Reward, step: int = 0) -> Evaluation:
    """Answers with their grades; their token confidence is no part of what is graded."""
    grades = wait(reward.grade([dataclasses.replace(a, confidence=None) for a in given]))
    return Evaluation(name=name, responses=tuple(given), grades=tuple(grades), step=step)


def trivial(tasks: Sequence[Task], reward: Reward) -> Evaluation:
    """The graded answers of all trivial policies to these prompts."""
    return graded("trivial", [r for t in tasks for r in policies(t)], reward)


def by_policy(every: Evaluation | None) -> dict[str, Evaluation]:
    """What `trivial` gave, by the policy's name; {} for None."""
    both = zip(every.responses, every.grades, strict=True) if every else ()
    held = grouped((str(r.source).removeprefix(TRIVIAL), (r, g)) for r, g in both)
    return {
        name: Evaluation(
            name=name,
            responses=tuple(r for r, _ in own),
            grades=tuple(g for _, g in own),
        )
        for name, own in held.items()
    }


def prompt_ids(tokenizer: Any, task: Task, limit: int | None = None) -> list[int]:
    """Token ids of a task's prompt in the model's chat layout, ready for the answer."""
    return chat_ids(tokenizer, messages(task, tokenizer, limit))


def messages(task: Task, tokenizer: Any = None, limit: int | None = None) -> list[dict[str, str]]:
    """A task as chat messages; its sources stand below the prompt as tool output.

    limit : most tokens of the whole prompt. Where it is passed, every snippet is cut after the same
    number of words, the most that fits; ids and prompt stay whole. `is_cut` tells.
    """
    if tokenizer is None:
        return _chat(task, None)
    whole = told(tokenizer, _chat(task, None))
    if not limit or not shows(task) or len(chat_ids(tokenizer, whole)) <= limit:
        return whole
    low = 0
    high = max(len(s.split()) for s in task.sources.values())
    while high - low > 1:  # low fits, or nothing does
        middle = (low + high) // 2
        fits = len(chat_ids(tokenizer, told(tokenizer, _chat(task, middle)))) <= limit
        low, high = (middle, high) if fits else (low, middle)
    return told(tokenizer, _chat(task, low))


def shows(task: Task) -> bool:
    """True when the policy is given the task's sources: there are some, and the chat lacks one.

    An id that the chat does not name counts as lacking: nobody could cite it.
    """
    read = "\n".join(t["content"] for t in task.turns)
    filled = {i: s.strip() for i, s in task.sources.items() if s.strip()}
    return any(s not in read or i not in read for i, s in filled.items())


def is_cut(task: Task, tokenizer: Any, limit: int) -> bool:
    """True when the tool output of this task does not fit and is shortened."""
    return shows(task) and messages(task, tokenizer, limit) != messages(task, tokenizer)


def fitting(tasks: Sequence[Task], tokenizer: Any, settings: GRPOSettings) -> None:
    """DataError for a prompt that is too long; a warning where tool output is cut to fit."""
    limit, cut = settings.max_prompt_tokens, []
    for t in tasks:
        n = len(prompt_ids(tokenizer, t, limit))
        if n > limit:
            raise DataError(
                f"the prompt has {n} tokens, more than max_prompt_tokens={limit}",
                where=f"task {t.id!r}",
            )
        if is_cut(t, tokenizer, limit):
            cut.append(t.id)
    if cut:
        logger.warning(
            "the tool output of %d of %d prompts is cut to fit max_prompt_tokens=%d (first: %r)",
            len(cut),
            len(tasks),
            limit,
            cut[0],
        )


def _chat(task: Task, words: int | None) -> list[dict[str, str]]:
    """The chat of a task: system text and turns, with what is asked now among them."""
    turns = [dict(t) for t in task.turns]
    turns[len(task.history)]["content"] = asked(task, words)
    return [*([{"role": "system", "content": task.system}] if task.system else []), *turns]


def asked(task: Task, words: int | None = None) -> str:
    """The last turn of the user: the prompt, with the sources below it where it lacks them."""
    if not shows(task):
        return task.prompt
    return f"{task.prompt}\n\n{tool_output(task.sources, words)}"


def tool_output(sources: Mapping[str, str], words: int | None = None) -> str:
    """Snippets as the refiner's tools give them; words : of each that are kept (None: all).

    >>> print(tool_output({"S1": "Cats purr a lot."}, 2))
    <tool_output>
    <snippet id=S1>Cats purr ...</snippet>
    </tool_output>
    """
    lines = [f"<snippet id={i}>{_first(t, words)}</snippet>" for i, t in sources.items()]
    return "\n".join(["<tool_output>", *lines, "</tool_output>"])


def _first(text: str, words: int | None) -> str:
    kept = text.split()
    if words is None or len(kept) <= words:
        return text.strip()
    return " ".join([*kept[:words], "..."])


def answer(
    tokenizer: Any,
    task: Task,
    ids: Sequence[int],
    truncated: bool,
    name: str,
    confidence: float | None = None,
) -> Response:
    """A sampled answer as a record; confidence : exp(mean log-probability of its tokens), a score
    that is no probability yet.
    """
    text = tokenizer.decode(ids, skip_special_tokens=True).strip()
    return Response(
        task_id=task.id,
        id=f"{name}-{fingerprint([task.id, name, text])[:8]}",
        text=text,
        source=name,
        truncated=truncated,
        confidence=None if confidence is None else min(confidence, 1.0),
    )


def sequence_confidence(logprobs: Sequence[float]) -> float | None:
    """exp(mean log-probability), in (0, 1]; None for an answer of no tokens.

    >>> sequence_confidence([math.log(0.5), math.log(0.125)])
    0.25
    """
    return math.exp(math.fsum(logprobs) / len(logprobs)) if logprobs else None


class _Tape:
    """A logits processor that changes nothing and keeps the log-probability of each sampled token
    before top-k and top-p.

    It holds one step's (rows, vocabulary) at a time, where `output_logits` would keep them all.
    temperature : of the sampling.
    """

    def __init__(self, temperature: float):
        self.temperature, self.last, self.found = temperature, None, []

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        self.take(input_ids[:, -1])
        self.last = (scores.detach().float() / self.temperature).log_softmax(-1)
        return scores

    def take(self, tokens: Any) -> None:
        """Note the log-probabilities of the tokens (rows,) that were drawn from the last scores."""
        if self.last is not None:
            self.found.append(
                self.last.gather(-1, tokens[:, None].to(self.last.device))[:, 0].tolist()
            )


def _generate(
    loaded: Loaded,
    prompts: Sequence[Sequence[int]],
    settings: GRPOSettings,
    ends: Sequence[int],
    seed: int,
    heat: float,
) -> list[tuple[list[int], bool, list[float]]]:
    """Answers of the model's own `generate`: token ids, whether cut off, log-probabilities."""
    torch = import_torch()
    width = max(map(len, prompts))
    pad = loaded.tokenizer.pad_token_id
    device = next(loaded.model.parameters()).device
    ids = torch.tensor([[pad] * (width - len(p)) + list(p) for p in prompts], device=device)
    mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts], device=device)
    training, tape = loaded.model.training, _Tape(heat or 1.0)
    loaded.model.eval()
    with torch.no_grad(), torch.random.fork_rng():
        torch.manual_seed(seed)
        got = loaded.model.generate(
            input_ids=ids,
            attention_mask=mask,
            max_new_tokens=settings.max_answer_tokens,
            do_sample=heat > 0,
            **(dict(temperature=heat, top_p=settings.top_p, top_k=settings.top_k) if heat else {}),
            pad_token_id=pad,
            logits_processor=[tape],
        )
    loaded.model.train(training)
    tape.take(got[:, -1])
    out = []
    for row, line in enumerate(got[:, width:].tolist()):
        stop = next((j for j, t in enumerate(line) if t in ends), None)
        kept = line if stop is None else line[: stop + 1]
        out.append((kept, stop is None, [step[row] for step in tape.found[: len(kept)]]))
    return out


def wait(work: Any) -> Any:
    """The result of a coroutine, from a script, a cell of a notebook whose loop runs, or a
    callback; Ctrl-C stops it.
    """
    from ..judge import loop

    return loop.run(work)
