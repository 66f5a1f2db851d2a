"""A rubric as a reward of a verifiers task (verifiers 0.4.0: methods of `vf.Task` marked as
rewards). The mark is two attributes, so that nothing of verifiers is imported here.
"""

from __future__ import annotations

from typing import Any

from ..errors import KitError
from ..train.functions import reward_function


def verifiers_reward(
    tasks: Any,
    judge: Any = "code",
    config: Any = "rubric",
    *,
    name: str = "rubric",
    weight: float = 1.0,
    priority: int = 0,
    **more: Any,
) -> Any:
    """A reward method for a `vf.Task` class, as `@vf.reward` would mark it.

    tasks, judge, config and the rest : as kit.reward_function. The rollout's task is found by its
    data's `task_id`, `id`, `name` or prompt. A reward that is not known is an error of the rollout
    (verifiers: a judge's fault must not score the model), never 0. Each criterion's value and what
    the judge cost become metrics.
    """
    reward = reward_function(tasks, judge, config, name=name, **more)

    async def rubric(self: Any, task: Any, trace: Any) -> float:
        names = [getattr(task, n, None) for n in (reward.column or "task_id", "id", "name")]
        known = [n for n in names if n is not None and str(n) in reward.reward.by_id]
        (g,) = await reward.graded([trace.last_reply], known[:1] or [None], [task.prompt or ""])
        for v in g.verdicts:
            if v.value is not None:
                trace.record_metric(f"{name}/{v.criterion_id}", v.value)
        trace.record_metric(f"{name}/cost", g.cost)
        if g.score is None:
            lost = ", ".join(f"{v.criterion_id} {v.failure}" for v in g.verdicts if not v.known)
            raise KitError(
                f"the reward is not known, only that it is in [{g.score_low:g}, {g.score_high:g}]",
                where=f"unknown: {lost or 'nothing applies'}",
                fix="the rollout does not count; score it again when the judge answers",
            )
        return g.score

    rubric.__name__ = name
    vars(rubric).update(reward=True, reward_priority=priority, _vf_weight=weight)
    return rubric
