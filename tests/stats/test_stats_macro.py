"""Macro means and differences against the textbook formulas, and against a difference of rows where the two must agree."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import t

from kit import stats
from kit.train import evaluation

RNG = np.random.default_rng(3)
CLUSTER = [f"p{i}" for i in range(14) for _ in range(4)]
A, B = (RNG.random(56).round(2).tolist() for _ in range(2))


def textbook(x):
    """Student's interval of a mean: what kit.train.evaluation computed by itself before."""
    mean, k = math.fsum(x) / len(x), len(x)
    half = float(t.ppf(0.975, k - 1)) * math.sqrt(
        math.fsum((v - mean) ** 2 for v in x) / (k - 1) / k
    )
    return mean, mean - half, mean + half


def means(values):
    return [
        np.nanmean([v for v, c in zip(values, CLUSTER, strict=True) if c == name and v is not None])
        for name in dict.fromkeys(CLUSTER)
    ]


def test_the_intervals_are_students_or_a_little_wider():
    """Student's t with the degrees of freedom that the influences carry: never narrower than C - 1 gives;
    a difference of 14 prompts of several rows has room for two that were not drawn."""
    a = [None if i % 9 == 0 else v for i, v in enumerate(A)]
    got = stats.macro_mean(a, cluster=CLUSTER)
    value, low, high = textbook(means(a))
    assert got.value == pytest.approx(value, abs=1e-12) and got.n == 49 and got.missing == 7
    assert 1.0 <= got.half_width / ((high - low) / 2) < 1.3
    diff = stats.macro_difference(B, a, new_cluster=CLUSTER, old_cluster=CLUSTER)
    value, low, high = textbook([y - x for x, y in zip(means(a), means(B), strict=True)])
    assert diff.value == pytest.approx(value, abs=1e-12)
    assert 1.0 <= diff.half_width / ((high - low) / 2) < 1.6
    assert diff.n_clusters == 14 and diff.n == 105


def test_evaluation_reads_the_same_numbers():
    mine, theirs = (
        evaluation.paired(A, B, CLUSTER, CLUSTER),
        stats.macro_difference(B, A, new_cluster=CLUSTER, old_cluster=CLUSTER),
    )
    assert (mine.value, mine.low, mine.high) == (theirs.value, theirs.low, theirs.high)
    rows = stats.difference(
        B, A, cluster=CLUSTER
    )  # as many rows in every cluster: rows and clusters weigh alike
    assert (mine.value, mine.low, mine.high) == pytest.approx(
        (rows.value, rows.low, rows.high), abs=1e-12
    )


def test_clusters_of_one_side_only_and_unequal_sizes():
    got = stats.macro_difference(
        [1, 1, 1, 0], [0, 0, 1], new_cluster=["a", "a", "b", "z"], old_cluster=["a", "b", "b"]
    )
    assert got.value == pytest.approx(0.75) and got.n_clusters == 2
    one = stats.macro_mean([1, 0], cluster=["a", "a"])
    assert one.value == 0.5 and math.isnan(one.low) and "one cluster" in one.note
    nothing = stats.macro_mean([None], cluster=["a"])
    assert (
        math.isnan(nothing.value)
        and nothing.n == 0
        and math.isnan(stats.macro_mean([], cluster=[]).value)
    )


def test_a_difference_of_two_shares_lies_between_minus_1_and_1():
    """Notebook 3 printed ".857 [.55, 1.16]" for 12 of 14 prompts, and no interval for 14 of 14."""
    ids = [str(i) for i in range(14)]
    for gained in (0, 12, 14):
        new = [1.0] * gained + [0.0] * (14 - gained)
        e = evaluation.paired([0.0] * 14, new, ids, ids)
        assert e.value == gained / 14 and -1 <= e.low < e.high <= 1
        assert (e.n, e.n_clusters) == (28, 14)
        assert (e.low, e.high) == (lambda s: (s.low, s.high))(stats.difference(new, [0.0] * 14))
    twice = stats.macro_difference(
        [1] * 9 + [0, 1, 1], [0] * 6, new_cluster=list("aabbccddeeff"), old_cluster=list("abcdef")
    )
    assert -1 <= twice.low < twice.value < twice.high <= 1, "several answers to a prompt"
    points = stats.macro_difference(
        [3, 4.5], [1, 0], new_cluster=["a", "b"], old_cluster=["a", "b"]
    )
    assert points.high > 1, "rewards that are no shares keep their own range"
