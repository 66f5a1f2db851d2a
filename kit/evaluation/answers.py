"""Answers of a model to tasks: from a server, a GGUF file, or weights; each is paid or sampled once."""

from __future__ import annotations

import itertools
import json
import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from ..data import TaskSet, TaskSource, tasks_of
from ..errors import DataError
from ..judging import (
    Budget,
    Ledger,
    LedgerLike,
    LLMJudge,
    Usage,
    borrow_ledger,
    judge_of,
    wait,
)
from ..judging.judge import KINDS, split_spec
from ..judging.ledger import short_hash
from ..judging.question import RowPlan
from ..judging.runner import Runner
from ..records import Response, Task, canonical, count_of
from ..system.progress import bar
from ..system.settings import Count, NonNegative, make
from .language_models import Weights, find_weights, messages, sample

log = logging.getLogger(__name__)
# Kinds of model that a server answers for; every other name is of weights.
SERVED_KINDS = ("endpoint", "server", "small", "local")
BATCH_SIZE = 8  # answers of local weights between two writes to the ledger
ModelSource = str | Path | Mapping[str, Any]


class Sampling(msgspec.Struct, frozen=True, kw_only=True):
    """How answers are drawn. seed : of weights on this machine."""

    temperature: NonNegative
    n: Count = 1
    max_tokens: Count = 1000
    seed: int = 0


# The ledger key, the task and the number of an answer.
AnswerRow = tuple[str, Task, int]


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
    ledger: LedgerLike = None,
    budget: Budget | None = None,
    progress: bool = True,
) -> TaskSet:
    """Get n answers to each task from a model: the tasks, with these answers.

    model : "endpoint:MODEL" or a mapping {"endpoint": MODEL, "base_url": URL, ...} with the options of an endpoint
        judge; "server:FILE.gguf"; "small" and "local" (models for laptops); a Hugging Face name or folder; the folder
        of a training.
    temperature : default 0 for one answer and 1 for several. system : in place of the tasks' own system text.
    name : what the answers' `source` says (default: the model's name). seed : of local weights.
    ledger, budget : as in `kit.judge`. An answer that is stored is not paid again, and Ctrl-C loses nothing.

    `truncated` says that an answer was cut; `meta` holds tokens_in, tokens_out, cost (US dollars, None where the price
    is unknown), seconds and the thought that came before it. An answer that a provider refuses is missing, and a
    warning counts such answers.
    """
    writer, sampling, rows = plan_answers(
        tasks,
        model,
        n,
        temperature=temperature,
        max_tokens=max_tokens,
        system=system,
        seed=seed,
    )
    name = name or source_name(model)
    with borrow_ledger(ledger) as store:
        if isinstance(writer, Weights):
            sample_missing(writer, sampling, rows, str(model), store, progress)
        else:
            ask_missing(
                writer, rows, Runner(writer, store, budget, progress=progress)
            )
        responses = [
            response_of_call(call, task, k, name)
            for key, task, k in rows
            if (call := store.find_call(key))
        ]
    if lost := len(rows) - len(responses):
        log.warning("%d of %s missing", lost, count_of(len(rows), "answer"))
    return TaskSet(tasks=tasks_of(tasks), responses=responses)


def estimate_answers(
    tasks: TaskSource,
    model: ModelSource,
    n: int = 1,
    *,
    ledger: LedgerLike = None,
    **options: Any,
) -> Usage:
    """Calls, tokens and US dollars that `answer` would take; options as there. Nothing is sent.

    >>> tasks = [Task(id="t", prompt="Why is the sky blue?")]
    >>> estimate_answers(tasks, "endpoint:gpt-4o-mini", n=2, ledger=False).calls
    2
    """
    writer, _, rows = plan_answers(tasks, model, n, **options)
    if isinstance(writer, Weights):
        return Usage()
    return ask_missing(writer, rows, Runner(writer, ledger, dry=True))


def plan_answers(
    tasks: TaskSource,
    model: ModelSource,
    n: int,
    *,
    temperature: float | None = None,
    system: str | None = None,
    **options: Any,
) -> tuple[LLMJudge | Weights, Sampling, list[AnswerRow]]:
    """Who answers (an endpoint, or weights), how, and what; DataError for numbers that make no sense."""
    prompts = tasks_of(tasks)
    if not prompts:
        raise DataError(
            "there is no prompt to answer",
            where=str(tasks),
            fix="a file of tasks, with their prompts",
        )
    if temperature is None:
        temperature = float(n > 1)
    if n > 1 and temperature == 0:
        raise DataError(
            "at temperature 0 all answers to a prompt are the same",
            where="answer(n=, temperature=)",
            fix="n=1 (--n 1), or a temperature above 0 (--temperature)",
        )
    sampling = make(
        Sampling, {"n": n, "temperature": temperature, **options}, where="answer"
    )
    writer = find_writer(model, sampling) or find_weights(str(model))
    identity = writer.identity
    if isinstance(writer, Weights):
        # What a server answers hangs on its own settings; here all of them are ours.
        identity = [identity, msgspec.to_builtins(sampling)]
    rows = []
    for task, k in itertools.product(prompts, range(n)):
        if system is not None:
            task = msgspec.structs.replace(task, system=system)
        rows.append((short_hash(["answer", identity, messages(task), k]), task, k))
    return writer, sampling, rows


def find_writer(model: ModelSource, sampling: Sampling) -> LLMJudge | None:
    """The endpoint that writes the answers; None where the model is weights."""
    if not isinstance(model, Mapping) and str(model).partition(":")[0] not in KINDS:
        return None
    kind, subject, options = split_spec(model, where="model")
    if kind not in SERVED_KINDS:
        raise DataError(
            f"{kind!r} writes no answers",
            where="model",
            fix=f"one of {', '.join(SERVED_KINDS)}, or a name or folder of weights",
        )
    return cast(
        LLMJudge,
        judge_of(
            {
                kind: subject,
                "how": "all",
                "extra": {},
                "temperature": sampling.temperature,
                "max_tokens": sampling.max_tokens,
                **options,
            },
            where="model",
        ),
    )


def source_name(model: ModelSource) -> str:
    """What the answers of a model say as their `source`, where they are given no other name.

    >>> source_name("endpoint:gpt-4o-mini")
    'gpt-4o-mini'
    """
    writer = find_writer(model, Sampling(temperature=0.0))
    return writer.name if writer else Path(str(model)).name


def ask_missing(writer: LLMJudge, rows: list[AnswerRow], runner: Runner) -> Usage:
    """Ask for the answers that the ledger has not, several at once, and store them; what it took."""

    def plan_row(task: Task) -> RowPlan:
        begin = time.monotonic()
        reply = yield writer.request(messages(task))
        if not reply.failure or (reply.is_cut and reply.text):
            about = {
                "judge": writer.identity,
                "answer": {
                    "truncated": reply.is_cut,
                    "thought": reply.thought,
                    "seconds": time.monotonic() - begin,
                },
            }
            return {"settings": canonical(about)}
        if not runner.dry:
            log.warning("no answer to task %s: %s", task.id, reply.reason)
        return {}

    wait(
        runner.work_off(
            [(key, plan_row(task)) for key, task, _ in rows],
            runner.pay_once,
            "answering",
        ),
        runner.stop,
    )
    return runner.usage


def response_of_call(
    call: Mapping[str, Any], task: Task, k: int, name: str
) -> Response:
    """The answer that a call of the ledger holds."""
    about = json.loads(call["settings"])["answer"]
    return Response(
        task_id=task.id,
        id=f"{task.id}-{name}-{k + 1}",
        text=call["reply"],
        source=name,
        truncated=about.pop("truncated"),
        meta={
            **{field: call[field] for field in ("tokens_in", "tokens_out", "cost")},
            **about,
        },
    )


def sample_missing(
    weights: Weights,
    sampling: Sampling,
    rows: list[AnswerRow],
    model: str,
    ledger: Ledger,
    progress: bool,
) -> None:
    """Sample the answers that the ledger has not, in batches; each batch is stored."""
    left = [row for row in rows if ledger.find_call(row[0]) is None]
    loaded = None
    for start in bar(
        range(0, len(left), BATCH_SIZE),
        desc="answering",
        unit="batch",
        disable=not progress,
    ):
        loaded = loaded or weights.load()
        batch, begin = left[start : start + BATCH_SIZE], time.monotonic()
        responses = sample(
            *loaded,
            [task for _, task, _ in batch],
            name="answer",
            samples=1,
            temperature=sampling.temperature,
            max_new_tokens=sampling.max_tokens,
            template_options=weights.template_options,
            # Every batch has random numbers of its own, also after a restart.
            seed=rows.index(batch[0]) + sampling.seed,
            progress=False,
        )
        seconds = (time.monotonic() - begin) / len(batch)
        for (key, task, _), response in zip(batch, responses, strict=True):
            ledger.put(
                [],
                {
                    "judge": model,
                    "model": model,
                    "tokens_in": 0,
                    "tokens_out": 0,
                    "cost": 0.0,
                    "settings": canonical(
                        {
                            "answer": {
                                "truncated": response.truncated,
                                "thought": "",
                                "seconds": seconds,
                            }
                        }
                    ),
                    "request": json.dumps(messages(task)),
                    "reply": response.text,
                    "key": key,
                },
            )
