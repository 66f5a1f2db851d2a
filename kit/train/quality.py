"""What a stage did to held-out answers: accuracy, its paired gain, what broke, and the confidence
that the text states.

Correct means that every criterion is met, where code decides all of them; else that at least half
of the facts and directions that the task asks for are asserted and right. The confidence has no
part in it, so that the calibration error is not circular.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from .. import calibration, confidence
from ..checks import check
from ..records import Response, Task
from ..rewards.aggregate import grade
from ..stats.estimate import Estimate
from . import evaluation, policy


@dataclass(frozen=True, kw_only=True)
class Quality:
    """Held-out answers of one stage.

    accuracy : share of correct answers, t over prompts; reward : mean reward; ece : debiased
    calibration error of the stated confidence with its interval (NaN where too few state one);
    ece_plain : what other libraries print.
    stated : share of answers that state a confidence as a number; gain, gain_accuracy : paired
    differences to the start;
    step : of accuracy, to the stage that this one began from; kinds : the same per kind of task,
    which shows what broke.
    net : accuracy where an answer can be known, plus that of "unknown" where it cannot, minus 1:
    always answering and always abstaining earn 0 (NaN where the tasks do not say which can be
    known). seconds : of training.
    """

    stage: str
    accuracy: Estimate
    reward: Estimate
    ece: Estimate
    ece_plain: float
    stated: Estimate
    gain: Estimate
    gain_accuracy: Estimate
    step: Estimate
    net: Estimate
    kinds: dict[str, Estimate]
    seconds: float = math.nan

    def row(self) -> dict[str, Any]:
        """Plain values for a table."""
        out: dict[str, Any] = {"stage": self.stage}
        for f in fields(self)[1:]:
            e = getattr(self, f.name)
            out |= _spread(f.name, e) if isinstance(e, Estimate) else {f.name: e}
        out["kinds"] = {k: _spread("step", e) for k, e in self.kinds.items()}
        return out | {"answers": self.reward.n, "prompts": self.reward.n_clusters}


def _spread(name: str, e: Estimate) -> dict[str, float]:
    return {name: e.value, f"{name}_low": e.low, f"{name}_high": e.high}


def correct(task: Task, response: Response) -> float | None:
    """1.0 when the answer is right, else 0.0; None where the task does not say what is right,
    or the answer is not read (`claims.base.unread`).

    Right: all criteria are met, where code decides them; else at least half of the expected facts
    and directions. What the answer says about its confidence is removed before, so it cannot change
    the outcome.
    """
    from ..claims.base import answer, applicable, unread
    from ..claims.uncertainty import outcome

    if task.criteria and all(c.check for c in task.criteria):
        return _fulfilled(task, response)
    asked = [
        n
        for n, k in (("factual", "facts"), ("direction", "claims"))
        if n in applicable(task) and task.truth.get(k)
    ]
    known = asked and not unread(task, answer(task, response).text)
    return float(outcome(task, answer(task, response)) >= 0.5) if known else None


def _fulfilled(task: Task, response: Response) -> float | None:
    verdicts = [check(task, response, c) for c in task.criteria]
    score = grade(task, verdicts, how="flip", response_id=response.id).score
    return None if score is None else float(score == 1.0)


def qualities(
    evaluations: Sequence[evaluation.Evaluation],
    tasks: Sequence[Task],
    *,
    asides: Collection[str] = (),
    seconds: Mapping[str, float] | None = None,
) -> list[Quality]:
    """Accuracy, reward and calibration of each evaluation; the first one is what the others are
    compared with.

    asides : names of stages that the next one does not begin from; seconds : of training, by stage.
    """
    by_id = {t.id: t for t in tasks}
    out = []
    marks = [[correct(by_id[r.task_id], r) for r in e.responses] for e in evaluations]
    first, before = evaluations[0], marks[0]
    kinds = [by_id[c].kind or "" for c in first.clusters]
    open_ = [by_id[c].truth.get("answerable") for c in first.clusters]
    for e, right in zip(evaluations, marks, strict=True):
        error, raw, stated = calibration_of(e, right)
        out.append(
            Quality(
                stage=e.name,
                accuracy=evaluation.mean_by_cluster(right, e.clusters),
                reward=e.reward(),
                ece=error,
                ece_plain=raw,
                stated=stated,
                gain=evaluation.paired(first.scores, e.scores, first.clusters, e.clusters, e.span),
                gain_accuracy=evaluation.paired(marks[0], right, first.clusters, e.clusters),
                step=evaluation.paired(before, right, first.clusters, e.clusters),
                net=evaluation.share(
                    evaluation.mean_by_cluster(net_of_guessing(right, open_), e.clusters)
                ),
                kinds={k: _within(k, kinds, before, right, e) for k in dict.fromkeys(kinds) if k},
                seconds=(seconds or {}).get(e.name, math.nan),
            )
        )
        before = before if e.name in asides else right
    return out


def _within(
    kind: str, kinds: Sequence[str], old: Sequence[Any], new: Sequence[Any], e: Any
) -> Estimate:
    """Change of accuracy on the tasks of one kind."""
    at = [i for i, k in enumerate(kinds) if k == kind]
    clusters = [e.clusters[i] for i in at]
    return evaluation.paired([old[i] for i in at], [new[i] for i in at], clusters, clusters)


def net_of_guessing(
    right: Sequence[float | None], answerable: Sequence[bool | None]
) -> list[float | None]:
    """What each answer is paid (n,) so that always answering and always abstaining earn 0 on
    average, and being right 1.

    right : 1.0, 0.0 or None; answerable : whether the task can be known ("unknown" is right where
    it cannot). With u the share that cannot: a right answer earns +1, "unknown" and a wrong one 0,
    an invented one -(1 - u)/u, all over 1 - u.

    >>> net_of_guessing([1.0, 0.0, 1.0, 0.0], [True, True, False, False])
    [2.0, 0.0, 0.0, -2.0]
    """
    known = [(r, a) for r, a in zip(right, answerable, strict=True) if r is not None]
    u = sum(a is False for _, a in known) / max(len(known), 1)
    if not 0 < u < 1 or any(a is None for _, a in known):
        return [None] * len(right)
    paid = {True: (0.0, 1 / (1 - u)), False: (-1 / u, 0.0)}
    return [
        None if r is None else paid[bool(a)][int(r)] for r, a in zip(right, answerable, strict=True)
    ]


def calibration_of(
    e: evaluation.Evaluation, right: Sequence[float | None]
) -> tuple[Estimate, float, Estimate]:
    """(debiased ECE, plug-in ECE, share that states a number) of the confidence in the text; NaN
    below ten such answers.
    """
    values = [confidence.extract(r.text).value for r in e.responses]
    stated = evaluation.mean_by_cluster([float(v is not None) for v in values], e.clusters)
    known = [
        (v, y, c)
        for v, y, c in zip(values, right, e.clusters, strict=True)
        if v is not None and y is not None
    ]
    if len(known) < 10:
        return (
            Estimate(
                value=math.nan,
                low=math.nan,
                high=math.nan,
                n=len(known),
                method="ECE",
                note="fewer than ten stated",
            ),
            math.nan,
            stated,
        )
    found = calibration.ece(
        [k[0] for k in known], [k[1] for k in known], cluster=[k[2] for k in known]
    )
    return found.debiased, found.value, stated


def claim(
    before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]], *, margin: float = 0.05
) -> calibration.Comparison | None:
    """Is a stated confidence better after a stage, and better than what needs no training?

    before, after : rows of kit.train.policy.rows, of the same tasks in the same order; pairs in
    which one states none are left out. A family is a kind of task, a cluster a task; the token
    probability
    is of the answer after. margin : of accuracy kept. None below ten pairs.
    """
    pairs = [
        (a, b)
        for a, b in zip(before, after, strict=True)
        if math.isfinite(a["stated"] + b["stated"] + a["correct"] + b["correct"])
    ]
    if len(pairs) < 10:
        return None

    def column(side: int, name: str) -> list[Any]:
        return [p[side][name] for p in pairs]

    token = column(1, "token")
    return calibration.compare(
        (column(0, "stated"), column(0, "correct")),
        (column(1, "stated"), column(1, "correct")),
        paired=True,
        cluster=column(1, "task_id"),
        family=column(1, "kind"),
        token=token if all(map(math.isfinite, token)) else None,
        margin=margin,
    )


def claims(
    found: Sequence[evaluation.Evaluation],
    taught: Collection[str],
    tasks: Sequence[Task],
    asides: Collection[str] = (),
) -> dict[str, str]:
    """The verdict on each stage that taught a confidence, against the stage that it began from."""
    out, before = {}, found[0]
    for e in found:
        if e.name in taught:
            made = claim(*(policy.rows(x, tasks, correct) for x in (before, e)))
            out |= {} if made is None else {e.name: made.verdict}
        before = before if e.name in asides else e
    return out
