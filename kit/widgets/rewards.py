"""Sliders over reward weights: the ranking of stored answers follows, without a judge call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..records import Response, Task, Verdict
from ..rewards.composer import Composer
from ..rewards.contrast import rerank, weight_names
from ..tables import rows_html
from . import twinned, watch


def table_html(
    rows: Sequence[Mapping[str, Any]],
    *,
    texts: Mapping[tuple[str, str], str] | None = None,
    top: int = 20,
) -> str:
    """The rows of `rerank` as an HTML table; all text is escaped."""

    head = ("rank", "moved", "task", "answer by", "score", "before", "text")
    body = [_ranked(r, (texts or {}).get((r["task_id"], r["response_id"]), "")) for r in rows[:top]]
    return rows_html(head, body) + f"<p>{len(body)} of {len(rows)} answers</p>"


def _ranked(r: Mapping[str, Any], text: str) -> tuple[Any, ...]:
    """One answer as a row of `table_html`."""
    moved = r["change"] or 0
    arrow = f"{'▲' if moved > 0 else '▼'} {abs(moved)}" if moved else ""
    scores = ("unknown" if x is None else f"{x:.3f}" for x in (r["score"], r["before"]))
    short = text if len(text) <= 120 else f"{text[:120]}..."
    who = r["source"] or r["response_id"]
    return r["rank"] or "-", arrow, r["task_id"], who, *scores, short


def ranking(
    tasks: Sequence[Task],
    responses: Sequence[Response],
    verdicts: Sequence[Verdict],
    *,
    composer: Composer | str = "default",
    weights: Mapping[str, float] | None = None,
) -> str:
    """The answers ranked under these weights, as HTML."""
    rows = rerank(tasks, responses, verdicts, weights, composer=composer)
    return table_html(rows, texts={r.ids: r.text for r in responses})


@twinned(ranking)
def weight_explorer(
    tasks: Sequence[Task],
    responses: Sequence[Response],
    verdicts: Sequence[Verdict],
    *,
    composer: Composer | str = "default",
) -> Any:
    """A widget: one slider per component and criterion group that weighs here, and the ranking that
    follows. Wraps `rerank`.

    Works with ipywidgets 7.7 and 8; headless, the ranking under the given weights.
    """
    base = Composer.from_config(composer)
    component = {c.name: c.weight for c in base.components}
    import ipywidgets as w

    sliders = {
        n: w.FloatSlider(
            value=component.get(n, 1.0),
            min=0.0,
            max=2.0,
            step=0.05,
            description=n,
            continuous_update=False,
            style={"description_width": "120px"},
        )
        for n in _that_weigh(tasks, responses, verdicts, base)
    }
    out = w.HTML()

    def show(_: Any = None) -> None:
        weights = {n: s.value for n, s in sliders.items()}
        out.value = ranking(tasks, responses, verdicts, composer=base, weights=weights)

    reset = w.Button(description="Reset")

    def back(_: Any) -> None:
        for n, s in sliders.items():
            s.value = component.get(n, 1.0)

    reset.on_click(back)
    watch(show, *sliders.values())
    return w.VBox([w.HBox([w.VBox([*sliders.values(), reset]), out])])


def _that_weigh(
    tasks: Sequence[Task],
    responses: Sequence[Response],
    verdicts: Sequence[Verdict],
    base: Composer,
) -> list[str]:
    """The weights whose double changes some score: one that all criteria share changes none."""
    double = {c.name: 2 * c.weight for c in base.components}

    def weighs(name: str) -> bool:
        rows = rerank(
            tasks,
            responses,
            verdicts,
            {name: double.get(name, 2.0)},
            composer=base,
        )
        return any(r["score"] != r["before"] for r in rows)

    return [n for n in weight_names(tasks, composer=base) if weighs(n)]
