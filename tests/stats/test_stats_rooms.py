"""The newer rooms: references and small simulations, seeded."""

import numpy as np
import pytest
from scipy import special
from sklearn import metrics

from kit import calibration, stats
from kit.errors import DataError


def test_auroc_is_the_reference_with_ties_and_its_interval_holds():
    rng = np.random.default_rng(0)
    s, y = np.round(rng.random(300), 1), rng.random(300) < 0.4
    assert stats.auroc(s, y).value == pytest.approx(metrics.roc_auc_score(y, s), abs=1e-12)
    hit = 0
    truth = special.ndtr(1 / np.sqrt(2 * (1 + 0.5)))
    for _ in range(150):
        size = rng.integers(2, 17, 12)
        group = np.repeat(np.arange(12), size)
        y = rng.random(len(group)) < 0.5
        common = rng.normal(size=12)[group] * np.sqrt(0.5)
        e = stats.auroc(common + rng.normal(size=len(group)) + y, y, cluster=group)
        hit += e.low <= truth <= e.high
    assert hit / 150 >= 0.9
    assert np.isnan(stats.auroc([0.1, 0.2], [1, 1]).value)


def lenient(rng, rates, labelled, prompts=120, answers=4):
    """Two policies, a judge that is lenient to the first of them; the first `labelled` prompts have labels."""
    common = rng.normal(size=prompts)[:, None]
    columns = []
    for rate, specific in zip(rates, (0.6, 0.9), strict=True):
        score = np.sqrt(0.5) * (common + rng.normal(size=(prompts, answers)))
        y = score < special.ndtri(rate)
        draw = rng.random(y.shape)
        f = np.where(y, draw < 0.9, draw >= specific).astype(float)
        known = np.where(np.arange(prompts)[:, None] < labelled, y, np.nan)
        columns.append((f.ravel(), known.ravel().astype(float)))
    prompt = np.repeat(np.arange(prompts), answers)
    f, h = (np.r_[columns[0][k], columns[1][k]] for k in (0, 1))
    return f, h, ["a"] * len(prompt) + ["b"] * len(prompt), np.r_[prompt, prompt]


def test_a_lenient_judge_does_not_make_a_gain():
    """With a judge lenient to one policy, the interval of the judge's own rates covered .000."""
    rng = np.random.default_rng(1)
    hit, own, width, alone = 0, 0, 0.0, 0.0
    for _ in range(150):
        f, h, policy, prompt = lenient(rng, (0.6, 0.6), 30)
        e = stats.policy_difference(f, h, policy, new="a", old="b", cluster=prompt)
        hit += e.low <= 0 <= e.high
        half = len(f) // 2
        judged = stats.difference(f[:half], f[half:], cluster=prompt[:half])
        own += judged.low <= 0 <= judged.high
        width += e.half_width
        alone += stats.difference(h[:half], h[half:], cluster=prompt[:half]).half_width
    assert hit / 150 >= 0.9 and own / 150 < 0.1 and width < alone


def test_betting_holds_at_every_look():
    rng = np.random.default_rng(2)
    wrong = 0
    for _ in range(60):
        path = stats.betting_path(rng.binomial(1, 0.3, 60))
        wrong += not all(e.low <= 0.3 <= e.high for e in path)
    assert wrong <= 6
    early = next(i for i, e in enumerate(stats.betting_path([1] * 40), 1) if e.low > 0.7)
    assert early < 25
    with pytest.raises(DataError, match="outside"):
        stats.betting([0.5, 1.5])


def test_conformal_abstention_keeps_its_promise():
    rng = np.random.default_rng(3)
    lost = []
    for _ in range(200):
        conf = rng.random(100)
        found = stats.abstain_below(conf, rng.random(100) < conf**0.5, risk=0.1)
        fresh = rng.random(2000)
        lost.append(((fresh >= found.at) & (rng.random(2000) >= fresh**0.5)).mean())
    assert np.mean(lost) <= 0.1 and np.mean(lost) > 0.06
    assert np.isinf(stats.abstain_below([0.9] * 10, [0] * 10, risk=0.05).at)


def test_planned_prompts_give_the_planned_power():
    n = stats.prompts_for(0.07, spread=0.15, noise=0.3, samples=4)
    rng = np.random.default_rng(4)
    shown = 0
    for _ in range(300):
        gain = 0.07 + 0.15 * rng.normal(size=n)
        noise = (0.3 * rng.normal(size=(n, 4, 2))).mean(1)
        shown += stats.difference(gain + noise[:, 0], noise[:, 1]).low > 0
    assert 0.7 < shown / 300 < 0.88
    assert stats.power_of(n, 0.07, spread=0.15, noise=0.3, samples=4) == pytest.approx(
        0.8, abs=0.01
    )


def test_a_trend_is_least_squares_and_its_interval_holds():
    rng = np.random.default_rng(5)
    step, y = np.arange(0, 120, 10), 0.6 + 0.0003 * np.arange(0, 120, 10) + rng.normal(0, 0.01, 12)
    assert stats.trend(step, y).value == pytest.approx(100 * np.polyfit(step, y, 1)[0])
    hit = 0
    for _ in range(200):
        own = rng.normal(size=(20, 1)) * 0.2
        slope = 0.02 + rng.normal(size=(20, 1)) * 0.05
        value = own + slope * step / 100 + rng.normal(0, 0.1, (20, 12))
        e = stats.trend(np.tile(step, 20), value.ravel(), cluster=np.repeat(np.arange(20), 12))
        hit += e.low <= 0.02 <= e.high
    assert hit / 200 >= 0.9


def test_ranked_probability_score_is_brier_for_two_levels():
    rng = np.random.default_rng(6)
    p, y = rng.random(50), rng.integers(0, 2, 50)
    want = calibration.brier(p, y).value.value
    assert stats.rps(np.column_stack([1 - p, p]), y).value == pytest.approx(want)
    far, near = stats.ranked_scores([[1, 0, 0, 0], [0, 0, 1, 0]], [3, 3])
    assert far > near > 0
    with pytest.raises(DataError, match="row 1"):
        stats.rps([[0.5, 0.5], [0.9, 0.9]], [0, 1])


def test_a_ranked_probability_score_leaves_room_for_wrong_levels_not_drawn():
    """Twenty rows that say .9 to .99, all right: [.001, .01] without a word, .64 of such held."""
    rng, says = np.random.default_rng(2), np.array([0.9, 0.95, 0.97, 0.98, 0.99])
    right = says - 0.01
    truth = float(np.mean(right * (1 - says) ** 2 + (1 - right) * says**2))
    held = []
    for _ in range(300):
        q = rng.choice(says, 20)
        e = stats.rps(np.column_stack([1 - q, q]), rng.random(20) < q - 0.01)
        held.append(e.low <= truth <= e.high)
    assert np.mean(held) >= 0.93
    unknown = stats.rps([[np.nan, np.nan], [0.2, 0.8], [0.4, 0.6]], [1, 1, None])
    assert (unknown.n, unknown.missing) == (1, 2) and not stats.rps([[0.2, 0.8]], [None]).n


def panel(rng, items, skills, kinds=2):
    truth = rng.integers(0, kinds, items)
    right = rng.random((items, len(skills))) < np.array(skills)
    other = (truth[:, None] + rng.integers(1, kinds, right.shape)) % kinds
    return truth, np.where(right, truth[:, None], other)


def test_dawid_skene_finds_the_better_judges_and_does_not_run_away():
    rng = np.random.default_rng(7)
    truth, said = panel(rng, 600, (0.95, 0.6, 0.6, 0.55, 0.6))
    found = stats.dawid_skene(said)
    majority = (said.mean(1) > 0.5).astype(int)
    assert (np.array(found.label) == truth).mean() > (majority == truth).mean() + 0.05
    assert found.accuracy() == pytest.approx([0.95, 0.6, 0.6, 0.55, 0.6], abs=0.15)
    assert "turns over the majority" in found.note
    few = stats.dawid_skene([[1, 1, 0], [0, 0, 0], [1, None, 1]])
    assert few.accuracy().min() > 0.5 and few.accuracy().max() < 0.95 and "3 items" in few.note


def test_confusion_has_an_interval_for_every_cell():
    found = stats.confusion(["met"] * 8 + ["unmet"] * 2, ["met"] * 10)
    assert found["met", "met"].value == 0.8 and found["met", "met"].low > 0.4
    assert found["unmet", "met"].n == 0 if ("unmet", "met") in found else True


def test_classwise_sees_what_the_top_label_hides():
    rng = np.random.default_rng(8)
    p = np.tile([0.6, 0.3, 0.1], (600, 1))
    y = rng.choice(3, 600, p=[0.6, 0.1, 0.3])
    found = calibration.classwise(p, y, n_boot=100)
    assert found[0].value < 0.06 and found[1].value > 0.15 and found[2].low > 0.1


def test_headline_claims_read_together():
    strong = stats.Estimate(0.3, 0.2, 0.4, 200, 50)
    weak = stats.Estimate(0.1, 0.01, 0.19, 200, 50)
    line = stats.together({"gain": strong, "kappa": weak, "ece": weak, "auroc": weak})
    assert "4 headline claims" in line and "1 stand: gain" in line and "not shown" in line


def test_what_a_judge_cannot_say_counts_in_the_difference_of_two_policies():
    """Rows on which the judge was unknown were left out, their labels too: where it failed on wrong
    answers of one policy, that policy looked better by .25, and "differs from 0".
    """
    rng, off, covered = np.random.default_rng(3), [], 0
    for _ in range(60):
        prompt = np.repeat(np.arange(80), 4)
        truth = (rng.random(320) < 0.5).astype(float)
        policy = np.tile(list("aabb"), 80)
        judge = np.where(rng.random(320) < 0.1, 1 - truth, truth)
        judge[(policy == "b") & (truth == 0) & (rng.random(320) < 0.6)] = np.nan
        human = np.where(np.isin(prompt, rng.choice(80, 40, replace=False)), truth, np.nan)
        gap = truth[policy == "a"].mean() - truth[policy == "b"].mean()
        e = stats.policy_difference(judge, human, policy, new="a", old="b", cluster=prompt)
        off.append(e.value - gap)
        covered += e.low <= gap <= e.high
    assert abs(np.mean(off)) < 0.02 and covered >= 54


@pytest.mark.parametrize("k", [6, 8, 12])
def test_a_few_labels_that_agree_do_not_make_a_difference(k):
    """Their residuals are 0, and the interval knew only the judge's spread: it held the truth in
    .55 of studies with 6 labels, .75 with 8, and "differs from 0" was false in a quarter."""
    rng, given, held, claimed = np.random.default_rng(5), 0, 0, 0
    policy = np.array(["a", "b"] * 240)
    prompt = np.arange(480) // 8
    for _ in range(60):
        truth = (rng.random(480) < 0.5).astype(float)
        wrong = np.where((policy == "b") & (truth == 0), 0.3, 0.1)
        judge = np.where(rng.random(480) < wrong, 1 - truth, truth)
        human = np.full(480, np.nan)
        drawn = rng.choice(480, k, replace=False)
        human[drawn] = truth[drawn]
        e = stats.policy_difference(judge, human, policy, new="a", old="b", cluster=prompt)
        given += np.isfinite(e.low)
        held += e.low <= 0 <= e.high
        claimed += e.excludes(0)
    assert held >= 0.93 * given and claimed <= 3 and given >= 40


def test_a_rare_rate_is_the_same_as_a_rubric_score_of_one_criterion():
    """Half a label of each kind, meant for the interval, moved the score: .066 for .040 on average,
    beside a pass rate of .037. And an interval of a score left the range that scores have."""
    rng, off = np.random.default_rng(6), []
    answer, cluster = np.arange(240), np.arange(240) // 4
    for _ in range(40):
        truth = (rng.random(240) < 0.04).astype(float)
        judge = np.where(rng.random(240) < 0.05, 1 - truth, truth)
        human = np.where(np.isin(answer, rng.choice(240, 60, replace=False)), truth, np.nan)
        more = {"answer": answer, "cluster": cluster, "human": human}
        e = stats.rubric_score(judge, np.ones(240), **more).estimate
        off.append(e.value - truth.mean())
        assert 0 <= e.low <= e.value <= e.high <= 1
    assert abs(np.mean(off)) < 0.01


def copied(rng, items, judges, copies):
    """A panel whose second judge says what the first does on that share of the items."""
    _, said = panel(rng, items, rng.uniform(0.65, 0.85, judges))
    same = rng.random(items) < copies
    said[same, 1] = said[same, 0]
    return stats.dawid_skene(said, categories=[0, 1]).note


def test_a_judge_that_copies_another_is_told():
    """Two of five judges were one: the panel was surer than it may be, and said nothing of it."""
    rng = np.random.default_rng(12)
    assert sum("say the same" in copied(rng, 1000, 5, 1.0) for _ in range(10)) >= 9
    assert not any("say the same" in copied(rng, 300, 5, 0.0) for _ in range(20))


@pytest.mark.slow
@pytest.mark.parametrize(("judges", "items"), [(4, 60), (4, 1000), (8, 200), (20, 60), (20, 200)])
def test_judges_that_err_on_their_own_are_seldom_called_alike(judges, items):
    rng = np.random.default_rng([13, judges, items])
    assert sum("say the same" in copied(rng, items, judges, 0.0) for _ in range(100)) <= 5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("judges", "items", "copies", "power"),
    [(5, 200, 1, 0.6), (4, 1000, 1, 0.85), (8, 200, 0.5, 0.7)],
)
def test_judges_that_copy_are_mostly_told(judges, items, copies, power):
    rng = np.random.default_rng([14, judges, items])
    told = sum("say the same" in copied(rng, items, judges, copies) for _ in range(100))
    assert told >= 100 * power
