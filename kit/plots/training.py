"""Figures of a training from its steps, rollouts and evaluations; nothing is computed here but
running means for the eye.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .theme import COLORS, GREY, figure, rgba

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


def reward(steps: Steps, *, evals: Steps = (), title: str = "Training reward") -> Any:
    """Mean reward per step with its interval, a running mean over five steps, and held-out
    evaluations where there are any.

    steps : rows of steps.jsonl; evals : rows {step, reward, low, high}.
    """
    import plotly.graph_objects as go

    fig = _by_step(steps, title=title, y="reward")
    x = [s["step"] for s in steps]
    _band(
        fig,
        x,
        [s.get("reward_low") for s in steps],
        [s.get("reward_high") for s in steps],
        COLORS[0],
        "95% interval of a step's answers",
    )
    fig.add_trace(
        go.Scatter(
            x=x,
            y=[s.get("reward") for s in steps],
            mode="markers",
            name="step",
            marker=dict(color=COLORS[0], size=6),
        )
    )
    fig.add_trace(
        go.Scatter(
            x=x,
            y=running([s.get("reward") for s in steps]),
            mode="lines",
            name="mean of five steps",
            line=dict(color=COLORS[0], width=2.5),
        )
    )
    if evals:
        fig.add_trace(
            go.Scatter(
                x=[e["step"] for e in evals],
                y=[e["reward"] for e in evals],
                mode="markers",
                name="held-out prompts",
                marker=dict(color=COLORS[1], size=10, symbol="diamond"),
                error_y=dict(
                    type="data",
                    symmetric=False,
                    array=[_gap(e["high"], e["reward"]) for e in evals],
                    arrayminus=[_gap(e["reward"], e["low"]) for e in evals],
                ),
            )
        )
    return fig


def health(steps: Steps, *, title: str = "What the groups can teach") -> Any:
    """Share of groups that are mixed, all good, all bad, all equal, unknown: a stacked area per
    step.
    """
    import plotly.graph_objects as go

    fig = _by_step(steps, title=title, y="share of groups")
    x = [s["step"] for s in steps]
    for key, name, color in HEALTH:
        y = [(s.get(key) or 0) / s["groups"] if s.get("groups") else None for s in steps]
        if any(y):
            fig.add_trace(
                go.Scatter(
                    x=x,
                    y=y,
                    mode="lines",
                    name=name,
                    stackgroup="one",
                    line=dict(width=0.5, color=color),
                    fillcolor=rgba(color, 0.6),
                )
            )
    fig.update_yaxes(range=[0, 1])
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
    import plotly.graph_objects as go

    fig = _by_step(steps, title=title, y="share met", height=460)
    ids = list(dict.fromkeys(i for s in steps for i in (s.get("criteria") or {})))
    for n, i in enumerate(ids):
        y = running([(s.get("criteria") or {}).get(i) for s in steps])
        fig.add_trace(
            go.Scatter(
                x=[s["step"] for s in steps],
                y=y,
                mode="lines",
                name=_short((names or {}).get(i, i)),
                line=dict(
                    color=COLORS[n % len(COLORS)],
                    dash=("solid", "dash", "dot")[n // len(COLORS) % 3],
                ),
            )
        )
    fig.update_yaxes(range=[0, 1.02])
    return fig


def series(steps: Steps, key: str, *, title: str = "", y: str = "") -> Any:
    """One number of steps.jsonl per step, with a running mean: words, tokens, truncated, entropy,
    kl, grad_norm ...
    """
    import plotly.graph_objects as go

    fig = _by_step(steps, title=title or key, y=y or key, height=320)
    x, values = [s["step"] for s in steps], [s.get(key) for s in steps]
    fig.add_trace(
        go.Scatter(
            x=x,
            y=values,
            mode="markers",
            name="step",
            marker=dict(color=rgba(COLORS[0], 0.5), size=5),
        )
    )
    fig.add_trace(
        go.Scatter(
            x=x,
            y=running(values),
            mode="lines",
            name="mean of five steps",
            line=dict(color=COLORS[0]),
        )
    )
    return fig


def lengths(steps: Steps) -> Any:
    """Words per answer and the share of answers that were cut off."""
    import plotly.graph_objects as go

    fig = series(steps, "words", title="Length of answers", y="words")
    fig.add_trace(
        go.Scatter(
            x=[s["step"] for s in steps],
            y=[s.get("truncated") for s in steps],
            mode="lines",
            name="share cut off (right axis)",
            yaxis="y2",
            line=dict(color=COLORS[1], dash="dot"),
        )
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


def entropy(steps: Steps) -> Any:
    """Entropy of the next token in nats: falling to 0 means that the policy says the same thing
    always.
    """
    return series(steps, "entropy", title="Entropy of the policy", y="nats per token")


def divergence(steps: Steps) -> Any:
    """KL to the starting model in nats per token; empty when beta is 0 and nothing measured it."""
    return series(steps, "kl", title="KL to the starting model", y="nats per token")


def time_split(steps: Steps, *, title: str = "Where the time goes") -> Any:
    """Seconds per step for generation, judge and update, stacked."""
    import plotly.graph_objects as go

    fig = _by_step(steps, title=title, y="seconds", height=320)
    for key, name, color in SPLIT:
        fig.add_trace(
            go.Bar(
                x=[s["step"] for s in steps],
                y=[s.get(key) for s in steps],
                name=name,
                marker=dict(color=color),
            )
        )
    fig.update_layout(barmode="stack", bargap=0.1)
    return fig


def sentinels(
    steps: Steps, *, limit: float | None = None, title: str = "Answers that trip a sentinel"
) -> Any:
    """Share of answers that trip any attack sentinel, and each kind that was seen; share of words
    that say nothing new; lines at first alarms.

    limit : the setting sentinel_alarm, drawn as a level.
    """
    import plotly.graph_objects as go

    fig = _by_step(steps, title=title, y="share of answers", height=320)
    x = [s["step"] for s in steps]
    share = lambda s, n: n / s["answers"] if s.get("answers") else None  # noqa: E731
    fig.add_trace(
        go.Scatter(
            x=x,
            y=[share(s, s.get("flagged") or 0) for s in steps],
            mode="lines+markers",
            name="any",
            line=dict(color=COLORS[1], width=2.5),
        )
    )
    for n, kind in enumerate(dict.fromkeys(k for s in steps for k in (s.get("sentinels") or {}))):
        fig.add_trace(
            go.Scatter(
                x=x,
                y=[share(s, (s.get("sentinels") or {}).get(kind, 0)) for s in steps],
                mode="lines",
                name=kind.replace("_", " "),
                line=dict(color=COLORS[(n + 2) % len(COLORS)], dash="dot"),
            )
        )
    if limit:
        fig.add_hline(y=limit, line=dict(color=GREY, dash="dash", width=1))
    _first_alarm(fig, steps, "sentinels:")
    fig.update_yaxes(range=[0, 1.02])
    return fig


def audits(
    rows: Steps, *, title: str = "Judge audit: the training reward and a second judge"
) -> Any:
    """Mean reward of the audited answers by the training judge and by the second one (rows of
    audits.jsonl); a line marks the alarm.
    """
    import plotly.graph_objects as go

    fig = _by_step(rows, title=title, y="reward", height=320)
    for key, name, color in (
        ("training", "judge of the training", COLORS[0]),
        ("audit", "second judge", COLORS[1]),
    ):
        fig.add_trace(
            go.Scatter(
                x=[r["step"] for r in rows],
                y=[r.get(key) for r in rows],
                mode="lines+markers",
                name=name,
                line=dict(color=color),
            )
        )
    _first_alarm(
        fig,
        [{"step": r["step"], "alarms": [r["alarm"]] if r.get("alarm") else []} for r in rows],
        "",
    )
    return fig


def gain(result: Any, *, title: str = "Held-out: after minus before") -> Any:
    """The gain and what it is made of: differences with their intervals, for a
    kit.train.evaluation.Gain.
    """
    import plotly.graph_objects as go

    rows = [r for r in result.table() if r["what"] != "words per answer"][::-1]
    fig = figure(title=title, x="difference", height=110 + 44 * len(rows))
    fig.add_trace(
        go.Scatter(
            x=[r["difference"] for r in rows],
            y=[_short(r["what"], 60) for r in rows],
            mode="markers",
            showlegend=False,
            marker=dict(
                size=9, color=[COLORS[1] if r["what"] == "reward" else COLORS[0] for r in rows]
            ),
            error_x=dict(
                type="data",
                symmetric=False,
                array=[_gap(r["high"], r["difference"]) for r in rows],
                arrayminus=[_gap(r["difference"], r["low"]) for r in rows],
            ),
        )
    )
    fig.add_vline(x=0, line=dict(color=GREY, dash="dot"))
    return fig


def policies(
    result: Any, *, title: str = "Held-out reward beside policies that need no skill"
) -> Any:
    """Before, after, and every trivial policy: mean reward on the same prompts, with intervals for
    the first two.
    """
    import plotly.graph_objects as go

    known = sorted(((v, k) for k, v in result.trivial.items() if v is not None))
    names = [*(k for _, k in known), "before training", "after training"]
    values = [*(v for v, _ in known), result.before.value, result.after.value]
    ends = [(e.low, e.high) for e in (result.before, result.after)]
    up = [0.0] * len(known) + [
        _gap(h, e.value) for (_, h), e in zip(ends, (result.before, result.after), strict=True)
    ]
    down = [0.0] * len(known) + [
        _gap(e.value, low) for (low, _), e in zip(ends, (result.before, result.after), strict=True)
    ]
    fig = figure(title=title, x="mean reward", height=110 + 30 * len(names))
    fig.add_trace(
        go.Bar(
            x=values,
            y=names,
            orientation="h",
            showlegend=False,
            marker=dict(color=[GREY] * len(known) + [COLORS[0], COLORS[1]]),
            error_x=dict(type="data", symmetric=False, array=up, arrayminus=down),
        )
    )
    return fig


def table(steps: Steps) -> list[dict[str, Any]]:
    """The numbers behind the figures: one flat row per step."""
    keys = (
        "step",
        "reward",
        "reward_low",
        "reward_high",
        "answers",
        "unknown_rewards",
        "groups",
        "mixed",
        "good",
        "bad",
        "flat",
        "groups_unknown",
        "words",
        "tokens",
        "truncated",
        "entropy",
        "kl",
        "grad_norm",
        "seconds_generation",
        "seconds_judge",
        "seconds_update",
        "seconds_kit",
        "judge_cost",
        "flagged",
        "saturated",
    )
    return [
        {
            **{k: s.get(k) for k in keys},
            **{f"criterion {i}": v for i, v in (s.get("criteria") or {}).items()},
            **{f"sentinel {i}": v for i, v in (s.get("sentinels") or {}).items()},
            "alarms": " | ".join(s.get("alarms") or ()),
        }
        for s in steps
    ]


def running(values: Sequence[float | None], width: int = 5) -> list[float | None]:
    """Mean of the last `width` known values up to each place.

    >>> running([1, None, 3], 2)
    [1.0, 1.0, 3.0]
    """
    out: list[float | None] = []
    for i in range(len(values)):
        known = [v for v in values[max(0, i - width + 1) : i + 1] if v is not None]
        out.append(sum(known) / len(known) if known else None)
    return out


def _by_step(steps: Steps, **options: Any) -> Any:
    """An empty figure over steps; few steps are all named, and nothing between them."""
    fig = figure(x="step", **options)
    if len(steps) <= 12:
        fig.update_xaxes(tickmode="linear", tick0=0, dtick=1)
    return fig


def _band(
    fig: Any, x: Sequence[Any], low: Sequence[Any], high: Sequence[Any], color: str, name: str
) -> None:
    import plotly.graph_objects as go

    known = [
        (a, b, c) for a, b, c in zip(x, low, high, strict=True) if b is not None and c is not None
    ]
    if known:
        xs, lo, hi = zip(*known, strict=True)
        fig.add_trace(
            go.Scatter(
                x=[*xs, *xs[::-1]],
                y=[*hi, *lo[::-1]],
                fill="toself",
                fillcolor=rgba(color, 0.15),
                line=dict(width=0),
                mode="lines",
                name=name,
                hoverinfo="skip",
            )
        )


def _first_alarm(fig: Any, steps: Steps, start: str) -> None:
    at = next(
        (s["step"] for s in steps if any(a.startswith(start) for a in s.get("alarms") or ())), None
    )
    if at is not None:
        fig.add_vline(
            x=at,
            line=dict(color=COLORS[1], width=1.5),
            annotation_text="alarm",
            annotation_position="top left",
        )


def _gap(a: float | None, b: float | None) -> float:
    return 0.0 if a is None or b is None or a != a or b != b else max(0.0, a - b)


def _short(text: str, size: int = 48) -> str:
    return text if len(text) <= size else text[: size - 1] + "…"
