"""Runs side by side: one row a run, its value and interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from . import theme


def groups(rows: Sequence[Mapping[str, Any]], *, most: int = 12) -> dict[tuple[str, str], list[Mapping[str, Any]]]:
    """Rows by (notebook, metric), those with intervals first, at most `most` groups."""
    out: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for r in rows:
        out.setdefault((r["notebook"], r["metric"]), []).append(r)
    ranked = sorted(out.items(), key=lambda kv: (all(r.get("low") is None for r in kv[1]), kv[0]))
    return dict(ranked[:most])


def label(row: Mapping[str, Any]) -> str:
    """A short name of a run: its parameters that are not defaults, else its id."""
    params = {k: v for k, v in row.get("params", {}).items() if k not in ("profile",)}
    return ", ".join(f"{k}={v}" for k, v in params.items())[:48] + f" ({row['run'][:15]})" if params else row["run"]


def forest(rows: Sequence[Mapping[str, Any]], *, title: str = "") -> Any:
    """A forest plot: `rows` hold run, value and perhaps low, high, n; a run without an interval is a hollow point."""
    import plotly.graph_objects as go

    fig = theme.figure(title=title, x="value (bar: 95% interval)", height=140 + 34 * len(rows))
    names = [label(r) for r in rows]
    known = [r.get("low") is not None and r.get("high") is not None for r in rows]
    plus = [(r["high"] - r["value"]) if k else 0 for r, k in zip(rows, known, strict=True)]
    minus = [(r["value"] - r["low"]) if k else 0 for r, k in zip(rows, known, strict=True)]
    hover = [f"{r['run']}<br>{r['value']:.4g}" + (f" [{r['low']:.4g}, {r['high']:.4g}]" if k else " (no interval)") + f"<br>n = {r.get('n') or 'not recorded'}"
             for r, k in zip(rows, known, strict=True)]
    fig.add_trace(go.Scatter(x=[r["value"] for r in rows], y=names, mode="markers", hovertext=hover, hoverinfo="text", showlegend=False,
                             marker=dict(size=10, color=theme.COLORS[0], symbol=["circle" if k else "circle-open" for k in known]),
                             error_x=dict(type="data", symmetric=False, array=plus, arrayminus=minus, color=theme.COLORS[0])))
    fig.update_yaxes(autorange="reversed", type="category")
    return fig


def forest_by_metric(rows: Sequence[Mapping[str, Any]], *, title: str = "") -> Any:
    """All metrics of one notebook in one forest plot: a line per metric, a colour and a marker per run."""
    import plotly.graph_objects as go

    metrics = list(dict.fromkeys(r["metric"] for r in rows))
    fig = theme.figure(title=title, x="value (bar: 95% interval)", height=max(240, 150 + 26 * len(metrics)))
    for k, run in enumerate(dict.fromkeys(r["run"] for r in rows)):
        mine = [r for r in rows if r["run"] == run]
        known = [r.get("low") is not None and r.get("high") is not None for r in mine]
        bars = [((r["high"] - r["value"]), (r["value"] - r["low"])) if k_ else (0, 0) for r, k_ in zip(mine, known, strict=True)]
        hover = [f"{r['metric']}<br>{r['value']:.4g}" + (f" [{r['low']:.4g}, {r['high']:.4g}]" if k_ else " (no interval)")
                 + f"<br>n = {r.get('n') or 'not recorded'}<br>{run}" for r, k_ in zip(mine, known, strict=True)]
        color = theme.COLORS[k % len(theme.COLORS)]
        fig.add_trace(go.Scatter(x=[r["value"] for r in mine], y=[r["metric"] for r in mine], mode="markers", name=label(mine[0]),
                                 hovertext=hover, hoverinfo="text", marker=dict(size=9, color=color, symbol=theme.MARKERS[k % len(theme.MARKERS)]),
                                 error_x=dict(type="data", symmetric=False, array=[b[0] for b in bars], arrayminus=[b[1] for b in bars], color=color)))
    fig.update_yaxes(autorange="reversed", type="category")
    return fig


def spent(overview: Sequence[Mapping[str, Any]]) -> Any:
    """Seconds of each run as bars; hover shows cost and status."""
    import plotly.graph_objects as go

    fig = theme.figure(title="Where the time went", x="seconds", height=max(220, 130 + 30 * len(overview)))
    names = [f"{r['notebook']} ({r['run'][:15]})" for r in overview]
    hover = [f"{r['run']}<br>{r['seconds'] or 0:.0f} s, ${r['cost $']:.4f}<br>{r['status']}" for r in overview]
    fig.add_trace(go.Bar(x=[r["seconds"] or 0 for r in overview], y=names, orientation="h", hovertext=hover, hoverinfo="text", marker_color=theme.COLORS[0]))
    fig.update_yaxes(autorange="reversed", type="category")
    return fig
