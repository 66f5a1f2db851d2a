"""Figures of a training from its steps, rollouts and evaluations; nothing is computed here but
running means for the eye.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .theme import COLORS, GREY, band, figure, rgba, whiskers

HEALTH = (
    ("mixed", "mixed (has a gradient)", COLORS[2]),
    ("good", "all good", COLORS[0]),
    ("flat", "all equal between", COLORS[4]),
    ("bad", "all bad", COLORS[1]),
    ("groups_unknown", "unknown", GREY),
)
SPLIT = (
    ("seconds_generation", "generation", COLORS[0]),
    ("seconds_judge", "judge", COLORS[4]),
    ("seconds_update", "update", COLORS[2]),
    ("seconds_kit", "kit", GREY),
)
Steps = Sequence[Mapping[str, Any]]


def reward(steps: Steps, *, title: str = "Training reward") -> Any:
    """Mean reward per step with its interval, and a running mean over five steps.

    steps : rows of steps.jsonl.
    """
    fig = _by_step(steps, title=title, y="reward")
    x = [s["step"] for s in steps]
    band(
        fig,
        x,
        [s.get("reward_low") for s in steps],
        [s.get("reward_high") for s in steps],
        COLORS[0],
        "95% interval of a step's answers",
    )
    fig.add_scatter(
        x=x,
        y=[s.get("reward") for s in steps],
        mode="markers",
        name="step",
        marker=dict(color=COLORS[0], size=6),
    )
    fig.add_scatter(
        x=x,
        y=running([s.get("reward") for s in steps]),
        mode="lines",
        name="mean of five steps",
        line=dict(color=COLORS[0], width=2.5),
    )
    return fig


def health(steps: Steps, *, title: str = "What the groups can teach") -> Any:
    """Share of groups that are mixed, all good, all bad, all equal, unknown: a stacked area per
    step.
    """
    fig = _by_step(steps, title=title, y="share of groups")
    x = [s["step"] for s in steps]
    for key, name, color in HEALTH:
        y = [(s.get(key) or 0) / s["groups"] if s.get("groups") else None for s in steps]
        if any(y):
            fig.add_scatter(
                x=x,
                y=y,
                mode="lines",
                name=name,
                stackgroup="one",
                line=dict(width=0.5, color=color),
                fillcolor=rgba(color, 0.6),
            )
    fig.update_layout(showlegend=True, yaxis_range=[0, 1])  # of one kind, too: which one?
    return fig


def criteria(
    steps: Steps,
    *,
    names: Mapping[str, str] | None = None,
    title: str = "What the reward is made of",
) -> Any:
    """Share of answers that meet each criterion, mean of five steps; names : criterion id -> text
    for the legend.
    """
    fig = _by_step(steps, title=title, y="share met", height=460)
    ids = list(dict.fromkeys(i for s in steps for i in (s.get("criteria") or {})))
    for n, i in enumerate(ids):
        fig.add_scatter(
            x=[s["step"] for s in steps],
            y=running([(s.get("criteria") or {}).get(i) for s in steps]),
            mode="lines",
            name=_short((names or {}).get(i, i)),
            line=dict(
                color=COLORS[n % len(COLORS)],
                dash=("solid", "dash", "dot")[n // len(COLORS) % 3],
            ),
        )
    fig.update_yaxes(range=[0, 1.02])
    return fig


def series(steps: Steps, key: str, *, title: str = "", y: str = "") -> Any:
    """One number of steps.jsonl per step, with a running mean: words, tokens, truncated, entropy,
    kl, grad_norm ...
    """
    fig = _by_step(steps, title=title or key, y=y or key, height=320)
    x, values = [s["step"] for s in steps], [s.get(key) for s in steps]
    fig.add_scatter(
        x=x,
        y=values,
        mode="markers",
        name="step",
        marker=dict(color=rgba(COLORS[0], 0.5), size=5),
    )
    fig.add_scatter(
        x=x,
        y=running(values),
        mode="lines",
        name="mean of five steps",
        line=dict(color=COLORS[0]),
    )
    return fig


def lengths(steps: Steps) -> Any:
    """Words per answer and the share of answers that were cut off."""
    fig = series(steps, "words", title="Length of answers", y="words")
    fig.add_scatter(
        x=[s["step"] for s in steps],
        y=[s.get("truncated") for s in steps],
        mode="lines",
        name="share cut off (right axis)",
        yaxis="y2",
        line=dict(color=COLORS[1], dash="dot"),
    )
    fig.update_layout(
        yaxis2=dict(
            overlaying="y",
            side="right",
            range=[0, 1.02],
            tickmode="auto",
            showgrid=False,
            title=dict(text="share cut off"),
        )
    )
    return fig


def time_split(steps: Steps, *, title: str = "Where the time goes") -> Any:
    """Seconds per step for generation, judge and update, stacked."""
    fig = _by_step(steps, title=title, y="seconds", height=320)
    for key, name, color in SPLIT:
        fig.add_bar(
            x=[s["step"] for s in steps],
            y=[s.get(key) for s in steps],
            name=name,
            marker=dict(color=color),
        )
    fig.update_layout(barmode="stack", bargap=0.1)
    return fig


def gain(result: Any, *, title: str = "Held-out: after minus before") -> Any:
    """The gain and what it is made of: differences with their intervals, for a
    kit.train.evaluation.Gain.
    """
    rows = [r for r in result.table() if r["what"] != "words per answer"][::-1]
    fig = figure(title=title, x="difference", height=110 + 44 * len(rows))
    fig.add_scatter(
        x=[r["difference"] for r in rows],
        y=[_short(r["what"], 60) for r in rows],
        mode="markers",
        showlegend=False,
        marker=dict(
            size=9, color=[COLORS[1] if r["what"] == "reward" else COLORS[0] for r in rows]
        ),
        error_x=whiskers((r["difference"], r["low"], r["high"]) for r in rows),
    )
    fig.add_vline(x=0, line=dict(color=GREY, dash="dot"))
    return fig


def policies(
    result: Any, *, title: str = "Held-out reward beside policies that need no skill"
) -> Any:
    """Before, after, and every trivial policy: mean reward on the same prompts, with intervals for
    the first two.
    """
    known = sorted(((v, k) for k, v in result.trivial.items() if v is not None))
    names = [*(k for _, k in known), "before training", "after training"]
    values = [*(v for v, _ in known), result.before.value, result.after.value]
    ends = [(v, None, None) for v, _ in known]
    ends += [(e.value, e.low, e.high) for e in (result.before, result.after)]
    fig = figure(title=title, x="mean reward", height=110 + 30 * len(names))
    fig.add_bar(
        x=values,
        y=names,
        orientation="h",
        showlegend=False,
        marker=dict(color=[GREY] * len(known) + [COLORS[0], COLORS[1]]),
        error_x=whiskers(ends),
    )
    return fig


def running(values: Sequence[float | None], width: int = 5) -> list[float | None]:
    """Mean of the last `width` known values up to each place.

    >>> running([1, None, 3], 2)
    [1.0, 1.0, 3.0]
    """
    last = (values[max(0, i - width) : i] for i in range(1, len(values) + 1))
    known = ([v for v in some if v is not None] for some in last)
    return [sum(some) / len(some) if some else None for some in known]


def _by_step(steps: Steps, **options: Any) -> Any:
    """An empty figure over steps; few steps are all named, and nothing between them."""
    fig = figure(x="step", **options)
    if len(steps) <= 12:
        fig.update_xaxes(tickmode="linear", tick0=0, dtick=1)
    return fig


def _short(text: str, size: int = 48) -> str:
    return text if len(text) <= size else text[: size - 1] + "…"
