"""Runs side by side: one row a run, its value, interval and n; and settings over several seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..records import grouped
from . import theme


def groups(
    rows: Sequence[Mapping[str, Any]], *, most: int = 12
) -> dict[tuple[str, str], list[Mapping[str, Any]]]:
    """Rows by (notebook, metric), those with intervals first, at most `most` groups."""
    out = grouped(((r["notebook"], r["metric"]), r) for r in rows)
    ranked = sorted(out.items(), key=lambda kv: (all(r.get("low") is None for r in kv[1]), kv[0]))
    return dict(ranked[:most])


def label(row: Mapping[str, Any]) -> str:
    """A short name of a run, escaped: what sets it apart (kit.runs.compare.labels), else its id."""
    return theme.safe(str(row.get("label") or row["run"]))


def words(row: Mapping[str, Any]) -> str:
    """Value, interval and n of a row in one line.

    >>> words({"value": 0.375, "low": 0.29, "high": 0.45, "n": 8, "n_clusters": 4})
    '0.375 [0.29, 0.45], n=8 in 4 clusters'
    """
    known = row.get("low") is not None and row.get("high") is not None
    n = (
        ""
        if row.get("n") is None
        else f", n={row['n']}"
        + (
            f" in {row['n_clusters']} clusters"
            if row.get("n_clusters") not in (None, row["n"])
            else ""
        )
    )
    return (
        f"{row['value']:.3g} "
        + (f"[{row['low']:.3g}, {row['high']:.3g}]" if known else "(no interval)")
        + n
    )


def _beside(names: Sequence[str], texts: Sequence[str]) -> dict[str, Any]:
    """The layout with texts in the right margin, one a row; set at once, since each
    `add_annotation` copies all that are there (27 of the 31 s that a report over 300 runs took).
    """
    style = dict(
        x=1.01,
        xref="paper",
        xanchor="left",
        yref="y",
        showarrow=False,
        font=dict(size=12, color=theme.GREY),
    )
    return {
        "annotations": [dict(style, y=n, text=t) for n, t in zip(names, texts, strict=True)],
        "margin_r": 24 + int(6.4 * max(map(len, texts), default=0)),
    }


def _lines(
    names: Sequence[str], ends: Sequence[tuple[Any, Any, Any]], hover: Sequence[str]
) -> list[dict[str, Any]]:
    """A mark for each (value, low, high); hollow where there is no interval."""
    whole = [None not in e and e[1] == e[1] for e in ends]
    color = theme.COLORS[0]
    sides = ((known, [i for i, w in enumerate(whole) if w == known]) for known in (True, False))
    return [
        dict(
            x=[ends[i][0] for i in at],
            y=[names[i] for i in at],
            mode="markers",
            hovertext=[hover[i] for i in at],
            hoverinfo="text",
            showlegend=False,
            error_x=theme.whiskers((ends[i] for i in at), color=color) if known else None,
            marker=dict(size=10, color=color, symbol="circle" if known else "circle-open"),
        )
        for known, at in sides
        if at
    ]


def band(rows: Sequence[Mapping[str, Any]], *, title: str = "") -> Any:
    """Many runs of one metric, sorted by value: points with their intervals, named on hovering."""
    ranked = sorted(rows, key=lambda r: r["value"])
    ends = ((r["value"], r.get("low"), r.get("high")) for r in ranked)
    points = dict(
        x=list(range(1, len(ranked) + 1)),
        y=[r["value"] for r in ranked],
        mode="markers",
        hovertext=[f"{label(r)}<br>{words(r)}" for r in ranked],
        hoverinfo="text",
        marker=dict(size=5, color=theme.COLORS[0]),
        error_y=theme.whiskers(ends, color="#9fc5e0", width=0),
    )
    axes = {"x": "runs, sorted by value", "y": "value (bar: 95% interval)"}
    return theme.figure(points, title=title, **axes)


def over_seeds(rows: Sequence[Any], *, title: str = "") -> Any:
    """Settings over seeds: `rows` are kit.runs.compare.Seeds of one metric; a small ring is a seed,
    the point their mean with its t interval.
    """
    names = [theme.safe(r.setting or "all runs") for r in rows]
    rings = dict(
        x=[v for r in rows for v in r.values],
        y=[n for r, n in zip(rows, names, strict=True) for _ in r.values],
        mode="markers",
        hovertext=[
            f"seed {s}: {v:.4g}" for r in rows for s, v in zip(r.seeds, r.values, strict=True)
        ],
        hoverinfo="text",
        showlegend=False,
        marker=dict(size=9, symbol="circle-open", color=theme.COLORS[1], line=dict(width=2)),
    )
    ends = [(r.mean.value, r.mean.low, r.mean.high) for r in rows]
    bands = [
        f"[{low:.3g}, {high:.3g}]" if low == low else "(all the same)" for _, low, high in ends
    ]
    texts = [f"{r.mean.value:.3g} {b}, {r.mean.n} seeds" for r, b in zip(rows, bands, strict=True)]
    return theme.figure(
        rings,
        *_lines(names, ends, [str(r.mean) for r in rows]),
        title=title,
        x="value (rings: seeds; point and bar: mean over seeds, 95% interval)",
        height=150 + 40 * len(rows),
        yaxis_categoryorder="array",
        yaxis_categoryarray=names,
        yaxis_range=[len(names) - 0.4, -0.6],
        yaxis_type="category",
        **_beside(names, texts),
    )


def forest_by_metric(rows: Sequence[Mapping[str, Any]], *, title: str = "") -> Any:
    """All metrics of one notebook in one forest plot: a line per metric, a colour and a marker per
    run.
    """
    metrics = list(dict.fromkeys(r["metric"] for r in rows))
    by_run = grouped((r["run"], r) for r in rows)
    return theme.figure(
        *(_of_run(k, mine) for k, mine in enumerate(by_run.values())),
        title=title,
        x="value (bar: 95% interval)",
        height=max(240, 150 + 26 * len(metrics)),
        yaxis_autorange="reversed",
        yaxis_type="category",
    )


def _of_run(k: int, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The metrics of the k-th run, in its colour."""
    ends = ((r["value"], r.get("low"), r.get("high")) for r in rows)
    names = [theme.safe(r["metric"]) for r in rows]
    color = theme.COLORS[k % len(theme.COLORS)]
    return dict(
        x=[r["value"] for r in rows],
        y=names,
        mode="markers",
        name=label(rows[0]),
        hovertext=[f"{n}<br>{words(r)}<br>{r['run']}" for n, r in zip(names, rows, strict=True)],
        hoverinfo="text",
        marker=dict(size=9, color=color, symbol=theme.MARKERS[k % len(theme.MARKERS)]),
        error_x=theme.whiskers(ends, color=color),
    )
