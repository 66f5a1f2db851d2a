"""Figures over reward results; nothing is computed here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..records import Grade
from ..rewards.composer import Composer
from ..rewards.report import RewardReport
from .theme import COLORS, GREY, MARKERS, figure


def weights(composer: Composer) -> Any:
    """Bars of the components' shares of the total weight; hover shows kind and options."""
    rows = [r for r in composer.table() if r["kind"] != "step"]
    fig = figure(
        title=f"Reward {composer.name}: shares of the weight",
        x="share",
        height=120 + 36 * len(rows),
    )
    fig.add_bar(
        y=[r["step"] for r in rows],
        x=[r["share"] for r in rows],
        orientation="h",
        marker_color=COLORS[0],
        customdata=[[r["kind"], r["weight"], r["options"]] for r in rows],
        hovertemplate="%{y}: %{x:.1%}<br>%{customdata[0]}, weight "
        "%{customdata[1]}<br>%{customdata[2]}<extra></extra>",
    )
    fig.update_yaxes(autorange="reversed")
    fig.update_xaxes(tickformat=".0%")
    return fig


def contributions(
    grades: Sequence[Grade], *, labels: Sequence[str] | None = None, top: int = 40
) -> Any:
    """Who contributes what: one bar per response, stacked by component and step; the dot is the
    reward.
    """
    grades = list(grades)[:top]
    names = list(dict.fromkeys(k for g in grades for k, v in g.parts.items() if v is not None))
    x = list(labels or [g.response_id for g in grades])[: len(grades)]
    fig = figure(title="What each answer's reward is made of", y="contribution to the reward")
    for i, n in enumerate(names):
        fig.add_bar(
            name=n,
            x=x,
            y=[g.parts.get(n) for g in grades],
            marker_color=COLORS[i % len(COLORS)],
            hovertemplate=f"{n}: %{{y:.3f}}<extra>%{{x}}</extra>",
        )
    fig.add_scatter(
        name="reward",
        x=x,
        y=[g.score for g in grades],
        mode="markers",
        marker=dict(color="#000", size=8, symbol="diamond"),
        customdata=[[g.score_low, g.score_high] for g in grades],
        hovertemplate="reward %{y:.3f} [%{customdata[0]:.3f}, "
        "%{customdata[1]:.3f}]<extra>%{x}</extra>",
    )
    # long names of answers take the room below, where a legend usually stands
    fig.update_layout(barmode="relative", legend=dict(y=1.0, yanchor="bottom"))
    return fig


def trivial(report: RewardReport) -> Any:
    """Trivial policies beside the real answers to the same tasks, with the interval of the
    difference.
    """
    rows = report.trivial
    fig = figure(
        title="What an answer without skill earns", x="mean reward", height=140 + 34 * len(rows)
    )
    y = [r.policy for r in rows]
    hover = [[str(r.difference), r.warning or "", r.difference.n] for r in rows]
    fig.add_scatter(
        name="trivial policy",
        y=y,
        x=[r.trivial for r in rows],
        mode="markers",
        marker=dict(color=COLORS[1], size=11, symbol=MARKERS[1]),
        customdata=hover,
        hovertemplate="%{y}: %{x:.3f} on %{customdata[2]} tasks<br>real minus trivial "
        "%{customdata[0]}<br>%{customdata[1]}<extra></extra>",
    )
    fig.add_scatter(
        name="real answers",
        y=y,
        x=[r.real for r in rows],
        mode="markers",
        marker=dict(color=COLORS[0], size=11, symbol=MARKERS[0]),
        customdata=hover,
        error_x=dict(
            type="data",
            symmetric=False,
            color=GREY,
            array=[r.difference.high - r.difference.value for r in rows],
            arrayminus=[r.difference.value - r.difference.low for r in rows],
        ),
        hovertemplate="real answers: %{x:.3f} on %{customdata[2]} tasks<br>real minus trivial "
        "%{customdata[0]}<extra></extra>",
    )
    fig.update_yaxes(autorange="reversed")
    return fig


def correlations(report: RewardReport) -> Any:
    """Heat map of the correlations between components, with the numbers in the cells."""
    names = list(report.components)
    text = [["" if v != v else f"{v:.2f}" for v in row] for row in report.correlations]
    fig = figure(title="Correlation between components", height=360)
    fig.add_heatmap(
        z=report.correlations,
        x=names,
        y=names,
        zmin=-1,
        zmax=1,
        colorscale=[[0, COLORS[1]], [0.5, "#ffffff"], [1, COLORS[0]]],
        text=text,
        texttemplate="%{text}",
        hovertemplate="%{x} and %{y}: %{z:.3f}<extra></extra>",
    )
    return fig


def criteria(report: RewardReport) -> Any:
    """Mean against spread of every criterion within its group; saturated ones lie on the bottom
    line.
    """
    fig = figure(
        title="Criteria: mean and spread within their group<br><sub>a criterion without spread "
        "teaches nothing</sub>",
        x="mean",
        y="standard deviation",
    )
    for i, (name, rows) in enumerate(
        (
            ("separates answers", [c for c in report.criteria if not c.saturated]),
            ("saturated", [c for c in report.criteria if c.saturated]),
        )
    ):
        fig.add_scatter(
            name=name,
            x=[c.mean for c in rows],
            y=[c.sd for c in rows],
            mode="markers",
            marker=dict(color=COLORS[i], symbol=MARKERS[i], size=8, opacity=0.7),
            customdata=[[c.task_id, c.criterion_id, c.n, c.unknown] for c in rows],
            hovertemplate="%{customdata[0]} %{customdata[1]}<br>mean %{x:.2f}, sd %{y:.2f}, "
            "n=%{customdata[2]}, unknown %{customdata[3]}<extra></extra>",
        )
    return fig


def groups(report: RewardReport) -> Any:
    """One bar: shares of mixed, all-good and all-bad groups."""
    g = report.groups
    fig = figure(
        title=f"Groups: {g.groups}, of which {g.excluded} excluded",
        x="share of the groups",
        height=220,
    )
    for i, (name, share) in enumerate(
        (("mixed", g.mixed), ("all good", g.all_good), ("all bad", g.all_bad))
    ):
        fig.add_bar(
            name=name,
            y=["groups"],
            x=[share],
            orientation="h",
            marker_color=COLORS[i],
            hovertemplate=f"{name}: %{{x:.1%}}<extra></extra>",
        )
    fig.update_layout(barmode="stack")
    fig.update_xaxes(tickformat=".0%", range=[0, 1])
    return fig
