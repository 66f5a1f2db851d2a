"""Answers of a model to tasks: from a server, a GGUF file, or weights; each is paid or sampled once."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ..data import TaskSet, TaskSource, tasks_of
from ..errors import DataError
from ..judging import (
    Budget,
    Ledger,
    LLMJudge,
    Usage,
    judge_of,
    open_ledger,
)
from ..judging.factory import KINDS, split_spec
from ..judging.ledger import short_hash
from ..judging.local import describe_file
from ..judging.loop import every, wait
from ..judging.runner import Runner
from ..records import Response, Task, canonical
from ..system.progress import bar
from .evaluation import sample
from .models import messages, policy, resolve
from .result import METRICS, Result
from .settings import Settings

log = logging.getLogger(__name__)
# Kinds of model that a server answers for; every other name is of weights.
SERVED_KINDS = ("endpoint", "server", "small", "local")
ModelSource = str | Path | Mapping[str, Any]
LedgerSource = Ledger | str | Path | bool | None
BATCH_SIZE = 32  # answers of local weights between two writes to the ledger


class Sampling(msgspec.Struct, frozen=True, kw_only=True):
    """How answers are drawn. temperature : None is 0 for one answer, else 1. system : in place of the tasks' own."""

    n: int = 1
    temperature: float | None = None
    max_tokens: int = 1000
    system: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.n < 1 or self.max_tokens < 1:
            raise DataError(
                f"n is {self.n}, max_tokens {self.max_tokens}",
                where="answer",
                fix="both from 1 on",
            )
        if self.n > 1 and self.used_temperature == 0:
            raise DataError(
                "at temperature 0 all answers to a prompt are the same",
                where="answer(n=, temperature=)",
                fix="n=1, or a temperature above 0",
            )

    @property
    def used_temperature(self) -> float:
        """The temperature in use."""
        if self.temperature is None:
            return 0.0 if self.n == 1 else 1.0
        return self.temperature

    def chat(self, task: Task) -> list[dict[str, str]]:
        """The messages that a model answers."""
        if self.system is not None:
            task = msgspec.structs.replace(task, system=self.system)
        return messages(task)


def answer(
    tasks: TaskSource,
    model: ModelSource,
    n: int = 1,
    *,
    temperature: float | None = None,
    max_tokens: int = 1000,
    system: str | None = None,
    name: str | None = None,
    seed: int = 0,
    ledger: LedgerSource = None,
    budget: Budget | None = None,
    progress: bool = True,
) -> TaskSet:
    """Get n answers to each task from a model: the tasks, with these answers.

    model : "endpoint:MODEL" or a mapping {"endpoint": MODEL, "base_url": URL, ...} with the options of an endpoint
        judge; "server:FILE.gguf"; "small" and "local" (models for laptops); a Hugging Face name or folder; the folder
        of a training (its merged model, or its adapter on its base).
    temperature : default 0 for one answer and 1 for several. system : in place of the tasks' own system text.
    name : what the answers' `source` says (default: the model's name). seed : of local weights.
    ledger, budget : as in `kit.judge`. An answer that is stored is not paid again, and Ctrl-C loses nothing.

    `truncated` says that an answer was cut; `meta` holds tokens_in, tokens_out, cost (US dollars, None where the price
    is unknown), seconds and the thought that came before it. An answer that a provider refuses is missing, and a
    warning counts such answers.
    """
    sampling = Sampling(
        n=n,
        temperature=temperature,
        max_tokens=max_tokens,
        system=system,
        seed=seed,
    )
    rows = tasks_of(tasks)
    with open_ledger(ledger) as store:
        if writer := _served_writer(model, sampling):
            runner = Runner(writer, store, budget, progress=progress)
            responses = wait(_ask_all(runner, rows, sampling, name), runner.stop)
        else:
            responses = _sample_weights(str(model), rows, sampling, name, store)
    if lost := len(rows) * n - len(responses):
        log.warning("%d of %d answers are missing", lost, len(rows) * n)
    return TaskSet(tasks=rows, responses=responses)


def estimate_answers(
    tasks: TaskSource, model: ModelSource, n: int = 1, **options: Any
) -> Usage:
    """Calls, tokens and US dollars that `answer` would take; options as there. Nothing is sent.

    >>> tasks = [Task(id="t", prompt="Why is the sky blue?")]
    >>> estimate_answers(tasks, "endpoint:gpt-4o-mini", n=2, ledger=False).calls
    2
    """
    ledger = options.pop("ledger", None)
    sampling = Sampling(n=n, **options)
    writer = _served_writer(model, sampling)
    if writer is None:
        return Usage()
    runner = Runner(writer, ledger, dry=True)
    wait(_ask_all(runner, tasks_of(tasks), sampling, None), runner.stop)
    return runner.usage


# -- models behind a server ------------------------------------------------------
def _served_writer(model: ModelSource, sampling: Sampling) -> LLMJudge | None:
    """The endpoint that writes the answers; None where the model is weights."""
    kind = str(model).partition(":")[0]
    if not isinstance(model, Mapping) and kind not in KINDS:
        return None
    kind, subject, options = split_spec(model, where="model")
    if kind not in SERVED_KINDS:
        raise DataError(
            f"{kind!r} writes no answers",
            where="model",
            fix=f"one of {', '.join(SERVED_KINDS)}, or a name or folder of weights",
        )
    ours = {
        "how": "all",
        "extra": {},
        "temperature": sampling.used_temperature,
        "max_tokens": sampling.max_tokens,
    }
    writer = judge_of({kind: subject, **ours, **options}, where="model")
    assert isinstance(writer, LLMJudge)
    return writer


async def _ask_all(
    runner: Runner, tasks: Sequence[Task], sampling: Sampling, name: str | None
) -> list[Response]:
    """Answers in the order of the tasks; several are asked at once."""
    places = [(task, k) for task in tasks for k in range(sampling.n)]
    responses: list[Response | None] = [None] * len(places)
    queue: Iterator[tuple[int, tuple[Task, int]]] = iter(enumerate(places))
    settings = {"total": len(places), "desc": "answering", "unit": "answer"}

    async def worker(progress_bar: Any) -> None:
        # The workers share this iterator.
        for place, (task, k) in queue:
            responses[place] = await _ask_one(runner, task, k, sampling, name)
            progress_bar.update(1)

    shown = bar(disable=not runner.progress, **settings)
    with runner.opened_ledger, shown:
        count = min(len(places), runner.judge.concurrency)
        await every(worker(shown) for _ in range(count))
    return [r for r in responses if r is not None]


async def _ask_one(
    runner: Runner, task: Task, k: int, sampling: Sampling, name: str | None
) -> Response | None:
    """The k-th answer to a task, from the ledger or from the server; None where there is none."""
    writer = runner.judge
    chat = sampling.chat(task)
    key = short_hash(["answer", writer.identity, chat, k])
    stored = runner.ledger.find_call(key)
    while stored is None and not runner.dry:
        # Whoever asks the same now, in this process or another, is waited for.
        if runner.ledger.lease([key], runner.ledger.owner, writer.limit):
            break
        await asyncio.sleep(0.05)
        runner.raise_if_stopped()
        stored = runner.ledger.find_call(key)
    try:
        stored = runner.ledger.find_call(key) or await _pay(runner, task, chat, key)
    finally:
        runner.ledger.release([key], runner.ledger.owner)
    if stored is None:
        return None
    return _stored_response(stored, task, k, name or writer.name)


async def _pay(
    runner: Runner, task: Task, chat: list[dict[str, str]], key: str
) -> dict[str, Any] | None:
    """The call of an answer, stored before anybody reads it; None where there is no answer."""
    writer = runner.judge
    runner.raise_if_stopped()
    request = writer.request(chat)
    begin = time.monotonic()
    reply = await runner.send(writer, request)
    seconds = time.monotonic() - begin
    if reply.failure and not (reply.is_cut and reply.text):
        if not runner.dry:
            log.warning("no answer to task %s: %s", task.id, reply.reason)
        return None
    stored = runner.call_row(writer, request, reply) | {"key": key}
    about = {
        "seconds": seconds,
        "truncated": reply.is_cut,
        "thought": reply.thought,
    }
    stored["settings"] = canonical({"judge": writer.identity, "answer": about})
    runner.ledger.put([], stored)
    return stored


def _stored_response(
    call: Mapping[str, Any], task: Task, k: int, name: str
) -> Response:
    """The answer that a call of the ledger holds."""
    about = json.loads(call["settings"])["answer"]
    costs = {field: call[field] for field in ("tokens_in", "tokens_out", "cost")}
    return Response(
        task_id=task.id,
        id=f"{task.id}-{name}-{k + 1}",
        text=call["reply"],
        source=name,
        truncated=about["truncated"],
        meta={**costs, "seconds": about["seconds"], "thought": about["thought"]},
    )


# -- weights -----------------------------------------------------------------------
def _sample_weights(
    model: str,
    tasks: Sequence[Task],
    sampling: Sampling,
    name: str | None,
    ledger: Ledger,
) -> list[Response]:
    """Answers of local weights, in batches; a batch that is stored is not sampled again."""
    weights = _weights(model)
    # The place of a model does not change its answers, its weights do.
    identity = [
        "weights",
        _describe_weights(weights),
        msgspec.to_builtins(sampling),
    ]
    places = [(task, k) for task in tasks for k in range(sampling.n)]
    keys = {
        place: short_hash([*identity, sampling.chat(task), k])
        for place, (task, k) in enumerate(places)
    }
    calls = {place: ledger.find_call(key) for place, key in keys.items()}
    left = [place for place, call in calls.items() if call is None]
    loaded = None
    for start in bar(
        range(0, len(left), BATCH_SIZE), desc="answering", unit="batch"
    ):
        loaded = loaded or policy(weights, tasks)
        batch = left[start : start + BATCH_SIZE]
        begin = time.monotonic()
        responses = sample(
            loaded.model,
            loaded.tokenizer,
            [_with_system(places[place][0], sampling) for place in batch],
            name="answer",
            samples=1,
            temperature=sampling.used_temperature,
            most=sampling.max_tokens,
            # Every batch has random numbers of its own, also after a restart.
            seed=sampling.seed + batch[0],
        )
        seconds = (time.monotonic() - begin) / len(batch)
        for place, response in zip(batch, responses, strict=True):
            about = {
                "seconds": seconds,
                "truncated": response.truncated,
                "thought": "",
            }
            calls[place] = {
                "call": f"{time.time_ns():016x}{os.urandom(4).hex()}",
                "judge": model,
                "model": model,
                "created": time.time(),
                "tokens_in": 0,
                "tokens_out": 0,
                "cost": 0.0,
                "settings": canonical({"answer": about}),
                "request": json.dumps(sampling.chat(places[place][0])),
                "reply": response.text,
                "key": keys[place],
            }
            ledger.put([], calls[place])
    shown = name or Path(model).name
    return [
        _stored_response(calls[n], t, k, shown) for n, (t, k) in enumerate(places)
    ]


def _with_system(task: Task, sampling: Sampling) -> Task:
    if sampling.system is None:
        return task
    return msgspec.structs.replace(task, system=sampling.system)


def _weights(model: str) -> Settings:
    """The settings that load a model: a name, a folder of weights, or the folder of a training."""
    folder = Path(model).expanduser()
    if not (folder / METRICS).is_file():
        return Settings(model=model)
    run = Result.read(folder)
    last = run.stages[-1] if run.stages else run
    for merged in (last.folder / "merged", last.folder / "export" / "merged"):
        if (merged / "config.json").is_file():
            return Settings(model=str(merged))
    if last.settings["adapter"]:
        raise DataError(
            "this training began from an adapter, so its model must be merged first",
            where=str(folder),
            fix=f"kit export {folder}",
        )
    return Settings(model=last.settings["model"], adapter=str(last.adapter))


def _describe_weights(settings: Settings) -> list[str]:
    """What tells weights apart: names, sizes and a digest of the end of each file."""
    rows = [settings.model]
    for source in (resolve(settings.model), settings.adapter):
        if source and Path(source).is_dir():
            files = sorted(Path(source).glob("*.safetensors"))
            rows += [describe_file(file) for file in files]
    return rows
