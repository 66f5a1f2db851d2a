"""Coverage of the ECE interval: the population's binned error must lie in it about 95% of the time. Small here, full when slow."""

from __future__ import annotations

import numpy as np
import pytest

from kit import calibration

K = 15


def truth(tilt: float, shape: tuple[float, float]) -> float:
    """Population ECE in 15 equal-width bins of confidences ~ Beta(shape) whose accuracy is p + tilt * p(1-p)."""
    from scipy import stats

    p = (np.arange(300_000) + 0.5) / 300_000
    w = stats.beta.pdf(p, *shape)
    b = np.minimum((p * K).astype(int), K - 1)
    return float(np.abs(np.bincount(b, weights=w * tilt * p * (1 - p))).sum() / w.sum())


def coverage(
    n: int,
    tilt: float,
    shape: tuple[float, float],
    runs: int,
    *,
    per: int = 1,
    rho: float = 0.0,
    seed: int = 0,
) -> float:
    """Share of runs whose interval holds the truth; `per` rows a cluster share a latent with correlation rho."""
    from scipy import special

    rng, goal, hit = np.random.default_rng(seed), truth(tilt, shape), 0
    for _ in range(runs):
        p = rng.beta(*shape, n)
        z = rng.standard_normal(n)
        if per > 1:
            z = np.sqrt(rho) * np.repeat(rng.standard_normal(n // per), per) + np.sqrt(1 - rho) * z
        y = special.ndtr(z) < p + tilt * p * (1 - p)
        e = calibration.ece(
            p,
            y,
            bins=K,
            n_boot=300,
            seed=int(rng.integers(1 << 30)),
            cluster=np.repeat(np.arange(n // per), per) if per > 1 else None,
        )
        hit += e.low <= goal <= e.high
    return hit / runs


CASES = [
    (300, 0.0, (2, 2), 1, 0.0),
    (300, 0.4, (2, 2), 1, 0.0),
    (300, -0.8, (5, 2), 1, 0.0),
    (1000, -0.4, (2, 2), 1, 0.0),
    (1000, -0.2, (2, 2), 1, 0.0),
    (2000, -0.8, (5, 2), 1, 0.0),
    (1200, -0.8, (2, 2), 8, 0.4),
    (1200, 0.0, (2, 2), 8, 0.4),
]


def test_coverage_is_not_absurd() -> None:
    # the percentile bootstrap of the plug-in covers about a fifth of the time here
    assert coverage(300, 0.4, (2, 2), 40) >= 0.85


@pytest.mark.slow
@pytest.mark.parametrize("n,tilt,shape,per,rho", CASES)
def test_coverage(n: int, tilt: float, shape: tuple[float, float], per: int, rho: float) -> None:
    # conservative where calibration is not rejected (the lower limit is then 0 by design), so no upper bound
    assert coverage(n, tilt, shape, 1000, per=per, rho=rho) >= 0.93


@pytest.mark.parametrize("clusters", [None, 8, 20])
def test_the_curves_hold_a_steep_truth(clusters: int | None) -> None:
    """Kernel widths as large as the error itself: .01 to .5 of the points of a steep curve were
    inside, and .58 to .9 of the isotonic one's."""
    from scipy import special

    rng, held = np.random.default_rng(5), []
    for _ in range(10):
        group = None if clusters is None else rng.integers(0, clusters, 1000)
        z = rng.standard_normal(1000)
        if clusters is not None:
            z = np.sqrt(0.4) * rng.standard_normal(clusters)[group] + np.sqrt(0.6) * z
        p = rng.beta(2, 1.5, 1000)
        y = special.ndtr(z) < special.expit(12 * (p - 0.6))
        r = calibration.reliability(p, y, cluster=group, n_boot=100)
        for c, here in ((r.smooth, r.smooth.density > 0.2), (r.corp, abs(r.corp.x - 0.5) < 0.4)):
            truth = special.expit(12 * (c.x - 0.6))
            held.append(((c.low <= truth) & (truth <= c.high))[here].mean())
    assert np.mean(held[::2]) >= 0.9
    assert np.mean(held[1::2]) >= 0.9
