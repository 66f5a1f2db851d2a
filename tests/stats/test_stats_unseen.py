"""Room for kinds of prompts that were not drawn: as far as the most extreme drawn, or as the range
that is given.
"""

import numpy as np
import pytest

from kit import calibration, stats
from kit.errors import DataError


def _close_scores(prompts=100, rows=8, seed=0):
    """Scores in [0, 1] before and after, (prompts, rows): nearly alike, on prompts that are not."""
    rng = np.random.default_rng(seed)
    hard, gain = rng.beta(2, 2, (prompts, 1)), 0.008 + rng.normal(0, 0.02, (prompts, 1))
    old = np.clip(hard + rng.normal(0, 0.02, (prompts, rows)), 0, 1)
    return old, np.clip(old + gain + rng.normal(0, 0.02, (prompts, rows)), 0, 1)


def _paired(old, new, cluster, **bounds):
    """The difference, the trend over two steps and the difference of prompts' means."""
    twice = {"new_cluster": cluster, "old_cluster": cluster}
    step, both = np.repeat([0.0, 100.0], len(old)), np.tile(cluster, 2)
    return [
        stats.difference(new, old, cluster=cluster, **bounds),
        stats.trend(step, np.r_[old, new], cluster=both, **bounds),
        stats.macro_difference(new, old, **twice),
    ]


def test_more_answers_to_a_prompt_do_not_widen_a_difference_of_scores():
    """A second answer to each of 100 prompts made the interval 2.2 times wider, by the range of the
    scores, and "beats" became "No gain shown"."""
    old, new = _close_scores()
    for rows in (1, 2, 8):
        before, after = old[:, :rows], new[:, :rows]
        plain = 1.984 * (after - before).mean(1).std(ddof=1) / 10
        prompt = np.repeat(np.arange(100), rows)
        for e in _paired(before.ravel(), after.ravel(), prompt):
            assert plain < e.half_width < 1.15 * plain, (rows, e)
            assert "beats" in stats.claim(e)
    for e, mean in zip(
        _paired(old.ravel(), new.ravel(), prompt),
        _paired(old.mean(1), new.mean(1), np.arange(100)),
        strict=True,
    ):
        assert e.half_width == pytest.approx(mean.half_width, rel=1e-6)


def test_a_score_beside_one_that_is_nearly_the_same_is_told_as_closely_as_they_are_alike():
    """The interval of the change in Brier scores was 3 to 5 times the honest one at 100 prompts."""
    rng, cluster = np.random.default_rng(0), np.repeat(np.arange(100), 16)
    right = (rng.random(1600) < rng.beta(4, 1, 100)[cluster]).astype(int)
    old = np.clip(np.where(right == 1, 0.8, 0.6) + rng.normal(0, 0.15, 1600), 0, 1)
    new = np.clip(old + rng.normal(0, 0.03, 1600), 0, 1)
    loss = (new - right) ** 2 - (old - right) ** 2
    plain = 1.984 * np.bincount(cluster, loss).std(ddof=1) / 160
    change = calibration.compare((old, right), (new, right), paired=True, cluster=cluster, n_boot=0)
    for e in (change.brier, calibration.against_score(new, right, old, cluster=cluster)):
        assert e.half_width < 1.3 * plain


@pytest.mark.parametrize("rows", [4, 0])
def test_a_kind_of_prompt_drawn_once_has_room_for_more_and_the_range_for_one_not_drawn(rows):
    """Where 1 prompt in 20 goes from .1 to 1, intervals of 40 prompts held .84 to .90 without a
    note: a kind was believed to move no more than three deviations of the scores."""
    rng, seen, known = np.random.default_rng(rows), [], []
    for _ in range(150):
        cluster = np.repeat(np.arange(40), rows or rng.choice([1, 16], 40))
        kind = rng.random(40) < 0.05
        usual = rng.beta(6, 2, 40)[cluster] + rng.normal(0, 0.08, (2, len(cluster)))
        usual[1] += rng.normal(0.03, 0.05, 40)[cluster]
        old, new = np.where(kind[cluster], [[0.1], [1.0]], usual.clip(0, 1))
        truth = 0.0704  # of 200,000 prompts
        for e in _paired(old, new, cluster):
            seen += [e.low <= truth <= e.high] if kind.any() else []
        within = _paired(old, new, cluster, bounds=(0.0, 1.0))[:2]
        known += [e.low <= truth <= e.high for e in within]
    assert np.mean(seen) >= 0.93 and np.mean(known) >= 0.93
    with pytest.raises(DataError, match="outside"):
        stats.difference(new + 1, old, bounds=(0.0, 1.0))


def test_a_difference_of_ratings_is_not_cut_where_a_difference_of_shares_would_be():
    """Four ratings of 1 to 5 gave .625 [-.19, 1.00]; ten times the ratings were not cut."""
    prompt = {"new_cluster": range(4), "old_cluster": range(4)}
    ratings = np.array([3.0, 4, 2.5, 4]), np.array([2, 3.5, 1.5, 4])
    e, tens = (stats.macro_difference(*(k * x for x in ratings), **prompt) for k in (1, 10))
    assert e.high > 1.3 and tens.high == pytest.approx(10 * e.high)


@pytest.mark.parametrize("origin", [0.0, 0.1, 1.0, 33.3])
def test_a_slope_that_one_prompt_alone_makes_has_no_interval_from_any_first_step(origin):
    """One prompt was at a later step: round-off of the slope of one step gave intervals from .04 to
    24 wide, by where steps begin and in what unit values are; true slopes were in .58 of those
    that were linearised."""
    step, value = origin + np.array([0, 0, 0, 0, 0, 100.0]), np.array([0.1, 0.3, 0.25, 0.4, 0.2, 1])
    for unit in (1.0, 3.0):
        e = stats.trend(step, unit * value)
        assert e.value == pytest.approx(0.75 * unit) and np.isnan(e.low)
        assert "all rows are of one step" in e.note
    twice = stats.trend(np.repeat(step, 2), np.repeat(value, 2), cluster=np.repeat(range(6), 2))
    assert twice.note == e.note and np.isfinite(stats.trend([*step, step[-1]], [*value, 0.9]).low)


def _fooled(rng, prompts, sizes):
    """Two confidences, what is right and the prompt; 1 prompt in 20 fools the first as a whole."""
    cluster = np.repeat(np.arange(prompts), rng.choice(sizes, prompts))
    kind = rng.random(prompts) < 0.05
    fools, n = kind[cluster], len(cluster)
    right = (rng.random(n) < np.where(fools, 0.05, rng.beta(9, 1, prompts)[cluster])).astype(int)
    new = np.where(fools, 0.95, np.where(right == 1, 0.85, 0.6)) + rng.normal(0, 0.12, n)
    old = np.where(right == 1, 0.8, 0.65) + rng.normal(0, 0.12, n)
    return new.clip(0, 1), old.clip(0, 1), right, cluster, kind.any()


def test_prompts_that_fool_a_judge_have_room_to_rank_below_all_others():
    """Confidently wrong prompts were to be no worse than chance: AUROC and its change held .66 and
    .73 of 40 prompts of 1 or 16 rows, no note."""
    rng, held = np.random.default_rng(0), []
    truth = 0.7155, -0.0963  # of 200,000 prompts
    for _ in range(120):
        new, old, right, cluster, seen = _fooled(rng, 40, [1, 16])
        found = [stats.auroc(new, right, cluster=cluster)]
        found.append(stats.auroc_change(new, old, right, cluster=cluster))
        if seen and all(np.isfinite(e.low) for e in found):
            held += [e.low <= t <= e.high for e, t in zip(found, truth, strict=True)]
            assert all("few clusters" in e.note for e in found)
    assert np.mean(held) >= 0.92


def test_an_area_read_from_the_other_end_has_the_mirrored_interval():
    """Where the wrong rows tied below the right ones: [.009, .806], mirrored [.009, 1.0]."""
    score, right = [0.2, 0.5, 0.9, 0.4, 0.7, 0.3, 0.8, 0.6], [0, 1, 1, 1, 1, 0, 1, 1]
    score[5] = score[0]
    one, two = stats.auroc(score, right), stats.auroc([-s for s in score], right)
    assert (one.low, one.high) == pytest.approx((1 - two.high, 1 - two.low))


def test_the_units_of_a_judge_move_no_interval_that_his_scores_are_corrected_in():
    """Scores of .45 to .55 made the difference of two policies 6 times as wide, a loss 1.6 times:
    the weight of the judge's scores was taken for the share of the labels that they tell."""
    rng, prompt = np.random.default_rng(0), np.repeat(np.arange(60), 4)
    quality = rng.beta(2, 2, 60)[prompt]
    human, judge = (np.clip(quality + rng.normal(0, 0.1, 240), 0, 1) for _ in range(2))
    human[prompt >= 30] = np.nan
    policy = np.where(rng.random(240) < 0.5, "new", "old")
    for unit, origin in ((1, 0), (-1, 1), (0.1, 0.45)):
        said = unit * judge + origin
        both = stats.policy_difference(said, human, policy, new="new", old="old", cluster=prompt)
        found = [both, stats.ppi(said, human, cluster=prompt)]
        if unit == 1:
            first = [(e.low, e.high) for e in found]
        assert np.allclose([(e.low, e.high) for e in found], first)
    assert found[0].half_width < 1.5 * 2.05 * found[0].se
    points = stats.ppi(100 * judge, human, cluster=prompt)
    assert (points.low, points.high) == pytest.approx(first[1])


@pytest.mark.parametrize("label", [0, 1])
def test_a_rate_whose_labels_are_all_alike_is_that_label(label):
    """Ten prompts with 20 labels, all 0: a rate of .002, the lower end of what was drawn."""
    judge, human = [1, 0, 1, 0] * 10, [label] * 20 + [None] * 20
    for cluster in (None, np.repeat(range(10), 4)):
        e = stats.pass_rate(judge, human, design="random", cluster=cluster)
        assert e.value == label and e.low <= label <= e.high


def _few(seed):
    """Verdicts, scores near 1 and labels of a half, of 3 to 8 prompts with 1 to 3 rows."""
    rng = np.random.default_rng(seed)
    prompts = int(rng.integers(3, 9))
    g = np.repeat(np.arange(prompts), rng.integers(1, 4))
    near = rng.beta(8, 1, prompts)[g]
    human = np.clip(near + 0.05 * rng.normal(size=len(g)), 0, 1)
    judge = np.clip(human + 0.05 * rng.normal(size=len(g)), 0, 1)
    labels = np.where(np.isin(g, rng.permutation(prompts)[: max(2, prompts // 2)]), human, np.nan)
    bits = rng.random((3, len(g))) < rng.beta(1, 1, prompts)[g]
    return {"g": g, "j": judge, "h": labels, "bits": bits.astype(int)}


RANGES = {
    "corrected score": (lambda d: stats.ppi(d["j"], d["h"], cluster=d["g"]), 0, 1),
    "corrected score in a range": (
        lambda d: stats.ppi(d["j"], 10 * d["h"], cluster=d["g"], bounds=(0, 10)),
        0,
        10,
    ),
    "corrected score with one end": (
        lambda d: stats.ppi(d["j"], 10 - 10 * d["h"], cluster=d["g"], bounds=(0, np.inf)),
        0,
        30,
    ),
    "corrected rate": (
        lambda d: stats.ppi([0.4, 0.7, 0.6, 0.2, 0.1], [0, 1, 0, None, None]),
        0,
        1,
    ),
    **{
        f"difference in {name}": (
            lambda d, name=name: stats.agreement_difference(
                *d["bits"], cluster=d["g"], measure=name
            ),
            -most,
            most,
        )
        for name, most in (("accuracy", 1), ("balanced_accuracy", 1), ("kappa", 2), ("ac1", 2))
    },
    "weighted kappa": (
        lambda d: stats.kappa(
            [1, 2, 0, 2, 2, 0, 2, 2],
            [2, 1, 0, 2, 2, 0, 2, 2],
            cluster=[1, 2, 2, 2, 2, 2, 2, 3],
            weights="quadratic",
            categories=range(3),
        ),
        -1,
        1,
    ),
    "difference of 61 prompts": (
        lambda d: stats.macro_difference(
            [5] * 60 + [0],
            [0] * 60 + [5],
            new_cluster=range(61),
            old_cluster=range(61),
            bounds=(-5, 5),
        ),
        -5,
        5,
    ),
    "Brier less a constant's": (
        lambda d: calibration.against_constant(d["j"], d["bits"][0], cluster=d["g"]),
        -0.25,
        1,
    ),
}


@pytest.mark.parametrize("name", RANGES)
def test_limits_of_few_prompts_stay_in_the_range_of_what_they_are_of(name):
    """Scores near 1 of 5 prompts had limits of .49 to 1.30 with bounds=(0, 1), a rate was -.23, and
    a difference of accuracies [-1.57, 1.57]."""
    measure, low, high = RANGES[name]
    for seed in range(40):
        e = measure(_few(seed))
        assert not (e.value < low or e.value > high), e
        assert not (e.low < low - 1e-9 or e.high > high + 1e-9), e
        assert not (e.low > e.value or e.high < e.value), e


def test_values_that_all_happen_to_be_0_or_1_have_the_room_of_the_range_that_is_given():
    """Rewards from -1 to 1 of which no other value was drawn were read as shares: of 20 to 100
    prompts the interval of their difference held .86 to .88, and that of ratings up to 10 ended
    at 1."""
    new, old = [1] * 69 + [0], [1] * 70
    both, step = np.r_[old, new], np.repeat([0, 100], 70)
    twice, prompts = {"new_cluster": range(70), "old_cluster": range(70)}, [*range(70)] * 2
    for most in (2, 10):
        around = (-most, most)
        assert stats.difference(new, old, bounds=around).low < -most / 20
        assert stats.trend(step, both, cluster=prompts, bounds=around).low < -most / 20
        assert stats.macro_difference(new, old, **twice, bounds=around).low < -most / 100
        assert stats.ppi([1, 2, 1, 3] * 2, [0, 1, 0, 1] + [None] * 4, bounds=(0, most)).high > 1
    for bounds in ({}, {"bounds": (0, 1)}):
        assert stats.difference(new, old, **bounds).low > -0.1
        assert stats.trend(step, both, cluster=prompts, **bounds).low > -0.2
        assert stats.ppi([1, 2, 1, 3] * 2, [0, 1, 0, 1] + [None] * 4, **bounds).high <= 1
    with pytest.raises(DataError, match="outside"):
        stats.macro_difference(new, old, **twice, bounds=(-0.5, 0.5))


def test_that_nothing_differs_is_no_less_than_that_one_prompt_does():
    """`difference(x, x, bounds=(0, 1))` was [-.196, .196]; one row moved by .001: [-.020, .020]."""
    x = np.full(100, 0.5)
    none = stats.difference(x, x, bounds=(0, 1))
    one = stats.difference(np.r_[x[:-1], 1.0], x, bounds=(0, 1))
    assert 0.03 < none.high == -none.low < 0.1 and none.high < one.high - one.low
    assert stats.difference(np.zeros(100), np.zeros(100)).high < 0.1
    same = stats.agreement_difference(*[np.arange(100) % 2] * 2, np.arange(100) % 10 < 5)
    assert 0.03 < same.high < 0.17  # of kappa, from -2 to 2: one row that differs has .17


def test_prompts_that_fall_by_amounts_of_their_own_are_no_gain_of_all_others():
    """Five of 200 prompts fell, by a little or by a lot; all others rose so that nothing was gained
    on average. The limits of a difference and of a trend held 0 in .90 of the samples."""
    fell = lambda rng, n: np.minimum(rng.lognormal(-2, 1, n), 1)  # noqa: E731
    rise = 0.025 / 0.975 * fell(np.random.default_rng(1), 10**6).mean()
    rng, held = np.random.default_rng(5), np.zeros(3)
    for _ in range(400):
        falls = rng.random(200) < 0.025
        old = np.where(falls, 1, 0.98)
        new = old + np.where(falls, -fell(rng, 200), rise + 0.01 * (rng.random(200) - 0.5))
        held += [e.low <= 0 <= e.high for e in _paired(old, new, np.arange(200))]
    assert (held / 400 > 0.93).all(), held / 400


def test_limits_of_even_noise_lean_to_no_side():
    """With the same rise and fall for every prompt they are those of Student's t."""
    rng = np.random.default_rng(3)
    old = rng.random(100)
    new = old + np.tile([-0.1, 0.1], 50) + 0.05
    for e in _paired(old, new, np.arange(100)):
        assert e.high - e.value == pytest.approx(e.value - e.low)
        assert e.half_width < 1.05 * 1.984 * e.se


@pytest.mark.parametrize("n", [100, 200, 1000])
def test_one_score_at_the_end_of_the_range_is_not_wider_by_far_than_two(n):
    """The mean of 200 human scores, half of them known, was .98 [.77, 1.00] where one of those was
    0: thrice as wide as without the judge; the mean without a range 2.5 times as with two at 0."""
    rng, labelled = np.random.default_rng(1), np.arange(n) % 2 == 0
    wide = []
    for failed in (1, 2):
        y = 1 - 0.02 * rng.random(n)
        y[: 2 * failed : 2] = 0
        judge = np.where(rng.random(n) < 0.1, rng.random(n), y)
        both = stats.ppi(judge, np.where(labelled, y, np.nan), bounds=(0, 1))
        alone = stats.mean(y[labelled], bounds=(0, 1))
        assert both.half_width < 1.8 * alone.half_width
        wide.append(stats.mean(y).half_width)
    assert wide[0] < 1.3 * wide[1]
