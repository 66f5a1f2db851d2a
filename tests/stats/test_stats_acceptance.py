"""Every acceptance value, to the digits printed."""

import numpy as np
import pytest

from kit import stats

THREE = [[13, 0, 0], [0, 20, 7], [0, 4, 56]]
RAW4 = [
    [1, 1, None, 1],
    [2, 2, 3, 2],
    [3, 3, 3, 3],
    [3, 3, 3, 3],
    [2, 2, 2, 2],
    [1, 2, 3, 4],
    [4, 4, 4, 4],
    [1, 1, 2, 1],
    [2, 2, 2, 2],
    [None, 5, 5, 5],
    [None, None, 1, 1],
    [None, None, 3, None],
]
CODERS = ["*****341211 33*3".replace(" ", ""), "1*213343*******", "**21344*21133*4"]


def expand(table):
    """Two columns of category numbers with this confusion table (rows the judge)."""
    t = np.asarray(table)
    return [np.repeat(side.ravel(), t.ravel()) for side in np.indices(t.shape)]


def coders():
    return [[None if c == "*" else int(c) for c in row] for row in zip(*CODERS, strict=True)]


def test_lee_readme():
    e = stats.lang_reiczigel(0.4, 1000, q1=0.9, m1=200, q0=0.7, m0=200)
    assert (round(e.value, 4), round(e.low, 5), round(e.high, 5)) == (0.1667, 0.05635, 0.26273)


def test_lee_readme_from_rows():
    judge = [1] * 400 + [0] * 600 + [1] * 180 + [0] * 20 + [0] * 140 + [1] * 60
    human = [None] * 1000 + [1] * 200 + [0] * 200
    e = stats.pass_rate(judge, human, design="shifted")
    assert (round(e.value, 4), round(e.low, 5), round(e.high, 5)) == (0.1667, 0.05635, 0.26273)


def test_three_by_three():
    a, b = expand(THREE)
    k = stats.kappa(a, b, se="linear")
    assert (round(k.value, 7), round(k.se, 7)) == (0.7964094, 0.0589107)
    g = stats.ac1(a, b, se="linear")
    assert (round(g.value, 7), round(g.se, 7)) == (0.8493305, 0.0432175)
    assert round(stats.alpha(np.column_stack([a, b])).value, 7) == 0.7972585


def test_four_raters():
    assert round(stats.alpha(RAW4).value, 5) == 0.74342


@pytest.mark.parametrize(
    ("metric", "value"),
    [("nominal", 0.6914), ("ordinal", 0.8067), ("interval", 0.8108), ("ratio", 0.8089)],
)
def test_krippendorff(metric, value):
    assert round(stats.alpha(coders(), metric=metric).value, 4) == value


def test_paradox():
    a, b = expand([[118, 5], [2, 0]])
    assert (round(stats.kappa(a, b).value, 4), round(stats.ac1(a, b).value, 4)) == (-0.0234, 0.9408)


def test_labels_needed():
    plan = stats.labels_needed(0.05, 0.8, q1=0.9, q0=0.8)
    assert (plan.human_only, plan.post_stratified, plan.rogan_gladen) == (246, 141, 327)
    assert "no judge at all" in plan.note
    assert stats.labels_needed(0.05, 0.8, q1=0.5, q0=0.5).rogan_gladen is None


def test_wilson():
    e, z = stats.wilson(10, 10), stats.wilson(0, 10)
    assert (round(e.low, 4), e.high, z.low, round(z.high, 4)) == (0.7225, 1.0, 0.0, 0.2775)


def test_against_scipy_and_sklearn():
    from sklearn import metrics

    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 3, 200), rng.integers(0, 3, 200)
    b = np.where(rng.random(200) < 0.5, a, b)
    assert stats.kappa(a, b).value == pytest.approx(metrics.cohen_kappa_score(a, b))
    assert stats.kappa(a, b, weights="quadratic").value == pytest.approx(
        metrics.cohen_kappa_score(a, b, weights="quadratic")
    )
    assert stats.kappa(a, b, weights="linear").value == pytest.approx(
        metrics.cohen_kappa_score(a, b, weights="linear")
    )
    assert stats.mcc(a, b).value == pytest.approx(metrics.matthews_corrcoef(b, a))
    assert stats.balanced_accuracy(a, b).value == pytest.approx(
        metrics.balanced_accuracy_score(b, a)
    )
