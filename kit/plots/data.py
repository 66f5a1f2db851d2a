"""Overviews of a rubric data set. Numbers come from `kit.rubrics`; each figure's numbers are also a
table there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..records import grouped
from . import theme

SEVERITY_COLORS = {"error": theme.COLORS[1], "warning": theme.COLORS[4], "info": theme.COLORS[5]}


def criteria_per_task(summary: Any) -> Any:
    """Histogram: how many tasks have how many criteria."""
    s = summary.per_task
    note = (
        f"min / median / max {s.min:g} / {s.median:g} / {s.max:g}, n={s.n} tasks"
        if s.n
        else "no task"
    )
    counts = dict(sorted(summary.histograms["per_task"].items()))
    bars = dict(
        type="bar",
        x=list(counts),
        y=list(counts.values()),
        name="tasks",
        marker=dict(color=theme.COLORS[0]),
        hovertemplate="%{x}: %{y}<extra></extra>",
    )
    return theme.figure(
        bars,
        title=f"Criteria per task<br><sub>{note}</sub>",
        x="criteria",
        y="tasks",
        height=360,
        showlegend=False,
        bargap=0.1,
        # of one value the ticks were 2.6, 2.8, 3.2
        xaxis_tickvals=list(counts) if len(counts) < 20 else None,
    )


def lengths(summary: Any) -> Any:
    """Share of prompts, criteria and answers by length in tokens (about)."""
    names = {"prompt": "prompts", "criterion": "criteria", "response": "answers"}
    found = [(names[what], summary.histograms[what]) for what in names]
    return theme.figure(
        *(_spread(i, label, h) for i, (label, h) in enumerate(found) if any(h.values())),
        title="Lengths<br><sub>tokens, about four characters each; log axis</sub>",
        x="tokens",
        y="share of texts",
        height=380,
        xaxis_type="log",
        yaxis_tickformat=".0%",
        yaxis_rangemode="tozero",
    )


def _spread(i: int, label: str, histogram: Mapping[float, int]) -> dict[str, Any]:
    """Shares of texts by length, in steps of the root of two."""
    edges = [2 ** (k / 2) for k in range(0, 41)]
    counts = [0] * len(edges)
    total = sum(histogram.values())
    for value, n in histogram.items():
        counts[sum(e <= max(1.0, value) for e in edges) - 1] += n
    last = max(k for k, c in enumerate(counts) if c)
    return dict(
        x=edges[: last + 1],
        y=[c / total for c in counts[: last + 1]],
        mode="lines+markers",
        name=f"{label} (n={total})",
        line=dict(color=theme.COLORS[i], shape="hv", dash=theme.DASHES[i]),
        marker=dict(symbol=theme.MARKERS[i], size=5),
        hovertemplate="from %{x:.0f} tokens: %{y:.1%}<extra></extra>",
    )


def weights(summary: Any) -> Any:
    """How often each weight occurs; negative weights in another colour."""
    items = sorted(summary.histograms["weight"].items())
    named = [f"{w:g}" for w, _ in items]
    few = dict(type="category", categoryorder="array", categoryarray=named)
    bars = [
        dict(
            type="bar",
            x=[w if len(items) > 40 else f"{w:g}" for w, _ in part],
            y=[n for _, n in part],
            name=name,
            marker=dict(color=color),
            hovertemplate="weight %{x}: %{y}<extra></extra>",
        )
        for name, part, color in (
            ("must not happen", [x for x in items if x[0] < 0], theme.COLORS[1]),
            ("wanted", [x for x in items if x[0] >= 0], theme.COLORS[0]),
        )
        if part
    ]
    return theme.figure(
        *bars,
        title=f"Weights<br><sub>{summary.negative} negative, {summary.zero} zero, of "
        f"{summary.criteria} criteria</sub>",
        x="weight",
        y="criteria",
        height=360,
        xaxis=few if len(items) <= 40 else {},
    )


def kinds(summary: Any, *, what: str = "kinds", top: int = 20) -> Any:
    """The most frequent kinds (or tags, checks, splits), as horizontal bars."""
    counts = sorted(getattr(summary, what).items(), key=lambda x: -x[1])
    shown = counts[:top][::-1]
    rest = sum(n for _, n in counts[top:])
    bars = dict(
        type="bar",
        x=[n for _, n in shown],
        y=[theme.safe(k, 40) for k, _ in shown],
        orientation="h",
        marker=dict(color=theme.COLORS[0]),
        hovertemplate="%{y}: %{x}<extra></extra>",
    )
    return theme.figure(
        bars,
        title=f"{what.capitalize()}<br><sub>{len(counts)} different"
        + (f"; {rest} in those not shown" if rest else "")
        + "</sub>",
        x="count",
        height=max(260, 120 + 22 * len(shown)),
        showlegend=False,
    )


def overview(summary: Any, *, what: str = "criteria per task") -> Any:
    """One side of a summary: "criteria per task", "weights", "lengths" or "kinds"."""
    sides = {"criteria per task": criteria_per_task, "weights": weights, "lengths": lengths}
    return sides.get(what, kinds)(summary)


def findings(lint: Any) -> Any:
    """Findings per rule, coloured by severity."""
    table = lint.table()
    order = [r["rule"] for r in sorted(table, key=lambda r: r["findings"])]
    by = grouped((r["severity"], r) for r in table)
    bars = [
        dict(
            type="bar",
            x=[r["findings"] for r in by[severity]],
            y=[r["rule"] for r in by[severity]],
            orientation="h",
            name=severity,
            marker=dict(color=color),
            customdata=[theme.safe(r["message"], 100) for r in by[severity]],
            hovertemplate="%{y}: %{x}<br>%{customdata}<extra></extra>",
        )
        for severity, color in SEVERITY_COLORS.items()
        if severity in by
    ]
    return theme.figure(
        *bars,
        title=f"Lint findings<br><sub>{lint.tasks} tasks, {lint.criteria} criteria</sub>",
        x="findings",
        height=max(260, 140 + 24 * len(set(order))),
        barmode="stack",
        yaxis_categoryorder="array",
        yaxis_categoryarray=list(dict.fromkeys(order)),
    )
