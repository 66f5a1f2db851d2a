"""Invariants: order, names of categories and clusters, merging of chunks, unknown rows, doubled rows."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit import stats
from kit.stats.clusters import sums

SETTINGS = settings(max_examples=15, deadline=None, derandomize=True)
MEASURES = [
    stats.kappa,
    stats.ac1,
    stats.accuracy,
    stats.balanced_accuracy,
    stats.mcc,
]
columns = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 5)), min_size=4, max_size=60
)


def same(x, y, tolerance=1e-12):
    for k in ("value", "low", "high"):
        u, v = getattr(x, k), getattr(y, k)
        assert (math.isnan(u) and math.isnan(v)) or abs(u - v) <= tolerance * max(1, abs(u)), (
            k,
            x,
            y,
        )


@SETTINGS
@given(columns, st.randoms(use_true_random=False))
def test_order_does_not_matter(rows, random):
    mixed = rows[:]
    random.shuffle(mixed)
    for f in MEASURES:
        (a, b, c), (x, y, z) = zip(*rows, strict=True), zip(*mixed, strict=True)
        same(
            f(a, b, cluster=c, categories=[0, 1, 2]), f(x, y, cluster=z, categories=[0, 1, 2]), 1e-9
        )


@SETTINGS
@given(columns)
def test_names_do_not_matter(rows):
    a, b, c = zip(*rows, strict=True)
    name = {0: "zebra", 1: "ant", 2: "mole"}
    for f in MEASURES:
        renamed = f(
            [name[v] for v in a],
            [name[v] for v in b],
            cluster=[f"prompt {v}" for v in c],
            categories=["zebra", "ant", "mole"],
        )
        same(f(a, b, cluster=c, categories=[0, 1, 2]), renamed, 1e-9)


@SETTINGS
@given(columns)
def test_unknown_rows_are_left_out_and_counted(rows):
    a, b, c = (list(x) for x in zip(*rows, strict=True))
    for f in MEASURES:
        e = f(
            [*a, None, 1, float("nan")],
            [*b, 1, None, 0],
            cluster=[*c, 90, 91, 92],
            categories=[0, 1, 2],
        )
        same(f(a, b, cluster=c, categories=[0, 1, 2]), e, 1e-12)
        assert e.missing == 3


@SETTINGS
@given(columns)
def test_doubled_rows_in_the_same_clusters_change_nothing(rows):
    a, b, c = zip(*rows, strict=True)
    x = [v + 0.5 for v in a]
    same(stats.mean(x, cluster=c), stats.mean(x * 2, cluster=c * 2), 1e-9)
    same(stats.mean(x, cluster=c, weights=[2] * len(a)), stats.mean(x * 2, cluster=c * 2), 1e-9)
    # a share reads the correlation within a cluster by analysis of variance, which takes doubled rows
    # for rows, and limits of agreement are no nearer than its: the value stays
    for f in (stats.kappa, stats.ac1, stats.balanced_accuracy, stats.accuracy):
        once, twice = (f(a * k, b * k, cluster=c * k, categories=[0, 1, 2]) for k in (1, 2))
        assert once.value == pytest.approx(twice.value, abs=1e-12, nan_ok=True)


def test_sums_merge_over_chunks():
    rng = np.random.default_rng(0)
    x, g = rng.normal(size=(100, 3)), rng.integers(0, 7, 100)
    assert np.allclose(sums(x, g, 7), sums(x[:40], g[:40], 7) + sums(x[40:], g[40:], 7), atol=1e-12)


def test_jackknife_equals_brute_force():
    rng = np.random.default_rng(1)
    b, c = rng.integers(0, 2, 120), rng.integers(0, 15, 120)
    a = np.where(rng.random(120) < 0.8, b, 1 - b)
    left = np.array([stats.kappa(a[c != k], b[c != k], cluster=c[c != k]).value for k in range(15)])
    assert stats.kappa(a, b, cluster=c).se == pytest.approx(
        math.sqrt(14 / 15 * ((left - left.mean()) ** 2).sum())
    )


def test_float32_and_bool_columns():
    rng = np.random.default_rng(2)
    b = rng.integers(0, 2, 300)
    a = np.where(rng.random(300) < 0.8, b, 1 - b)
    for kind in (np.float32, bool, object, "int8"):
        same(stats.kappa(a, b), stats.kappa(a.astype(kind), b.astype(kind)))
    x = rng.random(500)
    assert stats.mean(x.astype(np.float32)).value == pytest.approx(stats.mean(x).value, abs=1e-6)


def test_clusters_widen_the_interval():
    y = np.repeat([0, 1] * 20, 8)
    assert (
        stats.mean(y, cluster=np.repeat(np.arange(40), 8)).half_width > 2 * stats.mean(y).half_width
    )


def test_perfect_agreement_is_not_certainty():
    e = stats.kappa([0, 1] * 10, [0, 1] * 10)
    assert e.value == 1 and e.low < 0.8 and "no disagreement" in e.note
    assert stats.accuracy([1] * 9, [1] * 9).low < 0.8
    assert math.isnan(stats.kappa([1] * 9, [1] * 9).value)
    assert stats.mean([1] * 40, cluster=[1, 2, 3, 4] * 10).low < 0.5


def test_categories_that_do_not_occur_count_for_ac1():
    a, b = [0] * 6 + [1] * 6, [0] * 5 + [1, 0] + [1] * 5
    assert stats.ac1(a, b, categories=[0, 1, 2]).value > stats.ac1(a, b).value


def test_alpha_with_two_raters_and_clusters():
    rng = np.random.default_rng(3)
    b = rng.integers(1, 6, 200)
    a = np.clip(b + rng.integers(-1, 2, 200), 1, 5)
    for metric in ("nominal", "ordinal", "interval", "ratio"):
        e = stats.alpha(np.column_stack([a, b]), metric=metric, cluster=np.arange(200) // 4)
        assert e.n_clusters == 50 and e.low < e.value < e.high
