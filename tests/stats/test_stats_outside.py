"""What an outsider with a simulator found: tables read as letters, intervals too sure of few
clusters.
"""

import math

import numpy as np
import pandas as pd
import pytest

from kit import stats
from kit.errors import DataError

RATINGS = np.random.default_rng(0).integers(0, 2, (40, 3))


@pytest.mark.parametrize("names", [["ann", "bob", "cid"], [0, 1, 2]])
def test_a_frame_of_ratings_is_read_by_position(names):
    """alpha and dawid_skene read the letters of the column names."""
    frame = pd.DataFrame(RATINGS, columns=names).iloc[::-1]
    got = stats.alpha(frame)
    assert got.n == 40 and got == stats.alpha(RATINGS[::-1])
    assert stats.alpha(dict(frame)) == got
    assert stats.dawid_skene(frame).label == stats.dawid_skene(RATINGS[::-1]).label
    first, second = names[:2]
    assert stats.kappa(frame, first, second) == stats.kappa(*RATINGS[::-1, :2].T)


def test_words_of_no_answer_are_unknown_in_python_too():
    """n/a, unknown and an empty cell were categories four and five; the command counted them as
    unknown.
    """
    judge = ["met", "unknown", " N/A", "unmet", "", None]
    report = stats.agree(judge, ["met"] * 3 + ["unmet"] * 3)
    assert report.categories == ("met", "unmet") and report.missing_judge == 4
    kept = stats.agree(["none", "all"], ["none", "none"], categories=["none", "all"])
    assert kept.missing_judge == 0
    d = stats.agreement_difference(judge, judge, ["met"] * 3 + ["unmet"] * 3)
    assert d.n == 2 and d.missing == 4


def giant(seed=0):
    """Eight clusters, one of 60 rows, seven of three."""
    return np.random.default_rng(seed), np.repeat(np.arange(8), [60] + [3] * 7)


def test_a_giant_cluster_is_no_evidence_of_many():
    """Family-wise error was .14 (4 columns) and .31 (15), by the interval and by the p-value."""
    rng, cluster = giant()
    false = 0
    for _ in range(40):
        both = 0.6 * rng.normal(size=(8, 9))[cluster] + 0.8 * rng.normal(size=(81, 9))
        table = {str(k): both[:, k] for k in range(9)}
        rows = stats.compare(table, "0", cluster=cluster, draws=200)
        false += any(r.p_adjusted <= 0.05 or r.low > 0 or r.high < 0 for r in rows)
    assert false <= 5


def test_an_adjusted_p_says_what_its_interval_says():
    """Columns of 0 and 1: p_adjusted was below .05 where the interval was [-1, 1]."""
    rng, cluster = giant(1)
    for _ in range(40):
        flags = (0.6 * rng.normal(size=(8, 5))[cluster] + 0.8 * rng.normal(size=(81, 5))) > 0
        table = {str(k): flags[:, k] for k in range(5)}
        rows = stats.compare(table, "0", cluster=cluster, draws=200)
        assert not any(r.p_adjusted <= 0.05 and r.low <= 0 <= r.high for r in rows)


def test_the_rarer_outcome_in_one_cluster_shows_no_auroc():
    """Three wrong rows of one prompt gave .750 [.49, .90], and "beats" in a claim."""
    score = [*np.round(np.linspace(0.3, 0.9, 120), 2), 0.45, 0.46, 0.44]
    right, prompt = [1] * 120 + [0] * 3, [i // 6 for i in range(120)] + [3] * 3
    area = stats.auroc(score, right, cluster=prompt)
    assert math.isnan(area.low) and area.note.startswith("too few clusters")
    change = stats.auroc_change(score, [0.5] * 123, right, cluster=prompt)
    assert math.isnan(change.low) and "beats" not in stats.claim(change)


def collapse(rng, prompts):
    """Better by .05 on nineteen prompts of twenty, worse by .95 on the other: no gain at all."""
    return np.where(rng.random(prompts) < 0.05, -0.95, 0.05) + rng.normal(0, 0.005, prompts)


@pytest.mark.parametrize("prompts", [20, 30, 40])
def test_no_gain_is_claimed_where_a_collapse_may_be_unseen(prompts):
    """False claims: .36, .20 and .16 of samples."""
    rng, beats = np.random.default_rng(0), 0
    for _ in range(60):
        d = collapse(rng, prompts)
        beats += "beats" in stats.claim(stats.difference(d, 0 * d))
        known = stats.macro_difference(
            d, 0 * d, new_cluster=range(prompts), old_cluster=range(prompts), bounds=(-1.05, 1.05)
        )
        beats += "beats" in stats.claim(known)
    assert beats <= 3
    clear = 0.4 + 0.1 * rng.normal(size=prompts)
    assert "beats" in stats.claim(stats.difference(clear, 0 * clear))


@pytest.mark.parametrize("measure", [stats.balanced_accuracy, stats.mcc])
def test_a_rare_class_in_one_cluster_has_no_interval(measure):
    """Balanced accuracy covered .65 of the time."""
    human = np.array([1] * 76 + [0] * 4)
    judge = np.where(np.arange(80) % 7 == 3, 1 - human, human)
    one = measure(judge, human, cluster=np.arange(80) // 10)
    assert math.isnan(one.low) and "too few clusters" in one.note
    spread = measure(judge, np.roll(human.reshape(4, 20), 1, 0).T.ravel())
    assert spread.n == 80


def test_a_class_that_few_clusters_hold_may_lie_in_those_not_drawn():
    """Alpha of a class of 3 % held the truth in .6 to .9: a sample without the class looked
    certain.
    """
    judge, human = [int(i % 7 == 0) for i in range(72)], [0] * 72
    cluster = [i // 9 for i in range(72)]
    ratings = np.column_stack([judge, human])
    e = stats.alpha(ratings, cluster=cluster)
    assert e.value < 0 and e.high > 0.3
    many = stats.alpha(np.tile(ratings, (100, 1)), cluster=np.arange(7200))
    assert many.high < 0.02  # two more rows of 7,200 tell nothing new


def test_a_rare_class_judged_right_each_time_is_not_certain():
    """Balanced accuracy of ten rare rows, all right, had the spread of the common class alone: .65
    to .82.
    """
    human = [int(i % 20 == 0) for i in range(200)]
    judge = [h or int(i % 5 == 1) for i, h in enumerate(human)]
    e = stats.balanced_accuracy(judge, human, cluster=[i // 5 for i in range(200)])
    alone = stats.confusion(judge, human, cluster=[i // 5 for i in range(200)])[1, 1]
    assert e.value - e.low >= (alone.value - alone.low) / 2


def test_macro_means_of_shares_stay_in_their_range():
    """A t interval of mostly empty clusters went below 0 and held the truth in .7 of samples."""
    e = stats.macro_mean([1] + [0] * 199, cluster=[i // 5 for i in range(200)])
    assert e.value == pytest.approx(0.005)
    assert 0 <= e.low < e.value and e.high > 0.02


def test_a_gain_with_an_unseen_collapse_is_not_claimed_at_seventy_prompts():
    """With 3 % of prompts that collapse a gain was falsely shown in .15 of samples of 60."""
    d = 0.03 + np.random.default_rng(0).normal(0, 0.005, 70)
    assert stats.claim(stats.difference(d, np.zeros(70))).startswith("Too few")
    clear = np.random.default_rng(0).normal(0.5, 1, 70)
    assert "beats" in stats.claim(stats.difference(clear, np.zeros(70)))


def test_labels_in_one_giant_prompt_correct_nothing():
    """ppi with one giant labelled cluster held the truth in .86 to .90."""
    judge = [1, 0, 1, 1] * 50
    human = judge[:60] + [None] * 40 + [1, 0] + [None] * 98
    cluster = [0] * 60 + [1 + i // 4 for i in range(140)]
    e = stats.ppi(judge, human, cluster=cluster)
    assert math.isnan(e.low) and "too few clusters" in e.note


@pytest.mark.parametrize("k", ["1", None, float("nan")])
def test_wilson_of_no_number_says_so(k):
    """A count that was text was a raw TypeError."""
    with pytest.raises(DataError, match="of 3"):
        stats.wilson(k, 3)


def test_a_table_without_the_names_of_its_columns_says_so():
    """Two mappings were a raw TypeError about a missing argument."""
    with pytest.raises(DataError, match="name its columns"):
        stats.kappa({"a": [1]}, {"a": [1]})


def whole_clusters(rng, clusters, rate, alike):
    """Rows (n,) and clusters (n,): with chance `alike` a cluster passes or fails as a whole."""
    group = np.repeat(np.arange(clusters), rng.integers(2, 17, clusters))
    shared = np.where(rng.random(clusters) < alike, rng.random(clusters) < rate, rate)
    return (rng.random(len(group)) < shared[group]).astype(int), group


@pytest.mark.parametrize(("clusters", "rate"), [(80, 0.03), (200, 0.01), (60, 0.95)])
def test_a_rare_rate_holds_where_clusters_fail_as_a_whole(clusters, rate):
    """Covered .84 to .90: the sample shows single failures only, and no cluster that fails whole."""
    rng, held = np.random.default_rng(8), 0
    for _ in range(150):
        x, group = whole_clusters(rng, clusters, rate, 0.8)
        e = stats.mean(x, cluster=group)
        held += e.low <= rate <= e.high
    assert held / 150 >= 0.92


def test_a_plan_is_for_the_claim_that_will_be_made():
    """73 prompts were planned for a power of .8, and the gain was then claimed in .06 of samples."""
    n, rng, shown = stats.prompts_for(0.05, spread=0.15), np.random.default_rng(1), 0
    for _ in range(200):
        d = 0.05 + 0.15 * rng.normal(size=n)
        shown += "beats" in stats.claim(stats.difference(d, 0 * d))
    assert shown / 200 > 0.75 and abs(stats.power_of(n, 0.05, spread=0.15) - shown / 200) < 0.1


def test_the_table_of_many_columns_claims_no_more_than_the_sentence():
    """A tenth of the prompts collapse, no column is better: .855 of the tables had a p below .05."""
    rng, wrong = np.random.default_rng(1), 0
    for _ in range(40):
        group = np.repeat(np.arange(8), rng.integers(2, 17, 8))
        fell = rng.random((8, 4)) < 0.1
        columns = np.where(fell[group], 0, 0.9) + rng.normal(0, 0.05, (len(group), 4))
        base = 0.81 + rng.normal(0, 0.05, len(group))
        rows = stats.compare(
            {"base": base, **{str(k): columns[:, k] for k in range(4)}},
            "base",
            cluster=group,
            draws=300,
        )
        wrong += any(r.p_adjusted < 0.05 or r.low > 0 for r in rows)
    assert wrong <= 2


def test_a_path_of_intervals_says_where_the_rows_drift():
    path = stats.betting_path([1] * 15 + [0] * 45)
    assert not path[10].note and "drift" in path[-1].note


def test_a_cluster_that_is_unknown_among_texts_is_refused():
    """NaN among texts became the text 'nan', and all such rows one prompt."""
    with pytest.raises(DataError, match="the cluster is unknown"):
        stats.mean([1, 0, 1], cluster=["a", float("nan"), "b"])


def test_rows_that_all_agree_say_as_little_for_mcc_as_for_kappa():
    """[.81, 1] beside kappa's [.51, 1] for 40 rows of which 4 are rare: .85 of the intervals held."""
    a = [1] * 36 + [0] * 4
    found, same = stats.mcc(a, a), stats.kappa(a, a)
    assert (found.value, found.low, found.high) == (1.0, same.low, 1.0)
    assert "no disagreement seen" in found.note


def test_few_wrong_rows_of_a_few_levels_leave_the_auroc_open():
    """990 right rows and 10 wrong at the lowest levels: [.98, 1] while the truth was .966."""
    levels, right = [0.5, 0.7, 0.8, 0.9, 0.95, 1.0], [0.01, 0.01, 0.03, 0.15, 0.3, 0.5]
    wrong = [0.5, 0.3, 0.1, 0.05, 0.05, 0.0]
    truth = sum(p * (sum(wrong[:i]) + wrong[i] / 2) for i, p in enumerate(right))
    rng, held, n = np.random.default_rng(0), 0, 150
    for _ in range(n):
        y = np.arange(1000) >= 12
        s = np.where(y, rng.choice(levels, 1000, p=right), rng.choice(levels, 1000, p=wrong))
        e = stats.auroc(s, y)
        held += e.low <= truth <= e.high
    assert held / n >= 0.92


@pytest.mark.parametrize("least", [0.0, 0.5])
def test_nothing_is_claimed_of_prompts_with_one_row_before_and_eight_after(least):
    """Where nothing differs and failures are rare, "beats" was claimed of .29 of the tables."""
    rng, prompts, claimed, n = np.random.default_rng(0), 100, 0, 150
    old, new = np.arange(prompts), np.repeat(np.arange(prompts), 8)
    for _ in range(n):
        rows = (np.where(rng.random(len(ids)) < 0.99, 1.0, least) for ids in (new, old))
        e = stats.macro_difference(*rows, new_cluster=new, old_cluster=old)
        claimed += not e.low <= 0 <= e.high
    assert claimed / n <= 0.07


def test_few_wrong_rows_of_a_few_levels_leave_the_change_of_the_auroc_open():
    """Ten wrong rows of 200, both scores of six levels and alike: .80 of the intervals held the
    change; the wrong rows at the upper levels were not drawn."""
    from scipy.special import ndtr

    rng = np.random.default_rng(4)
    right, old, new = (
        (0.01, 0.01, 0.03, 0.15, 0.3, 0.5),
        (3, 3, 2, 1, 0.5, 0.5),
        (5, 3, 1, 0.5, 0.5, 0),
    )
    area = [np.dot(right, np.cumsum(w) - np.multiply(w, 0.5)) / 10 for w in (old, new)]
    held = 0
    for _ in range(300):
        y = rng.random(200) < 0.95
        first = rng.normal(size=200)
        second = 0.8 * first + 0.6 * rng.normal(size=200)
        sides = []
        for u, w in zip((ndtr(first), ndtr(second)), (old, new), strict=True):
            level = [np.searchsorted(np.cumsum(w) / 10, u), np.searchsorted(np.cumsum(right), u)]
            sides.append(np.minimum(np.where(y, level[1], level[0]), 5))
        e = stats.auroc_change(sides[1], sides[0], y)
        held += e.low <= area[1] - area[0] <= e.high
    assert held >= 0.93 * 300
    y = np.arange(400) % 2
    both = rng.normal(size=(2, 400)) + y
    e = stats.auroc_change(*both, y)
    assert e.high - e.low < 1.03 * 2 * 1.97 * e.se  # many of each outcome: hardly wider


def test_wrong_rows_that_all_have_one_score_leave_the_auroc_open():
    """Two levels, 980 right and 20 wrong, all low: [.81, .86] while .80 was true of .13 more."""
    score = [1] * 686 + [0] * 294 + [0] * 20
    found = stats.auroc(score, [1] * 980 + [0] * 20)
    assert found.value == pytest.approx(0.85) and found.low < 0.8


def test_what_is_unknown_keeps_the_level_that_was_asked_and_says_why():
    """Of level .9, a change of AUROC and a difference of policies that came out unknown said .95;
    two scores that order the rows alike gave "no interval" without a word."""
    score, right = np.arange(40) / 40, np.ones(40)
    assert stats.auroc_change(score, score, right, level=0.9).level == 0.9
    sides = {"new": "a", "old": "b", "level": 0.9}
    e = stats.policy_difference([1] * 4, [None] * 4, list("aabb"), **sides)
    assert np.isnan(e.value) and e.level == 0.9
    same = stats.auroc_change(score, score / 2, np.arange(40) % 3 == 0)
    assert same.value == 0 and np.isnan(same.low) and "no cluster changes it" in same.note
