"""A judge's threshold as a slider: agreement and confusion with people, without asking the judge
again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from .. import stats
from ..plots import agreement as plots
from . import live


def at_threshold(
    scores: Sequence[Any],
    human: Sequence[Any],
    *,
    cluster: Sequence[Any] | None = None,
    cut: float = 3.0,
    name: str = "judge",
) -> Any:
    """The confusion figure when scores of at least `cut` count as met; unknown scores are left out
    and counted.

    scores : (n,) numbers, None / NaN unknown; human : (n,) 1 / 0, None / NaN unknown.
    """
    met = [
        None if s is None or (isinstance(s, float) and math.isnan(s)) else float(s >= cut)
        for s in scores
    ]
    found = stats.agree(met, human, cluster=cluster, categories=(0.0, 1.0))
    return plots.confusion(found, title=f"{name}: met from {cut:g}")


def threshold_explorer(
    scores: Mapping[str, Sequence[Any]],
    human: Sequence[Any],
    *,
    cluster: Sequence[Any] | None = None,
) -> Any:
    """A dropdown of judges and a slider over `at_threshold`; headless, its first figure."""
    names = list(scores)
    if not live():
        return at_threshold(scores[names[0]], human, cluster=cluster, name=names[0])
    import ipywidgets as w

    known = sorted({float(s) for col in scores.values() for s in col if s is not None and s == s})
    judge = w.Dropdown(options=names, description="judge")
    cut = w.FloatSlider(
        value=3.0,
        min=known[0],
        max=known[-1],
        step=0.5,
        description="met from",
        continuous_update=False,
    )
    out = w.Output()

    def draw(_: Any = None) -> None:
        from IPython.display import display

        out.clear_output(wait=True)
        with out:
            display(
                at_threshold(
                    scores[judge.value], human, cluster=cluster, cut=cut.value, name=judge.value
                )
            )

    judge.observe(draw, "value")
    cut.observe(draw, "value")
    draw()
    return w.VBox([w.HBox([judge, cut]), out])
