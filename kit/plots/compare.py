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
