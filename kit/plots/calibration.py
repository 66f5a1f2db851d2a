"""Figures of calibration results. Everything drawn here is in the results' tables; nothing is
computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..calibration import Comparison, Curve, Reliability, RiskCoverage, Sensitivity
from ..stats.estimate import number
from .theme import COLORS, DASHES, GREY, MARKERS, band, figure, whiskers

CONF, CAME = "probability that was stated", "share that came true"


Traces = list[dict[str, Any]]


def _curve(
    curve: Curve, color: str, dash: str, name: str, *, steps: bool = False, n: int = 0
) -> Traces:
    ends = (v.tolist() for v in (curve.x, curve.low, curve.high))
    line = dict(
        x=curve.x.tolist(),
        y=curve.y.tolist(),
        mode="lines",
        line=dict(color=color, dash=dash, width=2, shape="hv" if steps else "linear"),
        name=name,
        customdata=np.stack([curve.low, curve.high, np.round(curve.density * n)], 1).tolist(),
        hovertemplate=f"{name}<br>confidence %{{x:.3f}}<br>came true %{{y:.3f}} "
        f"[%{{customdata[0]:.2f}}, %{{customdata[1]:.2f}}]"
        f"<br>n in all {n}<extra></extra>",
    )
    return [*band(*ends, color, f"{name}: interval"), line]


def _straight(name: str, y: tuple[float, float] = (0, 1), dash: str = "dash", **more: Any) -> Any:
    """A grey line across the figure."""
    line = dict(color=GREY, dash=dash, **more)
    return dict(
        x=[0, 1],
        y=list(y),
        mode="lines",
        line=line,
        name=name,
        hoverinfo="skip",
    )


def subtitle(result: Reliability) -> str:
    """ECE, interval, null value and n: what has to stand beside every diagram."""
    e = result.ece
    clusters = f" in {e.n_clusters} clusters" if e.n_clusters is not None else ""
    return (
        f"ECE {number(e.value)}; debiased {e.debiased.span()}; a calibrated model would score "
        f"{number(e.null)}; n={e.n}{clusters}<br>{e.convention}"
    )


def reliability(
    result: Reliability,
    *,
    kind: str = "all",
    title: str = "Reliability",
    x: str = CONF,
    y: str = CAME,
) -> Any:
    """Reliability diagram with intervals, and in grey the band that a calibrated model would stay
    in.

    kind : "binned", "smooth", "corp" or "all"; x, y : what confidence and outcome are here: P(met)
    and the share of met, say.
    """
    if kind not in ("binned", "smooth", "corp", "all"):
        raise ValueError(f'kind is {kind!r}; use "binned", "smooth", "corp" or "all"')
    grey = {"smooth": result.smooth, "corp": result.corp}.get(kind)
    ends = () if grey is None else (grey.x, grey.band_low, grey.band_high)
    curves: dict[str, Callable[[], Traces]] = {
        "smooth": lambda: _curve(result.smooth, COLORS[0], DASHES[0], "smooth", n=result.n),
        "corp": lambda: _curve(
            result.corp, COLORS[2], DASHES[2], "CORP (isotonic)", steps=True, n=result.n
        ),
        "binned": lambda: _binned(result),
    }
    return figure(
        _straight("calibrated", width=1),
        *(band(*(v.tolist() for v in ends), GREY, "a calibrated model stays here") if ends else ()),
        *(trace for name, made in curves.items() if kind in (name, "all") for trace in made()),
        title=f"{title}<br><sub>{subtitle(result)}</sub>",
        x=x,
        y=y,
        height=560,
        margin_t=130,
        xaxis_range=[-0.02, 1.02],
        yaxis_range=[-0.02, 1.02],
    )


def _binned(result: Reliability) -> Traces:
    b = result.bins
    middle = (b.band_low + b.band_high) / 2
    half = (b.band_high - b.band_low) / 2
    grey = dict(
        x=b.conf.tolist(),
        y=middle.tolist(),
        mode="markers",
        marker=dict(symbol="square", size=6, color=GREY),
        error_y=dict(type="data", array=half.tolist(), color=GREY, thickness=6, width=0),
        opacity=0.35,
        name="bin of a calibrated model",
        hoverinfo="skip",
    )
    area = 6 + 18 * np.sqrt(b.n / b.n.max())
    bins = dict(
        x=b.conf.tolist(),
        y=b.accuracy.tolist(),
        mode="markers",
        name="bins (area = n)",
        customdata=np.stack([b.lower, b.upper, b.n, b.low, b.high], 1).tolist(),
        marker=dict(
            color=COLORS[1],
            symbol=MARKERS[0],
            size=area.tolist(),
            line=dict(color="white", width=1),
        ),
        error_y=whiskers(
            zip(*(x.tolist() for x in (b.accuracy, b.low, b.high)), strict=True),
            color=COLORS[1],
            thickness=1.5,
        ),
        hovertemplate="bin %{customdata[0]:.3g} to "
        "%{customdata[1]:.3g}<br>n=%{customdata[2]:g}<br>confidence %{x:.3f}"
        "<br>came true %{y:.3f} [%{customdata[3]:.2f}, %{customdata[4]:.2f}]<extra></extra>",
    )
    return [grey, bins]


def risk_coverage(result: RiskCoverage, *, title: str = "Risk and coverage") -> Any:
    """Error rate among the answers kept, against the share kept."""
    sub = (
        f"AURC {result.aurc}; perfect order {number(result.best_aurc)}, random order "
        f"{number(result.random_aurc)}"
    )
    low, high = result.aurc.low, result.aurc.high
    kept = dict(
        x=result.coverage.tolist(),
        y=result.risk.tolist(),
        mode="lines+markers" if len(result.risk) < 60 else "lines",
        line=dict(color=COLORS[0]),
        name="this ranking",
        customdata=np.stack([result.threshold, result.n_at], 1).tolist(),
        hovertemplate="confidence >= %{customdata[0]:.3g} (n=%{customdata[1]:g} at "
        "it)<br>coverage %{x:.3f}"
        f"<br>error %{{y:.3f}}<br>AURC interval [{low:.3f}, {high:.3f}]<extra></extra>",
    )
    return figure(
        kept,
        _straight("random order", (result.random_aurc, result.random_aurc)),
        title=f"{title}<br><sub>{sub}</sub>",
        x="coverage (share of answers kept, most confident first)",
        y="error rate among those kept",
        yaxis_rangemode="tozero",
    )


def _intervals(names: Sequence[str], eces: Sequence[Any], **options: Any) -> Any:
    """Errors, named: debiased with interval, plug-in, and of a calibrated model."""
    data = [[e.low, e.high, e.n, e.n_bins, e.p_value] for e in eces]
    debiased = dict(
        x=[float(e.debiased.value) for e in eces],
        y=names,
        mode="markers",
        name="debiased, with interval",
        marker=dict(color=COLORS[0], symbol=MARKERS[0], size=10),
        customdata=data,
        error_x=whiskers(((e.debiased.value, e.low, e.high) for e in eces), color=COLORS[0]),
        hovertemplate="%{y}<br>debiased ECE %{x:.3f} [%{customdata[0]:.2f}, "
        "%{customdata[1]:.2f}]<br>n=%{customdata[2]}, bins %{customdata[3]}, "
        "p=%{customdata[4]:.3f}<extra></extra>",
    )
    others = [
        dict(
            x=values,
            y=names,
            mode="markers",
            name=label,
            marker=dict(color=color, symbol=marker, size=9),
            customdata=data,
            hovertemplate=f"%{{y}}<br>{label} %{{x:.3f}}<br>n=%{{customdata[2]}}<extra></extra>",
        )
        for values, label, color, marker in (
            ([e.value for e in eces], "plug-in", COLORS[1], MARKERS[1]),
            ([e.null for e in eces], "a calibrated model would score", GREY, MARKERS[4]),
        )
    ]
    return figure(
        debiased,
        *others,
        x="expected calibration error",
        xaxis_rangemode="tozero",
        yaxis_autorange="reversed",
        yaxis_type="category",
        **options,
    )


def sensitivity(result: Sensitivity, *, title: str = "The same answers under many binnings") -> Any:
    """ECE by binning: plug-in, debiased with interval, and what a calibrated model would score."""
    sub = (
        f"plug-in ECE moves by {number(result.spread)} with the convention alone; "
        f"n={result.rows[0][1].n}"
    )
    names, found = zip(*result.rows, strict=True)
    return _intervals(names, found, title=f"{title}<br><sub>{sub}</sub>", height=480)


def comparison(
    result: Comparison,
    *,
    names: tuple[str, str] = ("before", "after"),
    title: str = "Calibration before and after",
) -> Any:
    """Both errors with intervals and null values; the verdict in the subtitle."""
    said = f"{title}<br><sub>{result.verdict}</sub>"
    return _intervals(names, [result.before, result.after], title=said, height=320)


def side_by_side(
    curves: Mapping[str, Reliability],
    *,
    title: str = "Smooth reliability, side by side",
    x: str = CONF,
    y: str = CAME,
) -> Any:
    """The smooth curves of several judges or policies in one figure, each with its band; `x`, `y`
    as in `reliability`.
    """
    return figure(
        _straight("calibrated", dash="dot"),
        *(t for k, (name, one) in enumerate(curves.items()) for t in _one_of(k, name, one)),
        title=f"{title}<br><sub>bands: 95% (Wilson); dotted: perfectly calibrated</sub>",
        x=x,
        y=y,
        xaxis_range=[0, 1],
        yaxis_range=[0, 1],
    )


def _one_of(k: int, name: str, result: Reliability) -> Traces:
    """The k-th of several: its smooth curve and its bins in one colour."""
    color = COLORS[k % len(COLORS)]
    dash = DASHES[k % len(DASHES)]
    bins = dict(
        x=result.bins.conf.tolist(),
        y=result.bins.accuracy.tolist(),
        mode="markers",
        name=f"{name}: bins",
        marker=dict(color=color, symbol=MARKERS[k % len(MARKERS)], size=8),
        customdata=result.bins.n.tolist(),
        hovertemplate="%{x:.3f}: %{y:.3f} of n=%{customdata:g}<extra></extra>",
    )
    return [*_curve(result.smooth, color, dash, f"{name} (n={result.n})", n=result.n), bins]


def null_by_n(
    null: Mapping[int, float],
    *,
    observed: tuple[int, float] | None = None,
    title: str = "What a perfectly calibrated model would score",
) -> Any:
    """Null ECE against the number of answers; `observed` (n, ece) marks what was measured."""
    scores = dict(
        x=list(null),
        y=list(null.values()),
        mode="lines+markers",
        name="calibrated model",
        line=dict(color=COLORS[0]),
        hovertemplate="n=%{x}: %{y:.3f}<extra></extra>",
    )
    here = [
        dict(
            x=[n],
            y=[ece],
            mode="markers",
            name="measured here",
            marker=dict(color=COLORS[1], symbol=MARKERS[1], size=12),
            hovertemplate="n=%{x}: ECE %{y:.3f}<extra></extra>",
        )
        for n, ece in ([observed] if observed else [])
    ]
    return figure(
        scores,
        *here,
        title=title,
        x="answers (log scale)",
        y="expected ECE when calibrated",
        xaxis_type="log",
        yaxis_rangemode="tozero",
    )


def eces(found: Mapping[str, Any], *, title: str = "Calibration errors") -> Any:
    """Several ECEs: debiased with interval, plug-in, and what a calibrated model would score."""
    height = 200 + 40 * len(found)
    return _intervals(list(found), list(found.values()), title=title, height=height)
