"""Figures of judges: the audit's rates, escalation's trade-off, agreement of several judges.
Numbers come from result objects.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

from . import theme


def audit(report: Any) -> Any:
    """Rates with 95% intervals of an AuditReport, attacks above biases; hollow where there is no
    rate.
    """
    rows = [r for r in report.table() if r["rate"] is not None]
    fig = theme.figure(
        title=f"Audit of {html.escape(report.judge)}<br><sub>{report.n_responses} answers to "
        f"{report.n_tasks} tasks; attack: share of failed "
        "criteria that turn into credit; bias: share of verdicts that change</sub>",
        x="rate",
        height=160 + 26 * max(len(rows), 4),
    )
    for k, kind in enumerate(("attack", "bias")):
        part = [r for r in rows if r["kind"] == kind]
        _dots(
            fig,
            kind,
            [r["name"] for r in part],
            part,
            k,
            hover=[f"{r['what']}; n={r['n']}" for r in part],
        )
    fig.update_xaxes(range=[-0.02, 1.02], tickformat=".0%")
    fig.update_yaxes(
        autorange="reversed",
        categoryorder="array",
        categoryarray=[html.escape(r["name"]) for r in rows],
    )
    return fig


def audit_page(report: Any) -> str:
    """Figure and table of an AuditReport as one HTML page that needs no network."""
    from ..page import document, figures_html

    return document(f"Audit of {report.judge}", figures_html(audit(report)) + report._repr_html_())


def audits(reports: Sequence[Any]) -> Any:
    """Several judges' audits side by side: one colour and marker a judge."""
    names = list(
        dict.fromkeys(
            r["name"] for report in reports for r in report.table() if r["rate"] is not None
        )
    )
    fig = theme.figure(title="Audit", x="rate", height=180 + 34 * max(len(names), 4))
    for k, report in enumerate(reports):
        part = [r for r in report.table() if r["rate"] is not None]
        _dots(
            fig,
            report.judge,
            [r["name"] for r in part],
            part,
            k,
            hover=[f"{r['what']}; n={r['n']}" for r in part],
        )
    fig.update_layout(scattermode="group")
    fig.update_xaxes(range=[-0.02, 1.02], tickformat=".0%")
    fig.update_yaxes(
        autorange="reversed", categoryorder="array", categoryarray=[html.escape(n) for n in names]
    )
    return fig


def _dots(
    fig: Any,
    name: str,
    labels: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    k: int,
    *,
    hover: Sequence[str],
) -> None:
    ends = ((r["rate"], r["low"], r["high"]) for r in rows)
    fig.add_scatter(
        name=html.escape(name),
        mode="markers",
        x=[r["rate"] for r in rows],
        y=[html.escape(x) for x in labels],
        error_x=theme.whiskers(ends, thickness=1.4),
        marker=dict(
            size=9,
            color=theme.COLORS[k % len(theme.COLORS)],
            symbol=theme.MARKERS[k % len(theme.MARKERS)],
        ),
        customdata=[html.escape(h) for h in hover],
        hovertemplate="%{y}: %{x:.1%}<br>%{customdata}<extra></extra>",
    )
