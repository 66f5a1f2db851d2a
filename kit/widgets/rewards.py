"""Sliders over reward weights: the ranking of stored answers follows, without a judge call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..records import Response, Task, Verdict
from ..rewards.composer import Composer
from ..rewards.contrast import rerank, weight_names
from ..tables import rows_html
from . import live, twinned, watch


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


@twinned
def weight_explorer(
    tasks: Iterable[Task],
    responses: Sequence[Response],
    verdicts: Iterable[Verdict],
    *,
    composer: Composer | str = "default",
    task_id: str | None = None,
    top: int = 20,
) -> Any:
    """A widget: one slider per component and criterion group that weighs here, and the ranking that
    follows. Wraps `rerank`.

    task_id : show one task's answers only (the ranking is then within it). Works with ipywidgets
        7.7 and 8;
    headless, the ranking under the given weights.
    """
    tasks = [t for t in tasks if task_id in (None, t.id)]
    ids = {t.id for t in tasks}
    responses = [r for r in responses if r.task_id in ids]
    verdicts = [v for v in verdicts if v.task_id in ids]
    base = Composer.from_config(composer)
    component = {c.name: c.weight for c in base.components}
    texts = {r.ids: r.text for r in responses}
    if not live():
        from IPython.display import HTML

        return HTML(
            table_html(rerank(tasks, responses, verdicts, {}, composer=base), texts=texts, top=top)
        )
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
        rows = rerank(
            tasks, responses, verdicts, {n: s.value for n, s in sliders.items()}, composer=base
        )
        out.value = table_html(rows, texts=texts, top=top)

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
