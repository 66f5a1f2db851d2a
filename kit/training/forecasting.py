"""What a run can learn, from 64 answers before the first step.

GRPO compares the answers to one prompt. Where all of a group earn the same, nothing is learned from it.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..errors import DataError
from ..evaluation import Evaluation, health
from ..judging import format_cost
from ..records import Grade, Response, Task
from ..rewards import trivial_answers
from ..stats import Estimate, mean, per_cluster
from .reward import Reward
from .settings import Settings

FORECAST_ANSWERS = 64
JUDGED_PROMPTS = 2
REMEDIES = {
    "bad": "easier prompts, SFT on good answers first, or a larger group_size: "
    "groups whose answers all earn the same teach nothing",
    "good": "harder prompts or another criterion: the model earns everything already",
    "unknown": "a judge that decides: no reward is known",
}


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """pass_1 : share of answers that are right as a whole. pass_k : share of prompts with one in `size`.

    groups : how many are mixed, good, bad (all earn the same, below the top), unknown; only mixed ones
        teach. answers : to training prompts.
    others : to held-out prompts, of the model and of the policies without skill.
    seconds, cost : of sampling and judging all of them, estimated from these answers (cost in US dollars).
    """

    size: int
    reward: Estimate
    pass_1: Estimate
    pass_k: Estimate
    groups: dict[str, int]
    answers: int
    others: int
    seconds: float
    cost: float | None

    @property
    def remedy(self) -> str:
        """What to do where most groups teach nothing, else an empty text."""
        if 2 * self.groups["mixed"] >= sum(self.groups.values()):
            return ""
        # what most of the useless groups have in common
        return REMEDIES[max(REMEDIES, key=self.groups.__getitem__)]

    def check(self) -> None:
        """DataError where no group is mixed."""
        if not self.groups["mixed"]:
            raise DataError(
                f"nothing can be learned: in none of {sum(self.groups.values())} groups "
                "two answers earned different rewards",
                where="forecast",
                fix=f"{self.remedy} (or forecast: false, --set forecast=false)",
            )

    def __str__(self) -> str:
        total = sum(self.groups.values())
        lines = [
            f"{total} prompts x {self.size} answers before training: reward {self.reward}",
            f"pass@1 {self.pass_1}; pass@{self.size} {self.pass_k}",
            f"groups that teach: {self.groups['mixed']} of {total}",
            f"the run's {self.answers} answers and {self.others} held-out ones: "
            f"about {self.seconds / 60:.0f} minutes and {format_cost(self.cost)} for sampling and judging; "
            "updates come on top",
        ]
        if self.remedy:
            lines.append(f"to do: {self.remedy}")
        return "\n".join(lines)


def spread_out(tasks: Sequence[Task], n: int) -> list[Task]:
    """At most n of the tasks, from all parts of the set: files are often sorted by kind."""
    n = min(n, len(tasks))
    return [tasks[i * len(tasks) // n] for i in range(n)]


def for_trivial(heldout: Sequence[Task], reward: Reward) -> list[Task]:
    """The held-out prompts on which policies without skill are tried: all by code, JUDGED_PROMPTS by another judge."""
    # about twenty policies on each prompt would cost more calls than the training
    return spread_out(
        heldout, len(heldout) if reward.name == "code" else JUDGED_PROMPTS
    )


def make_forecast(
    settings: Settings,
    tasks: Sequence[Task],
    reward: Reward,
    sample: Callable[..., list[Response]],
    heldout: Sequence[Task] = (),
) -> Forecast:
    """Answer a few training prompts, spread over the set, and look at the groups.

    sample : (tasks, name, samples, temperature) -> answers.
    """
    size = settings.group_size
    some = spread_out(tasks, max(FORECAST_ANSWERS // size, 1))
    start = time.perf_counter()
    answers = sample(some, "forecast", size, settings.temperature)
    sampling = (time.perf_counter() - start) / len(answers)
    grades, judging, price = grade_and_measure(reward, answers)
    look = Evaluation(
        name="forecast", responses=tuple(answers), grades=tuple(grades)
    )
    right = look.strict(some)
    total, evaluations, trivial = answers_of_run(settings, heldout, reward)
    judged = total + evaluations + trivial
    # the policies without skill are judged, and cost no sampling
    seconds = sampling * (total + evaluations) + judging * judged
    cost = price * judged
    if reward.second:
        # it grades held-out answers only: one group shows what they take
        _, judging, price = grade_and_measure(reward.second, answers[:size])
        seconds += judging * evaluations
        cost += price * evaluations
    return Forecast(
        size=size,
        reward=look.mean(),
        pass_1=look.mean(right),
        pass_k=pass_at_k(right, look.clusters),
        groups=health(zip(look.clusters, grades, strict=True)),
        answers=total,
        others=evaluations + trivial,
        seconds=seconds,
        cost=None if reward.cost is None else cost,
    )


def grade_and_measure(
    reward: Reward, answers: Sequence[Response]
) -> tuple[list[Grade], float, float]:
    """The grades of answers, and the seconds and US dollars that one of them took."""
    start, paid = time.perf_counter(), reward.budget.usd_spent
    grades = reward.grade(answers)
    return (
        grades,
        (time.perf_counter() - start) / len(answers),
        (reward.budget.usd_spent - paid) / len(answers),
    )


def pass_at_k(right: Sequence[float | None], prompts: Sequence[str]) -> Estimate:
    """The share of prompts with an answer that is right."""
    # an unknown answer is no success here: the forecast must not promise
    return mean((per_cluster([x or 0.0 for x in right], prompts) > 0).astype(float))


def answers_of_run(
    settings: Settings, heldout: Sequence[Task], reward: Reward
) -> tuple[int, int, int]:
    """How many answers a run samples to training prompts and to held-out ones, and how many need no model."""
    # before and after, and on the way
    return (
        math.ceil(settings.steps / settings.updates) * settings.rows,
        (2 + (settings.eval_every and (settings.steps - 1) // settings.eval_every))
        * settings.eval_samples
        * len(heldout),
        sum(len(trivial_answers(task)) for task in for_trivial(heldout, reward)),
    )
