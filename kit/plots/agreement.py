"""Figures of agreement and tuning, from result objects; every figure's numbers also come as rows
(`*_rows`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..stats import Agreement, Estimate, half_width, number
from . import theme


def _hover(name: str, e: Estimate) -> str:
    note = f"<br>{theme.safe(e.note)}" if e.note else ""
    return f"{theme.safe(name)}<br>{theme.safe(str(e))}<br>{theme.safe(e.method)}{note}"


def forest(
    estimates: Mapping[str, Estimate],
    *,
    title: str = "",
    x: str = "estimate",
    reference: float | None = None,
) -> Any:
    """Estimates with their intervals, one line each, first on top; `reference` draws a vertical
    line (0 for differences).
    """
    es = list(estimates.values())
    rows = dict(
        x=[None if math.isnan(e.value) else e.value for e in es],
        y=[theme.safe(n) for n in estimates],
        mode="markers",
        marker=dict(size=9, color=theme.COLORS[0]),
        error_x=theme.whiskers(((e.value, e.low, e.high) for e in es), thickness=1.6),
        hovertext=[_hover(n, e) for n, e in estimates.items()],
        hoverinfo="text",
        showlegend=False,
    )
    return theme.figure(
        rows,
        title=theme.safe(title),
        x=x,
        height=150 + 30 * len(estimates),
        yaxis_autorange="reversed",
        yaxis_type="category",
        shapes=theme.upright(reference),
    )


def confusion(result: Agreement, *, title: str = "Judge against human") -> Any:
    """Counts of the judge's category against the human's; the colour is the share within the
    human's category.
    """
    share = result.confusion / result.confusion.sum(axis=0, keepdims=True).clip(min=1)
    names = [theme.safe(str(c)) for c in result.categories]
    text = [[f"{int(n)}" for n in row] for row in result.confusion]
    hover = [
        [
            f"judge {names[i]}, human {names[j]}<br>{int(result.confusion[i, j])} rows, "
            f"{share[i, j]:.0%} of the human's {names[j]}"
            for j in range(len(names))
        ]
        for i in range(len(names))
    ]
    cells = dict(
        type="heatmap",
        z=share.tolist(),
        x=names,
        y=names,
        text=text,
        texttemplate="%{text}",
        hovertext=hover,
        hoverinfo="text",
        zmin=0,
        zmax=1,
        colorscale=[[0, "#ffffff"], [1, theme.COLORS[0]]],
        colorbar=dict(title="share"),
    )
    return theme.figure(
        cells,
        title=f"{theme.safe(title)}<br><sub>{next(iter(result.measures()))} "
        f"{theme.safe(str(result.kappa))}</sub>",
        x="human",
        y="judge",
        height=380,
        width=480,
        xaxis_type="category",
        yaxis_type="category",
        yaxis_autorange="reversed",
    )


def trap_rows(results: Mapping[str, Agreement]) -> list[dict[str, Any]]:
    """The numbers behind `trap`: raw agreement, kappa, and what always giving the commonest answer
    reaches.
    """
    return [
        {
            "judge": k,
            "raw": r.raw.value,
            "raw_low": r.raw.low,
            "raw_high": r.raw.high,
            "kappa": r.kappa.value,
            "kappa_low": r.kappa.low,
            "kappa_high": r.kappa.high,
            "majority": r.majority,
            "n": r.kappa.n,
            "unknown": r.kappa.missing,
        }
        for k, r in results.items()
    ]


def trap(
    results: Mapping[str, Agreement],
    *,
    title: str = "Raw agreement flatters a judge that passes everything",
) -> Any:
    """Kappa against raw agreement, one mark per judge; the dashed line is the agreement of always
    giving the commonest answer.
    """
    always = sum(r.majority for r in results.values()) / len(results) if results else None
    return theme.figure(
        *(_trapped(i, name, r) for i, (name, r) in enumerate(results.items())),
        title=theme.safe(title),
        x="raw agreement",
        y="kappa",
        shapes=theme.upright(always),
    )


def _trapped(i: int, name: str, r: Agreement) -> dict[str, Any]:
    """One judge as a mark of `trap`, with what is known of its intervals."""
    error = {
        axis: theme.whiskers([(e.value, e.low, e.high)], thickness=1)
        for axis, e in (("error_x", r.raw), ("error_y", r.kappa))
        if not math.isnan(e.low)
    }
    return dict(
        x=[r.raw.value],
        y=[r.kappa.value],
        mode="markers",
        name=theme.safe(name),
        hoverinfo="text",
        marker=dict(
            size=11,
            symbol=theme.MARKERS[(i + i // len(theme.MARKERS)) % len(theme.MARKERS)],
            color=theme.COLORS[i % len(theme.COLORS)],
        ),
        hovertext=[
            f"{theme.safe(name)}<br>raw {r.raw}<br>kappa {r.kappa}<br>always the commonest: "
            f"{number(r.majority)}"
        ],
        **error,
    )


def label_rows(
    sizes: Sequence[int], rate: float, *, q1: float, q0: float, effect: float = 1.0
) -> list[dict[str, Any]]:
    """Half width of a pass rate's interval for each number of labels: labels alone, and
    post-stratified by the judge.
    """
    p = rate * q1 + (1 - rate) * (1 - q0)
    left = p * _var(rate * q1 / p if p else 0.0) + (1 - p) * _var(
        rate * (1 - q1) / (1 - p) if p < 1 else 0.0
    )
    shrink = math.sqrt(left / _var(rate)) if 0 < rate < 1 else math.nan
    return [
        {
            "labels": m,
            "human_only": half_width(m, rate, effect=effect),
            "with_judge": shrink * half_width(m, rate, effect=effect),
        }
        for m in sizes
    ]


def _var(p: float) -> float:
    return p * (1 - p)


def labels(rows: Sequence[Mapping[str, Any]], *, title: str = "What each label buys") -> Any:
    """The curve of `label_rows`: half width of the 95% interval against the number of labels."""
    kinds = {"human_only": "labels alone", "with_judge": "labels correcting the judge"}
    curves = [
        dict(
            x=[r["labels"] for r in rows],
            y=[r[key] for r in rows],
            mode="lines+markers",
            name=name,
            line=dict(color=theme.COLORS[i], dash=theme.DASHES[i]),
            marker=dict(symbol=theme.MARKERS[i]),
            hovertemplate="%{x} labels: +- %{y:.3f}<extra>" + name + "</extra>",
        )
        for i, (key, name) in enumerate(kinds.items())
    ]
    return theme.figure(
        *curves,
        title=theme.safe(title),
        x="labels",
        y="half width of the 95% interval",
        yaxis_rangemode="tozero",
    )
