"""Held-out answers before and after: graded, stored, and compared prompt by prompt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd

from ..checks import AnswerForm, answer_outcome, stated_confidence
from ..errors import DataError
from ..judging.ledger import TRANSIENT_FAILURES
from ..records import Grade, Response, Task, by_criterion, leaves
from ..rewards import PASS_THRESHOLD, CriteriaTree
from ..stats import Estimate, difference, mean, per_cluster
from ..stats.calibration import ECE, ece

# one value for each answer, None where it is unknown
AnswerValues = Sequence[float | None]
WHEN = ("before", "after")


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Answers to held-out prompts and their grades, in the same order.

    second : the grades of a second judge, which pays nothing; empty where there is none.
    """

    name: str
    responses: tuple[Response, ...]
    grades: tuple[Grade, ...]
    second: tuple[Grade, ...] = ()

    @property
    def is_open(self) -> bool:
        """True where a verdict is unknown only since the judge was down, or a budget used up: ask it again."""
        return any(
            v.failure in TRANSIENT_FAILURES
            for g in self.grades + self.second
            for v in g.verdicts
        )

    @property
    def clusters(self) -> list[str]:
        """The task of each answer."""
        return list(map(attrgetter("task_id"), self.responses))

    @property
    def rewards(self) -> list[float | None]:
        """The reward of each answer, None where unknown."""
        return list(map(attrgetter("score"), self.grades))

    def strict(
        self, tasks: Sequence[Task], *, formless: float | None = 0.0
    ) -> list[float | None]:
        """1 where an answer is right as a whole, 0 where not, None where that is unknown; see `passes`.

        formless : the value of an answer without the stated form. It is not right, but in a calibration error it
        counts as nothing (None).
        """
        by_id, values = {t.id: t for t in tasks}, []
        for answer, grade in zip(self.responses, self.grades, strict=True):
            task = by_id[answer.task_id]
            value = passes(task, answer, grade)
            # a form that is missing is a fault of the answer, not of its confidence
            if value is None and task.truth and not task.criteria:
                value = formless
            values.append(value)
        return values

    @cached_property
    def stated(self) -> list[float]:
        """The confidence that each answer ends with, NaN where it states none."""
        return list(
            stated_confidence(list(map(attrgetter("text"), self.responses))).values
        )

    def mean(self, values: AnswerValues | None = None) -> Estimate:
        """The mean over prompts of a value in [0, 1] of each answer (default: its reward)."""
        if values is None:
            return mean(per_cluster(self.rewards, self.clusters))
        return mean(per_cluster(values, self.clusters), bounds=(0.0, 1.0))

    @property
    def by_second(self) -> Evaluation | None:
        """The same answers with the grades of the second judge, None where there is none."""
        return replace(self, grades=self.second) if self.second else None

    @property
    def excess(self) -> list[float]:
        """What the judge of the training gives each answer more than the second judge; NaN where one is unknown."""
        second = replace(self, grades=self.second)
        return list(np.array(self.rewards, float) - np.array(second.rewards, float))

    @property
    def means(self) -> dict[str, float]:
        """The mean reward by each judge, as the log and the tracker name it."""
        looks = {"heldout_reward": self, "heldout_reward_second": self.by_second}
        return {name: look.mean().value for name, look in looks.items() if look}


def read_evaluation(folder: Path, name: str) -> Evaluation | None:
    """An evaluation that is stored in a run's folder, None where there is none."""
    path = folder / f"eval_{name}.json"
    if not path.exists():
        return None
    return msgspec.json.decode(path.read_bytes(), type=Evaluation)


def passes(task: Task, response: Response, grade: Grade) -> float | None:
    """1 where every criterion is met and no fault is present; of a task without criteria: its outcome >= .5.

    A criterion of weight 0 counts only where it is required. What the answer says of its confidence plays no part.
    """
    # nobody judged it, and it cannot be right
    if grade.meta.get("form_missing"):
        return 0.0
    if not task.criteria:
        right = answer_outcome(task, AnswerForm().read_answer(response.text))
        return None if right is None else float(right >= 0.5)
    # weight 0 is recorded and not scored
    scored = {c.id for c in leaves(task.criteria) if c.weight or c.required}
    # one failure settles it, whatever the unknown ones are
    if scored.intersection(failures(task, grade)):
        return 0.0
    decided = {
        name for name, v in by_criterion(grade.verdicts).items() if v.is_known
    }
    return 1.0 if scored and scored <= decided else None


def failures(task: Task, grade: Grade) -> list[str]:
    """Ids of the criteria that are known to be unmet, and of the faults that are known to be present."""
    good = CriteriaTree(task.criteria, "net", None).is_good
    # an answer's own questions, such as its citations, are no criteria of the task
    return [
        i
        for i, v in by_criterion(grade.verdicts).items()
        if v.value is not None and (v.value >= PASS_THRESHOLD) != good.get(i, True)
    ]


def gain(
    before: Evaluation,
    after: Evaluation,
    *,
    values: tuple[AnswerValues, AnswerValues] | None = None,
    noun: str = "held-out reward",
) -> Estimate:
    """After minus before, paired by prompt. values : (before, after) lists (default: the rewards).

    DataError where the two answered other prompts: leaving out what is bad would be a gain.
    """
    if Counter(before.clusters) != Counter(after.clusters):
        raise DataError(
            "before and after answered other prompts, or some of them more often",
            where=f"{before.name}, {after.name}",
            fix="answer the same prompts as often",
        )
    # a prompt counts once, however many answers it has
    old, new = values or (before.rewards, after.rewards)
    a, b = per_cluster(old, before.clusters), per_cluster(new, after.clusters)
    return replace(difference(b.loc[a.index], a), noun=noun, n_clusters=None)


def by_kind(
    before: Evaluation, after: Evaluation, tasks: Sequence[Task]
) -> pd.DataFrame:
    """Strict passes of each kind of prompt: a table with kind, prompts, before, after, difference."""
    kinds = {t.id: t.kind or "all" for t in tasks}
    old = per_cluster(before.strict(tasks), before.clusters)
    new = per_cluster(after.strict(tasks), after.clusters)
    rows = []
    for kind in dict.fromkeys(["all", *kinds.values()]):
        # a kind may fall while the mean rises
        is_kind = old.index.map(kinds).isin([kind]) | (kind == "all")
        a, b = old[is_kind], new.loc[old.index][is_kind]
        rows.append(
            {
                "kind": kind,
                "prompts": len(a),
                "before": mean(a).value,
                "after": mean(b).value,
                "difference": str(difference(b, a)),
            }
        )
    return pd.DataFrame(rows)


def calibration(e: Evaluation, tasks: Sequence[Task]) -> dict[str, ECE]:
    """Calibration error (ECE) of the stated confidence and of the token probability, where there are ten rows."""
    right = e.strict(tasks, formless=None)
    errors: dict[str, ECE] = {}
    for name, confidence in (
        ("stated", e.stated),
        ("tokens", list(map(attrgetter("confidence"), e.responses))),
    ):
        rows = pd.DataFrame(
            {"conf": confidence, "right": right, "task": e.clusters}
        ).dropna()
        # an error of fewer answers would be noise
        if len(rows) >= 10:
            errors[name] = ece(rows, "conf", "right", cluster="task")
    return errors


def comparison(
    before: Evaluation, after: Evaluation, tasks: Sequence[Task]
) -> dict[str, Any]:
    """What metrics.json holds of a before and an after."""
    right = (before.strict(tasks), after.strict(tasks))
    reward = gain(before, after)
    metrics: dict[str, Any] = {
        "prompts": len(tasks),
        "sentence": reward.sentence,
        "gain": numbers_of_estimate(reward),
        "strict_gain": numbers_of_estimate(gain(before, after, values=right)),
        "kinds": by_kind(before, after, tasks).to_dict("records"),
    }
    for when, look, values in zip(WHEN, (before, after), right, strict=True):
        metrics[f"reward_{when}"] = numbers_of_estimate(look.mean())
        metrics[f"strict_{when}"] = numbers_of_estimate(look.mean(values))
        metrics[f"calibration_{when}"] = {
            confidence: numbers_of_estimate(error.debiased)
            for confidence, error in calibration(look, tasks).items()
        }
    if before.by_second and after.by_second:
        unpaid = gain(before.by_second, after.by_second)
        more = gain(before, after, values=(before.excess, after.excess))
        end = (
            "they disagree by"
            if more.excludes(0)
            else "no disagreement is shown: their difference is"
        )
        metrics["second"] = {
            "gain": asdict(unpaid),
            "difference": asdict(more),
            "sentence": f"The judge of the training sees a change of {reward}, "
            f"the second judge {unpaid}; {end} {more}.",
        }
    return metrics


def numbers_of_estimate(e: Estimate) -> dict[str, float]:
    """An estimate as plain numbers for metrics.json."""
    return {"value": e.value, "low": e.low, "high": e.high, "n": e.n}
