"""Speed of statistics and calibration at a million rows, beside other packages where they are installed.

    tests/benchmarks/run.sh numbers      (one thread; it makes build/bench-numbers, where all peers are)

The peers give one number of the same rows, without an interval; ours come with one over the tasks (smece is
a number alone). `x peer` is our wall time over the peer's. The figures are the best of three calls.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
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


def netcal_ece(conf: Any, right: Any) -> Callable[[], Any]:
    from netcal.metrics import ECE

    return lambda: ECE(15).measure(conf, right)


def torchmetrics_ece(conf: Any, right: Any) -> Callable[[], Any]:
    import torch
    from torchmetrics.functional.classification import binary_calibration_error

    pair = torch.tensor(conf), torch.tensor(right)
    return lambda: binary_calibration_error(*pair, n_bins=15)


def relplot_smece(conf: Any, right: Any) -> Callable[[], Any]:
    import relplot

    return lambda: relplot.smECE(conf, right)


# peer -> its call, and ours that is set beside it
PEERS = {
    "netcal ece": (netcal_ece, "ece"),
    "torchmetrics ece": (torchmetrics_ece, "ece"),
    "relplot smece": (relplot_smece, "smece"),
}


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
    print(f"{n:,} rows, load {os.getloadavg()[0]:.1f}; seconds: wall, processor")
    walls = {}
    for name, call in ours(n).items():
        walls[name], cpu = seconds(call)
        limit = LIMITS.get(name) if n == 1_000_000 else None
        met = "met" if limit and walls[name] <= limit else "MISSED"
        print(
            f"{name:<18}{walls[name]:>6.2f}{cpu:>6.2f}", f" limit {limit}: {met}" if limit else ""
        )
    conf, _, right, *_ = columns(n)
    for name, (make, our) in PEERS.items():
        try:
            wall, cpu = seconds(make(conf, right))
            print(f"{name:<18}{wall:>6.2f}{cpu:>6.2f}  {our} takes {walls[our] / wall:.2f} x this")
        except ImportError as e:
            print(f"{name:<18} not installed ({e.name})")


if __name__ == "__main__":
    main()
