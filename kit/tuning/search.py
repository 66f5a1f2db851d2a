"""Search for a better judge prompt with GEPA (Agrawal et al. 2025): an LM reads the judge's
mistakes on train and rewrites its instructions.

The searched text is the judge's system prompt. Fences, output format and ids stay the kit's own, so
no proposal can break the parser. Every proposal is kept as a candidate; which one is used is
decided afterwards, on dev, by `Study`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..data import TaskSet, load_tasks
from ..errors import DataError, MissingError
from ..judge.prices import tokens
from ..judge.records import Forecast
from ..records import Criterion, Response, Task, Verdict, grouped
from ..tables import averaged, labels_of, ratings_of
from .makers import MakeJudge, Reflector
from .seal import words

COMPONENT = "judge_instructions"
LEAST = 300  # rows that a search may judge, where nothing is said and ROUNDS rounds take fewer
ROUNDS = 5

# findings that cost a label
ODD = ("unreadable-label", "unknown-criterion", "other-criterion", "two-labels")

TEMPLATE = """You improve the instructions of a judge. The judge reads a task, an answer and
one criterion, and says whether the answer meets the criterion.

Its instructions now:
```
<curr_param>
```

Cases with the judge's verdict and what people said:
<side_info>

Write new instructions under which the judge would agree with people on such cases. State general
rules about how strictly to read a criterion and what counts as evidence; do not quote the cases,
name their topics or list their answers: the judge will see other tasks. Do not describe an output
format, it is given elsewhere. Put the new instructions between two lines of ```.
"""


@dataclass(frozen=True)
class Labelled:
    """One human label: does this response meet this criterion? human is 1.0 or 0.0."""

    task: Task
    response: Response
    criterion: Criterion
    human: float
    cluster: str = ""


def labelled_rows(labels: Any) -> list[Labelled]:
    """One row a label, in the order of answers x criteria; DataError where there are none.

    Each row's task holds only criteria that a judge decides and people labelled on that answer.
    """
    labels = loaded(labels)
    said = {key: float(value >= 0.5) for key, value in labels_of(labels).items()}
    out, prompts = [], _prompts(labels.tasks)
    for r in labels.responses:
        task = labels.by_id[r.task_id]
        asked = tuple(c for c in task.criteria if (*r.ids, c.id) in said and not c.by_code)
        task = replace(task, criteria=asked)
        out += [Labelled(task, r, c, said[*r.ids, c.id], prompts[task.id]) for c in asked]
    if len({row.human for row in out}) < 2:
        raise DataError(
            f"{len(out)} labels, all alike or none",
            where="labels",
            fix="give answers with labels of people, some met and some unmet",
        )
    return out


def _prompts(tasks: Sequence[Task]) -> dict[str, str]:
    """By the task's id its prompt, by which it is in train, dev or test whatever the id is: tasks
    that ask the same, or are of one group, are one; named by the group, or by the words.
    """
    from ..data.words import together

    side = together(tasks, groups=True)
    names = {t.id: (t.group is None, words(t.asked) if t.group is None else t.group) for t in tasks}
    return {i: min(names[k] for k in side[i])[1] for i in names}


def loaded(labels: Any) -> Any:
    """The TaskSet of a file or of rows."""
    return labels if isinstance(labels, TaskSet) else load_tasks(labels)


def left_out(labels: Any) -> list[str]:
    """Which labels cannot be used or are rounded, and how many: raters split evenly, levels, and
    what reading found.
    """
    means = list(map(averaged, ratings_of(labels).values()))
    ties = means.count(None)
    between = sum(x not in (None, 0.0, 1.0) for x in means)
    notes = [f"{ties} rows have no label: the raters are split evenly"] if ties else []
    notes += [f"{between} labels lie between met and unmet: .5 and more is met"] if between else []
    said = grouped((f.code, f.message) for f in labels.findings if f.code in ODD)
    return notes + [f"{len(m)} labels left out ({code}), as: {m[0]}" for code, m in said.items()]


def ask(
    make_judge: MakeJudge,
    instructions: str,
    rows: Sequence[Labelled],
    *,
    ledger: Any = None,
    budget: Any = None,
) -> list[Verdict]:
    """The judge's verdict on every row, in order.

    All criteria of an answer's task go out together, also those that no row asks for: a verdict
    may depend on its neighbours, and the next rows find theirs in the ledger.
    """
    from ..judge import judge

    first: dict[tuple[str, str, str], tuple[str, Labelled]] = {}  # of each answer: name and row
    keys = [(row.task.id, row.response.id, row.response.text) for row in rows]
    for key, row in zip(keys, rows, strict=True):
        first.setdefault(key, (f"{len(first)}", row))
    got = judge(
        [replace(row.task, id=name) for name, row in first.values()],
        [replace(row.response, task_id=name) for name, row in first.values()],
        judge=make_judge(instructions),
        ledger=ledger,
        budget=budget,
        progress=False,
    )
    found = {(v.task_id, v.criterion_id): v for v in got}
    both = zip(keys, rows, strict=True)
    verdicts = ((found[first[key][0], row.criterion.id], row) for key, row in both)
    return [replace(v, task_id=row.task.id) for v, row in verdicts]


def row_weights(rows: Sequence[Labelled]) -> dict[float, float]:
    """Weight of a row by its human label, so that both labels count the same in a sum; the smaller
    one is 1.

    Without it the search climbs raw agreement, and a judge that passes everything wins where most
    answers pass.

    >>> row_weights([Labelled(None, None, None, h) for h in (1, 1, 1, 0)])
    {0.0: 3.0, 1.0: 1.0}
    """
    n = {h: sum(r.human == h for r in rows) for h in (0.0, 1.0)}
    if min(n.values()) == 0:
        raise DataError(
            "all labels are the same",
            where="rows",
            fix="a search needs rows that people passed and rows that they failed",
        )
    return {h: max(n.values()) / n[h] for h in (0.0, 1.0)}


class JudgeAdapter:
    """GEPA's view of a judge: `evaluate` asks it, `make_reflective_dataset` shows its mistakes.
    Unknown verdicts score 0 and say why. more : ledger and budget.
    """

    propose_new_texts = None

    def __init__(self, make_judge: MakeJudge, weights: Mapping[float, float], **more: Any) -> None:
        self.make_judge, self.weights, self.more = make_judge, dict(weights), more

    def evaluate(
        self, batch: list[Labelled], candidate: dict[str, str], capture_traces: bool = False
    ) -> Any:
        """Scores: the row's weight where judge and human agree, else 0."""
        from gepa.core.adapter import EvaluationBatch

        verdicts = ask(self.make_judge, candidate[COMPONENT], batch, **self.more)
        scores = [
            self.weights[r.human] * float(v.known and (v.value >= 0.5) == (r.human == 1.0))
            for r, v in zip(batch, verdicts, strict=True)
        ]
        traces = list(zip(batch, verdicts, strict=True)) if capture_traces else None
        return EvaluationBatch(outputs=verdicts, scores=scores, trajectories=traces)

    def make_reflective_dataset(
        self, candidate: dict[str, str], eval_batch: Any, components_to_update: list[str]
    ) -> dict[str, list[dict[str, Any]]]:
        """One record per row: what was judged, the verdict and its reason, and what people said."""
        rows = [_lesson(r, v) for r, v in eval_batch.trajectories or []]
        return dict.fromkeys(components_to_update, rows)


def _lesson(row: Labelled, v: Verdict) -> dict[str, Any]:
    people = "met" if row.human == 1.0 else "not met"
    said = {"met": "met", "unmet": "not met"}.get(
        v.status, f"no usable verdict ({v.failure})" if not v.known else f"level {v.value:g}"
    )
    right = v.known and (v.value >= 0.5) == (row.human == 1.0)
    feedback = f"Right: people also say {people}." if right else f"Wrong: people say {people}."
    return {
        "Inputs": {
            "Task": _cut(row.task.prompt),
            "Answer": _cut(row.response.text),
            "Criterion": row.criterion.text,
        },
        "Generated Outputs": {"Verdict": said, "Reason": _cut(v.reason or "")},
        "Feedback": feedback,
    }


def _cut(text: str, most: int = 3000) -> str:
    return text if len(text) <= most else text[: most // 2] + " [...] " + text[-most // 2 :]


def forecast(
    trials: Sequence[Labelled], judge: Any, size: Size, reflector: Reflector, minibatch: int = 6
) -> Forecast:
    """What a search of this size may cost, with prompts as long as this judge's.

    Each row as a call of its own, on the dearest answer; the reflections, at the price of who
    rewrites; and the rows `trials` for the baseline and all that may be found. Calls are an upper
    limit, where none is repeated.
    """
    each = {(r.task.id, r.response.id): r for r in trials}.values()
    ask = getattr(judge, "forecast", lambda *_: Forecast(calls=1, cost=None))
    asks = [ask(r.task, r.response, r.task.criteria) for r in each]
    dearest = max(asks, key=lambda f: (f.calls, f.tokens_in))
    lesson = dearest.tokens_in + dearest.tokens_out
    reflection = reflector.forecast(minibatch * lesson + tokens(len(TEMPLATE)))
    reflections = (size.most - size.tracked - size.once) // (size.once - size.tracked) + 1
    found = (size.most - size.tracked) // size.once
    parts = [dearest] * size.most + [reflection] * reflections + asks * (1 + found)
    return sum(parts, Forecast())


@dataclass(frozen=True)
class Searched:
    """What a search found: instructions by name ("seed", "p1", ...), in order of discovery, and
    what it cost in judged rows.
    """

    instructions: Mapping[str, str]
    train_scores: Mapping[str, float]
    judged_rows: int


def search(
    rows: Sequence[Labelled],
    *,
    make_judge: MakeJudge,
    reflect: Callable[[str], str],
    seed_text: str,
    max_rows: int | None = None,
    minibatch: int = 6,
    ledger: Any = None,
    budget: Any = None,
    seed: int = 0,
) -> Searched:
    """Let GEPA rewrite the instructions, on the train rows only.

    rows : train rows. make_judge : instructions -> judge (see makers.maker). reflect : the LM
        that rewrites, prompt -> text.
    max_rows : cap on judged rows (default: as `size` says); a round that may pass it is not begun.
    GEPA tracks its Pareto front on half of the clusters; the rest feed the reflection.
    What the rewriter or the judge raises ends the search; the ledger keeps what was paid.
    """
    try:
        import gepa
    except ImportError as e:
        raise MissingError("the package gepa is not installed", fix="pip install gepa") from e
    weights = row_weights(rows)
    feed, track = _halves(rows, seed)
    planned = size(rows, max_rows, minibatch=minibatch, seed=seed)
    begin = planned.most - planned.once  # judged rows until which a round is begun
    adapter = JudgeAdapter(make_judge, weights, ledger=ledger, budget=budget)
    failed: list[Exception] = []

    def rewrite(prompt: Any) -> str:
        """GEPA swallows what a rewriter raises, and asks on: the first error ends the search."""
        if not failed:
            try:
                return reflect(prompt if isinstance(prompt, str) else str(prompt))
            except Exception as e:
                failed.append(e)
        raise failed[0]

    found = gepa.optimize(
        seed_candidate={COMPONENT: seed_text},
        trainset=feed,
        valset=track,
        adapter=adapter,
        reflection_lm=rewrite,
        reflection_prompt_template=TEMPLATE,
        reflection_minibatch_size=min(minibatch, len(feed)),
        stop_callbacks=lambda state: bool(failed) or state.total_num_evals > begin,
        perfect_score=min(weights.values()),
        logger=SimpleNamespace(log=lambda message: None),
        seed=seed,
        track_best_outputs=False,
        raise_on_exception=True,
    )
    if failed:
        raise failed[0]
    names = ["seed", *(f"p{i}" for i in range(1, len(found.candidates)))]
    return Searched(
        {n: c[COMPONENT] for n, c in zip(names, found.candidates, strict=True)},
        dict(zip(names, map(float, found.val_aggregate_scores), strict=True)),
        int(found.total_metric_calls or 0),
    )


@dataclass(frozen=True)
class Size:
    """How much a search judges: rows that are tracked, rows that one round may judge (a minibatch
    before and after, then what is tracked), and the most of all.
    """

    tracked: int
    once: int
    most: int


def size(
    rows: Sequence[Labelled],
    most: int | None = None,
    *,
    minibatch: int = 6,
    seed: int = 0,
) -> Size:
    """The size of a search on these rows of train.

    most : cap on judged rows; None: the first look at what is tracked and ROUNDS rounds, LEAST or
    more. DataError where it is too few for the first look and one round.
    """
    feed, track = _halves(rows, seed)
    once = 2 * min(minibatch, len(feed)) + len(track)
    least = len(track) + once
    if most is None:
        most = max(LEAST, len(track) + ROUNDS * once)
    if not isinstance(most, int) or most < least:
        raise DataError(
            f"{most!r} rows are too few for one round of a search",
            where="rows",
            fix=f"give rows={least} or more (of `kit tune`: --rows {least})",
        )
    return Size(len(track), once, most)


def _halves(rows: Sequence[Labelled], seed: int) -> tuple[list[Labelled], list[Labelled]]:
    names = sorted({r.cluster or r.task.id for r in rows})
    if len(names) < 2:
        raise DataError(
            "a search needs rows of at least two prompts",
            where="rows",
            fix="label answers to more prompts",
        )
    order = np.random.default_rng(seed).permutation(len(names))
    kept = {names[i] for i in order[: round(len(names) / 2)]}
    return [r for r in rows if (r.cluster or r.task.id) not in kept], [
        r for r in rows if (r.cluster or r.task.id) in kept
    ]
