"""What SFT and DPO learn from: rows of a file, exact checks that know the answer, or the model's own answers."""

import random
import re
from collections.abc import Callable, Sequence
from operator import itemgetter
from statistics import fmean
from typing import Any, Literal

import msgspec
import numpy as np

from ..errors import DataError
from ..evaluation import messages, passes
from ..records import Grade, Response, Task, group
from ..system.settings import Count

# percent, the confidences that `estimates` teaches
LEVELS = np.array([1, 10, 25, 50, 75, 90, 99])
_CONFIDENCE = re.compile(r"[\s.]*\bconfidence:.*\Z", re.I | re.S)
Sample = tuple[Task, Response, Grade]
# task, answer without its confidence, whether it is right, token probability
Outcome = tuple[Task, str, bool, float]


class Source(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the rows of a stage come from, when not from a file.

    source : "exact", the answer that a task's exact check accepts (with one of `confidence`, percent, behind it).
        "own", pairs for DPO: the best against the worst of `samples` own answers and the accepted one.
        "best", for SFT: the best of `n` own answers to a prompt by the training's reward.
        "outcomes", own answers with 99% where right and 1% where wrong; "estimates", with the chance to be right.
    tasks : the first so many training tasks (None: all).
    """

    source: Literal["exact", "own", "best", "outcomes", "estimates"]
    tasks: Count | None = None
    samples: Count = 2
    n: Count = 8
    confidence: tuple[int, ...] = ()


def _turn(text: str) -> list[dict[str, str]]:
    return [{"role": "assistant", "content": text}]


def demonstration(task: Task, text: str) -> dict[str, Any]:
    """A row for SFT: the chat as it is asked later, and the answer. Nothing is learned from the chat."""
    return {"prompt": messages(task), "completion": _turn(text)}


def preference(task: Task, chosen: str, rejected: str) -> dict[str, Any]:
    """A row for DPO."""
    return {
        "prompt": messages(task),
        "chosen": _turn(chosen),
        "rejected": _turn(rejected),
    }


def of_answers(
    tasks: Sequence[Task], responses: Sequence[Response], stage: str
) -> list[dict[str, Any]]:
    """Rows out of a loaded file: demonstrations for SFT, chosen and rejected answers for DPO.

    A {text} row in an instruction layout has become a prompt and an answer, so it teaches the chat layout.
    """
    answers = group((r.task_id, (r.meta.get("role"), r.text)) for r in responses)
    rows = []
    for task in tasks:
        of = dict(answers.get(task.id, ()))
        if stage == "sft" and "demonstration" in of:
            rows.append(demonstration(task, of["demonstration"]))
        elif stage == "dpo" and {"chosen", "rejected"} <= of.keys():
            # such a pair has no gradient, and is nearly always a mistake
            if of["chosen"] == of["rejected"]:
                raise DataError(
                    "chosen and rejected are the same text",
                    where=f"task {task.id!r}",
                )
            rows.append(preference(task, of["chosen"], of["rejected"]))
    if not rows:
        raise DataError(
            f"there is no row for {stage}",
            where="rows",
            fix="{prompt, completion} or {text} for SFT, {prompt, chosen, rejected} for DPO",
        )
    return rows


def exact_answer(task: Task) -> str | None:
    """The answer that an exact check of the task accepts, None where it has no such check."""
    return next(
        (
            str(c.check["answers"][0])
            for c in task.criteria
            if c.check and c.check.get("name") == "exact"
        ),
        None,
    )


def exact(tasks: Sequence[Task], source: Source, seed: int) -> list[dict[str, Any]]:
    """Demonstrations of the accepted answers, some with a confidence drawn from `source.confidence`."""
    rng, rows = random.Random(f"confidence/{seed}"), []
    for task in tasks[: source.tasks]:
        text = exact_answer(task)
        # the answer of a judge would be a guess
        if text is None:
            raise DataError(
                "no exact check knows the answer",
                where=f"task {task.id!r}",
                fix="rows: FILE",
            )
        if source.confidence:
            text = with_confidence(text, rng.choice(source.confidence))
        rows.append(demonstration(task, text))
    return rows


def with_confidence(text: str, percent: int) -> str:
    """An answer with its confidence behind it."""
    return f"{text}. Confidence: {percent}%"


def from_answers(
    source: Source,
    tasks: Sequence[Task],
    demonstrations: Sequence[dict[str, Any]],
    answer: Callable[..., list[Sample]],
) -> list[dict[str, Any]]:
    """Rows made of the model's own answers.

    demonstrations : what it learned from before; it is asked about other questions.
    answer : (tasks, samples, greedy) -> answers with their grades.
    """
    if source.source == "own":
        return pairs(answer(tasks[: source.tasks], source.samples, False))
    if source.source == "best":
        return best_answers(answer(tasks[: source.tasks], source.n, False))
    # what was shown is known by heart: its confidence would say nothing
    chats = [row["prompt"] for row in demonstrations]
    fresh = [t for t in tasks if messages(t) not in chats][: source.tasks]
    if source.source == "estimates":
        return estimates(outcomes(answer(fresh, 1, True)))
    return [
        demonstration(task, with_confidence(text, 99 if right else 1))
        for task, text, right, _ in outcomes(answer(fresh, 1, False))
    ]


def best_answers(answers: Sequence[Sample]) -> list[dict[str, Any]]:
    """A demonstration of the best whole answer to each task, where it earned more than 0 or than the answers' mean."""
    rows, tasks = [], {task.id: task for task, _, _ in answers}
    by_task = group(
        # a cut answer must not be taught as a whole one
        (task.id, (bool(r.text.strip()) and not r.truncated, g.score, r.text))
        for task, r, g in answers
        if g.score is not None
    )
    for i, of in by_task.items():
        is_whole, score, text = max(of)
        if is_whole and score > min(0.0, fmean(map(itemgetter(1), of))):
            rows.append(demonstration(tasks[i], text))
    return rows


def pairs(answers: Sequence[Sample]) -> list[dict[str, Any]]:
    """The best against the worst answer to each task; the one that an exact check accepts is among them."""
    rows = []
    for of in group(
        (task.id, (task, r.text, g.score)) for task, r, g in answers
    ).values():
        task = of[0][0]
        scores = [
            *((score, text) for _, text, score in of if text.strip()),
            # where all own answers are wrong there would be nothing to prefer
            (1.0, exact_answer(task)),
        ]
        decided = [(s, text) for s, text in scores if None not in (s, text)]
        best, worst = (
            max(decided, default=(0.0, "")),
            min(decided, default=(0.0, "")),
        )
        if best[0] > worst[0]:
            rows.append(preference(task, best[1], worst[1]))
    return rows


def outcomes(answers: Sequence[Sample]) -> list[Outcome]:
    """Whole answers that are decided, without their confidence."""
    out = []
    for task, response, grade in answers:
        right = passes(task, response, grade)
        text = _CONFIDENCE.sub("", response.text).strip().rstrip(".")
        # a cut answer must not be taught as a whole one
        if text and right is not None and not response.truncated:
            out.append((task, text, bool(right), response.confidence or 0.0))
    if not out:
        raise DataError(
            f"none of the model's {len(answers)} answers is whole and decided",
            where="rows",
            fix="raise max_answer_tokens, or train the stage before for longer",
        )
    return out


def estimates(answers: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Own answers with the nearest of LEVELS to their chance to be right.

    The chance is a logistic regression on the kind of question and the logit of the token probability: the
    outcomes without their noise.
    """
    import pandas as pd
    from sklearn.linear_model import LogisticRegression

    tasks, texts, right, tokens = zip(*answers, strict=True)
    design = pd.get_dummies(pd.Series([t.kind or "" for t in tasks])).astype(float)
    # the logit of 0 or 1 is infinite
    token = np.clip(tokens, 0.01, 0.99)
    design["logit"] = np.log(token / (1 - token))
    chance = np.array(right, dtype=float)
    if 0 < chance.mean() < 1:
        chance = (
            LogisticRegression(max_iter=1000)
            .fit(design.to_numpy(), right)
            .predict_proba(design.to_numpy())[:, 1]
        )
    return list(
        map(
            demonstration,
            tasks,
            map(
                with_confidence,
                texts,
                LEVELS[np.abs(LEVELS - 100 * chance[:, None]).argmin(1)].tolist(),
            ),
        )
    )
