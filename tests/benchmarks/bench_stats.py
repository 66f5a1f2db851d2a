# environment: peers
"""Ratios of the statistics: jackknife on sums against resampling rows, coverage of both, O(n log n) rank intervals, truescore beside PPI."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from kit import stats
from kit.stats.agreement import table_stat
from kit.stats.clusters import cell_sums


def timed(f: Callable[[], Any], repeats: int = 5) -> tuple[float, Any]:
    """Median seconds and the last result."""
    times, out = [], None
    for _ in range(repeats):
        start = time.perf_counter()
        out = f()
        times.append(time.perf_counter() - start)
    return float(np.median(times)), out


def verdicts(n_prompts: int, rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Judge, human, prompt with correctness correlated within a prompt."""
    rng = np.random.default_rng(seed)
    y = rng.random((n_prompts, rows)) < rng.beta(1.05, 0.45, n_prompts)[:, None]
    right = rng.random((n_prompts, rows)) < rng.beta(1.2, 0.3, n_prompts)[:, None]
    return (
        np.where(right, y, ~y).ravel().astype(int),
        y.ravel().astype(int),
        np.repeat(np.arange(n_prompts), rows),
    )


def row_bootstrap(a: np.ndarray, b: np.ndarray, draws: int = 1000) -> tuple[float, float]:
    """What most tools do: resample rows, ignore prompts, recompute kappa each time."""
    rng, stat = np.random.default_rng(0), table_stat("kappa", 2)
    cell = a * 2 + b
    out = [
        float(
            stat(
                np.bincount(cell[rng.integers(0, len(cell), len(cell))], minlength=4)[None].astype(
                    float
                )
            )[0]
        )
        for _ in range(draws)
    ]
    return tuple(np.quantile(out, [0.025, 0.975]))


def drawn(clusters: int, draws: int) -> np.ndarray:
    """How often each cluster is drawn (draws, clusters)."""
    at = np.random.default_rng(0).integers(0, clusters, (draws, clusters))
    return np.stack([np.bincount(row, minlength=clusters) for row in at]).astype(float)


def speed() -> dict[str, float]:
    """Seconds for an interval of kappa on 80,000 rows in 10,000 prompts, and ratios."""
    a, b, c = verdicts(10_000, 8)
    jack, _ = timed(lambda: stats.kappa(a, b, cluster=c))
    sums = cell_sums(a * 2 + b, 4, c)
    core, _ = timed(lambda: table_stat("kappa", 2)(sums.sum(0) - sums).std())
    boot, _ = timed(
        lambda: np.quantile(table_stat("kappa", 2)(drawn(len(sums), 1000) @ sums), [0.025, 0.975]),
        1,
    )
    rows, _ = timed(lambda: row_bootstrap(a, b), 1)
    return {
        "kappa_interval_s": jack,
        "jackknife_core_s": core,
        "cluster_bootstrap_1000_s": boot,
        "row_bootstrap_1000_s": rows,
        "row_bootstrap_over_jackknife": rows / jack,
        "cluster_bootstrap_over_jackknife_core": boot / core,
    }


def coverage(draws: int = 300) -> dict[str, float]:
    """Coverage of nominal 95% intervals of kappa, 60 prompts of 8 rows, correlation .4."""
    a, b, c = verdicts(200_000, 8, seed=9)
    truth = stats.kappa(a[:800_000], b[:800_000], se="linear").value
    hit = {"cluster_jackknife_t": 0, "row_bootstrap": 0}
    for s in range(draws):
        a, b, c = verdicts(60, 8, seed=100 + s)
        e, (low, high) = stats.kappa(a, b, cluster=c), row_bootstrap(a, b, 200)
        hit["cluster_jackknife_t"] += e.low <= truth <= e.high
        hit["row_bootstrap"] += low <= truth <= high
    return {k: v / draws for k, v in hit.items()}


def peers(draws: int = 300) -> dict[str, Any]:
    """Coverage and half width of the pass rate, 150 prompts x 8 rows, 30 prompts labelled, correlation .4: ours beside truescore's PPI."""
    try:
        from truescore.correct import ppi_estimate
    except ImportError:
        ppi_estimate = None
    out: dict[str, Any] = {}
    for rate, q1, q0 in ((0.7, 0.9, 0.8), (0.95, 0.9, 0.9)):
        rng = np.random.default_rng(5)
        found: dict[str, list[tuple[bool, float]]] = {}
        for _ in range(draws):
            y = rng.random((150, 8)) < rng.beta(rate * 1.5, (1 - rate) * 1.5, 150)[:, None]
            f = (
                np.where(y, rng.random(y.shape) < q1, rng.random(y.shape) >= q0)
                .ravel()
                .astype(float)
            )
            c, h = (
                np.repeat(np.arange(150), 8),
                np.where(np.arange(150)[:, None] < 30, y, np.nan).ravel(),
            )
            results = {
                "post_stratified": stats.pass_rate(f, h, design="random", cluster=c),
                "ppi": stats.ppi(f, h, cluster=c),
                "post_stratified_ignoring_prompts": stats.pass_rate(f, h, design="random"),
            }
            if ppi_estimate is not None:
                results["truescore_ppi"] = ppi_estimate(
                    f, y.ravel()[:240].astype(float), np.arange(240), clusters=c
                )
            for name, e in results.items():
                found.setdefault(name, []).append(
                    (bool(e.low <= rate <= e.high), (e.high - e.low) / 2)
                )
        out[f"rate_{rate}"] = {
            k: {
                "coverage": float(np.mean([a for a, _ in v])),
                "half_width": float(np.mean([b for _, b in v])),
            }
            for k, v in found.items()
        }
    return out if ppi_estimate is not None else {**out, "truescore": "not installed here"}


def main() -> None:
    """Print one JSON object."""
    sys.stdout.write(
        json.dumps(
            {
                "speed": speed(),
                "coverage_nominal_95": coverage(),
                "peers": peers(),
            },
            indent=2,
        )
        + "\n"
    )


if __name__ == "__main__":
    main()
