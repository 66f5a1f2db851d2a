"""Two raters with two vocabularies, levels with an order, tables read by position."""

import numpy as np
import pandas as pd
import pytest

from kit import calibration, stats
from kit.errors import DataError

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
