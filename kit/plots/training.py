"""Figures of a training from its steps, rollouts and evaluations; nothing is computed here but
running means for the eye.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .theme import COLORS, GREY, band, figure, rgba, upright, whiskers

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
    x, *ends = ([s.get(key) for s in steps] for key in ("step", "reward_low", "reward_high"))
    return _by_step(
        steps,
        *band(x, *ends, COLORS[0], "95% interval of a step's answers"),
        *_noted(steps, "reward", dict(color=COLORS[0], size=6), dict(color=COLORS[0], width=2.5)),
        title=title,
        y="reward",
    )


def _noted(steps: Steps, key: str, marker: Any, line: Any) -> list[dict[str, Any]]:
    """A number of each step, and its running mean."""
    x = [s["step"] for s in steps]
    y = [s.get(key) for s in steps]
    return [
        dict(
            x=x,
            y=y,
            mode="markers",
            name="step",
            marker=marker,
        ),
        dict(
            x=x,
            y=running(y),
            mode="lines",
            name="mean of five steps",
            line=line,
        ),
    ]


def health(steps: Steps, *, title: str = "What the groups can teach") -> Any:
    """Share of groups that are mixed, all good, all bad, all equal, unknown: a stacked area per
    step.
    """
    shares = {
        key: [(s.get(key) or 0) / s["groups"] if s.get("groups") else None for s in steps]
        for key, _, _ in HEALTH
    }
    areas = [
        dict(
            x=[s["step"] for s in steps],
            y=shares[key],
            mode="lines",
            name=name,
            stackgroup="one",
            line=dict(width=0.5, color=color),
            fillcolor=rgba(color, 0.6),
        )
        for key, name, color in HEALTH
        if any(shares[key])
    ]
    shown = dict(showlegend=True, yaxis_range=[0, 1])  # of one kind, too: which one?
    return _by_step(steps, *areas, title=title, y="share of groups", **shown)


def criteria(
    steps: Steps,
    *,
    names: Mapping[str, str] | None = None,
    title: str = "What the reward is made of",
) -> Any:
    """Share of answers that meet each criterion, mean of five steps; names : criterion id -> text
    for the legend.
    """
    ids = list(dict.fromkeys(i for s in steps for i in (s.get("criteria") or {})))
    lines = [
        dict(
            x=[s["step"] for s in steps],
            y=running([(s.get("criteria") or {}).get(i) for s in steps]),
            mode="lines",
            name=_short((names or {}).get(i, i)),
            line=dict(
                color=COLORS[n % len(COLORS)],
                dash=("solid", "dash", "dot")[n // len(COLORS) % 3],
            ),
        )
        for n, i in enumerate(ids)
    ]
    options = dict(y="share met", height=460, yaxis_range=[0, 1.02])
    return _by_step(steps, *lines, title=title, **options)


def series(steps: Steps, key: str, *, title: str = "", y: str = "") -> Any:
    """One number of steps.jsonl per step, with a running mean: words, tokens, truncated, entropy,
    kl, grad_norm ...
    """
    style = dict(color=rgba(COLORS[0], 0.5), size=5), dict(color=COLORS[0])
    options = dict(title=title or key, y=y or key, height=320)
    return _by_step(steps, *_noted(steps, key, *style), **options)


def lengths(steps: Steps) -> Any:
    """Words per answer and the share of answers that were cut off."""
    cut = dict(
        x=[s["step"] for s in steps],
        y=[s.get("truncated") for s in steps],
        mode="lines",
        name="share cut off (right axis)",
        yaxis="y2",
        line=dict(color=COLORS[1], dash="dot"),
    )
    right = dict(
        overlaying="y",
        side="right",
        range=[0, 1.02],
        tickmode="auto",
        showgrid=False,
        title=dict(text="share cut off"),
    )
    words = series(steps, "words", title="Length of answers", y="words")
    return words.add_trace(cut).update_layout(yaxis2=right)


def time_split(steps: Steps, *, title: str = "Where the time goes") -> Any:
    """Seconds per step for generation, judge and update, stacked."""
    bars = [
        dict(
            type="bar",
            x=[s["step"] for s in steps],
            y=[s.get(key) for s in steps],
            name=name,
            marker=dict(color=color),
        )
        for key, name, color in SPLIT
    ]
    options = dict(y="seconds", height=320, barmode="stack", bargap=0.1)
    return _by_step(steps, *bars, title=title, **options)


def gain(result: Any, *, title: str = "Held-out: after minus before") -> Any:
    """The gain and what it is made of: differences with their intervals, for a
    kit.train.evaluation.Gain.
    """
    rows = [r for r in result.table() if r["what"] != "words per answer"][::-1]
    marks = dict(
        x=[r["difference"] for r in rows],
        y=[_short(r["what"], 60) for r in rows],
        mode="markers",
        showlegend=False,
        marker=dict(
            size=9, color=[COLORS[1] if r["what"] == "reward" else COLORS[0] for r in rows]
        ),
        error_x=whiskers((r["difference"], r["low"], r["high"]) for r in rows),
    )
    height = 110 + 44 * len(rows)
    return figure(marks, title=title, x="difference", height=height, shapes=upright(0, "dot"))


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
    bars = dict(
        type="bar",
        x=values,
        y=names,
        orientation="h",
        showlegend=False,
        marker=dict(color=[GREY] * len(known) + [COLORS[0], COLORS[1]]),
        error_x=whiskers(ends),
    )
    return figure(bars, title=title, x="mean reward", height=110 + 30 * len(names))


def running(values: Sequence[float | None], width: int = 5) -> list[float | None]:
    """Mean of the last `width` known values up to each place.

    >>> running([1, None, 3], 2)
    [1.0, 1.0, 3.0]
    """
    last = (values[max(0, i - width) : i] for i in range(1, len(values) + 1))
    known = ([v for v in some if v is not None] for some in last)
    return [sum(some) / len(some) if some else None for some in known]


def _by_step(steps: Steps, *traces: Mapping[str, Any], **options: Any) -> Any:
    """A figure over steps; few steps are all named, and nothing between them."""
    ticks = dict(tickmode="linear", tick0=0, dtick=1) if len(steps) <= 12 else {}
    return figure(*traces, x="step", xaxis=ticks, **options)


def _short(text: str, size: int = 48) -> str:
    return text if len(text) <= size else text[: size - 1] + "…"
