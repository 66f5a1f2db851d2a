"""Figures of judges: the audit's rates, escalation's trade-off, agreement of several judges.
Numbers come from result objects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from . import theme


def audit(report: Any) -> Any:
    """Rates with 95% intervals of an AuditReport, attacks above biases; hollow where there is no
    rate.
    """
    title = (
        f"Audit of {theme.safe(report.judge)}<br><sub>{report.n_responses} answers to "
        f"{report.n_tasks} tasks; attack: share of failed "
        "criteria that turn into credit; bias: share of verdicts that change</sub>"
    )
    rows = report.table()
    return _rates({k: [r for r in rows if r["kind"] == k] for k in ("attack", "bias")}, title)


def audit_page(report: Any) -> str:
    """Figure and table of an AuditReport as one HTML page that needs no network."""
    from ..page import document, figures_html

    return document(f"Audit of {report.judge}", figures_html(audit(report)) + report._repr_html_())


def audits(reports: Sequence[Any]) -> Any:
    """Several judges' audits side by side: one colour and marker a judge."""
    return _rates({r.judge: r.table() for r in reports}, "Audit", scattermode="group")


def _rates(found: Mapping[str, Sequence[Mapping[str, Any]]], title: str, **layout: Any) -> Any:
    """Rows with a rate, a colour and a marker for each name."""
    every = {name: [r for r in rows if r["rate"] is not None] for name, rows in found.items()}
    names = [
        theme.safe(n) for n in dict.fromkeys(r["name"] for rows in every.values() for r in rows)
    ]
    marks = [
        dict(
            name=theme.safe(name),
            mode="markers",
            x=[r["rate"] for r in rows],
            y=[theme.safe(r["name"]) for r in rows],
            error_x=theme.whiskers(((r["rate"], r["low"], r["high"]) for r in rows), thickness=1.4),
            marker=dict(
                size=9,
                color=theme.COLORS[k % len(theme.COLORS)],
                symbol=theme.MARKERS[k % len(theme.MARKERS)],
            ),
            customdata=[theme.safe(f"{r['what']}; n={r['n']}") for r in rows],
            hovertemplate="%{y}: %{x:.1%}<br>%{customdata}<extra></extra>",
        )
        for k, (name, rows) in enumerate(every.items())
    ]
    return theme.figure(
        *marks,
        title=title,
        x="rate",
        height=180 + 30 * max(len(names), 4),
        xaxis_range=[-0.02, 1.02],
        xaxis_tickformat=".0%",
        yaxis_autorange="reversed",
        yaxis_categoryorder="array",
        yaxis_categoryarray=names,
        **layout,
    )
