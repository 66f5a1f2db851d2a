"""A rubric as an inspect-ai scorer (inspect-ai 0.3.285)."""

from __future__ import annotations

from typing import Any

from ..errors import MissingError
from ..train.functions import COLUMNS, reward_function


def inspect_scorer(
    tasks: Any, judge: Any = "code", config: Any = "rubric", *, name: str = "rubric", **more: Any
) -> Any:
    """A scorer for inspect-ai: the reward with its verdicts, criterion by criterion.

    tasks, judge, config and the rest : as kit.reward_function. A sample belongs to the task that
    its metadata (task_id), its input or its id names, in this order: inspect-ai numbers the samples
    that have no id. A reward that is not known is an unscored
    sample (inspect-ai leaves it out of its metrics), never 0.
    """
    try:
        from inspect_ai.scorer import Score, mean, scorer, stderr
    except ImportError:
        raise MissingError(
            "inspect-ai is not installed", where="inspect_scorer", fix="pip install inspect-ai"
        ) from None
    reward = reward_function(tasks, judge, config, name=name, **more)

    async def score(state: Any, target: Any) -> Any:
        named = state.metadata or {}
        if reward.asking(state.input_text) is None:
            named = {"id": state.sample_id} | named
        ids = [named[c] for c in (reward.column, *COLUMNS) if named.get(c) is not None]
        known = [i for i in ids if str(i) in reward.reward.by_id]
        answer = state.output.completion
        (g,) = await reward.graded([answer], known[:1] or [None], [state.input_text])
        about = {
            "answer": answer,
            "explanation": "\n".join(
                f"{v.criterion_id}: {v.status} {v.reason or ''}" for v in g.verdicts
            ),
            "metadata": {
                "low": g.score_low,
                "high": g.score_high,
                "cost": g.cost,
                "criteria": {v.criterion_id: v.failure or v.status for v in g.verdicts},
            },
        }
        return Score.unscored(**about) if g.score is None else Score(value=g.score, **about)

    @scorer(metrics=[mean(), stderr()], name=name)
    def rubric() -> Any:
        return score

    return rubric()
