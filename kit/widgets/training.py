"""Watching a training from the notebook: a live view fed by `on_step`, and a browser of the sampled
answers.

Each wraps a plain function that is also the static twin in a headless report: `status_html` and
`answers_html`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..page import escape
from ..tables import pairs_html, rows_html
from . import live as widgets_live
from . import twinned, watch

Rows = Sequence[Mapping[str, Any]]


def status_html(steps: Rows, *, total: int | None = None) -> str:
    """The last step in words, and a small curve of the reward so far; all text is escaped.

    >>> "step 1" in status_html([{"step": 1, "reward": 0.5, "groups": 2, "mixed": 1}], total=3)
    True
    """
    if not steps:
        return "<p>no step yet</p>"
    s = steps[-1]
    left = s.get("seconds_left")
    hits = ", ".join(f"{k.replace('_', ' ')} {v}" for k, v in (s.get("sentinels") or {}).items())
    items = [
        ("reward", _interval(s)),
        (
            "groups mixed / good / bad / equal",
            " / ".join(str(s.get(k) or 0) for k in ("mixed", "good", "bad", "flat")),
        ),
        ("words", _number(s.get("words"), 1)),
        ("cut off", _number(s.get("truncated"))),
        ("entropy", _number(s.get("entropy"))),
        ("KL", _number(s.get("kl"))),
        ("judge cost", f"${s.get('judge_cost') or 0:.4f}"),
        ("unknown rewards", str(s.get("unknown_rewards") or 0)),
        ("sentinels", "not looked at" if s.get("flagged") is None else hits or "none"),
        ("time left", "unknown" if left is None else f"{left / 60:.1f} min"),
    ]
    head = f"step {s['step']}" + (f" of {total}" if total else "")
    alarms = "".join(
        f"<p style='color:#D55E00;font-weight:bold' role='alert'>{escape(a)}</p>"
        for a in s.get("alarms") or ()
    )
    numbers = pairs_html(items, caption=head)
    box = "display:flex;gap:24px;align-items:center"
    return f"{alarms}<div style='{box}'>{numbers}{_curve(steps)}</div>"


def answers_html(
    rollouts: Rows,
    *,
    step: int | None = None,
    task_id: str | None = None,
    order: str = "reward",
    top: int = 12,
) -> str:
    """Sampled answers with reward, advantage and verdicts as a table; all text is escaped.

    order : "reward" (best first), "advantage", or "log" (as sampled).
    """
    rows = [r for r in rollouts if step in (None, r["step"]) and task_id in (None, r["task_id"])]
    if order in ("reward", "advantage"):
        rows = sorted(rows, key=lambda r: -(r[order] if r[order] is not None else -9e9))
    head = ("step", "task", "reward", "advantage", "criteria", "answer")
    body = [_answer(r) for r in rows[:top]]
    return rows_html(head, body, raw={4}) + f"<p>{len(body)} of {len(rows)} answers</p>"


def _answer(r: Mapping[str, Any]) -> tuple[Any, ...]:
    """One sampled answer as a row of `answers_html`."""
    marks = " ".join(map(_mark, r["verdicts"]))
    text = r["text"][:400] + (" (cut off)" if r.get("truncated") else "")
    return (
        r["step"],
        r["task_id"],
        _number(r["reward"]),
        _number(r["advantage"], 2),
        marks,
        text,
    )


def live(total: int | None = None) -> tuple[Any, Callable[[Mapping[str, Any]], None]]:
    """A widget to display before training, and the function to give to `train(..., on_step=...)`.

    Headless, the function only collects (`.steps` of it); the static figures show the same.
    """
    steps: list[Mapping[str, Any]] = []
    if widgets_live():
        import ipywidgets as w

        box = w.HTML(status_html(steps))
    else:
        from IPython.display import HTML

        box = HTML("<p>headless: the figures below show the run</p>")

    def on_step(row: Mapping[str, Any]) -> None:
        steps.append(row)
        box.value = status_html(steps, total=total)

    on_step.steps = steps  # type: ignore[attr-defined]
    return box, on_step


def _last(rollouts: Rows) -> str:
    """The last step's answers."""
    return answers_html(rollouts, step=max((r["step"] for r in rollouts), default=0))


@twinned(_last)
def browser(rollouts: Rows) -> Any:
    """A slider over steps, a choice of task and of order, over `answers_html`; headless, the last
    step's answers.
    """
    import ipywidgets as w

    steps = sorted({r["step"] for r in rollouts}) or [0]
    slider = w.SelectionSlider(
        options=steps, value=steps[-1], description="step", continuous_update=False
    )
    task = w.Dropdown(
        options=[("all", None), *((t, t) for t in sorted({r["task_id"] for r in rollouts}))],
        description="task",
    )
    order = w.Dropdown(options=["reward", "advantage", "log"], description="order")
    out = w.HTML()

    def show(_: Any = None) -> None:
        out.value = answers_html(
            rollouts,
            step=None if task.value is not None else slider.value,
            task_id=task.value,
            order=order.value,
            top=24,
        )

    watch(show, slider, task, order)
    return w.VBox([w.HBox([slider, task, order]), out])


def _mark(v: Mapping[str, Any]) -> str:
    sign = {"met": "&#10003;", "unmet": "&#10007;", "level": "&#9681;", "unknown": "?"}[v["status"]]
    color = {"met": "#009E73", "unmet": "#D55E00"}.get(v["status"], "#6b6b6b")
    why = f" ({v['failure']})" if v.get("failure") else ""
    title = escape(v["id"] + why, quote=True)
    return f"<span style='color:{color}' title='{title}'>{escape(v['id'])}{sign}</span>"


def _curve(steps: Rows, width: int = 260, height: int = 80) -> str:
    known = [(i, s["reward"]) for i, s in enumerate(steps) if s.get("reward") is not None]
    if len(known) < 2:
        return ""
    low = min(r for _, r in known)
    high = max(r for _, r in known)
    span = (high - low) or 1.0
    points = " ".join(
        f"{4 + i / max(1, len(steps) - 1) * (width - 8):.1f},"
        f"{height - 6 - (r - low) / span * (height - 12):.1f}"
        for i, r in known
    )
    return (
        f"<svg width='{width}' height='{height}' role='img' aria-label='reward per "
        f"step'><polyline points='{points}' fill='none' stroke='#0072B2' "
        f"stroke-width='2'/><text x='4' y='12' font-size='10'>{high:.2f}</text><text x='4' "
        f"y='{height - 2}' font-size='10'>{low:.2f}</text></svg>"
    )


def _interval(s: Mapping[str, Any]) -> str:
    low, high = s.get("reward_low"), s.get("reward_high")
    return _number(s.get("reward")) + (
        f" [{_number(low)}, {_number(high)}]" if low is not None and high is not None else ""
    )


def _number(value: float | None, digits: int = 3) -> str:
    return "unknown" if value is None or value != value else f"{value:.{digits}f}"
