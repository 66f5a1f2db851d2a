"""Speed of statistics and calibration at a million rows, beside other packages where they are installed.

python -m tests.benchmarks.bench_numbers [ROWS]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from kit import calibration, stats

LIMITS = {"ece": 1.0, "report": 1.5, "compare": 2.0}  # seconds at a million rows


def columns(n: int) -> tuple[np.ndarray, ...]:
    """Confidence, a second one, outcome, a judge's verdict, and the task of each row."""
    rng = np.random.default_rng(0)
    conf = rng.random(n)
    right = (rng.random(n) < conf**1.3).astype(int)
    verdict = np.where(rng.random(n) < 0.1, 1 - right, right)
    return conf, conf**1.2, right, verdict, rng.integers(0, max(n // 50, 5), n)


def ours(n: int) -> dict[str, Callable[[], Any]]:
    """Our calls, each with an interval over tasks."""
    conf, new, right, verdict, task = columns(n)
    return {
        "ece": lambda: calibration.ece(conf, right, cluster=task, bins=15, draws=1000),
        "report": lambda: calibration.reliability(conf, right, cluster=task),
        "compare": lambda: calibration.compare((conf, right), (new, right), cluster=task),
        "brier": lambda: calibration.brier(conf, right, cluster=task),
        "smece": lambda: calibration.smece(conf, right),
        "risk_coverage": lambda: calibration.risk_coverage(conf, right, cluster=task),
        "mean": lambda: stats.mean(right, cluster=task),
        "difference": lambda: stats.difference(new, conf, cluster=task),
        "kappa": lambda: stats.kappa(verdict, right, cluster=task),
        "auroc": lambda: stats.auroc(conf, right, cluster=task),
    }


def others(n: int) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The plug-in ECE (netcal, torchmetrics) and smECE (relplot) of the same rows, without intervals."""
    conf, _, right, _, _ = columns(n)
    try:
        from netcal.metrics import ECE

        yield "netcal ece", lambda: ECE(15).measure(conf, right)
    except ImportError:
        pass
    try:
        import torch
        from torchmetrics.functional.classification import binary_calibration_error

        pair = torch.tensor(conf), torch.tensor(right)
        yield "torchmetrics ece", lambda: binary_calibration_error(*pair, n_bins=15)
    except ImportError:
        pass
    try:
        import relplot

        yield "relplot smece", lambda: relplot.smECE(conf, right)
    except ImportError:
        pass


def seconds(call: Callable[[], Any]) -> tuple[float, float]:
    """The best of three runs: wall and processor."""
    best = (np.inf, np.inf)
    for _ in range(3):
        wall, cpu = time.perf_counter(), time.process_time()
        call()
        best = min(best, (time.perf_counter() - wall, time.process_time() - cpu))
    return best


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    for call in ours(1000).values():  # imports
        call()
    print(f"{n:,} rows, {'seconds':>10} {'processor':>10} {'limit':>6}")
    for name, call in [*ours(n).items(), *others(n)]:
        wall, cpu = seconds(call)
        print(f"{name:<18} {wall:>6.2f} {cpu:>10.2f} {LIMITS.get(name, ''):>6}")


if __name__ == "__main__":
    main()
