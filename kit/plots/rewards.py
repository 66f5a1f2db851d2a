"""Figures over reward results; nothing is computed here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..records import Grade
from ..rewards.composer import Composer
from .theme import COLORS, figure


def weights(composer: Composer) -> Any:
    """Bars of the components' shares of the total weight; hover shows kind and options."""
    rows = [r for r in composer.table() if r["kind"] != "step"]
    bars = dict(
        type="bar",
        y=[r["step"] for r in rows],
        x=[r["share"] for r in rows],
        orientation="h",
        marker_color=COLORS[0],
        customdata=[[r["kind"], r["weight"], r["options"]] for r in rows],
        hovertemplate="%{y}: %{x:.1%}<br>%{customdata[0]}, weight "
        "%{customdata[1]}<br>%{customdata[2]}<extra></extra>",
    )
    return figure(
        bars,
        title=f"Reward {composer.name}: shares of the weight",
        x="share",
        height=120 + 36 * len(rows),
        xaxis_tickformat=".0%",
        yaxis_autorange="reversed",
    )


def contributions(
    grades: Sequence[Grade], *, labels: Sequence[str] | None = None, top: int = 40
) -> Any:
    """Who contributes what: one bar per response, stacked by component and step; the dot is the
    reward.
    """
    grades = list(grades)[:top]
    names = list(dict.fromkeys(k for g in grades for k, v in g.parts.items() if v is not None))
    x = list(labels or [g.response_id for g in grades])[: len(grades)]
    bars = [
        dict(
            type="bar",
            name=n,
            x=x,
            y=[g.parts.get(n) for g in grades],
            marker_color=COLORS[i % len(COLORS)],
            hovertemplate=f"{n}: %{{y:.3f}}<extra>%{{x}}</extra>",
        )
        for i, n in enumerate(names)
    ]
    dots = dict(
        name="reward",
        x=x,
        y=[g.score for g in grades],
        mode="markers",
        marker=dict(color="#000", size=8, symbol="diamond"),
        customdata=[[g.score_low, g.score_high] for g in grades],
        hovertemplate="reward %{y:.3f} [%{customdata[0]:.3f}, "
        "%{customdata[1]:.3f}]<extra>%{x}</extra>",
    )
    return figure(
        *bars,
        dots,
        title="What each answer's reward is made of",
        y="contribution to the reward",
        barmode="relative",
        # long names of answers take the room below, where a legend usually stands
        legend=dict(y=1.0, yanchor="bottom"),
    )
