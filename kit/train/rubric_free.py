"""What no rubric asked for, before and after training: a look aside at what the gain may have cost.

A policy can meet every criterion in ever stranger language. Beside the reward stand the untrained
model's opinion of each answer (mean log-probability a token, adapter off: how much like its own
language it is), length, and variety. None of them is a judge of quality: a rewarded answer may well
be less like what the model used to say. They show where to read.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Sequence
from typing import Any

from ..checks import text as text_of
from ..records import Response, Task
from . import answers, evaluation
from .device import import_torch
from .models import Loaded


def likelihoods(
    loaded: Loaded, tasks: Sequence[Task], given: Sequence[Response]
) -> list[float | None]:
    """Mean log-probability a token (natural, <= 0) of each answer under the untrained model; None
    for an empty one.
    """
    by_id, model = {t.id: t for t in tasks}, loaded.model
    training, untrained = model.training, getattr(model, "disable_adapter", contextlib.nullcontext)
    model.eval()
    with import_torch().no_grad(), untrained():
        out = [_likelihood(loaded, by_id[r.task_id], r.text) for r in given]
    model.train(training)
    return out


def _likelihood(loaded: Loaded, task: Task, text: str) -> float | None:
    torch, tokenizer = import_torch(), loaded.tokenizer
    said = tokenizer(text, add_special_tokens=False)["input_ids"]
    if not said:
        return None
    ids = torch.tensor([[*answers.prompt_ids(tokenizer, task), *said]]).to(loaded.model.device)
    logits = loaded.model(input_ids=ids, logits_to_keep=len(said) + 1, use_cache=False).logits
    logp = logits[0, :-1].float().log_softmax(-1)  # (N, V)
    return float(logp.gather(-1, ids[0, -len(said) :, None]).mean())


def distinct_pairs(given: Sequence[Response]) -> float:
    """Different pairs of neighbouring words over all pairs of all answers, in [0, 1] (distinct-2,
    Li et al. 2016).

    >>> distinct_pairs([Response(task_id="t", id="r", text="so it is so it is")])
    0.6
    """
    pairs = [p for r in given for p in _pairs(r.text)]
    return len(set(pairs)) / len(pairs) if pairs else float("nan")


def _pairs(text: str) -> list[tuple[str, str]]:
    words = [w.casefold() for w in text_of.words(text)]
    return list(itertools.pairwise(words))


def compare(
    loaded: Loaded,
    tasks: Sequence[Task],
    before: evaluation.Evaluation,
    after: evaluation.Evaluation,
) -> list[dict[str, Any]]:
    """Rows of a table: what, before, after, difference (paired by prompt; none for what is measured
    on all answers at once).
    """
    each = [likelihoods(loaded, tasks, e.responses) for e in (before, after)]
    long = [[float(len(r.text.split())) for r in e.responses] for e in (before, after)]
    rows = [
        _row("log-probability a token, untrained model", each, before, after),
        _row("words", long, before, after),
    ]
    some = [distinct_pairs(e.responses) for e in (before, after)]
    return [
        *rows,
        {"what": "distinct pairs of words", "before": some[0], "after": some[1], "difference": ""},
    ]


def _row(
    what: str, values: Sequence[Any], before: evaluation.Evaluation, after: evaluation.Evaluation
) -> dict[str, Any]:
    b, a = before.clusters, after.clusters
    return {
        "what": what,
        "before": evaluation.mean_by_cluster(values[0], b).value,
        "after": evaluation.mean_by_cluster(values[1], a).value,
        "difference": str(evaluation.paired(*values, b, a)),
    }
