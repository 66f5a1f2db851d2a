"""What an outsider with a simulator found: tables read as letters, intervals too sure of few clusters."""

import math

import numpy as np
import pandas as pd
import pytest

from kit import stats

RATINGS = np.random.default_rng(0).integers(0, 2, (40, 3))


@pytest.mark.parametrize("names", [["ann", "bob", "cid"], [0, 1, 2]])
def test_a_frame_of_ratings_is_read_by_position(names):
    """alpha, fleiss, ac1_raters and dawid_skene read the letters of the column names."""
    frame = pd.DataFrame(RATINGS, columns=names).iloc[::-1]
    for measure in (stats.alpha, stats.fleiss, stats.ac1_raters):
        got = measure(frame)
        assert got.n == 40 and got == measure(RATINGS[::-1])
        assert measure(dict(frame)) == got
    assert stats.dawid_skene(frame).label == stats.dawid_skene(RATINGS[::-1]).label
    first, second = names[:2]
    assert stats.kappa(frame, first, second) == stats.kappa(*RATINGS[::-1, :2].T)


def test_words_of_no_answer_are_unknown_in_python_too():
    """n/a, unknown and an empty cell were categories four and five; the command counted them as unknown."""
    judge = ["met", "unknown", " N/A", "unmet", "", None]
    report = stats.agree(judge, ["met"] * 3 + ["unmet"] * 3)
    assert report.categories == ("met", "unmet") and report.missing_judge == 4
    kept = stats.agree(["none", "all"], ["none", "none"], categories=["none", "all"])
    assert kept.missing_judge == 0
    d = stats.agreement_difference(judge, judge, ["met"] * 3 + ["unmet"] * 3)
    assert d.n == 2 and d.missing == 4


def test_mid_p_of_equal_discordant_counts():
    """It was .9999; Fagerland, Lydersen & Laake 2013: 1 - P(X = b) / 2."""
    assert stats.mcnemar(5, 5).p_mid == pytest.approx(1 - math.comb(10, 5) / 2**11)
