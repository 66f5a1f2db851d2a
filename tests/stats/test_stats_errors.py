"""Hostile input: an error that says where and what to do; unknown never a number."""

import math
import subprocess
import sys
from datetime import datetime

import numpy as np
import pandas as pd
import pytest

from kit import calibration, stats, tables
from kit.errors import DataError


@pytest.mark.parametrize(
    "call",
    [
        lambda: stats.kappa([1, 0], [1]),
        lambda: stats.kappa([1, "met"], [0, "met"]),
        lambda: stats.kappa([1, 0], [1, 0], cluster=["a", None]),
        lambda: stats.kappa([1, 0], [1, 0], weights="cubic"),
        lambda: stats.kappa([1, 5], [1, 0], categories=[0, 1]),
        lambda: stats.mean([1, "x"]),
        lambda: stats.mean([1, math.inf]),
        lambda: stats.mean([1, 2], weights=[1, -1]),
        lambda: stats.mean([1, 2], level=95),
        lambda: stats.pass_rate([1, 0], [1, 0.5], design="random"),
        lambda: stats.pass_rate([1, 0], [1, None], design="guess"),
        lambda: stats.pass_rate([1, 0], [1, None], design="probability"),
        lambda: stats.pass_rate([1, 0], [1, 0], design="shifted"),
        lambda: stats.pass_rate([1, 0], [1, None], design="probability", inclusion=[0, 1]),
        lambda: stats.rubric_score([1, 2], [1, 1], answer=["a", "a"]),
        lambda: stats.rubric_score([1, 1], [1, None], answer=["a", "a"]),
        lambda: stats.rubric_score([1, 1], [0, 0], answer=["a", "a"]),
        lambda: stats.rubric_score([1, 1], [1, 1], answer=["a", "a"], cluster=["p", "q"]),
        lambda: stats.rubric_score([1, 1], [1, 1], answer=["a", "a"], how="median"),
        lambda: stats.alpha([[1, 2], [1]]),
        lambda: stats.alpha([["a", "b"], ["a", "a"]], metric="ordinal"),
        lambda: stats.wilson(3, 2),
        lambda: stats.lang_reiczigel(1.2, 10, q1=0.9, m1=5, q0=0.9, m0=5),
        lambda: stats.compare({"a": [1, 2]}, "b"),
        lambda: stats.agreement_difference([1], [1], [1], measure="vibes"),
        # raw errors of Python's, or a number all the same
        lambda: stats.holm(None),
        lambda: stats.together({"gain": 0.3}),
        lambda: stats.together({"gain": stats.mean([1, 0, 1])}, alpha="x"),
        lambda: stats.claim(None),
        lambda: stats.half_width(None, 0.5),
        lambda: stats.half_width(10, 0.5, effect=-1),
        lambda: stats.prompts_for(0.05, spread=0.15, power=0.2),
        lambda: stats.prompts_for("x", spread=0.15),
        lambda: stats.power_of(40, 0.05, spread=0),
        lambda: stats.labels_needed(0.05, 0.8, q1=0.9, q0=0.8, effect=-3),
        lambda: stats.design_effect(math.nan, 0.5),
        lambda: stats.mean([0.2, 0.4], bounds=1),
        lambda: stats.agree([1, 0, 1], [1, 0, 0], threshold="half"),
        lambda: stats.agree([1, 0, 1], [1, 0, 0], threshold=math.nan),
        lambda: tables.each(pd.DataFrame({"g": ["x"], "a": [1]}), "model", stats.mean, "a"),
        lambda: tables.each(pd.DataFrame({"g": ["x"], "a": [1]}), "g", stats.mean, "b"),
    ],
)
def test_says_where_and_what(call):
    with pytest.raises(DataError) as e:
        call()
    assert e.value.where


@pytest.mark.parametrize(
    "call",
    [
        lambda: stats.rps([["a", "b"]], [0]),
        lambda: stats.rps([[1j, 1 - 1j]], [0]),
        lambda: calibration.classwise([["a", "b"]], [0]),
        lambda: calibration.classwise([[0.1, 0.9], [1.0]], [0, 0]),
        lambda: calibration.classwise([[0.5, math.nan]], [0]),
        lambda: stats.kappa([b"met", b"unmet"], [1, 0]),
        lambda: stats.kappa([1j, 2], [1, 2]),
        lambda: stats.agree([datetime(2026, 1, 1), datetime(2026, 1, 2)], [1, 0]),
        lambda: stats.kappa([(1, 2), 1], [1, 0]),
        lambda: stats.kappa(1, 1),
        lambda: stats.kappa(None, [1]),
        lambda: stats.kappa("abab", "abba"),
        lambda: stats.alpha(1),
        lambda: stats.alpha([[1j, 2], [1, 2]]),
        lambda: stats.mean(i for i in range(3)),
        lambda: stats.mean({1, 0}),
        lambda: stats.mean(np.array([1j, 2, 3])),
        lambda: stats.mean(np.array([1, 2], "timedelta64[s]")),
        lambda: stats.mean([10**400, 1]),
        lambda: stats.mean([1, 0, 1], cluster=np.zeros((3, 2))),
        lambda: stats.mean([1, 0, 1], cluster="abc"),
        lambda: stats.mean([1, 0, 1], cluster=[{}, {}, {}]),
        lambda: stats.macro_mean([1, 0], cluster=[[1], [2]]),
        lambda: calibration.ece([0.2 + 1j, 0.3], [1, 0]),
        lambda: calibration.ece((p for p in [0.2, 0.3]), [1, 0]),
        lambda: calibration.ece([0.2, 0.3], [1, 0], cluster=np.zeros((2, 2))),
        lambda: calibration.ece([0.2, 0.3], [1, 0], n_boot=-1),
    ],
)
def test_no_column_is_a_named_error_and_never_a_traceback(call):
    """Bytes, complex numbers, dates, generators, grids ended in TypeErrors, or lost their imaginary part."""
    with pytest.raises(DataError) as e:
        call()
    assert e.value.where and e.value.fix


def test_only_percents_are_called_percents():
    """A lone confidence of 1.2 was advised to be divided by 100."""
    for conf, percents in (([1.2], False), ([1.1, 1.2, 0.5], False), ([80, 90], True)):
        with pytest.raises(DataError) as e:
            calibration.ece(conf, [1] * len(conf))
        assert ("percents" in e.value.fix) is percents


def test_design_is_required():
    with pytest.raises(TypeError):
        stats.pass_rate([1, 0], [1, None])


def test_nothing_known_gives_unknown_not_zero():
    for e in (
        stats.kappa([None], [1]),
        stats.mean([]),
        stats.mean([None, None]),
        stats.pass_rate([1, 0], [None, None], design="random"),
        stats.difference([None], [1]),
    ):
        assert math.isnan(e.value) and math.isnan(e.low) and not e.excludes(0)
    assert stats.mean([None, 3.0]).missing == 1


def test_one_cluster_has_no_interval():
    e = stats.mean([1, 0, 1], cluster=["p"] * 3)
    assert e.value == pytest.approx(2 / 3) and math.isnan(e.low)


def test_a_printed_interval_holds_the_true_one_and_its_own_value():
    """An AUROC stood as ".83 [.8, .9]" for [.77, .87], and as ".79 [.8, .8]"; .004 above 0 read ".00"."""
    rng = np.random.default_rng(0)
    for low, value, high in np.sort(
        rng.normal(0, rng.choice([0.01, 0.3, 5], 400)[:, None], (400, 3))
    ):
        text = stats.Estimate(value, low, high, 9).span()
        shown, ends = text.split(" [")
        down, up = map(float, ends.rstrip("]").split(", "))
        assert down <= low <= high <= up and down <= float(shown) <= up
        assert up - down <= high - low + 0.02 + 1e-9
        assert (down > 0) == (low > 0) and (up < 0) == (high < 0)
    assert stats.band(0.07, 0.1 + 0.2) == "[.07, .30]"  # a float's last digit moves no limit
    assert stats.band(float("-inf"), float("inf")) == "[-inf, inf]"


def test_estimate_reads_well():
    assert (
        str(stats.Estimate(0.525, 0.478, 0.572, 998, 499))
        == ".525 [.47, .58], n=998 in 499 clusters"
    )
    e = stats.mean(np.array([0.2, np.nan, 0.6]))
    assert "1 unknown" in str(e)
    assert stats.estimate_from_json(e.as_dict()) == e
    assert "<script>" not in stats.Estimate(0, 0, 0, 1, note="<script>")._repr_html_()


def test_design_effects_and_unknown_verdicts_in_pass_rate():
    rng = np.random.default_rng(0)
    y = rng.random(800) < 0.7
    f = np.where(rng.random(800) < 0.1, np.nan, np.where(rng.random(800) < 0.9, y, ~y))
    h = np.where(np.arange(800) < 160, y, np.nan)
    e = stats.pass_rate(f, h, design="random", cluster=np.arange(800) // 8)
    assert (
        e.low < 0.7 < e.high and e.n == 800
    )  # unknown judge verdicts are a level of their own, not left out
    assert "independent" in stats.pass_rate(f, h, design="random").note


def test_ppi_beats_labels_alone():
    rng = np.random.default_rng(1)
    y = rng.normal(3, 1, 2000)
    f = y + rng.normal(0, 0.5, 2000)
    h = np.where(np.arange(2000) < 200, y, np.nan)
    e = stats.ppi(f, h)
    assert e.low < 3 < e.high and e.half_width < 0.7 * stats.mean(y[:200]).half_width


def test_claims_only_what_the_interval_shows():
    a = np.tile([1, 0, 0, 1, 0], 30)
    b = np.where(np.arange(150) % 10 == 3, 1 - a, a)
    three = np.arange(150) // 50
    assert "No gain shown" in stats.claim(stats.difference(b, a, cluster=three))
    assert "Nothing can be said" in stats.claim(stats.difference(a + 1 / 3, a, cluster=three))
    assert "No gain shown" in stats.claim(stats.difference(np.roll(a, 1), a))
    up = stats.difference(np.ones(150) * 0.9 + 0.01 * (np.arange(150) % 3), a)
    assert "beats" in stats.claim(up) and "worse" in stats.claim(
        stats.difference(a, a + 1 + 0.1 * (np.arange(150) % 2))
    )
    assert "Nothing can be said" in stats.claim(stats.difference([None], [1]))


def test_compare_adjusts():
    rng = np.random.default_rng(4)
    base = rng.random(300)
    many = {
        "base": base,
        **{f"c{k}": base + rng.normal(0, 1, 300) for k in range(10)},
        "good": base + 0.5 + rng.normal(0, 1, 300),
    }
    rows = stats.compare(many, "base", cluster=np.arange(300) // 3)
    good = next(r for r in rows if r.name == "good")
    assert good.low > 0 and good.p_adjusted < 0.01
    assert all(r.p_adjusted >= r.p and r.low <= r.estimate.low for r in rows)
    again = stats.compare(many, "base", cluster=np.arange(300) // 3)
    assert [r.p_adjusted for r in rows] == [r.p_adjusted for r in again]


def test_agreement_difference_is_paired():
    rng = np.random.default_rng(6)
    h = rng.integers(0, 2, 400)
    old = np.where(rng.random(400) < 0.8, h, 1 - h)
    new = np.where((old != h) & (rng.random(400) < 0.5), h, old)
    d = stats.agreement_difference(new, old, h, cluster=np.arange(400) // 4)
    assert d.value == pytest.approx(stats.kappa(new, h).value - stats.kappa(old, h).value)
    assert d.low > 0 and d.half_width < 0.8 * np.hypot(
        stats.kappa(new, h).half_width, stats.kappa(old, h).half_width
    )


def test_the_trap_is_named():
    judge, human = [1] * 100, [1] * 75 + [0] * 25
    assert "not shown to be better" in stats.agree(judge, human).note
    assert stats.agree([1, 1, 0, None] * 9, [1, 0, 0, 1] * 9).missing_judge == 9


def test_statistics_start_without_the_slow_half_of_scipy():
    """`kit judge` waited 1.8 s for scipy.stats at every start."""
    code = (
        "import sys, kit.stats\n"
        "slow = [m for m in ('scipy.stats', 'scipy.optimize') if m in sys.modules]\n"
        "assert not slow, slow\n"
        "kit.stats.mean([1, 0, 1], cluster=['a', 'b', 'c'])\n"
        "assert 'scipy.stats' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_three_prompts_alike_are_no_gain():
    """ "+0.333 [+0.333, +0.333]" on three prompts was a shown gain."""
    e = stats.macro_difference(
        [1, 2 / 3, 2 / 3], [2 / 3, 1 / 3, 1 / 3], new_cluster=list("abc"), old_cluster=list("abc")
    )
    assert round(e.value, 3) == 0.333 and math.isnan(e.low) and math.isnan(e.high)
    assert not e.excludes(0) and "Nothing can be said" in stats.claim(e)
    wide = stats.mean([0.5, 0.5, 0.5], cluster=["a", "b", "c"], bounds=(0, 1))
    assert wide.low < 0.2 and wide.high > 0.8


def test_few_prompts_with_a_rare_collapse_show_no_gain():
    """Mean gain 0: a tenth of the prompts collapse. Falsely shown in .62 / .43 / .17 of samples of 4 / 8 / 16 before."""
    rng = np.random.default_rng(5)
    for prompts in (4, 8, 16, 24, 40):
        false = 0
        for _ in range(100):
            gain = np.where(rng.random(prompts) < 0.1, -0.9, 0.1) + rng.normal(0, 0.02, prompts)
            e = stats.difference(gain, np.zeros(prompts))
            false += " beats " in stats.claim(e)
        assert false <= (0 if prompts < 20 else 15), prompts


def test_a_clear_gain_on_few_prompts_is_shown_where_no_skew_deceives():
    new, old = [1.0] * 12, [0.0, 0.2] * 6
    names = [f"p{i}" for i in range(12)]
    plain = stats.macro_difference(new, old, new_cluster=names, old_cluster=names)
    assert "Too few" in stats.claim(plain)
    safe = stats.macro_difference(new, old, new_cluster=names, old_cluster=names, bounds=(-1, 1))
    assert safe.low > 0.05 and " beats " in stats.claim(safe)


@pytest.mark.parametrize("levels", [[1, 2, 3, 4, 5], [0.2, 0.9, 0.4, 0.8, 0.1]])
def test_levels_against_yes_and_no_are_refused(levels):
    """Five levels beside 0/1 labels made a 6x6 table in silence: only 0 and 1 could ever agree."""
    with pytest.raises(DataError, match="levels such as"):
        stats.agree(levels, np.array([0, 1, 1, 0, 1]))
    assert stats.agree(levels, [0, 1, 1, 0, 1], threshold=0.5).kappa.n == 5
    assert len(stats.agree([0, 1, 2, 1], [0, 1, 1, 0], categories=[0, 1, 2]).categories) == 3
    assert stats.agree([1, 1, 1], [0, 1, 1]).raw.value == pytest.approx(2 / 3)


def test_no_known_row_is_an_estimate_without_value():
    """A judge that said nothing at all ended agree, mcc and balanced accuracy with a traceback."""
    for judge, human in (([], []), ([None, None], [1, 0])):
        for measure in (stats.mcc, stats.balanced_accuracy, stats.kappa):
            e = measure(judge, human)
            assert np.isnan(e.value) and e.n == 0 and e.note
        assert stats.agree(judge, human).kappa.n == 0


P, Y = [0.2, 0.7, 0.9, 0.4] * 10, [0, 1, 1, 0, 1] * 8
ASKED = {
    "seed of ece": (lambda v: calibration.recalibrate(P, Y, seed=v), (-1, 1.5, "a")),
    "seed of compare": (lambda v: stats.compare({"a": P, "b": Y}, "a", seed=v), (-1, 1.5)),
    "draws": (lambda v: stats.compare({"a": P, "b": Y}, "a", draws=v), (-1, 0, 1.5, None)),
    "level of mean": (lambda v: stats.mean(P, level=v), (None, "a", 95, 0)),
    "level of ece": (lambda v: calibration.ece(P, Y, level=v), (None, "a", 95)),
    "level of a difference": (lambda v: stats.difference(P, Y, level=v), (None, 95)),
    "level of betting": (lambda v: stats.betting(P, level=v), (95, 0, None)),
    "horizon": (lambda v: stats.betting(P, horizon=v), (0, 5, 2.5)),
    "gain": (lambda v: stats.prompts_for(v, spread=0.1), (math.nan, 0)),
    "prompts": (lambda v: stats.power_of(v, 0.1, spread=0.1), (0, -3)),
    "edges": (lambda v: calibration.ece(P, Y, edges=v), ("abc", ["a", "b"], 3)),
    "rows": (lambda v: stats.kappa(v, "a", "b"), ([{"a": 1, "b": 0}],)),
}


@pytest.mark.parametrize(("ask", "value"), [(f, v) for f, vs in ASKED.values() for v in vs])
def test_what_is_asked_with_is_checked(ask, value):
    """Seeds, levels and counts ended in a TypeError or a ZeroDivisionError, or were accepted."""
    with pytest.raises(DataError):
        ask(value)


def test_large_cluster_ids_beside_a_float_stay_apart():
    """Five ids above 2**53 became two clusters, since a list with a float in it is made floats."""
    ids = [2**60 + k for k in range(5)]
    assert stats.mean([0, 1, 0, 1, 1, 0.5], cluster=[*ids, 0.5]).n_clusters == 6


@pytest.mark.parametrize("alike", [0.1, 0.8])
@pytest.mark.parametrize("n_clusters", [8, 20, 40])
def test_with_every_item_labelled_the_labels_speak_alone(alike, n_clusters):
    """All verdicts labelled gave .517 [.42, .63], the labels alone [.46, .58]. Nearly all labelled
    must be close to it, too, and the truth must lie inside."""
    rng = np.random.default_rng(n_clusters)
    share, ratio, hits = np.array([0.5, 0.95, 1.0]), [], []
    for _ in range(40):
        rate = rng.beta(0.6 * (1 / alike - 1), 0.4 * (1 / alike - 1), n_clusters)
        group = np.repeat(np.arange(n_clusters), rng.integers(2, 17, n_clusters))
        y = (rng.random(len(group)) < rate[group]).astype(float)
        judge, order = np.where(rng.random(len(y)) < 0.85, y, 1 - y), rng.random(len(y))
        for part in share:
            human = np.where(order < part, y, np.nan)
            e = stats.pass_rate(judge, human, design="random", cluster=group)
            alone = stats.mean(human[order < part], cluster=group[order < part])
            ratio.append(e.half_width / alone.half_width)
            hits.append(e.low <= 0.6 <= e.high)
            if part == 1:
                same = pytest.approx((alone.value, alone.low, alone.high), abs=1e-12)
                assert (e.value, e.low, e.high) == same
        score = stats.rubric_score(judge, y + 1, answer=group, human=y).estimate
        assert score == stats.rubric_score(y, y + 1, answer=group).estimate
    assert np.all(np.abs(np.array(ratio).reshape(-1, 3)[:, 1] - 1) < 0.1)
    assert np.mean(hits) >= 0.92


def test_labels_that_are_all_alike_are_their_own_rate():
    """The posterior's upper limit lies below 1; the value was cut down to it."""
    every = stats.pass_rate([1, 0] * 20, [1.0] * 40, design="random", cluster=np.arange(40) // 4)
    assert every.value == 1 and every.high == 1


@pytest.mark.parametrize("size", [1, 4])
def test_one_unlabelled_row_is_not_the_whole_population(size):
    """159 of 160 labelled: the one left moved a rate of .5 below 0; its variance was unknown to it."""
    rng, found = np.random.default_rng(3), []
    for _ in range(40):
        f = rng.normal(size=160)
        y = f + rng.normal(size=160)
        f[-1] += 3.0
        given = [*y[:-size], *[None] * size]
        e = stats.ppi(f, given, cluster=np.arange(160) // size)
        alone = stats.mean(y[:-size], cluster=np.arange(160 - size) // size)
        found.append((abs(e.value - alone.value), (e.high - e.low) / (alone.high - alone.low)))
    moved, wide = np.mean(found, axis=0)
    assert moved < 0.1 and 0.9 < wide < 1.3


def test_a_value_outside_its_range_is_refused():
    """mean([1, 2, 3]) in [0, 1] was 2.000 [.00, 1.00], outside its own interval."""
    for bounds in ((0, 1), (3, 1)):
        with pytest.raises(DataError, match="outside" if bounds == (0, 1) else "bounds are"):
            stats.mean([1, 2, 3], bounds=bounds)


def test_nothing_to_count_is_named():
    """Raw errors of the standard library and of numpy."""
    for measure in (stats.alpha, stats.dawid_skene):
        with pytest.raises(DataError, match="no ratings"):
            measure([])
    assert stats.mean_over_seeds([]).note == stats.mean_over_seeds([None]).note != ""
    assert stats.mean_over_seeds([0.5, None, 0.7]).missing == 1


def test_a_risk_that_is_met_exactly_is_kept():
    """(11 + 1) / 30 is .4, but not in floats: the threshold rose from .29 to .35."""
    rows = [i / 100 for i in range(29)]
    found = stats.abstain_below(rows, [int(i >= 11) for i in range(29)], risk=0.4)
    assert found.at == 0.0


def test_one_cluster_says_nothing_of_the_slope():
    """An interval of no width, [.69, .70], said that one prompt's confidence is not calibrated."""
    p = np.linspace(0.05, 0.95, 60)
    y = (np.random.default_rng(0).random(60) < p).astype(int)
    found = calibration.cox(p, y, cluster=["a"] * 60)
    for e in (found.intercept, found.slope):
        assert math.isnan(e.low) and math.isnan(e.high) and "one cluster" in e.note


def test_a_claim_whose_interval_is_cut_off_at_0_does_not_stand():
    """An error of .214 [.00, .42] stood with p=.050, whatever the data."""
    said = stats.together({"a": stats.Estimate(0.3, 0.0, 0.6, 100)})
    assert "0 stand; not shown: a (p=unknown)" in said


def test_claims_without_a_p_stay_in_the_family():
    """Nine claims whose interval ends at 0 left the family before Holm counted it, and a tenth with
    p=.02 stood: at least one of ten calibrated judges was "not calibrated" in 35 of 100 tables."""
    at_zero = {f"judge {i}": stats.Estimate(0.1, 0.0, 0.2, 100) for i in range(9)}
    one = stats.Estimate(0.2, 0.03, 0.37, 100)
    assert stats.holm({"a": one})["a"] < 0.03
    assert stats.holm({"a": one, **at_zero})["a"] > 0.2
    assert ", 0 stand" in stats.together({**at_zero, "a": one})


def test_claims_read_together_are_not_shown_where_one_alone_is_too_few():
    """One prompt in ten that collapses made a false gain "stand" in .47 of studies of 8 prompts and
    .20 of 16, where `claim` said "too few to tell"."""
    rng, shown = np.random.default_rng(0), 0
    for _ in range(60):
        gain = np.where(rng.random(8) < 0.1, -0.9, 0.1) + rng.normal(0, 0.01, 8)
        e = stats.mean(gain)
        assert "Too few" in stats.claim(e) or not e.excludes(0)
        shown += ", 1 stand" in stats.together({"gain": e})
    assert shown == 0
    told = stats.together({"gain": stats.Estimate(0.1, 0.05, 0.15, 8, se=0.02)})
    assert "0 stand; too few to tell: gain (p=" in told


def test_policies_are_named_as_they_stand_in_the_column():
    """ "each policy needs labels in two prompts" was said of a policy that no row has, and of 1 in a
    column that pandas had made 1.0."""
    judge, human, prompt = [1.0, 0.0] * 20, [1.0, 0.0] * 20, [i // 4 for i in range(40)]
    policy = [1.0, 2.0, 2.0, 1.0] * 10
    given = dict(judge=judge, human=human, policy=policy, cluster=prompt)
    found = stats.policy_difference(**given, new=1, old="2.0")
    assert found.n == 40 and not math.isnan(found.low)
    with pytest.raises(DataError, match="no row is of the policy 'A'"):
        stats.policy_difference(**given, new="A", old=1)


def test_these_functions_of_columns_take_tables_too():
    table = {"y": [0.5, 1.0, 0.0, 1.0] * 9, "c": [i // 4 for i in range(36)]}
    bet = stats.betting(table, "y", cluster="c")
    assert bet == stats.betting(table["y"], cluster=table["c"])
    assert stats.betting_path(table, "y", cluster="c")[-1].value == bet.value
    both = stats.macro_difference(table, "y", "y", new_cluster="c", old_cluster="c")
    assert both.value == 0.0
    right = {"p": table["y"], "y": [round(v) for v in table["y"]]}
    assert calibration.null_ece(right, "p") == calibration.null_ece(right["p"])
    assert calibration.fit(right, "p", "y").n == 36


def test_a_row_of_weight_0_is_no_row():
    """Three clusters with a weight beside 37 without one lost the note on too few clusters."""
    rng = np.random.default_rng(1)
    cluster = np.repeat(np.arange(40), 6)
    p, y = rng.random(240).round(1), (rng.random(240) < 0.5).astype(int)
    used = cluster < 3
    weights = used.astype(float)
    for function in (calibration.ece, lambda p, y, **k: stats.mean(y, **k)):
        all_rows = function(p, y, weights=weights, cluster=cluster)
        rows = function(p[used], y[used], weights=weights[used], cluster=cluster[used])
        assert str(all_rows) == str(rows) and all_rows.note == rows.note
        assert all_rows.n_clusters == 3
    assert "only 3 clusters" in calibration.ece(p, y, weights=weights, cluster=cluster).note


def test_seeds_that_gave_the_same_but_for_a_rounding_have_no_interval():
    """.1 + .2 beside .3 gave [.30, .30], which excludes 0."""
    found = stats.mean_over_seeds([0.1 + 0.2, 0.3])
    assert math.isnan(found.low) and found.note == "all seeds gave the same"


def test_what_is_given_and_answered_is_in_one_unit():
    """ "wrong and given .048 of all here" where .818 of all rows are: a mean over prompts beside a
    share of rows."""
    conf, right = [0.9] * 110, [0] * 90 + [1] * 20
    prompt = [0] * 90 + list(range(1, 21))
    found = stats.abstain_below(conf, right, risk=0.2, cluster=prompt)
    assert found.risk == pytest.approx(1 / 21) and found.coverage == pytest.approx(1)
    assert "means over the 21 prompts here" in str(found)


def test_a_step_of_a_betting_path_counts_the_rows_seen():
    path = stats.betting_path([0.5] * 6, cluster=list("aaaabc"))
    assert [e.n for e in path] == [4, 5, 6]
    with pytest.raises(DataError, match="spread -1"):
        stats.power_of(50, 0.1, spread=-1, noise=2)


def test_many_criteria_are_many_looks():
    """ "surely risen" named one of twelve criteria in .2 of controls, whose change was none."""
    rng, alone, together = np.random.default_rng(0), 0, 0
    for _ in range(100):
        changes = {str(k): stats.mean(rng.choice([-1.0, 0, 1], 120)) for k in range(12)}
        alone += any(e.excludes(0) for e in changes.values())
        together += bool(stats.standing(changes))
    assert alone > 25 and together <= 10
