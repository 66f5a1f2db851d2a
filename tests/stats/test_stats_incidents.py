"""What outsiders' numbers showed: each test is one incident."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import kit
from kit import calibration, stats
from kit.__main__ import main
from kit.errors import DataError


def test_rows_left_out_are_counted():
    """recalibrate(missing="count") and abstain_below dropped rows without a word."""
    rng = np.random.default_rng(0)
    p = rng.random(60)
    y = rng.random(60) < p
    conf = [None, *p[1:]]
    found = calibration.recalibrate(conf, y, missing="count", n_boot=20)
    assert found.before.missing == found.after.missing == 1 and "1 missing" in str(found)
    answered = stats.abstain_below(conf, y, risk=0.2)
    assert answered.missing == 1 and "1 rows unknown" in str(answered)
    assert "unknown" not in str(stats.abstain_below(p, y, risk=0.2))


@pytest.mark.parametrize(
    "call",
    [
        lambda: stats.dawid_skene([[None] * 3]),
        lambda: stats.dawid_skene([]),
        lambda: stats.mean([1, 0, 1], weights=[1e300] * 3),
        lambda: calibration.ece([0.1, 0.5, 0.9], [0, 1, 1], weights=[1e300] * 3),
        lambda: calibration.reliability([0.1, 0.5, 0.9], [0, 1, 1], weights=[1e300] * 3),
        lambda: stats.trend([1, 2, 3], [1, 2, 3], per=0),
        lambda: stats.trend([1, 2, 3], [1, 2, 3], per=float("nan")),
    ],
)
def test_impossible_input_is_named(call):
    """ValueError, OverflowError and ZeroDivisionError came out raw."""
    with pytest.raises(DataError):
        call()


def test_a_few_huge_prompts_among_many_small_ones_show_no_gain():
    """155 prompts, five of 200 rows and 150 of one, no gain but a twentieth of prompts collapses:
    "beats" was said in .73 of samples, since the prompts were counted, not weighed."""
    rng, claimed = np.random.default_rng(0), 0
    sizes = np.r_[np.full(5, 200), np.ones(150, int)]
    cluster = np.repeat(np.arange(155), sizes)
    for _ in range(40):
        fell = rng.random(155) < 0.05
        d = np.where(fell, -0.9, 0.9 * 0.05 / 0.95) + rng.normal(0, 0.01, 155)
        columns = {"new": d[cluster], "old": np.zeros(len(cluster))}
        e = stats.difference(columns["new"], columns["old"], cluster=cluster)
        (row,) = stats.compare(columns, "old", cluster=cluster)
        claimed += "beats" in stats.claim(e) or (row.low > 0 and row.p_adjusted < 0.05)
        assert e.n_clusters == 155 and e.worth < 10
    assert claimed == 0


def test_rows_without_a_key_are_a_group_and_a_row_of_a_table_is_a_claim():
    """Rows whose kind is None were dropped by the table of each kind, without a word."""
    frame = pd.DataFrame({"kind": ["a", None, "b", np.nan], "v": [1, 0, 1, 1]})
    found = kit.each(frame, "kind", stats.mean, "v")
    assert {k: e.n for k, e in found.items()} == {"a": 1, "unknown": 2, "b": 1}
    frame["kind"] = ["unknown", None, 1, "1"]
    assert len(kit.each(frame, "kind", stats.mean, "v")) == 4  # one stood in another's place
    (row,) = stats.compare({"a": [0, 1, 0, 1, 0, 1], "b": [1, 1, 0, 1, 1, 1]}, "a")
    assert "Too few" in stats.claim(row) or "No gain" in stats.claim(row)


@pytest.mark.parametrize("said", ["9", "9.0"])
def test_a_number_that_means_unknown_is_unknown(said, tmp_path, capsys):
    """--unknown 9 did nothing in a column of numbers: kappa .115 with a level 9, for .250."""
    rows = [(1, 1), (2, 3), (3, 3), (1, 2), (2, 2), (3, 1), (9, 1), (9, 2), (3, 9)]
    path = tmp_path / "t.csv"
    path.write_text("j,h\n" + "".join(f"{a},{b}\n" for a, b in rows))
    assert (
        main(["agree", str(path), "--judge", "j", "--human", "h", "--unknown", said, "--json"]) == 0
    )
    assert json.loads(capsys.readouterr().out)["categories"] == [1, 2, 3]


def test_adjusted_differences_of_shares_are_differences_of_shares():
    """ "agrees more than the baseline .111 [-3.68, 3.46]", of two shares."""
    scores = {"a": [0, 1, 0, None], "b": [1, 1, 0, 0]}
    (row,) = stats.compare(scores, "a", cluster=[0, 0, 1, 2])
    assert (row.adjusted.low, row.adjusted.high) == (-1, 1)


def one_prompt_of(part, rng, rate=0.5, prompts=200):
    """0s and 1s (n,) of prompts of 2 to 7 rows, one that holds `part` of all; the prompts."""
    size = rng.integers(2, 8, prompts)
    size[0] = int(part / (1 - part) * size[1:].sum())
    cluster = np.repeat(np.arange(prompts), size)
    hit = rng.random(len(cluster)) < rng.beta(9 * rate, 9 * (1 - rate), prompts)[cluster]
    return hit.astype(int), cluster


def test_a_prompt_with_a_third_of_the_rows_widens_a_share_as_far_as_rows_are_alike():
    """The interval was .78 wide, four times what the estimate varies, by one degree of freedom."""
    rng, held, wide, values = np.random.default_rng(0), 0, [], []
    for _ in range(150):
        hit, cluster = one_prompt_of(0.35, rng)
        e = stats.mean(hit, cluster=cluster)
        held += e.low <= 0.5 <= e.high
        wide.append(e.high - e.low)
        values.append(e.value)
        assert not e.note and e.n_clusters == 200
    assert held >= 0.92 * 150
    assert np.median(wide) < 1.5 * 3.92 * np.std(values)


def longer_are_harder(rng, prompts):
    """0s and 1s (n,) of prompts, one in ten with 16 rows at .5, the others with 4 at .98."""
    long = rng.random(prompts) < 0.1
    rate = np.where(long, 0.5, 0.98)
    rate = rng.beta(5 * rate, 5 * (1 - rate))
    cluster = np.repeat(np.arange(prompts), np.where(long, 16, 4))
    return (rng.random(len(cluster)) < rate[cluster]).astype(int), cluster


@pytest.mark.parametrize("prompts", [40, 200])
def test_a_share_holds_where_prompts_with_more_rows_are_harder(prompts):
    """One correlation for all prompts: .885 of 40 and .863 of 200 held, and more data was no cure."""
    rng, held, wide, values = np.random.default_rng(prompts), [], [], []
    truth = (0.9 * 4 * 0.98 + 0.1 * 16 * 0.5) / (0.9 * 4 + 0.1 * 16)
    for _ in range(300):
        hit, cluster = longer_are_harder(rng, prompts)
        e = stats.mean(hit, cluster=cluster)
        d = stats.difference(hit, 0 * hit, cluster=cluster)
        held.append([e.low <= truth <= e.high, d.low <= truth <= d.high])
        wide.append(e.high - e.low)
        values.append(e.value)
    assert np.mean(held, axis=0).min() >= 0.92
    assert np.median(wide) < 1.5 * 3.92 * np.std(values)


def test_nine_tenths_of_the_rows_in_one_prompt_have_no_interval():
    """A share had one beside "too few clusters"; the difference had one without a word."""
    hit, cluster = one_prompt_of(0.9, np.random.default_rng(1))
    for e in (stats.mean(hit, cluster=cluster), stats.difference(hit, 1 - hit, cluster=cluster)):
        assert np.isnan(e.low) and e.note.startswith("too few clusters")


def test_what_is_too_few_is_below_what_is_needed():
    """1.46 clusters were "worth 1.5", "1.5 are needed"."""
    e = stats.mean([0.1] * 46 + [0.3] * 10, cluster=[0] * 46 + [1] * 10)
    assert "worth 1.4 of" in e.note


def test_a_row_of_a_table_below_a_hundred_prompts_and_its_sentence_claim_the_same():
    """97 of 207 rows whose interval lay above 0 were "too few to tell": the room for prompts that
    collapse and were not drawn was asked for twice."""
    above = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        k = np.repeat(np.arange(100), rng.integers(1, 17, 100))
        old, new = (rng.random(len(k)) < rng.beta(4 * p, 4 - 4 * p, 100)[k] for p in (0.5, 0.65))
        row = stats.compare({"a": old, "b": new}, "a", cluster=k, draws=500)[0]
        above += row.low > 0
        assert ("beats" in stats.claim(row)) == (row.low > 0)
    assert above > 3


def test_a_comparison_takes_any_table_and_its_p_agrees_with_its_interval():
    """A pyarrow table's columns were taken for names, and 6 of 3,784 rows had p > .05 beside an
    interval that excludes 0: the draws of the one were counted otherwise than the other's."""
    pa = pytest.importorskip("pyarrow")
    plain = {"a": [0, 1, 0, 1, 0, 1, 1, 0], "b": [1, 1, 0, 1, 1, 1, 1, 1], "t": list("aabbccdd")}
    tables = plain, pd.DataFrame(plain, index=list("hgfedcba")), pa.table(plain)
    rows = [stats.compare(table, "a", cluster="t") for table in tables]
    assert rows[0] == rows[1] == rows[2]
    two = pa.table({k: plain[k] for k in "ab"})
    assert stats.alpha(two) == stats.alpha({k: plain[k] for k in "ab"})
    rng, near = np.random.default_rng(2), 0
    old = rng.normal(size=120)
    noise = rng.normal(size=120)
    for shift in np.linspace(0.1, 0.5, 60):
        (row,) = stats.compare({"a": old, "b": old + noise + shift}, "a", draws=99, seed=1)
        shown = row.low > 0 or row.high < 0
        near += shown
        assert shown == (row.p_adjusted <= 0.05)
    assert 0 < near < 60
