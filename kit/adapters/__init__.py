"""Rubric rewards inside other people's frameworks; none of them is imported by `import kit`.

    scorer = kit.adapters.inspect_scorer("rubrics.json", "endpoint:my-model")       # inspect-ai
    class MyTask(vf.Task):                                                          # verifiers
        rubric = kit.adapters.verifiers_reward("rubrics.json", "endpoint:my-model")

TRL, verl and open-instruct call `kit.reward_function` as it is.
"""

from ..verb import lazy

_WHERE = {"inspect_scorer": "inspect_ai", "verifiers_reward": "verifiers"}
__all__ = sorted(_WHERE)
__getattr__ = lazy(__name__, _WHERE)
