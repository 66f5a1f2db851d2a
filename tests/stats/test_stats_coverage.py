"""Do intervals hold the truth? Unequal clusters of 1 to 60 rows, rows alike by .1 to .8."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import numpy as np
import pytest

from kit import calibration, stats

sys.path.insert(0, str(Path(__file__).parent))
from generators import STATISTICS, coverage, sample

# every statistic in one cell that is hard for it: few clusters, or rows much alike
SMALL = [(name, 20, 0.4) for name in STATISTICS]


@pytest.mark.parametrize(("name", "clusters", "likeness"), SMALL)
def test_coverage(name: str, clusters: int, likeness: float) -> None:
    share, refusals = coverage(name, clusters, likeness, draws=60)
    assert share >= 0.9 and refusals < 0.2


# "label mean" at 8 clusters has labels of about 4: mostly refused
@pytest.mark.slow
@pytest.mark.parametrize("clusters", [8, 20, 40, 200])
@pytest.mark.parametrize("name", STATISTICS)
def test_coverage_whole(name: str, clusters: int) -> None:
    for likeness in (0.1, 0.4, 0.8):
        share, refusals = coverage(name, clusters, likeness, draws=200)
        # .92, less two standard errors of 200 draws
        assert share >= 0.88 or refusals > 0.9, f"likeness {likeness}: {share:.2f}"


# (share of prompts that collapse, prompts): the gain of the others is worth just the collapse
@pytest.mark.parametrize(
    ("rare", "prompts"),
    [(0.05, 20), (0.05, 40), (0.05, 60), (0.01, 100), (0.06, 120), (0.01, 200), (0.05, 500)],
)
def test_a_rare_collapse_is_no_gain(rare: float, prompts: int) -> None:
    claims = naive = 0
    for i in range(200):
        rng = np.random.default_rng([i, prompts])
        collapse = rng.random(prompts) < rare
        gain = np.where(collapse, rare - 1, rare) + rng.normal(0, 0.02, prompts)
        e = dataclasses.replace(stats.mean(gain), scale=1.0)
        claims, naive = claims + e.sentence.startswith("A gain"), naive + (e.low > 0)
    assert claims <= 0.05 * 200
    assert naive > 30 or (rare, prompts) not in [(0.05, 20), (0.01, 100)]


def test_family_wise_error() -> None:
    misses = 0
    for i in range(150):
        rng = np.random.default_rng(i)
        base = rng.random(40)
        scores = {f"m{k}": base + rng.normal(0, 0.2, 40) for k in range(6)}
        out = stats.compare_to_baseline({"base": base, **scores}, "base")
        misses += any(e.excludes(0) for e in out.values())
    assert misses <= 0.07 * 150


@pytest.mark.parametrize(("clusters", "likeness"), [(8, 0.8), (40, 0.1)])
def test_false_alarms_of_calibration(clusters: int, likeness: float) -> None:
    alarms = 0
    for i in range(80):
        s = sample(np.random.default_rng([i, clusters]), clusters, likeness)
        r = calibration.reliability(s.conf, s.y, cluster=s.cluster, draws=200)
        alarms += r.sentence.startswith("Miscalibrated")
    assert alarms <= 8


def test_the_logistic_test_has_more_power_than_the_ece() -> None:
    """60 rows of a model whose logits are 2.2 times too large."""
    hits = {"test": 0, "ece": 0, "false": 0}
    for i in range(60):
        rng = np.random.default_rng(i)
        logit = rng.normal(0.5, 1.2, 60)
        conf = 1 / (1 + np.exp(-logit))
        bold = calibration.reliability(
            conf, rng.random(60) < 1 / (1 + np.exp(-logit / 2.2)), draws=200
        )
        calm = calibration.logistic_test(conf, rng.random(60) < conf)
        hits["test"] += bold.test.p_value < 0.05
        hits["ece"] += bold.ece.p_value < 0.05
        hits["false"] += calm.p_value < 0.05
    assert hits["test"] > 1.2 * hits["ece"] and hits["test"] > 30 and hits["false"] <= 6
