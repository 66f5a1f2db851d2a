"""What a bench claims and what it finds, on drawn verdicts; the 200 studies are in bench_tuning."""

import math

import pytest
from simulated import FakeBench, claimed, study

from kit.errors import DataError
from kit.stats import betting
from kit.tuning.bench import FIRST
from kit.tuning.study import chance, prompts_to_find
from kit.tuning.trials import stages


def test_where_nothing_can_be_gained_nothing_is_claimed(tmp_path):
    """An improver that believes its own dev scores "improves" most prompts of these studies."""
    reads = [study(40, i, tmp_path, found=4)[1] for i in range(12)]
    assert sum(map(claimed, reads)) <= 1
    assert sum(r.dev.value > r.baseline_test.value for r in reads) >= 7


def test_a_gain_is_found_at_the_size_that_the_planner_names(tmp_path):
    pilot, _ = study(60, 0, tmp_path, trials=2, measure="accuracy", gain=0.15)
    plan = pilot.plan(0.14)  # which .15 more than .75 is where easy prompts are cut at 1
    assert 100 < plan["needed"] < 1000 and not plan["smallest"] <= 0.14
    reads = [
        study(plan["needed"], i, tmp_path, trials=2, measure="accuracy", gain=0.15)[1]
        for i in range(1, 13)
    ]
    assert sum(claimed(r) and r.winner == "p1" for r in reads) >= 8


def test_a_gain_that_cannot_be_is_not_called_found(tmp_path):
    """At a kappa of .53 "the 99 here find 1.02 in 4 of 5 studies"."""
    pilot, _ = study(60, 0, tmp_path, trials=2, measure="accuracy", gain=0.15)
    plan = pilot.plan(0.15)
    assert plan["smallest"] != plan["smallest"] and plan["finds"].startswith("none")


def test_a_plan_needs_a_trial_that_differs(tmp_path):
    bench = FakeBench(60, 0, tmp_path)
    with pytest.raises(DataError, match="no trial differs"):
        bench.plan()


def test_more_trials_and_smaller_gains_need_more_prompts():
    few, many = (prompts_to_find(0.1, spread=0.5, trials=k) for k in (1, 20))
    assert few < many < prompts_to_find(0.05, spread=0.5, trials=20)
    assert chance(20, 0.05, spread=0.5) < 0.05 and math.isfinite(chance(20, 0.5, spread=0.5))


def test_a_large_set_of_labels_is_asked_in_few_rounds(tmp_path):
    """Eight prompts at a time were 100 rounds of calls one after the other for 800 prompts."""
    bench = FakeBench(600, 0, tmp_path)
    sizes = [len(s) for s in stages(bench._queue, bench.cluster, FIRST)]
    assert len(sizes) <= 6
    assert sum(sizes) == (bench.part == "train").sum() and sizes[0] == 16
    assert betting([0.0] * 3).low <= 0  # read at any time: the rounds may have any size


def test_the_baseline_gains_nothing_over_itself(tmp_path):
    """It was said to gain 0 [-.31, .31] over itself, and to be called baseline baseline."""
    _, read = study(40, 3, tmp_path, trials=1, gain=-0.5)
    assert read.winner == "baseline" and (read.gain.low, read.gain.high) == (0, 0)
    assert read.sentence == "The baseline was the best on dev: nothing to claim."
