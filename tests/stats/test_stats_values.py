"""Values that are published or made by hand, to the digits printed; and how results read."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from kit import stats
from kit.errors import DataError
from kit.stats import Estimate, format_interval, format_number


def pairs(table: list[list[int]]) -> list[np.ndarray]:
    """Two columns of level numbers with this table (rows the judge)."""
    counts = np.asarray(table)
    return [np.repeat(side.ravel(), counts.ravel()) for side in np.indices(counts.shape)]


@pytest.mark.parametrize(
    ("table", "value"),
    [
        ([[13, 0, 0], [0, 20, 7], [0, 4, 56]], 0.7964094),
        ([[118, 5], [2, 0]], -0.0234),
        ([[20, 5], [10, 15]], 0.4),
    ],
)
def test_kappa(table: list[list[int]], value: float) -> None:
    digits = len(str(value).split(".")[1])
    assert round(stats.kappa(*pairs(table)).value, digits) == value


@pytest.mark.parametrize("weights", [None, "linear", "quadratic"])
def test_kappa_against_scikit_learn(weights: str | None) -> None:
    from sklearn.metrics import cohen_kappa_score

    rng = np.random.default_rng(0)
    a = rng.integers(0, 4, 300)
    b = np.where(rng.random(300) < 0.6, a, rng.integers(0, 4, 300))
    expected = cohen_kappa_score(a, b, weights=weights)
    assert stats.kappa(a, b, weights=weights).value == pytest.approx(expected, abs=1e-12)


def test_auroc_against_scikit_learn() -> None:
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(1)
    score, y = rng.integers(0, 20, 500) / 20, rng.integers(0, 2, 500)
    assert stats.auroc(score, y).value == pytest.approx(roc_auc_score(y, score), abs=1e-12)
    change = stats.auroc(score, y, against=1 - score)
    assert change.value == pytest.approx(2 * roc_auc_score(y, score) - 1, abs=1e-12)


def test_lee_et_al() -> None:
    judge = [1] * 400 + [0] * 600 + [1] * 180 + [0] * 20 + [0] * 140 + [1] * 60
    human = [None] * 1000 + [1] * 200 + [0] * 200
    e = stats.label_mean(judge, human, design="shifted")
    assert round(e.value, 4) == 0.1667 and 0.05 < e.low < 0.1 and 0.25 < e.high < 0.31


@pytest.mark.parametrize(
    ("rows", "low", "high"), [([1] * 10, 0.7225, 1.0), ([0] * 10, 0.0, 0.2775)]
)
def test_wilson(rows: list[int], low: float, high: float) -> None:
    e = stats.mean(rows)
    assert (round(e.low, 4), round(e.high, 4)) == (low, high)
    assert [round(x, 4) for x in stats.wilson_interval(rows[0], 10)] == [low, high]


@pytest.mark.parametrize(("gain", "flips", "n"), [(0.4, 0.5, 23), (0.15, 0.45, 155)])
def test_connor(gain: float, flips: float, n: int) -> None:
    assert stats.prompts_for(gain, flips=flips) == n


def test_corrected_is_post_stratification() -> None:
    judge = [1] * 60 + [0] * 40
    human = [1] * 24 + [0] * 6 + [None] * 30 + [1] * 4 + [0] * 16 + [None] * 20
    e = stats.label_mean(judge, human, design="random")
    assert e.value == pytest.approx(0.6 * 24 / 30 + 0.4 * 4 / 20)


def test_policy_difference() -> None:
    y = [1, 1, 1, 0, 1, 1] * 5 + [0, 1, 0, 0, 1, 0] * 5
    policy, prompt = ["new"] * 30 + ["old"] * 30, list(range(30)) * 2
    e = stats.policy_difference(y, y, policy, new="new", old="old", cluster=prompt)
    assert e.value == pytest.approx(0.5) and e.excludes(0) and e.n_clusters == 30


@pytest.mark.parametrize(
    ("estimate", "text"),
    [
        (Estimate(0.107, 0.054, 0.196, n=84), ".107 [.05, .20], n=84"),
        (Estimate(0.1, 0.0004, 0.2, n=9), ".100 [.0004, .2000], n=9"),
        (Estimate(-0.5, -1, 0, n=9, n_clusters=4), "-.500 [-1.00, .00], n=9 in 4 clusters"),
        (Estimate(0.5, n=3, missing=2), ".500 [no interval], n=3, 2 unknown"),
        (Estimate(math.nan), "unknown [no interval], n=0"),
    ],
)
def test_text(estimate: Estimate, text: str) -> None:
    assert str(estimate) == repr(estimate) == text
    assert text in estimate._repr_html_()


def test_numbers() -> None:
    assert [format_number(v) for v in (0.5, -0.0001, 12.3456, None)] == [
        ".500",
        ".000",
        "12.346",
        "unknown",
    ]
    assert format_interval(0.29, 0.29) == "[.29, .29]"
    e = stats.mean([1, 0, 1])
    # repr, because NaN is equal to nothing
    assert repr(Estimate(**vars(e))) == repr(e) and float(e) == e.value


def gain(value: float, half: float, n: int, **more: float) -> Estimate:
    return Estimate(value, value - half, value + half, n=n, **{"scale": 1.0, **more})


UNKNOWN_ROWS = "No difference in score: no row differs (n=2, 7 unknown)."


@pytest.mark.parametrize(
    ("e", "start"),
    [
        (gain(0.3, 0.1, 200), "A gain in score: +.300 [.20"),
        (gain(-0.3, 0.1, 200), "A loss in score"),
        (gain(0.3, 0.1, 20), "A gain"),
        (gain(0.2, 0.1, 20), "Too few prompts to show a gain"),
        (gain(0.2, 0.1, 2000, n_clusters=20), "Too few prompts to show a gain"),
        (gain(0.2, 0.3, 200), "No difference in score is shown"),
        (Estimate(0.2, n=3, scale=1.0, note="too few clusters"), "No statement on score"),
        (Estimate(0.2, 0.1, 0.3, n=30, noun="kappa"), "Kappa is .200 [.10, .30], n=30."),
        (
            stats.difference([0.3] * 30, [0.3] * 30, bounds=(0, 1)),
            "No difference in score: no row differs",
        ),
        (stats.difference([1, 0] * 15, [1, 0] * 15), "No difference in score: no row differs"),
        (Estimate(0, 0, 0, n=2, scale=1.0, missing=7, note="no row differs"), UNKNOWN_ROWS),
    ],
)
def test_claims(e: Estimate, start: str) -> None:
    assert e.sentence.startswith(start)


def test_equal_columns_leave_room_for_three_in_n() -> None:
    e = stats.difference([0.3] * 60, [0.3] * 60, cluster=list(range(30)) * 2)
    assert (e.low, e.high) == (-0.1, 0.1) and "no row differs" in e.note


def test_together_is_wider_and_compare_names_columns() -> None:
    rng = np.random.default_rng(0)
    scores = pd.DataFrame(rng.random((40, 4)), columns=list("abcd")).assign(task=range(40))
    out = stats.compare_to_baseline(scores, "a", cluster="task")
    alone = stats.difference(scores, "b", "a", cluster="task")
    assert list(out) == ["b", "c", "d"] and out["b"].value == alone.value
    assert out["b"].high - out["b"].low > 1.1 * (alone.high - alone.low)


def test_agree_shows_the_trap_of_the_majority() -> None:
    a = stats.agree([1] * 20, [1] * 18 + [0] * 2)
    assert "Always answering 1" in a.note and a.majority == 0.9 and a.kappa.value == 0
    assert "judge \\ human" in str(a) and a.confusion.tolist() == [[0, 0], [2, 18]]
    assert set(a.rates) == {0, 1} and a.estimate is a.kappa


def test_one_seed_has_no_interval_and_a_seed_counts_once() -> None:
    assert math.isnan(stats.over_seeds([0.5]).low)
    assert stats.over_seeds([0.5, None, 0.7]).missing == 1
    with pytest.raises(DataError, match="a seed occurs twice"):
        stats.over_seeds([0.5, 0.6], seeds=[1, 1])


def test_planning_agrees_with_the_claim() -> None:
    n = stats.prompts_for(0.3, spread=0.2)
    assert 10 < n < 100
    assert stats.labels_needed(0.05, 0.8, q1=0.9, q0=0.8) == {
        "labels alone": 246,
        "with the judge": 141,
    }


def test_weights_count_rows_by_their_worth() -> None:
    one = [1] + [0] * 49
    assert math.isnan(stats.mean(one, weights=one).low) and stats.mean(one, weights=one).n == 1
    heavy = stats.mean([0.2, 0.4, 0.6, 0.1], weights=[100, 1, 1, 1], cluster=list("abcd"))
    assert "too few clusters" in heavy.note
    x, group = np.arange(20) % 3 / 2, np.arange(20) // 4
    even = stats.mean(x, cluster=group, weights=[2] * 20)
    assert even.low == pytest.approx(stats.mean(x, cluster=group).low)


@pytest.mark.parametrize("judge", [[1] * 40 + [0] * 40, [1] * 20 + [0] * 20 + [None] * 40])
def test_a_verdict_without_labels_is_refused(judge: list[int | None]) -> None:
    e = stats.label_mean(judge, [1, 0] * 20 + [None] * 40, design="random")
    assert math.isnan(e.value) and math.isnan(e.low) and "no row has a label" in e.note


def test_together_stays_in_range_and_levels_are_shares() -> None:
    seeds = stats.over_seeds([0.9, 0.95, 1.0], bounds=(0, 1))
    wide = stats.simultaneous_intervals({"a": stats.mean([1] * 19 + [0]), "b": seeds})
    assert all(0 <= e.low <= e.high <= 1 for e in wide.values())
    for level in (0.0, 1.0, -0.5, math.nan):
        with pytest.raises(DataError, match="level is"):
            stats.mean([1, 0, 1], level=level)
        with pytest.raises(DataError, match="level is"):
            stats.simultaneous_intervals({"b": seeds}, level=level)
