"""What must not matter: order, chunks, merging, float32, doubled rows against weights, ties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit import calibration as c

quick = settings(max_examples=15, deadline=None, derandomize=True)
tables = st.lists(st.tuples(st.integers(0, 1000), st.booleans()), min_size=2, max_size=300).map(
    lambda rows: (np.array([a for a, _ in rows]) / 1000, np.array([b for _, b in rows]))
)
binnings = st.sampled_from(
    [
        {},
        {"bins": 10},
        {"bins": 10, "closed": "left"},
        {"bins": 15},
        {"bins": 100},
        {"bins": 5, "equal_mass": True},
        {"bins": "distinct"},
        {"edges": [0, 0.3, 0.35, 1]},
    ]
)


def brute(p: np.ndarray, y: np.ndarray, k: int, closed: str) -> float:
    """ECE by integers: p are thousandths."""
    m = np.round(p * 1000).astype(int)
    b = (
        np.minimum(m * k // 1000, k - 1)
        if closed == "left"
        else np.maximum(-(-m * k // 1000) - 1, 0)
    )
    return sum(abs((y[b == i] - p[b == i]).sum()) for i in range(k)) / len(p)


@quick
@given(tables, st.sampled_from([3, 7, 10, 15, 20, 64]), st.sampled_from(["left", "right"]))
def test_against_integers(table, k, closed) -> None:
    assert c.ece(*table, bins=k, closed=closed, n_boot=0).value == pytest.approx(
        brute(*table, k, closed), abs=1e-12
    )


@quick
@given(tables, binnings, st.randoms(use_true_random=False))
def test_order(table, binning, random) -> None:
    p, y = table
    order = np.array(random.sample(range(len(p)), len(p)))
    a, b = c.ece(p, y, n_boot=50, **binning), c.ece(p[order], y[order], n_boot=50, **binning)
    assert (
        a.value == pytest.approx(b.value, abs=1e-12)
        and a.high == pytest.approx(b.high, abs=1e-12)
        and a.p_value == b.p_value
    )
    assert c.smece(p, y).value == pytest.approx(c.smece(p[order], y[order]).value, abs=1e-8)
    r, s = (
        c.risk_coverage(p, y, interval=False),
        c.risk_coverage(p[order], y[order], interval=False),
    )
    assert r.aurc.value == pytest.approx(
        s.aurc.value, abs=1e-12
    ) and r.augrc.value == pytest.approx(s.augrc.value, abs=1e-12)


@quick
@given(
    tables,
    st.integers(1, 7),
    st.sampled_from(
        [{}, {"bins": 10}, {"bins": 10, "closed": "left"}, {"bins": 15}, {"bins": 100}]
    ),
)
def test_chunks_and_merging(table, pieces, binning) -> None:
    p, y = table
    whole, parts = c.Sketch().update(p, y), c.Sketch()
    for a, b in zip(np.array_split(p, pieces), np.array_split(y, pieces), strict=True):
        parts = parts + c.Sketch().update(a, b)
    want = c.ece(p, y, n_boot=0, **binning)
    for sketch in (whole, parts):
        got = c.ece(sketch, n_boot=0, **binning)
        for name in ("value", "null", "l2_squared"):
            assert getattr(got, name) == pytest.approx(
                getattr(want, name), abs=1e-12 if name != "null" else 1e-6
            )
        assert got.n == want.n and got.convention == want.convention
        assert c.smece(sketch).value == pytest.approx(c.smece(p, y).value, abs=1e-6)
    assert parts.brier == pytest.approx(whole.brier, abs=1e-12 * len(p))


@quick
@given(tables, binnings)
def test_float32(table, binning) -> None:
    p, y = table
    if "edges" in binning:
        p = p + 1e-4 * (
            p < 0.999
        )  # explicit edges are compared exactly, so float32 may fall off them
    assert c.ece(p.astype(np.float32), y, n_boot=0, **binning).value == pytest.approx(
        c.ece(p, y, n_boot=0, **binning).value, abs=1e-6
    )
    assert c.smece(p.astype(np.float32), y).value == pytest.approx(c.smece(p, y).value, abs=1e-6)


@quick
@given(tables, binnings)
def test_weights_of_two_are_doubled_rows(table, binning) -> None:
    p, y = table
    a = c.ece(p, y, weights=np.full(len(p), 2), n_boot=40, **binning)
    b = c.ece(np.repeat(p, 2), np.repeat(y, 2), n_boot=40, **binning)
    for name in ("value", "low", "high", "null", "p_value", "l2_squared"):
        assert getattr(a, name) == pytest.approx(getattr(b, name), abs=1e-12)
    assert c.brier(p, y, weights=np.full(len(p), 2)).value.se == pytest.approx(
        c.brier(np.repeat(p, 2), np.repeat(y, 2)).value.se
    )
    assert c.smece(p, y, weights=np.full(len(p), 2)).value == pytest.approx(
        c.smece(np.repeat(p, 2), np.repeat(y, 2)).value, abs=1e-8
    )
    assert c.risk_coverage(
        p, y, weights=np.full(len(p), 2), interval=False
    ).augrc.value == pytest.approx(
        c.risk_coverage(np.repeat(p, 2), np.repeat(y, 2), interval=False).augrc.value, abs=1e-12
    )


@quick
@given(tables)
def test_single_row_clusters_change_no_value(table) -> None:
    p, y = table
    a, b = c.ece(p, y, n_boot=0), c.ece(p, y, cluster=np.arange(len(p)), n_boot=0)
    assert a.value == pytest.approx(b.value, abs=1e-12) and a.debiased.value == pytest.approx(
        b.debiased.value, abs=1e-9
    )


def brute_smece(p: np.ndarray, y: np.ndarray) -> float:
    """Reflected Gaussians on a fine grid, mirrored many times, no binning of the rows."""
    t = (np.arange(4_000) + 0.5) / 4_000  # the widths found here are above .01: 40 points in each
    values, at = np.unique(p, return_inverse=True)
    gap = np.bincount(at, weights=y - p) / len(p)

    def error(s: float) -> float:
        f = np.zeros_like(t)
        for v, g in zip(values, gap, strict=True):
            for m in range(-3, 4):
                f += (
                    g
                    * (
                        np.exp(-0.5 * ((t - v - 2 * m) / s) ** 2)
                        + np.exp(-0.5 * ((t + v - 2 * m) / s) ** 2)
                    )
                    / (s * np.sqrt(2 * np.pi))
                )
        return float(np.abs(f).mean())

    low, high = 1e-4, 1.0
    for _ in range(20):
        mid = (low + high) / 2
        low, high = (mid, high) if error(mid) > mid else (low, mid)
    return (low + high) / 2


@pytest.mark.parametrize(
    "values", [(0, 1), (0, 0.5, 1), (0.05, 0.31, 0.87), tuple(range(0, 101, 10))]
)
def test_smece_against_brute_force(values) -> None:
    rng = np.random.default_rng(len(values))
    p = rng.choice(np.array(values) / (100 if max(values) > 1 else 1), 400)
    y = rng.random(400) < 0.1 + 0.7 * p
    assert c.smece(p, y).value == pytest.approx(brute_smece(p, y), abs=1e-5)


def test_clusters_widen_the_interval() -> None:
    rng = np.random.default_rng(0)
    p = np.repeat(rng.random(100), 20)
    y = np.repeat(rng.random(100) < 0.5, 20)
    free, tied = (
        c.reliability(p, y, bins=10, n_boot=300),
        c.reliability(p, y, bins=10, n_boot=300, cluster=np.repeat(np.arange(100), 20)),
    )
    assert (
        tied.ece.high - tied.ece.low > 2 * (free.ece.high - free.ece.low)
        and tied.ece.p_value >= free.ece.p_value
    )
    assert np.mean(tied.bins.high - tied.bins.low) > 2 * np.mean(free.bins.high - free.bins.low)
