"""Calibration beside its peers, as ratios within one run. A peer that is not installed is skipped by name.

# environment: peers
"""

from __future__ import annotations

import importlib
import time
import tracemalloc
from collections.abc import Callable

import numpy as np

from kit import calibration


def best(f: Callable[[], object], repeat: int = 5) -> float:
    """Fastest of some runs, seconds."""
    times = []
    for _ in range(repeat):
        t = time.perf_counter()
        f()
        times.append(time.perf_counter() - t)
    return min(times)


def brute(p: np.ndarray, y: np.ndarray) -> float:
    """smECE from its definition: Gaussians mirrored at 0 and 1, no binning."""
    t = (np.arange(20_000) + 0.5) / 20_000
    values, at = np.unique(p, return_inverse=True)
    gap = np.bincount(at, weights=y - p) / len(p)

    def error(s: float) -> float:
        f = np.zeros_like(t)
        for v, g in zip(values, gap, strict=True):
            for m in (-2, 0, 2):
                f += (
                    g
                    * (
                        np.exp(-0.5 * ((t - v - m) / s) ** 2)
                        + np.exp(-0.5 * ((t + v - m) / s) ** 2)
                    )
                    / (s * np.sqrt(2 * np.pi))
                )
        return float(np.abs(f).mean())

    low, high = 1e-4, 1.0
    for _ in range(24):
        mid = (low + high) / 2
        low, high = (mid, high) if error(mid) > mid else (low, mid)
    return (low + high) / 2


def ours(p: np.ndarray, y: np.ndarray) -> float:
    """Our own figures; returns the time of ECE-15."""
    floor = best(lambda: (p.sum(), y.sum()))
    t = best(lambda: calibration.ece(p, y, bins=15, n_boot=0))
    tracemalloc.start()
    calibration.ece(p, y, bins=15, n_boot=0)
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    print(
        f"ECE-15, n={len(p):.0e}: {t * 1e3:.0f} ms = {t / floor:.1f} x reading both arrays once ({floor * 1e3:.0f} ms), {peak:.1f} MB extra   [target 8 x, 5 MB]"
    )
    small = slice(0, 10**6)
    r = best(lambda: calibration.reliability(p[small], y[small], bins=15, n_boot=1000), 3)
    print(f"report with 1000 resamples, n=1e6: {r:.2f} s   [target .5 s]")
    print(f"smECE, n=1e6: {best(lambda: calibration.smece(p[small], y[small])) * 1e3:.0f} ms")
    rng, worst = np.random.default_rng(0), 0.0
    for values in ((0.0, 1.0), (0.0, 0.5, 1.0), (0.05, 0.31, 0.87), tuple(np.arange(11) / 10)):
        q = rng.choice(np.array(values), 1000)
        hit = rng.random(1000) < 0.1 + 0.7 * q
        worst = max(worst, abs(calibration.smece(q, hit).value - brute(q, hit)))
    print(
        f"smECE against brute force, 0 and 1 included: largest difference {worst:.1e}   [target 1e-5]"
    )
    return t


def peers(p: np.ndarray, y: np.ndarray, t: float) -> None:
    """Each peer on the same arrays (fewer rows where it is slow), as a ratio of time per row."""
    value, n = calibration.ece(p, y, bins=15, n_boot=0).value, len(p)

    def show(
        name: str, module: str, what: str, rows: int, make: Callable[[object], Callable[[], object]]
    ) -> None:
        try:
            f = make(importlib.import_module(module))
        except ImportError as e:
            print(f"{name}: skipped, not installed ({e})")
            return
        took, got = best(f, 2), f()
        print(
            f"{name} {what}, n={rows:.0e}: {took * 1e3:.0f} ms = {took / rows / (t / n):.0f} x ours per row"
            + (
                f", value {float(got):.5f} (ours {value:.5f} on all rows)"
                if np.ndim(got) == 0
                else ""
            )
        )

    def torchmetrics(_: object) -> Callable[[], object]:
        import torch
        from torchmetrics.functional.classification import binary_calibration_error

        a, b = torch.from_numpy(p), torch.from_numpy(y.astype(np.int64))
        return lambda: binary_calibration_error(a, b, n_bins=15)

    show("torchmetrics", "torchmetrics", "binary_calibration_error", n, torchmetrics)
    show(
        "netcal",
        "netcal.metrics",
        "ECE(15)",
        n,
        lambda m: lambda: m.ECE(15).measure(p, y.astype(int)),
    )  # type: ignore[attr-defined]
    show(
        "scikit-learn",
        "sklearn.calibration",
        "calibration_curve (the curve only)",
        n,
        lambda m: lambda: m.calibration_curve(y, p, n_bins=15)[0],
    )  # type: ignore[attr-defined]
    show(
        "relplot",
        "relplot",
        "smECE",
        10**6,
        lambda m: lambda: m.smECE(p[: 10**6], y[: 10**6].astype(float)),
    )  # type: ignore[attr-defined]


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    conf = rng.random(10**7)
    right = rng.random(10**7) < conf**1.1
    peers(conf, right, ours(conf, right))
