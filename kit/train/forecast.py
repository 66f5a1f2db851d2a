"""What a run can learn, and what it will cost, from 64 answers: the support gate before hours are
spent.

GRPO compares the answers to one prompt. Where all of a group earn the same, nothing is learned from
it; where no group is mixed, nothing is learned at all, however long the run. pass@1 and pass@k
(strict passes; Chen et al. 2021, section 2.1) say how often the model already does what it shall
learn, and whether one of k tries finds it.
"""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from .. import stats
from ..errors import KitError
from ..records import Task, grouped, paid
from ..rewards.composer import Composer
from ..rewards.trivial import policies
from ..stats.estimate import Estimate
from . import answers, models, rollouts
from .config import GRPOSettings
from .evaluation import Evaluation
from .inputs import order
from .models import Loaded
from .reward import Reward

logger = logging.getLogger(__name__)
ANSWERS = 64
FEW = 0.25  # share of mixed groups below which most of the time is spent for nothing
REMEDIES = {
    "bad": "easier prompts, SFT on good answers first, or a larger group_size: the model never "
    "meets what is paid",
    "good": "harder prompts or another criterion: the model earns everything already",
    "flat": "a reward with finer steps: in most groups all answers earn the same part of it",
    "unknown": "a judge or a reward that decides: no reward is known",
}


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """reward : mean of the answers; once, any_of : share of strict passes (pass@1), and of prompts
    with one in `size`.

    mixed : share of groups that teach; health : groups by kind of reward; kinds : kind of prompt ->
    (mixed, all) groups.
    answers : that the whole run is to judge: of its batches, of the evaluations, and of the trivial
    policies; what an audit, resampling or evolving rubrics ask is not in it.
    seconds : of sampling and judging these (of sampling alone where not `timed`: a ledger had the
    verdicts); cost : of the judge, US dollars, likewise.
    """

    size: int
    steps: int
    answers: int
    reward: Estimate
    once: Estimate
    any_of: Estimate
    mixed: Estimate
    health: Counter[str]
    kinds: dict[str, tuple[int, int]]
    seconds: float
    cost: float
    timed: bool = True

    @property
    def remedy(self) -> str:
        """What to do about the groups that teach nothing; empty where most teach."""
        if self.mixed.value >= 0.5:
            return ""
        return REMEDIES[max(REMEDIES, key=lambda k: self.health[k])]

    @property
    def _judging(self) -> str:
        return (
            "and judging" if self.timed else "(the ledger had the verdicts: judging is not timed)"
        )

    def check(self, where: str) -> None:
        """KitError where no group is mixed, a warning where few are."""
        if not self.health["mixed"]:
            raise KitError(
                f"nothing can be learned: in none of {self.health.total()} groups did two answers "
                "earn different rewards",
                where=where,
                fix=f"{self.remedy} (or forecast: false)",
            )
        if self.mixed.value < FEW:
            logger.warning(
                "%d of %d groups teach: %s", self.health["mixed"], self.health.total(), self.remedy
            )

    def __str__(self) -> str:
        groups = self.health.total()
        lines = [
            f"{groups} prompts x {self.size} answers before training: reward {self.reward}",
            f"strict pass: {self.once} of the answers, {self.any_of} of the prompts "
            f"(one of {self.size})",
            f"groups that teach: {self.health['mixed']} of {groups} {self.mixed}",
            f"{self.steps} steps and their evaluations, {self.answers} answers: about "
            f"{_span(self.seconds)} for sampling {self._judging}; the updates come on top, on a "
            "CPU as long again",
        ]
        silent = [f"{k} (0 of {n})" for k, (m, n) in self.kinds.items() if not m]
        more = {
            f"judge: about ${self.cost:.2f} (an audit, resampling or evolving rubrics come on "
            "top)": self.cost,
            f"no mixed group yet: {', '.join(silent)}": silent,
            f"to do: {self.remedy}": self.remedy,
        }
        return "\n".join([*lines, *(line for line, fits in more.items() if fits)])

    def to_json(self) -> dict[str, Any]:
        """Plain values, for forecast.json."""
        named = ("reward", "once", "any_of", "mixed")
        return {
            **{k: getattr(self, k).as_dict() for k in named},
            **{
                k: getattr(self, k)
                for k in ("size", "steps", "answers", "kinds", "seconds", "timed", "cost", "remedy")
            },
        }


def forecast(
    loaded: Loaded,
    tasks: Sequence[Task],
    reward: Reward,
    *,
    settings: GRPOSettings,
    heldout: Sequence[Task] = (),
) -> Forecast:
    """Answers of the untrained policy to the prompts of the first steps, in groups as in
    training.
    """
    count = max(2, ANSWERS // settings.group_size)
    some = order(tasks, replace(settings, steps=count, prompts_per_step=1))
    some = list({t.id: t for t in some}.values())
    started, spent = time.perf_counter(), reward.bill.cost
    given = answers.sample_answers(
        loaded,
        some,
        samples=settings.group_size,
        settings=settings,
        seed=settings.seed + 20_000,
        name="forecast",
    )
    sampled = time.perf_counter()
    seen = answers.graded("forecast", given, reward)
    judged = time.perf_counter()
    verdicts = [v for g in seen.grades for v in g.verdicts]
    price = max(reward.bill.cost - spent, math.fsum(map(paid, verdicts)))  # a ledger may have it
    own, trivial = _answers(settings, heldout)
    return Forecast(
        size=settings.group_size,
        steps=settings.steps,
        answers=own + trivial,
        seconds=(own * (sampled - started) + (own + trivial) * (judged - sampled)) / len(given),
        cost=(own + trivial) * price / len(given),
        timed=not any(v.cached for v in verdicts),
        **_found(seen, some),
    )


def _answers(settings: GRPOSettings, heldout: Sequence[Task]) -> tuple[int, int]:
    """How many answers of the policy a run judges, and how many of trivial policies."""
    batches = math.ceil(settings.steps / (settings.iterations * settings.substeps))
    between = (settings.steps - 1) // settings.eval_every if settings.eval_every else 0
    evaluated = (2 + between) * len(heldout) * settings.eval_samples
    trained = batches * settings.prompts_per_step * settings.group_size
    return trained + evaluated, sum(len(policies(t)) for t in heldout)


def of(
    tasks: Sequence[Task],
    settings: GRPOSettings,
    *,
    reward: Any = "rubric",
    judge: Any = None,
    loaded: Loaded | None = None,
    ledger: Any = None,
    heldout: Sequence[Task] = (),
) -> Forecast:
    """The forecast of a training with these settings; reward and judge as in kit.train."""
    pay = Reward(tasks=tasks, judge=judge, composer=Composer.from_config(reward), ledger=ledger)
    loaded = loaded or models.load(settings)
    return forecast(loaded, tasks, pay, settings=settings, heldout=heldout)


def _found(seen: Evaluation, tasks: Sequence[Task]) -> dict[str, Any]:
    groups = grouped((g.task_id, g) for g in seen.grades)
    passed = seen.strict(tasks)
    hits = grouped(zip(seen.clusters, passed, strict=True))
    # without a pass, one unknown answer leaves the prompt unknown
    best = [max(h, key=lambda v: 0.5 if v is None else v) for h in hits.values()]
    scores = {i: [g.score for g in gs] for i, gs in groups.items()}
    teach = {i: rollouts.health([s])["mixed"] for i, s in scores.items()}
    ranges = [gs[0].meta.get("range") or (0.0, 1.0) for gs in groups.values()]
    kinds = grouped((t.kind or "all", teach[t.id]) for t in tasks)
    return {
        "reward": seen.reward(),
        "once": stats.macro_mean(passed, cluster=seen.clusters),
        "any_of": stats.mean(best),
        "mixed": stats.wilson(sum(teach.values()), len(groups)),
        "health": rollouts.health(scores.values(), ranges=ranges),
        "kinds": {kind: (sum(mixed), len(mixed)) for kind, mixed in kinds.items()},
    }


def _span(seconds: float) -> str:
    """A duration for people.

    >>> _span(40), _span(400), _span(40_000)
    ('40 s', '7 minutes', '11 hours')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.0f} hours"
