"""Two raters with two vocabularies, levels with an order, tables read by position."""

import numpy as np
import pandas as pd
import pytest

from kit import calibration, stats
from kit.errors import DataError
from kit.stats import agreement

HUMAN = [1, 1, 0, 0, 1, 0, 1, 1, 0, 0] * 6
JUDGE = [1, 1, 0, 0, 1, 0, 0, 1, 1, 0] * 6


@pytest.mark.parametrize(
    ("words", "labels"),
    [
        (("unmet", "met"), ("no", "yes")),
        (("unmet", "met"), (0, 1)),
        (("FALSE", "True"), (0, 1)),
        (("fail", "pass"), ("not met", "Met")),
        (("0", "1"), (0, 1)),
    ],
)
def test_one_judgement_in_two_vocabularies(words, labels):
    """met / unmet against yes / no gave kappa .000 with exit 0."""
    want = stats.kappa(JUDGE, HUMAN)
    got = stats.agree([words[v] for v in JUDGE], [labels[v] for v in HUMAN])
    assert got.kappa.value == pytest.approx(want.value) and want.value > 0.5
    if words != ("0", "1"):
        assert "read as 1" in got.note


def test_what_cannot_be_mapped_is_refused():
    with pytest.raises(DataError, match="no vocabulary"):
        stats.kappa(["good idea", "meh"] * 5, ["ja", "nein"] * 5)
    with pytest.raises(DataError, match="levels such as 2"):
        stats.agree([1, 2, 3, 4, 5] * 4, [0, 1, 1, 0, 1] * 4)
    got = stats.agree([1, 2, 3, 4, 5] * 4, [0, 0, 1, 1, 1] * 4, threshold=3)
    assert got.kappa.value == 1 and "judge: at least 3 is 1" in got.note


def test_words_have_the_order_that_the_user_gives():
    """Quadratic kappa of low / mid / high was .117, by the alphabet, instead of .633."""
    rng = np.random.default_rng(0)
    human = rng.integers(0, 3, 90)
    judge = np.clip(human + rng.integers(-1, 2, 90), 0, 2)
    words = ["low", "mid", "high"]
    said, label = ([words[v] for v in x] for x in (judge, human))
    with pytest.raises(DataError, match="order"):
        stats.kappa(said, label, weights="quadratic")
    want = stats.kappa(judge, human, weights="quadratic").value
    got = stats.kappa(said, label, weights="quadratic", categories=words).value
    assert got == pytest.approx(want)
    text = stats.kappa([str(9 + v) for v in judge], [str(9 + v) for v in human], weights="linear")
    assert text.value == pytest.approx(stats.kappa(judge, human, weights="linear").value)


def test_ordered_categoricals_have_an_order_of_their_own():
    """agree asked for categories=, though the columns say which level is the best."""
    words = ["low", "mid", "high"]
    kind = pd.CategoricalDtype(words, ordered=True)
    frame = pd.DataFrame(
        {"judge": ["low", "mid", "high", None], "human": ["low", "high", "mid", "low"]}
    )
    want = stats.kappa(frame, "judge", "human", weights="quadratic", categories=words)
    own = frame.astype(kind)
    for given in ((own, "judge", "human"), (own["judge"], own["human"])):
        assert stats.kappa(*given, weights="quadratic") == want
        assert stats.agree(*given, weights="linear", categories=None).categories == (*words,)
    with pytest.raises(DataError, match="order"):
        stats.kappa(frame.astype("category"), "judge", "human", weights="quadratic")
    with pytest.raises(DataError, match="order"):  # two orders are none
        other = own.assign(human=own["human"].cat.reorder_categories(words[::-1]))
        stats.kappa(other, "judge", "human", weights="quadratic")
    levels = pd.DataFrame({"judge": [1, 5, 3], "human": [0, 1, 1]})
    cut = levels.astype({"judge": pd.CategoricalDtype([1, 3, 5], ordered=True)})
    assert stats.agree(cut, "judge", "human", threshold=3).kappa.value == 1
    with pytest.raises(DataError, match="no column"):
        stats.agree(own, "judge", "nobody")


def test_a_frame_is_read_by_position():
    """A filtered frame raised, a reordered one gave -.06 instead of .44."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"human": rng.integers(0, 2, 80), "task": np.arange(80) // 4})
    frame["judge"] = np.where(rng.random(80) < 0.8, frame["human"], 1 - frame["human"])
    frame["other"] = np.where(rng.random(80) < 0.6, frame["human"], 1 - frame["human"])
    mixed = frame[frame["task"] > 3].sample(frac=1, random_state=2)
    lists = {k: mixed[k].tolist() for k in mixed}
    for call in (
        lambda t: stats.kappa(t["judge"], t["human"], cluster=t["task"]),
        lambda t: stats.agreement_difference(t["judge"], t["other"], t["human"], cluster=t["task"]),
        lambda t: stats.mean(t["judge"], cluster=t["task"]),
        lambda t: stats.macro_mean(t["judge"], cluster=t["task"]),
        lambda t: stats.difference(t["judge"], t["other"], cluster=t["task"]),
    ):
        assert str(call(mixed)) == str(call(lists))


def test_a_table_and_the_names_of_its_columns():
    rng = np.random.default_rng(2)
    p = np.round(rng.random(60), 1)
    frame = pd.DataFrame(
        {"p": p, "ok": (rng.random(60) < p).astype(int), "task": np.arange(60) // 3}
    )
    by_name = calibration.reliability(frame, "p", "ok", cluster="task", n_boot=50)
    plain = calibration.reliability(p, frame["ok"], cluster=frame["task"], n_boot=50)
    assert str(by_name) == str(plain)
    pair = calibration.compare(
        frame, ("p", "ok"), ("p", "ok"), paired=True, cluster="task", n_boot=50
    )
    assert pair.difference.value == 0
    with pytest.raises(DataError, match="no column 'okay'"):
        stats.mean(frame, "okay")
    assert str(stats.mean({"x": [1, 0, 1]}, "x")) == str(stats.mean([1, 0, 1]))


WORDS = [("unmet", "met"), ("no", "yes"), (0, 1), (False, True), ("FAIL", "Pass")]


@pytest.mark.parametrize("new", WORDS)
@pytest.mark.parametrize("old", WORDS)
@pytest.mark.parametrize("human", WORDS)
def test_a_better_judge_is_better_in_any_words(new, old, human):
    """A perfect judge in yes / no was .5 worse than a half-right one in met / unmet."""
    h, half = [1, 0] * 8, [1, 1, 0, 0] * 4
    columns = ([w[v] for v in c] for w, c in ((new, h), (old, half), (human, h)))
    got = stats.agreement_difference(*columns, measure="accuracy")
    assert (got.value, got.n, got.missing) == (0.5, 16, 0)
    with pytest.raises(DataError, match="new gives levels such as 3"):
        stats.agreement_difference([3, 1] * 8, half, h)


def test_raters_with_vocabularies_of_their_own_are_compared():
    """met, yes and pass were three categories: kappa -.200 in place of .667, silently."""
    rows = [[1, 1, 1], [0, 0, 0], [1, 1, 1], [0, 0, 0], [1, 0, 1], [0, 1, 0], [1, 1, 1], [0, 0, 0]]
    words = [[w[v] for w, v in zip(WORDS, r, strict=False)] for r in rows]
    got = stats.alpha(words)
    assert got.value == stats.alpha(rows).value and "are read as 1" in got.note
    panel = stats.dawid_skene(words)
    assert panel.label == stats.dawid_skene(rows).label and "read as 1" in panel.note
    with pytest.raises(DataError, match="rater 3"):
        stats.alpha([["a", "b", "meh"], ["b", "a", "well"]])
    sparse = [["low", "mid", None], ["mid", None, "high"], [None, "high", "low"]]
    assert stats.dawid_skene(sparse).categories == ("high", "low", "mid")


def test_what_numpy_masks_is_unknown():
    """The 300 under a mask was in the mean: 101 of 1, 2 and an unknown."""
    mask = [0, 0, 1]
    hidden = np.ma.array([1, 2, 300], mask=mask)
    assert (stats.mean(hidden).value, stats.mean(hidden).missing) == (1.5, 1)
    assert stats.accuracy(np.ma.array([1, 0, 1], mask=mask), [1, 0, 0]).n == 2
    conf = np.ma.array([0.5, 0.6, 0.7], mask=mask)
    assert calibration.ece(conf, [1, 0, 1], missing="count", n_boot=0).missing == 1
    with pytest.raises(DataError, match="row 2"):
        calibration.brier(conf, [1, 0, 1])
    with pytest.raises(DataError, match="the cluster is unknown"):
        stats.mean([1, 0, 1], cluster=hidden)
    with pytest.raises(DataError, match="is no class number"):
        calibration.classwise([[0.2, 0.8]] * 3, np.ma.array([1, 1, 1], mask=mask))


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64", "int8"])
def test_clusters_may_be_of_any_whole_dtype(dtype):
    """Unsigned codes, as categories and downcasts give them, were a raw OverflowError."""
    for numbers in ([0, 0, 1, 1], [3, 3, 100, 100], [0, 0, 2, 2]):
        e = stats.mean([1, 0, 1, 1], cluster=np.array(numbers, dtype))
        assert e == stats.mean([1, 0, 1, 1], cluster=numbers)


def test_a_tuple_is_one_label():
    pairs = [("a", 1), ("a", 1), ("b", 1), "c"]
    assert stats.mean([1, 0, 1, 1], cluster=pairs) == stats.mean([1, 0, 1, 1], cluster=list("aabc"))
    ids = {"new_cluster": pairs[:3], "old_cluster": pairs[:3]}
    assert stats.macro_difference([1, 1, 0], [0, 1, 0], **ids).n_clusters == 2


def test_a_report_reads_each_word_once(monkeypatch):
    """Each of five measures read both columns row by row: 9 s for a million rows of text."""
    seen = []
    unsaid = agreement.unsaid
    monkeypatch.setattr(agreement, "unsaid", lambda v, c: (seen.append(v), unsaid(v, c))[1])
    judge = ["met", "unmet", None, np.ma.masked] * 50
    found = stats.agree(judge, ["met", "met", "unmet", "unmet"] * 50)
    assert found.confusion.tolist() == [[50, 0], [50, 0]] and found.missing_judge == 100
    assert len(seen) == 5
